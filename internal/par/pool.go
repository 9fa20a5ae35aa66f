package par

import "sync"

// Pool runs single pieces of work on its own goroutines, which live until Close. It is for work whose results are used
// one by one as they become ready. The order of results depends on timing; their values do not if fn's outcome depends
// on i alone.
type Pool struct {
	in  chan int
	out chan int
	wg  sync.WaitGroup
}

// NewPool starts workers goroutines, at least one, that call fn(worker, i) for every i passed to Put. At most room
// pieces may be between Put and their receipt from Done. No two calls with the same worker overlap.
func NewPool(workers, room int, fn func(worker, i int)) *Pool {
	p := &Pool{in: make(chan int, room), out: make(chan int, room)}
	for w := range max(workers, 1) {
		p.wg.Go(func() {
			for i := range p.in {
				fn(w, i)
				p.out <- i // never blocks: out has room for all pieces put
			}
		})
	}
	return p
}

// Put queues piece i. It does not wait while there is room.
func (p *Pool) Put(i int) { p.in <- i }

// Done returns a channel of the pieces that are ready, in the order in which they became ready. What fn wrote for a
// piece is visible to the goroutine that receives the piece.
func (p *Pool) Done() <-chan int { return p.out }

// Close waits until all pieces put are done, then ends the goroutines. No Put may follow.
func (p *Pool) Close() {
	close(p.in)
	p.wg.Wait()
}
