package main

import (
	"math"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// byRow is a function that goes through rows of n elements, several times each. The last elements of a row have a mask.
type byRow struct {
	isa
	ptr    []reg.Register // the current row of each slice
	n      reg.Register
	i      reg.GPVirtual // the current element
	left   reg.GPVirtual
	tail   tail
	part   bool // in the last elements, fewer than fill a register
	passes int
}

// rowwise writes a function over rows of n elements of some slices. strides are the parameters that say how many bytes
// apart the rows of each slice are; a slice without one has a single row. body handles one row.
func (s isa) rowwise(name, doc string, slices, strides []string, extra string, constants func() any,
	body func(f *byRow, consts any)) {
	ints, seen := "", map[string]bool{}
	for _, p := range strides {
		if p != "" && !seen[p] {
			ints += ", " + p
		}
		seen[p] = true
	}
	TEXT(s.name+name, NOSPLIT, "func("+strings.Join(slices, ", ")+" *float32, rows, n"+ints+" int, "+s.mask()+extra+")")
	Doc(s.name + name + " " + doc)
	Pragma("noescape")
	f := &byRow{isa: s, i: GP64(), left: GP64()}
	for _, p := range slices {
		f.ptr = append(f.ptr, Load(Param(p), GP64()))
	}
	rows := Load(Param("rows"), GP64())
	f.n = Load(Param("n"), GP64())
	apart := map[string]reg.Register{}
	for _, p := range strides {
		if p != "" && apart[p] == nil {
			apart[p] = Load(Param(p), GP64())
		}
	}
	f.tail = s.tail()
	consts := constants()
	Label("row")
	body(f, consts)
	for i, p := range strides {
		if p != "" {
			ADDQ(apart[p], f.ptr[i])
		}
	}
	DECQ(rows)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// pass runs body for every register of elements of the row.
func (f *byRow) pass(body func()) {
	f.passes++
	label := string(rune('a' + f.passes))
	XORQ(f.i, f.i)
	MOVQ(f.n, f.left)
	SUBQ(U8(f.lanes), f.left)
	JL(LabelRef(label + "tail"))
	Label(label + "block")
	f.part = false
	body()
	ADDQ(U8(f.lanes), f.i)
	SUBQ(U8(f.lanes), f.left)
	JGE(LabelRef(label + "block"))
	Label(label + "tail")
	ADDQ(U8(f.lanes), f.left)
	JZ(LabelRef(label + "end"))
	f.part = true
	body()
	Label(label + "end")
}

func (f *byRow) mem(i int) Mem { return Mem{Base: f.ptr[i], Index: f.i, Scale: 4} }

// get reads a register of elements of slice i, zeros beyond the row's end.
func (f *byRow) get(i int) reg.VecVirtual {
	v := f.reg()
	f.tail.load(f.mem(i), v, f.part)
	return v
}

// only sets the elements of v beyond the row's end to those of rest.
func (f *byRow) only(v, rest reg.VecVirtual) reg.VecVirtual {
	if !f.part {
		return v
	}
	w := f.reg()
	if f.lanes == 16 {
		VMOVAPS(rest, w)
		VMOVAPS(v, f.tail.k1, w)
	} else {
		VBLENDVPS(f.tail.vmask, v, rest, w)
	}
	return w
}

func (f *byRow) put(v reg.VecVirtual, i int) { f.tail.store(v, f.mem(i), f.part) }

// getOne returns a register filled with the first element of the row of slice i; putOne sets it to that of v.
func (f *byRow) getOne(i int) reg.VecVirtual {
	v := f.reg()
	VBROADCASTSS(Mem{Base: f.ptr[i]}, v)
	return v
}

func (f *byRow) putOne(v reg.VecVirtual, i int) { VMOVSS(v.AsX(), Mem{Base: f.ptr[i]}) }

func (s isa) zero() reg.VecVirtual {
	v := s.reg()
	VXORPS(v, v, v)
	return v
}

// all combines the elements of v by op, halves first, and returns a register filled with the result.
func (s isa) all(op func(...Op), v reg.VecVirtual) reg.VecVirtual {
	y := YMM()
	if s.lanes == 16 {
		VEXTRACTF64X4(U8(1), v, y)
		op(v.AsY(), y, y)
	} else {
		VMOVAPS(v, y)
	}
	x, t := XMM(), XMM()
	VEXTRACTF128(U8(1), y, x)
	op(y.AsX(), x, x)
	for _, order := range []uint8{0x4e, 0xb1} {
		VPERMILPS(U8(order), x, t)
		op(t, x, x)
	}
	out := s.reg()
	VBROADCASTSS(x, out)
	return out
}

// moments returns the mean of the row of slice x, and 1/sqrt(variance + eps).
func (f *byRow) moments(x int, size, eps reg.VecVirtual) (mean, inv reg.VecVirtual) {
	sum := f.zero()
	f.pass(func() { VADDPS(f.get(x), sum, sum) })
	mean = f.all(VADDPS, sum)
	VDIVPS(size, mean, mean)
	squares := f.zero()
	f.pass(func() {
		v := f.only(f.get(x), mean)
		VSUBPS(mean, v, v)
		VFMADD231PS(v, v, squares)
	})
	variance := f.all(VADDPS, squares)
	VDIVPS(size, variance, variance)
	VADDPS(eps, variance, variance)
	VSQRTPS(variance, variance)
	inv = f.constant(1)
	VDIVPS(variance, inv, inv)
	return mean, inv
}

type softmaxConstants struct {
	scale reg.VecVirtual
	exp   func(x float32) reg.VecVirtual
}

// attention writes the functions over rows that attention and layer norm need.
func (s isa) attention() {
	// A softmax takes three functions, so that the steps of many rows overlap: within a row each waits for the one before.
	s.rowwise("RowMax", "sets top to the largest element of each row of x.", []string{"top", "x"},
		[]string{"topRow", "row"}, "",
		func() any { return s.constant(-math.MaxFloat32) },
		func(f *byRow, c any) {
			least, top := c.(reg.VecVirtual), f.reg()
			VMOVAPS(least, top)
			f.pass(func() { VMAXPS(f.only(f.get(1), least), top, top) })
			f.putOne(f.all(VMAXPS, top), 0)
		})
	s.rowwise("ExpRows",
		"replaces rows of x by the exponentials of scale·(x − top), and the row's element of top, its largest, by their sum.",
		[]string{"top", "x"}, []string{"topRow", "row"}, ", scale float32",
		func() any { return softmaxConstants{s.params("scale")[0], s.held(expConstants)} },
		func(f *byRow, c any) {
			constants := c.(softmaxConstants)
			most, sum := f.getOne(0), f.zero()
			f.pass(func() {
				v := f.get(1)
				VSUBPS(most, v, v)
				VMULPS(constants.scale, v, v)
				e := f.expOf(v, constants.exp, true)
				f.put(e, 1)
				VADDPS(f.only(e, f.zero()), sum, sum)
			})
			f.putOne(f.all(VADDPS, sum), 0)
		})
	s.rowwise("DivideRows", "divides each row of x by its element of sum.", []string{"sum", "x"},
		[]string{"sumRow", "row"}, "",
		func() any { return nil },
		func(f *byRow, _ any) {
			inv := f.constant(1)
			VDIVPS(f.getOne(0), inv, inv)
			f.pass(func() {
				v := f.get(1)
				VMULPS(inv, v, v)
				f.put(v, 1)
			})
		})
	s.rowwise("SoftmaxGrad",
		"sets rows of d to scale·p·(d − Σ p·d): the gradient before a softmax of scale·x whose result is p.",
		[]string{"d", "p"}, []string{"row", "row"}, ", scale float32",
		func() any { return s.params("scale")[0] },
		func(f *byRow, c any) {
			sum := f.zero()
			f.pass(func() { VFMADD231PS(f.get(0), f.get(1), sum) })
			dot := f.all(VADDPS, sum)
			f.pass(func() {
				d, p := f.get(0), f.get(1)
				VSUBPS(dot, d, d)
				VMULPS(p, d, d)
				VMULPS(c.(reg.VecVirtual), d, d)
				f.put(d, 0)
			})
		})
	s.rowwise("LayerNorm", "sets rows of dst to gamma·(x − mean)/sqrt(variance + eps) + beta, see LayerNorm.",
		[]string{"dst", "x", "gamma", "beta"}, []string{"row", "row", "gammaRow", ""}, ", size, eps float32",
		func() any { return s.params("size", "eps") },
		func(f *byRow, c any) {
			p := c.([]reg.VecVirtual)
			mean, inv := f.moments(1, p[0], p[1])
			f.pass(func() {
				v, g, b := f.get(1), f.get(2), f.get(3)
				VSUBPS(mean, v, v)
				VMULPS(inv, v, v)
				VFMADD231PS(v, g, b)
				f.put(b, 0)
			})
		})
	s.rowwise("LayerNormGrad", "sets rows of dst to the gradient before LayerNorm of x, whose result has gradient dy.",
		[]string{"dst", "x", "gamma", "dy"}, []string{"row", "row", "", "row"}, ", size, eps float32",
		func() any { return s.params("size", "eps") },
		func(f *byRow, c any) {
			p := c.([]reg.VecVirtual)
			mean, inv := f.moments(1, p[0], p[1])
			sum, along := f.zero(), f.zero()
			f.pass(func() {
				v, e := f.get(1), f.get(2)
				VMULPS(f.get(3), e, e)
				VSUBPS(mean, v, v)
				VADDPS(e, sum, sum)
				VFMADD231PS(v, e, along) // e is 0 beyond the row's end
			})
			s, t := f.all(VADDPS, sum), f.all(VADDPS, along)
			VMULPS(inv, t, t)
			VDIVPS(p[0], s, s)
			VDIVPS(p[0], t, t)
			VMULPS(inv, t, t)
			f.pass(func() {
				v, e := f.get(1), f.get(2)
				VMULPS(f.get(3), e, e)
				VSUBPS(mean, v, v)
				VSUBPS(s, e, e)
				VFNMADD231PS(v, t, e)
				VMULPS(inv, e, e)
				f.put(e, 0)
			})
		})
}
