// Command gen writes the assembly of package kernel for AVX-512 and AVX2.
//
//	go run . -isa avx512 -pkg kernel -out ../avx512_amd64.s -stubs ../avx512_amd64.go
//
// It is a separate module, so that its libraries are not dependencies of the program.
package main

import (
	"flag"
	"fmt"
	"os"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// isa describes what differs between the instruction sets.
type isa struct {
	name  string
	lanes int // float32 in a register
	reg   func() reg.VecVirtual
}

var isas = map[string]isa{
	"avx512": {"avx512", 16, ZMM},
	"avx2":   {"avx2", 8, YMM},
}

func main() {
	name := flag.String("isa", "avx512", "avx512 or avx2")
	flag.Parse() // -out, -stubs and -pkg are avo's own
	s, ok := isas[*name]
	if !ok {
		fmt.Fprintf(os.Stderr, "gen: -isa %s, want avx512 or avx2\n", *name)
		os.Exit(2)
	}
	ConstraintExpr("amd64")
	for _, t := range s.tiles() {
		s.gemm(t[0], t[1])
	}
	s.elementwise()
	s.colSums(4)
	s.colSums(1)
	s.copyRows()
	if s.lanes == 16 {
		s.transpose16()
	} else {
		s.transpose8()
	}
	s.sumSquares()
	s.groupwise()
	s.attention()
	if s.lanes == 16 {
		s.picked(4)
		s.nonZero()
	}
	Generate()
}

// tiles returns the sizes, in rows and registers, of the parts of a product that are held in registers at once.
func (s isa) tiles() [][2]int {
	if s.lanes == 16 {
		return [][2]int{{16, 1}, {12, 2}, {12, 1}, {9, 1}, {8, 2}, {8, 1}, {4, 4}, {4, 2}, {4, 1}, {3, 1}, {2, 8}, {2, 4},
			{2, 2}, {2, 1}, {1, 16}, {1, 8}, {1, 4}, {1, 2}, {1, 1}}
	}
	return [][2]int{{6, 2}, {6, 1}, {4, 2}, {4, 1}, {2, 4}, {2, 2}, {2, 1}, {1, 8}, {1, 4}, {1, 2}, {1, 1}}
}

// mask is the parameter that says which elements of a register are the last of a row.
func (s isa) mask() string {
	if s.lanes == 16 {
		return "mask uint64"
	}
	return "mask *int32"
}

// tail reads and writes the last elements of rows, which fill only part of a register.
type tail struct {
	k1    reg.OpmaskVirtual // of AVX-512
	vmask reg.VecVirtual    // of AVX2
}

// tail loads the parameter mask.
func (s isa) tail() (t tail) {
	if s.lanes == 16 {
		t.k1 = K()
		KMOVW(Load(Param("mask"), GP64()).(reg.GPVirtual).As32(), t.k1)
	} else {
		t.vmask = YMM()
		VMOVUPS(Mem{Base: Load(Param("mask"), GP64())}, t.vmask)
	}
	return t
}

// load fills v from p, with zeros beyond the end if it is the last part of a row.
func (t *tail) load(p Mem, v reg.VecVirtual, last bool) {
	switch {
	case !last:
		VMOVUPS(p, v)
	case t.vmask == nil:
		VMOVUPS_Z(p, t.k1, v)
	default:
		VMASKMOVPS(p, t.vmask, v)
	}
}

// store writes v to p, up to the end if it is the last part of a row.
func (t *tail) store(v reg.VecVirtual, p Mem, last bool) {
	switch {
	case !last:
		VMOVUPS(v, p)
	case t.vmask == nil:
		VMOVUPS(v, t.k1, p)
	default:
		VMASKMOVPS(v, t.vmask, p)
	}
}

// addr returns where a parameter is in memory.
func addr(name string) Mem {
	p, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return p.Addr
}

// gemm writes a function that computes blocks of rows×(cols·lanes) elements of c, one below the other: c = init + Σ
// a·b. Each element is a chain of fused multiply-adds in order, over outer × k steps. Rows of init are initRow apart:
// 0 for a bias, and the distance of c's rows to add to what is there.
func (s isa) gemm(rows, cols int) {
	TEXT(fmt.Sprintf("%sGemm%dx%d", s.name, rows, cols), NOSPLIT,
		"func(c, a, b, init *float32, blocks, outer, k, aRow, aStep, aSkip, aNext, bStep, cRow, initRow int, "+
			s.mask()+", relu int)")
	Doc(fmt.Sprintf("%sGemm%dx%d computes blocks of %d rows and %d columns, see tile.", s.name, rows, cols, rows,
		cols*s.lanes))
	Pragma("noescape")
	c := Load(Param("c"), GP64())
	blocks := Load(Param("blocks"), GP64())
	aRow := Load(Param("aRow"), GP64())
	aStep := Load(Param("aStep"), GP64())
	bStep := Load(Param("bStep"), GP64())
	cRow := Load(Param("cRow"), GP64())
	bases := []reg.Register{Load(Param("a"), GP64())}
	var aRow3 reg.GPVirtual
	if rows > 3 {
		aRow3 = GP64()
		LEAQ(Mem{Base: aRow, Index: aRow, Scale: 2}, aRow3)
	}
	for r := 5; r < rows; r += 5 {
		p := GP64()
		LEAQ(Mem{Base: bases[len(bases)-1], Index: aRow, Scale: 4}, p)
		ADDQ(aRow, p)
		bases = append(bases, p)
	}
	at := func(r int) Mem {
		m := Mem{Base: bases[r/5]}
		switch r % 5 {
		case 1, 2, 4:
			m.Index, m.Scale = aRow, uint8(r%5)
		case 3:
			m.Index, m.Scale = aRow3, 1
		}
		return m
	}
	tail := s.tail()
	load := func(p Mem, v reg.VecVirtual, col int) {
		p.Disp += col * s.lanes * 4
		tail.load(p, v, col == cols-1)
	}
	store := func(v reg.VecVirtual, p Mem, col int) {
		p.Disp += col * s.lanes * 4
		tail.store(v, p, col == cols-1)
	}

	Label("block")
	acc := make([][]reg.VecVirtual, rows)
	for r := range acc {
		for range cols {
			acc[r] = append(acc[r], s.reg())
		}
	}
	b, init := GP64(), addr("init")
	MOVQ(init, b)
	TESTQ(b, b)
	JZ(LabelRef("zero"))
	for r := range rows {
		for j := range cols {
			load(Mem{Base: b}, acc[r][j], j)
		}
		ADDQ(addr("initRow"), b)
	}
	MOVQ(b, init)
	JMP(LabelRef("begin"))
	Label("zero")
	for r := range rows {
		for j := range cols {
			VXORPS(acc[r][j], acc[r][j], acc[r][j])
		}
	}
	Label("begin")
	Load(Param("b"), b)
	outer, k := Load(Param("outer"), GP64()), GP64()

	Label("outer")
	Load(Param("k"), k)
	TESTQ(k, k)
	JZ(LabelRef("done"))

	Label("step")
	if rows == 1 { // each element of b is used once, so read it straight from memory and save registers
		x := s.reg()
		VBROADCASTSS(at(0), x)
		for j := range cols - 1 {
			VFMADD231PS(Mem{Base: b, Disp: j * s.lanes * 4}, x, acc[0][j])
		}
		last := s.reg()
		load(Mem{Base: b}, last, cols-1)
		VFMADD231PS(x, last, acc[0][cols-1])
		ADDQ(bStep, b)
	}
	bv := make([]reg.VecVirtual, cols)
	for j := range bv {
		if rows == 1 {
			break
		}
		bv[j] = s.reg()
		load(Mem{Base: b}, bv[j], j)
	}
	if rows > 1 {
		ADDQ(bStep, b)
	}
	for r := range rows {
		if rows == 1 {
			break
		}
		if cols == 1 && s.lanes == 16 {
			VFMADD231PS_BCST(at(r), bv[0], acc[r][0])
			continue
		}
		x := s.reg()
		VBROADCASTSS(at(r), x)
		for j := range cols {
			VFMADD231PS(x, bv[j], acc[r][j])
		}
	}
	for _, p := range bases {
		ADDQ(aStep, p)
	}
	DECQ(k)
	JNZ(LabelRef("step"))
	for _, p := range bases {
		ADDQ(addr("aSkip"), p)
	}
	DECQ(outer)
	JNZ(LabelRef("outer"))

	Label("done")
	relu := Load(Param("relu"), GP64())
	TESTQ(relu, relu)
	JZ(LabelRef("store"))
	zero := s.zero()
	for r := range rows {
		for j := range cols {
			VMAXPS(acc[r][j], zero, acc[r][j]) // in this order NaN stays NaN
		}
	}
	Label("store")
	for r := range rows {
		for j := range cols {
			store(acc[r][j], Mem{Base: c}, j)
		}
		ADDQ(cRow, c)
	}
	next := Load(Param("aNext"), GP64())
	for _, p := range bases {
		ADDQ(next, p)
	}
	DECQ(blocks)
	JNZ(LabelRef("block"))
	VZEROUPPER()
	RET()
}
