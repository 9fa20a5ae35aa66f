// Package safefile writes files that a crash leaves old or new, never half, and keeps a folder for one process.
package safefile

import (
	"errors"
	"os"
	"path/filepath"
)

// ErrLocked says that another process has the folder.
var ErrLocked = errors.New("locked by another process")

// Aside is where the new content of a file is written before it takes the file's place.
func Aside(name string) string {
	return filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+".new")
}

// Write replaces a file by one written completely beside it, so that a crash leaves the old or the new.
func Write(name string, data []byte) (err error) {
	tmp := Aside(name)
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(tmp, name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	// Its name must be on disk before what it replaces the last mention of is removed.
	d, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	err = d.Sync()
	if e := d.Close(); err == nil {
		err = e
	}
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}
