package replay

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"clustergym/env"
)

// addRow adds one step of a one-row rollout.
func addRow(t *testing.T, r *Rollout, kind env.Kind, reward float64, elapsed time.Duration, value, final float32) {
	t.Helper()
	s := testSpec()
	b, next, a := env.NewBatch(s, 1), env.NewBatch(s, 1), env.NewActions(s, 1)
	next.Kind[0], next.Reward[0], next.Elapsed[0] = kind, reward, elapsed
	if err := r.Add(b, a, next, []float32{-1}, []float32{value}, []float32{final}); err != nil {
		t.Fatal(err)
	}
}

// Five steps on paper, gamma 0.5 per hour, lambda 0.5, with all quantities exact in binary.
//
//	t  kind        r  d     V   V(next)
//	0  Mid         1  0.5   2   V1 = 4
//	1  Truncated   2  0.5   4   Final = 8
//	2  Mid         3  0.25  1   V3 = 2      (two hours)
//	3  Terminated  4  0     2   –
//	4  Mid         5  1     6   last = 10   (no time passes)
//
//	δ4 = 5 + 10 − 6 = 9           A4 = 9
//	δ3 = 4 − 2 = 2                A3 = 2                          (terminated)
//	δ2 = 3 + 0.25·2 − 1 = 2.5     A2 = 2.5 + 0.25·0.5·2 = 2.75
//	δ1 = 2 + 0.5·8 − 4 = 2        A1 = 2                          (truncated: A2 is another episode's)
//	δ0 = 1 + 0.5·4 − 2 = 1        A0 = 1 + 0.5·0.5·2 = 1.5
func TestAdvantagesByHand(t *testing.T) {
	r, err := NewRollout(testSpec(), 5, 1, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	h := time.Hour
	addRow(t, r, env.Mid, 1, h, 2, 99)
	addRow(t, r, env.Truncated, 2, h, 4, 8)
	addRow(t, r, env.Mid, 3, 2*h, 1, 99)
	addRow(t, r, env.Terminated, 4, h, 2, 99)
	if err := r.Advantages([]float32{10}, 0.5, 1); !errors.Is(err, ErrUnfinished) {
		t.Errorf("before the last step: got %v, want ErrUnfinished", err)
	}
	addRow(t, r, env.Mid, 5, 0, 6, 99)
	if err := r.Advantages([]float32{10}, 0.5, 1); err != nil {
		t.Fatal(err)
	}
	for i, want := range []float32{1.5, 2, 2.75, 2, 9} {
		if r.Advantage[i] != want {
			t.Errorf("A%d is %v, want %v", i, r.Advantage[i], want)
		}
		if r.Return[i] != want+r.Value[i] {
			t.Errorf("return %d is %v, want %v", i, r.Return[i], want+r.Value[i])
		}
	}

	// Rewards scaled by 2: δ = 14, 6, 5.5, 4, 2 from the last to the first.
	if err := r.Advantages([]float32{10}, 0.5, 2); err != nil {
		t.Fatal(err)
	}
	for i, want := range []float32{2 + 0.25*4, 4, 5.5 + 0.125*6, 6, 14} {
		if r.Advantage[i] != want {
			t.Errorf("scaled: A%d is %v, want %v", i, r.Advantage[i], want)
		}
	}

	addErr := r.Add(env.NewBatch(testSpec(), 1), env.NewActions(testSpec(), 1), env.NewBatch(testSpec(), 1), []float32{0},
		nil, nil)
	if !errors.Is(addErr, ErrFull) {
		t.Errorf("a sixth step: got %v, want ErrFull", addErr)
	}
	if r.Reset(); r.Len() != 0 || r.Full() {
		t.Error("not empty after Reset")
	}
}

// A truncation in the last step bootstraps from its final observation, not from the next episode's first one. With
// lambda by simulated time, a step that takes none hands on the whole of what follows, and one of two hours lambda².
// Gamma 1, lambda 0.5 per hour:
//
//	t  kind  r  hours  V  V(next)
//	0  Mid   1  0      2  1         δ0 = 0    A0 = 0 + 1·6.5 = 6.5
//	1  Mid   3  2      1  2         δ1 = 4    A1 = 4 + ¼·10 = 6.5
//	2  Mid   4  1      2  last 8    δ2 = 10   A2 = 10
func TestLambdaBySimulatedTime(t *testing.T) {
	r, err := NewRollout(testSpec(), 3, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	r.Timed()
	r.LambdaTau = time.Hour
	addRow(t, r, env.Mid, 1, 0, 2, 99)
	addRow(t, r, env.Mid, 3, 2*time.Hour, 1, 99)
	addRow(t, r, env.Mid, 4, time.Hour, 2, 99)
	check := func(r *Rollout, want ...float32) {
		t.Helper()
		if err := r.Advantages([]float32{8}, 0.5, 1); err != nil {
			t.Fatal(err)
		}
		for i, a := range want {
			if r.Advantage[i] != a {
				t.Errorf("A%d is %v, want %v", i, r.Advantage[i], a)
			}
		}
	}
	check(r, 6.5, 6.5, 10)
	var w bytes.Buffer
	if _, err := r.WriteTo(&w); err != nil {
		t.Fatal(err)
	}
	read, _ := NewRollout(testSpec(), 3, 1, 1)
	if _, err := read.ReadFrom(bytes.NewReader(w.Bytes())); err == nil {
		t.Error("a rollout without times read one that has them")
	}
	read.Timed()
	read.LambdaTau = time.Hour
	if _, err := read.ReadFrom(&w); err != nil {
		t.Fatal(err)
	}
	check(read, 6.5, 6.5, 10)
	r.LambdaTau = 0 // per decision
	check(r, 4.5, 9, 10)
}

func TestTruncationInTheLastStep(t *testing.T) {
	for _, c := range []struct {
		kind env.Kind
		want float32
	}{{env.Mid, 1 + 0.5*10 - 2}, {env.Truncated, 1 + 0.5*8 - 2}, {env.Terminated, 1 - 2}} {
		r, err := NewRollout(testSpec(), 1, 1, 0.5)
		if err != nil {
			t.Fatal(err)
		}
		addRow(t, r, c.kind, 1, time.Hour, 2, 8)
		if err := r.Advantages([]float32{10}, 0.9, 1); err != nil {
			t.Fatal(err)
		}
		if r.Advantage[0] != c.want {
			t.Errorf("%v: A is %v, want %v", c.kind, r.Advantage[0], c.want)
		}
	}
}

// The reset step of NextStep batches changes nothing: the same episodes without it give the same advantages.
func TestResetStepIsLeftOut(t *testing.T) {
	r, err := NewRollout(testSpec(), 4, 1, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	addRow(t, r, env.Mid, 1, time.Hour, 2, 99)
	addRow(t, r, env.Truncated, 2, time.Hour, 4, 8)
	addRow(t, r, env.First, 0, 0, 1234, 99) // V of the ended episode's observation
	addRow(t, r, env.Mid, 3, time.Hour, 1, 99)
	if err := r.Advantages([]float32{10}, 0.5, 1); err != nil {
		t.Fatal(err)
	}
	for i, want := range []float32{1.5, 2, 0, 3 + 5 - 1} {
		if r.Advantage[i] != want || r.Live[i] != (i != 2) {
			t.Errorf("step %d: A is %v, live %v, want %v", i, r.Advantage[i], r.Live[i], want)
		}
	}
}

// GAE is the exponentially weighted mean of k-step advantages; here that sum is computed literally.
func TestAdvantagesEqualTheirDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 9))
	const steps, rows, lambda = 40, 3, 0.8
	s := newStream(rows, nextStep, rng)
	r, err := NewRollout(s.spec, steps, rows, 0.9)
	if err != nil {
		t.Fatal(err)
	}
	logp, value, final, last := make([]float32, rows), make([]float32, rows), make([]float32, rows), make([]float32, rows)
	draw := func(dst []float32) {
		for i := range dst {
			dst[i] = float32(rng.NormFloat64())
		}
	}
	for c := 0; c < steps; c++ {
		s.play(c)
		draw(value)
		draw(final)
		if err := r.Add(s.b, s.a, s.next, logp, value, final); err != nil {
			t.Fatal(err)
		}
		s.turn()
	}
	draw(last)
	if err := r.Advantages(last, lambda, 1); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < rows; i++ {
		for t0 := 0; t0 < steps; t0++ {
			if !r.Live[t0*rows+i] {
				continue
			}
			want, w := 0.0, 1.0
			for u := t0; u < steps; u++ {
				k := u*rows + i
				v := float64(last[i])
				if u+1 < steps {
					v = float64(r.Value[k+rows])
				}
				if r.End[k] {
					v = float64(r.Final[k])
				}
				want += w * (float64(r.Reward[k]) + float64(r.Discount[k])*v - float64(r.Value[k]))
				w *= float64(r.Discount[k]) * float64(float32(lambda))
				if r.End[k] {
					break
				}
			}
			if got := float64(r.Advantage[t0*rows+i]); math.Abs(got-want) > 1e-6*(1+math.Abs(want)) {
				t.Fatalf("row %d step %d: A is %v, want %v", i, t0, got, want)
			}
		}
	}
}

func TestExplainedVariance(t *testing.T) {
	r, err := NewRollout(testSpec(), 4, 1, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < 4; i++ {
		addRow(t, r, env.Mid, 0, 0, 0, 0)
	}
	copy(r.Return, []float32{1, 2, 3, 4})
	for name, c := range map[string]struct {
		value []float32
		want  float64
	}{
		"perfect":     {[]float32{1, 2, 3, 4}, 1},
		"constant":    {[]float32{7, 7, 7, 7}, 0},
		"reversed":    {[]float32{4, 3, 2, 1}, -3},
		"half as far": {[]float32{0.5, 1, 1.5, 2}, 0.75},
	} {
		copy(r.Value, c.value)
		if got := r.ExplainedVariance(); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
	copy(r.Return, []float32{5, 5, 5, 5})
	if got := r.ExplainedVariance(); got != 0 {
		t.Errorf("constant returns, wrong critic: got %v, want 0", got)
	}
	copy(r.Value, r.Return)
	if got := r.ExplainedVariance(); got != 1 {
		t.Errorf("constant returns, perfect critic: got %v, want 1", got)
	}
}

// Worked by hand: rewards 1, 2 (ends), 4 with discount 0.5 give the sums 1, 2.5 and 4.
func TestReturnScale(t *testing.T) {
	s := testSpec()
	scale := NewReturnScale(1)
	if scale.Scale() != 1 {
		t.Errorf("before anything was seen: %v, want 1", scale.Scale())
	}
	b := env.NewBatch(s, 1)
	step := func(kind env.Kind, reward float64) {
		b.Kind[0], b.Reward[0], b.Elapsed[0] = kind, reward, time.Hour
		scale.Observe(s, 0.5, b)
	}
	step(env.Mid, 1)
	step(env.Terminated, 2)
	step(env.First, 0) // of a NextStep batch: not counted
	step(env.Mid, 4)
	mean := (1 + 2.5 + 4) / 3
	want := math.Sqrt(((1-mean)*(1-mean) + (2.5-mean)*(2.5-mean) + (4-mean)*(4-mean)) / 3)
	if got := scale.Scale(); math.Abs(got-want) > 1e-12 {
		t.Errorf("got %v, want %v", got, want)
	}

	same := NewReturnScale(1)
	b.Kind[0], b.Reward[0] = env.Terminated, -3
	for i := 0; i < 100; i++ {
		same.Observe(s, 0.5, b)
	}
	if got := same.Scale(); math.Abs(got-3) > 1e-9 {
		t.Errorf("returns that are always -3: %v, want 3", got)
	}
	if err := same.Check(2); err == nil {
		t.Error("one row for two: no error")
	}
}

func TestRolloutAddDoesNotAllocate(t *testing.T) {
	s := newStream(4, sameStep, rand.New(rand.NewPCG(1, 2)))
	r, err := NewRollout(s.spec, 8, 4, 0.9)
	if err != nil {
		t.Fatal(err)
	}
	s.play(0)
	col := make([]float32, 4)
	if got := testing.AllocsPerRun(100, func() {
		if r.Full() {
			if r.Advantages(col, 0.9, 1) != nil {
				t.Fatal("advantages failed")
			}
			r.Reset()
		}
		if r.Add(s.b, s.a, s.next, col, col, col) != nil {
			t.Fatal("add failed")
		}
	}); got != 0 {
		t.Errorf("%v allocations a step, want 0", got)
	}
}

// A rollout cut after three of five steps equals a rollout of three steps, and stays full until it is reset.
func TestACutRolloutEndsWhereItWasCut(t *testing.T) {
	h := time.Hour
	r, err := NewRollout(testSpec(), 5, 1, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	short, err := NewRollout(testSpec(), 3, 1, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	if r.Cut(); r.Full() {
		t.Error("an empty rollout was cut")
	}
	for range 2 { // the second time over the leftovers of the first
		for _, x := range []*Rollout{r, short} {
			addRow(t, x, env.Mid, 1, h, 2, 99)
			addRow(t, x, env.Truncated, 2, h, 4, 8)
			addRow(t, x, env.Mid, 3, 2*h, 1, 99)
		}
		before := saved(t, r)
		if err := r.Advantages([]float32{10}, 0.5, 1); !errors.Is(err, ErrUnfinished) {
			t.Errorf("before the cut: got %v, want ErrUnfinished", err)
		}
		r.Cut()
		if err := errors.Join(r.Advantages([]float32{10}, 0.5, 1), short.Advantages([]float32{10}, 0.5, 1)); err != nil {
			t.Fatal(err)
		}
		for i, want := range short.Advantage { // δ2 = 3 + 0.25·10 − 1 = 4.5
			if r.Advantage[i] != want || r.Return[i] != short.Return[i] || i == 2 && want != 4.5 {
				t.Errorf("step %d: advantage %v and return %v, want %v and %v", i, r.Advantage[i], r.Return[i], want,
					short.Return[i])
			}
		}
		if got, want := r.ExplainedVariance(), short.ExplainedVariance(); got != want {
			t.Errorf("explained variance %v, want %v", got, want)
		}
		a := env.NewActions(testSpec(), 1)
		if err := r.Add(env.NewBatch(testSpec(), 1), a, env.NewBatch(testSpec(), 1), []float32{0}, nil, nil); !errors.Is(err,
			ErrFull) || r.Len() != 3 {
			t.Errorf("a step after the cut: %v with %d steps, want ErrFull with 3", err, r.Len())
		}
		if !bytes.Equal(saved(t, r), before) {
			t.Error("what is saved says that it was cut")
		}
		if _, err := r.ReadFrom(bytes.NewReader(before)); err != nil || r.Full() || r.Len() != 3 {
			t.Errorf("read again: full %v with %d steps (%v), want 3 and more to come", r.Full(), r.Len(), err)
		}
		r.Cut()
		r.Reset()
		short.Reset()
		if r.Full() || r.Len() != 0 {
			t.Error("not empty after Reset")
		}
		addRow(t, r, env.Mid, 1, h, 2, 99)
		if r.Full() {
			t.Error("full after one step")
		}
		r.Reset()
	}
}
