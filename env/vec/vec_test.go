package vec_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"clustergym/env"
	"clustergym/env/control"
	"clustergym/env/vec"
	"clustergym/internal/fault"
	"clustergym/internal/rng"
)

var ctx = context.Background()

func envs(t testing.TB, id string, n int) []env.Env {
	var all []env.Env
	for range n {
		e, err := control.New(id)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

func newVec(t testing.TB, cfg vec.Config, all ...env.Env) *vec.Vec {
	v, err := vec.New(cfg, all...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	return v
}

// chooser writes legal actions for all rows of b; row i draws from its own counter c[i].
type chooser []uint64

func choosers(n int) chooser { return make(chooser, n) }

func (c chooser) choose(s env.Spec, b *env.Batch, a *env.Actions) {
	m := s.MaskLen()
	for i := range c {
		mask := b.Mask[i*m : (i+1)*m]
		for {
			c[i]++
			k := int(rng.At(uint64(i), c[i]) % uint64(m))
			if mask[k] {
				a.Disc[i] = int32(k)
				break
			}
		}
	}
}

// bits returns everything that a call wrote.
func bits(b *env.Batch) string {
	return fmt.Sprintf("%v %x %v %x %v %x | %v %x %v %x", b.Kind, b.Reward, b.Elapsed, b.Obs, b.Mask, b.Info,
		b.FinalRows, b.FinalObs, b.FinalMask, b.FinalInfo)
}

func TestResultsDoNotDependOnWorkers(t *testing.T) {
	const rows, steps = 13, 250
	for _, mode := range []vec.Autoreset{vec.NextStep, vec.SameStep, vec.Disabled} {
		for _, id := range []string{"InvalidAction-v1", "ProbeDeadStep-v1", "ProbeMaskedContext-v1"} {
			var want []string
			for _, workers := range []int{1, 2, 8} {
				v := newVec(t, vec.Config{Workers: workers, Autoreset: mode}, envs(t, id, rows)...)
				v.Seed(7)
				b, a, c := env.NewBatch(v.Spec(), rows), env.NewActions(v.Spec(), rows), choosers(rows)
				if err := v.Reset(ctx, nil, nil, b); err != nil {
					t.Fatal(err)
				}
				got := []string{bits(b)}
				for range steps {
					c.choose(v.Spec(), b, a)
					err := v.Step(ctx, nil, a, b)
					if mode == vec.Disabled && errors.Is(err, env.ErrResetNeeded) {
						err = v.Reset(ctx, ended(b), nil, b)
					}
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, bits(b))
				}
				if want == nil {
					want = got
				}
				if i := firstDifference(got, want); i >= 0 {
					t.Fatalf("%v, %s, %d workers: call %d gives\n%s\nwith one worker\n%s", mode, id, workers, i, got[i], want[i])
				}
			}
		}
	}
}

func firstDifference(a, b []string) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

// ended lists the rows whose episode is over.
func ended(b *env.Batch) []int {
	var rows []int
	for i, k := range b.Kind {
		if k.Last() {
			rows = append(rows, i)
		}
	}
	return rows
}

// alone plays episode k of the stream seeded with x on an environment without a Vec.
type alone struct {
	e  env.Env
	ts *env.TimeStep
	x  uint64
	k  int
}

func newAlone(t *testing.T, id string, x uint64) *alone {
	e := envs(t, id, 1)[0]
	a := &alone{e: e, ts: env.NewTimeStep(e.Spec()), x: x, k: -1}
	a.next(t)
	return a
}

func (a *alone) next(t *testing.T) {
	a.k++
	if err := a.e.Reset(ctx, env.Episode{Seed: env.EpisodeSeed(a.x, a.k), Window: -1}, a.ts); err != nil {
		t.Fatal(err)
	}
}

func (a *alone) step(t *testing.T, act env.Action) {
	if err := a.e.Step(ctx, act, a.ts); err != nil {
		t.Fatal(err)
	}
}

func sameRow(b *env.Batch, i int, ts *env.TimeStep, kind env.Kind, reward float64) error {
	o, m := len(ts.Obs), len(ts.Mask)
	switch {
	case b.Kind[i] != kind || b.Reward[i] != reward || b.Elapsed[i] != ts.Elapsed:
		return fmt.Errorf("row %d is %v %v, want %v %v", i, b.Kind[i], b.Reward[i], kind, reward)
	case !slices.Equal(b.Obs[i*o:(i+1)*o], ts.Obs):
		return fmt.Errorf("row %d: observation differs", i)
	case !slices.Equal(b.Mask[i*m:(i+1)*m], ts.Mask):
		return fmt.Errorf("row %d: mask differs", i)
	}
	return nil
}

// Row i must equal environment i played alone, under each mode's rule for the end of an episode.
func TestRowsAreEnvironmentsPlayedAlone(t *testing.T) {
	const rows, seed = 5, 1000
	for _, mode := range []vec.Autoreset{vec.NextStep, vec.SameStep, vec.Disabled} {
		for _, id := range []string{"InvalidAction-v1", "ProbeDeadStep-v1", "ProbeTruncation-v1"} {
			v := newVec(t, vec.Config{Workers: 2, Autoreset: mode}, envs(t, id, rows)...)
			v.Seed(seed)
			b, a, c := env.NewBatch(v.Spec(), rows), env.NewActions(v.Spec(), rows), choosers(rows)
			if err := v.Reset(ctx, nil, nil, b); err != nil {
				t.Fatal(err)
			}
			var ref []*alone
			for i := range rows {
				ref = append(ref, newAlone(t, id, seed+uint64(i)))
				if err := sameRow(b, i, ref[i].ts, env.First, 0); err != nil {
					t.Fatal(err)
				}
			}
			ends := 0
			for range 230 {
				c.choose(v.Spec(), b, a)
				if mode == vec.NextStep { // ignored where the episode is over
					for _, i := range ended(b) {
						a.Disc[i] = -5
					}
				}
				if mode == vec.Disabled {
					if rows := ended(b); len(rows) > 0 {
						if err := v.Reset(ctx, rows, nil, b); err != nil {
							t.Fatal(err)
						}
						for _, i := range rows {
							ref[i].next(t)
						}
						c.choose(v.Spec(), b, a)
					}
				}
				if err := v.Step(ctx, nil, a, b); err != nil {
					t.Fatal(err)
				}
				var finals []int
				for i, r := range ref {
					if mode == vec.NextStep && r.ts.Kind.Last() {
						r.next(t)
					} else {
						r.step(t, a.Row(i))
					}
					kind, reward := r.ts.Kind, r.ts.Reward
					if kind.Last() {
						ends++
					}
					if mode == vec.SameStep && kind.Last() {
						at := len(finals) * len(r.ts.Obs)
						if !slices.Equal(b.FinalObs[at:at+len(r.ts.Obs)], r.ts.Obs) {
							t.Fatalf("%s: final observation of row %d differs", id, i)
						}
						at = len(finals) * len(r.ts.Mask)
						if !slices.Equal(b.FinalMask[at:at+len(r.ts.Mask)], r.ts.Mask) {
							t.Fatalf("%s: final mask of row %d differs", id, i)
						}
						finals = append(finals, i)
						r.next(t)
					}
					if err := sameRow(b, i, r.ts, kind, reward); err != nil {
						t.Fatalf("%v, %s: %v", mode, id, err)
					}
				}
				if !slices.Equal(b.FinalRows, finals) || len(b.FinalObs) != len(finals)*v.Spec().ObsLen() {
					t.Fatalf("%v, %s: final rows %v, want %v", mode, id, b.FinalRows, finals)
				}
			}
			if ends < 2*rows {
				t.Fatalf("%s: only %d episodes ended", id, ends)
			}
			for i, r := range ref {
				if x, k := v.Episode(i); x != r.x || k != r.k {
					t.Errorf("row %d is in episode %d of %d, want %d of %d", i, k, x, r.k, r.x)
				}
			}
		}
	}
}

func TestOnlyTheRowsAskedAreWritten(t *testing.T) {
	const rows = 6
	v := newVec(t, vec.Config{Workers: 2, Autoreset: vec.SameStep}, envs(t, "InvalidAction-v1", rows)...)
	b, a, c := env.NewBatch(v.Spec(), rows), env.NewActions(v.Spec(), rows), choosers(rows)
	if err := v.Reset(ctx, nil, nil, b); err != nil {
		t.Fatal(err)
	}
	before := env.NewBatch(v.Spec(), rows)
	before.CopyFrom(b)
	c.choose(v.Spec(), b, a)
	for _, i := range []int{0, 2, 5} { // rows of a that are not asked for are not read
		a.Disc[i] = 1 << 20
	}
	if err := v.Step(ctx, []int{4, 1, 3}, a, b); err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		same := b.Kind[i] == before.Kind[i] && slices.Equal(b.Obs[i*80:(i+1)*80], before.Obs[i*80:(i+1)*80])
		if asked := i == 4 || i == 1 || i == 3; same == asked {
			t.Errorf("row %d: asked for %v, unchanged %v", i, asked, same)
		}
	}
	if err := v.Reset(ctx, []int{2}, []env.Episode{{Seed: 99}}, b); err != nil {
		t.Fatal(err)
	}
	if b.Kind[2] != env.First || b.Kind[4] != env.Mid || b.Kind[0] != env.First {
		t.Errorf("kinds after a partial reset: %v", b.Kind)
	}
	if x, k := v.Episode(2); x != 99 || k != 0 {
		t.Errorf("row 2 is in episode %d of %d", k, x)
	}
	if x, _ := v.Episode(3); x != 3 {
		t.Errorf("row 3's stream is %d", x)
	}
}

func TestFinalRowsStandInRowOrder(t *testing.T) {
	const rows = 5
	v := newVec(t, vec.Config{Autoreset: vec.SameStep}, envs(t, "ProbeObservation-v1", rows)...)
	b, a := env.NewBatch(v.Spec(), rows), env.NewActions(v.Spec(), rows)
	if err := v.Reset(ctx, nil, nil, b); err != nil {
		t.Fatal(err)
	}
	if err := v.Step(ctx, []int{3, 0, 4}, a, b); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(b.FinalRows, []int{0, 3, 4}) {
		t.Errorf("final rows %v", b.FinalRows)
	}
	if err := v.Reset(ctx, []int{1}, nil, b); err != nil || len(b.FinalRows) != 0 {
		t.Errorf("after a reset, final rows %v, error %v", b.FinalRows, err)
	}
}

func TestOneRowsFailureLeavesTheOthersValid(t *testing.T) {
	const rows = 4
	v := newVec(t, vec.Config{Workers: 2, Autoreset: vec.SameStep}, envs(t, "InvalidAction-v1", rows)...)
	b, a, c := env.NewBatch(v.Spec(), rows), env.NewActions(v.Spec(), rows), choosers(rows)
	if err := v.Reset(ctx, nil, nil, b); err != nil {
		t.Fatal(err)
	}
	c.choose(v.Spec(), b, a)
	good := slices.Clone(a.Disc)
	before := env.NewBatch(v.Spec(), rows)
	before.CopyFrom(b)
	a.Disc[1], a.Disc[3] = -1, 80
	err := v.Step(ctx, nil, a, b)
	if !errors.Is(err, env.ErrIllegalAction) {
		t.Fatalf("error %v", err)
	}
	var failed []int
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		var r *vec.RowError
		if !errors.As(e, &r) {
			t.Fatalf("%T is no RowError", e)
		}
		failed = append(failed, r.Row)
	}
	if !slices.Equal(failed, []int{1, 3}) {
		t.Errorf("rows %v failed", failed)
	}
	for i, k := range b.Kind {
		if want := []env.Kind{env.Mid, env.First}[i&1]; k != want {
			t.Errorf("row %d is %v, want %v", i, k, want)
		}
	}
	if !slices.Equal(b.Obs[80:160], before.Obs[80:160]) {
		t.Error("the failed row's observation changed")
	}
	copy(a.Disc, good)
	if err := v.Step(ctx, []int{1, 3}, a, b); err != nil {
		t.Errorf("the failed rows do not go on: %v", err)
	}
}

func TestDisabledRefusesEndedRowsAndStepsTheOthers(t *testing.T) {
	v := newVec(t, vec.Config{Autoreset: vec.Disabled}, envs(t, "ProbeDiscount-v1", 2)...)
	b, a := env.NewBatch(v.Spec(), 2), env.NewActions(v.Spec(), 2)
	var row *vec.RowError
	if err := v.Step(ctx, nil, a, b); !errors.Is(err, env.ErrResetNeeded) {
		t.Errorf("Step before Reset: %v", err)
	}
	if err := v.Reset(ctx, nil, nil, b); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := v.Step(ctx, []int{1}, a, b); err != nil {
			t.Fatal(err)
		}
	}
	err := v.Step(ctx, nil, a, b)
	if !errors.Is(err, env.ErrResetNeeded) || !errors.As(err, &row) || row.Row != 1 {
		t.Errorf("error %v", err)
	}
	if b.Kind[0] != env.Mid || b.Kind[1] != env.Terminated {
		t.Errorf("kinds %v", b.Kind)
	}
}

func TestMisuseIsRefusedBeforeAnythingHappens(t *testing.T) {
	v := newVec(t, vec.DefaultConfig(), envs(t, "InvalidAction-v1", 3)...)
	s := v.Spec()
	b, a := env.NewBatch(s, 3), env.NewActions(s, 3)
	if err := v.Reset(ctx, nil, nil, b); err != nil {
		t.Fatal(err)
	}
	before := bits(b)
	short := env.NewBatch(s, 3)
	short.Obs = short.Obs[1:]
	for name, err := range map[string]error{
		"row out of range":  v.Step(ctx, []int{3}, a, b),
		"negative row":      v.Reset(ctx, []int{-1}, nil, b),
		"row twice":         v.Step(ctx, []int{1, 1}, a, b),
		"too few actions":   v.Step(ctx, nil, env.NewActions(s, 2), b),
		"too few rows":      v.Step(ctx, nil, a, env.NewBatch(s, 2)),
		"short observation": v.Step(ctx, nil, a, short),
		"too few episodes":  v.Reset(ctx, nil, make([]env.Episode, 2), b),
	} {
		var row *vec.RowError
		if err == nil || errors.As(err, &row) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if bits(b) != before {
		t.Error("the batch changed")
	}
	if err := v.Step(ctx, []int{}, a, b); err != nil || bits(b) != before {
		t.Errorf("no rows: error %v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	a, b := envs(t, "ProbeAction-v1", 1)[0], envs(t, "ProbeContext-v1", 1)[0]
	for name, list := range map[string][]env.Env{"none": nil, "two specs": {a, b}, "one instance twice": {a, a},
		"nil": {a, nil}} {
		if v, err := vec.New(vec.DefaultConfig(), list...); err == nil || v != nil {
			t.Errorf("%s: %v, %v", name, v, err)
		}
	}
	_, err := vec.New(vec.Config{Workers: -1, Autoreset: 9}, a)
	if len(fault.All(err)) != 2 {
		t.Errorf("faults %v", err)
	}
}

func TestClosedIsClosed(t *testing.T) {
	all := envs(t, "ProbeAction-v1", 2)
	v := newVec(t, vec.DefaultConfig(), all...)
	b := env.NewBatch(v.Spec(), 2)
	for range 2 {
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
	}
	_, snapErr := v.AppendSnapshot(nil)
	for _, err := range []error{v.Reset(ctx, nil, nil, b), v.Step(ctx, nil, env.NewActions(v.Spec(), 2), b), snapErr,
		v.RestoreSnapshot(nil, b), all[1].Reset(ctx, env.Episode{}, env.NewTimeStep(v.Spec()))} {
		if !errors.Is(err, env.ErrClosed) {
			t.Errorf("error %v", err)
		}
	}
}

func TestCancelledContextNamesTheRowsNotStepped(t *testing.T) {
	for _, workers := range []int{1, 3} {
		v := newVec(t, vec.Config{Workers: workers, Autoreset: vec.SameStep}, envs(t, "InvalidAction-v1", 4)...)
		b, a, c := env.NewBatch(v.Spec(), 4), env.NewActions(v.Spec(), 4), choosers(4)
		if err := v.Reset(ctx, nil, nil, b); err != nil {
			t.Fatal(err)
		}
		before := bits(b)
		c.choose(v.Spec(), b, a)
		cancelled, cancel := context.WithCancel(ctx)
		cancel()
		err := v.Step(cancelled, nil, a, b)
		var row *vec.RowError
		if !errors.Is(err, context.Canceled) || !errors.As(err, &row) || bits(b) != before {
			t.Errorf("error %v", err)
		}
		if err := v.Step(ctx, nil, a, b); err != nil {
			t.Errorf("does not go on: %v", err)
		}
	}
}

// tasked fails to reset when told to, and records the episodes that it is given.
type tasked struct {
	env.Env
	seen []env.Episode
	fail error
}

func (e *tasked) Reset(ctx context.Context, ep env.Episode, ts *env.TimeStep) error {
	if e.fail != nil {
		return e.fail
	}
	e.seen = append(e.seen, env.Episode{Seed: ep.Seed, Window: ep.Window, Task: slices.Clone(ep.Task)})
	ep.Task = nil
	return e.Env.Reset(ctx, ep, ts)
}

func TestStreamsFollowResetSeedAndTask(t *testing.T) {
	for _, mode := range []vec.Autoreset{vec.SameStep, vec.NextStep} {
		e := &tasked{Env: envs(t, "ProbeConstant-v1", 1)[0]}
		v := newVec(t, vec.Config{Autoreset: mode}, e)
		b, a := env.NewBatch(v.Spec(), 1), env.NewActions(v.Spec(), 1)
		next := func() {
			steps := 1
			if mode == vec.NextStep {
				steps = 2
			}
			for range steps {
				if err := v.Step(ctx, nil, a, b); err != nil {
					t.Fatal(err)
				}
			}
		}
		task := []float64{1, 2}
		if err := v.Reset(ctx, nil, []env.Episode{{Seed: 5, Window: 3, Task: task}}, b); err != nil {
			t.Fatal(err)
		}
		task[0] = 9 // the slice belongs to the caller again
		next()
		if err := v.SetTask(0, nil); err != nil {
			t.Fatal(err)
		}
		next()
		v.Seed(70)
		next()
		next()
		if err := v.Reset(ctx, nil, nil, b); err != nil {
			t.Fatal(err)
		}
		want := []env.Episode{
			{Seed: 5, Window: 3, Task: []float64{1, 2}}, {Seed: env.EpisodeSeed(5, 1), Window: -1, Task: []float64{1, 2}},
			{Seed: env.EpisodeSeed(5, 2), Window: -1}, {Seed: 70, Window: -1}, {Seed: env.EpisodeSeed(70, 1), Window: -1},
			{Seed: env.EpisodeSeed(70, 2), Window: -1},
		}
		if fmt.Sprint(e.seen) != fmt.Sprint(want) {
			t.Errorf("%v: episodes\n%v, want\n%v", mode, e.seen, want)
		}
		if v.SetTask(1, nil) == nil {
			t.Error("a task for row 1 of 1 was accepted")
		}
	}
}

func TestAFailedResetNeedsAnotherAndKeepsTheEpisode(t *testing.T) {
	broken := errors.New("broken")
	for _, mode := range []vec.Autoreset{vec.SameStep, vec.NextStep, vec.Disabled} {
		e := &tasked{Env: envs(t, "ProbeConstant-v1", 1)[0]}
		v := newVec(t, vec.Config{Autoreset: mode}, e)
		v.Seed(4)
		b, a := env.NewBatch(v.Spec(), 1), env.NewActions(v.Spec(), 1)
		if err := v.Reset(ctx, nil, nil, b); err != nil {
			t.Fatal(err)
		}
		e.fail = broken
		var err error
		switch mode {
		case vec.SameStep:
			err = v.Step(ctx, nil, a, b)
		case vec.NextStep:
			err = errors.Join(v.Step(ctx, nil, a, b), v.Step(ctx, nil, a, b))
		default:
			err = v.Reset(ctx, nil, nil, b)
		}
		if !errors.Is(err, broken) || len(b.FinalRows) != 0 {
			t.Fatalf("%v: error %v, final rows %v", mode, err, b.FinalRows)
		}
		e.fail = nil
		if err := v.Step(ctx, nil, a, b); !errors.Is(err, env.ErrResetNeeded) {
			t.Errorf("%v: Step after a failed reset: %v", mode, err)
		}
		if err := v.Reset(ctx, nil, nil, b); err != nil {
			t.Fatal(err)
		}
		if got, want := e.seen[len(e.seen)-1].Seed, env.EpisodeSeed(4, 1); got != want {
			t.Errorf("%v: the repeated reset runs on %d, want %d", mode, got, want)
		}
	}
}

func TestARestoredRunContinuesBitForBit(t *testing.T) {
	const rows = 4
	for _, mode := range []vec.Autoreset{vec.NextStep, vec.SameStep, vec.Disabled} {
		for _, id := range []string{"InvalidAction-v1", "ProbeDeadStep-v1", "ProbeObservation-v1"} {
			cfg := vec.Config{Workers: 1, Autoreset: mode}
			v := newVec(t, cfg, envs(t, id, rows)...)
			v.Seed(11)
			b, a, c := env.NewBatch(v.Spec(), rows), env.NewActions(v.Spec(), rows), choosers(rows)
			if err := v.Reset(ctx, []int{0, 2, 3}, nil, b); err != nil { // row 1 follows below
				t.Fatal(err)
			}
			run := func(v *vec.Vec, b *env.Batch, c chooser, from, to int) (out []string) {
				for i := from; i < to; i++ {
					rows := []int{0, 2, 3}
					if i == 60 {
						if err := v.Reset(ctx, []int{1}, nil, b); err != nil {
							t.Fatal(err)
						}
					}
					if i >= 60 {
						rows = []int{0, 1, 2, 3}
					}
					if mode == vec.Disabled {
						if r := ended(b); len(r) > 0 {
							if err := v.Reset(ctx, r, nil, b); err != nil {
								t.Fatal(err)
							}
						}
					}
					for k := range b.Mask { // rows without an episode have no legal action
						if i < 60 && k/v.Spec().MaskLen() == 1 {
							b.Mask[k] = true
						}
					}
					c.choose(v.Spec(), b, a)
					if err := v.Step(ctx, rows, a, b); err != nil {
						t.Fatal(err)
					}
					out = append(out, bits(b))
				}
				return out
			}
			run(v, b, c, 0, 49)
			for cut := 49; cut < 56; cut++ {
				blob, err := v.AppendSnapshot([]byte("x"))
				if err != nil {
					t.Fatal(err)
				}
				blob = blob[1:]
				w := newVec(t, vec.Config{Workers: 3, Autoreset: mode}, envs(t, id, rows)...)
				wb, wc := env.NewBatch(v.Spec(), rows), slices.Clone(c)
				wb.CopyFrom(b) // row 1's part comes only from the caller
				wb.FinalRows = append(wb.FinalRows, 3)
				for i := range wb.Obs {
					if i/v.Spec().ObsLen() != 1 {
						wb.Obs[i] = float32(math.NaN())
					}
				}
				if err := w.RestoreSnapshot(blob, wb); err != nil {
					t.Fatal(err)
				}
				if len(wb.FinalRows) != 0 {
					t.Errorf("final rows after restoring: %v", wb.FinalRows)
				}
				b.FinalRows, b.FinalObs, b.FinalMask, b.FinalInfo = b.FinalRows[:0], b.FinalObs[:0], b.FinalMask[:0],
					b.FinalInfo[:0]
				if bits(wb) != bits(b) {
					t.Fatalf("%v, %s: the restored batch is\n%s, want\n%s", mode, id, bits(wb), bits(b))
				}
				again, err := w.AppendSnapshot(nil)
				if err != nil || !bytes.Equal(again, blob) {
					t.Fatalf("%v, %s: saved again, the bytes differ (error %v)", mode, id, err)
				}
				got := run(w, wb, wc, cut, 200)
				vb, vc := env.NewBatch(v.Spec(), rows), slices.Clone(c)
				vb.CopyFrom(b)
				want := run(v, vb, vc, cut, 200)
				if i := firstDifference(got, want); i >= 0 {
					t.Fatalf("%v, %s: step %d after the restored one gives\n%s, want\n%s", mode, id, i, got[i], want[i])
				}
				// Return to the cut, one step further each time.
				if err := v.RestoreSnapshot(blob, b); err != nil {
					t.Fatal(err)
				}
				run(v, b, c, cut, cut+1)
			}
		}
	}
}

// brittle refuses to restore when told to.
type brittle struct {
	*control.Env
	fail bool
}

func (e *brittle) RestoreSnapshot(src []byte, ts *env.TimeStep) error {
	if e.fail {
		return env.ErrSnapshot
	}
	return e.Env.RestoreSnapshot(src, ts)
}

func TestWhatCannotBeRestoredChangesNothing(t *testing.T) {
	const rows = 3
	var all []env.Env
	for _, e := range envs(t, "InvalidAction-v1", rows) {
		all = append(all, &brittle{Env: e.(*control.Env)})
	}
	v := newVec(t, vec.Config{Autoreset: vec.SameStep}, all...)
	b, a, c := env.NewBatch(v.Spec(), rows), env.NewActions(v.Spec(), rows), choosers(rows)
	if err := v.Reset(ctx, nil, nil, b); err != nil {
		t.Fatal(err)
	}
	other, err := v.AppendSnapshot(nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		c.choose(v.Spec(), b, a)
		if err := v.Step(ctx, nil, a, b); err != nil {
			t.Fatal(err)
		}
	}
	good, err := v.AppendSnapshot(nil)
	if err != nil {
		t.Fatal(err)
	}
	before := bits(b)
	check := func(what string, src []byte) {
		t.Helper()
		if err := v.RestoreSnapshot(src, b); !errors.Is(err, env.ErrSnapshot) {
			t.Errorf("%s: error %v", what, err)
		}
		if now, err := v.AppendSnapshot(nil); err != nil || !bytes.Equal(now, good) || bits(b) != before {
			t.Fatalf("%s changed something (error %v)", what, err)
		}
	}
	for i := 0; i < len(good); i++ {
		broken := bytes.Clone(good)
		broken[i] ^= 1 << (i % 8)
		check(fmt.Sprintf("byte %d flipped", i), broken)
		check(fmt.Sprintf("cut at %d", i), good[:i])
	}
	check("a byte too many", append(bytes.Clone(good), 0))
	for mode, n := range map[vec.Autoreset]int{vec.NextStep: rows, vec.SameStep: rows - 1} {
		w := newVec(t, vec.Config{Autoreset: mode}, envs(t, "InvalidAction-v1", n)...)
		wb := env.NewBatch(v.Spec(), n)
		if err := w.Reset(ctx, nil, nil, wb); err != nil {
			t.Fatal(err)
		}
		foreign, err := w.AppendSnapshot(nil)
		if err != nil {
			t.Fatal(err)
		}
		check(fmt.Sprintf("%d rows in mode %v", n, mode), foreign)
	}
	// The last environment refuses after the others have been restored, so they must return to their former state.
	all[rows-1].(*brittle).fail = true
	if err := v.RestoreSnapshot(other, b); !errors.Is(err, env.ErrSnapshot) {
		t.Errorf("error %v", err)
	}
	all[rows-1].(*brittle).fail = false
	if now, err := v.AppendSnapshot(nil); err != nil || !bytes.Equal(now, good) || bits(b) != before {
		t.Fatalf("a row that refuses leaves the others changed (error %v)", err)
	}
}

type plain struct{ env.Env }

func TestEnvironmentsWithoutSnapshotsAreUnsupported(t *testing.T) {
	v := newVec(t, vec.DefaultConfig(), plain{envs(t, "ProbeAction-v1", 1)[0]})
	if out, err := v.AppendSnapshot([]byte("kept")); !errors.Is(err, errors.ErrUnsupported) || string(out) != "kept" {
		t.Errorf("%q, error %v", out, err)
	}
}

func TestAutoresetNames(t *testing.T) {
	for _, a := range []vec.Autoreset{vec.NextStep, vec.SameStep, vec.Disabled} {
		text, err := a.MarshalText()
		var b vec.Autoreset
		if err != nil || b.UnmarshalText(text) != nil || a != b || a.String() != string(text) {
			t.Errorf("%v reads back as %v", a, b)
		}
	}
	bad := vec.Autoreset(9)
	if _, err := bad.MarshalText(); err == nil || bad.UnmarshalText([]byte("sometimes")) == nil {
		t.Error("unknown modes are accepted")
	}
}

func TestStepDoesNotAllocate(t *testing.T) {
	for _, mode := range []vec.Autoreset{vec.NextStep, vec.SameStep} {
		for k, id := range []string{"InvalidAction-v1", "ProbeObservation-v1", "InvalidAction-v1"} {
			v := newVec(t, vec.Config{Workers: 1 + k, Autoreset: mode}, envs(t, id, 8)...)
			b, a, c := env.NewBatch(v.Spec(), 8), env.NewActions(v.Spec(), 8), choosers(8)
			if err := v.Reset(ctx, nil, nil, b); err != nil {
				t.Fatal(err)
			}
			rows := []int{6, 1}
			spec := v.Spec()
			n := testing.AllocsPerRun(500, func() {
				c.choose(spec, b, a)
				if err := v.Step(ctx, nil, a, b); err != nil {
					t.Error(err)
				}
				c.choose(spec, b, a)
				if err := v.Step(ctx, rows, a, b); err != nil {
					t.Error(err)
				}
			})
			if n != 0 {
				t.Errorf("%v, %s: %v allocations", mode, id, n)
			}
		}
	}
}

func BenchmarkStep(b *testing.B) {
	for _, id := range []string{"ProbeTruncation-v1", "InvalidAction-v1"} {
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/rows=64/workers=%d", id, workers), func(b *testing.B) {
				const rows = 64
				v := newVec(b, vec.Config{Workers: workers, Autoreset: vec.SameStep}, envs(b, id, rows)...)
				bt, a := env.NewBatch(v.Spec(), rows), env.NewActions(v.Spec(), rows)
				if err := v.Reset(ctx, nil, nil, bt); err != nil {
					b.Fatal(err)
				}
				m := v.Spec().MaskLen()
				b.ReportAllocs()
				for b.Loop() {
					for i := range rows {
						a.Disc[i] = int32(slices.Index(bt.Mask[i*m:(i+1)*m], true))
					}
					if err := v.Step(ctx, nil, a, bt); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.N)*rows/b.Elapsed().Seconds(), "env-steps/s")
			})
		}
	}
}
