package compare

import (
	"fmt"
	"slices"

	"clustergym/bridge/wire"
)

// Same compares two replies of one encoding bit for bit, except for what depends on the request.
func Same(x, y wire.Map) error { return SameBut(x, y, "re", "op", "ids") }

// SameBut is Same except for the given keys.
func SameBut(x, y wire.Map, but ...string) error {
	strip := func(m wire.Map) wire.Map {
		return slices.DeleteFunc(slices.Clone(m), func(p wire.Pair) bool { return slices.Contains(but, p.Key) })
	}
	return SameValue("", strip(x), strip(y))
}

// SameValue compares two values of one encoding. path names them in the error.
func SameValue(path string, x, y any) error {
	a, b := wire.NewWriter(wire.Ext), wire.NewWriter(wire.Ext)
	a.Value(x)
	b.Value(y)
	if slices.Equal(a.Bytes(), b.Bytes()) {
		return nil
	}
	mx, ok := x.(wire.Map)
	my, ok2 := y.(wire.Map)
	if !ok || !ok2 {
		return fmt.Errorf("%s is %s, want %s", path, Brief(x), Brief(y))
	}
	for _, p := range mx {
		if !my.Has(p.Key) {
			return fmt.Errorf("%s.%s was not there", path, p.Key)
		}
		if err := SameValue(path+"."+p.Key, p.Value, my.Get(p.Key)); err != nil {
			return err
		}
	}
	for _, p := range my {
		if !mx.Has(p.Key) {
			return fmt.Errorf("%s.%s is missing", path, p.Key)
		}
	}
	return fmt.Errorf("%s has its keys in another order", path)
}

// Row returns row i of the entries of a reply that have rows: obs, r, te, tr, info.
func Row(reply wire.Map, i, rows int) (wire.Map, error) {
	out := wire.Map{}
	for _, p := range reply {
		switch p.Key {
		case "obs", "r", "te", "tr", "info":
			v, err := cut(p.Value, i, rows)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", p.Key, err)
			}
			out = append(out, wire.Pair{Key: p.Key, Value: v})
		}
	}
	return out, nil
}

// cut returns row i of an array, or of every array in a map. An info that row i does not have is left out.
func cut(v any, i, rows int) (any, error) {
	switch v := v.(type) {
	case wire.Map:
		out := wire.Map{}
		for _, p := range v {
			if here, ok := v.Get("_" + p.Key).(wire.Array); ok && here.Data[i] == 0 {
				continue
			}
			if len(p.Key) > 0 && p.Key[0] == '_' {
				continue
			}
			x, err := cut(p.Value, i, rows)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", p.Key, err)
			}
			out = append(out, wire.Pair{Key: p.Key, Value: x})
		}
		return out, nil
	case wire.Array:
		if len(v.Shape) == 0 || v.Shape[0] != rows {
			return nil, fmt.Errorf("shape %v, want %d rows", v.Shape, rows)
		}
		n := len(v.Data) / rows
		return wire.Array{DType: v.DType, Shape: v.Shape[1:], Data: v.Data[i*n : (i+1)*n]}, nil
	}
	return nil, fmt.Errorf("%s is no array", Brief(v))
}
