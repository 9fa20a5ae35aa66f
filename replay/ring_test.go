package replay

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"clustergym/env"

	"pgregory.net/rapid"
)

// contents reads all transitions of r, oldest first.
func contents(r *ring) []transition {
	dst := NewBatch(r.spec, 1)
	var out []transition
	for k := 0; k < r.size; k++ {
		r.gather(dst, 0, (r.oldest()+k)%r.cfg.Capacity)
		t := transition{act: dst.Action.Disc[0], reward: dst.Reward[0], discount: dst.Discount[0]}
		copy(t.obs[:], dst.Obs)
		copy(t.next[:], dst.NextObs)
		copy(t.mask[:], dst.Mask)
		copy(t.nextMask[:], dst.NextMask)
		out = append(out, t)
	}
	return out
}

func equal(a, b []transition) error {
	if len(a) != len(b) {
		return fmt.Errorf("got %d transitions, want %d", len(a), len(b))
	}
	for i := range a {
		if a[i] != b[i] {
			return fmt.Errorf("transition %d of %d: got\n%+v, want\n%+v", i, len(a), a[i], b[i])
		}
	}
	return nil
}

// The buffer holds the last transitions played, for any mode, rows, n and capacity.
func TestRingHoldsWhatWasPlayed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(1, 4).Draw(t, "rows")
		n := rapid.IntRange(1, 5).Draw(t, "n")
		capacity := rapid.IntRange(n, 40).Draw(t, "capacity")
		calls := rapid.IntRange(0, 60).Draw(t, "calls")
		m := mode(rapid.IntRange(0, 2).Draw(t, "mode"))
		s := newStream(rows, m, rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)))
		u, err := NewUniform(Config{Capacity: capacity, NStep: n, Gamma: 0.9}, s.spec, rows)
		if err != nil {
			t.Fatal(err)
		}
		for c := 0; c < calls; c++ {
			s.play(c)
			if err := u.Add(s.b, s.a, s.next); err != nil {
				t.Fatal(err)
			}
			s.turn()
		}
		want := s.reference(n, calls)
		if got := u.Added(); got != uint64(len(want)) {
			t.Fatalf("added %d transitions, want %d", got, len(want))
		}
		want = want[max(0, len(want)-capacity):]
		if err := equal(contents(u.ring), want); err != nil {
			t.Fatal(err)
		}
		if u.Len() != len(want) {
			t.Fatalf("Len is %d, want %d", u.Len(), len(want))
		}
	})
}

// line is one step of a single row that is played by hand.
type line struct {
	kind    env.Kind
	reward  float64
	elapsed time.Duration
}

// script adds lines to a one-row buffer in SameStep mode; observation k of the row is (k, 0), and final
// observations are (100+k, 0).
func script(t *testing.T, add func(b *env.Batch, a *env.Actions, next *env.Batch) error, lines []line) {
	t.Helper()
	s := testSpec()
	b, next, a := env.NewBatch(s, 1), env.NewBatch(s, 1), env.NewActions(s, 1)
	b.Mask = []bool{true, true, true}
	b.Kind[0] = env.First
	for k, l := range lines {
		next.Kind[0], next.Reward[0], next.Elapsed[0] = l.kind, l.reward, l.elapsed
		next.Obs[0] = float32(k + 1)
		copy(next.Mask, []bool{true, false, true})
		next.FinalRows, next.FinalObs, next.FinalMask = next.FinalRows[:0], next.FinalObs[:0], next.FinalMask[:0]
		if l.kind.Last() {
			next.FinalRows = append(next.FinalRows, 0)
			next.FinalObs = append(next.FinalObs, float32(100+k+1), 0)
			next.FinalMask = append(next.FinalMask, false, true, false)
		}
		a.Disc[0] = int32(k % 3)
		if err := add(b, a, next); err != nil {
			t.Fatal(err)
		}
		b, next = next, b
	}
}

// Worked by hand: n = 3, gamma 0.5 per hour. Discounts of the steps: 0.5, 0.25 (two hours), 1 (no time passes), 0.5;
// then a truncation after a step of one hour, then a termination two steps later.
func TestNStepByHand(t *testing.T) {
	u, err := NewUniform(Config{Capacity: 100, NStep: 3, Gamma: 0.5}, testSpec(), 1)
	if err != nil {
		t.Fatal(err)
	}
	h := time.Hour
	script(t, u.Add, []line{
		{env.Mid, 1, h}, {env.Mid, 2, 2 * h}, {env.Mid, 4, 0}, {env.Mid, 8, h}, {env.Truncated, 16, h},
		{env.Mid, 3, h}, {env.Terminated, 5, h},
	})
	all, none := [3]bool{true, true, true}, [3]bool{true, false, true}
	final := [3]bool{false, true, false}
	want := []transition{
		{[2]float32{0}, [2]float32{3}, all, none, 0, 1 + 0.5*2 + 0.5*0.25*4, 0.5 * 0.25 * 1},
		{[2]float32{1}, [2]float32{4}, none, none, 1, 2 + 0.25*4 + 0.25*1*8, 0.25 * 1 * 0.5},
		{[2]float32{2}, [2]float32{105}, none, final, 2, 4 + 1*8 + 1*0.5*16, 1 * 0.5 * 0.5},
		{[2]float32{3}, [2]float32{105}, none, final, 0, 8 + 0.5*16, 0.5 * 0.5},
		{[2]float32{4}, [2]float32{105}, none, final, 1, 16, 0.5},
		{[2]float32{5}, [2]float32{107}, none, final, 2, 3 + 0.5*5, 0},
		{[2]float32{6}, [2]float32{107}, none, final, 0, 5, 0},
	}
	if err := equal(contents(u.ring), want); err != nil {
		t.Fatal(err)
	}
}

// If a source does not know the final mask, or the mask has no legal action, every action counts as legal there.
func TestUnknownFinalMaskCountsEveryAction(t *testing.T) {
	for _, known := range []bool{false, true} {
		u, err := NewUniform(oneStep(), testSpec(), 1)
		if err != nil {
			t.Fatal(err)
		}
		script(t, func(b *env.Batch, a *env.Actions, next *env.Batch) error {
			next.FinalMask = next.FinalMask[:0]
			if known {
				next.FinalMask = append(next.FinalMask, false, false, false)
			}
			return u.Add(b, a, next)
		}, []line{{env.Truncated, 1, 0}})
		if got := contents(u.ring)[0].nextMask; got != [3]bool{true, true, true} {
			t.Errorf("known %v: next mask is %v, want every action legal", known, got)
		}
	}
}

// An episode abandoned from outside is a truncation: waiting transitions bootstrap from the last observation.
func TestAbandonedEpisodeIsATruncation(t *testing.T) {
	u, err := NewUniform(Config{Capacity: 10, NStep: 3, Gamma: 0.5}, testSpec(), 1)
	if err != nil {
		t.Fatal(err)
	}
	script(t, u.Add, []line{{env.Mid, 1, time.Hour}, {env.First, 0, 0}, {env.Terminated, 2, time.Hour}})
	got := contents(u.ring)
	if len(got) != 2 {
		t.Fatalf("got %d transitions, want 2", len(got))
	}
	if g := got[0]; g.obs[0] != 0 || g.next[0] != 1 || g.reward != 1 || g.discount != 0.5 {
		t.Errorf("abandoned: got %+v, want from 0 to 1 with reward 1 and discount 0.5", g)
	}
	if g := got[1]; g.obs[0] != 2 || g.next[0] != 103 || g.reward != 2 || g.discount != 0 {
		t.Errorf("after it: got %+v, want from 2 to 103 with reward 2 and discount 0", g)
	}
}

// Each observation is stored once: an endless episode of n transitions keeps n+1 of them.
func TestObservationsAreStoredOnce(t *testing.T) {
	u, err := NewUniform(Config{Capacity: 1000, NStep: 1, Gamma: 0.5}, testSpec(), 1)
	if err != nil {
		t.Fatal(err)
	}
	lines := make([]line, 5000)
	for i := range lines {
		lines[i].kind = env.Mid
	}
	script(t, u.Add, lines)
	f := u.ring.frames
	if alive := f.next - u.ring.floor(); alive != 1001 {
		t.Errorf("%d observations are alive, want 1001", alive)
	}
	if got := (len(f.chunks) + len(f.spare)) * chunkFrames; got > 1001+2*chunkFrames {
		t.Errorf("there is room for %d observations, want at most %d", got, 1001+2*chunkFrames)
	}
}

func TestAddRefusesWhatCannotBe(t *testing.T) {
	s := testSpec()
	u, err := NewUniform(oneStep(), s, 2)
	if err != nil {
		t.Fatal(err)
	}
	b, next, a := env.NewBatch(s, 2), env.NewBatch(s, 2), env.NewActions(s, 2)
	next.Kind[0], next.Kind[1] = env.Mid, env.Mid
	for name, spoil := range map[string]func(){
		"rows":             func() { b = env.NewBatch(s, 3) },
		"actions":          func() { a = env.NewActions(s, 1) },
		"reward NaN":       func() { next.Reward[1] = math.NaN() },
		"reward infinite":  func() { next.Reward[1] = math.Inf(-1) },
		"final rows order": func() { next.FinalRows, next.FinalObs = []int{1, 0}, make([]float32, 4) },
		"final row beyond": func() { next.FinalRows, next.FinalObs = []int{2}, make([]float32, 2) },
		"final obs short":  func() { next.FinalRows, next.FinalObs = []int{0, 1}, make([]float32, 2) },
		"obs short":        func() { next.Obs = next.Obs[:3] },
	} {
		b, next, a = env.NewBatch(s, 2), env.NewBatch(s, 2), env.NewActions(s, 2)
		next.Kind[0], next.Kind[1] = env.Mid, env.Mid
		spoil()
		if err := u.Add(b, a, next); err == nil {
			t.Errorf("%s: no error", name)
		}
		if u.Len() != 0 || u.ring.frames.next != 0 {
			t.Errorf("%s: the buffer has changed", name)
		}
	}
}

func TestConfigReportsAllFaults(t *testing.T) {
	err := Config{Capacity: 0, NStep: 0, Gamma: 1.5}.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, key := range []string{"capacity", "n_step", "gamma"} {
		if !contains(err.Error(), key) {
			t.Errorf("%q does not name %s", err, key)
		}
	}
	if err := oneStep().Validate(); err != nil {
		t.Errorf("the default: %v", err)
	}
	if _, err := NewUniform(oneStep(), testSpec(), 0); err == nil {
		t.Error("no rows: no error")
	}
	if _, err := NewPrioritized(oneStep(), PriorityConfig{Alpha: -1}, testSpec(), 1); err == nil {
		t.Error("negative alpha: no error")
	}
}

func contains(s, part string) bool {
	for i := 0; i+len(part) <= len(s); i++ {
		if s[i:i+len(part)] == part {
			return true
		}
	}
	return false
}

// filled returns a buffer of capacity 64 after enough steps to wrap around several times.
func filled(tb testing.TB, n int) (*Uniform, *stream) {
	tb.Helper()
	s := newStream(4, sameStep, rand.New(rand.NewPCG(1, 2)))
	u, err := NewUniform(Config{Capacity: 64, NStep: n, Gamma: 0.9}, s.spec, 4)
	if err != nil {
		tb.Fatal(err)
	}
	for c := 0; c < 400; c++ {
		s.play(c)
		if err := u.Add(s.b, s.a, s.next); err != nil {
			tb.Fatal(err)
		}
		s.turn()
	}
	return u, s
}

func TestUniformDrawsAllAlike(t *testing.T) {
	u, _ := filled(t, 2)
	rng := rand.New(rand.NewPCG(3, 4))
	dst := NewBatch(u.ring.spec, 32)
	count := make([]float64, u.Len())
	const draws = 2000
	for k := 0; k < draws; k++ {
		if err := u.Sample(rng, dst); err != nil {
			t.Fatal(err)
		}
		for i, s := range dst.Index {
			count[s]++
			if dst.Weight[i] != 1 {
				t.Fatalf("weight %v, want 1", dst.Weight[i])
			}
		}
	}
	want, chi := float64(draws*32)/float64(len(count)), 0.0
	for _, c := range count {
		chi += (c - want) * (c - want) / want
	}
	if chi > 115 { // 63 degrees of freedom: 0.01 % of draws exceed this
		t.Errorf("chi-squared is %.1f", chi)
	}
}

func TestSampleNeedsEnough(t *testing.T) {
	u, err := NewUniform(oneStep(), testSpec(), 1)
	if err != nil {
		t.Fatal(err)
	}
	script(t, u.Add, []line{{env.Mid, 1, 0}, {env.Mid, 1, 0}})
	rng := rand.New(rand.NewPCG(1, 1))
	if err := u.Sample(rng, NewBatch(testSpec(), 3)); !errors.Is(err, ErrTooFew) {
		t.Errorf("got %v, want ErrTooFew", err)
	}
	if err := u.Sample(rng, NewBatch(testSpec(), 2)); err != nil {
		t.Error(err)
	}
	short := NewBatch(testSpec(), 2)
	short.Weight = short.Weight[:1]
	if err := u.Sample(rng, short); err == nil || errors.Is(err, ErrTooFew) {
		t.Errorf("a batch without room: got %v", err)
	}
}

func TestAddAndSampleDoNotAllocate(t *testing.T) {
	u, s := filled(t, 3)
	p, err := NewPrioritized(Config{Capacity: 64, NStep: 3, Gamma: 0.9}, DefaultPriorityConfig(), s.spec, 4)
	if err != nil {
		t.Fatal(err)
	}
	rng, dst := rand.New(rand.NewPCG(3, 4)), NewBatch(s.spec, 16)
	delta := make([]float32, 16)
	var calls [256]struct {
		b, next *env.Batch
		a       *env.Actions
	}
	for c := range calls { // a copy of played steps, to be added again and again
		s.play(c)
		calls[c].b, calls[c].next, calls[c].a = env.NewBatch(s.spec, 4), env.NewBatch(s.spec, 4), env.NewActions(s.spec, 4)
		calls[c].b.CopyFrom(s.b)
		calls[c].next.CopyFrom(s.next)
		copy(calls[c].a.Disc, s.a.Disc)
		s.turn()
	}
	k := 0
	run := func() {
		c := &calls[k%len(calls)]
		k++
		if u.Add(c.b, c.a, c.next) != nil || p.Add(c.b, c.a, c.next) != nil {
			t.Fatal("add failed")
		}
		if p.Len() < 16 {
			return
		}
		if u.Sample(rng, dst) != nil || p.Sample(rng, 0.5, dst) != nil || p.Update(dst.Index, delta) != nil {
			t.Fatal("sample failed")
		}
	}
	for i := 0; i < 2*len(calls); i++ {
		run()
	}
	if got := testing.AllocsPerRun(1000, run); got != 0 {
		t.Errorf("%v allocations a step, want 0", got)
	}
}

// benchmarkSpec resembles JobSelect's spec: 1,828 floats per observation and 11 actions. The benchmarks use 8 rows.
func benchmarkSpec() env.Spec {
	return env.Spec{ID: "Bench-v1", Obs: []env.Field{{Name: "x", Shape: []int{1828}, Low: -1, High: 1}},
		Action: env.ActionSpec{Sizes: []int{11}}}
}

func BenchmarkUniformAdd(b *testing.B) {
	s := benchmarkSpec()
	u, err := NewUniform(Config{Capacity: 10_000, NStep: 3, Gamma: 0.99}, s, 8)
	if err != nil {
		b.Fatal(err)
	}
	x, next, a := env.NewBatch(s, 8), env.NewBatch(s, 8), env.NewActions(s, 8)
	for i := range next.Kind {
		x.Kind[i], next.Kind[i], next.Mask[i*11] = env.Mid, env.Mid, true
	}
	for i := 0; i < 3000; i++ {
		if err := u.Add(x, a, next); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := u.Add(x, a, next); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPrioritizedSample(b *testing.B) {
	s := benchmarkSpec()
	p, err := NewPrioritized(Config{Capacity: 10_000, NStep: 3, Gamma: 0.99}, DefaultPriorityConfig(), s, 8)
	if err != nil {
		b.Fatal(err)
	}
	x, next, a := env.NewBatch(s, 8), env.NewBatch(s, 8), env.NewActions(s, 8)
	for i := range next.Kind {
		x.Kind[i], next.Kind[i] = env.Mid, env.Mid
	}
	for i := 0; i < 2000; i++ {
		if err := p.Add(x, a, next); err != nil {
			b.Fatal(err)
		}
	}
	rng, dst, delta := rand.New(rand.NewPCG(1, 1)), NewBatch(s, 64), make([]float32, 64)
	b.ReportAllocs()
	for b.Loop() {
		if err := p.Sample(rng, 0.4, dst); err != nil {
			b.Fatal(err)
		}
		if err := p.Update(dst.Index, delta); err != nil {
			b.Fatal(err)
		}
	}
}

// oneStep holds 50,000 transitions of one step.
func oneStep() Config { return Config{Capacity: 50_000, NStep: 1, Gamma: 0.99} }
