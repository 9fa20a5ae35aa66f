package traces

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"
)

// MaxLine is the longest line, and the longest row of several lines, that a reader accepts, in bytes. A longer one is a
// fault, so that a file that is not a trace cannot fill the memory.
const MaxLine = 1 << 20

// Lines reads a text file line by line and counts the lines, for the readers of formats. Not safe for concurrent use.
type Lines struct {
	file string
	r    *bufio.Reader
	buf  []byte // holds a line longer than the reader's buffer
	line int
	crlf bool
	end  byte // of a line: LF, or CR where the file has no LF
}

// NewLines starts at the first line of r. file is the name used in messages.
func NewLines(r io.Reader, file string) *Lines {
	return &Lines{file: file, r: bufio.NewReaderSize(r, 1<<16), end: '\n'}
}

// slice returns the bytes up to the next line end, as bufio.Reader.ReadSlice does. Where the first of them hold no LF
// but a CR, lines end in CR, as old spreadsheets write them.
func (l *Lines) slice() ([]byte, error) {
	b, err := l.r.ReadSlice(l.end)
	if l.line != 1 || l.end == '\r' || err != io.EOF && err != bufio.ErrBufferFull {
		return b, err
	}
	if k := bytes.IndexByte(b, '\r'); k < 0 || k == len(b)-1 {
		return b, err
	}
	l.end = '\r'
	l.r = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(bytes.Clone(b)), l.r), 1<<16)
	return l.r.ReadSlice(l.end)
}

// Next returns the next line without its line end (LF, CR LF, or CR in a file without LF), and io.EOF after the last
// one. A byte order mark before the first line is dropped. The bytes are valid until the next call. A failure of the
// underlying reader is wrapped with file and line; a line beyond MaxLine is a *RowError.
func (l *Lines) Next() ([]byte, error) {
	l.line++
	b, err := l.slice()
	if err == bufio.ErrBufferFull {
		l.buf = l.buf[:0]
		for err == bufio.ErrBufferFull && len(l.buf) <= MaxLine {
			l.buf = append(l.buf, b...)
			b, err = l.r.ReadSlice(l.end)
		}
		l.buf = append(l.buf, b...)
		b = l.buf
		if len(b) > MaxLine {
			return nil, l.Fault("", string(b[:100]), fmt.Sprintf("a line of at most %d bytes", MaxLine))
		}
	}
	if err != nil && (err != io.EOF || len(b) == 0) {
		if err == io.EOF {
			l.line--
			return nil, io.EOF
		}
		return nil, fmt.Errorf("%s:%d: %w", l.file, l.line, err)
	}
	l.crlf = false
	if n := len(b); n > 0 && b[n-1] == l.end {
		b = b[:n-1]
		if n > 1 && l.end == '\n' && b[n-2] == '\r' {
			b, l.crlf = b[:n-2], true
		}
	}
	if l.line == 1 && len(b) >= 3 && b[0] == 0xef && b[1] == 0xbb && b[2] == 0xbf {
		b = b[3:]
	}
	return b, nil
}

// Line returns the number of the line read last, counted from 1.
func (l *Lines) Line() int { return l.line }

// CRLF reports whether the line read last ended in CR LF.
func (l *Lines) CRLF() bool { return l.crlf }

// Fault describes a fault in the line read last. Long values are cut.
func (l *Lines) Fault(column, value, want string) *RowError {
	return &RowError{File: l.file, Line: l.line, Column: column, Value: short(value), Want: want}
}

// Names keeps one string for each distinct name, so that a reader allocates each user or queue once. The zero value is
// ready. It keeps at least the 65,536 names used last and at most twice as many: a name that comes again after so many
// others is allocated again. Not safe for concurrent use.
type Names struct {
	m   map[string]string
	old map[string]string // those before m became full, unless they are in m
}

// mostNames is the number of names in Names.m.
const mostNames = 1 << 16

// Get returns b as a string.
func (n *Names) Get(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if s, ok := n.m[string(b)]; ok {
		return s
	}
	return n.add(b)
}

// add returns the string of a name that is not in m, and puts it there.
func (n *Names) add(b []byte) string {
	s, ok := n.old[string(b)]
	if !ok {
		s = string(b)
	}
	if n.m == nil {
		n.m = make(map[string]string)
	}
	if len(n.m) == mostNames {
		n.m, n.old = n.old, n.m
		if n.m == nil {
			n.m = make(map[string]string)
		}
		clear(n.m)
	}
	n.m[s] = s
	return s
}

// ParseStatus reads the common words for a job's end, in upper or lower case: completed, pass, succeeded, finished;
// failed, error; cancelled, killed; and their variants. Every other word is StatusUnknown.
func ParseStatus(s string) Status {
	for i, words := range [...]string{Completed: " completed complete pass passed succeeded success finished done ",
		Failed: " failed fail failure error ", Cancelled: " cancelled canceled killed cancel aborted "} {
		if s != "" && !strings.Contains(s, " ") && strings.Contains(words, " "+strings.ToLower(s)+" ") {
			return Status(i)
		}
	}
	return StatusUnknown
}
