// Package safefile replaces files atomically, so that a crash leaves the old or the new contents, and locks folders for
// one process.
package safefile

import (
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"clustergym/internal/durable"
	"clustergym/internal/lock"
	"clustergym/internal/shortage"
)

// ErrLocked is returned by Lock if another process has locked the folder.
var ErrLocked = lock.ErrHeld

// Lock locks the folder dir for this process, until unlock is called or the process ends in any way. It returns
// ErrLocked if another process has the lock. The lock is advisory: it stops only processes that call Lock. On a file
// system or a system without locks it stops none.
func Lock(dir string) (unlock func(), err error) {
	unlock, err = lock.Folder(dir)
	if p, ok := errors.AsType[*os.PathError](err); ok && p.Op == "lock" {
		if errors.Is(err, ErrLocked) {
			return nil, ErrLocked
		}
		return func() {}, nil
	}
	return unlock, err
}

// Aside returns the path at which Write writes the new contents of a file before they replace it.
func Aside(name string) string {
	return filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+".new")
}

// Write replaces the contents of a file, or creates it. It writes a complete file at Aside(name), syncs it to disk and
// renames it, so that a crash leaves the old or the new contents. It outlasts a moment without file descriptors. After
// another error, such as a full disk, the old contents are there, and Write can be called again.
func Write(name string, data []byte) error {
	return shortage.Files(func() error { return write(name, data) })
}

// WriteJSON is Write with v as indented JSON and a line feed.
func WriteJSON(name string, v any) error {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	return Write(name, append(b, '\n'))
}

func write(name string, data []byte) (err error) {
	tmp := Aside(name)
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	if err = cmp.Or(err, f.Close()); err == nil {
		err = os.Rename(tmp, name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	// The new name must be on disk before the caller removes anything that only the old contents mention.
	return durable.Names(filepath.Dir(name))
}
