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
)

// part is a file on its way. What has arrived stays on disk under a name of its own, told by the hash that is wanted,
// so that the next attempt, perhaps of another process on another day, goes on from there.
type part struct {
	file *os.File
	path string
	n    int64 // bytes that have arrived
	tag  string
	old  bool // some of them in an earlier run or before a cut
	// write is file.Write, but where a test has a disk that is full.
	write func(p []byte) (int, error)
}

// openPart begins or continues the download of f to target.
func openPart(target string, f *File) (*part, error) {
	dir := filepath.Dir(target)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, &FolderError{dir, reason(err)}
	}
	path := filepath.Join(dir, "."+filepath.Base(target)+"."+f.SHA256[:12]+".part")
	if st, err := os.Lstat(path); err == nil && !st.Mode().IsRegular() {
		return nil, &FolderError{dir, fmt.Errorf("%s in it is no ordinary file", filepath.Base(path))}
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644) //nolint:gosec // of the user's own cache
	if err != nil {
		return nil, &FolderError{dir, reason(err)}
	}
	n, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		_ = file.Close() // the first fault is the one to tell
		return nil, &FolderError{dir, reason(err)}
	}
	p := &part{file: file, path: path, n: n, old: n > 0, write: file.Write}
	if tag, err := os.ReadFile(p.tagPath()); err == nil { // without a tag the hash alone tells in the end
		p.tag = strings.TrimSpace(string(tag))
	}
	return p, nil
}

func (p *part) tagPath() string { return p.path + ".etag" }

// restart forgets what has arrived. tag is the server's name of what comes now, "" = none that can be asked for again.
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
	return os.WriteFile(p.tagPath(), []byte(tag+"\n"), 0o644) //nolint:gosec // nothing secret
}

// add appends b.
func (p *part) add(b []byte) error {
	n, err := p.write(b)
	p.n += int64(n)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("there is no room on the disk for %s; %s have arrived and are kept", p.path, FormatSize(p.n))
	}
	return err
}

// close leaves what has arrived for the next run; nothing at all is not left.
func (p *part) close() {
	_ = p.file.Close() // what was not written will be asked for again
	if p.n == 0 {
		p.remove()
	}
}

// remove gives up what has arrived.
func (p *part) remove() {
	_ = p.file.Close()
	_ = os.Remove(p.path) // what stays is continued or begun anew, and its hash looked at
	_ = os.Remove(p.tagPath())
}

// finish puts the part, which has its full length, under target, if its hash is right: on disk, and as a whole or not
// at all.
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
	_ = os.Remove(p.tagPath()) // of no use any more, and harmless
	syncFolder(filepath.Dir(target))
	return nil
}

// syncFolder puts the names in dir on disk. Not every system can; then a crash may lose the name, and the file is
// fetched again.
func syncFolder(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}

// HashError says that what arrived is not what the catalogue knows.
type HashError struct {
	File      string
	URL       string
	Got, Want string
}

func (e *HashError) Error() string {
	return fmt.Sprintf("%s from %s has the SHA-256 %s, want %s: this is not the published file, and it was removed", e.File, e.URL, e.Got, e.Want)
}

// hashOf is the SHA-256 of the file at path.
func hashOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // only read
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
