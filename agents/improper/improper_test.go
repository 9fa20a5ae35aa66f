package improper

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"clustergym/agents"
	"clustergym/agents/agenttest"
	"clustergym/env"
	"clustergym/env/vec"
	"clustergym/internal/rng"
)

// busy is a setting in which everything changes: weights by the state, pieces of unequal size.
func busy(method string) Config {
	c := DefaultConfig()
	c.Method, c.Steps, c.Shards, c.EntCoef = method, 16, 5, 0.01
	if method != "spsa" {
		c.Features = "observation"
	}
	return c
}

func builder(cfg Config) agenttest.Constructor[*Agent] {
	return func(s env.Spec, rows, workers int, seed uint64) (*Agent, error) {
		return New(cfg, s, rows, workers, seed)
	}
}

func TestContract(t *testing.T) {
	for _, method := range []string{"pg", "nac", "spsa"} {
		cfg := busy(method)
		t.Run(method, func(t *testing.T) {
			agenttest.Run(t, agenttest.Suite[*Agent]{
				Name: "improper", New: builder(cfg), Env: "ProbeMaskedContext-v1",
				Policy: func(s env.Spec, weights io.Reader) (agents.Policy, error) { return NewPolicy(cfg, s, weights) },
				Other: func(s env.Spec, weights io.Reader) (agents.Policy, error) {
					s.Action.Sizes = []int{7}
					return NewPolicy(cfg, s, weights)
				},
				Worth: func(a *Agent) string {
					if a.updates == 0 || a.roll != nil && a.roll.Len() == 0 {
						return "not after an update and within a rollout"
					}
					return ""
				},
			})
		})
	}
}

// With the observation as features the mixture learns what is right in each state; without, which controller is best on
// the whole. 0.01 of entropy keeps weights from 0.
func TestItLearns(t *testing.T) {
	for _, method := range []string{"pg", "nac"} {
		cfg := busy(method)
		cfg.LR = 1
		for _, id := range []string{"ProbeContext-v1", "ProbeMaskedContext-v1"} {
			l := agenttest.NewLoop(t, builder(cfg),
				agenttest.Setting{Env: id, Rows: 8, Workers: 1, Autoreset: vec.SameStep, Seed: 1, Total: 20000}).Train()
			if got := agenttest.Evaluate(t, id, l.Agent.Greedy(), 100); got < 0.9 {
				t.Errorf("%s, %s: mean return %v, want 0.9", method, id, got)
			}
		}
	}
	for _, method := range []string{"pg", "nac", "spsa"} {
		cfg := DefaultConfig()
		cfg.Method, cfg.Steps, cfg.LR = method, 16, 1
		l := agenttest.NewLoop(t, builder(cfg),
			agenttest.Setting{Env: "ProbeAction-v1", Rows: 8, Workers: 1, Autoreset: vec.SameStep, Seed: 1,
				Total: 20000}).Train()
		if got := agenttest.Evaluate(t, "ProbeAction-v1", l.Agent.Greedy(), 100); got < 0.9 {
			t.Errorf("%s: mean return %v, want 0.9", method, got)
		}
	}
}

func TestItRefusesWhatItCannotMix(t *testing.T) {
	agenttest.RefusesSpecs(t, "an agent", func(s env.Spec) error {
		_, err := New(DefaultConfig(), s, 2, 1, 1)
		return err
	})
	cfg := DefaultConfig()
	cfg.Method = "spsa"
	if _, err := New(cfg, agenttest.Plain(), 3, 1, 1); err == nil ||
		!strings.Contains(err.Error(), "got 3 rows, want an even number") {
		t.Errorf("three rows: %v", err)
	}
	for want, bad := range map[string]func(c *Config){
		"method: got \"nca\"": func(c *Config) { c.Method = "nca" }, "features": func(c *Config) { c.Features = "all" },
		"steps": func(c *Config) { c.Steps = 0 },
		"lr":    func(c *Config) { c.LR = 0 }, "gamma": func(c *Config) { c.Gamma = 2 },
		"lambda": func(c *Config) { c.Lambda = math.NaN() },
		"ridge":  func(c *Config) { c.Ridge = 0 }, "damping": func(c *Config) { c.Damping = -1 },
		"max_kl":   func(c *Config) { c.MaxKL = -1 },
		"ent_coef": func(c *Config) { c.EntCoef = 11 }, "init": func(c *Config) { c.Init = -1 },
		"shards":  func(c *Config) { c.Shards = 0 },
		"perturb": func(c *Config) { c.Perturb = 0 }, "episodes": func(c *Config) { c.Episodes = 0 },
		"features: got \"observation\", want none with method spsa": func(c *Config) {
			c.Method, c.Features = "spsa",
				"observation"
		},
	} {
		c := DefaultConfig()
		bad(&c)
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestStateIsChecked(t *testing.T) {
	l := agenttest.NewLoop(t, builder(busy("nac")),
		agenttest.Setting{Env: "ProbeContext-v1", Rows: 4, Workers: 1, Autoreset: vec.SameStep, Seed: 5, Total: 500}).Train()
	agenttest.RefusesState(t, l.Agent, "agent.json", map[string]string{
		"another format": `{"format": 2}`, "updates": `{"format": 1, "updates": -1}`, "no critic": `{"format": 1}`,
		"perturbed": `{"format": 1, "trial": {}}`,
	})
	l = agenttest.NewLoop(t, builder(busy("spsa")),
		agenttest.Setting{Env: "ProbeContext-v1", Rows: 4, Workers: 1, Autoreset: vec.SameStep, Seed: 5, Total: 500}).Train()
	agenttest.RefusesState(t, l.Agent, "agent.json", map[string]string{
		"no trial": `{"format": 1, "critic": [1]}`, "rows": `{"format": 1, "trial": {"episode": [1]}}`,
	})
}

func TestStepsWithoutLegalControllers(t *testing.T) {
	l := agenttest.NewLoop(t, builder(DefaultConfig()),
		agenttest.Setting{Env: "ProbeAction-v1", Rows: 2, Workers: 1, Autoreset: vec.SameStep, Seed: 5, Total: 500})
	l.NeedsLegalActions(t, map[string]agents.Policy{"agent": l.Agent, "policy": l.Agent.Greedy()})
}

// The mixture is drawn from unless a rule is named.
func TestAMixtureChoosesByItsRule(t *testing.T) {
	const n = 4000
	s := env.Spec{ID: "test", Obs: []env.Field{{Name: "o", Shape: []int{1}}},
		Action: env.ActionSpec{Sizes: []int{3}}, NoOp: 0}
	m, err := newMixture(DefaultConfig(), s)
	if err != nil {
		t.Fatal(err)
	}
	for k, p := range []float64{.45, .25, .3} {
		m.params.Data[k*m.width] = float32(math.Log(p))
	}
	p, b, dst := newPolicy(m, s), env.NewBatch(s, n), env.NewActions(s, n)
	for i := range b.Mask {
		b.Mask[i] = true
	}
	streams := make([]*rand.Rand, n)
	for _, c := range []struct {
		asked, follows agents.Rule
		want           [3]float64 // shares of the actions
	}{{"", agents.BySample, [3]float64{.45, .25, .3}}, {agents.BySample, agents.BySample, [3]float64{.45, .25, .3}},
		{agents.ByArgMax, agents.ByArgMax, [3]float64{1, 0, 0}}, {agents.ByShare, agents.ByShare, [3]float64{0, 0, 1}}} {
		for i := range streams {
			streams[i] = rng.Stream(uint64(i), "test")
		}
		if got := p.By(c.asked); got != c.follows {
			t.Errorf("%q amounts to %q, want %q", c.asked, got, c.follows)
		}
		if err := p.Act(t.Context(), b, dst, streams); err != nil {
			t.Fatal(err)
		}
		var count [3]int
		for _, k := range dst.Disc {
			count[k]++
		}
		for k, want := range c.want {
			if got := float64(count[k]) / n; math.Abs(got-want) > 0.03 {
				t.Errorf("%q: action %d has a share of %v, want %v", c.asked, k, got, want)
			}
		}
	}
}

func TestActAndObserveDoNotAllocate(t *testing.T) {
	for _, method := range []string{"nac", "spsa"} {
		cfg := busy(method)
		cfg.Episodes = 1 << 20
		l := agenttest.NewLoop(t, builder(cfg),
			agenttest.Setting{Env: "ProbeMaskedContext-v1", Rows: 8, Workers: 1, Autoreset: vec.SameStep, Seed: 5,
				Total: 1 << 30})
		l.AllocatesNothing(t, func(a *Agent) {
			if a.roll != nil && a.roll.Full() {
				a.roll.Reset()
			}
		})
	}
}

// A broken parameter or reward ends an update, and nothing changes.
func TestBrokenNumbersAreNamed(t *testing.T) {
	for _, c := range []struct {
		want  string
		spoil func(a *Agent)
	}{
		{"improper: the advantages of update 0 have mean NaN", func(a *Agent) { a.roll.Value[0] = float32(math.NaN()) }},
		{"improper: the step of update 0 has length 0 and its gradient NaN",
			func(a *Agent) { a.roll.Obs[0] = float32(math.NaN()) }},
		{"improper: the step of update 0 has length", func(a *Agent) { a.cfg.LR, a.cfg.MaxKL = 1e300, 0 }},
	} {
		l := agenttest.NewLoop(t, builder(busy("nac")),
			agenttest.Setting{Env: "ProbeContext-v1", Rows: 4, Workers: 1, Autoreset: vec.SameStep, Seed: 5, Total: 500})
		for !l.Agent.roll.Full() {
			l.Play()
		}
		before := agenttest.State(t, l.Agent.Parts())["weights.safetensors"]
		c.spoil(l.Agent)
		if _, err := l.Agent.Learn(context.Background()); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("error %v, want %s", err, c.want)
		}
		if !bytes.Equal(agenttest.State(t, l.Agent.Parts())["weights.safetensors"], before) {
			t.Errorf("%s: the parameters have changed", c.want)
		}
	}
}

// A step of spsa that no weight can hold is an error, and nothing changes.
func TestAHugeStepOfSPSAIsNamed(t *testing.T) {
	l := agenttest.NewLoop(t, builder(busy("spsa")),
		agenttest.Setting{Env: "ProbeContext-v1", Rows: 4, Workers: 1, Autoreset: vec.SameStep, Seed: 5, Total: 500})
	l.Agent.cfg.LR = 1e300
	l.Agent.trial.Earned[0] = 5 // so that the rows of a pair differ
	before := agenttest.State(t, l.Agent.Parts())["weights.safetensors"]
	var err error
	for err = agents.ErrNotReady; errors.Is(err, agents.ErrNotReady); _, err = l.Agent.Learn(t.Context()) {
		l.Play()
	}
	if err == nil || !strings.HasPrefix(err.Error(), "improper: the step of update 0 has length") {
		t.Errorf("error %v", err)
	}
	if !bytes.Equal(agenttest.State(t, l.Agent.Parts())["weights.safetensors"], before) {
		t.Error("the parameters have changed")
	}
}

// The gradient and the Fisher matrix are those of Σ A·log π and of E[ψψᵀ], by central differences.
func TestGradientAndCurvature(t *testing.T) {
	cfg := busy("nac")
	cfg.EntCoef = 0.3
	spec := agenttest.Plain()
	a, err := New(cfg, spec, 1, 1, 3)
	if err != nil {
		t.Fatal(err)
	}
	src := rand.New(rand.NewPCG(1, 2))
	for i := range a.params.Data {
		a.params.Data[i] = float32(src.NormFloat64())
	}
	b, next, act := env.NewBatch(spec, 1), env.NewBatch(spec, 1), env.NewActions(spec, 1)
	next.Kind[0] = env.Mid
	for !a.roll.Full() {
		for i := range b.Obs {
			b.Obs[i] = float32(src.NormFloat64())
		}
		copy(b.Mask, []bool{true, src.IntN(3) > 0, true})
		next.Reward[0], act.Disc[0] = src.NormFloat64(), int32(2*src.IntN(2))
		if err := a.Observe(b, act, next); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.roll.Advantages(a.value, 0.9, 1); err != nil {
		t.Fatal(err)
	}
	const mean, deviation = 0.1, 2
	s := newShard(len(a.params.Data), 3, a.critic.n)
	a.gather(&s, 0, a.roll.Len(), mean, deviation)
	p := make([]float64, 3)
	logits := func(k int) []float64 {
		a.weights(p, a.params.Data, a.roll.Obs[2*k:2*k+2], a.roll.Mask[3*k:3*k+3])
		return p
	}
	objective := func() float64 {
		sum := 0.0
		for k := range a.roll.Len() {
			for j, w := range logits(k) {
				if w == 0 {
					continue
				}
				sum -= cfg.EntCoef * w * math.Log(w)
				if j == int(a.roll.Action.Disc[k]) {
					sum += (float64(a.roll.Advantage[k]) - mean) / deviation * math.Log(w)
				}
			}
		}
		return sum
	}
	slope := func(i int, f func() float64) float64 {
		const h = 1.0 / 512
		was := a.params.Data[i]
		a.params.Data[i] = was + h
		up := f()
		a.params.Data[i] = was - h
		down := f()
		a.params.Data[i] = was
		return (up - down) / (2 * h)
	}
	dim := len(a.params.Data)
	for i := range dim {
		if got, want := s.grad[i], slope(i, objective); math.Abs(got-want) > 1e-3*(1+math.Abs(want)) {
			t.Errorf("gradient %d is %v, want %v", i, got, want)
		}
	}
	one := make([]float64, dim)
	for i := range dim {
		clear(one)
		one[i] = 1
		clear(s.product)
		a.fisher(&s, 0, a.roll.Len(), one)
		for j := range i + 1 {
			want := 0.0
			for k := range a.roll.Len() {
				w := append([]float64(nil), logits(k)...)
				for c := range 3 {
					if w[c] > 0 {
						chance := func() float64 { return math.Log(logits(k)[c]) }
						want += w[c] * slope(i, chance) * slope(j, chance)
					}
				}
			}
			if got := s.product[j]; math.Abs(got-want) > 1e-3*(1+math.Abs(want)) {
				t.Errorf("Fisher matrix %d, %d is %v, want %v", i, j, got, want)
			}
		}
	}
}

// A process of two states by hand: in state 0 controller 0 earns 1 and stays, controller 1 earns 0 and goes to state 1,
// where both earn 2 and go back. With weights (w, 1 − w) and gamma g: V0 = w(1 + gV0) + (1 − w)gV1, V1 = 2 + gV0.
func TestExactGradientByHand(t *testing.T) {
	const g = 0.5
	p := &Process{
		States: 2, Controllers: 2, Gamma: g, Start: []float64{1, 0}, Reward: []float64{1, 2, 0, 2},
		Next: [][]Branch{{{0, 1}}, {{0, 1}}, {{1, 1}}, {{0, 1}}},
	}
	e, err := NewExact(p)
	if err != nil {
		t.Fatal(err)
	}
	value := func(w float64) float64 { return (w + (1-w)*g*2) / (1 - w*g - (1-w)*g*g) }
	if got, want := e.Value(), value(0.5); math.Abs(got-want) > 1e-8 {
		t.Errorf("value %v, want %v", got, want)
	}
	// dV/dθ_0 = dV/dw·w(1 − w), and dV/dθ_1 is minus that.
	const h = 1e-6
	want := (value(0.5+h) - value(0.5-h)) / (2 * h) * 0.25
	if got := e.Gradient(); math.Abs(got[0]-want) > 1e-6 || math.Abs(got[1]+want) > 1e-6 {
		t.Errorf("gradient %v, want ±%v", got, want)
	}
	for range 500 {
		e.Step(2)
	}
	if e.Weight[0] < 0.99 || math.Abs(e.Value()-value(e.Weight[0])) > 1e-6 { // value(1) = 2, value(0) = 4/3
		t.Errorf("weights %v and value %v", e.Weight, e.Value())
	}
	for want, bad := range map[string]func(p *Process){
		"has gamma 1": func(p *Process) { p.Gamma = 1 }, "has 1 starts": func(p *Process) { p.Start = []float64{1} },
		"starts of a process sum to 1.5":                              func(p *Process) { p.Start = []float64{1, 0.5} },
		"state 1, controller 0: state 2 follows, want 0 to 1":         func(p *Process) { p.Next[1] = []Branch{{2, 1}} },
		"state 0, controller 1: the probabilities sum to 0.5, want 1": func(p *Process) { p.Next[2] = []Branch{{1, 0.5}} },
	} {
		q := *p
		q.Next = slices.Clone(p.Next)
		bad(&q)
		if _, err := NewExact(&q); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// Value returns the value of the mixture at the start.
func (e *Exact) Value() float64 {
	e.evaluate()
	v := 0.0
	for s, p := range e.p.Start {
		v += p * e.value[s]
	}
	return v
}
