package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"clustergym/internal/durable"
	"clustergym/internal/ordinary"
)

// part is a file that is being fetched. The bytes that have arrived stay on disk under a name with the expected hash,
// so that the next attempt, perhaps of another process on another day, continues from there.
type part struct {
	file *os.File
	path string
	n    int64  // bytes that have arrived
	tag  string // the server's ETag
	old  bool   // some bytes are from an earlier run or from before an interruption
	// write is file.Write, except in tests of a full disk.
	write func(p []byte) (int, error)
}

// openPart starts or continues fetching f to target.
func openPart(target string, f *File) (*part, error) {
	dir := filepath.Dir(target)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, &FolderError{dir, ordinary.Reason(err)}
	}
	path := filepath.Join(dir, "."+filepath.Base(target)+"."+f.SHA256[:12]+".part")
	if st, err := os.Lstat(path); err == nil && !st.Mode().IsRegular() {
		return nil, &FolderError{dir, fmt.Errorf("%s in it is no ordinary file", filepath.Base(path))}
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644) //nolint:gosec // in the user's own cache
	if err != nil {
		return nil, &FolderError{dir, ordinary.Reason(err)}
	}
	n, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		_ = file.Close() // the first fault matters more
		return nil, &FolderError{dir, ordinary.Reason(err)}
	}
	p := &part{file: file, path: path, n: n, old: n > 0, write: file.Write}
	if tag, err := ordinary.Read(p.tagPath(), 4096); err == nil { // without a tag only the hash decides in the end
		p.tag = strings.TrimSpace(string(tag))
	}
	return p, nil
}

// tagPath returns the path of the file with the ETag.
func (p *part) tagPath() string { return p.path + ".etag" }

// restart discards the bytes that have arrived. tag is the ETag of the transfer that follows, "" if it has none that
// can be requested again.
func (p *part) restart(tag string) error {
	if err := p.file.Truncate(0); err != nil {
		return err
	}
	if _, err := p.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	p.n, p.old, p.tag = 0, false, tag
	if tag == "" {
		if err := os.Remove(p.tagPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return os.WriteFile(p.tagPath(), []byte(tag+"\n"), 0o644) //nolint:gosec // the tag is not secret
}

// add appends b. A full disk gives an error that says how much is kept.
func (p *part) add(b []byte) error {
	n, err := p.write(b)
	p.n += int64(n)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("there is no room on the disk for %s; %s have arrived and are kept", p.path, FormatSize(p.n))
	}
	return err
}

// close keeps the bytes that have arrived for the next run. It removes an empty part.
func (p *part) close() {
	_ = p.file.Close() // unwritten bytes will be requested again
	if p.n == 0 {
		p.remove()
	}
}

// remove removes the part.
func (p *part) remove() {
	_ = p.file.Close()
	_ = os.Remove(p.path) // a remaining file is harmless: it is continued or restarted, and its hash checked
	_ = os.Remove(p.tagPath())
}

// finish checks the hash of a complete part, syncs it to disk and renames it to target. A wrong hash is a *HashError.
func (p *part) finish(target string, f *File) error {
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(p.file, 0, p.n)); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != f.SHA256 {
		return &HashError{File: f.To, Got: got, Want: f.SHA256}
	}
	if err := p.file.Sync(); err != nil {
		return err
	}
	if err := p.file.Close(); err != nil {
		return err
	}
	if err := os.Rename(p.path, target); err != nil {
		return err
	}
	_ = os.Remove(p.tagPath())              // no longer needed, and harmless
	_ = durable.Names(filepath.Dir(target)) // if a crash loses the name, the file is fetched again
	return nil
}

// HashError is returned for a fetched file whose hash is not the catalogue's.
type HashError struct {
	File      string
	URL       string
	Got, Want string
}

// Error names the file, its address and both hashes.
func (e *HashError) Error() string {
	return fmt.Sprintf("%s from %s has the SHA-256 %s, want %s: this is not the published file, and it was removed",
		e.File, e.URL, e.Got, e.Want)
}
