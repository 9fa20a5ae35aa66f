package wire

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
		first := s.First
		if first == nil {
			first = make([]int64, len(s.NVec))
		}
		head(3)
		ints("nvec", s.NVec)
		ints("start", first)
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
		if len(s.Items) == 1 {
			w.Nil()
			return
		}
		s.Items[1].write(w)
	case "seq":
		head(1)
		w.Key("s")
		s.Items[0].write(w)
	default:
		panic("wire: a space of kind " + s.Kind)
	}
}
