package traces

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"context"
	"errors"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
)

// mostLayers is how often a file may be packed: a gzip file in a zip is two.
const mostLayers = 3

// unpacked is an unpacked stream whose errors name the file.
type unpacked struct {
	r       io.Reader
	what    string // what it is packed with, such as "gzip"; "" when plain
	path    string
	closers []func() error // in order
}

// unpack looks at the first bytes of r, whose file is nil if it cannot be read in any order, and wraps it in the right
// reader. A file of another kind, which no reader here can take, is an *OpenError that names the kind.
func unpack(r io.Reader, file *os.File, path string) (*unpacked, error) {
	u := &unpacked{r: r, path: path}
	for range mostLayers {
		b := bufio.NewReaderSize(u.r, 1<<16)
		if u.what != "" { // errors of one layer are told as they are by the next
			b = bufio.NewReaderSize(&unpacked{r: u.r, what: u.what, path: path}, 1<<16)
		}
		head, err := b.Peek(foreignHead) // a file of fewer bytes is no fault here
		if err != nil && err != io.EOF {
			return nil, u.closed(u.wrap(err))
		}
		next, what, err := u.layer(b, head, file)
		if err != nil {
			return nil, u.closed(err)
		}
		u.r = next
		if what == "" {
			if kind := foreign(head); kind != "" {
				return nil, u.closed(&OpenError{path, u.inside() + kind, nil})
			}
			return u, nil
		}
		u.what = what
		file = nil // what comes next is inside
	}
	b := bufio.NewReaderSize(u.r, 1<<16)
	u.r = b
	if head, _ := b.Peek(foreignHead); packedBy(head) != "" { // an error comes again
		return nil, u.closed(&OpenError{path, "it is packed more than three times", nil})
	}
	return u, nil
}

// inside introduces what was found in a packed file.
func (u *unpacked) inside() string {
	if u.what == "" {
		return ""
	}
	return "inside " + u.what + " "
}

// closed ends an opening that failed.
func (u *unpacked) closed(err error) error {
	_ = u.Close() // report the first fault
	return err
}

// packedBy names the packer of data that begins with head, "" if it is not packed in a way that can be read here.
func packedBy(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}): // RFC 1952, 2.3.1
		return "gzip"
	case len(head) >= 4 && isZstd(head):
		return "zstd"
	case len(head) >= 10 && head[3] >= '1' && head[3] <= '9' && bytes.HasPrefix(head, []byte("BZh")) &&
		(string(head[4:10]) == "1AY&SY" || string(head[4:10]) == "\x17\x72\x45\x38\x50\x90"):
		return "bzip2"
	case isZip(head):
		return "zip"
	}
	return ""
}

// layer returns the contents of b, which begins with head, and what they are packed with; what is "" if they are not.
func (u *unpacked) layer(b *bufio.Reader, head []byte, file *os.File) (r io.Reader, what string, err error) {
	switch what = packedBy(head); what {
	case "gzip":
		z, err := newGunzip(b)
		if err != nil {
			return nil, "", (&unpacked{what: what, path: u.path}).wrap(err)
		}
		u.closers = append(u.closers, z.z.Close)
		return z, what, nil
	case "zstd":
		tail := &padded{b: b}
		// With a concurrency of 1 the decoder starts no goroutines, so none outlives the trace's single owner.
		z, err := zstd.NewReader(tail, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(1<<27))
		if err != nil {
			return nil, "", (&unpacked{what: what, path: u.path}).wrap(err)
		}
		u.closers = append(u.closers, func() error { z.Close(); return nil })
		return &frames{r: z, tail: tail}, what, nil
	case "bzip2":
		tail := &padded{b: b}
		return &frames{r: bzip2.NewReader(tail), tail: tail}, what, nil
	case "zip":
		z, err := openZip(file, u.path)
		if err != nil {
			return nil, "", err
		}
		u.closers = append(u.closers, z.Close)
		return z, what, nil
	}
	return b, "", nil
}

// isZstd recognises a zstd frame and a skippable frame (RFC 8878, 3.1), which some packers write first.
func isZstd(b []byte) bool {
	return b[0] == 0x28 && b[1] == 0xb5 && b[2] == 0x2f && b[3] == 0xfd ||
		b[0]&0xf0 == 0x50 && b[1] == 0x2a && b[2] == 0x4d && b[3] == 0x18
}

func (u *unpacked) wrap(err error) error {
	if _, ok := errors.AsType[*OpenError](err); ok { // of a layer below
		return err
	}
	switch {
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded): // nothing is wrong with the file
		return err
	case u.what == "":
		return openError(u.path, err)
	case errors.Is(err, errTrailing):
		return &OpenError{u.path, "after the " + u.what +
			" stream the file has something else; it was written over or joined with another file", err}
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
