package compare

import (
	"fmt"
	"math"
	"slices"

	"clustergym/bridge/wire"
)

// Alike compares two values of different encodings by their meaning. path names them in the error.
func Alike(path string, x, y any) error {
	mx, isMap := x.(wire.Map)
	my, isMap2 := y.(wire.Map)
	if isMap != isMap2 {
		return fmt.Errorf("%s is %s, and %s", path, Brief(x), Brief(y))
	}
	if isMap {
		if len(mx) != len(my) {
			return fmt.Errorf("%s has %d entries, and %d", path, len(mx), len(my))
		}
		for i := range mx {
			if mx[i].Key != my[i].Key {
				return fmt.Errorf("%s has %q, and %q", path, mx[i].Key, my[i].Key)
			}
			if err := Alike(path+"."+mx[i].Key, mx[i].Value, my[i].Value); err != nil {
				return err
			}
		}
		return nil
	}
	lx, isList := x.([]any)
	ly, isList2 := y.([]any)
	if isList && isList2 && len(lx) == len(ly) {
		for i := range lx {
			if err := Alike(fmt.Sprintf("%s[%d]", path, i), lx[i], ly[i]); err != nil {
				return err
			}
		}
		return nil
	}
	_, isArray := x.(wire.Array)
	_, isArray2 := y.(wire.Array)
	if isArray || isArray2 {
		a, err := Read(x)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		b, err := Read(y)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		// An empty list in JSON has no further dimensions.
		if len(a.V) != len(b.V) || len(a.V) > 0 && !slices.Equal(a.Shape, b.Shape) {
			return fmt.Errorf("%s has shape %v, and %v", path, a.Shape, b.Shape)
		}
		for i := range a.V {
			// JSON has a float32 with only as many digits as distinguish it from its neighbours.
			if a.V[i] != b.V[i] && float32(a.V[i]) != float32(b.V[i]) && !(math.IsNaN(a.V[i]) && math.IsNaN(b.V[i])) {
				return fmt.Errorf("%s is %v at %d, and %v", path, a.V[i], i, b.V[i])
			}
		}
		return nil
	}
	fx, ok := Number(x)
	fy, ok2 := Number(y)
	switch {
	case ok && ok2 && fx == fy, ok && math.IsInf(fx, 0) && y == nil, ok2 && math.IsInf(fy, 0) && x == nil:
		return nil
	case ok != ok2:
		return fmt.Errorf("%s is %s, and %s", path, Brief(x), Brief(y))
	}
	return SameValue(path, x, y)
}

// Clean returns an error if v has a NaN or an infinity.
func Clean(path string, v any) error {
	switch v := v.(type) {
	case wire.Map:
		for _, p := range v {
			if err := Clean(path+"."+p.Key, p.Value); err != nil {
				return err
			}
		}
	case wire.Array, float64:
		c := Column{}
		if f, ok := v.(float64); ok {
			c.V = []float64{f}
		} else {
			c, _ = Read(v)
		}
		for _, x := range c.V {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return fmt.Errorf("%s is %v", path, x)
			}
		}
	}
	return nil
}
