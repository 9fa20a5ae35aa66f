package catalog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"clustergym/internal/ordinary"
)

// CacheVar is the environment variable that names a cache folder instead of the system's.
const CacheVar = "CLUSTERGYM_CACHE"

// Prefix marks an argument that names an entry instead of a file, as in get:philly-jobs.
const Prefix = "get:"

// CacheDir returns the folder of fetched files: $CLUSTERGYM_CACHE, or clustergym/traces in the user's folder for
// caches. The folder need not exist. No other function outside cmd reads the environment; this one does because a
// configuration may name an entry, which must be found where gymctl put it.
func CacheDir() (string, error) {
	if dir := os.Getenv(CacheVar); dir != "" {
		return dir, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("the cache of public traces: this user has no folder for caches (%w); set %s", err, CacheVar)
	}
	return filepath.Join(dir, "clustergym", "traces"), nil
}

// MissingError is returned for an entry that is not in the cache, or not completely.
type MissingError struct {
	Name string
	Path string // where it would be
}

// Error names the entry, its path, and the command that fetches it.
func (e *MissingError) Error() string {
	return fmt.Sprintf("public trace %s is not at hand (%s); gymctl trace get %s fetches it", e.Name, e.Path, e.Name)
}

// Path returns the path of the entry called name in the cache. name may begin with Prefix. The error is a *MissingError
// for an entry that was not fetched, and an *UnknownError for a name that the catalogue does not have. Path checks the
// files' sizes but not their hashes.
func Path(name string) (string, error) {
	e, err := Public().Find(strings.TrimPrefix(name, Prefix))
	if err != nil {
		return "", err
	}
	dir, err := CacheDir()
	if err != nil {
		return "", err
	}
	if here, err := e.In(dir); err != nil {
		return "", err
	} else if !here {
		return "", &MissingError{e.Name, e.Path(dir)}
	}
	return e.Path(dir), nil
}

// In reports whether dir has all files of e with the right sizes. It does not check their hashes.
func (e *Entry) In(dir string) (bool, error) {
	for i := range e.Files {
		st, err := os.Stat(e.target(dir, &e.Files[i]))
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, &FolderError{dir, ordinary.Reason(err)}
		}
		if !st.Mode().IsRegular() || st.Size() != e.Files[i].Size {
			return false, nil
		}
	}
	return true, nil
}

// FolderError is returned for a folder that cannot be used.
type FolderError struct {
	Dir string
	Err error
}

// Error names the folder and the reason.
func (e *FolderError) Error() string {
	return fmt.Sprintf("folder %s cannot be used: %v", e.Dir, e.Err)
}

// Unwrap returns Err.
func (e *FolderError) Unwrap() error { return e.Err }
