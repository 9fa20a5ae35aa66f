package maml_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"clustergym/agents/maml"
	"clustergym/agents/ppo"
	"clustergym/env"
	"clustergym/env/control"
)

var ctx = context.Background()

// policy is a small network for an environment of package env/control.
func policy(t testing.TB, id string, hidden ...int) func() (maml.Model, error) {
	e, err := control.New(id)
	if err != nil {
		t.Fatal(err)
	}
	c := ppo.ModelConfig{ScaleActions: true, LogStd: -0.5, Network: ppo.DefaultConfig().Network}
	c.Network.Hidden, c.Network.Separate = hidden, false
	return func() (maml.Model, error) { return ppo.NewModel(c, e.Spec(), 3) }
}

func family(t testing.TB, id string) *maml.Family {
	t.Helper()
	f, err := maml.NewFamily(func() (env.Env, error) { return control.New(id) })
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func learner(t testing.TB, id string, cfg maml.Config, workers int, seed uint64) *maml.Learner {
	t.Helper()
	l, err := maml.New(cfg, family(t, id), policy(t, id, 8), workers, seed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// state is everything that a checkpoint keeps.
func state(t testing.TB, l *maml.Learner) string {
	t.Helper()
	var b bytes.Buffer
	for _, p := range l.Parts() {
		if _, err := p.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// small are the forms of the algorithm at sizes that take milliseconds.
func small() map[string]maml.Config {
	c := maml.DefaultConfig()
	c.Tasks, c.Before, c.After, c.CGIterations = 5, 3, 2, 3
	first, second, prox, reptile := c, c, c, c
	second.Order, second.InnerSteps = 2, 2
	prox.Outer, prox.Epochs, prox.Order, prox.KLCoef = "ppo", 2, 2, 0.1
	reptile.Method, reptile.InnerSteps = "reptile", 3
	joint := c
	joint.Method = "joint"
	return map[string]maml.Config{"first order": first, "second order, two steps": second, "ppo": prox, "reptile": reptile,
		"joint": joint}
}

func learn(t testing.TB, l *maml.Learner, n int) {
	t.Helper()
	for range n {
		if _, err := l.Learn(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWorkersChangeNothing(t *testing.T) {
	for name, cfg := range small() {
		for _, id := range []string{"Nav2D-v1", "Bandit-v1"} {
			want := ""
			for _, workers := range []int{1, 2, 8} {
				l := learner(t, id, cfg, workers, 5)
				begin := slices.Clone(l.Params().Data)
				learn(t, l, 2)
				if slices.Equal(begin, l.Params().Data) {
					t.Fatalf("%s, %s: nothing was learnt", name, id)
				}
				if got := state(t, l); want == "" {
					want = got
				} else if got != want {
					t.Errorf("%s, %s: %d workers end with other bytes than one", name, id, workers)
				}
			}
		}
	}
}

func TestResumedEqualsStraightThrough(t *testing.T) {
	for name, cfg := range small() {
		straight, first := learner(t, "Bandit-v1", cfg, 1, 5), learner(t, "Bandit-v1", cfg, 1, 5)
		learn(t, straight, 4)
		learn(t, first, 2)
		second := learner(t, "Bandit-v1", cfg, 2, 999) // the seed comes from the checkpoint too
		parts := second.Parts()
		for i, p := range first.Parts() {
			var b bytes.Buffer
			if _, err := p.WriteTo(&b); err != nil {
				t.Fatal(err)
			}
			if _, err := parts[i].ReadFrom(&b); err != nil {
				t.Fatal(err)
			}
		}
		learn(t, second, 2)
		if state(t, second) != state(t, straight) {
			t.Errorf("%s: resumed ends with other bytes", name)
		}
	}
}

// The bracket of bandits with ten arms: at least 0.80 a pull after a hundred pulls and one step of adaptation; at
// most 0.5 without adapting, because the arms are unknown.
func TestABanditIsLearntFromAHundredPulls(t *testing.T) {
	cfg := maml.DefaultConfig()
	cfg.Tasks, cfg.Before, cfg.After, cfg.InnerLR, cfg.Gamma = 20, 1, 2, 3, 0
	l, err := maml.New(cfg, family(t, "Bandit-v1"), policy(t, "Bandit-v1", 32), 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // memory only
	learn(t, l, 20)
	out, err := l.Judge(ctx, l.Params().Data, 77, 200, []int{0, 1}, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	var mean [2]float64
	for k := range mean {
		for _, o := range out[k] {
			mean[k] += o.Sampled / 200 / 100
		}
	}
	if mean[0] < 0.45 || mean[0] > 0.55 || mean[1] < 0.80 {
		t.Errorf("%.3f a pull before adaptation and %.3f after, want about 0.5 and at least 0.80", mean[0], mean[1])
	}
}

func TestBadSettingsAreNamedInOneSentence(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(c *maml.Config)
	}{
		{"inner_steps: got 1, want a whole number from 2 to 64 with method reptile",
			func(c *maml.Config) { c.Method = "reptile" }},
		{`method: got "mamba", want maml, reptile or joint`, func(c *maml.Config) { c.Method = "mamba" }},
		{"order: got 3, want 1, without Hessians, or 2, with them", func(c *maml.Config) { c.Order = 3 }},
		{"tasks: got 0, want a whole number from 1 to 4096", func(c *maml.Config) { c.Tasks = 0 }},
		{`baseline: got "critic", want observation, info or time`, func(c *maml.Config) { c.Baseline = "critic" }},
		{"backtrack: got 1, want a number in (0, 1)", func(c *maml.Config) { c.Backtrack = 1 }},
	} {
		cfg := maml.DefaultConfig()
		c.change(&cfg)
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
	if _, err := maml.NewFamily(func() (env.Env, error) { return control.New("CartPole-v1") }); err == nil ||
		!strings.Contains(err.Error(), "CartPole-v1 has no tasks") {
		t.Errorf("a family without tasks: %v", err)
	}
}

func TestAFamilyDrawsTasks(t *testing.T) {
	tasks, err := family(t, "Nav2D-v1").Sample(rand.New(rand.NewPCG(1, 2)), 3)
	if err != nil || len(tasks) != 3 || len(tasks[0].Values) != 2 || slices.Equal(tasks[0].Values, tasks[1].Values) ||
		tasks[0].Seed == tasks[1].Seed {
		t.Errorf("%v, %v", tasks, err)
	}
}

func TestJudgingNeedsNumbersThatAscend(t *testing.T) {
	l := learner(t, "Bandit-v1", small()["first order"], 1, 1)
	if _, err := l.Judge(ctx, l.Params().Data, 1, 1, []int{1, 1}, 1, nil); err == nil ||
		!strings.Contains(err.Error(), "ascend") {
		t.Errorf("got %v", err)
	}
	if _, err := l.Judge(ctx, nil, 1, 1, []int{1}, 1, nil); err == nil {
		t.Error("no parameters were taken")
	}
	// Judging learns nothing and draws from streams of its own.
	before := state(t, l)
	one, err := l.Judge(ctx, l.Params().Data, 1, 3, []int{0, 2}, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	two, err := l.Judge(ctx, l.Params().Data, 1, 3, []int{0, 2}, 2, nil)
	if err != nil || !slices.Equal(one[1], two[1]) || state(t, l) != before {
		t.Errorf("%v and %v, %v", one, two, err)
	}
}
