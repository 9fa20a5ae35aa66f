package main

import (
	"fmt"
	"math"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// each writes a function over n elements of some slices. body handles one register of elements; it reads them by get
// and writes them by put. A mask handles the remaining elements.
func (s isa) each(name, doc string, slices []string, constants func() any,
	body func(consts any, get func(i int) reg.VecVirtual, put func(i int, v reg.VecVirtual))) {
	TEXT(s.name+name, NOSPLIT, "func("+strings.Join(slices, ", ")+" *float32, n int, "+s.mask()+extra(name)+")")
	Doc(s.name + name + " " + doc)
	Pragma("noescape")
	var ptr []reg.Register
	for _, p := range slices {
		ptr = append(ptr, Load(Param(p), GP64()))
	}
	n := Load(Param("n"), GP64())
	tail := s.tail()
	consts := constants()
	at := GP64()
	XORQ(at, at)
	SUBQ(U8(s.lanes), n)
	JL(LabelRef("tail"))
	Label("loop")
	part := func(last bool) {
		body(consts,
			func(i int) reg.VecVirtual {
				v := s.reg()
				tail.load(Mem{Base: ptr[i], Index: at, Scale: 4}, v, last)
				return v
			},
			func(i int, v reg.VecVirtual) { tail.store(v, Mem{Base: ptr[i], Index: at, Scale: 4}, last) })
	}
	part(false)
	ADDQ(U8(s.lanes), at)
	SUBQ(U8(s.lanes), n)
	JGE(LabelRef("loop"))
	Label("tail")
	ADDQ(U8(s.lanes), n)
	JZ(LabelRef("end"))
	part(true)
	Label("end")
	VZEROUPPER()
	RET()
}

// extra returns the further parameters of a function.
func extra(name string) string {
	switch name {
	case "Adam":
		return ", beta1, beta2, rest1, rest2, rate, root, eps float32"
	}
	return ""
}

// params returns registers filled with parameters.
func (s isa) params(names ...string) []reg.VecVirtual {
	var c []reg.VecVirtual
	for _, name := range names {
		v := s.reg()
		VBROADCASTSS(addr(name), v)
		c = append(c, v)
	}
	return c
}

var constants = map[float32]Mem{}

// constant returns a register filled with x.
func (s isa) constant(x float32) reg.VecVirtual {
	m, ok := constants[x]
	if !ok {
		m = ConstData(fmt.Sprintf("%sConst%d", s.name, len(constants)), U32(math.Float32bits(x)))
		constants[x] = m
	}
	v := s.reg()
	VBROADCASTSS(m, v)
	return v
}

// horner sets p to p·z + c.
func (s isa) horner(p, z reg.VecVirtual, c float32) {
	VFMADD213PS(s.constant(c), z, p)
}

// divide divides p by q, which must be neither small nor large. With AVX-512 it multiplies by an approximation of 1/q
// to 14 bits, refined by one Newton step: divisions would take most of the time of tanh.
func (s isa) divide(p, q reg.VecVirtual) {
	if s.lanes == 8 {
		VDIVPS(q, p, p)
		return
	}
	r, e := s.reg(), s.constant(1)
	VRCP14PS(q, r)
	VFNMADD231PS(r, q, e) // 1 - q·r
	VFMADD231PS(e, r, r)
	VMULPS(r, p, p)
}

// expConstants are the constants of an exponential of numbers that are not above 0.
var expConstants = []float32{
	1.44269504088896341, 0.693359375, -2.12194440e-4, 1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2,
	1.6666665459e-1, 5.0000001201e-1,
	1, -87.3365,
}

// held returns a function that gives registers filled with the numbers: filled once if there are registers to spare,
// otherwise each time.
func (s isa) held(numbers []float32) func(x float32) reg.VecVirtual {
	if s.lanes < 16 {
		return s.constant
	}
	kept := map[float32]reg.VecVirtual{}
	for _, x := range numbers {
		kept[x] = s.constant(x)
	}
	return func(x float32) reg.VecVirtual { return kept[x] }
}

// expOf returns the exponentials of x, by the polynomial that the portable exp32 has. constant gives its constants.
// With below, x is not above 0.
func (s isa) expOf(x reg.VecVirtual, constant func(x float32) reg.VecVirtual, below bool) reg.VecVirtual {
	f, r, p := s.reg(), s.reg(), s.reg()
	VMULPS(constant(1.44269504088896341), x, f)
	if s.lanes == 16 {
		VRNDSCALEPS(U8(0), f, f)
	} else {
		VROUNDPS(U8(0), f, f)
	}
	VMOVAPS(x, r)
	VFNMADD231PS(constant(0.693359375), f, r)
	VFNMADD231PS(constant(-2.12194440e-4), f, r)
	VMOVAPS(constant(1.9875691500e-4), p)
	for _, c := range []float32{1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1} {
		VFMADD213PS(constant(c), r, p)
	}
	VMULPS(r, p, p)
	VFMADD213PS(r, r, p) // p·r² + r
	VADDPS(constant(1), p, p)
	tiny := constant(-87.3365)
	switch {
	case s.lanes == 16 && below:
		k := K()
		VCMPPS(U8(6), tiny, x, k) // not x ≤ tiny
		VSCALEFPS_Z(f, p, k, p)
	case s.lanes == 16:
		VSCALEFPS(f, p, p)
		low, high := K(), K()
		VCMPPS(U8(2), tiny, x, low)                  // x ≤ tiny
		VCMPPS(U8(14), s.constant(88.7228), x, high) // x > huge
		VMOVAPS(s.zero(), low, p)
		VMOVAPS(s.constant(float32(math.Inf(1))), high, p)
	case below:
		n, low := YMM(), YMM()
		VCVTPS2DQ(f, n)
		VPADDD(s.constant(math.Float32frombits(127)), n, n)
		VPSLLD(U8(23), n, n)
		VMULPS(n, p, p)
		VCMPPS(U8(2), tiny, x, low)
		VANDNPS(p, low, p)
	default:
		// 2^n in two factors, because 2^128 is not a float32.
		n, half := YMM(), YMM()
		VCVTPS2DQ(f, n)
		VPSRAD(U8(1), n, half)
		VPSUBD(half, n, n)
		bias := s.constant(math.Float32frombits(127))
		VPADDD(bias, n, n)
		VPADDD(bias, half, half)
		VPSLLD(U8(23), n, n)
		VPSLLD(U8(23), half, half)
		VMULPS(n, p, p)
		VMULPS(half, p, p)
		low, high := YMM(), YMM()
		VCMPPS(U8(2), tiny, x, low)
		VCMPPS(U8(14), s.constant(88.7228), x, high)
		VANDNPS(p, low, p)
		VBLENDVPS(high, s.constant(float32(math.Inf(1))), p, p)
	}
	return p
}

func (s isa) elementwise() {
	none := func() any { return nil }
	s.each("Tanh", "sets dst to the hyperbolic tangents of src, by the quotient that the portable tanh32 has.",
		[]string{"dst", "src"}, none,
		func(_ any, get func(int) reg.VecVirtual, put func(int, reg.VecVirtual)) {
			x := get(1)
			const limit = 7.90531110763549805
			VMAXPS(x, s.constant(-limit), x) // x second, so that NaN stays NaN
			VMINPS(x, s.constant(limit), x)
			z, p, q := s.reg(), s.constant(-2.76076847742355e-16), s.constant(1.19825839466702e-06)
			VMULPS(x, x, z)
			for _, c := range []float32{2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08, 1.48572235717979e-05,
				6.37261928875436e-04, 4.89352455891786e-03} {
				s.horner(p, z, c)
			}
			for _, c := range []float32{1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03} {
				s.horner(q, z, c)
			}
			VMULPS(x, p, p)
			s.divide(p, q)
			put(0, p)
		})
	s.each("Exp", "sets dst to the exponentials of src, by the polynomial that the portable exp32 has.",
		[]string{"dst", "src"}, none,
		func(_ any, get func(int) reg.VecVirtual, put func(int, reg.VecVirtual)) {
			put(0, s.expOf(get(1), s.constant, false))
		})
	s.each("ReLU", "sets dst to src where that is above 0 or no number, else to 0.", []string{"dst", "src"},
		func() any { return s.zero() },
		func(c any, get func(int) reg.VecVirtual, put func(int, reg.VecVirtual)) {
			x := get(1)
			VMAXPS(x, c.(reg.VecVirtual), x)
			put(0, x)
		})
	s.each("ReLUGrad", "keeps dy where y is above 0 or no number and clears it elsewhere.", []string{"dst", "y", "dy"},
		func() any { return s.zero() },
		func(c any, get func(int) reg.VecVirtual, put func(int, reg.VecVirtual)) {
			y, dy := get(1), get(2)
			if s.lanes == 16 {
				k := K()
				VCMPPS(U8(2), c.(reg.VecVirtual), y, k) // y ≤ 0
				VMOVAPS(c.(reg.VecVirtual), k, dy)
			} else {
				m := YMM()
				VCMPPS(U8(2), c.(reg.VecVirtual), y, m)
				VANDNPS(dy, m, dy)
			}
			put(0, dy)
		})
	s.each("TanhGrad", "sets dst to dy·(1 - y²).", []string{"dst", "y", "dy"},
		func() any { return s.constant(1) },
		func(c any, get func(int) reg.VecVirtual, put func(int, reg.VecVirtual)) {
			y, dy, t := get(1), get(2), s.reg()
			VMOVAPS(c.(reg.VecVirtual), t)
			VFNMADD231PS(y, y, t)
			VMULPS(t, dy, dy)
			put(0, dy)
		})
	s.each("Add", "sets dst to a + b.", []string{"dst", "a", "b"}, none,
		func(_ any, get func(int) reg.VecVirtual, put func(int, reg.VecVirtual)) {
			a, b := get(1), get(2)
			VADDPS(b, a, a)
			put(0, a)
		})
	s.each("Adam", "is one update, see Adam.", []string{"p", "grad", "m", "v"},
		func() any {
			zero := s.zero()
			return append(s.params("beta1", "beta2", "rest1", "rest2", "rate", "root", "eps"), s.constant(0x1p-100), zero)
		},
		func(consts any, get func(int) reg.VecVirtual, put func(int, reg.VecVirtual)) {
			c := consts.([]reg.VecVirtual)
			tiny, zero := c[7], c[8]
			// flush clears the elements of x whose size is below tiny.
			flush := func(size, x reg.VecVirtual) {
				if s.lanes == 16 {
					k := K()
					VCMPPS(U8(1), tiny, size, k)
					VMOVAPS(zero, k, x)
					return
				}
				small := YMM()
				VCMPPS(U8(1), tiny, size, small)
				VANDNPS(x, small, x)
			}
			p, g, m, v := get(0), get(1), get(2), get(3)
			VMULPS(c[0], m, m)
			VFMADD231PS(c[2], g, m)
			size := s.reg()
			VSUBPS(m, zero, size)
			VMAXPS(m, size, size)
			flush(size, m)
			put(2, m)
			VMULPS(c[1], v, v)
			VMULPS(g, g, g)
			VFMADD231PS(c[3], g, v)
			flush(v, v)
			put(3, v)
			VSQRTPS(v, v)
			VFMADD213PS(c[6], c[5], v) // v·Root + Eps
			VMULPS(c[4], m, m)
			VDIVPS(v, m, m)
			VSUBPS(m, p, p)
			put(0, p)
		})
}

// colSums writes the function that adds the rows of a matrix, with one register of columns or four at a time.
func (s isa) colSums(cols int) {
	TEXT(fmt.Sprintf("%sColSums%d", s.name, cols), NOSPLIT, "func(dst, a *float32, rows, stride int, "+s.mask()+")")
	Doc(fmt.Sprintf("%sColSums%d sets %d elements of dst to the sums of as many columns of a, whose rows are stride "+
		"bytes apart.", s.name, cols, cols*s.lanes))
	Pragma("noescape")
	dst, a := Load(Param("dst"), GP64()), Load(Param("a"), GP64())
	rows, stride := Load(Param("rows"), GP64()), Load(Param("stride"), GP64())
	acc := make([]reg.VecVirtual, cols)
	for j := range acc {
		acc[j] = s.zero()
	}
	tail := s.tail()
	TESTQ(rows, rows)
	JZ(LabelRef("store"))
	Label("row")
	for j := range acc {
		v := s.reg()
		tail.load(Mem{Base: a, Disp: j * s.lanes * 4}, v, j == cols-1)
		VADDPS(v, acc[j], acc[j])
	}
	ADDQ(stride, a)
	DECQ(rows)
	JNZ(LabelRef("row"))
	Label("store")
	for j := range acc {
		tail.store(acc[j], Mem{Base: dst, Disp: j * s.lanes * 4}, j == cols-1)
	}
	VZEROUPPER()
	RET()
}

// sumSquares writes the function that adds squares in float64, in as many sums as two registers hold, which are then
// added by halves.
func (s isa) sumSquares() {
	TEXT(s.name+"SumSquares", NOSPLIT, "func(x *float32, blocks int) float64")
	Doc(s.name + fmt.Sprintf("SumSquares is the sum of the squares of %d·blocks elements of x, at least one block.",
		s.lanes))
	Pragma("noescape")
	x, blocks := Load(Param("x"), GP64()), Load(Param("blocks"), GP64())
	half := func() reg.VecVirtual { return YMM() }
	if s.lanes == 8 {
		half = func() reg.VecVirtual { return XMM() }
	}
	var sums [2]reg.VecVirtual
	for i := range sums {
		sums[i] = s.reg()
		VXORPD(sums[i], sums[i], sums[i])
	}
	Label("block")
	for i := range sums {
		h, y := half(), s.reg()
		VMOVUPS(Mem{Base: x, Disp: i * s.lanes * 2}, h)
		VCVTPS2PD(h, y)
		VFMADD231PD(y, y, sums[i])
	}
	ADDQ(Imm(uint64(s.lanes*4)), x)
	DECQ(blocks)
	JNZ(LabelRef("block"))
	VADDPD(sums[1], sums[0], sums[0])
	y := YMM()
	if s.lanes == 16 {
		VEXTRACTF64X4(U8(1), sums[0], y)
		low := YMM()
		VEXTRACTF64X4(U8(0), sums[0], low)
		VADDPD(low, y, y)
	} else {
		VMOVAPD(sums[0], y)
	}
	low, high := XMM(), XMM()
	VEXTRACTF128(U8(0), y, low)
	VEXTRACTF128(U8(1), y, high)
	VADDPD(high, low, low)
	VPERMILPD(U8(1), low, high)
	VADDSD(high, low, low)
	VZEROUPPER()
	Store(low, ReturnIndex(0))
	RET()
}
