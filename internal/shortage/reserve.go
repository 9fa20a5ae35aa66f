package shortage

import (
	"os"
	"sync"
)

// Reserve holds open files, to be closed when descriptors are short. The zero value holds none. Its methods are safe
// for concurrent use.
type Reserve struct {
	mu     sync.Mutex
	size   int
	files  []*os.File
	closed bool
}

// Reserved returns how many descriptors a listener holds in reserve in a process that may open so many files.
func Reserved(files int) int {
	if files == Unlimited {
		return 0
	}
	return max(4, min(files/64, 16))
}

// NewReserve returns an empty reserve for size descriptors. Fill fills it.
func NewReserve(size int) *Reserve { return &Reserve{size: size} }

// Fill opens what is missing, and reports whether nothing is missing any more.
func (r *Reserve) Fill() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.closed && len(r.files) < r.size {
		f, err := os.Open(os.DevNull)
		if err != nil {
			return false
		}
		r.files = append(r.files, f)
	}
	return true
}

// Give closes one, and reports whether there was one.
func (r *Reserve) Give() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.files)
	if n == 0 {
		return false
	}
	_ = r.files[n-1].Close() // it was only held
	r.files = r.files[:n-1]
	return true
}

// Close gives all back for good.
func (r *Reserve) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	for r.Give() {
	}
}
