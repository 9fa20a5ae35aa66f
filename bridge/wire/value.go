package wire

import (
	"encoding/base64"
	"math"
)

// Map is a decoded map. Its keys are distinct strings, in the order of the frame. Values are nil, bool, int64,
// uint64 (only above the largest int64), float64, string, []byte, Array, []any or Map. Strings are copies; byte
// slices and arrays are views of the frame.
type Map []Pair

// Pair is one entry of a Map.
type Pair struct {
	Key   string
	Value any
}

// MapOf makes a map of alternating keys and values.
func MapOf(kv ...any) Map {
	m := make(Map, 0, len(kv)/2)
	for i := 0; i < len(kv); i += 2 {
		m.Add(kv[i].(string), kv[i+1])
	}
	return m
}

// Add appends an entry, whose key must be new.
func (m *Map) Add(key string, v any) { *m = append(*m, Pair{key, v}) }

// Get returns the value at key, nil if there is none.
func (m Map) Get(key string) any {
	for i := range m {
		if m[i].Key == key {
			return m[i].Value
		}
	}
	return nil
}

// Has reports whether there is an entry at key, even one with value nil.
func (m Map) Has(key string) bool {
	for i := range m {
		if m[i].Key == key {
			return true
		}
	}
	return false
}

// describe returns the name of a value's type for messages.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "nothing"
	case bool:
		return "a boolean"
	case int64, uint64:
		return "an integer"
	case float64:
		return "a number"
	case string:
		return "a string"
	case []byte:
		return "bytes"
	case Array:
		return "an array of " + v.DType.String()
	case []any:
		return "a list"
	case Map:
		return "a map"
	}
	return "something else"
}

// wrong returns the error for a field of a wrong type.
func wrong(key string, got any, want string) *Error {
	return &Error{Code: BadRequest, Msg: "field " + key, Got: describe(got), Want: want}
}

// typed returns the T at key, def if the value is nil or missing.
func typed[T any](m Map, key string, def T, want string) (v T, e *Error) {
	switch x := m.Get(key).(type) {
	case nil:
		return def, nil
	case T:
		return x, nil
	default:
		return v, wrong(key, x, want)
	}
}

// Str returns the string at key, def if the value is nil or missing.
func (m Map) Str(key, def string) (string, *Error) { return typed(m, key, def, "a string") }

// Bool returns the boolean at key, def if the value is nil or missing.
func (m Map) Bool(key string, def bool) (bool, *Error) { return typed(m, key, def, "true or false") }

// Int returns the whole number at key, which must be from lo to hi, or def if the value is nil or missing.
func (m Map) Int(key string, def, lo, hi int64) (int64, *Error) {
	v := m.Get(key)
	if v == nil {
		return def, nil
	}
	n, ok := Whole(v)
	if !ok || n < lo || n > hi {
		e := wrong(key, v, "a whole number from "+decimal(lo)+" to "+decimal(hi))
		if ok {
			e.Got = decimal(n)
		}
		return 0, e
	}
	return n, nil
}

// Whole returns v as an int64 if it is a whole number. A float64 may be one, since some JSON writers turn 3 into 3.0.
func Whole(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v), true
		}
	}
	return 0, false
}

// Bytes returns the blob at key, which is base64 in JSON, or nil if the value is nil or missing.
func (m Map) Bytes(key string) ([]byte, *Error) {
	switch v := m.Get(key).(type) {
	case nil:
		return nil, nil
	case []byte:
		return v, nil
	case string:
		b, err := base64.StdEncoding.DecodeString(v)
		if err != nil {
			return nil, wrong(key, v, "bytes, or a string in base64")
		}
		return b, nil
	default:
		return nil, wrong(key, v, "bytes")
	}
}

// Ints returns the whole numbers at key, a list or a one-dimensional array of integers, or nil if the value is nil or
// missing.
func (m Map) Ints(key string) ([]int64, *Error) {
	v := m.Get(key)
	switch v := v.(type) {
	case nil:
		return nil, nil
	case []any:
		out := make([]int64, len(v))
		for i, x := range v {
			n, ok := Whole(x)
			if !ok {
				return nil, wrong(key, x, "whole numbers")
			}
			out[i] = n
		}
		return out, nil
	case Array:
		if len(v.Shape) != 1 {
			break
		}
		out := make([]int64, v.Len())
		for i := range out {
			n, ok := v.Int(i)
			if !ok || v.DType == Bool {
				return nil, wrong(key, v, "whole numbers")
			}
			out[i] = n
		}
		return out, nil
	}
	return nil, wrong(key, v, "a list of whole numbers")
}

// Strs returns the strings of the list at key, def if the value is nil or missing.
func (m Map) Strs(key string, def []string) ([]string, *Error) {
	v := m.Get(key)
	if v == nil {
		return def, nil
	}
	list, ok := v.([]any)
	if !ok {
		return nil, wrong(key, v, "a list of strings")
	}
	out := make([]string, len(list))
	for i, x := range list {
		if out[i], ok = x.(string); !ok {
			return nil, wrong(key, x, "a list of strings")
		}
	}
	return out, nil
}

// Sub returns the map at key, nil if the value is nil or missing.
func (m Map) Sub(key string) (Map, *Error) { return typed[Map](m, key, nil, "a map") }
