package tape

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"clustergym/nets/kernel"
)

// foreign runs one of Gorgonia's own operations on the program's memory. It allocates, as Gorgonia does, so losses on
// the hot path are built from nets/op.
type foreign[T kernel.Float] struct {
	op      gorgonia.Op
	name    string
	in      []gorgonia.Value
	scalars []int // inputs that are scalars, whose values must be set before each run
	mem     [][]T
	out     []T
}

func newForeign[T kernel.Float](n *gorgonia.Node, children []*gorgonia.Node, in [][]T, out []T) (*foreign[T], error) {
	f := &foreign[T]{op: n.Op(), name: n.Op().String(), in: make([]gorgonia.Value, len(in)), mem: in, out: out}
	for i, c := range children {
		if c.IsScalar() {
			f.scalars = append(f.scalars, i)
			switch any(in[i]).(type) {
			case []float32:
				f.in[i] = gorgonia.NewF32(0)
			default:
				f.in[i] = gorgonia.NewF64(0)
			}
			continue
		}
		f.in[i] = tensor.New(tensor.WithShape(c.Shape()...), tensor.WithBacking(in[i]))
	}
	return f, nil
}

func (f *foreign[T]) run() error {
	for _, i := range f.scalars {
		switch v := f.in[i].(type) {
		case *gorgonia.F32:
			*v = gorgonia.F32(f.mem[i][0])
		case *gorgonia.F64:
			*v = gorgonia.F64(f.mem[i][0])
		}
	}
	v, err := f.op.Do(f.in...)
	if err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	return fill(f.out, v)
}

// fill copies a Gorgonia value into out. It first brings a transposed or sliced tensor into row-major order.
func fill[T kernel.Float](out []T, v gorgonia.Value) error {
	if d, ok := v.(*tensor.Dense); ok &&
		(d.RequiresIterator() || !d.DataOrder().IsContiguous() || d.DataOrder().IsColMajor()) {
		m := d.Clone().(*tensor.Dense)
		if c, ok := d.Materialize().(*tensor.Dense); ok {
			m = c
		}
		v = m
	}
	switch d := v.Data().(type) {
	case []T:
		if len(d) != len(out) {
			return fmt.Errorf("%d elements, want %d", len(d), len(out))
		}
		copy(out, d)
		return nil
	case T:
		if len(out) == 1 {
			out[0] = d
			return nil
		}
	}
	return fmt.Errorf("a %T for %d elements", v.Data(), len(out))
}
