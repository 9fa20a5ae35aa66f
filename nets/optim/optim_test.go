package optim

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"clustergym/internal/fault"
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
	if b.Steps() != 5 {
		t.Errorf("%d steps, want 5", b.Steps())
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
	if _, err := other.ReadFrom(bytes.NewReader(bytesOf)); !errors.Is(err, nets.ErrShape) || !strings.Contains(err.Error(), "m/w") {
		t.Errorf("other shape: %v", err)
	}
	var bare bytes.Buffer
	if _, err := nets.WriteTensors(&bare, nil, views(a.m, a.v)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.ReadFrom(&bare); !errors.Is(err, nets.ErrFormat) || b.Steps() != 9 {
		t.Errorf("without a step count: %v, %d steps", err, b.Steps())
	}
	a.Reset()
	if a.Steps() != 0 || GlobalNorm(a.m) != 0 || GlobalNorm(a.v) != 0 {
		t.Error("Reset left something")
	}
}

func TestClippingKeepsTheDirection(t *testing.T) {
	g := params("g", 3, 0, -4, 12) // norm 13
	if n := ClipGlobalNorm(g, 13.5); n != 13 || g.Data[3] != 12 {
		t.Errorf("norm %v, %v; want 13 and no change", n, g.Data)
	}
	if n := ClipGlobalNorm(g, 0); n != 13 || g.Data[3] != 12 {
		t.Errorf("norm %v, %v; want 13 and no clipping at 0", n, g.Data)
	}
	if n := ClipGlobalNorm(g, 6.5); n != 13 || g.Data[0] != 1.5 || g.Data[2] != -2 || g.Data[3] != 6 {
		t.Errorf("norm %v, %v; want 13 and half of it", n, g.Data)
	}
	g.Data[1] = float32(math.Inf(1))
	if n := ClipGlobalNorm(g, 1); !math.IsInf(n, 1) || g.Data[3] != 6 {
		t.Errorf("norm %v, %v; want infinity and no change", n, g.Data)
	}
	g.Data[1] = float32(math.NaN())
	if n := ClipGlobalNorm(g, 1); !math.IsNaN(n) || g.Data[3] != 6 {
		t.Errorf("norm %v, %v; want NaN and no change", n, g.Data)
	}
	if n := GlobalNorm(params("g", 3e30, 4e30)); math.Abs(n/5e30-1) > 1e-6 {
		t.Errorf("norm of large numbers %v, want 5e30", n)
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
			want := ClipGlobalNorm(g, 0.5)
			a.Step(g, 1e-2)
			got, scale := ClipScale(h, 0.5)
			if got != want || scale > 1 {
				t.Fatalf("norm %v and scale %v, want norm %v", got, scale, want)
			}
			b.StepScaled(h, 1e-2, scale)
		}
		for i, w := range one.Data {
			if d := math.Abs(float64(two.Data[i] - w)); !(d < 1e-5) {
				t.Errorf("norm %v: parameter %d is %v, want %v", norm, i, two.Data[i], w)
			}
		}
	}
}

func TestConfigReportsAllFaults(t *testing.T) {
	if err := DefaultAdamConfig().Validate(); err != nil {
		t.Error(err)
	}
	err := AdamConfig{LR: math.NaN(), Beta1: 1, Beta2: -1, Eps: 0}.Validate()
	if n := len(fault.All(err)); n != 4 {
		t.Errorf("%d faults, want 4: %v", n, err)
	}
}

func TestStepDoesNotAllocate(t *testing.T) {
	p := params("w", make([]float32, 100)...)
	a := NewAdam(p, DefaultAdamConfig())
	g := p.Like()
	if n := testing.AllocsPerRun(20, func() { ClipGlobalNorm(g, 1); a.Step(g, 1e-3) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
