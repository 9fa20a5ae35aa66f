package run

import "slices"

// walk runs over the elements of a tensor in order, and over up to three others beside it: along each of its dimensions
// they advance by strides of their own. The last dimension is left to the caller.
type walk struct {
	dims   []int // all but the last
	steps  [][4]int
	length int    // of the last dimension
	stride [4]int // along it
	index  []int
	at     [4]int // in each, a field so that passing it on allocates nothing
}

// stridesOf returns the strides of a tensor of that shape.
func stridesOf(shape []int) []int {
	s := make([]int, len(shape))
	n := 1
	for i := len(shape) - 1; i >= 0; i-- {
		s[i] = n
		n *= shape[i]
	}
	return s
}

// newWalk returns a walk over shape; strides are those of each tensor along its dimensions.
func newWalk(shape []int, strides ...[]int) *walk {
	var dims []int
	var steps [][4]int
	for i, d := range shape {
		if d == 1 {
			continue
		}
		var s [4]int
		for k := range strides {
			s[k] = strides[k][i]
		}
		if n := len(dims); n > 0 && joins(steps[n-1], s, d) {
			dims[n-1] *= d
			steps[n-1] = s
			continue
		}
		dims, steps = append(dims, d), append(steps, s)
	}
	w := &walk{length: 1}
	if n := len(dims); n > 0 {
		w.length, w.stride = dims[n-1], steps[n-1]
		dims, steps = dims[:n-1], steps[:n-1]
	}
	w.dims, w.steps, w.index = dims, steps, make([]int, len(dims))
	return w
}

// joins reports whether a dimension of length d with strides inner continues the one before it.
func joins(outer, inner [4]int, d int) bool {
	for k := range outer {
		if outer[k] != inner[k]*d {
			return false
		}
	}
	return true
}

// each calls run with the offsets at which the last dimension begins.
func (w *walk) each(run func(at *[4]int)) {
	if w.length == 0 || slices.Contains(w.dims, 0) {
		return
	}
	at := &w.at
	*at = [4]int{}
	clear(w.index)
	for {
		run(at)
		d := len(w.dims) - 1
		for ; d >= 0; d-- {
			w.index[d]++
			for k := range at {
				at[k] += w.steps[d][k]
			}
			if w.index[d] < w.dims[d] {
				break
			}
			for k := range at {
				at[k] -= w.steps[d][k] * w.dims[d]
			}
			w.index[d] = 0
		}
		if d < 0 {
			return
		}
	}
}

// broadcast returns the shape to which tensors of these shapes are stretched; ok is false if they do not fit.
func broadcast(shapes ...[]int) (out []int, ok bool) {
	rank := 0
	for _, s := range shapes {
		rank = max(rank, len(s))
	}
	out = make([]int, rank)
	for i := range out {
		out[i] = 1
	}
	for _, s := range shapes {
		for i, d := range s {
			o := &out[rank-len(s)+i]
			switch {
			case *o == 1:
				*o = d
			case d != 1 && d != *o:
				return nil, false
			}
		}
	}
	return out, true
}

// stretched returns the strides of a tensor of that shape stretched to out: 0 along dimensions in which it has one
// element.
func stretched(shape, out []int) []int {
	s, own := make([]int, len(out)), stridesOf(shape)
	for i, d := range shape {
		if d != 1 {
			s[len(out)-len(shape)+i] = own[i]
		}
	}
	return s
}
