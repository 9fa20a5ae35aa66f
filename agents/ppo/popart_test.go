package ppo

import (
	"math"
	"testing"

	"clustergym/env"
	"clustergym/env/vec"
	"clustergym/internal/rng"
	"clustergym/internal/testseed"
)

// Targets 2 and 6: mean 4, deviation 2. The head 3x + 1 said 7 at x = 2, so it becomes 1.5x − 1.5, which is 1.5 there,
// and 2·1.5 + 4 is 7 again. The second update, targets 8 and 8, has half the weight: mean 6, mean square (20 + 64)/2,
// deviation √6.
func TestPopartByHand(t *testing.T) {
	p, w, b := newPopart(), []float32{3}, []float32{1}
	p.update(2, 8, 40, [2][]float32{w, b})
	if p.Mu != 4 || p.Sigma != 2 || w[0] != 1.5 || b[0] != -1.5 {
		t.Fatalf("%+v, head %v·x + %v; want mean 4, deviation 2, 1.5·x − 1.5", p, w[0], b[0])
	}
	n := []float32{1.5*2 - 1.5}
	p.value(n)
	if n[0] != 7 || p.output(7) != 1.5 {
		t.Errorf("the value is %v, want 7, its output %v, want 1.5", n[0], p.output(7))
	}
	p.update(2, 16, 128, [2][]float32{w, b})
	if p.Mu != 6 || math.Abs(p.Sigma-math.Sqrt(6)) > 1e-12 {
		t.Errorf("%+v, want mean 6, deviation √6", p)
	}
	if v := p.Sigma*float64(w[0]*2+b[0]) + p.Mu; math.Abs(v-7) > 1e-5 {
		t.Errorf("the value at 2 is now %v", v)
	}
	before := *p
	p.update(0, 0, 0, [2][]float32{w, b})
	if *p != before {
		t.Error("no targets changed the scale")
	}
	p.update(1, 5, 25, [2][]float32{w, b})
	for range 2000 {
		p.update(1, 5, 25, [2][]float32{w, b})
	}
	if p.Sigma != leastSigma {
		t.Errorf("equal targets have the deviation %v", p.Sigma)
	}
}

// Returns that are a thousand times as large give the same steps: the critic sees them normalised.
func TestPopartCancelsTheUnit(t *testing.T) {
	seed := testseed.Or(91)
	t.Logf("seed %d", seed)
	r := rng.Stream(seed, "unit")
	play := make([][]groupStep, 8)
	for i := range play {
		play[i] = []groupStep{{r.NormFloat64(), 1, env.Terminated}, {r.NormFloat64(), 1, env.Terminated}}
	}
	learn := func(unit float64) *Agent {
		cfg := small()
		cfg.ValueNorm, cfg.Minibatches, cfg.Gamma = PopArt, 2, 1
		scaled := make([][]groupStep, len(play))
		for i, row := range play {
			for _, x := range row {
				x.reward *= unit
				scaled[i] = append(scaled[i], x)
			}
		}
		a := fed(t, cfg, 2, scaled)
		for _, x := range a.net.ValueHead() { // a critic that says 0 at first, in either unit
			clear(x)
		}
		clear(a.roll.Value)
		clear(a.last)
		before := a.popart.Count
		if _, err := a.Learn(t.Context()); err != nil || a.popart.Count != before+1 {
			t.Fatal(err)
		}
		return a
	}
	small, large := learn(1), learn(1000)
	obs := []float32{0.5}
	a, b := valueOf(t, small, obs...), valueOf(t, large, obs...) // outputs of the network
	if math.IsNaN(a) || math.Abs(a-b) > 1e-3*(1+math.Abs(a)) {
		t.Errorf("after one update the normalised values are %v and %v", a, b)
	}
	if math.Abs(large.popart.Sigma/small.popart.Sigma-1000) > 0.01 {
		t.Errorf("deviations %v and %v", small.popart.Sigma, large.popart.Sigma)
	}
}

// A probe whose reward is 1: the critic, normalised, says 1.
func TestPopartLearnsValues(t *testing.T) {
	cfg := small()
	cfg.Gamma, cfg.ValueNorm = 0.9, PopArt
	l := newLoop(t, "ProbeDiscount-v1", 8, 1, vec.SameStep, cfg, 1, 8000).Train()
	for obs, want := range map[float32]float64{0: 0.9, 1: 1} {
		v := []float32{float32(valueOf(t, l.Agent, obs))}
		l.Agent.popart.value(v)
		if math.Abs(float64(v[0])-want) > 0.1 {
			t.Errorf("V(%v) is %v, want %v", obs, v[0], want)
		}
	}
}
