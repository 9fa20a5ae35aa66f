//go:build unix

package checkpoint

import (
	"os"
	"syscall"
)

// lock marks dir as being written by this process until unlock is called or the process ends in any way.
func lock(dir string) (unlock func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = d.Close()
		return nil, &os.PathError{Op: "lock", Path: dir, Err: err}
	}
	return func() { _ = d.Close() }, nil // closing the last descriptor releases the lock
}

// busy reports whether a running process holds dir's lock.
func busy(dir string) bool {
	unlock, err := lock(dir)
	if err != nil {
		return !os.IsNotExist(err)
	}
	unlock()
	return false
}
