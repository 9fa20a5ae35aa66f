package onnx

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Model is a graph with what it needs to be understood. Its slices and maps belong to whoever made it.
type Model struct {
	IR       int64 // version of the format
	Producer string
	Version  string // of the producer
	Doc      string
	Opset    int64            // of the standard operators
	Domains  map[string]int64 // opsets of other domains, nil = none
	Metadata []Property       // in order
	Graph    Graph
	// Functions is the number of functions that the model defines for its own operators.
	Functions int
}

// Property is one entry of a model's metadata.
type Property struct{ Key, Value string }

// Meta returns the value of a key of the metadata, "" if there is none.
func (m *Model) Meta(key string) string {
	for _, p := range m.Metadata {
		if p.Key == key {
			return p.Value
		}
	}
	return ""
}

// Graph is a list of nodes in an order in which each comes after those whose results it uses.
type Graph struct {
	Name    string
	Nodes   []Node
	Tensors []Tensor // constants ("initializers")
	Inputs  []Value  // some exporters list the constants here too
	Outputs []Value
}

// Arguments returns the inputs that are no constants.
func (g *Graph) Arguments() []Value {
	constant := make(map[string]bool, len(g.Tensors))
	for i := range g.Tensors {
		constant[g.Tensors[i].Name] = true
	}
	return slices.DeleteFunc(slices.Clone(g.Inputs), func(v Value) bool { return constant[v.Name] })
}

// Node is one operator. An empty name among its inputs stands for an argument that is left out.
type Node struct {
	Op, Domain, Name string
	Inputs, Outputs  []string
	Attributes       []Attribute
}

// Attribute is one setting of an operator. Kind says which of the fields has the value.
type Attribute struct {
	Name    string
	Kind    AttributeKind
	Float   float32
	Int     int64
	Text    string
	Tensor  *Tensor
	Floats  []float32
	Ints    []int64
	Strings []string
}

// AttributeKind is the kind of an attribute's value, with the numbers of the format.
type AttributeKind int32

// The kinds whose values this package reads; others, such as graphs, keep their kind alone.
const (
	KindFloat   AttributeKind = 1
	KindInt     AttributeKind = 2
	KindString  AttributeKind = 3
	KindTensor  AttributeKind = 4
	KindGraph   AttributeKind = 5
	KindFloats  AttributeKind = 6
	KindInts    AttributeKind = 7
	KindStrings AttributeKind = 8
)

// Attribute returns the setting called name, or nil.
func (n *Node) Attribute(name string) *Attribute {
	for i := range n.Attributes {
		if n.Attributes[i].Name == name {
			return &n.Attributes[i]
		}
	}
	return nil
}

// Type is the type of a tensor's elements, with the numbers of the format.
type Type int32

// The types that have a meaning here.
const (
	Float32 Type = 1
	Uint8   Type = 2
	Int8    Type = 3
	Int32   Type = 6
	Int64   Type = 7
	Bool    Type = 9
	Float64 Type = 11
)

var typeNames = map[Type]string{
	0: "undefined", 1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "string",
	9:  "bool",
	10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128", 16: "bfloat16",
}

func (t Type) String() string {
	if s := typeNames[t]; s != "" {
		return s
	}
	return fmt.Sprintf("type %d", int32(t))
}

// size returns the bytes of an element, 0 for types without a meaning here.
func (t Type) size() int {
	switch t {
	case Uint8, Int8, Bool:
		return 1
	case Float32, Int32:
		return 4
	case Int64, Float64:
		return 8
	}
	return 0
}

// Tensor is a constant: its elements are in the one of the slices that its type says, Floats for Float32, Doubles for
// Float64, Ints for all others, with 0 and 1 for Bool.
type Tensor struct {
	Name    string
	Type    Type
	Shape   []int
	Floats  []float32
	Doubles []float64
	Ints    []int64
}

// Len returns the number of elements of a shape, -1 if it is negative somewhere or more than an int32 holds.
func Len(shape []int) int {
	if slices.ContainsFunc(shape, func(d int) bool { return d < 0 }) {
		return -1
	}
	if slices.Contains(shape, 0) {
		return 0
	}
	n := 1
	for _, d := range shape {
		if n > math.MaxInt32/d {
			return -1
		}
		n *= d
	}
	return n
}

// Value is an input or output of a graph.
type Value struct {
	Name string
	Type Type
	// Shape has -1 where a dimension is known only when the model runs; Dims then has its name, if it has one.
	Shape []int
	Dims  []string
	// Known says that the model declares the shape at all.
	Known bool
}

func (v Value) String() string {
	if !v.Known {
		return fmt.Sprintf("%s %v", Plain(v.Name), v.Type)
	}
	return fmt.Sprintf("%s %v %s", Plain(v.Name), v.Type, ShapeString(v.Shape))
}

// Plain returns the beginning of a name, with escapes for what would not stay on one line of an error.
func Plain(name string) string {
	return strings.Trim(fmt.Sprintf("%.60q", name), `"`)
}

// ShapeString writes a shape, with N for dimensions that are not known, as [N 4].
func ShapeString(shape []int) string {
	s := "["
	for i, d := range shape {
		if i > 0 {
			s += " "
		}
		if d < 0 {
			s += "N"
		} else {
			s += fmt.Sprint(d)
		}
	}
	return s + "]"
}
