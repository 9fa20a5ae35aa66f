package par

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestLingeringChangesNothing(t *testing.T) {
	Linger(true)
	defer Linger(false)
	for _, c := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"every index is done once", TestEveryIndexIsDoneOnce},
		{"a worker does one thing at a time", TestAWorkerDoesOneThingAtATime},
		{"the error of lowest index wins", TestTheErrorOfLowestIndexWins},
		{"a failure leaves out the rest", TestAFailureLeavesOutTheRest},
		{"cancellation stops and is reported", TestCancellationStopsAndIsReported},
	} {
		t.Run(c.name, c.run)
	}
}

// Many nested calls at once, with more goroutines than there are places.
func TestLingeringGoroutinesAreGivenToOneAtATime(t *testing.T) {
	Linger(true)
	defer Linger(false)
	var all sync.WaitGroup
	var sum atomic.Int64
	for range 20 {
		all.Add(1)
		go func() {
			defer all.Done()
			for range 50 {
				_ = For(ctx, 5, 10, func(_, i int) error {
					return For(ctx, 2, 3, func(_, j int) error {
						sum.Add(int64(i*3 + j))
						return nil
					})
				})
			}
		}()
	}
	all.Wait()
	if got, want := sum.Load(), int64(20*50*(29*30/2)); got != want {
		t.Errorf("the indices sum up to %d, want %d", got, want)
	}
}

func TestLingeringGoroutinesGo(t *testing.T) {
	settle := func() int {
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
			taken := 0
			for i := range places {
				if places[i].Load() != nil {
					taken++
				}
			}
			if taken == 0 {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%d goroutines stay", taken)
			}
		}
		return runtime.NumGoroutine()
	}
	before := settle()
	Linger(true)
	defer Linger(false)
	for range 100 {
		_ = For(ctx, 8, 100, func(int, int) error { return nil })
	}
	for end := time.Now().Add(20 * time.Second); settle() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
}
