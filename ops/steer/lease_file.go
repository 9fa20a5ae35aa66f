package steer

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"clustergym/internal/fault"
	"clustergym/internal/ordinary"
	"clustergym/internal/shortage"
)

// mostLease is how many bytes a lease has at most.
const mostLease = 4096

// writeLease puts a file in place whose time is at.
func writeLease(file, text string, at time.Time) error {
	var tmp *os.File
	err := shortage.Files(func() (err error) { // connections of strangers must not end a gate
		tmp, err = os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*")
		return err
	})
	if err != nil {
		return err
	}
	_, err = tmp.WriteString(text)
	err = errors.Join(err, tmp.Close(), os.Chtimes(tmp.Name(), at, at))
	if err == nil {
		err = os.Rename(tmp.Name(), file)
	}
	if err != nil {
		_ = os.Remove(tmp.Name()) // the first error is what counts
		if info, e := os.Lstat(file); e == nil && foreign(info) {
			return fault.Errorf("%s is in the way: %w; remove it, or want another %s", described(file), err,
				fault.Key("lease-file"))
		}
		return err
	}
	return nil
}

// readLease returns when a file was renewed, and what it says. What is in the way of a lease is an error that says
// whose it is.
func readLease(file string) (at time.Time, text string, err error) {
	info, err := os.Lstat(file)
	if err != nil {
		return at, "", err
	}
	kind := ""
	switch mode := info.Mode(); {
	case mode.IsRegular():
	case mode.IsDir():
		kind = "a folder"
	case mode&fs.ModeSymlink != 0:
		kind = "a link"
	case mode&fs.ModeNamedPipe != 0:
		kind = "a pipe"
	default:
		kind = "a device or socket"
	}
	if kind != "" {
		return at, "", fault.Errorf("%s is %s of %s, and no lease; remove it, or want another %s", file, kind, ownerOf(info),
			fault.Key("lease-file"))
	}
	var f *os.File
	if err := shortage.Files(func() (err error) { f, err = ordinary.Open(file); return err }); err != nil {
		return at, "", err
	}
	defer f.Close() //nolint:errcheck // only read
	if info, err = f.Stat(); err != nil {
		return at, "", err
	}
	b, err := io.ReadAll(io.LimitReader(f, mostLease))
	switch {
	case err != nil:
		return at, "", err
	case len(b) == mostLease:
		return at, "", fault.Errorf("%s has more than %d bytes, and is no lease; remove it, or want another %s",
			described(file), mostLease-1, fault.Key("lease-file"))
	}
	return info.ModTime(), string(b), nil
}

// described names a file, and its owner if that is another user.
func described(file string) string {
	if info, err := os.Lstat(file); err == nil && foreign(info) {
		return fmt.Sprintf("%s, a file of %s,", file, ownerOf(info))
	}
	return file
}

// Private returns why a folder cannot have a lease under a name that others can guess: it must be ours or root's, and
// take no files of others. It must take ours.
func Private(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is no folder", dir)
	case everybodys(info):
		return fmt.Errorf("%s takes files of everybody", dir)
	case strange(info):
		return fmt.Errorf("%s belongs to %s", dir, ownerOf(info))
	}
	f, err := os.CreateTemp(dir, ".gymctl-steer-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// mostSaid is how many bytes of notes a file has before it begins again.
const mostSaid = 1 << 20

// OpenNotes opens a file for what a guard says, behind what it has. What is no file of ours is an error that says whose
// it is.
func OpenNotes(file string) (*os.File, error) {
	flags := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	switch info, err := os.Lstat(file); {
	case errors.Is(err, fs.ErrNotExist):
		flags |= os.O_EXCL // fails if a link was put there in between
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || foreign(info):
		return nil, fmt.Errorf("%s is in the way, which is of %s; remove it", file, ownerOf(info))
	case info.Size() > mostSaid:
		flags |= os.O_TRUNC
	}
	return os.OpenFile(file, flags, 0o600)
}
