package wire

import "math"

// maxSpaceDepth bounds how deeply spaces are nested.
const maxSpaceDepth = 8

// ParseSpace reads a space. Its errors have code BadRequest.
func ParseSpace(v any) (*Space, *Error) {
	s := &Space{}
	if e := s.read(v, 1); e != nil {
		return nil, e
	}
	return s, nil
}

func (s *Space) read(v any, depth int) *Error {
	m, ok := v.(Map)
	if !ok {
		return wrong("space", v, "a map")
	}
	if depth > maxSpaceDepth {
		return Errorf(BadRequest, "a space nested deeper than %d levels", maxSpaceDepth)
	}
	f := &Fields{Map: m}
	var items []any
	switch s.Kind = f.Str("t", ""); s.Kind {
	case "box":
		s.readBox(f)
	case "discrete":
		s.readDiscrete(f)
	case "mdiscrete":
		s.readMultiDiscrete(f)
	case "mbinary":
		s.readShape(f)
	case "dict":
		items = s.readDict(f)
	case "tuple":
		if items, ok = m.Get("s").([]any); !ok {
			return wrong("s", m.Get("s"), "a list of spaces")
		}
	case "text":
		s.Min = int(f.Int("min", 0, 0, math.MaxInt32))
		s.Max = int(f.Int("max", -1, int64(s.Min), math.MaxInt32))
		s.Chars = f.Str("chars", "")
		f.unless(s.Max >= s.Min, "a space text without max")
	case "graph":
		if items = []any{m.Get("node"), m.Get("edge")}; items[1] == nil {
			items = items[:1]
		}
	case "seq":
		items = []any{m.Get("s")}
	default:
		f.unless(false, "a space of kind %.40q", s.Kind)
	}
	if f.Err == nil && items != nil {
		s.Items = make([]Space, len(items))
	}
	for i := range s.Items {
		if e := s.Items[i].read(items[i], depth+1); e != nil {
			return e
		}
	}
	return f.Err
}

// unless keeps an error if ok is false. Only the first is formatted: a message may have many.
func (f *Fields) unless(ok bool, format string, args ...any) {
	if !ok && f.Err == nil {
		f.Fail(Errorf(BadRequest, format, args...))
	}
}

// readShape reads a shape without a dimension of 0.
func (s *Space) readShape(f *Fields) {
	list := f.Ints("shape")
	f.unless(list != nil && len(list) <= maxDims, "a space without a shape, or of more than %d dimensions", maxDims)
	if f.Err != nil {
		return
	}
	s.Shape = make([]int, len(list))
	for i, d := range list {
		f.unless(d >= 1 && d <= math.MaxInt32, "a space of shape %v", list)
		s.Shape[i] = int(d)
	}
	_, ok := elements(s.Shape, maxElements)
	f.unless(ok, "a space of shape %v", list)
}

func (s *Space) readType(f *Fields, def DType, whole bool) {
	name := f.Str("dtype", def.String())
	d, ok := DTypeNamed(name)
	f.unless(ok && !(whole && (d == Bool || d >= F32)), "a space %s of type %.40q", s.Kind, name)
	s.DType = d
}

func (s *Space) readBox(f *Fields) {
	s.readShape(f)
	s.readType(f, F32, false)
	s.Low, s.High = f.bounds("low", s.Shape, math.Inf(-1)), f.bounds("high", s.Shape, math.Inf(1))
	if f.Err != nil {
		return
	}
	for i := range max(len(s.Low), len(s.High)) {
		low, high := s.Low[min(i, len(s.Low)-1)], s.High[min(i, len(s.High)-1)]
		f.unless(low <= high, "a space box from %v to %v", low, high)
	}
}

func (s *Space) readDiscrete(f *Fields) {
	s.readType(f, I64, true)
	s.N = f.Int("n", 0, 1, math.MaxInt64)
	f.unless(s.N != 0, "a space discrete without n")
	s.Start = f.Int("start", 0, math.MinInt64, math.MaxInt64)
	f.unless(s.Start <= math.MaxInt64-s.N, "a space discrete from %d on of %d actions", s.Start, s.N)
}

func (s *Space) readMultiDiscrete(f *Fields) {
	s.readType(f, I64, true)
	s.NVec, s.First = f.Ints("nvec"), f.Ints("start")
	if s.First == nil {
		s.First = make([]int64, len(s.NVec))
	}
	if len(s.NVec) == 0 || len(s.First) != len(s.NVec) {
		f.unless(false, "a space mdiscrete of %d numbers and %d starts", len(s.NVec), len(s.First))
		return
	}
	for i, n := range s.NVec {
		f.unless(n >= 1 && s.First[i] <= math.MaxInt64-n, "a space mdiscrete of %v", s.NVec)
	}
}

// readDict reads the names of a dict, and returns what should be its spaces.
func (s *Space) readDict(f *Fields) []any {
	list, ok := f.Get("k").([]any)
	if !ok {
		f.Fail(wrong("k", f.Get("k"), "a list of names and spaces"))
	}
	items := make([]any, len(list))
	seen := make(map[string]struct{}, len(list))
	for i, p := range list {
		pair, _ := p.([]any)
		if len(pair) != 2 {
			f.Fail(wrong("k", p, "a list of names and spaces, each pair a list"))
			return nil
		}
		name, ok := pair[0].(string)
		if !ok {
			f.Fail(wrong("k", pair[0], "a name"))
			return nil
		}
		_, twice := seen[name]
		f.unless(!twice, "name %.40q stands twice in a dict space", name)
		seen[name] = struct{}{}
		s.Names = append(s.Names, name)
		items[i] = pair[1]
	}
	return items
}

// bounds reads the bounds of a box: one number, an array or nested lists of its shape, or nil, which is an infinity in
// JSON.
func (f *Fields) bounds(key string, shape []int, infinite float64) []float64 {
	n, _ := elements(shape, maxElements)
	var out []float64
	switch v := f.Get(key).(type) {
	case nil:
		return []float64{infinite}
	case float64:
		out, n = []float64{v}, 1
	case int64:
		out, n = []float64{float64(v)}, 1
	case uint64:
		out, n = []float64{float64(v)}, 1
	case Array:
		if v.Len() == n {
			out = make([]float64, n)
			for i := range out {
				out[i] = v.Float(i)
			}
		}
	case []any:
		out = flatten(nil, v, infinite)
	}
	if len(out) != n {
		f.Fail(wrong(key, f.Get(key), "one bound, or one for each element"))
	}
	for _, x := range out {
		f.unless(!math.IsNaN(x) && x != -infinite, "field %s is %v", key, x)
	}
	return out
}

// flatten appends the numbers of nested lists. Anything else is left out, so that the result is too short.
func flatten(dst []float64, v any, infinite float64) []float64 {
	switch v := v.(type) {
	case nil:
		return append(dst, infinite)
	case float64:
		return append(dst, v)
	case int64:
		return append(dst, float64(v))
	case uint64:
		return append(dst, float64(v))
	case []any:
		for _, x := range v {
			dst = flatten(dst, x, infinite)
		}
	}
	return dst
}
