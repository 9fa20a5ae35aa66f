package agents_test

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/env/dagplace"
	"clustergym/env/workerplace"
)

// mean plays ten episodes.
func mean(t *testing.T, e env.Env, p agents.Policy) (sum float64) {
	t.Helper()
	player := agents.NewPlayer(e, p)
	for seed := range uint64(10) {
		ret, _, err := player.Play(context.Background(), env.Episode{Seed: seed, Window: -1}, rand.New(rand.NewPCG(seed, 1)))
		if err != nil {
			t.Fatal(err)
		}
		sum += ret / 10
	}
	return sum
}

func TestOwnRulesArePlayed(t *testing.T) {
	dc, wc := dagplace.DefaultConfig(), workerplace.DefaultConfig()
	dc.Reward, dc.Tasks, dc.GPUs, wc.Jobs = "makespan", 30, 6, 20
	d, err := dagplace.New(dc)
	if err != nil {
		t.Fatal(err)
	}
	w, err := workerplace.New(wc)
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]float64{}
	for _, r := range dagplace.Rules() {
		p, err := dagplace.NewRule(r.Name, d)
		if err != nil {
			t.Fatal(err)
		}
		of["dag "+r.Name] = mean(t, d, p)
	}
	for _, r := range workerplace.Rules() {
		p, err := workerplace.NewRule(r.Name, w)
		if err != nil {
			t.Fatal(err)
		}
		of["workers "+r.Name] = mean(t, w, p)
	}
	for _, pair := range [][2]string{{"dag eft", "dag first-free"}, {"dag first-free", "dag random"},
		{"workers oracle", "workers least-interference"}, {"workers least-interference", "workers random"}} {
		if !(of[pair[0]] > of[pair[1]]) {
			t.Errorf("%s returns %v and %s %v: want more", pair[0], of[pair[0]], pair[1], of[pair[1]])
		}
	}
	// Random rules are random play.
	if r := mean(t, d, agents.NewRandom(d.Spec())); math.Abs(r/of["dag random"]-1) > 0.2 {
		t.Errorf("random play returns %v, the random rule %v", r, of["dag random"])
	}
}

func TestOwnRulesRefuse(t *testing.T) {
	d, err := dagplace.New(dagplace.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dagplace.NewRule("sjf", d); err == nil ||
		!strings.Contains(err.Error(), `DAGPlace-v1: rule "sjf" is unknown`) {
		t.Errorf("%v", err)
	}
	if _, err := workerplace.NewRule("eft", nil); err == nil ||
		!strings.Contains(err.Error(), `WorkerPlace-v1: rule "eft" is unknown`) {
		t.Errorf("%v", err)
	}
	p, err := dagplace.NewRule("eft", d)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Act(context.Background(), env.NewBatch(d.Spec(), 2), env.NewActions(d.Spec(), 2),
		make([]*rand.Rand, 2)); err == nil || !strings.Contains(err.Error(), "a batch of 2 rows") {
		t.Errorf("%v", err)
	}
}
