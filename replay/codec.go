package replay

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// The saved form is little-endian: the magic "CGRP", a version, the kind of buffer, then its fields in the order of
// the save methods. Lengths cannot be chosen freely: they follow from the configuration, which is in the file and must
// equal the reader's, or are checked against it. So hostile bytes cannot make the reader allocate much memory.
const (
	magic   = 0x50524743 // "CGRP"
	version = 1

	kindUniform     = 1
	kindPrioritized = 2
	kindRollout     = 3
)

// encoder writes numbers and keeps the first error.
type encoder struct {
	w   *bufio.Writer
	n   int64
	err error
	buf [8]byte

	column []byte // part of a column
}

func newEncoder(w io.Writer) *encoder { return &encoder{w: bufio.NewWriterSize(w, 1<<16)} }

func (e *encoder) write(p []byte) {
	if e.err == nil {
		var n int
		n, e.err = e.w.Write(p)
		e.n += int64(n)
	}
}

func (e *encoder) header(kind uint32) {
	e.u32(magic)
	e.u32(version)
	e.u32(kind)
}

func (e *encoder) end() (int64, error) {
	if e.err == nil {
		e.err = e.w.Flush()
	}
	if e.err != nil {
		return e.n, fmt.Errorf("replay: save: %w", e.err)
	}
	return e.n, nil
}

func (e *encoder) u32(v uint32) {
	binary.LittleEndian.PutUint32(e.buf[:4], v)
	e.write(e.buf[:4])
}

func (e *encoder) u64(v uint64) {
	binary.LittleEndian.PutUint64(e.buf[:], v)
	e.write(e.buf[:])
}

func (e *encoder) int(v int)     { e.u64(uint64(v)) }
func (e *encoder) f64(v float64) { e.u64(math.Float64bits(v)) }

// atOnce is the number of elements of a column that are converted at a time.
const atOnce = 4096

// put writes a column of numbers or truth values.
func put[T any](e *encoder, column []T) {
	for part := range slices.Chunk(column, atOnce) {
		e.column, _ = binary.Append(e.column[:0], binary.LittleEndian, part) // fails for other types alone
		e.write(e.column)
	}
}

// decoder reads what encoder wrote and keeps the first error; after it every read returns 0.
type decoder struct {
	r   *bufio.Reader
	n   int64
	err error
	buf [8]byte

	column []byte // part of a column
}

func newDecoder(r io.Reader) *decoder { return &decoder{r: bufio.NewReaderSize(r, 1<<16)} }

func (d *decoder) read(p []byte) {
	if d.err == nil {
		var n int
		n, d.err = io.ReadFull(d.r, p)
		d.n += int64(n)
		if errors.Is(d.err, io.EOF) || errors.Is(d.err, io.ErrUnexpectedEOF) {
			d.err = fmt.Errorf("%w: it ends after %d bytes", ErrFormat, d.n)
		}
	}
	if d.err != nil {
		clear(p)
	}
}

// check records an error unless ok.
func (d *decoder) check(ok bool, format string, args ...any) {
	if d.err == nil && !ok {
		d.err = fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
	}
}

// same checks that a number of the configuration is equal.
func (d *decoder) same(name string, got, want float64) {
	d.check(got == want, "its %s is %v, not %v", name, got, want)
}

func (d *decoder) header(kind uint32) {
	m, v, k := d.u32(), d.u32(), d.u32()
	d.check(m == magic, "it does not begin with the magic number")
	d.check(v == version, "its version is %d, not %d", v, version)
	d.check(k == kind, "it is of kind %d, not %d", k, kind)
}

// end checks that no bytes are left.
func (d *decoder) end() error {
	if d.err == nil {
		if _, err := d.r.ReadByte(); err == nil {
			d.check(false, "bytes follow its end at %d", d.n)
		} else if !errors.Is(err, io.EOF) {
			d.err = err
		}
	}
	return d.err
}

func (d *decoder) u32() uint32 {
	d.read(d.buf[:4])
	return binary.LittleEndian.Uint32(d.buf[:4])
}

func (d *decoder) u64() uint64 {
	d.read(d.buf[:])
	return binary.LittleEndian.Uint64(d.buf[:])
}

func (d *decoder) f64() float64 { return math.Float64frombits(d.u64()) }

// int reads a number in [low, high].
func (d *decoder) int(name string, low, high int) int {
	v := d.u64()
	d.check(v <= math.MaxInt64 && int(v) >= low && int(v) <= high, "its %s is %d, want %d to %d", name, v, low, high)
	if d.err != nil {
		return low
	}
	return int(v)
}

// get reads a column of numbers.
func get[T any](d *decoder, column []T) {
	for part := range slices.Chunk(column, atOnce) {
		d.column = slices.Grow(d.column[:0], binary.Size(part))[:binary.Size(part)]
		d.read(d.column)
		_, _ = binary.Decode(d.column, binary.LittleEndian, part) // of the size of part
	}
}

// finite reads a column of numbers that must be finite.
func finite[T float32 | float64](d *decoder, column []T) {
	get(d, column)
	for _, x := range column {
		d.check(x-x == 0, "it holds the number %v", x)
	}
}

func (d *decoder) bools(column []bool) {
	for i := range column {
		d.read(d.buf[:1])
		d.check(d.buf[0] <= 1, "it holds the truth value %d", d.buf[0])
		column[i] = d.buf[0] == 1
	}
}
