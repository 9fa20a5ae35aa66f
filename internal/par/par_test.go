package par

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var ctx = context.Background()

func TestEveryIndexIsDoneOnce(t *testing.T) {
	for _, workers := range []int{-1, 0, 1, 2, 3, 8, 100} {
		for _, n := range []int{0, 1, 2, 7, 64, 1000} {
			done := make([]int32, n)
			err := For(ctx, workers, n, func(worker, i int) error {
				if worker < 0 || worker >= max(workers, 1) {
					t.Errorf("worker %d of %d", worker, workers)
				}
				atomic.AddInt32(&done[i], 1)
				return nil
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

func TestAWorkerDoesOneThingAtATime(t *testing.T) {
	const workers = 4
	var busy [workers]atomic.Bool
	scratch := make([]int, workers) // written without a lock: the race detector watches
	err := For(ctx, workers, 400, func(worker, i int) error {
		if busy[worker].Swap(true) {
			return fmt.Errorf("worker %d is called while it works", worker)
		}
		scratch[worker] += i
		runtime.Gosched()
		busy[worker].Store(false)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, s := range scratch {
		sum += s
	}
	if sum != 399*400/2 {
		t.Errorf("sum %d", sum)
	}
}

// The failing index with the lowest number wins, even when a later one fails first in time.
func TestTheErrorOfLowestIndexWins(t *testing.T) {
	for _, workers := range []int{1, 2, 5, 16} {
		for round := range 50 {
			later := make(chan struct{})
			var once sync.Once
			err := For(ctx, workers, 40, func(_, i int) error {
				switch {
				case i == 3:
					if workers > 1 { // let index 4 fail first
						<-later
					}
					return fmt.Errorf("index %d", i)
				case i > 3:
					once.Do(func() { close(later) })
					return fmt.Errorf("index %d", i)
				}
				return nil
			})
			if err == nil || err.Error() != "index 3" {
				t.Fatalf("%d workers, round %d: error %v", workers, round, err)
			}
		}
	}
}

func TestAFailureLeavesOutTheRest(t *testing.T) {
	for _, workers := range []int{1, 4} {
		var calls atomic.Int32
		failed := errors.New("failed")
		err := For(ctx, workers, 1_000_000, func(_, i int) error {
			calls.Add(1)
			if i == 10 {
				return failed
			}
			return nil
		})
		if !errors.Is(err, failed) {
			t.Errorf("error %v", err)
		}
		if n := calls.Load(); n < 11 || n == 1_000_000 {
			t.Errorf("%d workers: %d calls", workers, n)
		}
	}
}

func TestCancellationStopsAndIsReported(t *testing.T) {
	for _, workers := range []int{1, 4} {
		c, cancel := context.WithCancel(ctx)
		var calls atomic.Int32
		err := For(c, workers, 1_000_000, func(int, int) error {
			if calls.Add(1) == 5 {
				cancel()
			}
			return nil
		})
		cancel()
		if n := calls.Load(); !errors.Is(err, context.Canceled) || n == 1_000_000 {
			t.Errorf("%d workers: %d calls, error %v", workers, n, err)
		}
		if err := For(c, workers, 3, func(int, int) error { return errors.New("was called") }); !errors.Is(err,
			context.Canceled) {
			t.Errorf("%d workers, cancelled before: error %v", workers, err)
		}
		if err := For(c, workers, 0, nil); err != nil {
			t.Errorf("nothing to do: error %v", err)
		}
	}
}

func TestForWaitsForAllItStarted(t *testing.T) {
	before := runtime.NumGoroutine()
	var running atomic.Int32
	_ = For(ctx, 8, 64, func(_, i int) error {
		running.Add(1)
		defer running.Add(-1)
		time.Sleep(time.Millisecond)
		if i == 20 {
			return errors.New("stop")
		}
		return nil
	})
	if n := running.Load(); n != 0 {
		t.Errorf("%d calls still run", n)
	}
	// A goroutine that has called Done may take a moment to end.
	for range 10_000 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

func TestOneWorkerAllocatesNothing(t *testing.T) {
	sum := 0
	fn := func(_, i int) error { sum += i; return nil }
	if n := testing.AllocsPerRun(100, func() { _ = For(ctx, 1, 50, fn) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkFor(b *testing.B) {
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			fn := func(int, int) error { return nil }
			b.ReportAllocs()
			for b.Loop() {
				if err := For(ctx, workers, 16, fn); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
