package server

import (
	"math"
	"slices"

	"clustergym/env"
	"clustergym/env/bridge/wire"
)

var nan = math.NaN()

// shape is how the columns of a batch become the arrays of a reply.
type shape struct {
	obs, mask int        // elements of a row
	parts     []obsPart  // of a dict, in the order of its space
	rowDims   []int      // [k, obs], of a flat observation
	maskDims  []int      // [k, mask]
	mark      []bool     // scratch: rows already named by a request
	maskAt    []int      // where the mask of each factor of the action begins
	action    actionDims // of requests
}

// obsPart is one entry of an observation.
type obsPart struct {
	name string
	mask bool  // the mask, not a field
	at   int   // where it begins in a row
	n    int   // elements
	dims []int // [k, …]; the first is set anew for every reply
}

// newShape works out h's arrays from its spec and choices.
func newShape(h *vecHandle, n int) shape {
	s := h.spec
	out := shape{
		obs: s.ObsLen(), mask: s.MaskLen(), rowDims: []int{0, s.ObsLen()}, maskDims: []int{0, s.MaskLen()},
		mark: make([]bool, n), action: newActionDims(s.Action),
	}
	at := 0
	for _, k := range s.Action.Sizes {
		out.maskAt = append(out.maskAt, at)
		at += k
	}
	space := wire.ObsSpace(s, wire.ViewDict, h.maskObs)
	at = 0
	field := 0
	for i, name := range space.Names {
		p := obsPart{name: name, dims: append([]int{0}, space.Items[i].Shape...)}
		if p.mask = field == len(s.Obs) || s.Obs[field].Name != name; p.mask {
			p.n = out.mask
		} else {
			p.at, p.n = at, s.Obs[field].Len()
			at += p.n
			field++
		}
		out.parts = append(out.parts, p)
	}
	return out
}

// sizes of elements as text with what separates them: JSON's arrays are lists.
var textSize = map[wire.DType]int{
	wire.Bool: 6, wire.I8: 5, wire.U8: 4, wire.I32: 12, wire.F32: 17, wire.F64: 26, wire.I64: 21, wire.U64: 21,
}

// overhead of one array beside its data: its key, the header and its padding, or the keys of msgpack-numpy.
const overhead = 128

// largestReply is a bound for the bytes of a reply about n environments: a step in which every episode ends.
func (h *vecHandle) largestReply(n int, enc wire.Encoding) int {
	total := 1024
	add := func(d wire.DType, rows, each int, name string) {
		size := d.Size()
		if enc == wire.JSON {
			size = textSize[d] + 4 // a row of its own costs brackets
		}
		total += overhead + len(name) + rows*each*size
	}
	once := func(fin bool) {
		if h.view == wire.ViewFlat {
			add(wire.F32, n, h.shape.obs, "")
		} else {
			for _, p := range h.shape.parts {
				add(wire.F32, n, p.n, p.name)
			}
		}
		if h.maskInfo {
			add(wire.I8, n, h.shape.mask, wire.MaskKey)
			add(wire.Bool, n, 1, wire.MaskKey)
		}
		for _, c := range h.columns {
			add(wire.F64, n, 1, c.key)
			add(wire.Bool, n, 1, c.present)
		}
		for _, d := range []wire.DType{wire.F64, wire.I64, wire.Bool, wire.Bool, wire.Bool, wire.U64, wire.Bool, wire.I32} {
			add(d, n, 1, "episode")
		}
	}
	once(false)
	for _, d := range []wire.DType{wire.F64, wire.Bool, wire.Bool, wire.I32, wire.I32} {
		add(d, n, 1, "ids") // r, te, tr, ids and the list of faults
	}
	if h.mode.String() == sameStep {
		once(true)
	}
	return total
}

// gatherF32 writes n elements of each of k rows of src, from at on, to dst. rows says which, nil meaning the first k.
func gatherF32(dst []byte, src []float32, stride, at, n, k int, rows []int) {
	if rows == nil && n == stride {
		wire.PutF32(dst, src[:k*n])
		return
	}
	for p := range k {
		i := p
		if rows != nil {
			i = rows[p]
		}
		from := i*stride + at
		wire.PutF32(dst[4*n*p:4*n*(p+1)], src[from:from+n])
	}
}

// gatherBool writes n elements of each of k rows of src as zeros and ones.
func gatherBool(dst []byte, src []bool, n, k int, rows []int) {
	if rows == nil {
		wire.PutBool(dst, src[:k*n])
		return
	}
	for p, i := range rows[:k] {
		wire.PutBool(dst[n*p:n*(p+1)], src[i*n:(i+1)*n])
	}
}

// gatherI32 writes whole numbers.
func gatherI32(dst []byte, src []int) {
	for p, v := range src {
		dst[4*p], dst[4*p+1], dst[4*p+2], dst[4*p+3] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24)
	}
}

// sortedKeys are the keys of m in order, so that replies do not depend on a map's.
func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// actionDims are the shapes of a row of actions.
type actionDims struct {
	disc, cont int
	sizes      []int
	low, high  []float32
}

func newActionDims(a env.ActionSpec) actionDims {
	return actionDims{disc: len(a.Sizes), cont: len(a.Low), sizes: a.Sizes, low: a.Low, high: a.High}
}
