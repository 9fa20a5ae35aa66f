package mbmpo_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"clustergym/agents/ppo"
	"clustergym/env/workerplace"
	"clustergym/experiments/metascheduler/mbmpo"
	"clustergym/nets/model"
)

var ctx = context.Background()

func world(values ...float64) mbmpo.Real {
	c := workerplace.DefaultConfig()
	c.Obs, c.Slots, c.Jobs, c.Servers, c.Noise = "pairs", 3, 12, 3, 0.02
	return mbmpo.Real{Open: func() (*workerplace.Env, error) { return workerplace.New(c) }, Values: values}
}

// policy scores every pair of job and server with the same small network.
func policy(t testing.TB, r mbmpo.Real) func() (mbmpo.Model, error) {
	t.Helper()
	e, err := r.Open()
	if err != nil {
		t.Fatal(err)
	}
	c := ppo.ModelConfig{Network: model.Config{
		Kind: "cnn", Hidden: []int{8}, Activation: "tanh", Head: "slots", SlotHidden: 8,
		Branches: []model.Branch{{Field: "pairs", Dense: []int{8}, Slots: true}},
	}}
	return func() (mbmpo.Model, error) { return ppo.NewModel(c, e.Spec(), 3) }
}

func small() mbmpo.Config {
	c := mbmpo.DefaultConfig()
	c.Models.Hidden, c.Models.Members, c.Models.Epochs = []int{16}, 2, 10
	c.Maml.Tasks, c.Maml.Before, c.Maml.After, c.Maml.CGIterations = 3, 2, 2, 2
	c.First, c.Imitation, c.Guide, c.Guided, c.Episodes, c.MetaSteps = 3, 20, 10, 1, 2, 1
	return c
}

func loop(t testing.TB, cfg mbmpo.Config, workers int) *mbmpo.Loop {
	t.Helper()
	r := world()
	l, err := mbmpo.New(cfg, r, policy(t, r), workers, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func begin(t testing.TB, l *mbmpo.Loop) mbmpo.Report {
	t.Helper()
	r, err := l.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func round(t testing.TB, l *mbmpo.Loop) mbmpo.Report {
	t.Helper()
	r, err := l.Round(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func state(t testing.TB, l *mbmpo.Loop) string {
	t.Helper()
	var b bytes.Buffer
	for _, p := range l.Parts() {
		if _, err := p.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// variants are the loop, its ablations and its baseline.
func variants() map[string]mbmpo.Config {
	joint, free, random, single := small(), small(), small(), small()
	joint.Maml.Method, joint.Explore = "joint", "subspace"
	free.ModelFree, free.Explore, free.Guide = true, "none", 0
	free.Maml.Method, free.Maml.Outer, free.Maml.After = "joint", "ppo", 1
	random.Explore = "random"
	single.Models.Members = 1
	return map[string]mbmpo.Config{"whole": small(), "no meta": joint, "model free": free, "random": random,
		"single model": single}
}

func TestWorkersChangeNothing(t *testing.T) {
	for name, cfg := range variants() {
		want, reports := "", []mbmpo.Report{}
		for _, workers := range []int{1, 3} {
			l := loop(t, cfg, workers)
			got := []mbmpo.Report{begin(t, l)}
			first := slices.Clone(l.Params())
			got = append(got, round(t, l))
			if slices.Equal(first, l.Params()) {
				t.Fatalf("%s: nothing was learnt", name)
			}
			if want == "" {
				want, reports = state(t, l), got
			} else if state(t, l) != want || !slices.Equal(got, reports) {
				t.Errorf("%s: %d workers end elsewhere than one: %+v and %+v", name, workers, got, reports)
			}
		}
	}
}

// Imitation brings the policy close to the rule, far from where an untrained policy places jobs.
func TestThePolicyBeginsByImitating(t *testing.T) {
	cfg := small()
	cfg.Imitation = 200
	l := loop(t, cfg, 1)
	mean := func() float64 {
		out, err := l.Evaluate(ctx, l.Params(), world(), []uint64{1, 2, 3, 4, 5, 6})
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, o := range out {
			if o.Tail < o.JCT || o.Makespan < o.Tail {
				t.Errorf("%+v", o)
			}
			sum += o.JCT / 6
		}
		return sum
	}
	before := mean()
	begin(t, l)
	if after := mean(); after > 0.9*before {
		t.Errorf("mean completion time %v, %v before imitation", after, before)
	}
}

func TestTargetedExplorationSeesMoreAndModelsImprove(t *testing.T) {
	seen := map[string]int{}
	for _, explore := range []string{"targeted", "none"} {
		cfg := small()
		cfg.Explore, cfg.MetaSteps, cfg.Episodes, cfg.Beta, cfg.Guard = explore, 0, 4, 5, 1
		l := loop(t, cfg, 1)
		begin(t, l)
		r := round(t, l)
		seen[explore] = r.Spaces
		if r.Measured < 50 || r.Error <= 0 || r.Held <= 0 || r.Episodes != 7 {
			t.Errorf("%+v", r)
		}
		if s := round(t, l); s.Held > 2*r.Held {
			t.Errorf("with more data the models are worse: %v, then %v", r.Held, s.Held)
		}
	}
	if seen["targeted"] <= seen["none"] {
		t.Errorf("subspaces seen: %v", seen)
	}
}

func TestAfterAChangeParametersAndModelsAreKept(t *testing.T) {
	l := loop(t, small(), 1)
	begin(t, l)
	round(t, l)
	before := state(t, l)
	changed := world(1.5, 1, 1, 1.5, 0, 1, 0, 1, 0, 1, 0, 1, 0)
	l.Change(changed)
	if state(t, l) != before {
		t.Error("the change changed parameters")
	}
	if _, err := l.Adapted(ctx, 1); err == nil {
		t.Error("adapted to a workload of which nothing was seen")
	}
	theta := slices.Clone(l.Params())
	if _, err := l.Gather(ctx, l.Params(), 1); err != nil {
		t.Fatal(err)
	}
	x, err := l.Adapted(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(theta, l.Params()) || slices.Equal(theta, x) {
		t.Error("adapting moved the parameters before adaptation, or nothing")
	}
	if _, err := l.Plan(ctx, changed, []uint64{1}); err != nil {
		t.Error(err)
	}
}

func TestALoopSettles(t *testing.T) {
	cfg := small()
	cfg.Settled, cfg.MetaSteps = 1, 0
	l := loop(t, cfg, 1)
	begin(t, l)
	if l.Settled() {
		t.Error("settled before the first round")
	}
	round(t, l)
	round(t, l)
	if !l.Settled() {
		t.Error("not settled although any change is small enough")
	}
}

func TestBadSettingsAreNamed(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(c *mbmpo.Config)
	}{
		{`explore: got "greedy", want targeted, tailored, subspace, random or none`,
			func(c *mbmpo.Config) { c.Explore = "greedy" }},
		{"rule: got", func(c *mbmpo.Config) { c.Rule = "oracle" }},
		{"model_free: got true", func(c *mbmpo.Config) { c.ModelFree = true }},
		{"models.members: got 0", func(c *mbmpo.Config) { c.Models.Members = 0 }},
		{"wait: got -0.1, want a number in [0, 1]", func(c *mbmpo.Config) { c.Wait = -0.1 }},
		{"maml.tasks: got 0", func(c *mbmpo.Config) { c.Maml.Tasks = 0 }},
		{`rule "best" is unknown`, func(c *mbmpo.Config) { c.Data = append(c.Data, "best") }},
	} {
		cfg := small()
		c.change(&cfg)
		if _, err := mbmpo.New(cfg, world(), policy(t, world()), 1, 1); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
	l := loop(t, small(), 1)
	if _, err := l.Round(ctx); err == nil || !strings.Contains(err.Error(), "before Begin") {
		t.Errorf("a round too early: %v", err)
	}
}
