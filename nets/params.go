package nets

import "errors"

// ErrShape is returned when two sets of parameters differ in names, order or shapes.
var ErrShape = errors.New("nets: shape mismatch")

// View is one named parameter: a row-major slice of Params.Data.
type View struct {
	Name  string
	Shape []int
	Data  []float32
}

// Params is one flat buffer with named views, so that target copies, averages and all-reduces are one loop.
// The views cover Data without gaps, in order.
type Params struct {
	Data  []float32
	Views []View
}
