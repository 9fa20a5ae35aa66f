package client_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"clustergym/bridge/client"
	"clustergym/env"
	"clustergym/env/control"
	"clustergym/env/vec"
	"clustergym/internal/rng"
)

// bits returns a time step in a form in which NaN equals itself.
func bits(ts *env.TimeStep) string {
	return fmt.Sprintf("%v %x %d %x %v %x", ts.Kind, math.Float64bits(ts.Reward), ts.Elapsed, ts.Obs, ts.Mask,
		floatBits(ts.Info))
}

func floatBits(v []float64) []uint64 {
	out := make([]uint64, len(v))
	for i, x := range v {
		if out[i] = math.Float64bits(x); math.IsNaN(x) {
			out[i] = math.Float64bits(math.NaN()) // all NaNs are equal here
		}
	}
	return out
}

func batchBits(b *env.Batch) string {
	return fmt.Sprintf("%v %x %d %x %v %x | %v %x %v %x", b.Kind, floatBits(b.Reward), b.Elapsed, b.Obs, b.Mask,
		floatBits(b.Info),
		b.FinalRows, b.FinalObs, b.FinalMask, floatBits(b.FinalInfo))
}

// chooser draws legal actions. The k-th choice of row i depends only on i, k and the mask.
type chooser []uint64

func (c chooser) choose(s env.Spec, mask []bool, a *env.Actions) {
	m := s.MaskLen()
	d, w := len(s.Action.Sizes), len(s.Action.Low)
	for i := range a.N {
		at := 0
		for f, n := range s.Action.Sizes {
			for {
				c[i]++
				k := int(rng.At(uint64(i), c[i]) % uint64(n))
				if mask[i*m+at+k] {
					a.Disc[i*d+f] = int32(k)
					break
				}
			}
			at += n
		}
		for f := range w {
			c[i]++
			lo, hi := max(s.Action.Low[f], -2), min(s.Action.High[f], 2)
			a.Cont[i*w+f] = min(max(lo+(hi-lo)*float32(rng.Uniform(rng.At(uint64(i), c[i]))), lo), hi)
		}
	}
}

func sameSpec(a, b env.Spec) bool {
	if math.IsNaN(a.Solved) && math.IsNaN(b.Solved) {
		a.Solved, b.Solved = 0, 0
	}
	return reflect.DeepEqual(a, b)
}

// A remote environment equals the local one bit for bit: specs, times in nanoseconds, unknown infos, tasks.
func TestRemoteEnvironmentsGiveTheBitsOfLocalOnes(t *testing.T) {
	c := dial(t, serve(t, nil), nil)
	for _, id := range append(control.IDs(), driftID) {
		home, err := local(id)
		if err != nil {
			t.Fatal(err)
		}
		away := open(t, c, id, nil)
		if !sameSpec(home.Spec(), away.Spec()) {
			t.Errorf("%s: spec\n%+v, at home\n%+v", id, away.Spec(), home.Spec())
		}
		var episodes []env.Episode
		for k := range 3 {
			episodes = append(episodes, env.Episode{Seed: env.EpisodeSeed(7, k), Window: -1})
		}
		if id == driftID {
			episodes = append(episodes, env.Episode{Seed: 1 << 63, Window: 2, Task: []float64{0.1}, Split: env.SplitTest})
			if got, want := away.TaskSpec(), home.(env.Tasker).TaskSpec(); !reflect.DeepEqual(got, want) {
				t.Errorf("tasks %+v, at home %+v", got, want)
			}
		}
		x, y := env.NewTimeStep(home.Spec()), env.NewTimeStep(away.Spec())
		for _, ep := range episodes {
			if err := errors.Join(home.Reset(ctx, ep, x), away.Reset(ctx, ep, y)); err != nil {
				t.Fatal(id, err)
			}
			ch, a := make(chooser, 1), env.NewActions(home.Spec(), 1)
			for step := 0; ; step++ {
				if bits(x) != bits(y) {
					t.Fatalf("%s, episode %+v, step %d:\n%s at home\n%s", id, ep, step, bits(y), bits(x))
				}
				if x.Kind.Last() {
					break
				}
				ch.choose(home.Spec(), x.Mask, a)
				if err := errors.Join(home.Step(ctx, a.Row(0), x), away.Step(ctx, a.Row(0), y)); err != nil {
					t.Fatal(id, err)
				}
			}
		}
	}
}

// A remote Vec gives the same batches as package vec, in every mode, with some rows left out, and after a snapshot.
func TestRemoteVecsGiveTheBitsOfLocalOnes(t *testing.T) {
	const n = 5
	c := dial(t, serve(t, nil), nil)
	for _, id := range []string{driftID, "InvalidAction-v1", "CartPole-v1"} {
		for mode, remote := range map[vec.Autoreset]client.Autoreset{vec.NextStep: client.NextStep,
			vec.SameStep: client.SameStep, vec.Disabled: client.Disabled} {
			var envs []env.Env
			for range n {
				e, err := local(id)
				if err != nil {
					t.Fatal(err)
				}
				envs = append(envs, e)
			}
			home, err := vec.New(vec.Config{Autoreset: mode}, envs...)
			if err != nil {
				t.Fatal(err)
			}
			away, err := c.OpenVec(ctx, id, nil, n, client.VecConfig{Autoreset: remote})
			if err != nil {
				t.Fatal(err)
			}
			if !sameSpec(home.Spec(), away.Spec()) || away.Len() != n {
				t.Fatalf("%s: spec %+v, at home %+v", id, away.Spec(), home.Spec())
			}
			s := home.Spec()
			x, y := env.NewBatch(s, n), env.NewBatch(s, n)
			a, ch := env.NewActions(s, n), make(chooser, n)
			check := func(what string, step int, e1, e2 error) {
				t.Helper()
				if e1 != nil || e2 != nil {
					t.Fatalf("%s, %v, step %d: %s: %v, at home %v", id, mode, step, what, e2, e1)
				}
				if batchBits(x) != batchBits(y) {
					t.Fatalf("%s, %v, step %d: %s gives\n%s at home\n%s", id, mode, step, what, batchBits(y), batchBits(x))
				}
			}
			home.Seed(40)
			away.Seed(40)
			check("reset", 0, home.Reset(ctx, nil, nil, x), away.Reset(ctx, nil, nil, y))
			ep := []env.Episode{{Seed: 9, Window: -1}, {Seed: 1<<64 - 1, Window: -1}}
			check("reset of two", 0, home.Reset(ctx, []int{3, 1}, ep, x), away.Reset(ctx, []int{3, 1}, ep, y))
			var blob, blobHome []byte
			for step := range 160 {
				if mode == vec.Disabled {
					var rows []int
					for i, k := range x.Kind {
						if k.Last() {
							rows = append(rows, i)
						}
					}
					if len(rows) > 0 {
						check("reset of ended", step, home.Reset(ctx, rows, nil, x), away.Reset(ctx, rows, nil, y))
					}
				}
				if step == 50 {
					var e1, e2 error
					blobHome, e1 = home.AppendSnapshot(nil)
					blob, e2 = away.AppendSnapshot([]byte("x"))
					check("snapshot", step, e1, e2)
				}
				if step == 100 {
					check("restore", step, home.RestoreSnapshot(blobHome, x), away.RestoreSnapshot(blob[1:], y))
				}
				ch.choose(s, x.Mask, a)
				rows := []int(nil)
				if step%7 == 3 {
					rows = []int{4, 0}
					if mode == vec.Disabled && (x.Kind[4].Last() || x.Kind[0].Last()) {
						rows = nil
					}
				}
				if mode == vec.Disabled && slices.ContainsFunc(x.Kind, env.Kind.Last) {
					continue
				}
				check("step", step, home.Step(ctx, rows, a, x), away.Step(ctx, rows, a, y))
			}
			if err := errors.Join(home.Close(), away.Close(), away.Close()); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestElapsedIsExactForWeeks(t *testing.T) {
	d := newDrift()
	ts, far := env.NewTimeStep(d.Spec()), env.NewTimeStep(d.Spec())
	e := open(t, dial(t, serve(t, nil), nil), driftID, nil)
	ep := env.Episode{Seed: 3, Window: -1}
	if err := errors.Join(d.Reset(ctx, ep, ts), e.Reset(ctx, ep, far)); err != nil {
		t.Fatal(err)
	}
	odd := 0
	for !ts.Kind.Last() {
		a := env.Action{Disc: []int32{int32((d.masked + 1) % 3), 0}, Cont: []float32{0, 0}}
		if err := errors.Join(d.Step(ctx, a, ts), e.Step(ctx, a, far)); err != nil {
			t.Fatal(err)
		}
		if ts.Elapsed != far.Elapsed {
			t.Errorf("elapsed %d ns, want %d", far.Elapsed, ts.Elapsed)
		}
		if ts.Elapsed%1000 != 0 {
			odd++
		}
	}
	if odd < 5 {
		t.Errorf("only %d times were not whole microseconds", odd)
	}
}
