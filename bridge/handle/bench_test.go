package handle

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"clustergym/bridge/wire"
	"clustergym/env"
)

// wide is an environment with a row of 64 numbers that costs next to nothing, so that the benchmark measures the
// server.
type wide struct {
	spec env.Spec
	n    int
}

func newWide(parts int) *wide {
	s := env.Spec{ID: "Wide-v1", Action: env.ActionSpec{Sizes: []int{8}}, Info: []env.Field{{Name: "x"}}, NoOp: -1}
	for k := range parts {
		s.Obs = append(s.Obs, env.Field{Name: fmt.Sprintf("f%d", k), Shape: []int{64 / parts}, Low: 0, High: 1})
	}
	return &wide{spec: s}
}

func (e *wide) Spec() env.Spec { return e.spec }
func (e *wide) Close() error   { return nil }

func (e *wide) Reset(_ context.Context, _ env.Episode, ts *env.TimeStep) error {
	e.n = 0
	for i := range ts.Mask {
		ts.Mask[i] = true
	}
	ts.Kind, ts.Reward, ts.Elapsed = env.First, 0, 0
	return nil
}

func (e *wide) Step(_ context.Context, a env.Action, ts *env.TimeStep) error {
	e.n++
	ts.Kind, ts.Reward = env.Mid, 1
	if e.n%200 == 0 {
		ts.Kind = env.Truncated
	}
	ts.Obs[e.n%64] = float32(a.Disc[0]) / 8
	return nil
}

func wides() *testFactory {
	return &testFactory{makers: map[string]makeOne{
		"Wide-v1": func(wire.Map) (env.Env, error) { return newWide(1), nil },
		"Four-v1": func(wire.Map) (env.Env, error) { return newWide(4), nil },
	}}
}

// replay returns a function that plays the same step.
func replay(d *driver, n int, more ...wire.Pair) (step func() error) {
	a := make([]int64, n)
	for i := range a {
		a[i] = int64(i % 8)
	}
	req := d.frame(wire.OpStep, append(wire.Map{field("a", i64s(a...))}, more...))
	ctx := context.Background()
	return func() error {
		d.w.Reset()
		return d.h.Do(ctx, wire.OpStep, d.re, req, d.w)
	}
}

func TestStepsDoNotAllocate(t *testing.T) {
	for _, id := range []string{"Wide-v1", "Four-v1"} {
		for _, mode := range []string{"next_step", "same_step"} {
			for _, enc := range []wire.Encoding{wire.Ext, wire.MPNP} {
				d := newDriver(t, wides())
				d.enc, d.lim.Workers = enc, 1
				d.open(id, field("n", 64), field("autoreset", mode))
				d.do(wire.OpReset, field("seed", 1))
				step := replay(d, 64)
				for range 250 { // until buffers have grown and an episode has ended
					if err := step(); err != nil {
						t.Fatal(err)
					}
				}
				if n := testing.AllocsPerRun(450, func() { _ = step() }); n != 0 {
					t.Errorf("%s, %s, %v: %v allocations", id, mode, enc, n)
				}
			}
		}
	}
}

func TestThePaceFollowsTheWork(t *testing.T) {
	most := min(runtime.GOMAXPROCS(0), 64)
	var p pace
	p.init(0)
	if p.choose(64, 1) != 1 {
		t.Error("the first call is shared before anybody knows what it costs")
	}
	p.took(6400*time.Microsecond, 64)
	if got := p.choose(64, 1); got != most {
		t.Errorf("64 rows of 100 µs on %d goroutines, want %d", got, most)
	}
	if got := p.choose(64, most); got != 1 {
		t.Errorf("64 rows of 100 µs on %d goroutines while others keep all processors busy", got)
	}
	if got := p.choose(1, 1); got != 1 {
		t.Errorf("one row on %d goroutines", got)
	}
	for range 100 {
		p.choose(64, 1)
		p.took(6400*time.Nanosecond/time.Duration(p.workers), 64)
	}
	if got := p.choose(64, 1); got != 1 {
		t.Errorf("64 rows of 100 ns on %d goroutines", got)
	}
	if got := p.most(64); got != most {
		t.Errorf("a reset of 64 rows on %d goroutines, want %d", got, most)
	}
	p.init(3)
	p.took(time.Second, 64)
	if p.choose(64, 1) != 3 || p.most(64) != 3 {
		t.Error("a number that was given does not hold")
	}
}

func BenchmarkStep(b *testing.B) {
	for _, n := range []int{1, 64, 1024} {
		for _, id := range []string{"Wide-v1", "Four-v1"} {
			b.Run(fmt.Sprintf("%s/n=%d", id, n), func(b *testing.B) {
				d := newDriver(b, wides())
				d.open(id, field("n", n))
				d.do(wire.OpReset, field("seed", 1))
				step := replay(d, n)
				b.ReportAllocs()
				for b.Loop() {
					if err := step(); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "env-steps/s")
			})
		}
	}
}
