package catalog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// CacheVar is the environment variable that names the cache in the place of the system's.
const CacheVar = "CLUSTERGYM_CACHE"

// Prefix begins a trace argument that names an entry instead of a file, as in get:philly-jobs.
const Prefix = "get:"

// CacheDir is the folder where fetched files are kept: $CLUSTERGYM_CACHE, else clustergym/traces in the user's folder
// for caches. It is the one place below cmd that reads the environment: a configuration may name an entry, and it must
// be found where gymctl put it. The folder need not exist.
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

// MissingError says that an entry is not in the cache, or not whole.
type MissingError struct {
	Name string
	Path string // where it would stand
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("public trace %s is not at hand (%s); gymctl trace get %s fetches it", e.Name, e.Path, e.Name)
}

// Path is where the entry called name stands in the cache; name may begin with Prefix. An entry that was not fetched
// is a *MissingError, a name that the catalogue does not have an *UnknownError. Presence and sizes are looked at, not
// the hashes.
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

// In says whether all files of e stand in dir with their sizes; the hashes are not looked at.
func (e *Entry) In(dir string) (bool, error) {
	for i := range e.Files {
		st, err := os.Stat(e.target(dir, &e.Files[i]))
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, &FolderError{dir, reason(err)}
		}
		if !st.Mode().IsRegular() || st.Size() != e.Files[i].Size {
			return false, nil
		}
	}
	return true, nil
}

// FolderError says that a folder cannot be used.
type FolderError struct {
	Dir string
	Err error
}

func (e *FolderError) Error() string {
	return fmt.Sprintf("folder %s cannot be used: %v", e.Dir, e.Err)
}

// Unwrap is Err.
func (e *FolderError) Unwrap() error { return e.Err }

// reason leaves out of err the path, which the sentence around it says already.
func reason(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}
