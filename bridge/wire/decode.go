package wire

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// Encoding is the form in which messages are written.
type Encoding uint8

// The encodings. Ext and MPNP are msgpack and differ only in arrays: Ext has an extension of type ExtArray, MPNP the
// maps of msgpack-numpy.
const (
	Ext Encoding = iota
	MPNP
	JSON
)

var encodings = [...]string{"ext", "mpnp", "json"}

// String returns the name used in the handshake.
func (e Encoding) String() string { return encodings[e] }

// EncodingNamed returns the encoding called name, and whether there is one.
func EncodingNamed(name string) (Encoding, bool) {
	i := slices.Index(encodings[:], name)
	return Encoding(max(i, 0)), i >= 0
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// Decoder reads messages of one connection. It is not safe for concurrent use.
type Decoder struct {
	enc    Encoding
	lim    Limits
	r      bytes.Reader
	m      *msgpack.Decoder
	buf    []byte // the frame
	owed   int    // entries of open containers that are still to come, each of at least one byte
	values int    // entries announced so far
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
	d.owed, d.values = 0, 0
	m, e := d.message()
	d.buf = nil
	if e != nil {
		return nil, e
	}
	if d.r.Len() > 0 {
		return nil, Errorf(BadFrame, "%d bytes follow the message", d.r.Len())
	}
	return m, nil
}

// message reads a whole message, which is one map.
func (d *Decoder) message() (Map, *Error) {
	if c, err := d.m.PeekCode(); err == nil && isMap(c) {
		n, err := d.m.DecodeMapLen()
		if err != nil {
			return nil, ended(err)
		}
		if e := d.room(n, 2); e != nil {
			return nil, e
		}
		return d.entries(n, 1)
	}
	v, e := d.value(1)
	if e != nil {
		return nil, e
	}
	return nil, &Error{Code: BadFrame, Msg: "message", Got: describe(v), Want: "a map"}
}

func isMap(c byte) bool {
	return msgpcode.IsFixedMap(c) || c == msgpcode.Map16 || c == msgpcode.Map32
}

// ended returns the frame's error for an error of the msgpack reader, most often that the frame is too short.
func ended(err error) *Error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return Errorf(BadFrame, "the message ends too early")
	}
	return Errorf(BadFrame, "%s", strings.TrimPrefix(err.Error(), "msgpack: "))
}

// take returns a view of the next n bytes. It returns an error if the frame is shorter.
func (d *Decoder) take(n int) ([]byte, *Error) {
	if n < 0 || n > d.r.Len() {
		return nil, Errorf(BadFrame, "%d bytes are announced where %d are left", n, d.r.Len())
	}
	at := len(d.buf) - d.r.Len()
	_, _ = d.r.Seek(int64(n), io.SeekCurrent) // it cannot fail within the frame
	return d.buf[at : at+n : at+n], nil
}

// text returns the next string, as a view.
func (d *Decoder) text() ([]byte, *Error) {
	n, err := d.m.DecodeBytesLen()
	if err != nil {
		return nil, ended(err)
	}
	if n > d.lim.String {
		return nil, Errorf(BadFrame, "a string of %d bytes, want at most %d", n, d.lim.String)
	}
	b, e := d.take(n)
	if e != nil {
		return nil, e
	}
	if !utf8.Valid(b) {
		return nil, Errorf(BadFrame, "a string is not UTF-8")
	}
	return b, nil
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
	case msgpcode.IsFixedNum(c) || c >= msgpcode.Int8 && c <= msgpcode.Int64 ||
		c >= msgpcode.Uint8 && c <= msgpcode.Uint32:
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
		b, e := d.text()
		if e != nil {
			return nil, e
		}
		if w, ok := words[string(b)]; ok {
			return w.value, nil
		}
		return string(b), nil
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
	case isMap(c):
		return d.mapping(depth)
	}
	return nil, Errorf(BadFrame, "byte 0x%02x begins no value", c)
}

// fault turns an error of the msgpack reader into one about the frame.
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

// room reserves n entries of at least size bytes each, and refuses more than the frame can hold. It also counts the
// bytes that open containers still need, so that every entry allocated in advance has bytes of its own in the frame.
func (d *Decoder) room(n, size int) *Error {
	if left := d.r.Len() - d.owed; n > left/size {
		return Errorf(BadFrame, "%d entries are announced where %d bytes are left", n, max(left, 0))
	}
	d.values += n
	if d.values > d.lim.values() {
		return Errorf(BadFrame, "a message of more than %d values", d.lim.values())
	}
	d.owed += n * size
	return nil
}

// deep refuses a container that is nested too deeply.
func (d *Decoder) deep(depth int) *Error {
	if depth > d.lim.Depth {
		return Errorf(BadFrame, "nested deeper than %d levels", d.lim.Depth)
	}
	return nil
}

func (d *Decoder) list(depth int) (any, *Error) {
	n, err := d.m.DecodeArrayLen()
	if err != nil {
		return nil, ended(err)
	}
	if e := d.deep(depth); e != nil {
		return nil, e
	}
	if e := d.room(n, 1); e != nil {
		return nil, e
	}
	out := make([]any, n)
	for i := range out {
		d.owed--
		v, e := d.value(depth + 1)
		if e != nil {
			return nil, e
		}
		out[i] = v
	}
	return out, nil
}

// fewKeys is the number of keys up to which they are compared one by one. More keys go into a set, since comparing the
// keys of a large map takes quadratic time.
const fewKeys = 16

// keys finds duplicate keys in a map that is being read.
type keys struct{ seen map[string]struct{} }

// twice reports whether m has key already, and notes the key.
func (k *keys) twice(m Map, key string) bool {
	if len(m) < fewKeys {
		return m.Has(key)
	}
	if k.seen == nil {
		k.seen = make(map[string]struct{}, 2*fewKeys)
		for _, p := range m {
			k.seen[p.Key] = struct{}{}
		}
	}
	_, there := k.seen[key]
	k.seen[key] = struct{}{}
	return there
}

func (d *Decoder) mapping(depth int) (any, *Error) {
	n, err := d.m.DecodeMapLen()
	if err != nil {
		return nil, ended(err)
	}
	if e := d.room(n, 2); e != nil {
		return nil, e
	}
	if n > 0 && d.enc == MPNP {
		if c, err := d.m.PeekCode(); err == nil && msgpcode.IsBin(c) {
			return d.numpy(n)
		}
	}
	m, e := d.entries(n, depth)
	if e != nil {
		return nil, e
	}
	return m, nil
}

// entries reads the n entries of a map.
func (d *Decoder) entries(n, depth int) (Map, *Error) {
	if e := d.deep(depth); e != nil {
		return nil, e
	}
	out := make(Map, 0, n)
	var all keys
	for range n {
		d.owed -= 2
		c, err := d.m.PeekCode()
		if err != nil {
			return nil, ended(err)
		}
		if !msgpcode.IsString(c) {
			return nil, Errorf(BadFrame, "a key that is no string")
		}
		b, e := d.text()
		if e != nil {
			return nil, e
		}
		var key string
		if w, ok := words[string(b)]; ok {
			key = w.key
		} else {
			key = string(b)
		}
		if all.twice(out, key) {
			return nil, Errorf(BadFrame, "key %.40q stands twice in a map", key)
		}
		v, e := d.value(depth + 1)
		if e != nil {
			return nil, e
		}
		out = append(out, Pair{key, v})
	}
	return out, nil
}

// word is a string of the protocol.
type word struct {
	key   string
	value any // the same string in an interface
}

// words holds the strings that nearly every message has, so that reading them does not allocate.
var words = func() map[string]word {
	m := map[string]word{}
	for _, s := range []string{
		OpHello, OpWelcome, OpOpen, OpReset, OpStep, OpSend, OpRecv, OpMasks, OpCall, OpRender, OpSnapshot, OpRestore,
		OpClose, OpPing, OpBye, OpError, "id", "re", "op", "h", "a", "t", "r", "te", "tr", "ids", "which", "seed", "obs",
		"info", "fin",
		"options", "method", "args", "ret", "mask", "episode", "l", "elapsed_s", "invalid", "qlen", MaskKey,
		"_" + MaskKey, "_episode", "_invalid",
	} {
		m[s] = word{s, s}
	}
	return m
}()
