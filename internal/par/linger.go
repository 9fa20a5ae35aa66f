package par

import (
	"runtime"
	"sync/atomic"
)

// To wake a goroutine on a processor that has gone to rest takes tens of microseconds, on virtual machines most of all,
// and a step of some environments hardly more. Where one call follows another, as in training, goroutines that have
// finished their part therefore look out for another one for a moment, and are gone if there is none.

// rounds is how often a goroutine looks before it goes: some 200 µs on an idle processor. Between any two looks
// whoever else is ready to run does so.
const rounds = 1000

// lingering says whether goroutines do. It changes nothing but speed.
var lingering atomic.Bool

// Linger makes goroutines of later calls of For stay for a moment after their work, or not; they do not at first. It
// is for programs that have the processors for themselves: who waits so uses one that others might need.
func Linger(on bool) { lingering.Store(on) }

// helper is a goroutine that stays: in its place, where others find it, it waits for work to be set.
type helper struct{ work atomic.Pointer[func()] }

// places are where helpers wait. There may be as many as that at once; more are not kept.
var places [64]atomic.Pointer[helper]

// begin runs work in another goroutine.
func begin(work func()) {
	if lingering.Load() {
		for i := range places {
			if places[i].Load() == nil {
				continue
			}
			if h := places[i].Swap(nil); h != nil { // nobody but us gives it work now, and it does not go
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

// stay does work as long as there is some.
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

// take puts h into a free place, nil where there is none.
func (h *helper) take() *atomic.Pointer[helper] {
	for i := range places {
		if places[i].CompareAndSwap(nil, h) {
			return &places[i]
		}
	}
	return nil
}

// wait waits for work, and says whether some came.
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
	for h.work.Load() == nil { // somebody has just taken us out of it
		runtime.Gosched()
	}
	return true
}
