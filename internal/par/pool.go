package par

import "sync"

// Pool runs single pieces of work on goroutines of its own that live until Close, for work whose results are taken
// one by one, as they get ready. Which result is first depends on timing; what it is does not, if fn's outcome
// depends on i alone.
type Pool struct {
	in  chan int
	out chan int
	wg  sync.WaitGroup
}

// NewPool starts workers goroutines, at least one, that call fn(worker, i) for every i that is Put. At most room
// pieces may be put and not yet taken from Done. No two calls with the same worker overlap.
func NewPool(workers, room int, fn func(worker, i int)) *Pool {
	p := &Pool{in: make(chan int, room), out: make(chan int, room)}
	for w := range max(workers, 1) {
		p.wg.Add(1)
		go func() {
			defer p.wg.Done()
			for i := range p.in {
				fn(w, i)
				p.out <- i // there is room for all that were put
			}
		}()
	}
	return p
}

// Put queues piece i. It does not wait while there is room.
func (p *Pool) Put(i int) { p.in <- i }

// Done gives the pieces that are ready, in the order in which they got so. What fn wrote for a piece is visible to
// whoever takes it from here.
func (p *Pool) Done() <-chan int { return p.out }

// Close waits until all that was put is done and ends the goroutines. No Put may follow.
func (p *Pool) Close() {
	close(p.in)
	p.wg.Wait()
}
