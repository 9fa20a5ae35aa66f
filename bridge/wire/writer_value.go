package wire

import (
	"fmt"
	"maps"
	"slices"
)

// Value writes any decoded value, and also int, int32, uint32, float32, map[string]any (sorted by key), []string,
// []int, []int64, []float64 (as lists), Space and *Space.
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
		list(w, v, w.Value)
	case []string:
		list(w, v, w.Str)
	case []int:
		list(w, v, func(x int) { w.Int(int64(x)) })
	case []int64:
		list(w, v, w.Int)
	case []float64:
		list(w, v, w.Float)
	case Map:
		w.Map(len(v))
		w.Entries(v)
	case map[string]any:
		w.Map(len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			w.Key(k)
			w.Value(v[k])
		}
	case Space:
		w.Value(v.entries())
	case *Space:
		w.Value(v.entries())
	default:
		panic(fmt.Sprintf("wire: a value of type %T", v))
	}
}

func list[T any](w *Writer, v []T, each func(T)) {
	w.List(len(v))
	for _, x := range v {
		each(x)
	}
}

// Entries writes the entries of m into the innermost open map, which has been announced with them.
func (w *Writer) Entries(m Map) {
	for _, p := range m {
		w.Key(p.Key)
		w.Value(p.Value)
	}
}

// Answer writes the reply to request re, with the entries of m besides "re" and "op". It allocates: replies to steps
// are
// written field by field.
func (w *Writer) Answer(re uint32, op string, m Map) {
	w.Reply(re, op, len(m))
	w.Entries(m)
}
