package wire

// entries returns the space as the map that stands for it in messages.
func (s *Space) entries() Map {
	bound := func(v []float64) any {
		if len(v) == 1 {
			return v[0]
		}
		a := Array{DType: F64, Shape: s.Shape, Data: make([]byte, 8*len(v))}
		PutF64(a.Data, v)
		return a
	}
	list := make([]any, len(s.Items))
	for i := range s.Items {
		if list[i] = &s.Items[i]; s.Kind == "dict" {
			list[i] = []any{s.Names[i], list[i]}
		}
	}
	var m Map
	switch s.Kind {
	case "box":
		m = MapOf("shape", s.Shape, "dtype", s.DType.String(), "low", bound(s.Low), "high", bound(s.High))
	case "discrete":
		m = MapOf("n", s.N, "start", s.Start, "dtype", s.DType.String())
	case "mdiscrete":
		first := s.First
		if first == nil {
			first = make([]int64, len(s.NVec))
		}
		m = MapOf("nvec", s.NVec, "start", first, "dtype", s.DType.String())
	case "mbinary":
		m = MapOf("shape", s.Shape)
	case "dict":
		m = MapOf("k", list)
	case "tuple":
		m = MapOf("s", list)
	case "text":
		m = MapOf("min", s.Min, "max", s.Max, "chars", s.Chars)
	case "graph":
		var edge any
		if len(list) > 1 {
			edge = list[1]
		}
		m = MapOf("node", list[0], "edge", edge)
	case "seq":
		m = MapOf("s", list[0])
	default:
		panic("wire: a space of kind " + s.Kind)
	}
	return append(MapOf("t", s.Kind), m...)
}
