package wire

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"
)

// Writer writes messages in one of the encodings. The caller announces a container with its number of entries; the
// container ends after the last of them. A value too many is a bug of the caller and panics. A Writer is made by
// NewWriter, is not safe for concurrent use, and does not allocate once its buffer has grown.
type Writer struct {
	enc  Encoding
	buf  buffer
	m    *msgpack.Encoder
	open []container // the open containers, outermost first

	// JSON: the array whose data the caller is filling.
	pending Array
	waiting bool
	scratch []byte
}

type container struct {
	left  int // entries that are still to come
	isMap bool
	first bool // no entry has come yet
	keyed bool // the key of the map's next entry has been written
}

// buffer is an io.Writer that appends to a slice.
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

// Encoding returns the writer's encoding.
func (w *Writer) Encoding() Encoding { return w.enc }

// Reset begins a new message in the same buffer.
func (w *Writer) Reset() {
	w.buf.b, w.open, w.waiting = w.buf.b[:0], w.open[:0], false
}

// Bytes returns the message so far. It is valid until the next call of Reset or of a method that writes.
func (w *Writer) Bytes() []byte {
	w.flush()
	return w.buf.b
}

// Len returns the number of bytes so far.
func (w *Writer) Len() int { return len(w.Bytes()) }

// Cap returns the bytes of the buffer.
func (w *Writer) Cap() int { return cap(w.buf.b) }

// Trim begins a new message, and drops the buffer if it is larger than most bytes.
func (w *Writer) Trim(most int) {
	w.Reset()
	if cap(w.buf.b) > most {
		w.buf.b = nil
	}
}

// Complete reports whether a whole value has been written: every container has all its entries.
func (w *Writer) Complete() bool { return len(w.Bytes()) > 0 && len(w.open) == 0 }

// must panics on errors that cannot happen, because the buffer accepts everything.
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

// before counts a value in the innermost open container, and writes the JSON separator in front of it.
func (w *Writer) before() {
	w.flush()
	if len(w.open) == 0 {
		return
	}
	c := &w.open[len(w.open)-1]
	if c.isMap != c.keyed {
		panic("wire: a value in a map without a key")
	}
	c.left--
	if w.enc == JSON && !c.isMap && !c.first {
		w.buf.b = append(w.buf.b, ',')
	}
	c.first, c.keyed = false, false
}

// end closes complete containers.
func (w *Writer) end() {
	for len(w.open) > 0 {
		c := w.open[len(w.open)-1]
		if c.left > 0 {
			return
		}
		w.open = w.open[:len(w.open)-1]
		if w.enc == JSON {
			w.buf.b = append(w.buf.b, closing(c.isMap))
		}
	}
}

func (w *Writer) begin(n int, isMap bool) {
	if n < 0 {
		panic(fmt.Sprintf("wire: a container of %d entries", n))
	}
	w.open = append(w.open, container{left: n, isMap: isMap, first: true})
	w.end()
}

// Map begins a map of n entries, each a Key and a value.
func (w *Writer) Map(n int) {
	w.before()
	if w.enc == JSON {
		w.buf.b = append(w.buf.b, '{')
	} else {
		must(w.m.EncodeMapLen(n))
	}
	w.begin(n, true)
}

// List begins a list of n values.
func (w *Writer) List(n int) {
	w.before()
	if w.enc == JSON {
		w.buf.b = append(w.buf.b, '[')
	} else {
		must(w.m.EncodeArrayLen(n))
	}
	w.begin(n, false)
}

// Key writes the key of the next entry of a map.
func (w *Writer) Key(k string) {
	w.flush()
	if len(w.open) == 0 {
		panic("wire: key " + k + " outside a map, or more entries than announced")
	}
	c := &w.open[len(w.open)-1]
	if !c.isMap || c.keyed {
		panic("wire: key " + k + " in place of a value")
	}
	c.keyed = true
	if w.enc != JSON {
		w.str(k)
		return
	}
	if !c.first {
		w.buf.b = append(w.buf.b, ',')
	}
	w.buf.b = append(appendText(w.buf.b, k), ':')
}

// Str writes a string. Bytes that are not UTF-8 become U+FFFD, because a reader would refuse the whole message.
func (w *Writer) Str(s string) {
	w.before()
	if w.enc == JSON {
		w.buf.b = appendText(w.buf.b, s)
	} else {
		w.str(s)
	}
	w.end()
}

func (w *Writer) str(s string) {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	must(w.m.EncodeString(s))
}

// Int writes a whole number.
func (w *Writer) Int(v int64) {
	w.before()
	if w.enc == JSON {
		w.buf.b = strconv.AppendInt(w.buf.b, v, 10)
	} else {
		must(w.m.EncodeInt(v))
	}
	w.end()
}

// Uint writes a whole number.
func (w *Writer) Uint(v uint64) {
	w.before()
	if w.enc == JSON {
		w.buf.b = strconv.AppendUint(w.buf.b, v, 10)
	} else {
		must(w.m.EncodeUint(v))
	}
	w.end()
}

// Float writes a number. JSON has no NaN and no infinities: they become null.
func (w *Writer) Float(v float64) {
	w.before()
	if w.enc == JSON {
		w.buf.b = appendNumber(w.buf.b, v, 64)
	} else {
		must(w.m.EncodeFloat64(v))
	}
	w.end()
}

// Bool writes a boolean.
func (w *Writer) Bool(v bool) {
	w.before()
	if w.enc == JSON {
		w.buf.b = strconv.AppendBool(w.buf.b, v)
	} else {
		must(w.m.EncodeBool(v))
	}
	w.end()
}

// Nil writes nil.
func (w *Writer) Nil() {
	w.before()
	if w.enc == JSON {
		w.buf.b = append(w.buf.b, "null"...)
	} else {
		must(w.m.EncodeNil())
	}
	w.end()
}

// Bin writes a blob; in JSON it is a string in base64.
func (w *Writer) Bin(b []byte) {
	w.before()
	if w.enc == JSON {
		w.buf.b = append(w.buf.b, '"')
		w.buf.b = base64.StdEncoding.AppendEncode(w.buf.b, b)
		w.buf.b = append(w.buf.b, '"')
	} else {
		w.bin(b)
	}
	w.end()
}

func (w *Writer) bin(b []byte) {
	must(w.m.EncodeBytesLen(len(b)))
	w.buf.b = append(w.buf.b, b...)
}

// Array writes the header of an array and returns the buffer of its data, which the caller must fill before the next
// call, in C order and little-endian. The buffer is not cleared.
func (w *Writer) Array(d DType, shape ...int) []byte {
	n := d.Size()
	for _, k := range shape {
		n *= k
	}
	w.before()
	if w.enc == JSON {
		w.scratch = slices.Grow(w.scratch[:0], n)[:n]
		w.pending = Array{d, append(w.pending.Shape[:0], shape...), w.scratch}
		w.waiting = true
		return w.scratch
	}
	if w.enc == Ext {
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
	} else {
		// msgpack-numpy's order of the entries. Its readers need keys of type bytes.
		must(w.m.EncodeMapLen(5))
		w.bin(keyND)
		must(w.m.EncodeBool(true))
		w.bin(keyType)
		must(w.m.EncodeString(dtypes[d].numpy))
		w.bin(keyKind)
		w.bin(nil)
		w.bin(keyShape)
		must(w.m.EncodeArrayLen(len(shape)))
		for _, k := range shape {
			must(w.m.EncodeInt(int64(k)))
		}
		w.bin(keyData)
		must(w.m.EncodeBytesLen(n))
	}
	at := len(w.buf.b)
	w.buf.b = slices.Grow(w.buf.b, n)[:at+n]
	w.end()
	return w.buf.b[at:]
}

// The keys of msgpack-numpy.
var keyND, keyType, keyKind, keyShape, keyData = []byte("nd"), []byte("type"), []byte("kind"), []byte("shape"),
	[]byte("data")

// F64 writes an array of float64.
func (w *Writer) F64(data []float64, shape ...int) { PutF64(w.Array(F64, shape...), data) }
