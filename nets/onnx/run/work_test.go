package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"clustergym/nets/kernel"
	"clustergym/nets/onnx"
)

// square adds a constant of n×n zeros called name to a model, which takes no room in a file.
func square(m *onnx.Model, name string, n int64) {
	m.Graph.Tensors = append(m.Graph.Tensors, ints([]int{2}, n, n).tensor(name+"_shape"))
	m.Graph.Nodes = append(m.Graph.Nodes,
		onnx.Node{Op: "ConstantOfShape", Name: "make " + name, Inputs: []string{name + "_shape"}, Outputs: []string{name}})
}

func operation(op, name, out string, in ...string) onnx.Node {
	return onnx.Node{Op: op, Name: name, Inputs: in, Outputs: []string{out}}
}

// reads returns a model with an input x [N, n] and the output out.
func reads(n int) *onnx.Model {
	m := &onnx.Model{IR: 8, Opset: 17}
	m.Graph.Inputs = []onnx.Value{{Name: "x", Type: onnx.Float32, Known: true, Shape: []int{-1, n}}}
	m.Graph.Outputs = []onnx.Value{{Name: "out"}}
	return m
}

// A model of a few bytes can ask for hours of work. It is refused in a sentence that names the node and what it takes.
func TestTooMuchWorkIsRefused(t *testing.T) {
	folded := reads(2100)
	square(folded, "a", 2100)
	square(folded, "b", 2100)
	folded.Graph.Nodes = append(folded.Graph.Nodes, operation("MatMul", "large", "ab", "a", "b"),
		operation("MatMul", "small", "out", "x", "ab"))

	many := reads(2048)
	square(many, "a", 2048)
	many.Graph.Tensors = append(many.Graph.Tensors, ints([]int{1}, 0).tensor("axis"))
	sum := "a"
	for k := range 160 { // each is cheap
		next := fmt.Sprint("s", k)
		many.Graph.Nodes = append(many.Graph.Nodes,
			onnx.Node{Op: "ReduceSum", Name: next, Inputs: []string{"a", "axis"}, Outputs: []string{next}})
		sum = next
	}
	many.Graph.Nodes = append(many.Graph.Nodes, operation("Add", "last", "out", "x", sum))
	for k := range 160 { // all of them are needed
		many.Graph.Nodes[len(many.Graph.Nodes)-1].Inputs[1] = "sum159"
		from := fmt.Sprint("s", k)
		if k > 0 {
			from = fmt.Sprint("sum", k-1)
		}
		last := len(many.Graph.Nodes) - 1
		many.Graph.Nodes = slices.Insert(many.Graph.Nodes, last,
			operation("Add", "", fmt.Sprint("sum", k), from, fmt.Sprint("s", k)))
	}

	asked := reads(2048) // xᵀ·x of a column of 2048 numbers, then its square twice
	asked.Graph.Tensors = append(asked.Graph.Tensors, ints([]int{3}, -1, 2048, 1).tensor("column"),
		ints([]int{3}, -1, 1, 2048).tensor("row"))
	asked.Graph.Nodes = append(asked.Graph.Nodes,
		operation("Reshape", "", "c", "x", "column"), operation("Reshape", "", "r", "x", "row"),
		operation("MatMul", "outer", "o", "c", "r"), operation("MatMul", "squared", "out", "o", "o"))

	grouped := reads(1 << 12)
	grouped.Graph.Tensors = append(grouped.Graph.Tensors, ints([]int{4}, -1, 1, 64, 64).tensor("image"),
		ints([]int{4}, 4096, 1, 33, 33).tensor("filters_shape"))
	grouped.Graph.Nodes = append(grouped.Graph.Nodes, operation("Reshape", "", "i", "x", "image"),
		operation("ConstantOfShape", "", "w", "filters_shape"),
		operation("Conv", "wide", "out", "i", "w"))

	for want, m := range map[string]*onnx.Model{
		`node MatMul "large": it takes some 9`:            folded,
		`before there is any input`:                       many,
		`node MatMul "squared": it takes some 8791261184`: asked,
		`node Conv "wide": it takes some 5448663040`:      grouped,
	} {
		_, err := New(m)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), " in all") ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, expected a sentence with %q", err, want)
		}
	}
}

// What is under way ends soon after its context: before a node, and within a large one.
func TestAnEndedContextEndsTheWork(t *testing.T) {
	ended, stop := context.WithCancel(t.Context())
	stop()
	m := reads(2048)
	square(m, "a", 2048)
	m.Graph.Nodes = append(m.Graph.Nodes, operation("MatMul", "it", "out", "x", "a"))
	if _, err := NewContext(ended, m); !errors.Is(err, context.Canceled) {
		t.Errorf("made with an ended context: %v", err)
	}
	p, err := New(m)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.ForContext(ended, 3); !errors.Is(err, context.Canceled) {
		t.Errorf("three rows with an ended context: %v", err)
	}
	i, err := p.For(256) // a billion multiplications
	if err != nil {
		t.Fatal(err)
	}
	if err := i.RunContext(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("run with an ended context: %v", err)
	}
	if err := i.Run(); err != nil {
		t.Errorf("run afterwards: %v", err)
	}
	few, err := p.For(1)
	if err != nil {
		t.Fatal(err)
	}
	if err := few.RunContext(ended); err != nil { // it takes no time worth asking
		t.Errorf("one row: %v", err)
	}
}

// Large products and convolutions are computed in pieces, which give the bits of the whole.
func TestPiecesGiveTheSameBits(t *testing.T) {
	const m, n, k = 40, 4096, 4096
	a, b := make([]float32, m*k), make([]float32, k*n)
	for i := range a {
		a[i] = float32(i%97) / 7
	}
	for i := range b {
		b[i] = float32(i%89)/5 - 8
	}
	got, want := make([]float32, m*n), make([]float32, m*n)
	new(Instance).product(got, a, b, nil, m, n, k, kernel.ReLU)
	kernel.MatMul(want, a, b, nil, m, n, k, kernel.ReLU)
	if !slices.Equal(got, want) {
		t.Error("a product in pieces differs")
	}
	g := kernel.Conv{H: 64, W: 64, C: 8, KH: 7, KW: 7, SH: 1, SW: 1}
	if err := g.Check(); err != nil {
		t.Fatal(err)
	}
	const images, filters = 5, 64
	out, scratch := g.OutH()*g.OutW()*filters, make([]float32, g.Scratch(filters))
	got, want = make([]float32, images*out), make([]float32, images*out)
	x := a[:images*g.H*g.W*g.C]
	new(Instance).convolution(got, x, b[:g.Patch()*filters], nil, images, filters, &g, kernel.Identity, scratch)
	kernel.Convolve(want, x, b[:g.Patch()*filters], nil, images, filters, &g, kernel.Identity, scratch)
	if !slices.Equal(got, want) {
		t.Error("a convolution in pieces differs")
	}
}

// Instances for other numbers of rows are dropped before they fill the memory.
func TestInstancesAreDropped(t *testing.T) {
	m := reads(1)
	m.Graph.Tensors = append(m.Graph.Tensors, ints([]int{2}, 1, 1<<20).tensor("wide"))
	m.Graph.Nodes = append(m.Graph.Nodes, operation("Expand", "", "e", "x", "wide"), operation("Exp", "", "y", "e"),
		operation("ReduceSum", "", "out", "y"))
	p, err := New(m)
	if err != nil {
		t.Fatal(err)
	}
	for rows := 1; rows <= 17; rows++ {
		if _, err := p.For(rows); err != nil {
			t.Fatal(err)
		}
		kept := 0
		for _, i := range p.ready {
			kept += i.bytes
		}
		if kept > mostKept && len(p.ready) > 1 {
			t.Fatalf("%d rows: %d bytes are kept in %d instances", rows, kept, len(p.ready))
		}
	}
}
