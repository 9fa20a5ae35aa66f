package wire

import "github.com/vmihailenco/msgpack/v5/msgpcode"

// The entries of an array in msgpack-numpy's form, as bits of a set.
const (
	hasND = 1 << iota
	hasType
	hasKind
	hasShape
	hasData
)

// numpy reads the n entries of an array in msgpack-numpy's form, a map whose keys are bytes. A numpy scalar has nd
// false and no kind and shape; it becomes an array without dimensions.
func (d *Decoder) numpy(n int) (any, *Error) {
	var (
		a    Array
		nd   bool
		seen int
	)
	for range n {
		d.owed -= 2
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
		key, e := d.take(k)
		if e != nil {
			return nil, e
		}
		var bit int
		var ok bool // the key is one of an array's, and its value has the right type
		switch string(key) {
		case "nd":
			bit = hasND
			nd, ok, e = read[bool](d)
		case "type":
			bit = hasType
			var name string
			if name, ok, e = read[string](d); ok {
				if a.DType, ok = numpyType(name); !ok {
					return nil, Errorf(BadFrame, "an array of numpy's type %.40q, want little-endian numbers or booleans", name)
				}
			}
		case "kind":
			bit = hasKind
			var kind []byte
			kind, ok, e = read[[]byte](d)
			ok = ok && len(kind) == 0
		case "shape":
			bit = hasShape
			var list []any
			if list, ok, e = read[[]any](d); ok {
				a.Shape, ok = shapeOf(list)
			}
		case "data":
			bit = hasData
			a.Data, ok, e = read[[]byte](d)
		}
		if e != nil {
			return nil, e
		}
		if !ok || seen&bit != 0 {
			return nil, Errorf(BadFrame, "an array of msgpack-numpy with a bad or second entry %.40q", key)
		}
		seen |= bit
	}
	if seen&hasND == 0 || seen&hasType == 0 || seen&hasData == 0 || nd != (seen&hasShape != 0) {
		return nil, Errorf(BadFrame, "an array of msgpack-numpy that lacks nd, type, shape or data")
	}
	if a.Shape == nil {
		a.Shape = []int{}
	}
	return a, a.check()
}

// read returns the next value if it is a T. In an array only the shape is nested.
func read[T any](d *Decoder) (v T, ok bool, e *Error) {
	x, e := d.value(d.lim.Depth)
	if e != nil {
		return v, false, e
	}
	v, ok = x.(T)
	return v, ok, nil
}

func shapeOf(list []any) ([]int, bool) {
	if len(list) > maxDims {
		return nil, false
	}
	shape := make([]int, len(list))
	for i, x := range list {
		k, ok := x.(int64)
		if !ok || k < 0 || k >= 1<<32 {
			return nil, false
		}
		shape[i] = int(k)
	}
	return shape, true
}

// numpyType returns the type of a type string of numpy's array protocol.
func numpyType(s string) (DType, bool) {
	return dtypeWhere(func(d DType) bool { return dtypes[d].numpy == s })
}
