package wire

import "clustergym/env"

// Space is a space of observations or actions. Kind decides which fields matter.
type Space struct {
	Kind  string    // box, discrete, mdiscrete, mbinary, dict, tuple, text, graph or seq
	Shape []int     // box, mbinary
	DType DType     // box, discrete, mdiscrete
	Low   []float64 // box: one bound for all elements, or one for each
	High  []float64
	N     int64 // discrete
	Start int64
	NVec  []int64  // mdiscrete
	First []int64  // mdiscrete: where each starts, nil = 0
	Names []string // dict: the names of Items, in order
	Items []Space  // dict, tuple; graph: node, and edge if edges have features; seq: one
	Min   int      // text
	Max   int
	Chars string
}

// The views of an observation: a one-level dict of the fields of the spec, or one vector of all of them.
const (
	ViewDict = "dict"
	ViewFlat = "flat"
)

// MaskKey is the key of masks in observations and in info.
const MaskKey = "action_mask"

// ObsSpace returns the space of s's observations in the view dict or flat. With mask, a dict also has the mask.
func ObsSpace(s env.Spec, view string, mask bool) *Space {
	if view == ViewFlat {
		low, high := make([]float64, 0, s.ObsLen()), make([]float64, 0, s.ObsLen())
		for _, f := range s.Obs {
			for range f.Len() {
				low, high = append(low, float64(f.Low)), append(high, float64(f.High))
			}
		}
		return &Space{Kind: "box", Shape: []int{s.ObsLen()}, DType: F32, Low: shorten(low), High: shorten(high)}
	}
	d := &Space{Kind: "dict"}
	placed := !mask || s.MaskLen() == 0
	for _, f := range s.Obs {
		if !placed && f.Name > MaskKey {
			d.addMask(s)
			placed = true
		}
		shape := f.Shape
		if len(shape) == 0 {
			shape = []int{1}
		}
		d.Names = append(d.Names, f.Name)
		d.Items = append(d.Items,
			Space{Kind: "box", Shape: shape, DType: F32, Low: []float64{float64(f.Low)}, High: []float64{float64(f.High)}})
	}
	if !placed {
		d.addMask(s)
	}
	return d
}

func (d *Space) addMask(s env.Spec) {
	d.Names = append(d.Names, MaskKey)
	d.Items = append(d.Items,
		Space{Kind: "box", Shape: []int{s.MaskLen()}, DType: U8, Low: []float64{0}, High: []float64{1}})
}

// shorten returns v as one number if all its numbers are equal.
func shorten(v []float64) []float64 {
	if len(v) == 0 {
		return []float64{0} // a bound for no elements
	}
	for _, x := range v[1:] {
		if x != v[0] {
			return v
		}
	}
	return v[:1]
}

// ActionSpace returns the space of s's actions.
func ActionSpace(s env.Spec) *Space {
	var disc, cont *Space
	switch a := s.Action; {
	case len(a.Sizes) == 1:
		disc = &Space{Kind: "discrete", N: int64(a.Sizes[0]), DType: I64}
	case len(a.Sizes) > 1:
		disc = &Space{Kind: "mdiscrete", DType: I64}
		for _, n := range a.Sizes {
			disc.NVec = append(disc.NVec, int64(n))
		}
	}
	if n := len(s.Action.Low); n > 0 {
		low, high := make([]float64, n), make([]float64, n)
		for i := range low {
			low[i], high[i] = float64(s.Action.Low[i]), float64(s.Action.High[i])
		}
		cont = &Space{Kind: "box", Shape: []int{n}, DType: F32, Low: shorten(low), High: shorten(high)}
	}
	switch {
	case cont == nil:
		return disc
	case disc == nil:
		return cont
	}
	return &Space{Kind: "dict", Names: []string{"cont", "disc"}, Items: []Space{*cont, *disc}}
}
