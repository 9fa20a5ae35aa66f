package ppo

import (
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"clustergym/env"
)

// recorded is an update of Stable-Baselines3, as testdata/record.py writes it down. Columns are [steps, rows].
type recorded struct {
	Rows, Steps           int
	Shown, Final          []float32
	Paid                  []float64
	Truncated, Terminated [2]int // step and row
	Action                []float64
	LogP, Value           []float32
	Advantage             []float32
	Before, After         map[string][]float32
}

// batch returns what the environments show at step t, with the rewards and ends of the step before it.
func (r *recorded) batch(s env.Spec, t int) *env.Batch {
	b, o := env.NewBatch(s, r.Rows), s.ObsLen()
	copy(b.Obs, r.Shown[t*r.Rows*o:])
	for i := range b.Mask {
		b.Mask[i] = true
	}
	for i := range b.Kind {
		if t == 0 {
			b.Kind[i] = env.First
			continue
		}
		b.Kind[i], b.Reward[i] = env.Mid, r.Paid[(t-1)*r.Rows+i]
		for k, end := range [][2]int{r.Truncated, r.Terminated} {
			if end == [2]int{t - 1, i} {
				b.Kind[i] = []env.Kind{env.Truncated, env.Terminated}[k]
				b.FinalRows = append(b.FinalRows, i)
				b.FinalObs = append(b.FinalObs, r.Final[k*o:(k+1)*o]...)
				b.FinalMask = append(b.FinalMask, true, true, true)
			}
		}
	}
	return b
}

// With SB3's weights, observations, actions and rewards, values, probabilities and advantages are SB3's, and so are the
// weights after six steps of the optimiser that clip ratios and gradients. Its vf_coef of 0.5 is 1 here.
func TestUpdateIsThatOfStableBaselines3(t *testing.T) {
	data, err := os.ReadFile("testdata/update.json")
	if err != nil {
		t.Fatal(err)
	}
	var r recorded
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	spec := env.Spec{
		ID: "Script-v1", Obs: []env.Field{{Name: "x", Shape: []int{len(r.Shown) / r.Rows / (r.Steps + 1)}}},
		Action: env.ActionSpec{Sizes: []int{3}}, NoOp: -1,
	}
	cfg := DefaultConfig()
	cfg.Steps, cfg.Batch, cfg.Epochs, cfg.LR, cfg.AnnealLR = r.Steps, r.Rows*r.Steps, 6, 0.02, false
	cfg.Gamma, cfg.Lambda, cfg.Clip, cfg.EntCoef, cfg.VFCoef = 0.9, 0.8, 0.1, 0.01, 1
	cfg.Network.Hidden = []int{5, 5}
	a, err := New(cfg, spec, r.Rows, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	same := func(what string, got, want []float32, within float64) {
		t.Helper()
		if len(got) != len(want) {
			t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
		}
		for i := range want {
			if math.Abs(float64(got[i]-want[i])) > within {
				t.Errorf("%s[%d] is %v, want %v", what, i, got[i], want[i])
			}
		}
	}
	for _, v := range a.net.Params().Views {
		if len(r.Before[v.Name]) != len(v.Data) {
			t.Fatalf("%s has %d numbers, want %d", v.Name, len(r.Before[v.Name]), len(v.Data))
		}
		copy(v.Data, r.Before[v.Name])
	}
	src := make([]*rand.Rand, r.Rows)
	for i := range src {
		src[i] = rand.New(rand.NewPCG(1, uint64(i)))
	}
	act := env.NewActions(spec, r.Rows)
	for step := range r.Steps {
		b := r.batch(spec, step)
		if err := a.Act(context.Background(), b, act, src); err != nil {
			t.Fatal(err)
		}
		for i := range act.Disc {
			act.Disc[i] = int32(r.Action[step*r.Rows+i]) // SB3's own
		}
		if err := a.Observe(b, act, r.batch(spec, step+1)); err != nil {
			t.Fatal(err)
		}
	}
	same("log-probability", a.roll.LogProb, r.LogP, 1e-6)
	same("value", a.roll.Value, r.Value, 1e-6)
	stats, err := a.Learn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	same("advantage", a.roll.Advantage, r.Advantage, 1e-6)
	for _, v := range a.net.Params().Views {
		same(v.Name, v.Data, r.After[v.Name], 2e-5)
	}
	for _, s := range stats {
		switch { // else the update says nothing of them
		case s.Name == "clip_fraction" && s.Value == 0:
			t.Error("no ratio was clipped")
		case s.Name == "grad_norm" && s.Value < cfg.MaxGradNorm:
			t.Errorf("the gradient's norm is %v, which is not clipped", s.Value)
		}
	}
}
