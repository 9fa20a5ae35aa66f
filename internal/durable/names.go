// Package durable makes the names of files survive a crash of the machine.
package durable

import (
	"errors"
	"os"
	"runtime"
)

// Names writes the names in a folder to disk, so that files made there, renamed or removed stay so. It does nothing on systems
// that cannot: Windows refuses it for folders, and its file systems keep a journal of names.
func Names(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
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
