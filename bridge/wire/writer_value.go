package wire

import (
	"fmt"
	"slices"
)

// Value writes any decoded value, and also int, int32, uint32, float32, map[string]any (sorted by key), []string, []int,
// []int64, []float64 (as lists), Space and *Space.
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
	case []int64:
		w.List(len(v))
		for _, x := range v {
			w.Int(x)
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
	case Space:
		v.write(w)
	case *Space:
		v.write(w)
	default:
		panic(fmt.Sprintf("wire: a value of type %T", v))
	}
}
