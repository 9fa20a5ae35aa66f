package traces

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"clustergym/internal/ordinary"
)

// Files opens the files that readers are told to read. Nil opens any path with the rights of the process, pipes
// included: that is for a user who names their own files. The others are for names that a stranger gave: they open
// ordinary files only and never wait for anything. Safe for concurrent use.
type Files struct {
	root *os.Root // nil = any path
}

// OrdinaryFiles opens ordinary files at any path.
func OrdinaryFiles() *Files { return &Files{} }

// FilesIn opens ordinary files in and below dir; paths are relative to it. A link is followed if it is relative and
// does not lead out of dir. dir stays the folder that it is now, even if it is renamed.
func FilesIn(dir string) (*Files, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, ordinary.Reason(err)
	}
	return &Files{root}, nil
}

// OpenError says why a file could not be opened or unpacked. Its text has the path and quotes nothing of the file.
type OpenError struct {
	Path string
	Why  string
	Err  error // nil if the file is there and is of the wrong kind
}

func (e *OpenError) Error() string { return "trace " + e.Path + ": " + e.Why }

// Unwrap returns Err.
func (e *OpenError) Unwrap() error { return e.Err }

func openError(path string, err error) error {
	err = ordinary.Reason(err)
	if errors.Is(err, fs.ErrNotExist) {
		return &OpenError{path, "there is no such file: " + fs.ErrNotExist.Error(), fs.ErrNotExist}
	}
	return &OpenError{path, err.Error(), err}
}

// Stat describes what is at path. Unless f is nil, anything but an ordinary file or a folder is an *OpenError.
func (f *Files) Stat(path string) (fs.FileInfo, error) {
	var st fs.FileInfo
	var err error
	if f == nil || f.root == nil {
		st, err = os.Stat(path)
	} else {
		st, err = f.root.Stat(path)
	}
	switch {
	case err != nil:
		return nil, openError(path, err)
	case f != nil && !st.IsDir() && !st.Mode().IsRegular():
		return nil, notOrdinary(path)
	}
	return st, nil
}

func notOrdinary(path string) error {
	return &OpenError{path, "this is no ordinary file", nil}
}

// Raw opens the file at path as it is stored. Once ctx is done, waiting for the writer of a pipe ends.
func (f *Files) Raw(ctx context.Context, path string) (*os.File, error) {
	if f == nil {
		return openAny(ctx, path)
	}
	var file *os.File
	var err error
	if f.root == nil {
		file, err = ordinary.Open(path)
	} else {
		file, err = ordinary.OpenIn(f.root, path)
	}
	if e, ok := errors.AsType[*ordinary.Error](err); ok {
		if e.Err != nil {
			return nil, openError(path, e.Err)
		}
		if st, err := f.Stat(path); err == nil && st.IsDir() {
			return nil, folder(path)
		}
		return nil, notOrdinary(path)
	}
	return file, err
}

func folder(path string) error { return &OpenError{path, "this is a folder, a file is wanted", nil} }

// openAny opens what a user has named, which may be a pipe: that is opened once a program writes into it, or never.
func openAny(ctx context.Context, path string) (*os.File, error) {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, openError(path, err)
	case st.IsDir():
		return nil, folder(path)
	case st.Mode().IsRegular():
		file, err := ordinary.Open(path)
		if e, ok := errors.AsType[*ordinary.Error](err); ok {
			return nil, openError(path, cmp.Or(e.Err, error(e)))
		}
		return file, err
	}
	type opened struct {
		file *os.File
		err  error
	}
	done := make(chan opened, 1)
	go func() {
		file, err := os.Open(path) //nolint:gosec // the user's own
		done <- opened{file, err}
	}()
	select {
	case o := <-done:
		if o.err != nil {
			return nil, openError(path, o.err)
		}
		return o.file, nil
	case <-ctx.Done():
		go func() { // the opening itself cannot be ended
			if o := <-done; o.file != nil {
				_ = o.file.Close() // nothing was read
			}
		}()
		return nil, ctx.Err()
	}
}

// Open opens a trace for reading. It recognises gzip, zstd, bzip2 and a zip of one file by the first bytes, not by the
// name, and unpacks them. A file of another kind, such as xz, Parquet or a web page, is an *OpenError that names the
// kind. A packed file that is cut short or damaged gives an error from Read that says so, never a short trace. Once ctx
// is done, reading fails. The caller closes the result, which is not safe for concurrent use.
func (f *Files) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	file, err := f.Raw(ctx, path)
	if err != nil {
		return nil, err
	}
	// A pipe whose writer is silent holds a read up; a file cannot have a deadline and does not need one.
	stop := context.AfterFunc(ctx, func() { _ = file.SetReadDeadline(time.Unix(1, 0)) })
	u, err := unpack(&ctxReader{ctx, file}, file, path)
	if err != nil {
		stop()
		_ = file.Close() // report the first fault
		return nil, err
	}
	u.r = &ctxReader{ctx, u.r}
	u.closers = append(u.closers, func() error { stop(); return file.Close() })
	return u, nil
}

// List returns the files in and below the folder at path whose paths keep takes, in lexical order; a folder that is
// linked to is not entered. If path is a file, it is the list.
func (f *Files) List(ctx context.Context, at string, keep func(path string) bool) ([]string, error) {
	st, err := f.Stat(at)
	if err != nil {
		return nil, err
	}
	if !st.IsDir() {
		return []string{at}, nil
	}
	var files []string
	visit := func(p string, e fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil && !e.IsDir() && keep(p) {
			files = append(files, p)
		}
		return err
	}
	if f == nil || f.root == nil {
		err = filepath.WalkDir(at, visit)
	} else {
		err = fs.WalkDir(f.root.FS(), path.Clean(filepath.ToSlash(at)), visit)
	}
	if err != nil && ctx.Err() == nil {
		err = openError(at, err)
	}
	return files, err
}

// Abs returns where path lies.
func (f *Files) Abs(path string) (string, error) {
	if f != nil && f.root != nil {
		path = filepath.Join(f.root.Name(), path)
	}
	return filepath.Abs(path)
}

// ctxReader fails with ctx's error once ctx is done.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (r *ctxReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.r.Read(p)
	if err != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		err = cmp.Or(r.ctx.Err(), err)
	}
	return n, err
}

// OpenFile opens the trace at any path, as a nil *Files does.
func OpenFile(path string) (io.ReadCloser, error) {
	return (*Files)(nil).Open(context.Background(), path)
}

// damaged returns an *OpenError for a packed file.
func damaged(path, what string, err error) error {
	return &OpenError{path, fmt.Sprintf("the %s stream is cut short or damaged: %v", what, err), err}
}
