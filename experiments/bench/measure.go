package bench

import (
	"context"
	"runtime"
	"time"
)

// A row's work is done once to warm up and then in rounds, in each as often as it takes to last this long; the best
// round counts. Work that takes longer is a round by itself.
const (
	benchRounds = 3
	benchRound  = 500 * time.Millisecond
	quickRound  = 10 * time.Millisecond
)

// work does some units of work.
type work func(ctx context.Context) (units int, err error)

// measure adds row: how fast do goes.
func (b *bench) measure(ctx context.Context, row Row, do work) error {
	return b.measureAfter(ctx, row, nil, do)
}

// measureAfter is measure where something must be prepared before each do, which does not count.
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
	least := benchRound
	if b.cfg.Quick {
		least = quickRound
	}
	for range benchRounds {
		before := b.calibrate()
		r, err := b.round(ctx, least, prepare, do)
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

// round is what came of doing work again and again. Times are in seconds.
type round struct {
	units, runs int
	wall, cpu   float64 // cpu is 0 where the system does not tell
	allocs      float64
}

// round does do for least or longer, prepare, which may be nil, left out.
func (b *bench) round(ctx context.Context, least time.Duration, prepare func(ctx context.Context) error, do work) (r round, err error) {
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

// fill takes over a round and what the machine gave before and after it.
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

// calibration is the speed of two loops in steps per second of processor time: the one lives in registers, the other
// waits for memory.
type calibration struct{ loop, walk float64 }

const (
	walkLen   = 1 << 24 // places, 64 MiB: more than processors keep near
	walkSteps = 1 << 14 // between two looks at the clock
	loopSteps = 1 << 20
)

// prepare makes the walk and takes first figures.
func (b *bench) prepare() {
	if b.walk != nil {
		return
	}
	b.walk = make([]uint32, walkLen)
	fillWalk(b.walk)
	for _, name := range []string{"steps of a loop of shifts and exclusive ors", "steps of a walk through 64 MiB in no order"} {
		b.report.Calibration = append(b.report.Calibration, Row{Group: "calibration", What: name, Unit: "steps/s", Runs: 1})
	}
	b.calibrate()
}

// fillWalk makes a cycle through all places of walk, a power of 2 of them, by a linear congruential generator of full
// period (Hull and Dobell, SIAM Review 4, 1962), which no processor foresees.
func fillWalk(walk []uint32) {
	for i := range walk {
		walk[i] = (uint32(i)*1664525 + 1013904223) % uint32(len(walk))
	}
}

// calibrate measures both loops, and keeps the best of the run.
func (b *bench) calibrate() calibration {
	return calibration{
		loop: b.steps(&b.report.Calibration[0], loopSteps, loop),
		walk: b.steps(&b.report.Calibration[1], walkSteps, b.around),
	}
}

// steps does n steps several times and returns the best rate per second of processor time.
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
			continue // a clock that does not run
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

// kept keeps the compiler from leaving the loops out.
var kept uint64

// loop is Marsaglia's xorshift64, each step of which needs the one before.
func loop(n int) {
	x := kept | 1
	for range n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	kept = x
}

func (b *bench) around(n int) {
	at := uint32(kept % walkLen)
	for range n {
		at = b.walk[at]
	}
	kept += uint64(at)
}
