package ppo

import (
	"errors"
	"sync"

	"clustergym/nets/kernel"
)

// Exchange sums numbers over replicas. All replicas make the same calls in the same order, each in its own goroutine
// or process. A call returns when all have made it, and all get the same bits: the sum in order of ranks.
type Exchange interface {
	// Sum64 replaces x by the sum of all replicas' x, which have the same length.
	Sum64(rank int, x []float64) error
	// Sum32 is Sum64 for gradients.
	Sum32(rank int, x []float32) error
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

func (e *inProcess) Sum64(rank int, x []float64) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.f64[rank] = x
	return e.meet(e.add64)
}

func (e *inProcess) Sum32(rank int, x []float32) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.f32[rank] = x
	return e.meet(e.add32)
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

func (e *inProcess) add64() {
	sum := e.f64[0]
	for _, x := range e.f64[1:] {
		for i, v := range x {
			sum[i] += v
		}
	}
	for _, x := range e.f64[1:] {
		copy(x, sum)
	}
}

func (e *inProcess) add32() {
	sum := e.f32[0]
	for _, x := range e.f32[1:] {
		kernel.Add(sum, sum, x)
	}
	for _, x := range e.f32[1:] {
		copy(x, sum)
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
