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
func File(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrHeld
	}
	return err
}
