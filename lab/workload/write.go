package workload

import (
	"bufio"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"

	"clustergym/internal/fault"
	"clustergym/internal/ordinary"
)

// OutFile is a file being written. Commit replaces an existing file of the same name as a whole; Discard and a crash
// leave it unchanged. Not safe for concurrent use.
type OutFile struct {
	io.Writer
	layers []io.Closer // closed in this order
	file   *os.File
	final  string // "" = written in place
	done   bool
}

// CreateFile starts to write path. A name that ends in .gz or .zst compresses the contents. Anything but a regular
// file, such as a pipe or a terminal, is written in place. A path that cannot be written is a *fault.Mistake. The
// caller finishes with Commit, and calls Discard in any case.
func CreateFile(path string) (*OutFile, error) {
	final, err := filepath.EvalSymlinks(path) // a link stays, its target is replaced
	if errors.Is(err, fs.ErrNotExist) {
		final, err = path, nil
	}
	if err != nil {
		return nil, fault.Mistakef("output file %s: %w", path, ordinary.Reason(err))
	}
	o := &OutFile{final: final}
	mode := fs.FileMode(0o644)
	switch st, err := os.Stat(final); {
	case err == nil && st.IsDir():
		return nil, fault.Mistakef("output file %s: this is a folder", path)
	case err == nil && !st.Mode().IsRegular():
		o.final = ""
		o.file, err = os.OpenFile(final, os.O_WRONLY, 0)
		if err != nil {
			return nil, fault.Mistakef("output file %s: %w", path, ordinary.Reason(err))
		}
	default:
		if err == nil {
			mode = st.Mode().Perm()
		}
		o.file, err = os.CreateTemp(filepath.Dir(final), "."+filepath.Base(final)+".*.part")
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fault.Mistakef("output file %s: there is no folder %s", path, filepath.Dir(final))
		}
		if err == nil {
			err = o.file.Chmod(mode)
		}
		if err != nil {
			o.Discard()
			return nil, fault.Mistakef("output file %s: %w", path, ordinary.Reason(err))
		}
	}
	b := bufio.NewWriterSize(o.file, 1<<16)
	o.Writer, o.layers = b, []io.Closer{flusher{b}}
	switch {
	case strings.HasSuffix(path, ".gz"):
		z := gzip.NewWriter(b) // the header has neither name nor time, so equal contents give equal bytes
		o.Writer, o.layers = z, append([]io.Closer{z}, o.layers...)
	case strings.HasSuffix(path, ".zst"):
		z, err := zstd.NewWriter(b, zstd.WithEncoderConcurrency(1))
		if err != nil {
			o.Discard()
			return nil, err
		}
		o.Writer, o.layers = z, append([]io.Closer{z}, o.layers...)
	}
	return o, nil
}

// flusher closes a bufio.Writer by flushing it.
type flusher struct{ b *bufio.Writer }

func (f flusher) Close() error { return f.b.Flush() }

// Commit syncs the file to disk and gives it its name. After an error an existing file is unchanged.
func (o *OutFile) Commit() error {
	if o.done {
		return nil
	}
	for _, l := range o.layers {
		if err := l.Close(); err != nil {
			return err
		}
	}
	if o.final == "" {
		o.done = true
		return o.file.Close()
	}
	if err := o.file.Sync(); err != nil {
		return err
	}
	if err := o.file.Close(); err != nil {
		return err
	}
	if err := os.Rename(o.file.Name(), o.final); err != nil {
		return err
	}
	o.done = true
	return nil
}

// Discard removes the file if it was not committed. After Commit it does nothing.
func (o *OutFile) Discard() {
	if o.done || o.file == nil {
		return
	}
	o.done = true
	_ = o.file.Close() // the file is removed
	if o.final != "" {
		_ = os.Remove(o.file.Name())
	}
}
