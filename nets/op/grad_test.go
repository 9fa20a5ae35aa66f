package op_test

import (
	"math"
	"slices"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"clustergym/internal/rng"
	"clustergym/nets"
	"clustergym/nets/op"
	"clustergym/nets/tape"
)

// env is what a case builds its node from: parameters filled with normal noise, inputs filled by the case.
type env struct {
	b     *tape.Builder
	views []nets.View
	fill  map[string]func(i int) float64
	seed  string
}

func (e *env) param(name string, shape ...int) *gorgonia.Node {
	for i := range e.views {
		if e.views[i].Name == name {
			return e.b.Param(&e.views[i])
		}
	}
	v := nets.View{Name: name, Shape: shape}
	v.Data = make([]float32, v.Size())
	r := rng.Stream(7, e.seed+name)
	for i := range v.Data {
		v.Data[i] = float32(r.NormFloat64())
	}
	e.views = append(e.views, v)
	return e.b.Param(&e.views[len(e.views)-1])
}

func (e *env) input(name string, f func(i int) float64, shape ...int) *gorgonia.Node {
	e.fill[name] = f
	return e.b.Input(name, shape...)
}

func cell(i int) float64 { return math.Sin(3*float64(i) + 1) }

// total is sum(x·c) with fixed c, so that every element of x has its own weight in the loss.
func (e *env) total(x *gorgonia.Node) *gorgonia.Node {
	if x.IsScalar() {
		return x
	}
	c := e.input("weights of total", func(i int) float64 { return math.Cos(float64(i*i) + 0.5) }, x.Shape()...)
	return gorgonia.Must(gorgonia.Sum(gorgonia.Must(gorgonia.HadamardProd(x, c))))
}

func mask(i int) float64 {
	if i%5 == 1 || i%7 == 3 {
		return 0
	}
	return 1
}

type gradCase struct {
	name  string
	build func(e *env) *gorgonia.Node
}

var gradCases = []gradCase{
	{"dense identity", func(e *env) *gorgonia.Node {
		return op.Dense(e.param("x", 5, 7), e.param("w", 7, 3), e.param("b", 3), op.Identity)
	}},
	{"dense tanh", func(e *env) *gorgonia.Node {
		return op.Dense(e.param("x", 5, 7), e.param("w", 7, 9), e.param("b", 9), op.Tanh)
	}},
	{"dense relu without bias", func(e *env) *gorgonia.Node {
		return op.Dense(e.param("x", 5, 7), e.param("w", 7, 1), nil, op.ReLU)
	}},
	{"dense twice over the same weight", func(e *env) *gorgonia.Node {
		w := e.param("w", 6, 6)
		return op.Dense(op.Dense(op.Dense(e.param("x", 4, 6), w, nil, op.Tanh), w, nil, op.Tanh), w, nil, op.Identity)
	}},
	{"activate", func(e *env) *gorgonia.Node { return op.Activate(e.param("x", 2, 3, 4), op.Tanh) }},
	{"reshape", func(e *env) *gorgonia.Node {
		return op.Reshape(op.Activate(op.Reshape(e.param("x", 6, 4), 2, 12), op.Tanh), 24)
	}},
	{"reshape of a parameter", func(e *env) *gorgonia.Node { return op.Reshape(e.param("x", 6, 4), 24) }},
	{"columns and concat", func(e *env) *gorgonia.Node {
		x := e.param("x", 3, 8)
		return op.Concat(op.Columns(x, 1, 4), e.param("y", 3, 2), op.Columns(x, 2, 8))
	}},
	{"conv", func(e *env) *gorgonia.Node {
		return conv2D(e.param("x", 2, 7, 6, 3), e.param("w", 3, 2, 3, 4), e.param("b", 4),
			op.Geometry{Kernel: [2]int{3, 2}, Stride: [2]int{2, 1}}, op.Tanh)
	}},
	{"conv with padding", func(e *env) *gorgonia.Node {
		return conv2D(e.param("x", 2, 4, 5, 2), e.param("w", 3, 3, 2, 3), nil,
			op.Geometry{Kernel: [2]int{3, 3}, Stride: [2]int{1, 2}, Pad: [2]int{1, 2}}, op.Identity)
	}},
	{"conv slot by slot", func(e *env) *gorgonia.Node {
		return conv2D(e.param("x", 2, 4, 6, 1), e.param("w", 4, 2, 1, 3), e.param("b", 3),
			op.Geometry{Kernel: [2]int{4, 2}, Stride: [2]int{4, 2}}, op.Tanh)
	}},
	{"conv in columns", func(e *env) *gorgonia.Node {
		x := op.Activate(e.param("x", 3, 30), op.Tanh)
		return op.ConvColumns(x, e.param("w", 4, 2, 1, 3), e.param("b", 3),
			op.Geometry{Kernel: [2]int{4, 2}, Stride: [2]int{4, 2}}.Conv(4, 6, 1), 5, op.Tanh)
	}},
	{"conv in all columns", func(e *env) *gorgonia.Node {
		x := op.Activate(e.param("x", 3, 24), op.Tanh)
		return op.ConvColumns(x, e.param("w", 2, 2, 1, 3), nil,
			op.Geometry{Kernel: [2]int{2, 2}}.Conv(4, 6, 1), 0, op.Tanh)
	}},
	{"conv over tiles", func(e *env) *gorgonia.Node {
		return conv2D(e.param("x", 2, 4, 6, 1), e.param("w", 1, 3, 1, 3), e.param("b", 3),
			op.Geometry{Kernel: [2]int{1, 3}, Stride: [2]int{1, 3}}, op.Tanh)
	}},
	{"squared error", func(e *env) *gorgonia.Node {
		return op.Sum(op.Square(op.Sub(e.param("x", 4, 6), e.input("target", cell, 4, 6))))
	}},
	{"arithmetic", func(e *env) *gorgonia.Node {
		a, b := e.param("a", 4, 3), e.param("b", 4, 3)
		return op.Div(op.Add(op.Mul(a, b), op.Exp(op.Affine(a, 0.5, -1))),
			e.input("by", func(i int) float64 { return float64(i + 2) }, 4, 3))
	}},
	{"arithmetic with rows and numbers", func(e *env) *gorgonia.Node {
		a, row, one := e.param("a", 4, 3), e.param("row", 3), e.param("one", 1)
		return op.RowSum(op.Sub(op.Mul(op.Add(a, row), row), op.Mul(a, op.Sum(op.Square(one)))))
	}},
	{"larger and smaller", func(e *env) *gorgonia.Node {
		a, b := e.param("a", 4, 3), e.param("b", 4, 3)
		low, high := e.param("low", 1), e.input("high", func(int) float64 { return 0.8 }, 1)
		return op.Add(op.Clamp(a, low, high), op.Mul(op.Min(a, b), op.Max(b, low)))
	}},
	{"kept rows", func(e *env) *gorgonia.Node {
		x := e.param("x", 5)
		return op.Keep(op.Exp(x), e.input("weight", func(i int) float64 { return float64(i % 2) }, 5))
	}},
	{"layer norm", func(e *env) *gorgonia.Node {
		return op.LayerNorm(e.param("x", 4, 6), e.param("gamma", 6), e.param("beta", 6))
	}},
	{"add rows", func(e *env) *gorgonia.Node { return op.AddRows(e.param("x", 6, 4), e.param("c", 2, 4), op.Tanh) }},
	{"add rows identity", func(e *env) *gorgonia.Node {
		return op.AddRows(e.param("x", 6, 4), e.param("c", 2, 4), op.Identity)
	}},
	{"base", func(e *env) *gorgonia.Node {
		obs := e.input("obs", cell, 4, 9)
		return op.Activate(op.AddBase(e.param("x", 4, 4), obs, op.Base{From: 2, Stride: 3, Slots: 3, Scale: -2, Rest: 0.5}),
			op.Tanh)
	}},
	{"mean rows", func(e *env) *gorgonia.Node { return op.MeanRows(e.param("x", 6, 4), 3) }},
	{"max rows", func(e *env) *gorgonia.Node { return op.MaxRows(e.param("x", 6, 4), 3) }},
	{"log-softmax", func(e *env) *gorgonia.Node { return op.MaskedLogSoftmax(e.param("x", 4, 6), nil) }},
	{"masked log-softmax", func(e *env) *gorgonia.Node {
		m := e.input("mask", mask, 4, 6)
		// Gather legal entries only: an illegal one is about -1e8 and drowns the differences.
		return op.Gather(op.MaskedLogSoftmax(e.param("x", 4, 6), m),
			e.input("k", func(i int) float64 { return []float64{0, 2, 2, 0}[i] }, 4))
	}},
	{"entropy", func(e *env) *gorgonia.Node {
		return op.Entropy(op.MaskedLogSoftmax(e.param("x", 4, 6), nil), nil)
	}},
	{"masked entropy", func(e *env) *gorgonia.Node {
		m := e.input("mask", mask, 4, 6)
		return op.Entropy(op.MaskedLogSoftmax(e.param("x", 4, 6), m), m)
	}},
	{"gather", func(e *env) *gorgonia.Node {
		return op.Gather(e.param("x", 4, 6), e.input("k", func(i int) float64 { return float64(i * i % 6) }, 4))
	}},
	{"duel", func(e *env) *gorgonia.Node { return op.Duel(e.param("v", 4), e.param("a", 4, 6), nil) }},
	{"masked duel", func(e *env) *gorgonia.Node {
		return op.Duel(e.param("v", 4), e.param("a", 4, 6), e.input("mask", func(i int) float64 {
			if i/6 == 2 { // a row without any legal action
				return 0
			}
			return mask(i)
		}, 4, 6))
	}},
	{"ppo", func(e *env) *gorgonia.Node { return ppo(e, 0) }},
	{"ppo with value clipping", func(e *env) *gorgonia.Node { return ppo(e, 0.5) }},
	{"ppo through a policy", func(e *env) *gorgonia.Node {
		m := e.input("mask", mask, 12, 6)
		lp := op.MaskedLogSoftmax(op.Dense(e.param("x", 12, 5), e.param("w", 5, 6), e.param("b", 6), op.Identity), m)
		in := ppoInputs(e, 0.2)
		in.LogP = op.Gather(lp, e.input("action", func(i int) float64 { return float64(2 * (i % 2)) }, 12))
		in.Entropy = op.Entropy(lp, m)
		in.OldLogP = e.input("old through", func(i int) float64 { return -1.5 + 0.5*cell(i) }, 12)
		loss, _ := op.PPOLoss(in)
		return loss
	}},
	{"td huber", func(e *env) *gorgonia.Node { return td(e, 0.7) }},
	{"td squared", func(e *env) *gorgonia.Node { return td(e, 0) }},
}

// ppoInputs has rows with ratios inside and outside the clip range, of both signs of advantage, and a row of weight 0.
func ppoInputs(e *env, vfClip float64) op.PPO {
	const n = 12
	return op.PPO{
		LogP: e.param("logp", n), Entropy: e.param("entropy", n), Value: e.param("value", n),
		OldLogP:   e.input("old", func(i int) float64 { return cell(i) }, n),
		Advantage: e.input("advantage", func(i int) float64 { return cell(i + 20) }, n),
		Return:    e.input("return", func(i int) float64 { return 2 * cell(i+40) }, n),
		OldValue:  e.input("old value", func(i int) float64 { return cell(i + 60) }, n),
		Weight:    e.input("weight", func(i int) float64 { return []float64{1, 1, 0, 1, 2}[i%5] }, n),
		Coef:      e.input("coef", func(i int) float64 { return []float64{0.2, vfClip, 0.5, 0.01, 9}[i] }, op.PPOCoefs),
	}
}

func ppo(e *env, vfClip float64) *gorgonia.Node {
	loss, _ := op.PPOLoss(ppoInputs(e, vfClip))
	return loss
}

func td(e *env, delta float64) *gorgonia.Node {
	loss, errs := op.TDLoss(e.param("q", 6, 3), e.input("action", func(i int) float64 { return float64(i % 3) }, 6),
		e.input("target", cell, 6), e.input("weight", func(i int) float64 { return []float64{1, 0, 0.5}[i%3] }, 6),
		e.input("coef", func(i int) float64 { return []float64{delta, 5}[i] }, op.TDCoefs))
	// The errors' own gradient counts as well.
	return gorgonia.Must(gorgonia.Add(loss, e.total(errs)))
}

func TestGradientsEqualCentralDifferences(t *testing.T) {
	for _, c := range slices.Concat(gradCases, liveCases) {
		t.Run(c.name, func(t *testing.T) {
			e := &env{fill: map[string]func(int) float64{}, seed: c.name, views: make([]nets.View, 0, 20)}
			p, err := tape.Build(tensor.Float64, func(b *tape.Builder) (*gorgonia.Node, []*gorgonia.Node) {
				e.b = b
				return e.total(c.build(e)), nil
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
			run := func() float64 {
				if err := p.Run(); err != nil {
					t.Fatal(err)
				}
				return p.Loss()
			}
			some := false
			for _, v := range e.views {
				run()
				got := append([]float64(nil), p.GradF64(v.Name)...)
				x := p.ParamF64(v.Name)
				want := make([]float64, len(x))
				for i, old := range x {
					const h = 1e-5
					x[i] = old + h
					up := run()
					x[i] = old - h
					want[i] = (up - run()) / (2 * h)
					x[i] = old
				}
				top := 0.0
				for _, w := range want {
					top = max(top, math.Abs(w))
				}
				some = some || top > 0
				for i := range want {
					if !(math.Abs(got[i]-want[i]) <= 1e-6*max(top, 1e-3)) {
						t.Errorf("d/d%s[%d] = %.12g, central difference %.12g", v.Name, i, got[i], want[i])
					}
				}
			}
			if !some {
				t.Error("no parameter matters: the case tests nothing")
			}
		})
	}
}

// conv2D is op.ConvColumns over images x [N, H, W, C].
func conv2D(x, w, b *gorgonia.Node, geom op.Geometry, act op.Act) *gorgonia.Node {
	s := x.Shape()
	return op.ConvColumns(op.Reshape(x, s[0], s[1]*s[2]*s[3]), w, b, geom.Conv(s[1], s[2], s[3]), 0, act)
}
