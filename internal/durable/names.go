// Package durable makes the names of files survive a crash of the machine.
package durable

import (
	"cmp"
	"errors"
	"os"
	"runtime"
	"syscall"
)

// Names writes the names in a folder to disk, so that files made there, renamed or removed stay so. It does nothing on
// systems that cannot: Windows refuses it for folders, and its file systems keep a journal of names.
func Names(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = cmp.Or(d.Sync(), d.Close())
	// Some file systems of networks and of other machines say so by EINVAL.
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) {
		return nil
	}
	return err
}
