// Package ordinary opens files whose names may come from outside: from a configuration, a model, a task, or a folder
// that other users can write. Such a name may lead to a pipe, a socket, a terminal or an endless device, so only
// regular files are opened, the opening waits for no writer, and a read is bounded.
package ordinary

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Bounds of files that people write by hand and of documents that programs write for themselves. A reader chooses the
// one that its largest honest file is far below.
const (
	Settings = 16 << 20  // YAML of a configuration or a cluster, weights of a rule
	Document = 256 << 20 // JSON and logs of a run directory
)

// An Error says why a file was not read. Its text names the file and quotes nothing of its content.
type Error struct {
	Name string
	Why  string
	Err  error // nil if the file exists and is of the wrong kind or size
}

func (e *Error) Error() string { return e.Name + ": " + e.Why }

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Root is where names are looked up: *os.Root, or everywhere if nil.
type Root interface {
	Stat(name string) (fs.FileInfo, error)
	OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error)
}

// Open opens the regular file called name for reading. A link is followed to its end. Anything but a regular file is an
// *Error; so is a name that leads to no file, which wraps fs.ErrNotExist.
func Open(name string) (*os.File, error) { return OpenIn(everywhere{}, name) }

// OpenIn is Open for a name below root. An *os.Root follows no link that leads out of its folder.
func OpenIn(root Root, name string) (*os.File, error) {
	// A device must not even be opened: for some devices that alone has an effect.
	st, err := root.Stat(name)
	if err != nil {
		return nil, failed(name, err)
	}
	if err := regular(name, st); err != nil {
		return nil, err
	}
	// Without the flag the opening of a pipe waits for its writer.
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, failed(name, err)
	}
	// What was opened counts, not what stood there before.
	if st, err = file.Stat(); err == nil {
		err = regular(name, st)
	} else {
		err = failed(name, err)
	}
	if err != nil {
		_ = file.Close() // report the first fault
		return nil, err
	}
	return file, nil
}

// Read returns the content of the regular file called name. A file of more than most bytes is an *Error, however it
// grows while it is read.
func Read(name string, most int64) ([]byte, error) { return ReadIn(everywhere{}, name, most) }

// ReadIn is Read for a name below root.
func ReadIn(root Root, name string, most int64) ([]byte, error) {
	file, err := OpenIn(root, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	long := &Error{name, fmt.Sprintf("the file has more than %s", size(most)), nil}
	if st, err := file.Stat(); err == nil && st.Size() > most {
		return nil, long // before all of that is in memory
	}
	b, err := io.ReadAll(io.LimitReader(file, most+1))
	switch {
	case err != nil:
		return nil, failed(name, err)
	case int64(len(b)) > most:
		return nil, long
	}
	return b, nil
}

// SHA256 returns the hash of the content of the regular file called name, in hexadecimal.
func SHA256(name string) (string, error) {
	file, err := Open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }() // it was only read
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return "", failed(name, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Stat describes the regular file or folder called name. Anything else is an *Error.
func Stat(name string) (fs.FileInfo, error) {
	st, err := os.Stat(name)
	if err != nil {
		return nil, failed(name, err)
	}
	if !st.IsDir() {
		if err := regular(name, st); err != nil {
			return nil, err
		}
	}
	return st, nil
}

type everywhere struct{}

func (everywhere) Stat(name string) (fs.FileInfo, error) { return os.Stat(name) }

func (everywhere) OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(name, flag, perm) //nolint:gosec // that is what the package is for
}

func regular(name string, st fs.FileInfo) error {
	switch mode := st.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		return &Error{name, "this is a folder; use the name of a file", nil}
	case mode&fs.ModeNamedPipe != 0:
		return &Error{name, "this is a pipe; use the name of an ordinary file", nil}
	case mode&fs.ModeSocket != 0:
		return &Error{name, "this is a socket; use the name of an ordinary file", nil}
	default:
		return &Error{name, "this is a device; use the name of an ordinary file", nil}
	}
}

// failed keeps the cause alone: the path stands in Name.
func failed(name string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return &Error{name, "there is no such file", fs.ErrNotExist}
	}
	return &Error{name, err.Error(), err}
}

func size(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	default:
		return fmt.Sprintf("%d bytes", n)
	}
}
