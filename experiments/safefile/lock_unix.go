//go:build unix

package safefile

import (
	"errors"
	"os"
	"syscall"
)

// Lock locks the folder dir for this process, until unlock is called or the process ends in any way. It returns ErrLocked if
// another process has the lock. The lock is advisory: it stops only processes that call Lock. On a file system without
// locks it stops none.
func Lock(dir string) (unlock func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		_ = d.Close() // open for reading only
		return nil, ErrLocked
	}
	return func() { _ = d.Close() }, nil // closing the last descriptor releases the lock
}
