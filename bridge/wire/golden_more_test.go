package wire

import (
	"fmt"
	"math"
	"strings"
)

// quiet is NaN as other languages write it. math.NaN has one more bit set.
var quiet = math.Float64frombits(0x7FF8 << 48)

// errorReplies has one error of every code, and the optional fields.
func errorReplies() []golden {
	all := []*Error{
		{Code: BadFrame, Msg: "the message ends too early"},
		{Code: BadRequest, Msg: "field n", Got: "0", Want: "a whole number from 1 to 4096"},
		{Code: UnknownOp, Msg: `operation "jump"`},
		{Code: Unauthorized, Msg: "no token, or a wrong one"},
		{Code: Forbidden, Msg: "a snapshot of another server", Want: "role admin"},
		{Code: ProtoMismatch, Msg: "versions", Got: "[2,3]", Want: "[1,1]"},
		{Code: UnknownEnv, Msg: `environment "Exampel-v1"`, Want: "Example-v1"},
		{Code: BadKwargs, Msg: "kwargs.gpus", Got: "-1", Want: "at least 1"},
		{Code: BadHandle, Msg: "handle 9 is not open"},
		{Code: BadSeed, Msg: "field seed", Got: "a string", Want: "a whole number, nothing, or a list of them"},
		{Code: BadAction, Msg: "actions of 2 environments are outside the space; nothing was done", Env: []int{1, 3},
			Got: "env 1: 7, env 3: -1", Want: "0 to 2"},
		{Code: NeedsReset, Msg: "the episode is over", Env: []int{0, 2}},
		{Code: NotPending, Msg: "nothing was sent"},
		{Code: Busy, Msg: "4 requests on handle 1 are unanswered", Retry: true},
		{Code: Capacity, Msg: "64 handles are open", Retry: true, Want: "at most 64"},
		{Code: TooLarge, Msg: "a reply of 70000000 bytes", Want: "at most 67108864"},
		{Code: Timeout, Msg: "the step took longer than 60 s"},
		{Code: EnvFault, Msg: "fault 1a2b", Env: []int{5}},
		{Code: Unsupported, Msg: "Example-v1 has no tasks"},
		{Code: SnapshotMismatch, Msg: "a snapshot of 2 environments", Want: "1"},
		{Code: Draining, Msg: "the server ends and opens nothing new", Retry: true},
		{Code: Internal, Msg: "fault 3c4d"},
	}
	var out []golden
	for i, e := range all {
		out = append(out, golden{string(e.Code), e.reply(uint32(10 + i))})
	}
	return out
}

// reply is what Error.Reply writes.
func (e *Error) reply(re uint32) Map {
	w := NewWriter(Ext)
	e.Reply(w, re)
	m, err := Decode(w.Bytes(), Ext, DefaultLimits())
	if err != nil {
		panic(err)
	}
	return m
}

// arrays has every element type with its extremes, and every number of dimensions.
func arrays() []golden {
	a := func(v Array) Map { return Map{{"a", v}} }
	out := []golden{
		{"bool", a(ints(Bool, []int{2, 3}, 1, 0, 0, 1, 1, 0))},
		{"int8", a(ints(I8, []int{3}, math.MinInt8, -1, math.MaxInt8))},
		{"uint8", a(ints(U8, []int{3}, 0, 1, math.MaxUint8))},
		{"int16", a(ints(I16, []int{3}, math.MinInt16, 258, math.MaxInt16))},
		{"uint16", a(ints(U16, []int{3}, 0, 258, math.MaxUint16))},
		{"int32", a(ints(I32, []int{3}, math.MinInt32, 16909060, math.MaxInt32))},
		{"uint32", a(ints(U32, []int{3}, 0, 16909060, math.MaxUint32))},
		{"int64", a(ints(I64, []int{3}, math.MinInt64, 1<<53+1, math.MaxInt64))},
		{"uint64", a(ints(U64, []int{3}, 0, 1<<53+1, -1))},
		{"float32",
			a(f32s([]int{2, 3}, 0, float32(math.Copysign(0, -1)), 0.1, math.MaxFloat32, math.SmallestNonzeroFloat32, -1))},
		{"float64", a(f64s(0, 0.1, math.MaxFloat64, math.SmallestNonzeroFloat64, -1e-7))},
		// 1, -2, 65504 and the smallest number above 0.
		{"float16", a(ints(F16, []int{4}, 0x3C00, 0xC000, 0x7BFF, 0x0001))},
		{"not-finite", Map{
			{"float16", ints(F16, []int{3}, 0x7C00, 0xFC00, 0x7E00)},
			{"float32", f32s([]int{3}, float32(math.Inf(1)), float32(math.Inf(-1)), float32(quiet))},
			{"float64", f64s(math.Inf(1), math.Inf(-1), quiet)},
		}},
		{"empty", Map{{"none", ints(I64, []int{0})}, {"rows", f32s([]int{0, 4})}, {"columns", ints(U8, []int{2, 0})}}},
		{"several", Map{{"x", ints(U8, []int{1}, 1)}, {"in", Map{{"y", ints(I16, []int{1}, 2)}}},
			{"list", []any{ints(U8, []int{2}, 3, 4), 5}}}},
	}
	for n := range maxDims + 1 {
		shape := make([]int, n)
		for i := range shape {
			shape[i] = 1
		}
		if n > 0 {
			shape[n-1] = 2
			out = append(out, golden{fmt.Sprintf("%d-dimensions", n), a(ints(I16, shape, 1, 2))})
			continue
		}
		out = append(out, golden{"0-dimensions", a(ints(I16, shape, 7))})
	}
	// An extension's length takes no, one or two bytes. Four bytes have a test of their own.
	for _, n := range []int{7, 8, 9, 16, 247, 248, 300} {
		data := make([]byte, n)
		for i := range data {
			data[i] = byte(i)
		}
		out = append(out, golden{fmt.Sprintf("%d-bytes", n), a(Array{U8, []int{n}, data})})
	}
	return out
}

// values has every other kind of value, and every form that it has in msgpack.
func values() []golden {
	v := func(x any) Map { return Map{{"v", x}} }
	var numbers []any
	for _, bits := range []uint{0, 5, 7, 8, 15, 16, 31, 32, 53, 63} {
		for _, near := range []int64{-1, 0, 1} {
			if n := int64(1)<<bits + near; bits < 63 {
				numbers = append(numbers, n, -n)
			}
		}
	}
	numbers = append(numbers, int64(math.MaxInt64), int64(math.MinInt64), uint64(1<<63), uint64(math.MaxUint64))
	many := make([]any, 0, 70)
	wide := make(Map, 0, 70)
	for i := range 70 {
		many = append(many, int64(i))
		wide = append(wide, Pair{fmt.Sprintf("k%02d", i), i%2 == 0})
	}
	deep := any("bottom")
	for range 7 {
		deep = Map{{"list", []any{deep}}}
	}
	return []golden{
		{"empty", Map{}},
		{"nil", v(nil)},
		{"booleans", v([]any{true, false})},
		{"integers", v(numbers)},
		{"floats",
			v([]any{0.0, 1.0, -1.5, 0.1, 1e6, 1e15, 1e16, 1e300, 1e-6, 1e-7, math.MaxFloat64, math.SmallestNonzeroFloat64,
				math.Copysign(0, -1)})},
		{"not-finite", v([]any{math.Inf(1), math.Inf(-1), quiet})},
		{"strings",
			v([]any{"", "plain", "quote \" backslash \\ slash /", "line\nend\ttab\r\x00\x7f", "<b>&</b>",
				"é Ω 漢 \U0001F600 \u2028", strings.Repeat("x", 31), strings.Repeat("x", 32), strings.Repeat("y", 256)})},
		{"blobs", v([]any{[]byte{}, []byte{0}, []byte{0xFF, 0xFE}, []byte("abc"), make([]byte, 300)})},
		{"lists", v([]any{[]any{}, []any{1, []any{2, []any{3}}}, many})},
		{"maps", v(Map{{"", nil}, {"ключ", 1}, {"m", Map{{"n", Map{}}}}, {"wide", wide}})},
		{"depth", v(deep)},
	}
}

func spaces() []golden {
	inf := math.Inf(1)
	box := Space{Kind: "box", Shape: []int{2, 2}, DType: F32, Low: []float64{-inf}, High: []float64{inf}}
	disc := Space{Kind: "discrete", N: 3, DType: I64}
	s := func(name string, x Space) golden { return golden{name, Map{{"space", x}}} }
	return []golden{
		s("box", box),
		s("box-elementwise",
			Space{Kind: "box", Shape: []int{3}, DType: F64, Low: []float64{-1, 0, -inf}, High: []float64{1, 0.5, inf}}),
		s("box-scalar", Space{Kind: "box", Shape: []int{}, DType: F32, Low: []float64{0}, High: []float64{1}}),
		s("box-image", Space{Kind: "box", Shape: []int{4, 4, 3}, DType: U8, Low: []float64{0}, High: []float64{255}}),
		s("discrete", disc),
		s("discrete-start", Space{Kind: "discrete", N: 5, Start: -2, DType: I32}),
		s("mdiscrete", Space{Kind: "mdiscrete", NVec: []int64{3, 2}, DType: I64}),
		s("mdiscrete-start", Space{Kind: "mdiscrete", NVec: []int64{3, 2}, First: []int64{1, -1}, DType: I64}),
		s("mbinary", Space{Kind: "mbinary", Shape: []int{4}}),
		s("dict", Space{Kind: "dict", Names: []string{"b", "a"}, Items: []Space{box, disc}}),
		s("tuple", Space{Kind: "tuple", Items: []Space{disc, box}}),
		s("text", Space{Kind: "text", Min: 1, Max: 8, Chars: "abc"}),
		s("graph",
			Space{Kind: "graph",
				Items: []Space{{Kind: "box", Shape: []int{4}, DType: F32, Low: []float64{0}, High: []float64{1}}, disc}}),
		s("graph-plain-edges", Space{Kind: "graph", Items: []Space{box}}),
		s("seq", Space{Kind: "seq", Items: []Space{disc}}),
		s("nested",
			Space{Kind: "dict", Names: []string{"x"},
				Items: []Space{{Kind: "tuple", Items: []Space{{Kind: "dict", Names: []string{"y"}, Items: []Space{disc}}}}}}),
		{"flat", Map{{"space", *ObsSpace(exampleSpec(), ViewFlat, false)}}},
	}
}
