// Package par runs independent pieces of work on goroutines, so that the number of workers changes nothing but speed.
// On the hot path, only this package starts goroutines.
package par

import (
	"context"
	"sync"
	"sync/atomic"
)

// For calls fn(worker, i) once for every i in [0, n), on at most workers goroutines, and waits for all of them. worker
// is in [0, workers) and no two calls with the same worker overlap, so a worker may own scratch space. Results should
// be stored by index i and merged in index order; then the number of workers does not affect them. With workers < 2,
// For runs in the caller's goroutine. When ctx is cancelled or a call fails, For starts no further calls. It returns
// the error of the failed call with the lowest index. Indices start in order, so this error is the same for any number
// of workers if fn's outcome depends on i alone.
func For(ctx context.Context, workers, n int, fn func(worker, i int) error) error {
	if workers > n {
		workers = n
	}
	if workers < 2 {
		for i := 0; i < n; i++ {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := fn(0, i); err != nil {
				return err
			}
		}
		return nil
	}
	var (
		next   atomic.Int64
		failed atomic.Bool
		wg     sync.WaitGroup
		mu     sync.Mutex
		first  = n
		err    error
	)
	report := func(i int, e error) {
		failed.Store(true)
		mu.Lock()
		if i < first {
			first, err = i, e
		}
		mu.Unlock()
	}
	run := func(worker int) {
		for !failed.Load() {
			i := int(next.Add(1)) - 1
			if i >= n {
				return
			}
			if e := ctx.Err(); e != nil {
				report(i, e)
				return
			}
			if e := fn(worker, i); e != nil {
				report(i, e)
				return
			}
		}
	}
	for w := 1; w < workers; w++ {
		wg.Add(1)
		begin(func() {
			defer wg.Done()
			run(w)
		})
	}
	run(0)
	wg.Wait()
	return err
}
