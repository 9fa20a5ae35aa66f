package op_test

import (
	"fmt"
	"math"
	"testing"

	"gorgonia.org/gorgonia"

	"clustergym/nets/op"
	"clustergym/nets/tape"
)

// surrogateProgram has head, deviations and values as parameters and everything else as plain inputs.
func surrogateProgram(t *testing.T, d op.Distribution, n int) *tape.Program {
	t.Helper()
	return lossProgram(t, op.SurrogateLoss, d, n)
}

func lossProgram(t *testing.T, way func(op.Surrogate) (loss, stats *gorgonia.Node), d op.Distribution,
	n int) *tape.Program {
	t.Helper()
	p := program(t, func(e *env) (*gorgonia.Node, []*gorgonia.Node) {
		in := func(name string) *gorgonia.Node { return e.input(name, func(int) float64 { return 0 }, n) }
		x := op.Surrogate{Dist: d, Head: e.param("head", n, d.Head()), Value: e.param("value", n),
			OldLogP: in("old"), Advantage: in("adv"), Return: in("ret"), OldValue: in("oldv"), Weight: in("weight"),
			Coef: e.input("coef", func(i int) float64 { return []float64{0.2, 0.3, 0.5, 0.1, float64(n)}[i] }, op.PPOCoefs)}
		if len(d.Sizes) > 0 {
			x.Mask = e.input("mask", func(int) float64 { return 1 }, n, d.Logits())
			x.Action = e.input("action", func(int) float64 { return 0 }, n, len(d.Sizes))
		}
		if d.Dims > 0 {
			x.LogStd = e.param("log_std", d.Dims)
			x.Number = e.input("number", cell, n, d.Dims)
		}
		loss, stats := way(x)
		return loss, []*gorgonia.Node{stats}
	})
	for i := range n {
		p.InputF64("weight")[i] = 1
		p.InputF64("adv")[i] = cell(i)
		p.InputF64("ret")[i] = 2 * cell(i+3)
		p.InputF64("oldv")[i] = p.ParamF64("value")[i] + 0.4*cell(i+5)
	}
	return p
}

var distributions = []op.Distribution{
	{Sizes: []int{4}}, {Sizes: []int{3, 1, 5}}, {Dims: 3}, {Sizes: []int{2, 3}, Dims: 2},
}

// logProbs is the policy's log-probability of every row's action, written out, and its entropy.
func logProbs(p *tape.Program, d op.Distribution, n int) (logp, entropy []float64) {
	logp, entropy = make([]float64, n), make([]float64, n)
	for i := range n {
		at := 0
		for k, size := range d.Sizes {
			total := 0.0
			weight := make([]float64, size)
			for j := range size {
				if p.InputF64("mask")[i*d.Logits()+at+j] != 0 {
					weight[j] = math.Exp(p.ParamF64("head")[i*d.Head()+at+j])
				}
				total += weight[j]
			}
			logp[i] += math.Log(weight[int(p.InputF64("action")[i*len(d.Sizes)+k])] / total)
			for _, w := range weight {
				if w > 0 {
					entropy[i] -= w / total * math.Log(w/total)
				}
			}
			at += size
		}
		for c := range d.Dims {
			s := math.Exp(p.ParamF64("log_std")[c])
			z := (p.InputF64("number")[i*d.Dims+c] - p.ParamF64("head")[i*d.Head()+at+c]) / s
			logp[i] += math.Log(math.Exp(-z*z/2) / (s * math.Sqrt(2*math.Pi)))
			entropy[i] += math.Log(s * math.Sqrt(2*math.Pi*math.E))
		}
	}
	return logp, entropy
}

func TestSurrogateIsThePPOLossOfTheDistribution(t *testing.T) {
	const n = 7
	for _, d := range distributions {
		t.Run(fmt.Sprint(d), func(t *testing.T) {
			p := surrogateProgram(t, d, n)
			if f := len(d.Sizes); f > 0 {
				for i, m := range p.InputF64("mask") {
					if d.Sizes[0] > 1 && i%d.Logits() == 1 && i%2 == 0 {
						p.InputF64("mask")[i] = 0 * m
					}
				}
				for i := range p.InputF64("action") {
					if size := d.Sizes[i%f]; size > 2 {
						p.InputF64("action")[i] = float64(2 + i%(size-2)) // the masked one is never taken
					}
				}
			}
			logp, entropy := logProbs(p, d, n)
			q, x := ppoProgram(t, n)
			for i := range n {
				p.InputF64("old")[i] = logp[i] - 0.4*cell(2*i) // some ratios are out of range
			}
			copy(x["logp"], logp)
			copy(x["entropy"], entropy)
			copy(x["value"], p.ParamF64("value"))
			for _, name := range []string{"old", "adv", "ret", "oldv", "weight", "coef"} {
				copy(x[name], p.InputF64(name))
			}
			if err := q.Run(); err != nil {
				t.Fatal(err)
			}
			run := func() float64 {
				t.Helper()
				if err := p.Run(); err != nil {
					t.Fatal(err)
				}
				return p.Loss()
			}
			near(t, "loss", run(), q.Loss(), 1e-12)
			for k, s := range p.OutputF64(0) {
				near(t, fmt.Sprintf("statistic %d", k), s, q.OutputF64(0)[k], 1e-12)
			}
			if s := p.OutputF64(0)[op.PPOClipFraction]; s == 0 || s == 1 {
				t.Errorf("%v of the ratios are out of range: the clip is not seen", s)
			}
			// Every gradient against central differences.
			names := []string{"head", "value"}
			if d.Dims > 0 {
				names = append(names, "log_std")
			}
			for _, name := range names {
				got := append([]float64(nil), p.GradF64(name)...)
				v := p.ParamF64(name)
				for k := range v {
					const h = 1e-6
					old := v[k]
					v[k] = old + h
					up := run()
					v[k] = old - h
					down := run()
					v[k] = old
					near(t, fmt.Sprintf("d/d%s[%d]", name, k), got[k], (up-down)/(2*h), 1e-8)
				}
			}
		})
	}
}

// Loss, statistics and gradients of the fused and of the composed loss are the same, with and without value clipping,
// also where a row only fills up the batch.
func TestComposedLossIsTheSurrogate(t *testing.T) {
	const n = 9
	for _, d := range distributions {
		for _, clipValue := range []float64{0, 0.3} {
			t.Run(fmt.Sprint(d, clipValue), func(t *testing.T) {
				fused, composed := lossProgram(t, op.SurrogateLoss, d, n), lossProgram(t, op.ComposedLoss, d, n)
				for _, p := range []*tape.Program{fused, composed} {
					for i := range p.InputF64("action") {
						p.InputF64("action")[i] = float64(i / len(d.Sizes) % d.Sizes[i%len(d.Sizes)])
					}
					if len(d.Sizes) > 0 { // the second row's first factor
						p.InputF64("mask")[d.Logits()+1] = 0
						p.InputF64("action")[len(d.Sizes)] = 0
					}
					logp, _ := logProbs(p, d, n)
					for i := range n {
						p.InputF64("old")[i] = logp[i] - 0.4*cell(2*i)
					}
					p.InputF64("coef")[op.PPOVFClip] = clipValue
					p.InputF64("weight")[4], p.InputF64("weight")[6] = 0, 0.5
					for _, name := range []string{"old", "adv", "ret", "oldv"} {
						p.InputF64(name)[4] = math.NaN()
					}
					if err := p.Run(); err != nil {
						t.Fatal(err)
					}
				}
				near(t, "loss", composed.Loss(), fused.Loss(), 1e-12)
				for k, s := range fused.OutputF64(0) {
					near(t, fmt.Sprintf("statistic %d", k), composed.OutputF64(0)[k], s, 1e-12)
				}
				if s := fused.OutputF64(0)[op.PPOClipFraction]; s == 0 || s > 0.9 {
					t.Errorf("%v of the ratios are out of range: the clip is not seen", s)
				}
				names := []string{"head", "value"}
				if d.Dims > 0 {
					names = append(names, "log_std")
				}
				for _, name := range names {
					largest := 0.0
					for k, g := range fused.GradF64(name) {
						near(t, fmt.Sprintf("d/d%s[%d]", name, k), composed.GradF64(name)[k], g, 1e-12)
						largest = max(largest, math.Abs(g))
					}
					if largest < 1e-3 {
						t.Errorf("the gradient of %s is %v at most: nothing is compared", name, largest)
					}
				}
			})
		}
	}
}

// Rows that only fill up the batch may hold anything.
func TestSurrogateIgnoresRowsWithoutWeight(t *testing.T) {
	for _, d := range distributions {
		p := surrogateProgram(t, d, 3)
		p.InputF64("weight")[1] = 0
		if err := p.Run(); err != nil {
			t.Fatal(err)
		}
		loss, grad := p.Loss(), append([]float64(nil), p.GradF64("head")...)
		for k := range d.Head() {
			p.ParamF64("head")[d.Head()+k] = math.NaN()
		}
		for _, name := range []string{"old", "adv", "ret", "oldv"} {
			p.InputF64(name)[1] = math.NaN()
		}
		if len(d.Sizes) > 0 {
			p.InputF64("action")[len(d.Sizes)] = -1
		}
		if err := p.Run(); err != nil {
			t.Fatal(err)
		}
		near(t, "loss", p.Loss(), loss, 0)
		for k, g := range p.GradF64("head") {
			near(t, "gradient", g, grad[k], 0)
		}
	}
}

func TestEntropyOfUniformFactorsAndOfNormalNumbers(t *testing.T) {
	p := surrogateProgram(t, op.Distribution{Sizes: []int{3, 5}, Dims: 2}, 2)
	clear(p.ParamF64("head"))
	copy(p.ParamF64("log_std"), []float64{0, math.Log(2)})
	if err := p.Run(); err != nil {
		t.Fatal(err)
	}
	// ln 3 + ln 5, and ln(σ·√(2πe)) for σ = 1 and 2.
	near(t, "entropy", p.OutputF64(0)[op.PPOEntropy], math.Log(15)+math.Log(2*math.Pi*math.E)+math.Log(2), 1e-12)
}
