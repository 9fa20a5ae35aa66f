// Package jsonl follows a file of JSON lines that another process appends to. Lines have numbers, from 1 on, so that a
// reader that was away goes on where it stopped.
package jsonl

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sort"

	"clustergym/internal/ordinary"
)

// Tail reads the whole lines of a file that grows. It keeps no descriptor between calls. Not safe for concurrent use.
type Tail struct {
	path   string
	size   int64 // of the whole lines that have been read
	lines  int
	file   fs.FileInfo // of the last call, nil = there was none
	begins []byte      // the first bytes: those of another file differ
	head   string      // digest of the first line
	marks  []mark      // places that were passed
	resets int
}

// mark is a place between two lines.
type mark struct {
	lines int
	size  int64
}

// most is how many bytes one call of Next reads at most: a page that catches up with a long run takes several.
const most = 16 << 20

// first is how many bytes at the beginning tell one file from another.
const first = 256

// between is how many bytes lie between two marks, at least.
const between = 1 << 20

// New returns a tail of the file at path, which need not exist yet.
func New(path string) *Tail { return &Tail{path: path} }

// Lines returns how many lines have been read.
func (t *Tail) Lines() int { return t.lines }

// Path returns the path of the file.
func (t *Tail) Path() string { return t.path }

// Head returns a digest of the first line, "" while there is none. A file of the same name that another process began
// anew has another one, as the first lines of runs have times.
func (t *Tail) Head() string { return t.head }

// After returns a tail of the same file that goes on at most n lines from its beginning, as near to line n as t knows a
// place. It spares a reader that has those lines most of a long file.
func (t *Tail) After(n int) *Tail {
	i := sort.Search(len(t.marks), func(i int) bool { return t.marks[i].lines > n })
	if i == 0 {
		return New(t.path)
	}
	m := t.marks[i-1]
	return &Tail{path: t.path, size: m.size, lines: m.lines, file: t.file, begins: t.begins, head: t.head,
		marks: slices.Clone(t.marks[:i])}
}

// Resets returns how often the file turned out to be another one than the one read before, so that its lines began
// again. A function that Next calls can see by it that line 1 is not the line 1 that it knows.
func (t *Tail) Resets() int { return t.resets }

// Next calls f for every whole line that was added since the last call, with its number and without its end. The bytes
// belong to the tail. anew says that the file is not the one that was read before: it was cut (a run that is resumed
// cuts what its checkpoint does not know) or replaced, and the lines begin from 1 again. A file that does not exist has
// no lines. An error of f ends the call; its line counts as read.
func (t *Tail) Next(f func(n int, line []byte) error) (anew bool, err error) {
	file, err := ordinary.Open(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		return t.reset(), nil
	}
	if e, ok := errors.AsType[*ordinary.Error](err); ok && e.Err == nil {
		return false, fmt.Errorf("%s is no regular file: %s", t.path, e.Why)
	}
	if err != nil {
		return false, err
	}
	defer file.Close() //nolint:errcheck // only read
	info, err := file.Stat()
	if err != nil {
		return false, err
	}
	same, err := t.same(file, info)
	if err != nil {
		return false, err
	}
	if !same {
		anew = t.reset()
	}
	t.file = info
	for info.Size() > t.size {
		b := make([]byte, min(info.Size()-t.size, most))
		n, err := file.ReadAt(b, t.size)
		if err != nil && !errors.Is(err, io.EOF) {
			return anew, err
		}
		b = b[:n]
		if len(t.begins) < first && t.size == 0 {
			t.begins = bytes.Clone(b[:min(len(b), first)])
		}
		end := bytes.LastIndexByte(b, '\n') + 1
		if end == 0 {
			if n == most {
				return anew, fmt.Errorf("%s: line %d has more than %d bytes", t.path, t.lines+1, most)
			}
			return anew, nil // a line in the making
		}
		for line := range bytes.Lines(b[:end]) {
			t.pass(line)
			if err := f(t.lines, line[:len(line)-1]); err != nil {
				return anew, err
			}
		}
	}
	return anew, nil
}

// pass counts a line.
func (t *Tail) pass(line []byte) {
	t.lines++
	t.size += int64(len(line))
	if t.lines == 1 {
		sum := sha256.Sum256(line)
		t.head = hex.EncodeToString(sum[:6])
	}
	if n := len(t.marks); n == 0 && t.size >= between || n > 0 && t.size-t.marks[n-1].size >= between {
		t.marks = append(t.marks, mark{t.lines, t.size})
	}
}

// reset forgets the file that was read. anew is false if that had no lines.
func (t *Tail) reset() (anew bool) {
	anew = t.lines > 0
	if anew {
		t.resets++
	}
	*t = Tail{path: t.path, resets: t.resets}
	return anew
}

// same reports whether file is the one that was read before, with all that was read.
func (t *Tail) same(file *os.File, info fs.FileInfo) (bool, error) {
	if t.file == nil {
		return true, nil
	}
	if info.Size() < t.size || !os.SameFile(info, t.file) {
		return false, nil
	}
	b := make([]byte, min(int64(len(t.begins)), t.size))
	if _, err := file.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	return bytes.Equal(b, t.begins[:len(b)]), nil
}
