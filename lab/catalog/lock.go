package catalog

import (
	"errors"
	"os"

	"clustergym/internal/lock"
)

// tryLock takes the lock at path, until unlock is called or the process ends in any way. unlock is nil if another
// process has the lock. On a file system without locks every process gets it; the check of the hash still keeps the
// result right; so it does where the system has no locks.
func tryLock(path string) (unlock func(), err error) {
	if !lock.Supported {
		return func() {}, nil
	}
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644) //nolint:gosec // in the user's own cache
		if err != nil {
			return nil, err
		}
		if err := lock.File(f); errors.Is(err, lock.ErrHeld) {
			return nil, f.Close()
		}
		mine, err := f.Stat()
		if err != nil {
			_ = f.Close() // the first fault matters more
			return nil, err
		}
		if now, err := os.Stat(path); err == nil && os.SameFile(mine, now) {
			return func() {
				_ = os.Remove(path) // before unlocking, so that no process locks a file that has lost its name
				_ = f.Close()
			}, nil
		}
		// The previous owner has removed the name in the meantime, so no other process can see this lock.
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
}
