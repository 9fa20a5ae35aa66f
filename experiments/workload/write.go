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
)

// OutFile is a file that is being written. A file that stands under its name is replaced as a whole by Commit,
// and left as it is by Discard and by a crash. Not safe for concurrent use.
type OutFile struct {
	io.Writer
	layers []io.Closer // to be closed in this order
	file   *os.File
	final  string // "" = written in place
	done   bool
}

// CreateFile begins to write path; what ends in .gz or .zst is packed. Something that is no ordinary file, such
// as a pipe or a terminal, is written in place. A path that cannot be written is an *InputError. The caller ends
// with Commit, and calls Discard in any case.
func CreateFile(path string) (*OutFile, error) {
	final, err := filepath.EvalSymlinks(path) // a link stays, its target is replaced
	if errors.Is(err, fs.ErrNotExist) {
		final, err = path, nil
	}
	if err != nil {
		return nil, Mistake("output file %s: %w", path, Reason(err))
	}
	o := &OutFile{final: final}
	mode := fs.FileMode(0o644)
	switch st, err := os.Stat(final); {
	case err == nil && st.IsDir():
		return nil, Mistake("output file %s: this is a folder", path)
	case err == nil && !st.Mode().IsRegular():
		o.final = ""
		o.file, err = os.OpenFile(final, os.O_WRONLY, 0)
		if err != nil {
			return nil, Mistake("output file %s: %w", path, Reason(err))
		}
	default:
		if err == nil {
			mode = st.Mode().Perm()
		}
		o.file, err = os.CreateTemp(filepath.Dir(final), "."+filepath.Base(final)+".*.part")
		if errors.Is(err, fs.ErrNotExist) {
			return nil, Mistake("output file %s: there is no folder %s", path, filepath.Dir(final))
		}
		if err == nil {
			err = o.file.Chmod(mode)
		}
		if err != nil {
			o.Discard()
			return nil, Mistake("output file %s: %w", path, Reason(err))
		}
	}
	b := bufio.NewWriterSize(o.file, 1<<16)
	o.Writer, o.layers = b, []io.Closer{flusher{b}}
	switch {
	case strings.HasSuffix(path, ".gz"):
		z := gzip.NewWriter(b) // its header carries neither name nor time: equal content, equal bytes
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

type flusher struct{ b *bufio.Writer }

func (f flusher) Close() error { return f.b.Flush() }

// Commit finishes the file: what was written is on disk and stands under its name. After an error the old file
// is still there.
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

// Discard gives up what was not committed. It is harmless after Commit.
func (o *OutFile) Discard() {
	if o.done || o.file == nil {
		return
	}
	o.done = true
	_ = o.file.Close() // it goes away
	if o.final != "" {
		_ = os.Remove(o.file.Name())
	}
}
