// Package lock marks files and folders as in use by a process, for as long as it runs. The locks are advisory: they
// stop only processes that ask. Folders are locked themselves, so that nothing is added to what they hold. Only Unix
// has them.
package lock

import (
	"errors"
	"os"
)

// ErrHeld is returned by File and Folder if another process has the lock.
var ErrHeld = errors.New("locked by another process")

// Folder locks the folder dir, until unlock is called or the process ends in any way. If the file system has no locks,
// the error is a *os.PathError with the operation "lock"; on a system without locks there is nothing to do, and nothing
// is opened, so that the folder can still be renamed.
func Folder(dir string) (unlock func(), err error) {
	if !Supported {
		return func() {}, nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := File(d); err != nil {
		_ = d.Close() // open for reading only
		return nil, &os.PathError{Op: "lock", Path: dir, Err: err}
	}
	return func() { _ = d.Close() }, nil // closing the last descriptor releases the lock
}
