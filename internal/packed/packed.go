// Package packed writes files and folders as one stream of bytes for other machines, and takes such streams apart: tar
// with sorted names and no times, owners or modes, in zstd. Equal content has an equal digest. What is taken apart may
// come from an enemy.
package packed

import (
	"archive/tar"
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/klauspost/compress/zstd"

	"clustergym/internal/ordinary"
)

// The bounds of what is unpacked: more is taken for an attack or an accident. A few megabytes of zeros can be packed
// into some hundred bytes, but nothing that is worth sending is much more than a hundred times as large as its packed
// form.
const (
	maxFiles    = 1 << 20
	maxUnpacked = 1 << 40
	maxFree     = 1 << 30  // bytes that anything may have when unpacked
	maxRatio    = 200      // bytes more for each packed byte
	maxWindow   = 64 << 20 // of the packer, in bytes of memory
)

// The two kinds of content. The kind is hashed with the content, so that a folder and a file never share a digest.
const (
	File   = "file"
	Folder = "folder"
)

// Entry is a file or a folder within a folder.
type Entry struct {
	Name string // with slashes
	Path string
	Dir  bool
	Size int64
	Time int64 // of the last change, in nanoseconds
}

// Entries lists a folder, sorted by name. Links to files count as files; other links and devices are refused.
func Entries(root string) ([]Entry, error) {
	var list []Entry
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == root {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		st, err := os.Stat(p)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
		case !st.Mode().IsRegular():
			return fmt.Errorf("%s is neither a file nor a folder, and cannot be sent to other machines", p)
		}
		list = append(list, Entry{filepath.ToSlash(rel), p, st.IsDir(), st.Size(), st.ModTime().UnixNano()})
		return nil
	})
	slices.SortFunc(list, func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
	return list, err
}

// writeTar writes entries as tar: names and contents alone, no times, owners or modes.
func writeTar(ctx context.Context, w io.Writer, list []Entry) error {
	t := tar.NewWriter(w)
	for _, e := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		h := &tar.Header{Name: e.Name, Mode: 0o644, Size: e.Size, Typeflag: tar.TypeReg}
		if e.Dir {
			h.Name, h.Mode, h.Size, h.Typeflag = e.Name+"/", 0o755, 0, tar.TypeDir
		}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if e.Dir {
			continue
		}
		f, err := ordinary.Open(e.Path)
		if err != nil {
			return err
		}
		n, err := io.Copy(t, io.LimitReader(f, e.Size))
		if err = cmp.Or(err, f.Close()); err == nil && n < e.Size {
			err = fmt.Errorf("%s became shorter while it was read", e.Path)
		}
		if err != nil {
			return err
		}
	}
	return t.Close()
}

// NewHash returns a hash of content of a kind, which Write is to write.
func NewHash(kind string) hash.Hash {
	h := sha256.New()
	_, _ = io.WriteString(h, kind+"\n") // a hash never fails
	return h
}

// Sum returns what a hash of NewHash has come to, in hexadecimal digits.
func Sum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

// Write writes the content of a file or folder, unpacked, as its digest covers it.
func Write(ctx context.Context, w io.Writer, path, kind string, list []Entry) error {
	if kind == Folder {
		return writeTar(ctx, w, list)
	}
	f, err := ordinary.Open(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return cmp.Or(err, f.Close())
}

// Reader returns a reader of the packed content; digest gives the digest of what was packed, once it is read.
func Reader(ctx context.Context, path, kind string, list []Entry) (r io.ReadCloser, digest func() string) {
	h := NewHash(kind)
	pr, pw := io.Pipe()
	go func() {
		pw.CloseWithError(func() error {
			z, err := zstd.NewWriter(pw, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
				zstd.WithWindowSize(4<<20))
			if err != nil {
				return err
			}
			b := bufio.NewWriterSize(z, 1<<18)
			if err := Write(ctx, io.MultiWriter(b, h), path, kind, list); err != nil {
				return err
			}
			if err := b.Flush(); err != nil {
				return err
			}
			return z.Close()
		}())
	}()
	return pr, func() string { return Sum(h) }
}

// Full makes every Read fill its buffer if it can, so that the chunks of the store are whole.
type Full struct{ R io.Reader }

// Read implements io.Reader.
func (f Full) Read(p []byte) (int, error) {
	n, err := io.ReadFull(f.R, p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}

// Unpack writes packed content to path, which is a folder if kind is Folder, and returns the content's digest. A
// folder's files replace those of the same names.
func Unpack(r io.Reader, path, kind string) (string, error) {
	in := &counted{r: r}
	z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return "", err
	}
	defer z.Close()
	h := NewHash(kind)
	content := io.TeeReader(&bounded{z, in, 0}, h)
	if kind == Folder {
		err = readTar(content, path)
		if err == nil {
			_, err = io.Copy(io.Discard, content) // the padding after the end
		}
	} else {
		err = writeFile(path, content)
	}
	return Sum(h), err
}

// counted counts what is read.
type counted struct {
	r io.Reader
	n int64
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// bounded is a reader of what is unpacked from packed. It fails when that is more than any content can be.
type bounded struct {
	r      io.Reader
	packed *counted
	n      int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	b.n += int64(n)
	if most := min(maxUnpacked, maxFree+maxRatio*b.packed.n); b.n > most {
		return 0, fmt.Errorf("the packed content has more than %d bytes, and is refused", most)
	}
	return n, err
}

// Look returns what a path is, and a text that changes with its content.
func Look(path string) (kind, digest string, list []Entry, err error) {
	st, err := os.Stat(path)
	if err != nil {
		return "", "", nil, err
	}
	if !st.IsDir() {
		if !st.Mode().IsRegular() {
			return "", "", nil, fmt.Errorf("%s is neither a file nor a folder", path)
		}
		return File, fmt.Sprintf("%s %d %d", path, st.Size(), st.ModTime().UnixNano()), nil, nil
	}
	if list, err = Entries(path); err != nil {
		return "", "", nil, err
	}
	h := NewHash(Folder)
	for _, e := range list {
		fmt.Fprintln(h, e.Name, e.Dir, e.Size, e.Time)
	}
	return Folder, path + " " + Sum(h), list, nil
}

func writeFile(path string, r io.Reader) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return fill(f, r)
}

// fill writes a file and closes it.
func fill(f *os.File, content io.Reader) error {
	_, err := io.Copy(f, content)
	return cmp.Or(err, f.Close())
}

// readTar writes what writeTar wrote into dir. It refuses what writeTar does not write: names that lead out of dir or
// are out of order, links and devices.
func readTar(r io.Reader, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir) // no name and no link leads out of it
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // nothing was written through it
	t, last := tar.NewReader(r), ""
	for n := 0; ; n++ {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the packed folder cannot be read: %w", err)
		}
		name := path.Clean(h.Name)
		switch {
		case n >= maxFiles:
			return fmt.Errorf("the packed folder has more than %d files", maxFiles)
		case h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir:
			return fmt.Errorf("the packed folder has %q, which is neither a file nor a folder", h.Name)
		case !filepath.IsLocal(filepath.FromSlash(h.Name)) || name == ".":
			return fmt.Errorf("the packed folder has the name %q, which leads out of it", h.Name)
		case name <= last:
			return fmt.Errorf("the packed folder has the name %q after %q, want names in order, each once", name, last)
		}
		last = name
		if err := extract(root, filepath.FromSlash(name), h.Typeflag == tar.TypeDir, t); err != nil {
			return err
		}
	}
}

func extract(root *os.Root, name string, dir bool, content io.Reader) error {
	if dir {
		return root.MkdirAll(name, 0o755)
	}
	if parent := filepath.Dir(name); parent != "." {
		if err := root.MkdirAll(parent, 0o755); err != nil {
			return err
		}
	}
	f, err := root.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return fill(f, content)
}
