package par

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

func TestATeamDoesEveryIndexOnce(t *testing.T) {
	team := NewTeam()
	defer team.Close()
	for round := range 50 {
		for _, workers := range []int{-1, 0, 1, 2, 3, 8, 100, 2} {
			for _, n := range []int{0, 1, 2, 7, 64, 1000} {
				done := make([]int32, n)
				busy := make([]atomic.Bool, max(workers, 1))
				err := team.Run(ctx, workers, n, func(worker, i int) {
					if busy[worker].Swap(true) {
						t.Errorf("worker %d is called while it works", worker)
					}
					done[i]++ // without a lock: the race detector watches
					if round%10 == 0 && i%3 == 0 {
						runtime.Gosched()
					}
					busy[worker].Store(false)
				})
				if err != nil {
					t.Fatal(err)
				}
				for i, k := range done {
					if k != 1 {
						t.Fatalf("%d workers: index %d of %d was done %d times", workers, i, n, k)
					}
				}
			}
		}
	}
}

// Workers that are all there from the begin do their own blocks, the same in each call.
func TestATeamKeepsItsBlocks(t *testing.T) {
	const workers, n, calls = 3, 60, 20
	team := NewTeam()
	defer team.Close()
	for call := range calls {
		var by [n]int
		var there atomic.Int32
		var first [workers]atomic.Bool
		err := team.Run(ctx, workers, n, func(worker, i int) {
			by[i] = worker
			if !first[worker].Swap(true) { // every worker waits in its first index until all have come
				for there.Add(1); there.Load() < workers; {
					runtime.Gosched()
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		for w := range workers {
			if by[w*n/workers] != w {
				t.Fatalf("call %d: the first index of block %d was done by worker %d", call, w, by[w*n/workers])
			}
		}
	}
}

func TestATeamHelpsTheSlow(t *testing.T) {
	team := NewTeam()
	defer team.Close()
	var others atomic.Int32
	err := team.Run(ctx, 2, 40, func(_, i int) {
		if i != 0 {
			others.Add(1)
			return
		}
		// index 0 ends last, so somebody else has done its worker's block
		for end := time.Now().Add(20 * time.Second); others.Load() < 39; runtime.Gosched() {
			if time.Now().After(end) {
				t.Error("nobody has done the rest")
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestATeamStopsWithItsContext(t *testing.T) {
	team := NewTeam()
	defer team.Close()
	for _, workers := range []int{1, 2, 4} {
		c, cancel := context.WithCancel(ctx)
		var n atomic.Int32
		err := team.Run(c, workers, 1000, func(_, _ int) {
			if n.Add(1) == 10 {
				cancel()
			}
		})
		if !errors.Is(err, context.Canceled) || n.Load() >= 1000 {
			t.Errorf("%d workers: error %v after %d calls", workers, err, n.Load())
		}
		if err := team.Run(ctx, workers, 10, func(_, _ int) { n.Add(1) }); err != nil {
			t.Errorf("the next call: %v", err)
		}
	}
}

// Workers go to sleep and wake up again, and Close ends them wherever they are.
func TestATeamSleepsAndEnds(t *testing.T) {
	before := runtime.NumGoroutine()
	for _, pause := range []time.Duration{0, time.Microsecond, time.Millisecond} {
		team := NewTeam()
		var sum atomic.Int64
		for range 60 {
			if err := team.Run(ctx, 4, 16, func(_, i int) { sum.Add(int64(i)) }); err != nil {
				t.Fatal(err)
			}
			time.Sleep(pause)
		}
		if sum.Load() != 60*120 {
			t.Errorf("the indices sum up to %d", sum.Load())
		}
		team.Close()
		team.Close()
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines, %d before", n, before)
	}
}

func TestATeamDoesNotAllocate(t *testing.T) {
	team := NewTeam()
	defer team.Close()
	var n atomic.Int64
	fn := func(_, _ int) { n.Add(1) }
	run := func() {
		for range 100 {
			_ = team.Run(ctx, 3, 50, fn)
		}
	}
	run()
	if a := testing.AllocsPerRun(5, run); a != 0 {
		t.Errorf("%v allocations in 100 calls", a)
	}
}
