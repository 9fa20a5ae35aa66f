package traces

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/klauspost/compress/zstd"
)

// unpacked is an unpacked stream whose errors name the file.
type unpacked struct {
	r       io.Reader
	what    string // "gzip" or "zstd", "" when plain
	path    string
	closers []func() error // in order
}

// unpack looks at the first bytes of r and wraps it in the right reader.
func unpack(r io.Reader, path string) (*unpacked, error) {
	b := bufio.NewReaderSize(r, 1<<16)
	u := &unpacked{r: b, path: path}
	head, err := b.Peek(4) // a file of fewer bytes is no fault here
	if err != nil && err != io.EOF {
		return nil, u.wrap(err)
	}
	switch {
	case len(head) >= 2 && head[0] == 0x1f && head[1] == 0x8b: // RFC 1952, 2.3.1
		u.what = "gzip"
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, u.wrap(err)
		}
		u.r = z
		u.closers = append(u.closers, z.Close)
	case len(head) == 4 && isZstd(head):
		u.what = "zstd"
		// With a concurrency of 1 the decoder starts no goroutines, so none outlives the trace's single owner.
		z, err := zstd.NewReader(b, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(1<<27))
		if err != nil {
			return nil, u.wrap(err)
		}
		u.r = z
		u.closers = append(u.closers, func() error { z.Close(); return nil })
	}
	return u, nil
}

// isZstd recognises a zstd frame and a skippable frame (RFC 8878, 3.1), which some packers write first.
func isZstd(b []byte) bool {
	return b[0] == 0x28 && b[1] == 0xb5 && b[2] == 0x2f && b[3] == 0xfd ||
		b[0]&0xf0 == 0x50 && b[1] == 0x2a && b[2] == 0x4d && b[3] == 0x18
}

func (u *unpacked) wrap(err error) error {
	switch {
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded): // nothing is wrong with the file
		return err
	case u.what == "":
		return openError(u.path, err)
	}
	return damaged(u.path, u.what, err)
}

// Read implements io.Reader.
func (u *unpacked) Read(p []byte) (int, error) {
	n, err := u.r.Read(p)
	if err != nil && err != io.EOF {
		err = u.wrap(err)
	}
	return n, err
}

// Close implements io.Closer.
func (u *unpacked) Close() error {
	var first error
	for _, c := range u.closers {
		if err := c(); err != nil && first == nil {
			first = err
		}
	}
	u.closers = nil
	return first
}

// cause drops operation and path from a file error, because the message already names the path.
func cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}
