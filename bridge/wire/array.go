package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"
)

// DType is the type of an array's elements. Its values are the codes on the wire.
type DType uint8

// The element types.
const (
	Bool DType = 1 + iota
	I8
	U8
	I16
	U16
	I32
	U32
	I64
	U64
	F32
	F64
	F16
)

var dtypes = [...]struct {
	name, numpy string
	size        int
}{
	Bool: {"bool", "|b1", 1}, I8: {"int8", "|i1", 1}, U8: {"uint8", "|u1", 1}, I16: {"int16", "<i2", 2},
	U16: {"uint16", "<u2", 2},
	I32: {"int32", "<i4", 4}, U32: {"uint32", "<u4", 4}, I64: {"int64", "<i8", 8}, U64: {"uint64", "<u8", 8},
	F32: {"float32", "<f4", 4}, F64: {"float64", "<f8", 8}, F16: {"float16", "<f2", 2},
}

func (d DType) valid() bool { return d >= Bool && int(d) < len(dtypes) }

// Size returns the number of bytes of one element.
func (d DType) Size() int { return dtypes[d].size }

// String returns numpy's name of the type.
func (d DType) String() string {
	if d.valid() {
		return dtypes[d].name
	}
	return fmt.Sprintf("DType(%d)", uint8(d))
}

// DTypeNamed returns the type that numpy calls name, and whether there is one.
func DTypeNamed(name string) (DType, bool) {
	return dtypeWhere(func(d DType) bool { return dtypes[d].name == name })
}

func dtypeWhere(is func(DType) bool) (DType, bool) {
	for d := Bool; d.valid(); d++ {
		if is(d) {
			return d, true
		}
	}
	return 0, false
}

// ExtArray is the msgpack extension type of arrays.
const ExtArray = 78

const maxDims = 8

// Array is a dense array. Data is in C order and little-endian. In a decoded array it is a view of the frame.
type Array struct {
	DType DType
	Shape []int
	Data  []byte
}

// Len returns the number of elements.
func (a Array) Len() int { return len(a.Data) / a.DType.Size() }

// Int returns element i of an array of integers or booleans. ok is false for uint64 values above the largest int64, and
// for other types.
func (a Array) Int(i int) (v int64, ok bool) {
	b := a.Data[i*a.DType.Size():]
	switch a.DType {
	case Bool, U8:
		return int64(b[0]), true
	case I8:
		return int64(int8(b[0])), true
	case I16:
		return int64(int16(binary.LittleEndian.Uint16(b))), true
	case U16:
		return int64(binary.LittleEndian.Uint16(b)), true
	case I32:
		return int64(int32(binary.LittleEndian.Uint32(b))), true
	case U32:
		return int64(binary.LittleEndian.Uint32(b)), true
	case I64:
		return int64(binary.LittleEndian.Uint64(b)), true
	case U64:
		u := binary.LittleEndian.Uint64(b)
		return int64(u), u <= math.MaxInt64
	}
	return 0, false
}

// Float returns element i of an array of any type.
func (a Array) Float(i int) float64 {
	b := a.Data[i*a.DType.Size():]
	switch a.DType {
	case F32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	case F64:
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	case F16:
		return half(binary.LittleEndian.Uint16(b))
	case U64:
		return float64(binary.LittleEndian.Uint64(b))
	}
	v, _ := a.Int(i)
	return float64(v)
}

// half converts an IEEE 754 binary16 number.
func half(h uint16) float64 {
	sign, exp, frac := 1.0, int(h>>10&31), float64(h&1023)
	if h>>15 == 1 {
		sign = -1
	}
	switch exp {
	case 0:
		return sign * math.Ldexp(frac, -24)
	case 31:
		if frac != 0 {
			return math.NaN()
		}
		return sign * math.Inf(1)
	}
	return sign * math.Ldexp(1024+frac, exp-25)
}

// littleEndian reports whether numbers have the same bytes in memory as on the wire, so that columns can be copied.
var littleEndian = func() bool {
	x := uint16(1)
	return *(*byte)(unsafe.Pointer(&x)) == 1
}()

// PutF32 writes src to dst, which has 4 bytes for each element.
func PutF32(dst []byte, src []float32) {
	if littleEndian && len(src) > 0 {
		copy(dst, unsafe.Slice((*byte)(unsafe.Pointer(&src[0])), 4*len(src)))
		return
	}
	for i, v := range src {
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(v))
	}
}

// PutF64 writes src to dst, which has 8 bytes for each element.
func PutF64(dst []byte, src []float64) {
	if littleEndian && len(src) > 0 {
		copy(dst, unsafe.Slice((*byte)(unsafe.Pointer(&src[0])), 8*len(src)))
		return
	}
	for i, v := range src {
		binary.LittleEndian.PutUint64(dst[8*i:], math.Float64bits(v))
	}
}

// PutBool writes src to dst as zeros and ones.
func PutBool(dst []byte, src []bool) {
	if len(src) > 0 { // in memory a bool is a byte, 0 or 1
		copy(dst, unsafe.Slice((*byte)(unsafe.Pointer(&src[0])), len(src)))
	}
}

// F32s copies the elements of an array of type F32 to dst, which must have the array's length.
func (a Array) F32s(dst []float32) {
	if littleEndian && len(dst) > 0 {
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&dst[0])), 4*len(dst)), a.Data)
		return
	}
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(a.Data[4*i:]))
	}
}

// maxElements is more than the elements of any array that fits into a message. Products of two such numbers do not
// overflow.
const maxElements = math.MaxInt32

// elements returns the product of shape. It returns false if a dimension is negative or the product is above limit. For
// an empty array the product of the nonzero dimensions must not be above maxElements.
func elements(shape []int, limit int) (int, bool) {
	limit = min(limit, maxElements)
	n, empty := 1, false
	for _, d := range shape {
		if d == 0 {
			empty, limit = true, maxElements
		}
	}
	for _, d := range shape {
		if d < 0 || d > limit {
			return 0, false
		}
		if n *= max(d, 1); n > limit {
			return 0, false
		}
	}
	if empty {
		n = 0
	}
	return n, true
}

// header returns the length of an array's payload before its data.
func header(ndim int) int { return (4 + 4*ndim + 7) &^ 7 }

// parseArray reads the payload of an extension of type ExtArray.
func parseArray(p []byte) (Array, *Error) {
	if len(p) < 4 {
		return Array{}, Errorf(BadFrame, "an array of %d bytes, want at least 4", len(p))
	}
	d, ndim := DType(p[0]), int(p[1])
	if !d.valid() {
		return Array{}, Errorf(BadFrame, "an array of element type %d, want 1 to %d", p[0], len(dtypes)-1)
	}
	if ndim > maxDims {
		return Array{}, Errorf(BadFrame, "an array of %d dimensions, want at most %d", ndim, maxDims)
	}
	if p[2] != 0 || p[3] != 0 {
		return Array{}, Errorf(BadFrame, "an array with flags %d and %d, want 0", p[2], p[3])
	}
	h := header(ndim)
	if len(p) < h {
		return Array{}, Errorf(BadFrame, "an array of %d bytes, want at least %d for %d dimensions", len(p), h, ndim)
	}
	a := Array{DType: d, Shape: make([]int, ndim), Data: p[h:]}
	for i := range a.Shape {
		a.Shape[i] = int(binary.LittleEndian.Uint32(p[4+4*i:]))
	}
	for _, b := range p[4+4*ndim : h] {
		if b != 0 {
			return Array{}, Errorf(BadFrame, "an array whose padding is not zero")
		}
	}
	return a, a.check()
}

// check returns an error unless shape and data fit each other.
func (a Array) check() *Error {
	n, ok := elements(a.Shape, len(a.Data))
	if !ok || n*a.DType.Size() != len(a.Data) {
		return Errorf(BadFrame, "an array of %v %s has %d bytes of data", a.Shape, a.DType, len(a.Data))
	}
	if a.DType == Bool {
		for _, b := range a.Data {
			if b > 1 {
				return Errorf(BadFrame, "an array of booleans with a byte %d, want 0 or 1", b)
			}
		}
	}
	return nil
}
