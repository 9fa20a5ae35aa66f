package par

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

func TestAPoolDoesEveryPieceOnce(t *testing.T) {
	for _, workers := range []int{0, 1, 3, 8} {
		const n = 50
		var times [n]atomic.Int32
		var busy [8]atomic.Bool
		p := NewPool(workers, n, func(w, i int) {
			if !busy[w].CompareAndSwap(false, true) {
				t.Errorf("worker %d does two pieces at once", w)
			}
			times[i].Add(1)
			busy[w].Store(false)
		})
		for round := range 3 {
			for i := range n {
				p.Put(i)
			}
			seen := map[int]bool{}
			for range n {
				seen[<-p.Done()] = true
			}
			for i := range n {
				if got := int(times[i].Load()); got != round+1 || !seen[i] {
					t.Fatalf("%d workers: piece %d was done %d times, want %d; given back: %v", workers, i, got, round+1, seen[i])
				}
			}
		}
		p.Close()
	}
}

// A slow piece does not delay the pieces after it, and Close waits for it.
func TestAPoolGivesWhatIsReadyAndClosesBehindItself(t *testing.T) {
	before := runtime.NumGoroutine()
	hold, ended := make(chan struct{}), atomic.Bool{}
	p := NewPool(2, 4, func(_, i int) {
		if i == 0 {
			<-hold
			ended.Store(true)
		}
	})
	for i := range 4 {
		p.Put(i)
	}
	for range 3 {
		select {
		case i := <-p.Done():
			if i == 0 {
				t.Fatal("piece 0 was given back while it was held")
			}
		case <-time.After(10 * time.Second):
			t.Fatal("nothing got ready within 10 s beside a piece that takes long")
		}
	}
	close(hold)
	p.Close()
	if !ended.Load() {
		t.Error("Close came back before the last piece was done")
	}
	for range 10_000 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}
