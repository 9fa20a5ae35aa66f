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

// refusal is what reading panics with where it can go no further. Decode recovers it.
type refusal struct{ err error }

// refuse ends the reading of a model.
func refuse(format string, args ...any) {
	panic(refusal{fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))})
}

// mostNames bounds every list of nodes, tensors, values and names: far more than networks for inference have.
const mostNames = 1 << 20

// Decode reads a model. The result shares nothing with b. It takes about as much memory, and up to some ten times as
// much where the format packs whole numbers. An error is one sentence and names the part of the model that is wrong.
func Decode(b []byte) (m *Model, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case refusal:
			m, err = nil, r.err
		default:
			panic(r)
		}
	}()
	m = &Model{}
	seen := false
	message{
		1:  set(&m.IR, value.int),
		2:  set(&m.Producer, value.text),
		3:  set(&m.Version, value.text),
		6:  set(&m.Doc, value.text),
		7:  func(v value) { m.Graph.decode(v); seen = true },
		8:  m.decodeOpset,
		14: add(&m.Metadata, decodeProperty),
		25: func(value) { m.Functions++ },
	}.read(b, "the model")
	switch {
	case !seen:
		refuse("there is no graph in it")
	case m.IR < 3:
		refuse("IR version %d, want 3 or more", m.IR)
	case m.Opset == 0:
		refuse("it names no version of the standard operators")
	}
	return m, nil
}

func decodeProperty(v value) (p Property) {
	v.read("the metadata", message{1: set(&p.Key, value.text), 2: set(&p.Value, value.text)})
	return p
}

func (m *Model) decodeOpset(v value) {
	var domain string
	var version int64
	v.read("the list of operator sets", message{1: set(&domain, value.text), 2: set(&version, value.int)})
	if domain == "" || domain == "ai.onnx" {
		m.Opset = version
		return
	}
	if m.Domains == nil {
		m.Domains = map[string]int64{}
	}
	m.Domains[domain] = version
}

func (g *Graph) decode(v value) {
	v.read("the graph", message{
		1:  add(&g.Nodes, decodeNode),
		2:  set(&g.Name, value.text),
		5:  add(&g.Tensors, decodeTensor),
		11: add(&g.Inputs, decodeValue),
		12: add(&g.Outputs, decodeValue),
		15: func(value) { refuse("the graph has sparse tensors, want dense ones") },
	})
}

func decodeNode(v value) (n Node) {
	v.read("a node", message{
		1: add(&n.Inputs, value.text),
		2: add(&n.Outputs, value.text),
		3: set(&n.Name, value.text),
		4: set(&n.Op, value.text),
		5: add(&n.Attributes, decodeAttribute),
		7: set(&n.Domain, value.text),
	})
	return n
}

func decodeAttribute(v value) (a Attribute) {
	v.read("an attribute", message{
		1:  set(&a.Name, value.text),
		2:  set(&a.Float, value.float),
		3:  set(&a.Int, value.int),
		4:  set(&a.Text, value.text),
		5:  func(v value) { t := decodeTensor(v); a.Tensor = &t },
		7:  func(v value) { a.Floats = v.floats(a.Floats) },
		8:  func(v value) { a.Ints = v.ints(a.Ints) },
		9:  add(&a.Strings, value.text),
		20: func(v value) { a.Kind = AttributeKind(v.int()) },
	})
	return a
}

func decodeValue(v value) (x Value) {
	shape := message{1: x.decodeDim}
	tensor := message{
		1: func(v value) { x.Type = Type(v.int()) },
		2: func(v value) { v.read("a shape", shape); x.Known = true },
	}
	// Sequences, maps and the like keep the type 0.
	typ := message{1: func(v value) { v.read("a tensor's type", tensor) }}
	v.read("an input or output", message{1: set(&x.Name, value.text), 2: func(v value) { v.read("a type", typ) }})
	return x
}

func (x *Value) decodeDim(v value) {
	if len(x.Shape) >= mostDims {
		refuse("value %.60q has more than %d dimensions", x.Name, mostDims)
	}
	d, name := int64(-1), ""
	v.read("a dimension", message{1: set(&d, value.int), 2: set(&name, value.text)})
	if d < -1 || d > math.MaxInt32 {
		d = -1
	}
	x.Shape, x.Dims = append(x.Shape, int(d)), append(x.Dims, name)
}

// mostDims bounds the dimensions of a tensor.
const mostDims = 16

func decodeTensor(v value) (t Tensor) {
	var raw []byte
	var dims, small []int64 // small is int32_data
	hasRaw, external := false, false
	v.read("a tensor", message{
		1:  func(v value) { dims = v.ints(dims) },
		2:  func(v value) { t.Type = Type(v.int()) },
		4:  func(v value) { t.Floats = v.floats(t.Floats) },
		5:  func(v value) { small = v.ints(small) },
		7:  func(v value) { t.Ints = v.ints(t.Ints) },
		8:  set(&t.Name, value.text),
		9:  func(v value) { raw, hasRaw = v.bytes(), true },
		10: func(v value) { t.Doubles = v.doubles(t.Doubles) },
		13: func(value) { external = true },
		14: func(v value) { external = v.int() == 1 || external },
	})
	if external {
		panic(refusal{fmt.Errorf("tensor %.60q: %w, want a model that is one file", t.Name, ErrExternal)})
	}
	if t.Type.size() == 0 {
		refuse("tensor %.60q has elements of type %v, want float32, float64, int64, int32, int8, uint8 or bool",
			t.Name, t.Type)
	}
	if len(dims) > mostDims {
		refuse("tensor %.60q has %d dimensions, want at most %d", t.Name, len(dims), mostDims)
	}
	for _, d := range dims {
		if d < 0 || d > math.MaxInt32 {
			refuse("tensor %.60q has a dimension of %d, want 0 to %d", t.Name, d, math.MaxInt32)
		}
		t.Shape = append(t.Shape, int(d))
	}
	if small != nil {
		t.Ints = small
	}
	n := Len(t.Shape)
	if hasRaw {
		if n < 0 || len(raw) != n*t.Type.size() {
			refuse("tensor %.60q of type %v and shape %v has %d bytes", t.Name, t.Type, t.Shape, len(raw))
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
		refuse("tensor %.60q of shape %v has %d elements", t.Name, t.Shape, have)
	}
	return t
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

// message says what is done with each field of a message, by its number. Other fields are skipped.
type message map[protowire.Number]func(v value)

// set has a field replace what is there.
func set[T any](to *T, get func(v value) T) func(v value) { return func(v value) { *to = get(v) } }

// add has a field be one more entry of a list.
func add[T any](to *[]T, get func(v value) T) func(v value) {
	return func(v value) {
		if len(*to) >= mostNames {
			refuse("it has a list of more than %d entries", mostNames)
		}
		*to = append(*to, get(v))
	}
}

// read reads the fields of message b, which is what in the words of errors.
func (m message) read(b []byte, what string) {
	for len(b) > 0 {
		f, wire, n := protowire.ConsumeTag(b)
		v := value{wire: wire}
		if n >= 0 {
			b = b[n:]
			n = v.consume(b)
		}
		if n < 0 {
			refuse("%s is truncated or damaged", what)
		}
		b = b[n:]
		if use := m[f]; use != nil {
			use(v)
		}
	}
}

// consume takes a value of v's wire type from the beginning of b and returns its length, which is negative if there is
// none.
func (v *value) consume(b []byte) (n int) {
	switch v.wire {
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
	return n
}

// read reads a message within a message. The format nests them a fixed number of times, so this cannot recurse without
// end.
func (v value) read(what string, m message) { m.read(v.bytes(), what) }

func (v value) need(wire protowire.Type) {
	if v.wire != wire {
		refuse("a field has another kind than the format says")
	}
}

func (v value) bytes() []byte {
	v.need(protowire.BytesType)
	return v.b
}

func (v value) text() string {
	b := v.bytes()
	if !utf8.Valid(b) {
		refuse("a text is not UTF-8")
	}
	return string(b)
}

func (v value) int() int64 {
	v.need(protowire.VarintType)
	return int64(v.n)
}

func (v value) float() float32 {
	v.need(protowire.Fixed32Type)
	return math.Float32frombits(uint32(v.n))
}

// ints appends whole numbers, packed or single.
func (v value) ints(to []int64) []int64 {
	if v.wire == protowire.VarintType {
		return append(to, int64(v.n))
	}
	for b := v.bytes(); len(b) > 0; {
		x, n := protowire.ConsumeVarint(b)
		if n < 0 {
			refuse("a list of whole numbers is truncated or damaged")
		}
		to, b = append(to, int64(x)), b[n:]
	}
	return to
}

func (v value) floats(to []float32) []float32 {
	if v.wire == protowire.Fixed32Type {
		return append(to, v.float())
	}
	for b := v.packed(4); len(b) > 0; b = b[4:] {
		to = append(to, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return to
}

func (v value) doubles(to []float64) []float64 {
	if v.wire == protowire.Fixed64Type {
		return append(to, math.Float64frombits(v.n))
	}
	for b := v.packed(8); len(b) > 0; b = b[8:] {
		to = append(to, math.Float64frombits(binary.LittleEndian.Uint64(b)))
	}
	return to
}

// packed returns the bytes of numbers of the given size.
func (v value) packed(size int) []byte {
	b := v.bytes()
	if len(b)%size != 0 {
		refuse("a list of numbers is truncated")
	}
	return b
}
