//go:build unix

package experiments

import (
	"errors"
	"os"
	"syscall"
)

// lockRun keeps other processes from training in the run directory at path until unlock is called or the process
// ends, however it ends. Where the file system has no locks, nobody is kept out.
func lockRun(path string) (unlock func(), err error) {
	d, err := os.Open(path)
	if err != nil {
		return nil, &InputError{err}
	}
	if err := syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		_ = d.Close() // only read
		return nil, mistake("another process is training in %s", path)
	}
	return func() { _ = d.Close() }, nil // closing the last descriptor gives up the lock
}
