// Package snap holds the code that every snapshot of state needs: fixed-width numbers in little-endian order, lengths
// that are checked against the bytes present before anything is allocated, and a checksum at the end. It knows nothing
// about what is saved. The checksum does not protect against deliberately forged snapshots, so code that restores one
// must still check every number.
package snap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// castagnoli is the table of the CRC-32C polynomial, for which processors have an instruction.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrCorrupt is wrapped by every error of Open and Done.
var ErrCorrupt = errors.New("snap: corrupt")

// Begin appends magic, which names format and version. Seal needs the length that dst had before Begin.
func Begin(dst []byte, magic string) []byte { return append(dst, magic...) }

// U64 appends v as 8 bytes.
func U64(dst []byte, v uint64) []byte { return binary.LittleEndian.AppendUint64(dst, v) }

// Int appends v as 8 bytes.
func Int(dst []byte, v int) []byte { return U64(dst, uint64(int64(v))) }

// F64 appends the bits of v, so that NaN and -0 survive.
func F64(dst []byte, v float64) []byte { return U64(dst, math.Float64bits(v)) }

// F32 appends the bits of v as 4 bytes.
func F32(dst []byte, v float32) []byte {
	return binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
}

// Bool appends v as one byte.
func Bool(dst []byte, v bool) []byte {
	if v {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// Bytes appends the length of b and b itself.
func Bytes(dst, b []byte) []byte { return append(Int(dst, len(b)), b...) }

// String appends the length of s and s itself.
func String(dst []byte, s string) []byte { return append(Int(dst, len(s)), s...) }

// Seal appends the CRC-32C of dst[start:], where start is the length that dst had before Begin.
func Seal(dst []byte, start int) []byte {
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// Reader reads what the functions above wrote. After a failure every call returns zero and Done returns an error, so
// callers need not check each call.
type Reader struct {
	b   []byte
	bad bool
}

// Open checks the magic and the checksum of src and returns a reader of the bytes between them. The reader reads src in
// place.
func Open(src []byte, magic string) (Reader, error) {
	n := len(src) - 4
	if n < len(magic) || string(src[:len(magic)]) != magic {
		return Reader{}, fmt.Errorf("%w: does not begin with %q", ErrCorrupt, magic)
	}
	if crc32.Checksum(src[:n], castagnoli) != binary.LittleEndian.Uint32(src[n:]) {
		return Reader{}, fmt.Errorf("%w: checksum differs", ErrCorrupt)
	}
	return Reader{b: src[len(magic):n]}, nil
}

func (r *Reader) take(n int) []byte {
	if r.bad || n < 0 || n > len(r.b) {
		r.bad = true
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

// U64 reads what U64 wrote.
func (r *Reader) U64() uint64 {
	b := r.take(8)
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}

// Int reads what Int wrote; a number that does not fit an int is a failure.
func (r *Reader) Int() int {
	v := int64(r.U64())
	if int64(int(v)) != v {
		r.bad = true
		return 0
	}
	return int(v)
}

// F32 reads what F32 wrote.
func (r *Reader) F32() float32 {
	b := r.take(4)
	if b == nil {
		return 0
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(b))
}

// F64 reads what F64 wrote.
func (r *Reader) F64() float64 { return math.Float64frombits(r.U64()) }

// Bool reads what Bool wrote; a byte other than 0 and 1 is a failure.
func (r *Reader) Bool() bool {
	b := r.take(1)
	if b == nil {
		return false
	}
	if b[0] > 1 {
		r.bad = true
		return false
	}
	return b[0] == 1
}

// Bytes reads what Bytes wrote. The result is a view of the source.
func (r *Reader) Bytes() []byte { return r.take(r.Int()) }

// String reads what String wrote.
func (r *Reader) String() string { return string(r.Bytes()) }

// Count reads a length that Int wrote, of elements that take at least size bytes each. A length that exceeds the
// remaining bytes is a failure, so a hostile length allocates nothing.
func (r *Reader) Count(size int) int {
	n := r.Int()
	if n < 0 || size > 0 && n > len(r.b)/size {
		r.bad = true
	}
	if r.bad {
		return 0
	}
	return n
}

// Done returns nil if every read succeeded and no bytes are left.
func (r *Reader) Done() error {
	if r.bad {
		return fmt.Errorf("%w: a number is missing or out of range", ErrCorrupt)
	}
	if len(r.b) > 0 {
		return fmt.Errorf("%w: %d bytes too many", ErrCorrupt, len(r.b))
	}
	return nil
}
