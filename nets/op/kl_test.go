package op_test

import (
	"fmt"
	"math"
	"testing"

	"gorgonia.org/gorgonia"

	"clustergym/nets/op"
	"clustergym/nets/tape"
)

// klProgram has head and deviations as parameters, and three rows of which the middle one has no weight.
func klProgram(t *testing.T, d op.Distribution) *tape.Program {
	t.Helper()
	const n = 3
	p := program(t, func(e *env) (*gorgonia.Node, []*gorgonia.Node) {
		x := op.KL{
			Dist: d, Head: e.param("head", n, d.Head()), OldHead: e.input("old", cell, n, d.Head()),
			Weight:  e.input("weight", func(i int) float64 { return float64(1 - i%2) }, n),
			Divisor: e.input("divisor", func(int) float64 { return 2 }, 1),
		}
		if len(d.Sizes) > 0 {
			x.Mask = e.input("mask", func(i int) float64 {
				if len(d.Sizes) == 1 && i%4 == 1 {
					return 0
				}
				return 1
			}, n, d.Logits())
		}
		if d.Dims > 0 {
			x.LogStd, x.OldLogStd = e.param("log_std", d.Dims), e.input("old_std", cell, d.Dims)
		}
		return op.KLLoss(x), nil
	})
	return p
}

func TestKLIsTheDivergenceAndItsGradient(t *testing.T) {
	for _, d := range distributions {
		t.Run(fmt.Sprint(d), func(t *testing.T) {
			p := klProgram(t, d)
			run := func() float64 {
				t.Helper()
				if err := p.Run(); err != nil {
					t.Fatal(err)
				}
				return p.Loss()
			}
			// Σ q·log(q/p) of the two rows that count, written out; their mean, for the divisor is 2.
			want := 0.0
			for _, i := range []int{0, 2} {
				at := 0
				for _, size := range d.Sizes {
					var sums [2]float64
					rows := [2][]float64{p.ParamF64("head")[i*d.Head()+at:][:size], p.InputF64("old")[i*d.Head()+at:][:size]}
					legal := p.InputF64("mask")[i*d.Logits()+at:][:size]
					for k, row := range rows {
						for j, z := range row {
							sums[k] += legal[j] * math.Exp(z)
						}
					}
					for j := range size {
						if legal[j] != 0 {
							a, b := math.Exp(rows[0][j])/sums[0], math.Exp(rows[1][j])/sums[1]
							want += b * math.Log(b/a) / 2
						}
					}
					at += size
				}
				for c := range d.Dims {
					s, o := math.Exp(p.ParamF64("log_std")[c]), math.Exp(p.InputF64("old_std")[c])
					move := p.ParamF64("head")[i*d.Head()+at+c] - p.InputF64("old")[i*d.Head()+at+c]
					want += (math.Log(s/o) + (o*o+move*move)/(2*s*s) - 0.5) / 2
				}
			}
			near(t, "KL", run(), want, 1e-12)
			names := []string{"head"}
			if d.Dims > 0 {
				names = append(names, "log_std")
			}
			for _, name := range names {
				run()
				got, v := append([]float64(nil), p.GradF64(name)...), p.ParamF64(name)
				for k := range v {
					const h = 1e-5
					old := v[k]
					v[k] = old + h
					up := run()
					v[k] = old - h
					down := run()
					v[k] = old
					near(t, fmt.Sprintf("d/d%s[%d]", name, k), got[k], (up-down)/(2*h), 1e-8)
				}
			}
			// At the old policy it is 0, and so is its gradient.
			copy(p.ParamF64("head"), p.InputF64("old"))
			if d.Dims > 0 {
				copy(p.ParamF64("log_std"), p.InputF64("old_std"))
			}
			near(t, "KL with itself", run(), 0, 1e-14)
			for _, name := range names {
				for _, g := range p.GradF64(name) {
					near(t, "gradient there", g, 0, 1e-14)
				}
			}
		})
	}
}

func TestKLIgnoresRowsWithoutWeight(t *testing.T) {
	d := op.Distribution{Sizes: []int{4}, Dims: 2}
	p := klProgram(t, d)
	if err := p.Run(); err != nil {
		t.Fatal(err)
	}
	want := p.Loss()
	for k := range d.Head() {
		p.ParamF64("head")[d.Head()+k] = math.NaN()
	}
	if err := p.Run(); err != nil {
		t.Fatal(err)
	}
	near(t, "KL", p.Loss(), want, 0)
}
