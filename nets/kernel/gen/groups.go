package main

import (
	"slices"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// groups writes a function over groups of k rows of h elements. Tall slices have their own row for every row, flat
// ones one row for the group. block handles one register of columns of one group.
func (s isa) groups(name, doc string, tall, flat []string, extra string, block func(g *group)) {
	names := strings.Join(slices.Concat(tall, flat), ", ")
	TEXT(s.name+name, NOSPLIT, "func("+names+" *float32, groups, k, h int, "+s.mask()+extra+")")
	Doc(s.name + name + " " + doc)
	Pragma("noescape")
	g := &group{isa: s, names: tall, tall: map[string]reg.Register{}, flat: map[string]reg.Register{},
		at: map[string]reg.GPVirtual{}}
	for _, p := range tall {
		g.tall[p] = Load(Param(p), GP64())
	}
	for _, p := range flat {
		g.flat[p] = Load(Param(p), GP64())
	}
	left, count := GP64(), Load(Param("groups"), GP64())
	g.k, g.col = GP64(), GP64()
	g.row = Load(Param("h"), GP64())
	SHLQ(U8(2), g.row) // bytes
	g.tail = s.tail()
	Label("group")
	XORQ(g.col, g.col)
	Load(Param("h"), left)
	SUBQ(U8(s.lanes), left)
	JL(LabelRef("tail"))
	Label("block")
	g.label, g.part = "whole", false
	block(g)
	ADDQ(U8(4*s.lanes), g.col)
	SUBQ(U8(s.lanes), left)
	JGE(LabelRef("block"))
	Label("tail")
	ADDQ(U8(s.lanes), left)
	JZ(LabelRef("next"))
	g.label, g.part = "part", true
	block(g)
	Label("next")
	Load(Param("k"), g.k)
	IMULQ(g.row, g.k)
	for _, p := range tall {
		ADDQ(g.k, g.tall[p])
	}
	for _, p := range flat {
		ADDQ(g.row, g.flat[p])
	}
	DECQ(count)
	JNZ(LabelRef("group"))
	VZEROUPPER()
	RET()
}

// group is the state that a block's code is written with.
type group struct {
	isa
	names      []string // of tall slices
	tall, flat map[string]reg.Register
	at         map[string]reg.GPVirtual // the current row of each tall slice
	k, col     reg.GPVirtual            // rows left, bytes from the start of a row
	row        reg.Register             // bytes from row to row
	tail       tail
	part       bool // the last columns, fewer than fill a register
	label      string
}

// load reads a register of columns of a flat slice, or of a tall slice's current row.
func (g *group) load(name string) reg.VecVirtual {
	v := g.reg()
	g.tail.load(g.mem(name), v, g.part)
	return v
}

func (g *group) store(v reg.VecVirtual, name string) { g.tail.store(v, g.mem(name), g.part) }

func (g *group) mem(name string) Mem {
	if p, ok := g.flat[name]; ok {
		return Mem{Base: p, Index: g.col, Scale: 1}
	}
	return Mem{Base: g.at[name]}
}

// first moves to the group's first row; rows runs body for it and for every following row.
func (g *group) first() {
	Load(Param("k"), g.k)
	for _, name := range g.names {
		if _, ok := g.at[name]; !ok {
			g.at[name] = GP64()
		}
		LEAQ(Mem{Base: g.tall[name], Index: g.col, Scale: 1}, g.at[name])
	}
}

func (g *group) rows(body func()) {
	Label(g.label + "row")
	body()
	g.next()
	DECQ(g.k)
	JNZ(LabelRef(g.label + "row"))
}

func (g *group) next() {
	for _, name := range g.names {
		ADDQ(g.row, g.at[name])
	}
}

// groupwise writes the functions over groups of rows.
func (s isa) groupwise() {
	s.groups("AddRows", "sets dst to x plus its group's row of context, at least 0 with relu.", []string{"dst", "x"},
		[]string{"context"}, ", relu int",
		func(g *group) {
			c, least := g.load("context"), s.zero()
			relu := Load(Param("relu"), GP64())
			g.first()
			TESTQ(relu, relu)
			JNZ(LabelRef(g.label + "relu"))
			g.rows(func() {
				v := g.load("x")
				VADDPS(c, v, v)
				g.store(v, "dst")
			})
			JMP(LabelRef(g.label + "done"))
			Label(g.label + "relu")
			g.label += "relu"
			g.rows(func() {
				v := g.load("x")
				VADDPS(c, v, v)
				VMAXPS(v, least, v) // in this order NaN stays NaN
				g.store(v, "dst")
			})
			g.label = g.label[:len(g.label)-len("relu")]
			Label(g.label + "done")
		})
	s.groups("SumRows", "sets dst to the sums of a group's rows of x, in order, divided by div.", []string{"x"},
		[]string{"dst"}, ", div float32",
		func(g *group) {
			sum := s.zero()
			g.first()
			g.rows(func() { VADDPS(g.load("x"), sum, sum) })
			VDIVPS(s.params("div")[0], sum, sum)
			g.store(sum, "dst")
		})
	s.groups("MaxRows",
		"sets dst to the maxima of a group's rows of x; what is no number is passed over but in the first row.",
		[]string{"x"}, []string{"dst"}, "",
		func(g *group) {
			g.first()
			most := g.load("x")
			g.rows(func() { VMAXPS(most, g.load("x"), most) }) // x > most ? x : most
			g.store(most, "dst")
		})
	s.groups("MaxRowsGrad",
		"sets dst to dy in a group's first row of x that equals top, column by column, and to 0 elsewhere.",
		[]string{"dst", "x"}, []string{"top", "dy"}, "",
		func(g *group) {
			top, dy := g.load("top"), g.load("dy")
			if s.lanes == 16 {
				wanted, found := K(), K()
				KXNORW(wanted, wanted, wanted)
				g.first()
				g.rows(func() {
					VCMPPS(U8(0), g.load("x"), top, wanted, found)
					KXORW(found, wanted, wanted)
					v := s.reg()
					VMOVAPS_Z(dy, found, v)
					g.store(v, "dst")
				})
				return
			}
			g.first()
			g.rows(func() {
				v := YMM()
				VCMPPS(U8(0), g.load("x"), top, v)
				put := YMM()
				VANDPS(dy, v, put)
				g.store(put, "dst")
				VANDNPS(dy, v, dy) // the gradient is used up
			})
		})
}
