package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// copyRows writes the function that copies rows of n elements.
func (s isa) copyRows() {
	TEXT(s.name+"CopyRows", NOSPLIT, "func(dst, src *float32, rows, dstRow, srcRow, n int, "+s.mask()+")")
	Doc(fmt.Sprintf("%sCopyRows copies rows of n elements of src, srcRow bytes apart, to those of dst, dstRow bytes "+
		"apart. The mask is that of the last n mod %d.", s.name, s.lanes))
	Pragma("noescape")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	rows := Load(Param("rows"), GP64())
	dstRow, srcRow := Load(Param("dstRow"), GP64()), Load(Param("srcRow"), GP64())
	n := Load(Param("n"), GP64())
	tail := s.tail()
	i, left := GP64(), GP64()
	part := func(last bool) {
		v := s.reg()
		tail.load(Mem{Base: src, Index: i, Scale: 4}, v, last)
		tail.store(v, Mem{Base: dst, Index: i, Scale: 4}, last)
	}
	next := func() {
		ADDQ(srcRow, src)
		ADDQ(dstRow, dst)
		DECQ(rows)
	}
	XORQ(i, i)
	CMPQ(n, U8(s.lanes))
	JL(LabelRef("short"))
	CMPQ(n, U8(2*s.lanes)) // a whole strip of a product
	JNE(LabelRef("row"))
	Label("strip")
	first, second := s.reg(), s.reg()
	VMOVUPS(Mem{Base: src}, first)
	VMOVUPS(Mem{Base: src, Disp: s.lanes * 4}, second)
	VMOVUPS(first, Mem{Base: dst})
	VMOVUPS(second, Mem{Base: dst, Disp: s.lanes * 4})
	next()
	JNZ(LabelRef("strip"))
	VZEROUPPER()
	RET()
	Label("row")
	XORQ(i, i)
	MOVQ(n, left)
	SUBQ(U8(s.lanes), left)
	Label("block")
	part(false)
	ADDQ(U8(s.lanes), i)
	SUBQ(U8(s.lanes), left)
	JGE(LabelRef("block"))
	ADDQ(U8(s.lanes), left)
	JZ(LabelRef("next"))
	part(true)
	Label("next")
	next()
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
	Label("short")
	part(true)
	next()
	JNZ(LabelRef("short"))
	VZEROUPPER()
	RET()
}

// transpose8 writes the function that transposes strips of 8 rows into strips of 8 columns.
func (s isa) transpose8() {
	dst, src, blocks, dstRow, srcRow := s.turning(8)
	Label("block")
	v := make([]reg.VecVirtual, 8)
	p := GP64()
	MOVQ(src, p)
	for i := range v {
		v[i] = YMM()
		VMOVUPS(Mem{Base: p}, v[i])
		ADDQ(srcRow, p)
	}
	t := make([]reg.VecVirtual, 8)
	for i := 0; i < 8; i += 2 {
		t[i], t[i+1] = YMM(), YMM()
		VUNPCKLPS(v[i+1], v[i], t[i])
		VUNPCKHPS(v[i+1], v[i], t[i+1])
	}
	u := make([]reg.VecVirtual, 8)
	for i := 0; i < 8; i += 4 {
		for j := range 2 {
			u[i+2*j], u[i+2*j+1] = YMM(), YMM()
			VSHUFPS(U8(0x44), t[i+2+j], t[i+j], u[i+2*j])
			VSHUFPS(U8(0xee), t[i+2+j], t[i+j], u[i+2*j+1])
		}
	}
	w := YMM()
	for i := range 4 {
		VPERM2F128(U8(0x20), u[i+4], u[i], w)
		VMOVUPS(w, Mem{Base: dst})
		ADDQ(dstRow, dst)
	}
	for i := range 4 {
		VPERM2F128(U8(0x31), u[i+4], u[i], w)
		VMOVUPS(w, Mem{Base: dst})
		ADDQ(dstRow, dst)
	}
	ADDQ(Imm(32), src)
	DECQ(blocks)
	JNZ(LabelRef("block"))
	VZEROUPPER()
	RET()
}

// transpose16 writes the function that transposes strips of 16 rows into strips of 16 columns. Lane l of a register
// takes four columns of row 4·l+j, so that transposing four registers within their lanes leaves whole columns.
func (s isa) transpose16() {
	dst, src, blocks, dstRow, srcRow := s.turning(16)
	var lane [3]reg.OpmaskVirtual // the second to the fourth
	bits := GP32()
	for i := range lane {
		lane[i] = K()
		MOVL(U32(0xf0<<(4*i)), bits)
		KMOVW(bits, lane[i])
	}
	srcRow4 := GP64()
	MOVQ(srcRow, srcRow4)
	SHLQ(U8(2), srcRow4)
	p := GP64()
	Label("block")
	var v [4][4]reg.VecVirtual
	for part := range v {
		for j := range v[part] {
			v[part][j] = ZMM()
		}
	}
	q := GP64()
	MOVQ(src, q)
	for j := range 4 {
		MOVQ(q, p)
		for part := range v {
			VMOVUPS(Mem{Base: p, Disp: 16 * part}, v[part][j].AsX())
		}
		for l := range lane {
			ADDQ(srcRow4, p)
			for part := range v {
				VBROADCASTF32X4(Mem{Base: p, Disp: 16 * part}, lane[l], v[part][j])
			}
		}
		if j < 3 {
			ADDQ(srcRow, q)
		}
	}
	for _, v := range v {
		var t [4]reg.VecVirtual
		for j := range t {
			t[j] = ZMM()
		}
		VUNPCKLPS(v[1], v[0], t[0])
		VUNPCKHPS(v[1], v[0], t[1])
		VUNPCKLPS(v[3], v[2], t[2])
		VUNPCKHPS(v[3], v[2], t[3])
		w := ZMM()
		for j := range 2 {
			for _, take := range []uint64{0x44, 0xee} {
				VSHUFPS(Imm(take), t[2+j], t[j], w)
				VMOVUPS(w, Mem{Base: dst})
				ADDQ(dstRow, dst)
			}
		}
	}
	ADDQ(Imm(64), src)
	DECQ(blocks)
	JNZ(LabelRef("block"))
	VZEROUPPER()
	RET()
}

// turning begins a function that transposes strips of n rows.
func (s isa) turning(n int) (dst, src, blocks, dstRow, srcRow reg.Register) {
	name := fmt.Sprintf("%sTranspose%d", s.name, n)
	TEXT(name, NOSPLIT, "func(dst, src *float32, blocks, dstRow, srcRow int)")
	Doc(fmt.Sprintf("%s writes %d·blocks columns of %d rows of src, srcRow bytes apart, as as many rows of dst, dstRow "+
		"bytes apart.", name, n, n))
	Pragma("noescape")
	return Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("blocks"), GP64()),
		Load(Param("dstRow"), GP64()), Load(Param("srcRow"), GP64())
}
