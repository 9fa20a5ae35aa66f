package speed

import (
	"context"
	"runtime"
	"time"
)

// A row's work runs once to warm up, and then in rounds. In each round it runs again and again until this time has
// passed, at least once. The best round counts.
const (
	rounds     = 3
	fullRound  = 500 * time.Millisecond
	quickRound = 10 * time.Millisecond
)

// work does some units of work.
type work func(ctx context.Context) (units int, err error)

// least returns how long a round lasts at least.
func (b *bench) least() time.Duration {
	if b.cfg.Quick {
		return quickRound
	}
	return fullRound
}

// measure measures the speed of do and adds row to the report.
func (b *bench) measure(ctx context.Context, row Row, do work) error {
	return b.measureAfter(ctx, row, nil, do)
}

// measureAfter is measure with a preparation before each run of do, which does not count. prepare may be nil.
func (b *bench) measureAfter(ctx context.Context, row Row, prepare func(ctx context.Context) error, do work) error {
	b.say(row.name())
	if prepare != nil {
		if err := prepare(ctx); err != nil {
			return err
		}
	}
	if _, err := do(ctx); err != nil {
		return err
	}
	for range rounds {
		before := b.calibrate()
		r, err := b.round(ctx, b.least(), prepare, do)
		if err != nil {
			return err
		}
		if rate := float64(r.units) / r.wall; rate > row.Rate {
			row.fill(r, before, b.calibrate())
		}
	}
	b.report.Rows = append(b.report.Rows, row)
	return nil
}

// round is the outcome of running work again and again. Times are in seconds.
type round struct {
	units, runs int
	wall, cpu   float64 // cpu is 0 if the system does not report it
	allocs      float64
}

// round runs do until it has taken least in total, without the time of prepare, which may be nil.
func (b *bench) round(ctx context.Context, least time.Duration, prepare func(ctx context.Context) error,
	do work) (r round, err error) {
	for r.runs == 0 || r.wall < least.Seconds() {
		if prepare != nil {
			if err := prepare(ctx); err != nil {
				return r, err
			}
		}
		left := least.Seconds() - r.wall
		var from, to runtime.MemStats
		runtime.ReadMemStats(&from)
		cpu, begin := processorTime(), b.hooks.Now()
		for again := true; again; {
			if err := ctx.Err(); err != nil {
				return r, err
			}
			n, err := do(ctx)
			if err != nil {
				return r, err
			}
			r.units += n
			r.runs++
			again = prepare == nil && b.hooks.Now().Sub(begin).Seconds() < left
		}
		r.wall += b.hooks.Now().Sub(begin).Seconds()
		r.cpu += (processorTime() - cpu).Seconds()
		runtime.ReadMemStats(&to)
		r.allocs += float64(to.Mallocs - from.Mallocs)
	}
	return r, nil
}

// fill sets the row's figures from a round and the calibrations before and after it.
func (r *Row) fill(m round, before, after calibration) {
	n := float64(m.units)
	r.Rate, r.Allocs, r.Runs, r.WallS, r.CPUShare = n/m.wall, m.allocs/n, m.runs, m.wall, m.cpu/m.wall
	spent := m.cpu
	if spent == 0 {
		spent = m.wall
	}
	r.Loop = spent / n * (before.loop + after.loop) / 2
	r.Walk = spent / n * (before.walk + after.walk) / 2
}

// calibration is the speed of two loops in steps per second of processor time. One works in registers, the other waits
// for memory.
type calibration struct{ loop, walk float64 }

const (
	walkLen   = 1 << 24 // places, together 64 MiB: more than a processor's caches hold
	walkSteps = 1 << 14 // between two readings of the clock
	loopSteps = 1 << 20
)

// prepare makes the walk and measures both loops a first time.
func (b *bench) prepare() {
	if b.walk != nil {
		return
	}
	b.walk = make([]uint32, walkLen)
	fillWalk(b.walk)
	for _, name := range []string{"steps of a loop of shifts and exclusive ors",
		"steps of a walk through 64 MiB in no order"} {
		b.report.Calibration = append(b.report.Calibration, Row{Group: "calibration", What: name, Unit: "steps/s", Runs: 1})
	}
	b.calibrate()
}

// fillWalk makes a cycle through all places of walk, whose length is a power of 2. It uses a linear congruential
// generator of full period (Hull and Dobell, SIAM Review 4, 1962), so that processors cannot predict the next place.
func fillWalk(walk []uint32) {
	for i := range walk {
		walk[i] = (uint32(i)*1664525 + 1013904223) % uint32(len(walk))
	}
}

// calibrate measures both loops. The report keeps the best figures of the run.
func (b *bench) calibrate() calibration {
	return calibration{
		loop: b.steps(&b.report.Calibration[0], loopSteps, loop),
		walk: b.steps(&b.report.Calibration[1], walkSteps, b.around),
	}
}

// steps runs do(n) several times and returns the best rate in steps per second of processor time.
func (b *bench) steps(row *Row, n int, do func(n int)) float64 {
	best, times := 0.0, 4
	if b.cfg.Quick {
		times = 1
	}
	for range times {
		cpu, begin := processorTime(), b.hooks.Now()
		do(n)
		wall, spent := b.hooks.Now().Sub(begin).Seconds(), (processorTime() - cpu).Seconds()
		if wall <= 0 {
			continue // the clock does not advance
		}
		if rate := float64(n) / wall; rate > row.Rate {
			row.Rate, row.WallS, row.CPUShare = rate, wall, min(1, spent/wall)
		}
		if spent <= 0 {
			spent = wall
		}
		best = max(best, float64(n)/spent)
	}
	return best
}

// kept keeps the compiler from removing the loops.
var kept uint64

// loop takes n steps of Marsaglia's xorshift64, each of which depends on the one before.
func loop(n int) {
	x := kept | 1
	for range n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	kept = x
}

// around takes n steps of the walk.
func (b *bench) around(n int) {
	at := uint32(kept % walkLen)
	for range n {
		at = b.walk[at]
	}
	kept += uint64(at)
}
