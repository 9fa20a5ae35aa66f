package compare

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"clustergym/bridge/wire"
)

// Column is an array of a reply in any encoding. JSON has no types, and null for NaN.
type Column struct {
	Shape []int
	V     []float64  // the elements in C order
	DType wire.DType // 0 = unknown, in JSON
}

// Row returns row i of a column of two dimensions, as a column of one row.
func (c Column) Row(i int) Column {
	w := c.Shape[1]
	return Column{Shape: []int{1, w}, V: c.V[i*w : (i+1)*w], DType: c.DType}
}

// Read reads an array of a reply: a wire.Array, or nested lists.
func Read(v any) (Column, error) {
	switch v := v.(type) {
	case wire.Array:
		c := Column{Shape: v.Shape, DType: v.DType, V: make([]float64, v.Len())}
		for i := range c.V {
			c.V[i] = v.Float(i)
		}
		return c, nil
	case []any:
		c := Column{}
		err := c.nested(v, 0)
		n := 1
		for _, d := range c.Shape {
			n *= d
		}
		if err == nil && n != len(c.V) {
			err = errors.New("nested lists of unequal length")
		}
		return c, err
	}
	return Column{}, fmt.Errorf("%s is no array", Brief(v))
}

func (c *Column) nested(v []any, depth int) error {
	if depth == len(c.Shape) && len(c.V) == 0 {
		c.Shape = append(c.Shape, len(v))
	} else if depth == len(c.Shape) || c.Shape[depth] != len(v) {
		return errors.New("nested lists of unequal length")
	}
	for _, x := range v {
		if _, list := x.([]any); !list && depth+1 != len(c.Shape) {
			return errors.New("numbers beside lists in an array")
		}
		switch x := x.(type) {
		case []any:
			if err := c.nested(x, depth+1); err != nil {
				return err
			}
		case nil:
			c.V = append(c.V, math.NaN())
		case bool:
			b := 0.0
			if x {
				b = 1
			}
			c.V = append(c.V, b)
		default:
			f, ok := Number(x)
			if !ok {
				return fmt.Errorf("%s in an array", Brief(x))
			}
			c.V = append(c.V, f)
		}
	}
	return nil
}

// At reads the array at key, which must have the given number of rows and, if the encoding has types, type d.
func At(m wire.Map, key string, d wire.DType, rows int) (Column, error) {
	c, err := Read(m.Get(key))
	if err != nil {
		return c, fmt.Errorf("%s: %w", key, err)
	}
	if c.DType != 0 && c.DType != d {
		return c, fmt.Errorf("%s is of type %v, want %v", key, c.DType, d)
	}
	if len(c.Shape) == 0 || c.Shape[0] != rows {
		return c, fmt.Errorf("%s has shape %v, want %d rows", key, c.Shape, rows)
	}
	return c, nil
}

// Array returns an array of whole numbers.
func Array(d wire.DType, v []int, shape ...int) wire.Array {
	var data []byte
	for _, x := range v {
		switch d {
		case wire.F32:
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(x)))
		case wire.F64:
			data = binary.LittleEndian.AppendUint64(data, math.Float64bits(float64(x)))
		default:
			data = append(data, binary.LittleEndian.AppendUint64(nil, uint64(int64(x)))[:d.Size()]...)
		}
	}
	return wire.Array{DType: d, Shape: shape, Data: data}
}

// Number returns v as a float64, and whether it is a number.
func Number(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// Brief returns v as text of limited length.
func Brief(v any) string {
	s := fmt.Sprint(v)
	if len(s) > 120 {
		s = s[:120] + "…"
	}
	return s
}
