package par

import (
	"runtime"
	"sync/atomic"
)

// Waking a goroutine on an idle processor takes tens of microseconds, most of all on virtual machines. That is almost
// as long as a step of some environments. When one call follows another, as in training, goroutines that have finished
// their part therefore wait briefly for more work and end only if none comes.

// rounds is how often a goroutine polls for work before it ends: some 200 µs on an idle processor. It yields to other
// ready goroutines after each poll.
const rounds = 1000

// lingering says whether goroutines wait for more work. It changes nothing but speed.
var lingering atomic.Bool

// Linger sets whether goroutines of later calls of For wait briefly for more work after their own. The default is not
// to wait. Use it in programs that have the processors to themselves, because a waiting goroutine keeps a processor
// busy.
func Linger(on bool) { lingering.Store(on) }

// helper is a goroutine that waits for work. While it waits, it is in one of places, where begin finds it and sets
// work.
type helper struct{ work atomic.Pointer[func()] }

// places holds the waiting helpers. A goroutine that finds no free place ends.
var places [64]atomic.Pointer[helper]

// begin runs work in another goroutine.
func begin(work func()) {
	if lingering.Load() {
		for i := range places {
			if places[i].Load() == nil {
				continue
			}
			if h := places[i].Swap(nil); h != nil { // h is now ours alone: no other caller can give it work, and it does not end
				h.work.Store(&work)
				return
			}
		}
	}
	go func() {
		work()
		if lingering.Load() {
			new(helper).stay()
		}
	}()
}

// stay executes work until none comes.
func (h *helper) stay() {
	for {
		place := h.take()
		if place == nil || !h.wait(place) {
			return
		}
		work := h.work.Swap(nil)
		(*work)()
	}
}

// take puts h into a free place and returns it, or nil if there is none.
func (h *helper) take() *atomic.Pointer[helper] {
	for i := range places {
		if places[i].CompareAndSwap(nil, h) {
			return &places[i]
		}
	}
	return nil
}

// wait waits for work and reports whether some came.
func (h *helper) wait(place *atomic.Pointer[helper]) bool {
	for range rounds {
		if h.work.Load() != nil {
			return true
		}
		runtime.Gosched()
	}
	if place.CompareAndSwap(h, nil) {
		return false
	}
	for h.work.Load() == nil { // begin has just removed h from its place and is about to set work
		runtime.Gosched()
	}
	return true
}
