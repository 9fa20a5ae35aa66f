package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// entry is a file of an archive, or a folder if its path ends with a slash.
type entry struct {
	path string // with slashes
	data []byte
	mode fs.FileMode // permissions; 0 stands for 0644, of folders 0755
	uid  int         // in a tar also the group
}

func (e entry) permissions() fs.FileMode {
	switch {
	case e.mode != 0:
		return e.mode
	case strings.HasSuffix(e.path, "/"):
		return 0o755
	}
	return 0o644
}

// sorted returns the entries by path.
func sorted(entries []entry) []entry {
	return slices.SortedFunc(slices.Values(entries), func(a, b entry) int { return strings.Compare(a.path, b.path) })
}

// writeTar writes a tar.gz whose bytes depend on the entries and the time alone, and not on their order. Folders are
// there only where an entry names them.
func writeTar(w io.Writer, entries []entry, at time.Time) error {
	zw, err := gzip.NewWriterLevel(w, flate.BestCompression)
	if err != nil {
		return err
	}
	tw := tar.NewWriter(zw) // the header of gzip stays without name and time
	for _, e := range sorted(entries) {
		h := &tar.Header{
			Name: e.path, Mode: int64(e.permissions().Perm()), Uid: e.uid, Gid: e.uid,
			ModTime: at, Format: tar.FormatPAX, Typeflag: tar.TypeReg, Size: int64(len(e.data)),
		}
		if e.permissions()&fs.ModeSticky != 0 {
			h.Mode |= 0o1000
		}
		if strings.HasSuffix(e.path, "/") {
			h.Typeflag, h.Size = tar.TypeDir, 0
		}
		if err := tw.WriteHeader(h); err != nil {
			return fmt.Errorf("%s: %w", e.path, err)
		}
		if _, err := tw.Write(e.data); err != nil {
			return fmt.Errorf("%s: %w", e.path, err)
		}
	}
	if err := tw.Close(); err != nil {
		return err
	}
	return zw.Close()
}

// writeZip writes a zip whose bytes depend on the entries, their order and the time alone.
func writeZip(w io.Writer, entries []entry, at time.Time) error {
	zw := zip.NewWriter(w)
	zw.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestCompression)
	})
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.path, Method: zip.Deflate, Modified: at.UTC()} // local times of a zip are then UTC, too
		h.SetMode(e.permissions())
		f, err := zw.CreateHeader(h)
		if err != nil {
			return fmt.Errorf("%s: %w", e.path, err)
		}
		if _, err := f.Write(e.data); err != nil {
			return fmt.Errorf("%s: %w", e.path, err)
		}
	}
	return zw.Close()
}

// readZip returns the files of a zip in its order.
func readZip(data []byte) ([]entry, error) {
	zr, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	var all []entry
	for _, f := range zr.File {
		r, err := f.Open()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		all = append(all, entry{path: f.Name, data: text, mode: f.Mode().Perm()})
	}
	return all, nil
}

// readTar returns the files and folders of a tar.gz in its order.
func readTar(data []byte) ([]entry, error) {
	zr, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	var all []entry
	for tr := tar.NewReader(zr); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(tr)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", h.Name, err)
		}
		all = append(all, entry{path: h.Name, data: text, mode: h.FileInfo().Mode().Perm(), uid: h.Uid})
	}
}

// find returns the entry at path, or nil if no entry has that path.
func find(entries []entry, path string) *entry {
	i := slices.IndexFunc(entries, func(e entry) bool { return e.path == path })
	if i < 0 {
		return nil
	}
	return &entries[i]
}
