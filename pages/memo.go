package pages

import (
	"sync"
	"time"
)

// memo is something that many ask for and that costs time, such as a walk over folders: it is made again when it is
// old, and so seldom that making it takes a twentieth of the time at most. Safe for concurrent use.
type memo[T any] struct {
	mu    sync.Mutex
	value T
	err   error
	until time.Time
}

// get returns what compute returned last, or calls it if that is older than least. Others who ask meanwhile wait for
// it.
func (m *memo[T]) get(least time.Duration, compute func() (T, error)) (T, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	begun := time.Now()
	if begun.Before(m.until) {
		return m.value, m.err
	}
	m.value, m.err = compute()
	now := time.Now()
	m.until = now.Add(max(least, 20*now.Sub(begun)))
	return m.value, m.err
}
