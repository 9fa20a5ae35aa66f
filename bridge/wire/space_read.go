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
	var e *Error
	if s.Kind, e = m.Str("t", ""); e != nil {
		return e
	}
	switch s.Kind {
	case "box":
		return s.readBox(m)
	case "discrete":
		return s.readDiscrete(m)
	case "mdiscrete":
		return s.readMultiDiscrete(m)
	case "mbinary":
		return s.readShape(m)
	case "dict":
		return s.readDict(m, depth)
	case "tuple":
		list, ok := m.Get("s").([]any)
		if !ok {
			return wrong("s", m.Get("s"), "a list of spaces")
		}
		return s.readItems(list, depth)
	case "text":
		return s.readText(m)
	case "graph":
		items := []any{m.Get("node"), m.Get("edge")}
		if items[1] == nil {
			items = items[:1]
		}
		return s.readItems(items, depth)
	case "seq":
		return s.readItems([]any{m.Get("s")}, depth)
	}
	return Errorf(BadRequest, "a space of kind %.40q", s.Kind)
}

func (s *Space) readItems(items []any, depth int) *Error {
	s.Items = make([]Space, len(items))
	for i, x := range items {
		if e := s.Items[i].read(x, depth+1); e != nil {
			return e
		}
	}
	return nil
}

// readShape reads a shape without a dimension of 0.
func (s *Space) readShape(m Map) *Error {
	list, e := m.Ints("shape")
	if e != nil {
		return e
	}
	if list == nil || len(list) > maxDims {
		return Errorf(BadRequest, "a space without a shape, or of more than %d dimensions", maxDims)
	}
	s.Shape = make([]int, len(list))
	for i, d := range list {
		if d < 1 || d > math.MaxInt32 {
			return Errorf(BadRequest, "a space of shape %v", list)
		}
		s.Shape[i] = int(d)
	}
	if _, ok := elements(s.Shape, maxElements); !ok {
		return Errorf(BadRequest, "a space of shape %v", list)
	}
	return nil
}

func (s *Space) readType(m Map, def DType, whole bool) *Error {
	name, e := m.Str("dtype", def.String())
	if e != nil {
		return e
	}
	d, ok := DTypeNamed(name)
	if !ok || whole && (d == Bool || d >= F32) {
		return Errorf(BadRequest, "a space %s of type %.40q", s.Kind, name)
	}
	s.DType = d
	return nil
}

func (s *Space) readBox(m Map) *Error {
	e := s.readShape(m)
	if e == nil {
		e = s.readType(m, F32, false)
	}
	if e == nil {
		s.Low, e = bounds(m, "low", s.Shape, math.Inf(-1))
	}
	if e == nil {
		s.High, e = bounds(m, "high", s.Shape, math.Inf(1))
	}
	if e != nil {
		return e
	}
	for i := range max(len(s.Low), len(s.High)) {
		if low, high := s.Low[min(i, len(s.Low)-1)], s.High[min(i, len(s.High)-1)]; low > high {
			return Errorf(BadRequest, "a space box from %v to %v", low, high)
		}
	}
	return nil
}

func (s *Space) readDiscrete(m Map) *Error {
	e := s.readType(m, I64, true)
	if e == nil {
		s.N, e = m.Int("n", 0, 1, math.MaxInt64)
	}
	if e == nil && s.N == 0 {
		e = Errorf(BadRequest, "a space discrete without n")
	}
	if e == nil {
		s.Start, e = m.Int("start", 0, math.MinInt64, math.MaxInt64)
	}
	if e == nil && s.Start > math.MaxInt64-s.N {
		e = Errorf(BadRequest, "a space discrete from %d on of %d actions", s.Start, s.N)
	}
	return e
}

func (s *Space) readMultiDiscrete(m Map) *Error {
	e := s.readType(m, I64, true)
	if e == nil {
		s.NVec, e = m.Ints("nvec")
	}
	if e == nil {
		s.First, e = m.Ints("start")
	}
	if e != nil {
		return e
	}
	if s.First == nil {
		s.First = make([]int64, len(s.NVec))
	}
	if len(s.NVec) == 0 || len(s.First) != len(s.NVec) {
		return Errorf(BadRequest, "a space mdiscrete of %d numbers and %d starts", len(s.NVec), len(s.First))
	}
	for i, n := range s.NVec {
		if n < 1 || s.First[i] > math.MaxInt64-n {
			return Errorf(BadRequest, "a space mdiscrete of %v", s.NVec)
		}
	}
	return nil
}

func (s *Space) readDict(m Map, depth int) *Error {
	list, ok := m.Get("k").([]any)
	if !ok {
		return wrong("k", m.Get("k"), "a list of names and spaces")
	}
	items := make([]any, len(list))
	seen := make(map[string]struct{}, len(list))
	for i, p := range list {
		pair, _ := p.([]any)
		if len(pair) != 2 {
			return wrong("k", p, "a list of names and spaces, each pair a list")
		}
		name, ok := pair[0].(string)
		if !ok {
			return wrong("k", pair[0], "a name")
		}
		if _, twice := seen[name]; twice {
			return Errorf(BadRequest, "name %.40q stands twice in a dict space", name)
		}
		seen[name] = struct{}{}
		s.Names = append(s.Names, name)
		items[i] = pair[1]
	}
	return s.readItems(items, depth)
}

func (s *Space) readText(m Map) *Error {
	low, e := m.Int("min", 0, 0, math.MaxInt32)
	if e != nil {
		return e
	}
	high, e := m.Int("max", -1, low, math.MaxInt32)
	if e != nil {
		return e
	}
	if high < low {
		return Errorf(BadRequest, "a space text without max")
	}
	s.Min, s.Max = int(low), int(high)
	s.Chars, e = m.Str("chars", "")
	return e
}

// bounds reads the bounds of a box: one number, an array or nested lists of its shape, or nil, which is an infinity in
// JSON.
func bounds(m Map, key string, shape []int, infinite float64) ([]float64, *Error) {
	n, _ := elements(shape, maxElements)
	var out []float64
	switch v := m.Get(key).(type) {
	case nil:
		return []float64{infinite}, nil
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
		return nil, wrong(key, m.Get(key), "one bound, or one for each element")
	}
	for _, x := range out {
		if math.IsNaN(x) || x == -infinite {
			return nil, Errorf(BadRequest, "field %s is %v", key, x)
		}
	}
	return out, nil
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
