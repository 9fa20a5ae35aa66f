package wire

import (
	"math"

	"clustergym/env"
)

// Space is a space of observations or actions. Kind decides which fields count.
type Space struct {
	Kind  string    // box, discrete, mdiscrete, mbinary, dict, tuple, text, graph or seq
	Shape []int     // box, mbinary
	DType DType     // box, discrete, mdiscrete
	Low   []float64 // box: one bound for all elements, or one for each
	High  []float64
	N     int64 // discrete
	Start int64
	NVec  []int64  // mdiscrete
	Names []string // dict: the names of Items, in order
	Items []Space  // dict, tuple; graph: node and edge; seq: one
	Min   int      // text
	Max   int
	Chars string
}

// The views of an observation: a one-level dict of the spec's fields, one vector, a graph.
const (
	ViewDict  = "dict"
	ViewFlat  = "flat"
	ViewGraph = "graph"
)

// MaskKey is the name under which masks stand in observations and in info.
const MaskKey = "action_mask"

// ObsSpace is the space of s's observations in the view dict or flat, with the mask beside the fields of a dict where
// mask is set.
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
		d.Items = append(d.Items, Space{Kind: "box", Shape: shape, DType: F32, Low: []float64{float64(f.Low)}, High: []float64{float64(f.High)}})
	}
	if !placed {
		d.addMask(s)
	}
	return d
}

func (d *Space) addMask(s env.Spec) {
	d.Names = append(d.Names, MaskKey)
	d.Items = append(d.Items, Space{Kind: "box", Shape: []int{s.MaskLen()}, DType: U8, Low: []float64{0}, High: []float64{1}})
}

// shorten is v as one number where all are the same.
func shorten(v []float64) []float64 {
	for _, x := range v[1:] {
		if x != v[0] {
			return v
		}
	}
	return v[:1]
}

// ActionSpace is the space of s's actions.
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

func (s *Space) write(w *Writer) {
	head := func(n int) {
		w.Map(n + 1)
		w.Key("t")
		w.Str(s.Kind)
	}
	ints := func(key string, v []int64) {
		w.Key(key)
		w.List(len(v))
		for _, x := range v {
			w.Int(x)
		}
	}
	shape := func() {
		w.Key("shape")
		w.Value(s.Shape)
	}
	dtype := func() {
		w.Key("dtype")
		w.Str(s.DType.String())
	}
	bound := func(key string, v []float64) {
		w.Key(key)
		if len(v) == 1 {
			w.Float(v[0])
			return
		}
		w.F64(v, s.Shape...)
	}
	switch s.Kind {
	case "box":
		head(4)
		shape()
		dtype()
		bound("low", s.Low)
		bound("high", s.High)
	case "discrete":
		head(3)
		w.Key("n")
		w.Int(s.N)
		w.Key("start")
		w.Int(s.Start)
		dtype()
	case "mdiscrete":
		head(2)
		ints("nvec", s.NVec)
		dtype()
	case "mbinary":
		head(1)
		shape()
	case "dict":
		head(1)
		w.Key("k")
		w.List(len(s.Items))
		for i := range s.Items {
			w.List(2)
			w.Str(s.Names[i])
			s.Items[i].write(w)
		}
	case "tuple":
		head(1)
		w.Key("s")
		w.List(len(s.Items))
		for i := range s.Items {
			s.Items[i].write(w)
		}
	case "text":
		head(3)
		w.Key("min")
		w.Int(int64(s.Min))
		w.Key("max")
		w.Int(int64(s.Max))
		w.Key("chars")
		w.Str(s.Chars)
	case "graph":
		head(2)
		w.Key("node")
		s.Items[0].write(w)
		w.Key("edge")
		s.Items[1].write(w)
	case "seq":
		head(1)
		w.Key("s")
		s.Items[0].write(w)
	default:
		panic("wire: a space of kind " + s.Kind)
	}
}

// ParseSpace reads a space. What it refuses is an *Error of code BadRequest.
func ParseSpace(v any) (*Space, *Error) { return parseSpace(v, 0) }

func parseSpace(v any, depth int) (*Space, *Error) {
	m, ok := v.(Map)
	if !ok {
		return nil, wrong("space", v, "a map")
	}
	if depth > 8 {
		return nil, Errorf(BadRequest, "a space nested deeper than 8 levels")
	}
	kind, e := m.Str("t", "")
	if e != nil {
		return nil, e
	}
	s := &Space{Kind: kind}
	var first *Error
	note := func(e *Error) {
		if first == nil {
			first = e
		}
	}
	shape := func() {
		list, e := m.Ints("shape")
		note(e)
		for _, d := range list {
			if d < 0 || d >= 1<<32 {
				note(Errorf(BadRequest, "a space of shape %v", list))
				return
			}
			s.Shape = append(s.Shape, int(d))
		}
		if n, ok := elements(s.Shape, 1, math.MaxInt32); !ok || n == 0 {
			note(Errorf(BadRequest, "a space of shape %v", list))
		}
	}
	dtype := func(def string) {
		name, e := m.Str("dtype", def)
		note(e)
		if s.DType, ok = DTypeNamed(name); !ok {
			note(Errorf(BadRequest, "a space of type %.40q", name))
		}
	}
	inner := func(v any) {
		x, e := parseSpace(v, depth+1)
		note(e)
		if x != nil {
			s.Items = append(s.Items, *x)
		}
	}
	switch kind {
	case "box":
		shape()
		dtype("float32")
		if first == nil {
			s.Low, e = bounds(m, "low", s.Shape, math.Inf(-1))
			note(e)
			s.High, e = bounds(m, "high", s.Shape, math.Inf(1))
			note(e)
		}
	case "discrete":
		dtype("int64")
		s.N, e = m.Int("n", 0, 1, math.MaxInt64)
		note(e)
		s.Start, e = m.Int("start", 0, math.MinInt64, math.MaxInt64)
		note(e)
	case "mdiscrete":
		dtype("int64")
		s.NVec, e = m.Ints("nvec")
		note(e)
	case "mbinary":
		shape()
	case "dict":
		list, _ := m.Get("k").([]any)
		for _, p := range list {
			pair, _ := p.([]any)
			if len(pair) != 2 {
				return nil, Errorf(BadRequest, "a dict space with an entry that is no pair")
			}
			name, ok := pair[0].(string)
			if !ok {
				return nil, wrong("k", pair[0], "a name")
			}
			s.Names = append(s.Names, name)
			inner(pair[1])
		}
	case "tuple":
		list, _ := m.Get("s").([]any)
		for _, x := range list {
			inner(x)
		}
	case "text":
		n, e := m.Int("min", 0, 0, math.MaxInt32)
		note(e)
		s.Min = int(n)
		n, e = m.Int("max", 0, 0, math.MaxInt32)
		note(e)
		s.Max = int(n)
		s.Chars, e = m.Str("chars", "")
		note(e)
	case "graph":
		inner(m.Get("node"))
		inner(m.Get("edge"))
	case "seq":
		inner(m.Get("s"))
	default:
		return nil, Errorf(BadRequest, "a space of kind %.40q", kind)
	}
	if first != nil {
		return nil, first
	}
	return s, nil
}

// bounds reads the bounds of a box: one number, an array or nested lists of its shape, or nothing where JSON had an
// infinity.
func bounds(m Map, key string, shape []int, infinite float64) ([]float64, *Error) {
	n, _ := elements(shape, 1, math.MaxInt32)
	switch v := m.Get(key).(type) {
	case nil:
		return []float64{infinite}, nil
	case float64:
		return []float64{v}, nil
	case int64:
		return []float64{float64(v)}, nil
	case Array:
		if v.Len() != n {
			return nil, wrong(key, v, "one bound, or one for each element")
		}
		out := make([]float64, n)
		for i := range out {
			out[i] = v.Float(i)
		}
		return out, nil
	case []any:
		out := flatten(nil, v, infinite)
		if len(out) != n {
			return nil, wrong(key, v, "one bound, or one for each element")
		}
		return out, nil
	default:
		return nil, wrong(key, v, "one bound, or one for each element")
	}
}

// flatten appends the numbers of nested lists; anything else makes the result too short.
func flatten(dst []float64, v any, infinite float64) []float64 {
	switch v := v.(type) {
	case nil:
		return append(dst, infinite)
	case float64:
		return append(dst, v)
	case int64:
		return append(dst, float64(v))
	case []any:
		for _, x := range v {
			dst = flatten(dst, x, infinite)
		}
	}
	return dst
}
