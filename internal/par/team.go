package par

import (
	"context"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
)

// Team runs one call after the other on the same goroutines, which live until Close. Each worker begins with a block of
// indices of its own, the same in every call of the same size, so what the work on an index touches stays in the caches
// of one processor. A worker that has done its block takes indices from the end of the block of another that stands
// still, as in a long piece of work: taking an index from one that goes on costs more than waiting, because what the
// work touches then moves from cache to cache. A Team does not allocate in steady state. Its methods must not be called
// concurrently.
type Team struct {
	// Of the current call. They are written before blocks, and read after an index has been taken from there. Nothing in
	// their cache lines is written while the call lasts.
	ctx    context.Context
	fn     func(worker, i int)
	part   int // indices taken at once
	n      int
	blocks []block
	calls  atomic.Uint32
	active atomic.Int32 // workers of the current call
	failed atomic.Bool  // the context has ended
	ending atomic.Bool
	_      [cacheLine]byte

	left  atomic.Int64  // parts that are not done, or that their worker has not yet counted
	waits atomic.Bool   // the caller sleeps until left is 0
	done  chan struct{} // wakes it
	wg    sync.WaitGroup
}

// block is what is left of a worker's indices: from part (the low 16 bits) up to, not including, the part in the next
// 16 bits. The high 32 bits are the number of the call, so that a worker that was held up cannot take part in the next
// call unnoticed. The blocks of two workers are on different cache lines.
type block struct {
	parts  atomic.Uint64
	asleep atomic.Bool
	wake   chan struct{}
	_      [cacheLine - 24]byte
}

const (
	// cacheLine is two lines, because processors fetch them in pairs.
	cacheLine = 128
	// partsPerWorker is the number of parts of a block: the fewer, the longer workers wait for the last one.
	partsPerWorker = 16
	// patience is how often a worker without work looks for more before it sleeps: some 50 µs. Waking it takes as long.
	patience = 20_000
	// stamina is how often a worker without work looks at most while a call lasts: some 2 ms.
	stamina = 40 * patience
	// yieldEvery is how many of these looks are between two in which other goroutines may run.
	yieldEvery = 1024
	// stillness is how often a worker without work looks at a block before it believes that its worker stands still: some
	// 5 µs. Between two looks it is idle for glance rounds, because every look takes the block's cache line from its
	// worker.
	stillness = 25
	glance    = 200
	// mostWorkers keeps the number of parts within 16 bits.
	mostWorkers = 1024
	noPart      = math.MaxUint16
	// again is how often a worker that has waited in vain sleeps at once.
	again = 15
)

// NewTeam returns a team without goroutines; calls start them.
func NewTeam() *Team { return &Team{done: make(chan struct{}, 1)} }

// Run calls fn(worker, i) once for every i in [0, n), on at most workers goroutines with the caller's, and waits for
// all of them. worker is in [0, workers), and no two calls with the same worker overlap. When ctx ends, Run starts no
// further calls and returns its error.
func (t *Team) Run(ctx context.Context, workers, n int, fn func(worker, i int)) error {
	workers = min(workers, n, mostWorkers)
	if workers < 2 {
		for i := range n {
			if err := ctx.Err(); err != nil {
				return err
			}
			fn(0, i)
		}
		return nil
	}
	t.grow(workers)
	part := max(1, n/(workers*partsPerWorker))
	parts := (n + part - 1) / part
	t.ctx, t.fn, t.part, t.n = ctx, fn, part, n
	t.failed.Store(false)
	t.left.Store(int64(parts))
	t.active.Store(int32(workers))
	call := t.calls.Load() + 1
	for w := range t.blocks[:workers] {
		t.blocks[w].parts.Store(uint64(call)<<32 | uint64((w+1)*parts/workers)<<16 | uint64(w*parts/workers))
	}
	t.calls.Store(call)
	for w := 1; w < workers; w++ {
		if b := &t.blocks[w]; b.asleep.Load() && b.asleep.CompareAndSwap(true, false) {
			b.wake <- struct{}{}
		}
	}
	t.work(0, call)
	t.wait()
	t.ctx, t.fn = nil, nil
	if t.failed.Load() {
		return ctx.Err()
	}
	return nil
}

// grow starts goroutines until there are workers with the caller's.
func (t *Team) grow(workers int) {
	if workers <= len(t.blocks) {
		return
	}
	t.end()
	t.blocks = make([]block, workers)
	for w := 1; w < workers; w++ {
		b := &t.blocks[w]
		b.wake = make(chan struct{}, 1)
		seen := t.calls.Load()
		t.wg.Go(func() { t.stay(w, b, seen) })
	}
}

// Close ends the goroutines. Closing twice is harmless.
func (t *Team) Close() {
	t.end()
	t.blocks = nil
}

func (t *Team) end() {
	t.ending.Store(true)
	for w := range t.blocks {
		if b := &t.blocks[w]; b.asleep.CompareAndSwap(true, false) {
			b.wake <- struct{}{}
		}
	}
	t.wg.Wait()
	t.ending.Store(false)
}

// stay takes part in calls until the team ends. seen is the number of calls before.
func (t *Team) stay(w int, b *block, seen uint32) {
	vain := 0 // how often it is still to sleep at once
	for !t.ending.Load() {
		if n := t.calls.Load(); n != seen {
			seen = n
			t.work(w, n)
			continue
		}
		if vain == 0 && t.look(seen) {
			continue
		}
		if vain--; vain < 0 {
			vain = again
		}
		b.asleep.Store(true)
		if (t.calls.Load() != seen || t.ending.Load()) && b.asleep.CompareAndSwap(true, false) {
			continue
		}
		<-b.wake
	}
}

// look waits a while for the next call, and reports whether it has come. Its patience counts from the end of the
// present one. Where there are more workers than processors, a worker that waits would keep another from its work.
func (t *Team) look(seen uint32) bool {
	if t.crowded() {
		return false
	}
	for i, after := 0, 0; i < stamina && after < patience; i++ {
		if t.calls.Load() != seen || t.ending.Load() {
			return true
		}
		if t.left.Load() == 0 {
			after++
		}
		if i%yieldEvery == yieldEvery-1 {
			runtime.Gosched()
		}
	}
	return false
}

// crowded reports whether there are more workers than processors.
func (t *Team) crowded() bool { return len(t.blocks) > runtime.GOMAXPROCS(0) }

// work does parts of w's own block, then those of others, until the call has none. If the call has ended meanwhile,
// there are none: active may then be that of the next call, but no part is of this one.
func (t *Team) work(w int, call uint32) {
	active := int(t.active.Load())
	if w >= active {
		return
	}
	did := 0 // parts that are not counted yet: counting each would cost a cache line that all workers share
	for {
		k, ok := t.blocks[w].first(call)
		if !ok {
			t.count(w, did)
			break
		}
		t.do(w, k)
		did++
	}
	for i := 1; i < active; i++ {
		b := &t.blocks[(w+i)%active]
		for from, ok := t.still(b, call); ok; from, ok = t.still(b, call) {
			for b.at(call) == from { // it has not moved since
				k, ok := b.last(call)
				if !ok {
					break
				}
				t.do(w, k)
				t.count(w, 1)
			}
		}
	}
}

// count takes the parts that worker w has done off those that are left.
func (t *Team) count(w, did int) {
	if did > 0 && t.left.Add(int64(-did)) == 0 && w != 0 && t.waits.Load() && t.waits.CompareAndSwap(true, false) {
		t.done <- struct{}{}
	}
}

// still waits until b's worker has stood still for a while, and returns the part at which it stands; ok is false if
// nothing of the block is left.
func (t *Team) still(b *block, call uint32) (from uint16, ok bool) {
	crowded := t.crowded()
	for looks := 0; ; looks++ {
		x := b.parts.Load()
		if uint16(x) >= uint16(x>>16) || uint32(x>>32) != call {
			return 0, false
		}
		if now := uint16(x); now != from {
			from, looks = now, 0
		}
		if looks == stillness || crowded {
			return from, true
		}
		for i := 0; i < glance && !t.ending.Load(); i++ { // reads a line that nobody writes
		}
		if looks%8 == 7 {
			runtime.Gosched()
		}
	}
}

func (t *Team) do(w, k int) {
	for i := k * t.part; i < min((k+1)*t.part, t.n); i++ {
		if t.failed.Load() {
			return
		}
		if t.ctx.Err() != nil {
			t.failed.Store(true)
			return
		}
		t.fn(w, i)
	}
}

// wait waits until all parts are done.
func (t *Team) wait() {
	for i := range patience {
		if t.left.Load() == 0 {
			return
		}
		if i%yieldEvery == yieldEvery-1 {
			runtime.Gosched()
		}
	}
	for t.left.Load() > 0 {
		t.waits.Store(true)
		if t.left.Load() == 0 && t.waits.CompareAndSwap(true, false) {
			return
		}
		<-t.done // perhaps of a worker that was held up after the last part of an earlier call
	}
}

// first takes the first part of a block.
func (b *block) first(call uint32) (k int, ok bool) {
	for {
		x := b.parts.Load()
		from, to := uint16(x), uint16(x>>16)
		if from >= to || uint32(x>>32) != call {
			return 0, false
		}
		if b.parts.CompareAndSwap(x, x+1) {
			return int(from), true
		}
	}
}

// at returns the first part of a block that is left; none has the number noPart.
func (b *block) at(call uint32) uint16 {
	x := b.parts.Load()
	if uint32(x>>32) != call {
		return noPart
	}
	return uint16(x)
}

// last takes the last part of a block.
func (b *block) last(call uint32) (k int, ok bool) {
	for {
		x := b.parts.Load()
		from, to := uint16(x), uint16(x>>16)
		if from >= to || uint32(x>>32) != call {
			return 0, false
		}
		if b.parts.CompareAndSwap(x, x-1<<16) {
			return int(to) - 1, true
		}
	}
}
