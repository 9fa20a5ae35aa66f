package optim

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"clustergym/nets"
)

func params(name string, x ...float32) *nets.Params {
	p := nets.NewParams([]nets.View{{Name: name, Shape: []int{len(x)}}})
	copy(p.Data, x)
	return p
}

// The gradients are 1, -2, 0.5 at a rate of 0.1; worked by hand with beta1 0.9, beta2 0.999:
//
//	m 0.1, -0.11, -0.049;  v 0.001, 0.004999, 0.005244001
//	corrected m 0.1/0.1, -0.11/0.19, -0.049/0.271;  v 0.001/0.001, 0.004999/0.001999, 0.005244001/0.002997001
func TestAdamThreeSteps(t *testing.T) {
	p := params("w", 1)
	a := NewAdam(p, AdamConfig{LR: 0.1, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8})
	want := 1.0
	for i, c := range []struct{ g, m, v float64 }{
		{1, 1, 1},
		{-2, -0.11 / 0.19, 0.004999 / 0.001999},
		{0.5, -0.049 / 0.271, 0.005244001 / 0.002997001},
	} {
		a.Step(params("w", float32(c.g)), 0.1)
		want -= 0.1 * c.m / (math.Sqrt(c.v) + 1e-8)
		if got := float64(p.Data[0]); math.Abs(got-want) > 2e-7 {
			t.Errorf("after step %d: %.8f, want %.8f", i+1, got, want)
		}
	}
	if math.Abs(want-0.9502794) > 1e-6 {
		t.Errorf("hand-worked end %.7f, want 0.9502794", want)
	}
}

func TestSavedAdamContinuesBitForBit(t *testing.T) {
	cfg := DefaultAdamConfig()
	grad := func(i int) *nets.Params { return params("w", float32(i%3)-1, float32(math.Sin(float64(i)))) }
	p := params("w", 1, 2)
	a := NewAdam(p, cfg)
	for i := 0; i < 5; i++ {
		a.Step(grad(i), 1e-2)
	}
	var saved bytes.Buffer
	n, err := a.WriteTo(&saved)
	if err != nil || n != int64(saved.Len()) {
		t.Fatalf("WriteTo: %d, %v", n, err)
	}
	q := p.Clone()
	b := NewAdam(q, cfg)
	b.Step(grad(9), 1) // state that must be replaced
	if err := q.CopyFrom(p); err != nil {
		t.Fatal(err)
	}
	bytesOf := bytes.Clone(saved.Bytes())
	if _, err := b.ReadFrom(&saved); err != nil {
		t.Fatal(err)
	}
	if b.step != 5 {
		t.Errorf("%d steps, want 5", b.step)
	}
	for i := 5; i < 9; i++ {
		a.Step(grad(i), 1e-2)
		b.Step(grad(i), 1e-2)
	}
	for i := range p.Data {
		if p.Data[i] != q.Data[i] {
			t.Errorf("parameter %d is %v, resumed %v", i, p.Data[i], q.Data[i])
		}
	}
	other := NewAdam(params("w", 1, 2, 3), cfg)
	if _, err := other.ReadFrom(bytes.NewReader(bytesOf)); !errors.Is(err, nets.ErrShape) ||
		!strings.Contains(err.Error(), "m/w") {
		t.Errorf("other shape: %v", err)
	}
	var bare bytes.Buffer
	if _, err := nets.WriteTensors(&bare, nil, views(a.m, a.v)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.ReadFrom(&bare); !errors.Is(err, nets.ErrFormat) || b.step != 9 {
		t.Errorf("without a step count: %v, %d steps", err, b.step)
	}
	a.Reset()
	if a.step != 0 || GlobalNorm(a.m) != 0 || GlobalNorm(a.v) != 0 {
		t.Error("Reset left something")
	}
}

func TestClippingIsByTheNorm(t *testing.T) {
	g := params("g", 3, 0, -4, 12) // norm 13
	for _, c := range []struct{ first, max, norm, scale float64 }{
		{3, 13.5, 13, 1}, {3, 0, 13, 1}, {3, -1, 13, 1}, {3, 6.5, 13, 0.5},
		{math.Inf(1), 1, math.Inf(1), 1}, {math.NaN(), 1, math.NaN(), 1},
	} {
		g.Data[0] = float32(c.first)
		norm, scale := ClipScale(g, c.max)
		if norm != c.norm && !(math.IsNaN(norm) && math.IsNaN(c.norm)) || scale != c.scale {
			t.Errorf("%v at most %v: norm %v and factor %v, want %v and %v", g.Data, c.max, norm, scale, c.norm, c.scale)
		}
	}
}

func TestAScaledStepIsAStepByTheScaledGradient(t *testing.T) {
	for _, norm := range []float64{0.3, 30, 1e9, 1e18} { // the last two need scales that float32 could not square
		one, two := params("w", 1, -2, 3), params("w", 1, -2, 3)
		a, b := NewAdam(one, DefaultAdamConfig()), NewAdam(two, DefaultAdamConfig())
		for k := range 20 {
			g, h := params("w", 1, 2, float32(k)), params("w", 1, 2, float32(k))
			size := float32(norm / GlobalNorm(g))
			for i := range g.Data {
				g.Data[i] *= size
				h.Data[i] *= size
			}
			_, scale := ClipScale(h, 0.5)
			for i := range g.Data {
				g.Data[i] *= float32(scale)
			}
			a.Step(g, 1e-2)
			b.StepScaled(h, 1e-2, scale)
		}
		for i, w := range one.Data {
			if d := math.Abs(float64(two.Data[i] - w)); !(d < 1e-5) {
				t.Errorf("norm %v: parameter %d is %v, want %v", norm, i, two.Data[i], w)
			}
		}
	}
}

func TestStepDoesNotAllocate(t *testing.T) {
	p := params("w", make([]float32, 100)...)
	a := NewAdam(p, DefaultAdamConfig())
	g := p.Like()
	if n := testing.AllocsPerRun(20, func() { _, by := ClipScale(g, 1); a.StepScaled(g, 1e-3, by) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
