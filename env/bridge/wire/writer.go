package wire

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/vmihailenco/msgpack/v5"
)

// Writer writes messages in one of the encodings. Containers are announced with their number of entries and end by
// themselves. A message that breaks this is a bug of the caller and panics. The zero Writer is not usable; a Writer is
// not safe for concurrent use, and allocates nothing once its buffer has grown.
type Writer struct {
	enc Encoding
	buf buffer
	m   *msgpack.Encoder

	// JSON: what is left of each open container, and the array whose data the caller is filling.
	open    []container
	pending Array
	waiting bool
	scratch []byte
}

type container struct {
	left  int
	isMap bool
	first bool
}

// buffer is the end of a slice as an io.Writer.
type buffer struct{ b []byte }

func (b *buffer) Write(p []byte) (int, error) {
	b.b = append(b.b, p...)
	return len(p), nil
}

func (b *buffer) WriteByte(c byte) error {
	b.b = append(b.b, c)
	return nil
}

// NewWriter returns a writer of messages in enc.
func NewWriter(enc Encoding) *Writer {
	w := &Writer{enc: enc}
	w.m = msgpack.NewEncoder(&w.buf)
	w.m.UseCompactInts(true)
	return w
}

// Encoding is the writer's encoding.
func (w *Writer) Encoding() Encoding { return w.enc }

// Reset begins another message in the same buffer.
func (w *Writer) Reset() {
	w.buf.b, w.open, w.waiting = w.buf.b[:0], w.open[:0], false
}

// Bytes is the message so far, valid until the next call of Reset or of a method that writes.
func (w *Writer) Bytes() []byte {
	w.flush()
	return w.buf.b
}

// Len is the number of bytes so far.
func (w *Writer) Len() int { return len(w.Bytes()) }

// must is for errors that cannot happen: the buffer takes everything.
func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("wire: %v", err))
	}
}

// Reply begins the reply to request re: a map with "re", "op" and n more entries.
func (w *Writer) Reply(re uint32, op string, n int) {
	w.Map(n + 2)
	w.Key("re")
	w.Uint(uint64(re))
	w.Key("op")
	w.Str(op)
}

// Request begins request id: a map with "op", "id" and n more entries.
func (w *Writer) Request(id uint32, op string, n int) {
	w.Map(n + 2)
	w.Key("op")
	w.Str(op)
	w.Key("id")
	w.Uint(uint64(id))
}

// Map begins a map of n entries, each a Key and a value.
func (w *Writer) Map(n int) {
	if w.enc != JSON {
		must(w.m.EncodeMapLen(n))
		return
	}
	w.before()
	w.begin('{', n, true)
}

// List begins a list of n values.
func (w *Writer) List(n int) {
	if w.enc != JSON {
		must(w.m.EncodeArrayLen(n))
		return
	}
	w.before()
	w.begin('[', n, false)
}

func (w *Writer) begin(c byte, n int, isMap bool) {
	w.buf.b = append(w.buf.b, c)
	w.open = append(w.open, container{n, isMap, true})
	w.end()
}

// before writes what stands before a value in JSON.
func (w *Writer) before() {
	w.flush()
	if len(w.open) == 0 {
		return
	}
	c := &w.open[len(w.open)-1]
	if c.left == 0 {
		panic("wire: a container has more entries than announced")
	}
	c.left--
	if !c.isMap && !c.first {
		w.buf.b = append(w.buf.b, ',')
	}
	c.first = false
}

// end closes the containers that are complete.
func (w *Writer) end() {
	for len(w.open) > 0 {
		c := w.open[len(w.open)-1]
		if c.left > 0 {
			return
		}
		w.open = w.open[:len(w.open)-1]
		if c.isMap {
			w.buf.b = append(w.buf.b, '}')
		} else {
			w.buf.b = append(w.buf.b, ']')
		}
	}
}

// Key writes the key of the next entry of a map.
func (w *Writer) Key(k string) {
	if w.enc != JSON {
		must(w.m.EncodeString(k))
		return
	}
	w.flush()
	if len(w.open) == 0 || !w.open[len(w.open)-1].isMap {
		panic("wire: a key outside a map")
	}
	if !w.open[len(w.open)-1].first {
		w.buf.b = append(w.buf.b, ',')
	}
	w.text(k)
	w.buf.b = append(w.buf.b, ':')
}

func (w *Writer) text(s string) {
	b, err := json.Marshal(s)
	must(err)
	w.buf.b = append(w.buf.b, b...)
}

// Str writes a string.
func (w *Writer) Str(s string) {
	if w.enc != JSON {
		must(w.m.EncodeString(s))
		return
	}
	w.before()
	w.text(s)
	w.end()
}

// Int writes a whole number.
func (w *Writer) Int(v int64) {
	if w.enc != JSON {
		must(w.m.EncodeInt(v))
		return
	}
	w.before()
	w.buf.b = strconv.AppendInt(w.buf.b, v, 10)
	w.end()
}

// Uint writes a whole number.
func (w *Writer) Uint(v uint64) {
	if w.enc != JSON {
		must(w.m.EncodeUint(v))
		return
	}
	w.before()
	w.buf.b = strconv.AppendUint(w.buf.b, v, 10)
	w.end()
}

// Float writes a number. JSON has no NaN and no infinities: they become null.
func (w *Writer) Float(v float64) {
	if w.enc != JSON {
		must(w.m.EncodeFloat64(v))
		return
	}
	w.before()
	w.number(v, 64)
	w.end()
}

func (w *Writer) number(v float64, bits int) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		w.buf.b = append(w.buf.b, "null"...)
		return
	}
	w.buf.b = strconv.AppendFloat(w.buf.b, v, 'g', -1, bits)
}

// Bool writes a boolean.
func (w *Writer) Bool(v bool) {
	if w.enc != JSON {
		must(w.m.EncodeBool(v))
		return
	}
	w.before()
	w.buf.b = strconv.AppendBool(w.buf.b, v)
	w.end()
}

// Nil writes nothing, as a value.
func (w *Writer) Nil() {
	if w.enc != JSON {
		must(w.m.EncodeNil())
		return
	}
	w.before()
	w.buf.b = append(w.buf.b, "null"...)
	w.end()
}

// Bin writes a blob; in JSON it is a string in base64.
func (w *Writer) Bin(b []byte) {
	if w.enc != JSON {
		must(w.m.EncodeBytesLen(len(b)))
		w.buf.b = append(w.buf.b, b...)
		return
	}
	w.before()
	w.buf.b = append(w.buf.b, '"')
	w.buf.b = base64.StdEncoding.AppendEncode(w.buf.b, b)
	w.buf.b = append(w.buf.b, '"')
	w.end()
}

// Array announces an array and returns the room for its data, C-order and little-endian, which the caller fills
// before the next call. The room is not cleared.
func (w *Writer) Array(d DType, shape ...int) []byte {
	n := d.Size()
	for _, k := range shape {
		n *= k
	}
	switch w.enc {
	case Ext:
		h := header(len(shape))
		must(w.m.EncodeExtHeader(ExtArray, h+n))
		at := len(w.buf.b)
		w.buf.b = append(w.buf.b, byte(d), byte(len(shape)), 0, 0)
		for _, k := range shape {
			w.buf.b = append(w.buf.b, byte(k), byte(k>>8), byte(k>>16), byte(k>>24))
		}
		for len(w.buf.b) < at+h {
			w.buf.b = append(w.buf.b, 0)
		}
		return w.room(n)
	case MPNP:
		must(w.m.EncodeMapLen(5))
		w.Bin(keyND)
		w.Bool(true)
		w.Bin(keyType)
		w.Str(dtypes[d].numpy)
		w.Bin(keyKind)
		w.Bin(nil2)
		w.Bin(keyShape)
		w.List(len(shape))
		for _, k := range shape {
			w.Int(int64(k))
		}
		w.Bin(keyData)
		must(w.m.EncodeBytesLen(n))
		return w.room(n)
	}
	w.before()
	w.scratch = slices.Grow(w.scratch[:0], n)[:n]
	w.pending = Array{d, append(w.pending.Shape[:0], shape...), w.scratch}
	w.waiting = true
	return w.scratch
}

// The keys of msgpack-numpy, and its empty kind.
var (
	keyND, keyType, keyKind = []byte("nd"), []byte("type"), []byte("kind")
	keyShape, keyData       = []byte("shape"), []byte("data")
	nil2                    = []byte{}
)

// room makes the message n bytes longer.
func (w *Writer) room(n int) []byte {
	at := len(w.buf.b)
	w.buf.b = slices.Grow(w.buf.b, n)[:at+n]
	return w.buf.b[at:]
}

// flush writes the pending array of a JSON message as nested lists.
func (w *Writer) flush() {
	if !w.waiting {
		return
	}
	w.waiting = false
	w.nested(w.pending.Shape, 0, w.pending.Len())
	w.end()
}

func (w *Writer) nested(shape []int, from, n int) {
	a := &w.pending
	if len(shape) == 0 {
		switch {
		case a.DType == Bool:
			w.buf.b = strconv.AppendBool(w.buf.b, a.Data[from] != 0)
		case a.DType == F32 || a.DType == F16:
			w.number(a.Float(from), 32)
		case a.DType == F64:
			w.number(a.Float(from), 64)
		case a.DType == U64:
			v, ok := a.Int(from)
			if !ok {
				w.buf.b = strconv.AppendUint(w.buf.b, uint64(v), 10)
				return
			}
			w.buf.b = strconv.AppendInt(w.buf.b, v, 10)
		default:
			v, _ := a.Int(from)
			w.buf.b = strconv.AppendInt(w.buf.b, v, 10)
		}
		return
	}
	w.buf.b = append(w.buf.b, '[')
	for i := range shape[0] {
		if i > 0 {
			w.buf.b = append(w.buf.b, ',')
		}
		each := n / max(shape[0], 1)
		w.nested(shape[1:], from+i*each, each)
	}
	w.buf.b = append(w.buf.b, ']')
}

// F32 writes an array of float32.
func (w *Writer) F32(data []float32, shape ...int) { PutF32(w.Array(F32, shape...), data) }

// F64 writes an array of float64.
func (w *Writer) F64(data []float64, shape ...int) { PutF64(w.Array(F64, shape...), data) }

// Bools writes an array of booleans of one dimension.
func (w *Writer) Bools(data []bool) { PutBool(w.Array(Bool, len(data)), data) }

// Value writes any decoded value, and what Go programs have in its place: int, float32, map[string]any (sorted by
// key), []string, []int, []float64 (a list each), *Space.
func (w *Writer) Value(v any) {
	switch v := v.(type) {
	case nil:
		w.Nil()
	case bool:
		w.Bool(v)
	case int:
		w.Int(int64(v))
	case int32:
		w.Int(int64(v))
	case int64:
		w.Int(v)
	case uint32:
		w.Uint(uint64(v))
	case uint64:
		w.Uint(v)
	case float32:
		w.Float(float64(v))
	case float64:
		w.Float(v)
	case string:
		w.Str(v)
	case []byte:
		w.Bin(v)
	case Array:
		copy(w.Array(v.DType, v.Shape...), v.Data)
	case []any:
		w.List(len(v))
		for _, x := range v {
			w.Value(x)
		}
	case []string:
		w.List(len(v))
		for _, x := range v {
			w.Str(x)
		}
	case []int:
		w.List(len(v))
		for _, x := range v {
			w.Int(int64(x))
		}
	case []float64:
		w.List(len(v))
		for _, x := range v {
			w.Float(x)
		}
	case Map:
		w.Map(len(v))
		for _, p := range v {
			w.Key(p.Key)
			w.Value(p.Value)
		}
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		w.Map(len(v))
		for _, k := range keys {
			w.Key(k)
			w.Value(v[k])
		}
	case *Space:
		v.write(w)
	default:
		panic(fmt.Sprintf("wire: a value of type %T", v))
	}
}
