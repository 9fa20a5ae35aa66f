package par

import (
	"context"
	"sync"
)

// Local lends values of which each is used by one goroutine at a time, such as an environment and what plays in it. It
// makes one when none is free and keeps what comes back. Results must not depend on which of the values is lent. Safe
// for concurrent use.
type Local[T any] struct {
	Make func() (T, error)

	mu   sync.Mutex
	free []T
}

// Do calls fn with a value that no other goroutine uses meanwhile. A value with which fn fails is not used again.
func (l *Local[T]) Do(fn func(v T) error) error {
	v, err := l.take()
	if err != nil {
		return err
	}
	if err := fn(v); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = append(l.free, v)
	return nil
}

func (l *Local[T]) take() (T, error) {
	l.mu.Lock()
	if n := len(l.free); n > 0 {
		v := l.free[n-1]
		l.free = l.free[:n-1]
		l.mu.Unlock()
		return v, nil
	}
	l.mu.Unlock()
	return l.Make()
}

// For is the function For, whose calls get a value of l each.
func (l *Local[T]) For(ctx context.Context, workers, n int, fn func(v T, i int) error) error {
	return For(ctx, workers, n, func(_, i int) error {
		return l.Do(func(v T) error { return fn(v, i) })
	})
}
