package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// Encoding is how messages are written.
type Encoding uint8

// The encodings. Ext and MPNP are msgpack; they differ in arrays only: an extension of type ExtArray, and the maps
// of msgpack-numpy.
const (
	Ext Encoding = iota
	MPNP
	JSON
)

var encodings = [...]string{"ext", "mpnp", "json"}

// String is the name used in the handshake.
func (e Encoding) String() string { return encodings[e] }

// EncodingNamed is the encoding of that name.
func EncodingNamed(name string) (Encoding, bool) {
	for i, n := range encodings {
		if n == name {
			return Encoding(i), true
		}
	}
	return 0, false
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// Decoder reads messages of one connection. Not safe for concurrent use.
type Decoder struct {
	enc Encoding
	lim Limits
	r   bytes.Reader
	m   *msgpack.Decoder
	buf []byte // the frame
}

// NewDecoder returns a decoder of messages in enc.
func NewDecoder(enc Encoding, lim Limits) *Decoder {
	d := &Decoder{enc: enc, lim: lim}
	d.m = msgpack.NewDecoder(&d.r)
	return d
}

// Decode reads one message. What it refuses is an *Error of code BadFrame. The result has views of frame.
func Decode(frame []byte, enc Encoding, lim Limits) (Map, *Error) {
	return NewDecoder(enc, lim).Decode(frame)
}

// Decode reads one message. What it refuses is an *Error of code BadFrame. The result has views of frame.
func (d *Decoder) Decode(frame []byte) (Map, *Error) {
	if d.enc == JSON {
		return decodeJSON(frame, d.lim)
	}
	d.buf = frame
	d.r.Reset(frame)
	d.m.ResetReader(&d.r)
	v, e := d.value(1)
	if e != nil {
		return nil, e
	}
	m, ok := v.(Map)
	if !ok {
		return nil, &Error{Code: BadFrame, Msg: "message", Got: describe(v), Want: "a map"}
	}
	if d.r.Len() > 0 {
		return nil, Errorf(BadFrame, "%d bytes follow the message", d.r.Len())
	}
	return m, nil
}

// ended is the error for a frame that is shorter than it says.
func ended(err error) *Error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return Errorf(BadFrame, "the message ends too early")
	}
	return Errorf(BadFrame, "%s", strings.TrimPrefix(err.Error(), "msgpack: "))
}

// take is a view of the next n bytes, which must be there.
func (d *Decoder) take(n int) ([]byte, *Error) {
	if n < 0 || n > d.r.Len() {
		return nil, Errorf(BadFrame, "%d bytes are announced where %d are left", n, d.r.Len())
	}
	at := len(d.buf) - d.r.Len()
	_, _ = d.r.Seek(int64(n), io.SeekCurrent) // within the frame
	return d.buf[at : at+n : at+n], nil
}

func (d *Decoder) str() (string, *Error) {
	n, err := d.m.DecodeBytesLen()
	if err != nil {
		return "", ended(err)
	}
	if n > d.lim.String {
		return "", Errorf(BadFrame, "a string of %d bytes, want at most %d", n, d.lim.String)
	}
	b, e := d.take(n)
	if e != nil {
		return "", e
	}
	if !utf8.Valid(b) {
		return "", Errorf(BadFrame, "a string is not UTF-8")
	}
	return string(b), nil
}

// value reads one value at the given depth.
func (d *Decoder) value(depth int) (any, *Error) {
	c, err := d.m.PeekCode()
	if err != nil {
		return nil, ended(err)
	}
	switch {
	case c == msgpcode.Nil:
		return nil, fault(d.m.DecodeNil())
	case c == msgpcode.True || c == msgpcode.False:
		v, err := d.m.DecodeBool()
		return v, fault(err)
	case msgpcode.IsFixedNum(c) || c >= msgpcode.Int8 && c <= msgpcode.Int64 || c >= msgpcode.Uint8 && c <= msgpcode.Uint32:
		v, err := d.m.DecodeInt64()
		return v, fault(err)
	case c == msgpcode.Uint64:
		v, err := d.m.DecodeUint64()
		if v <= 1<<63-1 {
			return int64(v), fault(err)
		}
		return v, fault(err)
	case c == msgpcode.Float || c == msgpcode.Double:
		v, err := d.m.DecodeFloat64()
		return v, fault(err)
	case msgpcode.IsString(c):
		s, e := d.str()
		if e != nil {
			return nil, e
		}
		return s, nil
	case msgpcode.IsBin(c):
		n, err := d.m.DecodeBytesLen()
		if err != nil {
			return nil, ended(err)
		}
		b, e := d.take(n)
		if e != nil {
			return nil, e
		}
		return b, nil
	case msgpcode.IsExt(c):
		return d.ext()
	case msgpcode.IsFixedArray(c) || c == msgpcode.Array16 || c == msgpcode.Array32:
		return d.list(depth)
	case msgpcode.IsFixedMap(c) || c == msgpcode.Map16 || c == msgpcode.Map32:
		return d.mapping(depth)
	}
	return nil, Errorf(BadFrame, "byte 0x%02x begins no value", c)
}

// fault turns a reader's error into a frame's.
func fault(err error) *Error {
	if err != nil {
		return ended(err)
	}
	return nil
}

func (d *Decoder) ext() (any, *Error) {
	id, n, err := d.m.DecodeExtHeader()
	if err != nil {
		return nil, ended(err)
	}
	p, e := d.take(n)
	if e != nil {
		return nil, e
	}
	if id != ExtArray {
		return nil, Errorf(BadFrame, "extension type %d, want only %d", id, ExtArray)
	}
	a, e := parseArray(p)
	if e != nil {
		return nil, e
	}
	return a, nil
}

// room refuses a container that announces more entries than bytes are left, and one that is nested too deeply.
func (d *Decoder) room(n, depth int) *Error {
	if depth > d.lim.Depth {
		return Errorf(BadFrame, "nested deeper than %d levels", d.lim.Depth)
	}
	if n < 0 || n > d.r.Len() {
		return Errorf(BadFrame, "%d entries are announced where %d bytes are left", n, d.r.Len())
	}
	return nil
}

// grain bounds what is allocated for a container before its entries have been seen: an entry of one byte on the wire
// takes up to 40 in memory.
const grain = 64

func (d *Decoder) list(depth int) (any, *Error) {
	n, err := d.m.DecodeArrayLen()
	if err != nil {
		return nil, ended(err)
	}
	if e := d.room(n, depth); e != nil {
		return nil, e
	}
	out := make([]any, 0, min(n, grain))
	for range n {
		v, e := d.value(depth + 1)
		if e != nil {
			return nil, e
		}
		out = append(out, v)
	}
	return out, nil
}

func (d *Decoder) mapping(depth int) (any, *Error) {
	n, err := d.m.DecodeMapLen()
	if err != nil {
		return nil, ended(err)
	}
	if e := d.room(2*n, depth); e != nil {
		return nil, e
	}
	if n > 0 && d.enc == MPNP {
		if c, err := d.m.PeekCode(); err == nil && msgpcode.IsBin(c) {
			return d.numpy(n)
		}
	}
	out := make(Map, 0, min(n, grain))
	var seen map[string]struct{}
	for range n {
		c, err := d.m.PeekCode()
		if err != nil {
			return nil, ended(err)
		}
		if !msgpcode.IsString(c) {
			return nil, Errorf(BadFrame, "a key that is no string")
		}
		key, e := d.str()
		if e != nil {
			return nil, e
		}
		// Few keys are compared one by one; more go into a set, or a large map would cost its square.
		if n <= 16 {
			if out.Has(key) {
				return nil, Errorf(BadFrame, "key %.40q stands twice in a map", key)
			}
		} else {
			if seen == nil {
				seen = make(map[string]struct{}, grain)
			}
			if _, twice := seen[key]; twice {
				return nil, Errorf(BadFrame, "key %.40q stands twice in a map", key)
			}
			seen[key] = struct{}{}
		}
		v, e := d.value(depth + 1)
		if e != nil {
			return nil, e
		}
		out = append(out, Pair{key, v})
	}
	return out, nil
}

// numpy reads the n entries of an array as msgpack-numpy writes it: keys are bytes.
func (d *Decoder) numpy(n int) (any, *Error) {
	var (
		a    Array
		nd   bool
		seen = map[string]bool{}
	)
	for range n {
		c, err := d.m.PeekCode()
		if err != nil {
			return nil, ended(err)
		}
		if !msgpcode.IsBin(c) {
			return nil, Errorf(BadFrame, "an array of msgpack-numpy with a key that is not bytes")
		}
		k, err := d.m.DecodeBytesLen()
		if err != nil {
			return nil, ended(err)
		}
		b, e := d.take(k)
		if e != nil {
			return nil, e
		}
		key := string(b)
		if seen[key] {
			return nil, Errorf(BadFrame, "key %.40q stands twice in a map", key)
		}
		seen[key] = true
		v, e := d.value(d.lim.Depth) // nothing is nested but the shape
		if e != nil {
			return nil, e
		}
		ok := true
		switch key {
		case "nd":
			nd, ok = v.(bool)
		case "type":
			var s string
			if s, ok = v.(string); ok {
				a.DType, ok = numpyType(s)
			}
		case "kind":
			b, isBytes := v.([]byte)
			ok = isBytes && len(b) == 0
		case "shape":
			var list []any
			list, ok = v.([]any)
			for _, x := range list {
				i, whole := x.(int64)
				ok = ok && whole && i >= 0 && i < 1<<32
				a.Shape = append(a.Shape, int(i))
			}
			ok = ok && len(a.Shape) <= maxDims
		case "data":
			a.Data, ok = v.([]byte)
		default:
			ok = false
		}
		if !ok {
			return nil, Errorf(BadFrame, "an array of msgpack-numpy with a bad entry %.40q", key)
		}
	}
	if !seen["nd"] || !seen["type"] || !seen["data"] || nd && !seen["shape"] {
		return nil, Errorf(BadFrame, "an array of msgpack-numpy that lacks nd, type, shape or data")
	}
	if a.Shape == nil {
		a.Shape = []int{}
	}
	count, ok := elements(a.Shape, a.DType.Size(), len(a.Data))
	if !ok || count*a.DType.Size() != len(a.Data) {
		return nil, Errorf(BadFrame, "an array of %v %s has %d bytes of data", a.Shape, a.DType, len(a.Data))
	}
	return a, nil
}

// numpyType is the type of numpy's array-protocol string.
func numpyType(s string) (DType, bool) {
	for d := Bool; d.valid(); d++ {
		if dtypes[d].numpy == s {
			return d, true
		}
	}
	return 0, false
}

// decodeJSON reads a message in JSON. Arrays are lists there.
func decodeJSON(frame []byte, lim Limits) (Map, *Error) {
	if !utf8.Valid(frame) {
		return nil, Errorf(BadFrame, "the message is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(frame))
	d.UseNumber()
	v, e := jsonValue(d, lim, 1)
	if e != nil {
		return nil, e
	}
	m, ok := v.(Map)
	if !ok {
		return nil, &Error{Code: BadFrame, Msg: "message", Got: describe(v), Want: "a map"}
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, Errorf(BadFrame, "something follows the message")
	}
	return m, nil
}

func jsonValue(d *json.Decoder, lim Limits, depth int) (any, *Error) {
	t, err := d.Token()
	if err != nil {
		return nil, ended(err)
	}
	switch t := t.(type) {
	case nil, bool:
		return t, nil
	case string:
		if len(t) > lim.String {
			return nil, Errorf(BadFrame, "a string of %d bytes, want at most %d", len(t), lim.String)
		}
		return t, nil
	case json.Number:
		if n, err := strconv.ParseInt(t.String(), 10, 64); err == nil {
			return n, nil
		}
		if n, err := strconv.ParseUint(t.String(), 10, 64); err == nil {
			return n, nil
		}
		f, err := t.Float64()
		if err != nil {
			return nil, Errorf(BadFrame, "number %.40s cannot be held", t)
		}
		return f, nil
	}
	if depth > lim.Depth {
		return nil, Errorf(BadFrame, "nested deeper than %d levels", lim.Depth)
	}
	if t == json.Delim('[') {
		out := []any{}
		for d.More() {
			v, e := jsonValue(d, lim, depth+1)
			if e != nil {
				return nil, e
			}
			out = append(out, v)
		}
		_, err = d.Token()
		return out, fault(err)
	}
	out, seen := Map{}, map[string]struct{}{}
	for d.More() {
		k, err := d.Token()
		if err != nil {
			return nil, ended(err)
		}
		key, ok := k.(string)
		if !ok || len(key) > lim.String {
			return nil, Errorf(BadFrame, "a key that is no string, or too long")
		}
		if _, twice := seen[key]; twice {
			return nil, Errorf(BadFrame, "key %.40q stands twice in a map", key)
		}
		seen[key] = struct{}{}
		v, e := jsonValue(d, lim, depth+1)
		if e != nil {
			return nil, e
		}
		out = append(out, Pair{key, v})
	}
	_, err = d.Token()
	return out, fault(err)
}
