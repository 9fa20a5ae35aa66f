package sacct

import (
	"bytes"
	"io"
)

// source is a file of which a JSON decoder and a reader of lines take turns: what one has read too much goes back to
// it.
type source struct {
	r   io.Reader
	buf []byte // read and not yet taken
	own []byte // room of buf
	err error  // of r, behind buf
}

// longest bounds the pieces that line returns.
const longest = 1 << 16

// fill reads more, and reports whether there is.
func (s *source) fill() bool {
	for s.err == nil {
		if cap(s.own) < len(s.buf)+longest {
			s.own = make([]byte, 0, 2*len(s.buf)+2*longest)
		}
		s.buf = append(s.own[:0], s.buf...) // to the front
		n, err := s.r.Read(s.buf[len(s.buf):cap(s.buf)])
		s.buf, s.err = s.buf[:len(s.buf)+n], err
		if n > 0 {
			return true
		}
	}
	return false
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	if len(s.buf) == 0 && !s.fill() {
		return 0, s.err
	}
	n := copy(p, s.buf)
	s.buf = s.buf[n:]
	return n, nil
}

// unread puts back what was taken.
func (s *source) unread(b []byte) {
	s.buf = append(bytes.Clone(b), s.buf...)
}

// peek returns the next bytes without taking them: n, or fewer at the end of the file.
func (s *source) peek(n int) []byte {
	for len(s.buf) < n && s.fill() {
	}
	return s.buf[:min(n, len(s.buf))]
}

// line takes a line with its end, or the next piece of one that is longer than longest.
func (s *source) line() ([]byte, error) {
	from := 0
	for {
		if i := bytes.IndexByte(s.buf[from:], '\n'); i >= 0 {
			return s.take(from + i + 1), nil
		}
		if from = len(s.buf); from >= longest || !s.fill() {
			break
		}
	}
	if len(s.buf) == 0 {
		return nil, s.err
	}
	return s.take(min(len(s.buf), longest)), nil
}

func (s *source) take(n int) []byte {
	b := s.buf[:n]
	s.buf = s.buf[n:]
	return b
}
