// Package budget counts a server's memory. Code that is about to allocate something large reserves the bytes first, and
// releases them when the memory is free again. A reservation that does not fit is refused; existing reservations are
// never taken back.
package budget

import (
	"fmt"
	"sync"
)

// Kind is what memory is for.
type Kind uint8

// The kinds.
const (
	Environments Kind = iota // environments and the batches of their time steps
	Replies                  // buffers of replies, those that are kept for a resume included
	Frames                   // requests that are being read, or wait to be executed
	Workloads                // workloads that environments share, and those that are cached
	kinds        = iota
)

var names = [kinds]string{"environments", "replies", "frames", "workloads"}

// String returns the kind's name in the metrics.
func (k Kind) String() string { return names[k] }

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{Environments, Replies, Frames, Workloads} }

// Budget is a number of bytes that can be reserved. A nil Budget has no limit and counts nothing. Safe for concurrent
// use.
type Budget struct {
	total int64

	mu      sync.Mutex
	used    int64
	by      [kinds]int64
	reclaim []func(bytes int64)
}

// New returns a budget of total bytes.
func New(total int64) *Budget { return &Budget{total: total} }

// Total returns the bytes of the whole budget.
func (b *Budget) Total() int64 { return b.total }

// Free returns the bytes that are not reserved.
func (b *Budget) Free() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.total - b.used
}

// Used returns the bytes reserved for k.
func (b *Budget) Used(k Kind) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.by[k]
}

// Reclaim registers a function that releases at least the given number of unused bytes, or all there are. Reserve calls
// it when something does not fit. It must not call Reserve.
func (b *Budget) Reclaim(f func(bytes int64)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reclaim = append(b.reclaim, f)
}

// Reserve reserves n bytes for k. It reports false, and reserves nothing, if they do not fit.
func (b *Budget) Reserve(k Kind, n int64) bool {
	if b == nil || n == 0 {
		return true
	}
	if n < 0 {
		panic(fmt.Sprintf("budget: %d bytes reserved for %v", n, k))
	}
	if n > b.total {
		return false // nothing that could be reclaimed would do
	}
	short, reclaim := b.try(k, n)
	if short <= 0 {
		return true
	}
	for _, f := range reclaim {
		f(short)
		if short, _ = b.try(k, n); short <= 0 {
			return true
		}
	}
	return false
}

// try reserves n bytes for k if they fit. If not, it returns how many bytes are missing, and who may have some.
func (b *Budget) try(k Kind, n int64) (short int64, reclaim []func(int64)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if short = n - (b.total - b.used); short > 0 {
		return short, b.reclaim
	}
	b.used += n
	b.by[k] += n
	return 0, nil
}

// Release gives back n bytes that were reserved for k.
func (b *Budget) Release(k Kind, n int64) {
	if b == nil || n == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if n < 0 || n > b.by[k] {
		panic(fmt.Sprintf("budget: %d of %d bytes released of %v", n, b.by[k], k))
	}
	b.used -= n
	b.by[k] -= n
}

// Account is what one owner has reserved, so that it can be released at once. The zero value has a nil Budget. Not safe
// for concurrent use.
type Account struct {
	b    *Budget
	held [kinds]int64
}

// Account returns an empty account.
func (b *Budget) Account() *Account { return &Account{b: b} }

// Reserve reserves n more bytes for k. It reports false, and reserves nothing, if they do not fit.
func (a *Account) Reserve(k Kind, n int64) bool {
	if !a.b.Reserve(k, n) {
		return false
	}
	a.held[k] += n
	return true
}

// Set makes what is reserved for k n bytes. It reports false, and changes nothing, if n is more than before and does
// not fit.
func (a *Account) Set(k Kind, n int64) bool {
	if n > a.held[k] {
		return a.Reserve(k, n-a.held[k])
	}
	a.b.Release(k, a.held[k]-n)
	a.held[k] = n
	return true
}

// Held returns how many bytes are reserved.
func (a *Account) Held() int64 {
	sum := int64(0)
	for _, n := range a.held {
		sum += n
	}
	return sum
}

// Release releases everything. Releasing twice is harmless.
func (a *Account) Release() {
	for k, n := range a.held {
		a.b.Release(Kind(k), n)
		a.held[k] = 0
	}
}
