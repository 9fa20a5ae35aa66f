//go:build unix

package checkpoint

import (
	"os"
	"syscall"

	"clustergym/internal/shortage"
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

// busy reports whether a running process holds dir's lock. Without a descriptor that cannot be found out, which is an
// error.
func busy(dir string) (bool, error) {
	unlock, err := lock(dir)
	if shortage.OfFiles(err) {
		return false, err
	}
	if err != nil {
		return !os.IsNotExist(err), nil
	}
	unlock()
	return false, nil
}
