package client_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// gate holds up steps of environments in the test's server. An environment finds its gate by the number in its argument
// gate.
type gate struct {
	number int
	came   chan struct{} // holds a token if a step waits

	mu     sync.Mutex
	opened chan struct{} // closed while steps may pass
}

var (
	gates    sync.Map // by number
	lastGate atomic.Int64
)

// newGate returns an open gate. It is opened for good when the test ends.
func newGate(t *testing.T) *gate {
	g := &gate{number: int(lastGate.Add(1)), came: make(chan struct{}, 1), opened: make(chan struct{})}
	close(g.opened)
	gates.Store(g.number, g)
	t.Cleanup(g.open)
	return g
}

// shut makes later steps wait.
func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.opened = make(chan struct{})
	select {
	case <-g.came: // of an earlier step
	default:
	}
}

// open lets all steps pass.
func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.opened:
	default:
		close(g.opened)
	}
}

// pass waits until the gate is open.
func (g *gate) pass() {
	g.mu.Lock()
	opened := g.opened
	g.mu.Unlock()
	select {
	case g.came <- struct{}{}:
	default:
	}
	<-opened
}

// givenUp returns a context that ends as soon as a step waits at the shut gate. The caller must also cancel it.
func (g *gate) givenUp() (context.Context, context.CancelFunc) {
	limited, cancel := context.WithTimeout(ctx, time.Minute) // in case no step comes
	go func() {
		select {
		case <-g.came:
			cancel()
		case <-limited.Done():
		}
	}()
	return limited, cancel
}
