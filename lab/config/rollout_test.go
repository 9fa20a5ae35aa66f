package config

import (
	"errors"
	"strings"
	"testing"

	"clustergym/configs"
	"clustergym/simulator/schedulers"
)

// Files leave eval.rollout out while it has its default, and give it back as it was.
func TestRolloutSettingsAreLeftOutWhileDefault(t *testing.T) {
	cfg := Default()
	plain, err := configs.Encode(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(plain), "rollout") {
		t.Error("the default is written")
	}
	for _, set := range []string{"eval.rollout.budget=30ms", "eval.rollout.candidates=4",
		"eval.rollout.objective=slowdown", "eval.rollout.lifetimes=recorded"} {
		if err := configs.Set(&cfg, set); err != nil {
			t.Fatal(err)
		}
	}
	text, err := configs.Encode(cfg)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Decode("x.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	if again.Eval.Rollout != cfg.Eval.Rollout || again.Eval.Rollout.Budget.String() != "30ms" ||
		again.Eval.Rollout.Ahead != 64 {
		t.Errorf("%+v came back as %+v", cfg.Eval.Rollout, again.Eval.Rollout)
	}
	if again, err = Decode("x.yaml", plain); err != nil || !again.Eval.Rollout.IsZero() {
		t.Errorf("the default came back as %+v, %v", again.Eval.Rollout, err)
	}
}

func TestPoliciesThatLookAheadHaveABase(t *testing.T) {
	cfg := Default()
	cfg.Eval.Rollout.Budget.Rollouts = 7
	for name, want := range map[string]string{
		"rollout:sjf+skip": "rollout:sjf+skip", "rollout:fifo": "rollout:fifo+strict",
		"rollout:sjf+easy": "rollout:sjf+strict+easy", "rollout:area@slots": "rollout:area@slots",
	} {
		r, err := cfg.Rival(name)
		if err != nil || r.Name != want || r.Rollout == nil || r.Rollout.Budget.Rollouts != 7 {
			t.Errorf("%s is %+v, %v", name, r, err)
		}
	}
	if err := cfg.Set("env.estimates=none"); err != nil {
		t.Fatal(err)
	}
	_, err := cfg.Rival("rollout:fifo+skip")
	if _, hidden := errors.AsType[*schedulers.HiddenError](err); !hidden {
		t.Errorf("without run times: %v", err)
	}
	if left := cfg.Seeing([]string{"fifo+skip", "rollout:fifo+skip", "rollout:smallest@slots"}); len(left) != 1 {
		t.Errorf("without run times %v can play", left)
	}
}
