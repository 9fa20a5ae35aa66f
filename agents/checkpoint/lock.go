package checkpoint

import (
	"os"

	"clustergym/internal/lock"
	"clustergym/internal/shortage"
)

// busy reports whether a running process holds dir's lock. Without a descriptor that cannot be found out, which is an
// error. Where there are no locks, a run directory has one writer.
func busy(dir string) (bool, error) {
	if !lock.Supported {
		return false, nil
	}
	unlock, err := lock.Folder(dir)
	if shortage.OfFiles(err) {
		return false, err
	}
	if err != nil {
		return !os.IsNotExist(err), nil
	}
	unlock()
	return false, nil
}
