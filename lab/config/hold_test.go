package config_test

import (
	"strings"
	"testing"

	"clustergym/configs"
	"clustergym/lab/config"
	"clustergym/simulator/schedulers/tuned"
)

// Weights of eval.hold reach hold wherever it plays, and stand in files only if they are given.
func TestWeightsReachHold(t *testing.T) {
	cfg, err := config.Preset("quickstart-v1")
	if err != nil {
		t.Fatal(err)
	}
	text, err := configs.Encode(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "\n  hold:") {
		t.Errorf("weights that are not given are written: %s", text)
	}
	for _, set := range []string{"eval.hold.base=-2", "eval.hold.width=0.5"} {
		if err := configs.Set(&cfg, set); err != nil {
			t.Fatal(err)
		}
	}
	want := tuned.Hold{Width: 0.5, Base: -2}
	for _, name := range []string{"hold", "rollout:hold", "hindsight:hold"} {
		r, err := cfg.Rival(name)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if r.Sched.Order != "hold" || r.Sched.Hold != want || r.Name != name {
			t.Errorf("%s is %q with order %s and weights %+v, want %+v", name, r.Name, r.Sched.Order, r.Sched.Hold, want)
		}
	}
	if text, err = configs.Encode(&cfg); err != nil {
		t.Fatal(err)
	}
	again, err := config.Decode("run.yaml", text)
	if err != nil || again.Eval.Hold != want {
		t.Errorf("read again: %+v, %v", again.Eval.Hold, err)
	}

	for set, want := range map[string]string{
		"eval.hold.bsae=1":    "eval.hold.bsae: unknown key; did you mean base?",
		"eval.hold.base=none": `eval.hold.base: got "none", want a number`,
	} {
		if err := configs.Set(&cfg, set); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", set, err, want)
		}
	}
	cfg.Eval.Hold.Age = 2e6
	if err := cfg.Validate(); err == nil ||
		!strings.Contains(err.Error(), "eval.hold.age: got 2e+06, want a number from -1e6 to 1e6") {
		t.Error(err)
	}
}

// Weights of eval.index reach index wherever it plays.
func TestWeightsReachIndex(t *testing.T) {
	cfg, err := config.Preset("jobselect-preempt")
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range []string{"eval.index.left=1", "eval.index.news=0.5"} {
		if err := configs.Set(&cfg, set); err != nil {
			t.Fatal(err)
		}
	}
	want := tuned.Index{Left: 1, News: 0.5}
	for _, name := range []string{"index", "index+skip", "index+strict"} {
		r, err := cfg.Rival(name)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if r.Sched.Order != "index" || r.Sched.Index != want {
			t.Errorf("%s is %q with order %s and weights %+v, want %+v", name, r.Name, r.Sched.Order, r.Sched.Index, want)
		}
	}
	text, err := configs.Encode(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := config.Decode("run.yaml", text); err != nil || again.Eval.Index != want {
		t.Errorf("read again: %+v, %v", again.Eval.Index, err)
	}
	if err := configs.Set(&cfg, "eval.index.elder=1e7"); err == nil {
		err = cfg.Validate()
		if err == nil || !strings.Contains(err.Error(), "eval.index.elder: got 1e+07, want a number from -1e6 to 1e6") {
			t.Error(err)
		}
	}
}
