package traces

import (
	"archive/zip"
	"bufio"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// errTrailing says that something else than zeros and further streams follows a packed stream.
var errTrailing = errors.New("what follows is not packed")

// gunzip reads gzip members one after the other. Zeros after the last are padding of tapes and block devices, which
// gzip ignores too; anything else is an error.
type gunzip struct {
	b   *bufio.Reader
	z   *gzip.Reader
	end error // how it ended
}

func newGunzip(b *bufio.Reader) (*gunzip, error) {
	z, err := gzip.NewReader(b)
	if err != nil {
		return nil, err
	}
	z.Multistream(false)
	return &gunzip{b: b, z: z}, nil
}

// Read implements io.Reader.
func (g *gunzip) Read(p []byte) (int, error) {
	for g.end == nil {
		n, err := g.z.Read(p)
		if err == io.EOF {
			if err = g.next(); err == nil && n == 0 {
				continue
			}
		}
		g.end = err
		return n, err
	}
	return 0, g.end
}

// next goes to the next member; io.EOF = there is none.
func (g *gunzip) next() error {
	head, err := g.b.Peek(2)
	switch {
	case len(head) == 0:
		return err
	case head[0] == 0:
		return onlyZeros(g.b)
	case len(head) < 2 || head[0] != 0x1f || head[1] != 0x8b:
		return errTrailing
	}
	if err := g.z.Reset(g.b); err != nil {
		return err
	}
	g.z.Multistream(false)
	return nil
}

// onlyZeros reads r to its end; io.EOF = it held nothing but zeros.
func onlyZeros(r io.ByteReader) error {
	for {
		c, err := r.ReadByte()
		if err != nil {
			return err
		}
		if c != 0 {
			return errTrailing
		}
	}
}

// padded counts the zeros at the end of what was read so far.
type padded struct {
	b     *bufio.Reader
	zeros int
}

// Read implements io.Reader.
func (p *padded) Read(to []byte) (int, error) {
	n, err := p.b.Read(to)
	for _, c := range to[:n] {
		p.count(c)
	}
	return n, err
}

// ReadByte implements io.ByteReader.
func (p *padded) ReadByte() (byte, error) {
	c, err := p.b.ReadByte()
	if err == nil {
		p.count(c)
	}
	return c, err
}

func (p *padded) count(c byte) {
	if p.zeros++; c != 0 {
		p.zeros = 0
	}
}

// frames reads packed streams one after the other, and ends where only zeros follow.
type frames struct {
	r    io.Reader
	tail *padded
	end  error // how it ended; decoders do not keep it
}

// Read implements io.Reader.
func (f *frames) Read(p []byte) (int, error) {
	if f.end != nil {
		return 0, f.end
	}
	n, err := f.r.Read(p)
	_, structural := errors.AsType[bzip2.StructuralError](err)
	if structural && strings.Contains(err.Error(), "continuation") || errors.Is(err, zstd.ErrMagicMismatch) {
		err = errTrailing
		if f.tail.zeros > 0 {
			err = onlyZeros(f.tail)
		}
	}
	f.end = err
	return n, err
}

func isZip(head []byte) bool {
	return len(head) >= 4 && head[0] == 'P' && head[1] == 'K' &&
		(head[2] == 3 && head[3] == 4 || head[2] == 5 && head[3] == 6 || head[2] == 7 && head[3] == 8)
}

// openZip opens the only file in a zip.
func openZip(file *os.File, name string) (io.ReadCloser, error) {
	no := func(why string) (io.ReadCloser, error) { return nil, &OpenError{name, why, nil} }
	if file == nil {
		return no("this is a zip inside another file, or comes through a pipe; unpack it first")
	}
	st, err := file.Stat()
	if err != nil {
		return nil, openError(name, err)
	}
	if !st.Mode().IsRegular() {
		return no("this is a zip that comes through a pipe; unpack it first")
	}
	z, err := zip.NewReader(file, st.Size())
	if err != nil {
		return nil, damaged(name, "zip", err)
	}
	var only *zip.File
	n := 0
	for _, f := range z.File {
		switch {
		case f.Name == "xl/workbook.xml" || f.Name == "xl/workbook.bin":
			return no("this is an Excel workbook; save its sheet as CSV UTF-8")
		case f.Name == "content.xml":
			return no("this is an OpenDocument file; save its sheet as CSV in UTF-8")
		case strings.HasSuffix(f.Name, "/") || strings.HasPrefix(f.Name, "__MACOSX/") || path.Base(f.Name) == ".DS_Store":
			continue
		}
		only = f
		n++
	}
	switch {
	case n == 0:
		return no("this is a zip without a file in it")
	case n > 1:
		return no(fmt.Sprintf("this is a zip of %d files; unpack it and name one of them", n))
	case only.Flags&1 != 0:
		return no("this is a zip whose file is encrypted; unpack it first")
	}
	r, err := only.Open()
	if errors.Is(err, zip.ErrAlgorithm) {
		return no("this is a zip packed by a method that cannot be read here; unpack it first")
	} else if err != nil {
		return nil, damaged(name, "zip", err)
	}
	return r, nil
}
