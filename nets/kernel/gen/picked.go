package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// picked writes the function that computes one row of a product over some of its steps: rows of b that would be
// multiplied by 0 are not read, because b is far away in memory.
func (s isa) picked(cols int) {
	TEXT(fmt.Sprintf("%sPicked%d", s.name, cols), NOSPLIT,
		"func(c, a, b, init *float32, index *int32, count, bStep int, mask uint64, relu int)")
	Doc(fmt.Sprintf("%sPicked%d sets %d elements of c to init + Σ a·b over the count steps that index names.", s.name,
		cols, cols*s.lanes))
	Pragma("noescape")
	c, a, b := Load(Param("c"), GP64()), Load(Param("a"), GP64()), Load(Param("b"), GP64())
	index, count, bStep := Load(Param("index"), GP64()), Load(Param("count"), GP64()), Load(Param("bStep"), GP64())
	tail := s.tail()
	load := func(p Mem, v reg.VecVirtual, col int) {
		p.Disp += col * s.lanes * 4
		tail.load(p, v, col == cols-1)
	}
	acc := make([]reg.VecVirtual, cols)
	for j := range acc {
		acc[j] = s.zero()
	}
	init := Load(Param("init"), GP64())
	TESTQ(init, init)
	JZ(LabelRef("begin"))
	for j := range acc {
		load(Mem{Base: init}, acc[j], j)
	}
	Label("begin")
	TESTQ(count, count)
	JZ(LabelRef("done"))
	at := GP64()
	Label("step")
	MOVLQSX(Mem{Base: index}, at)
	ADDQ(Imm(4), index)
	x, last := s.reg(), s.reg()
	VBROADCASTSS(Mem{Base: a, Index: at, Scale: 4}, x)
	IMULQ(bStep, at)
	for j := range cols - 1 {
		VFMADD231PS(Mem{Base: b, Index: at, Scale: 1, Disp: j * s.lanes * 4}, x, acc[j])
	}
	load(Mem{Base: b, Index: at, Scale: 1}, last, cols-1)
	VFMADD231PS(x, last, acc[cols-1])
	DECQ(count)
	JNZ(LabelRef("step"))
	Label("done")
	relu := Load(Param("relu"), GP64())
	TESTQ(relu, relu)
	JZ(LabelRef("store"))
	zero := s.zero()
	for j := range acc {
		VMAXPS(acc[j], zero, acc[j]) // in this order NaN stays NaN
	}
	Label("store")
	for j := range acc {
		tail.store(acc[j], Mem{Base: c, Disp: j * s.lanes * 4}, j == cols-1)
	}
	VZEROUPPER()
	RET()
}

// nonZero writes the function that lists the indices where x is not 0. NaN is not 0.
func (s isa) nonZero() {
	TEXT(s.name+"NonZero", NOSPLIT, "func(index *int32, x *float32, blocks int) int")
	Doc(s.name +
		fmt.Sprintf(
			"NonZero writes the places of what is not 0 among the first %d·blocks elements of x to index, and returns their "+
				"number.", s.lanes))
	Pragma("noescape")
	index, x, blocks := Load(Param("index"), GP64()), Load(Param("x"), GP64()), Load(Param("blocks"), GP64())
	zero, places, step := s.zero(), s.reg(), s.reg()
	steps := GLOBL(s.name+"Places", RODATA|NOPTR)
	for i := range s.lanes {
		DATA(4*i, U32(i))
	}
	VMOVDQU32(steps, places)
	n, bits := GP64(), GP64()
	MOVQ(U64(uint64(s.lanes)), n)
	VPBROADCASTD(n.As32(), step)
	XORQ(n, n)
	k := K()
	Label("block")
	v := s.reg()
	VMOVUPS(Mem{Base: x}, v)
	VCMPPS(U8(4), zero, v, k) // not equal, or unordered
	VPCOMPRESSD(places, k, Mem{Base: index, Index: n, Scale: 4})
	KMOVW(k, bits.As32())
	POPCNTL(bits.As32(), bits.As32())
	ADDQ(bits, n)
	VPADDD(step, places, places)
	ADDQ(Imm(uint64(s.lanes*4)), x)
	DECQ(blocks)
	JNZ(LabelRef("block"))
	VZEROUPPER()
	Store(n, ReturnIndex(0))
	RET()
}
