package onnx

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// Encode writes a model. Equal models give equal bytes. Of attributes whose kind has no value here only name and kind
// are written. Tensors whose elements do not fit their shapes are a bug of the caller and panic.
func (m *Model) Encode() []byte {
	var b []byte
	b = number(b, 1, m.IR)
	b = optional(b, 2, m.Producer)
	b = optional(b, 3, m.Version)
	b = optional(b, 6, m.Doc)
	b = within(b, 7, m.Graph.encode(nil))
	b = within(b, 8, opset("", m.Opset))
	for _, domain := range slices.Sorted(maps.Keys(m.Domains)) {
		b = within(b, 8, opset(domain, m.Domains[domain]))
	}
	for _, p := range m.Metadata {
		b = within(b, 14, text(text(nil, 1, p.Key), 2, p.Value))
	}
	return b
}

func opset(domain string, version int64) []byte { return number(text(nil, 1, domain), 2, version) }

func (g *Graph) encode(b []byte) []byte {
	b = list(b, 1, g.Nodes, (*Node).encode)
	b = text(b, 2, g.Name)
	b = list(b, 5, g.Tensors, (*Tensor).encode)
	b = list(b, 11, g.Inputs, (*Value).encode)
	return list(b, 12, g.Outputs, (*Value).encode)
}

// list writes a message for each of xs.
func list[T any](b []byte, f protowire.Number, xs []T, encode func(x *T, b []byte) []byte) []byte {
	for i := range xs {
		b = within(b, f, encode(&xs[i], nil))
	}
	return b
}

// texts writes a field for each of xs.
func texts(b []byte, f protowire.Number, xs []string) []byte {
	for _, s := range xs {
		b = text(b, f, s)
	}
	return b
}

func (n *Node) encode(b []byte) []byte {
	b = texts(texts(b, 1, n.Inputs), 2, n.Outputs)
	b = optional(b, 3, n.Name)
	b = text(b, 4, n.Op)
	b = list(b, 5, n.Attributes, (*Attribute).encode)
	return optional(b, 7, n.Domain)
}

func (a *Attribute) encode(b []byte) []byte {
	b = text(b, 1, a.Name)
	switch a.Kind {
	case KindFloat:
		b = protowire.AppendFixed32(protowire.AppendTag(b, 2, protowire.Fixed32Type), math.Float32bits(a.Float))
	case KindInt:
		b = number(b, 3, a.Int)
	case KindString:
		b = text(b, 4, a.Text)
	case KindTensor:
		if a.Tensor != nil {
			b = within(b, 5, a.Tensor.encode(nil))
		}
	case KindFloats:
		for _, x := range a.Floats {
			b = protowire.AppendFixed32(protowire.AppendTag(b, 7, protowire.Fixed32Type), math.Float32bits(x))
		}
	case KindInts:
		for _, x := range a.Ints {
			b = number(b, 8, x)
		}
	case KindStrings:
		b = texts(b, 9, a.Strings)
	}
	return number(b, 20, int64(a.Kind))
}

func (t *Tensor) encode(b []byte) []byte {
	for _, d := range t.Shape {
		b = number(b, 1, int64(d))
	}
	b = number(b, 2, int64(t.Type))
	b = text(b, 8, t.Name)
	n := Len(t.Shape)
	b = protowire.AppendTag(b, 9, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(n*t.Type.size()))
	have := len(t.Ints)
	switch t.Type {
	case Float32:
		have = len(t.Floats)
		for _, x := range t.Floats {
			b = protowire.AppendFixed32(b, math.Float32bits(x))
		}
	case Float64:
		have = len(t.Doubles)
		for _, x := range t.Doubles {
			b = protowire.AppendFixed64(b, math.Float64bits(x))
		}
	case Int64:
		for _, x := range t.Ints {
			b = protowire.AppendFixed64(b, uint64(x))
		}
	case Int32:
		for _, x := range t.Ints {
			b = protowire.AppendFixed32(b, uint32(x))
		}
	case Uint8, Int8, Bool:
		for _, x := range t.Ints {
			b = append(b, byte(x))
		}
	}
	if have != n {
		panic(fmt.Sprintf("onnx: tensor %s of type %v and shape %v has %d elements", t.Name, t.Type, t.Shape, have))
	}
	return b
}

func (v *Value) encode(b []byte) []byte {
	b = text(b, 1, v.Name)
	tensor := number(nil, 1, int64(v.Type))
	if v.Known {
		var shape []byte
		for i, d := range v.Shape {
			var dim []byte
			if d >= 0 {
				dim = number(nil, 1, int64(d))
			} else if i < len(v.Dims) && v.Dims[i] != "" {
				dim = text(nil, 2, v.Dims[i])
			}
			shape = within(shape, 1, dim)
		}
		tensor = within(tensor, 2, shape)
	}
	return within(b, 2, within(nil, 1, tensor))
}

func number(b []byte, f protowire.Number, x int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, f, protowire.VarintType), uint64(x))
}

func text(b []byte, f protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, f, protowire.BytesType), s)
}

func optional(b []byte, f protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	return text(b, f, s)
}

func within(b []byte, f protowire.Number, message []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, f, protowire.BytesType), message)
}
