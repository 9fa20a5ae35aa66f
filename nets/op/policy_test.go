package op_test

import (
	"math"
	"strings"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"clustergym/nets"
	"clustergym/nets/op"
	"clustergym/nets/tape"
)

// program builds a float64 program and fills its inputs.
func program(t *testing.T, build func(e *env) (*gorgonia.Node, []*gorgonia.Node)) *tape.Program {
	t.Helper()
	e := &env{fill: map[string]func(int) float64{}, seed: t.Name(), views: make([]nets.View, 0, 20)}
	p, err := tape.Build(tensor.Float64, func(b *tape.Builder) (*gorgonia.Node, []*gorgonia.Node) {
		e.b = b
		return build(e)
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range e.fill {
		x := p.InputF64(name)
		for i := range x {
			x[i] = f(i)
		}
	}
	if err := p.Run(); err != nil {
		t.Fatal(err)
	}
	return p
}

func near(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol) {
		t.Errorf("%s = %.15g, want %.15g", what, got, want)
	}
}

func TestMaskedActionsHaveNoProbabilityNoEntropyAndNoGradient(t *testing.T) {
	legal := []float64{1, 0, 1, 1, 0, 1, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0}
	p := program(t, func(e *env) (*gorgonia.Node, []*gorgonia.Node) {
		m := e.input("mask", func(i int) float64 { return legal[i] }, 4, 4)
		lp := op.MaskedLogSoftmax(e.param("logits", 4, 4), m)
		h := op.Entropy(lp, m)
		loss := gorgonia.Must(gorgonia.Add(e.total(h),
			gorgonia.Must(
				gorgonia.Sum(op.Gather(lp, e.input("k", func(i int) float64 { return []float64{2, 1, 3, 0}[i] }, 4))))))
		return loss, []*gorgonia.Node{lp, h}
	})
	lp, h, g := p.OutputF64(0), p.OutputF64(1), p.GradF64("logits")
	for i := 0; i < 4; i++ {
		sum, entropy := 0.0, 0.0
		for j := 4 * i; j < 4*i+4; j++ {
			q := math.Exp(lp[j])
			sum += q
			if legal[j] == 1 {
				entropy -= q * lp[j]
			} else if i < 3 && q != 0 {
				t.Errorf("illegal action %d of row %d has probability %v", j-4*i, i, q)
			}
			if legal[j] == 0 && g[j] != 0 {
				t.Errorf("illegal logit %d of row %d has gradient %v", j-4*i, i, g[j])
			}
		}
		near(t, "sum of probabilities", sum, 1, 1e-12)
		near(t, "entropy", h[i], entropy, 1e-12)
	}
	// One legal action: it has probability 1 and nothing to learn.
	near(t, "log-probability of the only legal action", lp[11], 0, 0)
	near(t, "its gradient", g[11], 0, 0)
	// None at all: uniform by definition.
	near(t, "log-probability without legal actions", lp[13], -math.Log(4), 1e-14)
}

func TestUniformPolicyHasEntropyLogN(t *testing.T) {
	p := program(t, func(e *env) (*gorgonia.Node, []*gorgonia.Node) {
		x := e.input("x", func(int) float64 { return 3 }, 2, 11)
		return nil, []*gorgonia.Node{op.Entropy(op.MaskedLogSoftmax(x, nil), nil)}
	})
	near(t, "entropy", p.OutputF64(0)[1], math.Log(11), 1e-14)
}

// ppoProgram has all of PPO's inputs as plain inputs but the three that are learned.
func ppoProgram(t *testing.T, n int) (*tape.Program, map[string][]float64) {
	t.Helper()
	p := program(t, func(e *env) (*gorgonia.Node, []*gorgonia.Node) {
		in := func(name string) *gorgonia.Node { return e.input(name, func(int) float64 { return 0 }, n) }
		loss, stats := op.PPOLoss(op.PPO{LogP: e.param("logp", n), Entropy: e.param("entropy", n), Value: e.param("value", n),
			OldLogP: in("old"), Advantage: in("adv"), Return: in("ret"), OldValue: in("oldv"), Weight: in("weight"),
			Coef: e.input("coef", func(int) float64 { return 1 }, op.PPOCoefs)})
		return loss, []*gorgonia.Node{stats}
	})
	m := map[string][]float64{}
	for _, k := range []string{"logp", "entropy", "value"} {
		m[k] = p.ParamF64(k)
	}
	for _, k := range []string{"old", "adv", "ret", "oldv", "weight", "coef"} {
		m[k] = p.InputF64(k)
	}
	return p, m
}

func TestPPOLossByHand(t *testing.T) {
	p, x := ppoProgram(t, 4)
	// Ratios 1.5, 1.5, 0.5, 1.1 with advantages 1, -1, -1, 2 and clip 0.2: the first and third are held by the clip.
	for i, r := range []float64{1.5, 1.5, 0.5, 1.1} {
		x["old"][i] = -1
		x["logp"][i] = -1 + math.Log(r)
		x["weight"][i] = 1
	}
	copy(x["adv"], []float64{1, -1, -1, 2})
	copy(x["entropy"], []float64{0.1, 0.2, 0.3, 0.4})
	copy(x["value"], []float64{1, 2, 3, 4})
	copy(x["oldv"], []float64{1, 2.5, 0, 4})
	copy(x["ret"], []float64{0, 2, 3, 6})
	copy(x["coef"], []float64{0.2, 0, 0.5, 0.01, 4})
	run := func() []float64 {
		if err := p.Run(); err != nil {
			t.Fatal(err)
		}
		return p.OutputF64(0)
	}
	s := run()
	policy := (-1.2 + 1.5 + 0.8 - 2.2) / 4
	value := (1 + 0 + 0 + 4) / 2.0 / 4
	kl := (0.5 - math.Log(1.5) + 0.5 - math.Log(1.5) - 0.5 - math.Log(0.5) + 0.1 - math.Log(1.1)) / 4
	near(t, "policy loss", s[op.PPOPolicyLoss], policy, 1e-14)
	near(t, "value loss", s[op.PPOValueLoss], value, 1e-14)
	near(t, "entropy", s[op.PPOEntropy], 0.25, 1e-14)
	near(t, "approximate KL", s[op.PPOApproxKL], kl, 1e-14)
	near(t, "clip fraction", s[op.PPOClipFraction], 0.75, 0)
	near(t, "loss", p.Loss(), policy+0.5*value-0.01*0.25, 1e-14)
	for i, w := range []float64{0, 1.5 / 4, 0, -2.2 / 4} {
		near(t, "d/dlogp", p.GradF64("logp")[i], w, 1e-14)
	}
	// With values clipped to ±0.2 of the old ones: errors 1, 0.3 (2.3-2), -2.8 (0.2-3), -2.
	x["coef"][op.PPOVFClip] = 0.2
	s = run()
	near(t, "clipped value loss", s[op.PPOValueLoss], (1+0.09+2.8*2.8+4)/2/4, 1e-12)
	for i, w := range []float64{1, 0, 0, -2} {
		near(t, "d/dvalue", p.GradF64("value")[i], 0.5*w/4, 1e-14)
	}
}

func TestPPOAtTheFirstEpochIsThePolicyGradient(t *testing.T) {
	p, x := ppoProgram(t, 8)
	for i := range x["weight"] {
		x["weight"][i] = 1
		x["logp"][i] = -0.3 * float64(i)
		x["old"][i] = x["logp"][i]
		x["adv"][i] = cell(i)
	}
	copy(x["coef"], []float64{0.2, 0.2, 0.5, 0, 8})
	if err := p.Run(); err != nil {
		t.Fatal(err)
	}
	s := p.OutputF64(0)
	if s[op.PPOApproxKL] != 0 || s[op.PPOClipFraction] != 0 {
		t.Errorf("KL %v and clip fraction %v, want 0 and 0", s[op.PPOApproxKL], s[op.PPOClipFraction])
	}
	for i, g := range p.GradF64("logp") {
		near(t, "d/dlogp", g, -cell(i)/8, 1e-15)
	}
}

func TestShardsOfAMinibatchAddUp(t *testing.T) {
	const n, k = 10, 4 // shards of 4, 4 and 2 rows, the last filled up with nonsense of weight 0
	whole, x := ppoProgram(t, n)
	for name, v := range x {
		for i := range v {
			v[i] = cell(i+len(name)) / 2
		}
	}
	for i := range x["weight"] {
		x["weight"][i] = 1
	}
	copy(x["coef"], []float64{0.2, 0.3, 0.5, 0.01, n})
	if err := whole.Run(); err != nil {
		t.Fatal(err)
	}
	shard, y := ppoProgram(t, k)
	loss, stats, grad := 0.0, make([]float64, op.PPOStats), map[string][]float64{}
	for from := 0; from < n; from += k {
		for name, v := range y {
			if name == "coef" {
				copy(v, x[name])
				continue
			}
			for i := range v {
				v[i] = math.NaN()
				if name == "weight" {
					v[i] = 0
				}
			}
			copy(v, x[name][from:min(from+k, n)])
		}
		if err := shard.Run(); err != nil {
			t.Fatal(err)
		}
		loss += shard.Loss()
		for i, s := range shard.OutputF64(0) {
			stats[i] += s
		}
		for _, name := range []string{"logp", "entropy", "value"} {
			grad[name] = append(grad[name], shard.GradF64(name)[:min(k, n-from)]...)
		}
	}
	near(t, "loss", loss, whole.Loss(), 1e-15)
	for i, s := range stats {
		near(t, "statistic", s, whole.OutputF64(0)[i], 1e-15)
	}
	for name, g := range grad {
		for i := range g {
			if g[i] != whole.GradF64(name)[i] {
				t.Errorf("d/d%s[%d] = %v, whole %v", name, i, g[i], whole.GradF64(name)[i])
			}
		}
	}
}

func TestTDLossByHand(t *testing.T) {
	p := program(t, func(e *env) (*gorgonia.Node, []*gorgonia.Node) {
		loss,
			errs := op.TDLoss(e.param("q", 3, 2), e.input("action", func(i int) float64 { return []float64{1, 0, 1}[i] }, 3),
			e.input("target", func(i int) float64 { return []float64{0, 5, 1}[i] }, 3),
			e.input("weight", func(i int) float64 { return []float64{1, 0.5, 0}[i] }, 3),
			e.input("coef", func(i int) float64 { return []float64{1, 2}[i] }, op.TDCoefs))
		return loss, []*gorgonia.Node{errs}
	})
	copy(p.ParamF64("q"), []float64{9, 0.5, 2, 9, 9, 1e30})
	if err := p.Run(); err != nil {
		t.Fatal(err)
	}
	for i, e := range []float64{0.5, -3, 1e30} {
		near(t, "error", p.OutputF64(0)[i], e, 1e15)
	}
	near(t, "Huber loss", p.Loss(), (0.125+0.5*(3-0.5))/2, 1e-14)
	for i, g := range []float64{0, 0.25, -0.25, 0, 0, 0} {
		near(t, "gradient", p.GradF64("q")[i], g, 1e-14)
	}
	p.InputF64("coef")[op.TDDelta] = 0
	if err := p.Run(); err != nil {
		t.Fatal(err)
	}
	near(t, "squared loss", p.Loss(), (0.25+0.5*9)/2, 1e-14)
}

func TestDuelTakesTheMeanOverLegalActions(t *testing.T) {
	p := program(t, func(e *env) (*gorgonia.Node, []*gorgonia.Node) {
		return nil,
			[]*gorgonia.Node{op.Duel(e.input("v", func(int) float64 { return 10 }, 2),
				e.input("a", func(i int) float64 { return float64(i) }, 2, 3),
				e.input("mask", func(i int) float64 { return []float64{1, 0, 1, 0, 0, 0}[i] }, 2, 3))}
	})
	for i, q := range []float64{9, 10, 11, 9, 10, 11} {
		near(t, "q", p.OutputF64(0)[i], q, 0)
	}
}

func TestActionOutOfRangeFailsTheRun(t *testing.T) {
	p := program(t, func(e *env) (*gorgonia.Node, []*gorgonia.Node) {
		return nil, []*gorgonia.Node{op.Gather(e.input("x", cell, 2, 3), e.input("k", func(int) float64 { return 2 }, 2))}
	})
	for _, k := range []float64{3, -1, 0.5, math.NaN()} {
		p.InputF64("k")[1] = k
		if err := p.Run(); err == nil || !strings.Contains(err.Error(), "row 1") {
			t.Errorf("index %v: error %v, want one that names row 1", k, err)
		}
	}
}

func TestShapesThatDoNotFitAreNamed(t *testing.T) {
	for _, c := range []struct {
		name, want string
		build      func(e *env) *gorgonia.Node
	}{
		{"dense", "want",
			func(e *env) *gorgonia.Node { return op.Dense(e.param("x", 2, 3, 1), e.param("w", 3, 2), nil, op.ReLU) }},
		{"dense weight", `"w"`,
			func(e *env) *gorgonia.Node { return op.Dense(e.param("x", 2, 3), e.param("w", 4, 2), nil, op.ReLU) }},
		{"dense bias", `"b"`, func(e *env) *gorgonia.Node {
			return op.Dense(e.param("x", 2, 3), e.param("w", 3, 2), e.param("b", 3), op.ReLU)
		}},
		{"reshape", "reshape", func(e *env) *gorgonia.Node { return op.Reshape(e.param("x", 2, 3), 5) }},
		{"columns", "columns", func(e *env) *gorgonia.Node { return op.Columns(e.param("x", 2, 3), 2, 4) }},
		{"concat", "rows", func(e *env) *gorgonia.Node { return op.Concat(e.param("x", 2, 3), e.param("y", 3, 3)) }},
		{"conv", "larger", func(e *env) *gorgonia.Node {
			return conv2D(e.param("x", 2, 3, 3, 1), e.param("w", 4, 4, 1, 1), nil, op.Geometry{Kernel: [2]int{4, 4}}, op.ReLU)
		}},
		{"conv filters", `"w"`, func(e *env) *gorgonia.Node {
			return conv2D(e.param("x", 2, 3, 3, 1), e.param("w", 2, 2, 2, 1), nil, op.Geometry{Kernel: [2]int{2, 2}}, op.ReLU)
		}},
		{"mask", "mask",
			func(e *env) *gorgonia.Node { return op.MaskedLogSoftmax(e.param("x", 2, 3), e.param("mask", 2, 2)) }},
		{"gather", "indices", func(e *env) *gorgonia.Node { return op.Gather(e.param("x", 2, 3), e.param("k", 3)) }},
		{"duel", "advantages", func(e *env) *gorgonia.Node { return op.Duel(e.param("v", 3), e.param("a", 2, 3), nil) }},
		{"norm", "gamma", func(e *env) *gorgonia.Node {
			return op.LayerNorm(e.param("x", 2, 3), e.param("g", 2), e.param("b", 3))
		}},
		{"rows", "addrows",
			func(e *env) *gorgonia.Node { return op.AddRows(e.param("x", 5, 3), e.param("c", 2, 3), op.ReLU) }},
		{"mean", "groups", func(e *env) *gorgonia.Node { return op.MeanRows(e.param("x", 5, 3), 2) }},
		{"max", "groups", func(e *env) *gorgonia.Node { return op.MaxRows(e.param("x", 5, 3), 2) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := &env{fill: map[string]func(int) float64{}, views: make([]nets.View, 0, 20)}
			_, err := tape.Build(tensor.Float64, func(b *tape.Builder) (*gorgonia.Node, []*gorgonia.Node) {
				e.b = b
				return nil, []*gorgonia.Node{c.build(e)}
			})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}
