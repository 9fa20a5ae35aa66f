package onnx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// ErrFormat is matched by the errors of Decode.
var ErrFormat = errors.New("no ONNX model")

// ErrExternal is matched by errors about tensors whose data lie in other files.
var ErrExternal = errors.New("its data lie in another file")

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
}

// mostNames bounds the nodes, tensors and values of a graph: far more than networks for inference have.
const mostNames = 1 << 20

// Decode reads a model. The result shares nothing with b. It takes about as much memory, and up to some ten times as much where the
// format packs whole numbers. An error is one sentence and names the part of the model that is wrong.
func Decode(b []byte) (*Model, error) {
	m := &Model{}
	seen, opsets := false, 0
	err := fields(b, "the model", func(f protowire.Number, v value) (err error) {
		switch f {
		case 1:
			m.IR, err = v.int()
		case 2:
			m.Producer, err = v.text()
		case 3:
			m.Version, err = v.text()
		case 6:
			m.Doc, err = v.text()
		case 7:
			seen = true
			err = v.into("the graph", m.Graph.decode)
		case 8:
			opsets++
			err = m.decodeOpset(v)
		case 14:
			if len(m.Metadata) >= mostNames {
				return wrong("more than %d entries of metadata", mostNames)
			}
			var p Property
			err = v.into("the metadata", func(f protowire.Number, v value) (err error) {
				switch f {
				case 1:
					p.Key, err = v.text()
				case 2:
					p.Value, err = v.text()
				}
				return err
			})
			m.Metadata = append(m.Metadata, p)
		case 25:
			m.Functions++
		}
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case !seen:
		return nil, wrong("there is no graph in it")
	case m.IR < 3:
		return nil, wrong("IR version %d, want 3 or more", m.IR)
	case m.Opset == 0:
		return nil, wrong("it names no version of the standard operators")
	}
	return m, nil
}

func (m *Model) decodeOpset(v value) error {
	var domain string
	var version int64
	err := v.into("the list of operator sets", func(f protowire.Number, v value) (err error) {
		switch f {
		case 1:
			domain, err = v.text()
		case 2:
			version, err = v.int()
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case domain == "" || domain == "ai.onnx":
		m.Opset = version
	default:
		if m.Domains == nil {
			m.Domains = map[string]int64{}
		}
		m.Domains[domain] = version
	}
	return nil
}

func (g *Graph) decode(f protowire.Number, v value) (err error) {
	if len(g.Nodes)+len(g.Tensors)+len(g.Inputs)+len(g.Outputs) >= mostNames {
		return wrong("the graph has more than %d nodes and values", mostNames)
	}
	switch f {
	case 1:
		var n Node
		err = v.into("a node", n.decode)
		g.Nodes = append(g.Nodes, n)
	case 2:
		g.Name, err = v.text()
	case 5:
		var t *Tensor
		if t, err = decodeTensor(v); err == nil {
			g.Tensors = append(g.Tensors, *t)
		}
	case 11, 12:
		var x Value
		if err = v.into("an input or output", x.decode); err != nil {
			return err
		}
		if f == 11 {
			g.Inputs = append(g.Inputs, x)
		} else {
			g.Outputs = append(g.Outputs, x)
		}
	case 15:
		return wrong("the graph has sparse tensors, want dense ones")
	}
	return err
}

func (n *Node) decode(f protowire.Number, v value) (err error) {
	var s string
	switch f {
	case 1, 2:
		if s, err = v.text(); err != nil {
			return err
		}
		if len(n.Inputs)+len(n.Outputs) >= mostNames {
			return wrong("a node has more than %d inputs and outputs", mostNames)
		}
		if f == 1 {
			n.Inputs = append(n.Inputs, s)
		} else {
			n.Outputs = append(n.Outputs, s)
		}
	case 3:
		n.Name, err = v.text()
	case 4:
		n.Op, err = v.text()
	case 5:
		var a Attribute
		err = v.into("an attribute", a.decode)
		if len(n.Attributes) >= mostNames {
			return wrong("a node has more than %d attributes", mostNames)
		}
		n.Attributes = append(n.Attributes, a)
	case 7:
		n.Domain, err = v.text()
	}
	return err
}

func (a *Attribute) decode(f protowire.Number, v value) (err error) {
	switch f {
	case 1:
		a.Name, err = v.text()
	case 2:
		a.Float, err = v.float()
	case 3:
		a.Int, err = v.int()
	case 4:
		a.Text, err = v.text()
	case 5:
		a.Tensor, err = decodeTensor(v)
	case 7:
		a.Floats, err = v.floats(a.Floats)
	case 8:
		a.Ints, err = v.ints(a.Ints)
	case 9:
		var s string
		s, err = v.text()
		a.Strings = append(a.Strings, s)
	case 20:
		var k int64
		k, err = v.int()
		a.Kind = AttributeKind(k)
	}
	return err
}

func (x *Value) decode(f protowire.Number, v value) (err error) {
	switch f {
	case 1:
		x.Name, err = v.text()
	case 2:
		err = v.into("a type", func(f protowire.Number, v value) error {
			if f != 1 {
				return nil // sequences, maps and the like keep the type 0
			}
			return v.into("a tensor's type", x.decodeType)
		})
	}
	return err
}

func (x *Value) decodeType(f protowire.Number, v value) error {
	switch f {
	case 1:
		t, err := v.int()
		x.Type = Type(t)
		return err
	case 2:
		x.Known = true
		return v.into("a shape", func(f protowire.Number, v value) error {
			if f != 1 {
				return nil
			}
			if len(x.Shape) >= mostDims {
				return wrong("value %.60q has more than %d dimensions", x.Name, mostDims)
			}
			d, name := int64(-1), ""
			err := v.into("a dimension", func(f protowire.Number, v value) (err error) {
				switch f {
				case 1:
					d, err = v.int()
				case 2:
					name, err = v.text()
				}
				return err
			})
			if d < -1 || d > math.MaxInt32 {
				d = -1
			}
			x.Shape, x.Dims = append(x.Shape, int(d)), append(x.Dims, name)
			return err
		})
	}
	return nil
}

// mostDims bounds the dimensions of a tensor.
const mostDims = 16

func decodeTensor(v value) (*Tensor, error) {
	t := &Tensor{}
	var raw []byte
	var dims, small []int64 // small is int32_data
	hasRaw, external := false, false
	err := v.into("a tensor", func(f protowire.Number, v value) (err error) {
		switch f {
		case 1:
			dims, err = v.ints(dims)
		case 2:
			var n int64
			n, err = v.int()
			t.Type = Type(n)
		case 4:
			t.Floats, err = v.floats(t.Floats)
		case 5:
			small, err = v.ints(small)
		case 7:
			t.Ints, err = v.ints(t.Ints)
		case 8:
			t.Name, err = v.text()
		case 9:
			raw, err = v.bytes()
			hasRaw = true
		case 10:
			t.Doubles, err = v.doubles(t.Doubles)
		case 13:
			external = true
		case 14:
			var where int64
			where, err = v.int()
			external = external || where == 1
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if external {
		return nil, fmt.Errorf("tensor %.60q: %w, want a model that is one file", t.Name, ErrExternal)
	}
	if t.Type.size() == 0 {
		return nil, wrong("tensor %.60q has elements of type %v, want float32, float64, int64, int32, int8, uint8 or bool", t.Name, t.Type)
	}
	if len(dims) > mostDims {
		return nil, wrong("tensor %.60q has %d dimensions, want at most %d", t.Name, len(dims), mostDims)
	}
	for _, d := range dims {
		if d < 0 || d > math.MaxInt32 {
			return nil, wrong("tensor %.60q has a dimension of %d, want 0 to %d", t.Name, d, math.MaxInt32)
		}
		t.Shape = append(t.Shape, int(d))
	}
	if small != nil {
		t.Ints = small
	}
	n := Len(t.Shape)
	if hasRaw {
		if n < 0 || len(raw) != n*t.Type.size() {
			return nil, wrong("tensor %.60q of type %v and shape %v has %d bytes", t.Name, t.Type, t.Shape, len(raw))
		}
		t.unpack(raw, n)
	}
	have := len(t.Ints)
	switch t.Type {
	case Float32:
		have, t.Ints, t.Doubles = len(t.Floats), nil, nil
	case Float64:
		have, t.Ints, t.Floats = len(t.Doubles), nil, nil
	default:
		t.Floats, t.Doubles = nil, nil
	}
	if have != n {
		return nil, wrong("tensor %.60q of shape %v has %d elements", t.Name, t.Shape, have)
	}
	return t, nil
}

// unpack reads n elements from their bytes.
func (t *Tensor) unpack(raw []byte, n int) {
	le := binary.LittleEndian
	switch t.Type {
	case Float32:
		t.Floats = make([]float32, n)
		for i := range t.Floats {
			t.Floats[i] = math.Float32frombits(le.Uint32(raw[4*i:]))
		}
		return
	case Float64:
		t.Doubles = make([]float64, n)
		for i := range t.Doubles {
			t.Doubles[i] = math.Float64frombits(le.Uint64(raw[8*i:]))
		}
		return
	}
	t.Ints = make([]int64, n)
	for i := range t.Ints {
		switch t.Type {
		case Int64:
			t.Ints[i] = int64(le.Uint64(raw[8*i:]))
		case Int32:
			t.Ints[i] = int64(int32(le.Uint32(raw[4*i:])))
		case Int8:
			t.Ints[i] = int64(int8(raw[i]))
		default:
			t.Ints[i] = int64(raw[i])
		}
	}
}

// value is the content of one field of a message.
type value struct {
	wire protowire.Type
	n    uint64 // of a varint, or the bits of a fixed number
	b    []byte // of bytes
}

// fields calls read for each field of message b, which is what in the words of errors.
func fields(b []byte, what string, read func(f protowire.Number, v value) error) error {
	for len(b) > 0 {
		f, wire, n := protowire.ConsumeTag(b)
		if n < 0 {
			return wrong("%s is truncated or damaged", what)
		}
		b = b[n:]
		v := value{wire: wire}
		switch wire {
		case protowire.VarintType:
			v.n, n = protowire.ConsumeVarint(b)
		case protowire.Fixed32Type:
			var x uint32
			x, n = protowire.ConsumeFixed32(b)
			v.n = uint64(x)
		case protowire.Fixed64Type:
			v.n, n = protowire.ConsumeFixed64(b)
		case protowire.BytesType:
			v.b, n = protowire.ConsumeBytes(b)
		default:
			n = -1 // groups are not in the format
		}
		if n < 0 {
			return wrong("%s is truncated or damaged", what)
		}
		b = b[n:]
		if err := read(f, v); err != nil {
			return err
		}
	}
	return nil
}

var errKind = wrong("a field has another kind than the format says")

// into reads the fields of a message within a message. The format nests them a fixed number of times, so this cannot recurse
// without end.
func (v value) into(what string, read func(f protowire.Number, v value) error) error {
	b, err := v.bytes()
	if err != nil {
		return err
	}
	return fields(b, what, read)
}

func (v value) bytes() ([]byte, error) {
	if v.wire != protowire.BytesType {
		return nil, errKind
	}
	return v.b, nil
}

func (v value) text() (string, error) {
	b, err := v.bytes()
	if err == nil && !utf8.Valid(b) {
		return "", wrong("a text is not UTF-8")
	}
	return string(b), err
}

func (v value) int() (int64, error) {
	if v.wire != protowire.VarintType {
		return 0, errKind
	}
	return int64(v.n), nil
}

func (v value) float() (float32, error) {
	if v.wire != protowire.Fixed32Type {
		return 0, errKind
	}
	return math.Float32frombits(uint32(v.n)), nil
}

// ints appends whole numbers, packed or single.
func (v value) ints(to []int64) ([]int64, error) {
	if v.wire == protowire.VarintType {
		return append(to, int64(v.n)), nil
	}
	b, err := v.bytes()
	for err == nil && len(b) > 0 {
		x, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return nil, wrong("a list of whole numbers is truncated or damaged")
		}
		to, b = append(to, int64(x)), b[n:]
	}
	return to, err
}

func (v value) floats(to []float32) ([]float32, error) {
	if v.wire == protowire.Fixed32Type {
		return append(to, math.Float32frombits(uint32(v.n))), nil
	}
	b, err := v.bytes()
	if err == nil && len(b)%4 != 0 {
		return nil, wrong("a list of numbers is truncated")
	}
	for ; err == nil && len(b) > 0; b = b[4:] {
		to = append(to, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return to, err
}

func (v value) doubles(to []float64) ([]float64, error) {
	if v.wire == protowire.Fixed64Type {
		return append(to, math.Float64frombits(v.n)), nil
	}
	b, err := v.bytes()
	if err == nil && len(b)%8 != 0 {
		return nil, wrong("a list of numbers is truncated")
	}
	for ; err == nil && len(b) > 0; b = b[8:] {
		to = append(to, math.Float64frombits(binary.LittleEndian.Uint64(b)))
	}
	return to, err
}
