package wire

import (
	"bytes"
	"math"
	"testing"
)

func TestElementTypesHaveNumpysNames(t *testing.T) {
	names := []string{"bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32",
		"float64", "float16"}
	for i, name := range names {
		d, ok := DTypeNamed(name)
		if !ok || int(d) != i+1 || d.String() != name {
			t.Errorf("%s is %d, %v, %v", name, d, d, ok)
		}
	}
	for _, bad := range []string{"", "float", "<f4", "complex64", "object"} {
		if d, ok := DTypeNamed(bad); ok {
			t.Errorf("%q is %v", bad, d)
		}
	}
	if s := DType(99).String(); s != "DType(99)" {
		t.Errorf("type 99 is called %s", s)
	}
}

func TestElementsAreReadAsWhatTheyAre(t *testing.T) {
	for _, c := range []struct {
		d     DType
		bits  int64
		f     float64
		whole bool
	}{
		{Bool, 1, 1, true}, {I8, -128, -128, true}, {U8, 255, 255, true}, {I16, -32768, -32768, true},
		{U16, 65535, 65535, true},
		{I32, math.MinInt32, math.MinInt32, true}, {U32, math.MaxUint32, math.MaxUint32, true},
		{I64, math.MinInt64, math.MinInt64, true}, {U64, math.MaxInt64, 1 << 63, true}, {U64, -1, 1 << 64, false},
		{F32, int64(math.Float32bits(1.5)), 1.5, false}, {F64, int64(math.Float64bits(-2.5)), -2.5, false},
	} {
		a := ints(c.d, []int{2}, 0, c.bits)
		if f := a.Float(1); f != c.f {
			t.Errorf("%v: %v, want %v", c.d, f, c.f)
		}
		n, ok := a.Int(1)
		if ok != c.whole || ok && float64(n) != c.f {
			t.Errorf("%v: integer %d, %v", c.d, n, ok)
		}
		if a.Len() != 2 {
			t.Errorf("%v: %d elements", c.d, a.Len())
		}
	}
}

func TestHalfPrecision(t *testing.T) {
	for bits, want := range map[uint16]float64{
		0x0000: 0, 0x3C00: 1, 0xC000: -2, 0x3555: 0.333251953125, 0x7BFF: 65504, 0x0400: math.Ldexp(1, -14),
		0x0001: math.Ldexp(1, -24), 0x83FF: -math.Ldexp(1023, -24), 0x7C00: math.Inf(1), 0xFC00: math.Inf(-1),
	} {
		if got := half(bits); got != want {
			t.Errorf("%04x is %v, want %v", bits, got, want)
		}
	}
	if got := half(0x7E01); !math.IsNaN(got) {
		t.Errorf("a NaN is %v", got)
	}
	if got := half(0x8000); got != 0 || !math.Signbit(got) {
		t.Errorf("minus zero is %v", got)
	}
}

// Big-endian machines write and read the same bytes.
func TestColumnsAreLittleEndianOnAnyMachine(t *testing.T) {
	f32, f64 := []float32{1, -0.5, float32(math.Inf(1))}, []float64{1, -0.5, math.Inf(-1)}
	var frames [2][]byte
	native := littleEndian
	defer func() { littleEndian = native }()
	for i := range frames {
		littleEndian = native && i == 0
		a, b := make([]byte, 12), make([]byte, 24)
		PutF32(a, f32)
		PutF64(b, f64)
		frames[i] = append(a, b...)
		x := make([]float32, 3)
		Array{F32, []int{3}, a}.F32s(x)
		for k := range x {
			if x[k] != f32[k] {
				t.Errorf("%v become %v", f32, x)
			}
		}
	}
	if !bytes.Equal(frames[0], frames[1]) || !bytes.HasPrefix(frames[0], []byte{0, 0, 0x80, 0x3F}) {
		t.Errorf("%x and %x", frames[0], frames[1])
	}
	PutF32(nil, nil)
	PutF64(nil, nil)
	PutBool(nil, nil)
	Array{F32, []int{0}, nil}.F32s(nil)
}

func TestProductsOfDimensionsDoNotOverflow(t *testing.T) {
	for _, c := range []struct {
		shape []int
		limit int
		n     int
		ok    bool
	}{
		{nil, 1, 1, true}, {[]int{2, 3}, 6, 6, true}, {[]int{2, 3}, 5, 0, false},
		{[]int{1 << 32, 1 << 32}, math.MaxInt, 0, false},
		{[]int{1 << 31, 1 << 31, 4}, math.MaxInt, 0, false}, {[]int{0, 5}, 0, 0, true}, {[]int{5, 0}, 0, 0, true},
		{[]int{0, 1 << 32}, 0, 0, false}, {[]int{-1}, 10, 0, false}, {[]int{0, -1}, 10, 0, false},
		{[]int{1 << 16, 1 << 16}, math.MaxInt, 0, false},
	} {
		if n, ok := elements(c.shape, c.limit); n != c.n || ok != c.ok {
			t.Errorf("%v within %d: %d, %v", c.shape, c.limit, n, ok)
		}
	}
}
