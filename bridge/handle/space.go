package handle

import (
	"math"

	"clustergym/bridge/wire"
)

var nan = math.NaN()

// shape describes how the columns of a batch become the arrays of a reply.
type shape struct {
	obs, mask int       // elements of a row
	parts     []obsPart // the entries of a dict, in the order of its space
	rowDims   []int     // [k, obs], for a flat observation
	maskDims  []int     // [k, mask]
	mark      []bool    // scratch: the rows already named by a request
	maskAt    []int     // where each factor's part of the mask begins
}

// obsPart is one entry of an observation.
type obsPart struct {
	name string
	mask bool  // the mask, not a field
	at   int   // its first element in a row
	n    int   // elements
	dims []int // [k, …], with k set for every reply
}

// newShape computes h's shape from its spec and choices.
func newShape(h *Handle, n int) shape {
	s := h.spec
	out := shape{
		obs: s.ObsLen(), mask: s.MaskLen(), rowDims: []int{0, s.ObsLen()}, maskDims: []int{0, s.MaskLen()},
		mark: make([]bool, n),
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

// textSize bounds the size of an element in JSON, including its separator.
var textSize = map[wire.DType]int{
	wire.Bool: 6, wire.I8: 5, wire.U8: 4, wire.I32: 12, wire.F32: 17, wire.F64: 26, wire.I64: 21, wire.U64: 21,
}

// overhead bounds the size of an array without its data: its key, the header and its padding, or msgpack-numpy's keys.
const overhead = 128

// largestReply bounds the bytes of a reply about n environments. The largest is that of a step in which every episode
// ends.
func (h *Handle) largestReply(n int, enc wire.Encoding) int {
	total := 1024
	add := func(d wire.DType, rows, each int, name string) {
		size := d.Size()
		if enc == wire.JSON {
			size = textSize[d] + 4 // the brackets of a row
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
		add(d, n, 1, "ids") // stands for r, te, tr, ids and the list of faults
	}
	if h.mode.String() == sameStep {
		once(true)
	}
	return total
}

// gatherF32 writes n elements of each of k rows of src, beginning with element at, to dst. rows selects them, nil
// meaning the first k.
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
