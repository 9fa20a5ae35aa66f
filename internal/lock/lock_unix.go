//go:build unix

package lock

import (
	"errors"
	"os"
	"syscall"
)

// Supported reports whether this system has locks.
const Supported = true

// File locks an open file or folder, until its last descriptor is closed.
func File(f *os.File) error { return flock(f, syscall.LOCK_EX) }

// Shared is File for a lock that several processes have at once, which keeps others from File's. A lock of File becomes
// one of these; in between it may be nobody's.
func Shared(f *os.File) error { return flock(f, syscall.LOCK_SH) }

func flock(f *os.File, how int) error {
	err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrHeld
	}
	return err
}
