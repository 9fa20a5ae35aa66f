package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonDecoder reads one message in JSON, where arrays are lists and blobs are strings in base64.
type jsonDecoder struct {
	d      *json.Decoder
	lim    Limits
	values int
}

func decodeJSON(frame []byte, lim Limits) (Map, *Error) {
	if !utf8.Valid(frame) {
		return nil, Errorf(BadFrame, "the message is not UTF-8")
	}
	if !paired(frame) {
		return nil, Errorf(BadFrame, "a string with half of a surrogate pair")
	}
	d := jsonDecoder{d: json.NewDecoder(bytes.NewReader(frame)), lim: lim}
	d.d.UseNumber()
	v, e := d.value(1)
	if e != nil {
		return nil, e
	}
	m, ok := v.(Map)
	if !ok {
		return nil, &Error{Code: BadFrame, Msg: "message", Got: describe(v), Want: "a map"}
	}
	if _, err := d.d.Token(); err != io.EOF {
		return nil, Errorf(BadFrame, "something follows the message")
	}
	return m, nil
}

// paired reports whether escaped surrogates come in pairs. The parser would silently replace others by U+FFFD.
func paired(frame []byte) bool {
	for {
		i := bytes.IndexByte(frame, '\\')
		if i < 0 || i+1 == len(frame) {
			return true
		}
		frame = frame[i+1:] // in valid JSON a backslash occurs only in a string, before another character
		r, ok := escape(frame)
		if !ok || !utf16.IsSurrogate(r) {
			frame = frame[1:]
			continue
		}
		frame = frame[5:]
		if len(frame) == 0 || frame[0] != '\\' {
			return false
		}
		low, _ := escape(frame[1:])
		if utf16.DecodeRune(r, low) == utf8.RuneError {
			return false
		}
		frame = frame[6:]
	}
}

// escape returns the rune of an escape such as u00e9.
func escape(b []byte) (rune, bool) {
	if len(b) < 5 || b[0] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[1:5]), 16, 16)
	return rune(n), err == nil
}

func (d *jsonDecoder) value(depth int) (any, *Error) {
	if d.values++; d.values > d.lim.values() {
		return nil, Errorf(BadFrame, "a message of more than %d values", d.lim.values())
	}
	t, err := d.d.Token()
	if err != nil {
		return nil, ended(err)
	}
	switch t := t.(type) {
	case string:
		return d.text(t)
	case json.Number:
		return number(t.String())
	case json.Delim:
		if depth > d.lim.Depth {
			return nil, Errorf(BadFrame, "nested deeper than %d levels", d.lim.Depth)
		}
		if t == '[' {
			return d.list(depth)
		}
		return d.mapping(depth)
	}
	return t, nil // t is nil or a boolean
}

// text returns s as a string, or decodes it as a blob if it is longer than strings may be.
func (d *jsonDecoder) text(s string) (any, *Error) {
	if len(s) <= d.lim.String {
		return s, nil
	}
	b, err := base64.StdEncoding.Strict().DecodeString(s)
	if err != nil || base64.StdEncoding.EncodedLen(len(b)) != len(s) {
		return nil, Errorf(BadFrame, "a string of %d bytes, want at most %d where it is no blob in base64", len(s),
			d.lim.String)
	}
	return b, nil
}

// number returns s as an int64 or uint64 if it has neither point nor exponent, else as a float64. It refuses integers
// beyond 64 bits and floats beyond float64.
func number(s string) (any, *Error) {
	if strings.ContainsAny(s, ".eE") {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return nil, Errorf(BadFrame, "number %.40s is too large", s)
		}
		return f, nil
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, nil
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return nil, Errorf(BadFrame, "integer %.40s, want 64 bits", s)
	}
	return n, nil
}

func (d *jsonDecoder) list(depth int) (any, *Error) {
	out := []any{}
	for d.d.More() {
		v, e := d.value(depth + 1)
		if e != nil {
			return nil, e
		}
		out = append(out, v)
	}
	_, err := d.d.Token()
	return out, fault(err)
}

func (d *jsonDecoder) mapping(depth int) (any, *Error) {
	out := Map{}
	var all keys
	for d.d.More() {
		k, err := d.d.Token()
		if err != nil {
			return nil, ended(err)
		}
		key, ok := k.(string)
		if !ok || len(key) > d.lim.String {
			return nil, Errorf(BadFrame, "a key that is no string, or too long")
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
	_, err := d.d.Token()
	return out, fault(err)
}
