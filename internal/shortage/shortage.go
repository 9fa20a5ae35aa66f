// Package shortage outlasts what a machine lacks for a while: file descriptors, which connections of strangers can
// take, and space on a disk, which its owner can make. Work of hours must not end by either.
package shortage

import (
	"errors"
	"math"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Unlimited is what MayOpen returns where there is no limit.
const Unlimited = math.MaxInt32

// The pauses between two attempts, and how long Files tries at most.
const (
	leastPause = time.Millisecond
	mostPause  = 250 * time.Millisecond
	filesFor   = 30 * time.Second
)

// OfFiles reports whether err says that the process or the machine has no file descriptor left.
func OfFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// OfSpace reports whether err says that the disk, or what the user may take of it, is full.
func OfSpace(err error) bool { return is(err, full) }

// passing are errors of accepting a connection that concern this connection or a shortage, and not the listener.
var passing = []error{
	syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED, syscall.ECONNRESET,
	syscall.EPROTO,
	syscall.ENETDOWN, syscall.ENETUNREACH, syscall.EHOSTUNREACH, // Linux returns what has befallen the new connection
}

// Passing reports whether an error of accepting a connection leaves the listener as it was, so that the next attempt
// may succeed.
func Passing(err error) bool { return is(err, passing) }

func is(err error, causes []error) bool {
	return slices.ContainsFunc(causes, func(e error) bool { return errors.Is(err, e) })
}

// Pause is how long to wait between attempts: longer each time. The zero value is ready.
type Pause struct{ next time.Duration }

// Next returns how long to wait now.
func (p *Pause) Next() time.Duration {
	p.next = min(max(leastPause, 2*p.next), mostPause)
	return p.next
}

// relief are the functions of Relieves, called when this process lacks descriptors for files of its own.
var relief struct {
	mu   sync.Mutex
	list []*func()
}

// Relieves has f called whenever this process lacks descriptors for files of its own, until stop is called. f closes
// what the process can do without, and returns soon.
func Relieves(f func()) (stop func()) {
	relief.mu.Lock()
	defer relief.mu.Unlock()
	own := &f
	relief.list = append(relief.list, own)
	return func() {
		relief.mu.Lock()
		defer relief.mu.Unlock()
		relief.list = slices.DeleteFunc(relief.list, func(p *func()) bool { return p == own })
	}
}

func relieve() {
	relief.mu.Lock()
	list := slices.Clone(relief.list)
	relief.mu.Unlock()
	for _, f := range list {
		(*f)()
	}
}

// Files calls f, and again while f fails for want of a file descriptor, for up to half a minute. Listeners that have
// descriptors to spare give some back meanwhile. f must leave nothing behind when it fails.
func Files(f func() error) error { return files(f, func(error) {}) }

// files is Files; lacks is called before each further attempt.
func files(f func() error, lacks func(error)) error {
	var pause Pause
	var begun time.Time
	for {
		err := f()
		if !OfFiles(err) {
			return err
		}
		if begun.IsZero() {
			begun = time.Now()
		}
		if time.Since(begun) > filesFor {
			return err
		}
		lacks(err)
		relieve()
		time.Sleep(pause.Next())
	}
}
