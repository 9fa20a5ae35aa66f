package ppo

import (
	"context"
	"math"
	"testing"

	"clustergym/env"
	"clustergym/internal/rng"
	"clustergym/internal/testseed"
	"clustergym/nets/model"
)

// watched is an agent that has watched one full rollout of random play of 2 rows, labelled at random. Some returns are
// unknown, and one row does nothing at every third step.
func watched(t *testing.T, cfg Config, seed uint64) (*Agent, env.Spec) {
	t.Helper()
	s := env.Spec{ID: "Test", Obs: []env.Field{{Name: "o", Shape: []int{3}}}, Action: env.ActionSpec{Sizes: []int{3, 2}},
		NoOp: -1}
	a, err := New(cfg, s, 2, 1, seed)
	if err != nil {
		t.Fatal(err)
	}
	r := rng.Stream(seed, "watched")
	b, next, label := env.NewBatch(s, 2), env.NewBatch(s, 2), env.NewActions(s, 2)
	for step := range cfg.Steps {
		ret := []float32{float32(3 * r.NormFloat64()), float32(r.NormFloat64())}
		if step%4 == 1 {
			ret[0] = float32(math.NaN())
		}
		a.Foresee(ret)
		for i := range 2 {
			next.Kind[i] = env.Mid
			for k := range 3 {
				b.Obs[3*i+k] = float32(r.NormFloat64())
			}
			for k := range 5 {
				b.Mask[5*i+k] = k == 0 || k == 3 || r.IntN(2) == 0
			}
			label.Disc[2*i] = int32(env.Uniform(b.Mask[5*i:5*i+3], r))
			label.Disc[2*i+1] = int32(env.Uniform(b.Mask[5*i+3:5*i+5], r))
		}
		if step%3 == 2 {
			next.Kind[1] = env.First
		}
		if err := a.Watch(b, label, label, ret, next); err != nil {
			t.Fatal(err)
		}
	}
	return a, s
}

// lesson returns the loss of imitation over the steps of a's rollout, by its definition, in float64 from the network's
// outputs.
func lesson(a *Agent, index []int) float64 {
	d, unit, sum := a.act.dist, a.taught.Unit, 0.0
	fwd := a.net.Forward(1)
	for _, at := range index {
		head, value := fwd.Run(a.roll.Obs[at*a.act.obsLen:], 1)
		first := 0
		for j, size := range d.Sizes {
			total := 0.0
			for k, x := range head[first : first+size] {
				if a.roll.Mask[at*d.Logits()+first+k] {
					total += math.Exp(float64(x))
				}
			}
			sum -= float64(head[first+int(a.roll.Action.Disc[at*len(d.Sizes)+j])]) - math.Log(total)
			first += size
		}
		if a.roll.Final[at] != unknown {
			e := float64(value[0]) - float64(a.roll.Value[at])/unit
			sum += a.cfg.VFCoef * e * e / 2
		}
	}
	return sum / float64(len(index))
}

func TestTheGradientOfImitationIsThatOfItsLoss(t *testing.T) {
	seed := testseed.Or(61)
	t.Logf("seed %d", seed)
	for _, way := range []Loss{Fused, Composed} {
		cfg := small()
		cfg.Loss, cfg.Steps, cfg.Minibatches, cfg.Shards, cfg.EntCoef, cfg.ClipValue = way, 12, 1, 3, 0.3, 0.1
		cfg.Network.Hidden = []int{5}
		a, _ := watched(t, cfg, seed)
		a.studying()
		a.recount(a.taught.size())
		for k, live := range a.roll.Live {
			if live {
				a.index = append(a.index, k)
			}
		}
		if len(a.index) != 20 {
			t.Fatalf("%d steps, want 24 without the 4 that were none", len(a.index))
		}
		grad, sum, err := a.studyPiece(context.Background(), a.index)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := (sum.cross+cfg.VFCoef*sum.value)/20, lesson(a, a.index); math.Abs(got-want) > 1e-5*(1+want) {
			t.Errorf("%s: the loss is %v, want %v", way, got, want)
		}
		for i, g := range grad.Data {
			p, step := &a.net.Params().Data[i], float32(1e-2)
			was := *p
			*p = was + step
			up := lesson(a, a.index)
			*p = was - step
			down := lesson(a, a.index)
			*p = was
			if want := (up - down) / float64(2*step); math.Abs(float64(g)-want) > 2e-3*(1+math.Abs(want)) {
				t.Errorf("%s: the derivative by parameter %d is %v, by differences %v", way, i, g, want)
			}
		}
	}
}

// A critic that counts in other units says the same: its value times the unit stays.
func TestRecountingChangesNoValue(t *testing.T) {
	for _, separate := range []bool{true, false} {
		cfg := small()
		cfg.Network.Separate, cfg.RewardScale, cfg.Steps = separate, true, 8
		a, _ := watched(t, cfg, 3)
		if stats, err := a.Study(t.Context(), false); err != nil || stats[1].Name != "imitation/agreement" {
			t.Fatal(stats, err)
		}
		obs, unit := []float32{0.5, -1, 2}, a.taught.Unit
		if unit == 0 || unit == 1 {
			t.Fatalf("the critic counts in units of %v", unit)
		}
		was := valueOf(t, a, obs...) * unit
		a.last[0] = 2
		a.graduate(7)
		if now := valueOf(t, a, obs...) * 7; math.Abs(now-was) > 1e-4*math.Abs(was) ||
			math.Abs(float64(a.last[0])*7-2*unit) > 1e-5 {
			t.Errorf("the value %v is now %v, and 2 units of %v are %v of 7", was, now, unit, a.last[0])
		}
		if a.taught.Unit != 0 {
			t.Error("the critic still counts in the teacher's units")
		}
	}
}

// Study learns from a rollout that is not full only at the end, and leaves it empty.
func TestStudyLearnsFromTheRestAtTheEnd(t *testing.T) {
	cfg := small()
	cfg.Steps, cfg.Network = 6, model.DefaultConfig()
	a, s := watched(t, cfg, 4)
	if _, err := a.Study(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	b, next := env.NewBatch(s, 2), env.NewBatch(s, 2)
	for i := range b.Mask {
		b.Mask[i] = true
	}
	for i := range next.Kind {
		next.Kind[i] = env.Mid
	}
	before := a.updates
	if err := a.Watch(b, env.NewActions(s, 2), nil, make([]float32, 2), next); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Study(t.Context(), false); err == nil || a.updates != before {
		t.Errorf("learnt from one of 6 steps: %v", err)
	}
	if _, err := a.Study(t.Context(), true); err != nil || a.updates == before || a.roll.Len() != 0 {
		t.Errorf("at the end: %v, %d updates, %d steps left", err, a.updates-before, a.roll.Len())
	}
	if _, err := a.Study(t.Context(), true); err == nil {
		t.Error("learnt from nothing")
	}
}
