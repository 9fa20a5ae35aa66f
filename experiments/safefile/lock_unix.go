//go:build unix

package safefile

import (
	"errors"
	"os"
	"syscall"
)

// Lock keeps other processes out of the folder dir, as far as they ask, until unlock is called or the process ends,
// however it ends; ErrLocked where another is in it. Where the file system has no locks, nobody is kept out.
func Lock(dir string) (unlock func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		_ = d.Close() // only read
		return nil, ErrLocked
	}
	return func() { _ = d.Close() }, nil // closing the last descriptor gives up the lock
}
