package model

import (
	"math"
	"math/rand/v2"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"clustergym/internal/raced"
	"clustergym/internal/rng"
	"clustergym/nets"
	"clustergym/nets/op"
	"clustergym/nets/optim"
	"clustergym/nets/tape"
)

// learner is a network with a loss, as an agent would build it.
type learner struct {
	params *nets.Params
	graph  func(b *tape.Builder) (*gorgonia.Node, []*gorgonia.Node)
	fill   func(name string) []float32 // the inputs' contents
}

func ppoLearner(t testing.TB, c netCase, n int) learner {
	r := rng.Stream(11, c.name)
	ac, err := NewActorCritic(c.cfg, c.in, c.actions, r)
	if err != nil {
		t.Fatal(err)
	}
	scale := func(x []float32, by float32) []float32 {
		for i := range x {
			x[i] *= by
		}
		return x
	}
	mask := maskOf(r, n, c.actions)
	data := map[string][]float32{
		"obs": noise(r, n*c.in.Size()), "mask": asFloats(mask), "action": legalActions(r, mask, n, c.actions),
		"old": make([]float32, n), "adv": noise(r, n), "ret": noise(r, n), "oldv": scale(noise(r, n), 0.1),
		"weight": make([]float32, n), "coef": {0.2, 0.2, 0.5, 0.01, float32(n)},
	}
	for i := range n {
		data["old"][i] = -2.2 + 0.1*float32(r.NormFloat64())
		data["weight"][i] = 1
	}
	return learner{
		params: ac.Params(),
		graph: func(b *tape.Builder) (*gorgonia.Node, []*gorgonia.Node) {
			m := b.Input("mask", n, c.actions)
			logits, value := ac.Graph(b, b.Input("obs", n, c.in.Size()))
			lp := op.MaskedLogSoftmax(logits, m)
			loss, stats := op.PPOLoss(op.PPO{LogP: op.Gather(lp, b.Input("action", n)), Entropy: op.Entropy(lp, m), Value: value,
				OldLogP: b.Input("old", n), Advantage: b.Input("adv", n), Return: b.Input("ret", n), OldValue: b.Input("oldv", n),
				Weight: b.Input("weight", n), Coef: b.Input("coef", op.PPOCoefs)})
			return loss, []*gorgonia.Node{stats}
		},
		fill: func(name string) []float32 { return data[name] },
	}
}

func tdLearner(t testing.TB, c netCase, n int, duelling bool) learner {
	r := rng.Stream(12, c.name)
	q, err := NewQNet(c.cfg, c.in, c.actions, duelling, r)
	if err != nil {
		t.Fatal(err)
	}
	mask := maskOf(r, n, c.actions)
	data := map[string][]float32{"obs": noise(r, n*c.in.Size()), "mask": asFloats(mask),
		"action": legalActions(r, mask, n, c.actions),
		"target": noise(r, n), "weight": make([]float32, n), "coef": {1, float32(n)}}
	for i := range n {
		data["weight"][i] = r.Float32()
	}
	return learner{
		params: q.Params(),
		graph: func(b *tape.Builder) (*gorgonia.Node, []*gorgonia.Node) {
			v := q.Graph(b, b.Input("obs", n, c.in.Size()), b.Input("mask", n, c.actions))
			loss, errs := op.TDLoss(v, b.Input("action", n), b.Input("target", n), b.Input("weight", n),
				b.Input("coef", op.TDCoefs))
			return loss, []*gorgonia.Node{errs}
		},
		fill: func(name string) []float32 { return data[name] },
	}
}

func legalActions(r *rand.Rand, mask []bool, n, a int) []float32 {
	x := make([]float32, n)
	for i := range x {
		for {
			k := r.IntN(a)
			if mask[i*a+k] {
				x[i] = float32(k)
				break
			}
		}
	}
	return x
}

var lossInputs = []string{"obs", "mask", "action", "old", "adv", "ret", "oldv", "weight", "coef", "target"}

func (l learner) program(t testing.TB, dt tensor.Dtype) *tape.Program {
	t.Helper()
	p, err := tape.Build(dt, l.graph)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range lossInputs {
		for i, x := range l.fill(name) {
			if dt == tensor.Float32 && p.Input(name) != nil {
				p.Input(name)[i] = x
			} else if p.InputF64(name) != nil {
				p.InputF64(name)[i] = float64(x)
			}
		}
	}
	return p
}

// machine builds the learner's graph, differentiates it, binds all values, and returns Gorgonia's own machine for it
// and the parameters' nodes.
func (l learner) machine(t testing.TB, dt tensor.Dtype) (gorgonia.VM, map[string]*gorgonia.Node) {
	t.Helper()
	b := tape.New(dt)
	loss, _ := l.graph(b)
	value := func(x []float32, shape []int) gorgonia.Value {
		if dt == tensor.Float32 {
			return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(append([]float32(nil), x...)))
		}
		y := make([]float64, len(x))
		for i := range x {
			y[i] = float64(x[i])
		}
		return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(y))
	}
	nodes := map[string]*gorgonia.Node{}
	var wrt gorgonia.Nodes
	for i := range l.params.Views {
		v := &l.params.Views[i]
		n := b.Param(v)
		nodes[v.Name] = n
		wrt = append(wrt, n)
		if err := gorgonia.Let(n, value(v.Data, v.Shape)); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range b.Graph().AllNodes() {
		if n.Op() == nil && nodes[n.Name()] == nil {
			if err := gorgonia.Let(n, value(l.fill(n.Name()), n.Shape())); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := gorgonia.Grad(loss, wrt...); err != nil {
		t.Fatal(err)
	}
	return gorgonia.NewTapeMachine(b.Graph(), gorgonia.BindDualValues(wrt...)), nodes
}

func learners(t testing.TB, c netCase, n int) map[string]learner {
	return map[string]learner{"ppo": ppoLearner(t, c, n), "td": tdLearner(t, c, n, false),
		"duelling": tdLearner(t, c, n, true)}
}

func TestGradientsEqualThoseOfGorgoniasMachineInFloat64(t *testing.T) {
	for _, c := range netCases() {
		for name, l := range learners(t, c, 4) {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				vm, nodes := l.machine(t, tensor.Float64)
				defer func() { _ = vm.Close() }()
				if err := vm.RunAll(); err != nil {
					t.Fatal(err)
				}
				p := l.program(t, tensor.Float32)
				if err := p.Run(); err != nil {
					t.Fatal(err)
				}
				if err := l.params.Match(p.Grad()); err != nil {
					t.Fatal(err)
				}
				var diff, norm float64
				for i := range p.Grad().Views {
					v := &p.Grad().Views[i]
					g, err := nodes[v.Name].Grad()
					if err != nil {
						t.Fatal(err)
					}
					for j, w := range g.Data().([]float64) {
						diff += (float64(v.Data[j]) - w) * (float64(v.Data[j]) - w)
						norm += w * w
					}
				}
				diff, norm = math.Sqrt(diff), math.Sqrt(norm)
				if !(diff <= 1e-4*norm) || norm == 0 {
					t.Errorf("gradients differ by %.3g of a norm of %.3g", diff, norm)
				}
			})
		}
	}
}

func TestWholeNetworksAgainstCentralDifferences(t *testing.T) {
	for _, c := range netCases() {
		for name, l := range learners(t, c, 3) {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				raced.Alone(t)
				p := l.program(t, tensor.Float64)
				run := func() float64 {
					if err := p.Run(); err != nil {
						t.Fatal(err)
					}
					return p.Loss()
				}
				run()
				var got []float64
				for _, v := range l.params.Views {
					got = append(got, p.GradF64(v.Name)...)
				}
				norm := 0.0
				for _, g := range got {
					norm += g * g
				}
				norm = math.Sqrt(norm)
				// A few elements of each parameter; the derivative along the gradient itself covers the rest.
				r := rng.Stream(5, "elements")
				at := 0
				for _, v := range l.params.Views {
					x := p.ParamF64(v.Name)
					for range 2 {
						k := r.IntN(len(x))
						old := x[k]
						const h = 1e-6
						x[k] = old + h
						up := run()
						x[k] = old - h
						down := run()
						x[k] = old
						if want := (up - down) / (2 * h); math.Abs(got[at+k]-want) > 1e-6*max(norm, 1) {
							t.Errorf("d/d%s[%d] = %.10g, central difference %.10g", v.Name, k, got[at+k], want)
						}
					}
					at += len(x)
				}
				move := func(by float64) {
					at := 0
					for _, v := range l.params.Views {
						x := p.ParamF64(v.Name)
						for k := range x {
							x[k] += by * got[at] / norm
							at++
						}
					}
				}
				const h = 1e-6
				move(h)
				up := run()
				move(-2 * h)
				down := run()
				if want := (up - down) / (2 * h); math.Abs(norm-want) > 1e-6*max(norm, 1) {
					t.Errorf("norm of the gradient %.10g, central difference along it %.10g", norm, want)
				}
			})
		}
	}
}

func TestLossesFallUnderAdam(t *testing.T) {
	for _, c := range netCases() {
		l := tdLearner(t, c, 16, true)
		p := l.program(t, tensor.Float32)
		adam := optim.NewAdam(l.params, optim.DefaultAdamConfig())
		first := 0.0
		for i := 0; i < 60; i++ {
			if err := p.Run(); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				first = p.Loss()
			}
			_, scale := optim.ClipScale(p.Grad(), 10)
			adam.StepScaled(p.Grad(), 3e-3, scale)
		}
		if !(p.Loss() < first/2) {
			t.Errorf("%s: loss fell from %v to %v only", c.name, first, p.Loss())
		}
	}
}

func TestTrainingStepDoesNotAllocate(t *testing.T) {
	raced.Alone(t)
	for _, c := range netCases() {
		for name, l := range learners(t, c, 4) {
			p := l.program(t, tensor.Float32)
			adam := optim.NewAdam(l.params, optim.DefaultAdamConfig())
			if n := testing.AllocsPerRun(5, func() {
				if err := p.Run(); err != nil {
					t.Fatal(err)
				}
				_, scale := optim.ClipScale(p.Grad(), 0.5)
				adam.StepScaled(p.Grad(), 1e-4, scale)
			}); n != 0 {
				t.Errorf("%s/%s: %v allocations", c.name, name, n)
			}
		}
	}
}
