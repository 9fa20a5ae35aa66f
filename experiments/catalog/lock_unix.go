//go:build unix

package catalog

import (
	"errors"
	"os"
	"syscall"
)

// tryLock takes the lock at path until unlock is called or the process ends, however it ends; unlock is nil while
// another has it. Where the file system has no locks, everybody gets it: a hash keeps the result right.
func tryLock(path string) (unlock func(), err error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644) //nolint:gosec // of the user's own cache
		if err != nil {
			return nil, err
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, f.Close()
		}
		mine, err := f.Stat()
		if err != nil {
			_ = f.Close() // the first fault is the one to tell
			return nil, err
		}
		if now, err := os.Stat(path); err == nil && os.SameFile(mine, now) {
			return func() {
				_ = os.Remove(path) // before the lock is given up, so that nobody takes one without a name
				_ = f.Close()
			}, nil
		}
		// Who had it before has removed the name meanwhile: this is a lock that nobody else can see.
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
}
