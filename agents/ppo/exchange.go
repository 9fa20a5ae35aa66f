package ppo

import (
	"errors"
	"sync"

	"clustergym/nets/kernel"
)

// Exchange sums numbers over replicas. All replicas make the same calls in the same order, each in its own goroutine
// or process. A call returns when all have made it, and all get the same bits: the sum in order of ranks.
type Exchange interface {
	// Sum replaces x, a gradient, and y, what goes with it, by the sums of all replicas' x and y, which have the same
	// lengths. Either may be empty.
	Sum(rank int, x []float32, y []float64) error
}

// errAborted is returned to waiting replicas when another one fails.
var errAborted = errors.New("ppo: another replica failed")

// inProcess is the Exchange of replicas that are goroutines. The last to arrive computes the sum.
type inProcess struct {
	mu      sync.Mutex
	all     sync.Cond
	f64     [][]float64
	f32     [][]float32
	arrived int
	round   uint64
	aborted bool
}

func newInProcess(replicas int) *inProcess {
	e := &inProcess{f64: make([][]float64, replicas), f32: make([][]float32, replicas)}
	e.all.L = &e.mu
	return e
}

func (e *inProcess) Sum(rank int, x []float32, y []float64) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.f32[rank], e.f64[rank] = x, y
	return e.meet(e.sum)
}

// meet waits for all replicas; the last to arrive calls do.
func (e *inProcess) meet(do func()) error {
	if e.arrived++; e.arrived == len(e.f64) && !e.aborted {
		do()
		e.arrived = 0
		e.round++
		e.all.Broadcast()
		return nil
	}
	for round := e.round; e.round == round; {
		if e.aborted {
			return errAborted
		}
		e.all.Wait()
	}
	return nil
}

func (e *inProcess) sum() {
	x, y := e.f32[0], e.f64[0]
	for k := 1; k < len(e.f32); k++ {
		kernel.Add(x, x, e.f32[k])
		for i, v := range e.f64[k] {
			y[i] += v
		}
	}
	for k := 1; k < len(e.f32); k++ {
		copy(e.f32[k], x)
		copy(e.f64[k], y)
	}
}

// abort ends the wait of all replicas, now and until reset, because one will not arrive.
func (e *inProcess) abort() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.aborted = true
	e.all.Broadcast()
}

// reset prepares e for another update. No replica may be using it.
func (e *inProcess) reset() { e.arrived, e.aborted = 0, false }
