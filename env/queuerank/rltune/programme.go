package rltune

// The weights of the integer programme.
const (
	spreadWeight = 0.3 // of the difference between the most and the fewest free GPUs
	roomWeight   = 0.5 // of each node with room for the next job
)

// Programme chooses between candidate ways as the paper's integer programme does, by trying each. The paper's programme
// minimises fragmented nodes + 0.3·(most − fewest free GPUs of a node) − 0.5·nodes with room for the next job. In the
// published code nothing forces the binaries of fragmented nodes to 1, so the optimum has them at 0: the term does
// nothing, and is not here. Not safe for concurrent use.
type Programme struct {
	after []int32
	in    []bool
}

// Objective returns the value of a way. It looks at the nodes that have a free GPU, and if in is not nil, only at those
// that it marks. next is the number of GPUs that the next job wants. If it is 0, there is no next job, and no node has
// room for one.
func (o *Programme) Objective(free []int32, in []bool, way []Part, next int) float64 {
	o.after = append(o.after[:0], free...)
	for _, p := range way {
		o.after[p.Node] -= p.GPUs
	}
	most, least, room, found := int32(0), int32(0), 0, false
	for n, left := range o.after {
		if free[n] == 0 || in != nil && !in[n] {
			continue
		}
		if !found {
			most, least, found = left, left, true
		}
		most, least = max(most, left), min(least, left)
		if next > 0 && int(left) >= next {
			room++
		}
	}
	return spreadWeight*float64(most-least) - roomWeight*float64(room)
}

// Choose returns the position of the way with the least objective, the first of equal ones. The objective is over all
// nodes of the pool with a free GPU if whole, and otherwise over those that some way uses.
func (o *Programme) Choose(free []int32, ways [][]Part, next int, whole bool) int {
	var in []bool
	if !whole {
		if len(o.in) < len(free) {
			o.in = make([]bool, len(free))
		}
		in = o.in[:len(free)]
		clear(in)
		for _, w := range ways {
			for _, p := range w {
				in[p.Node] = true
			}
		}
	}
	best, least := 0, 0.0
	for i, w := range ways {
		// Values are multiples of a tenth, so values that differ by less than a millionth are equal.
		if v := o.Objective(free, in, w, next); i == 0 || v < least-1e-6 {
			best, least = i, v
		}
	}
	return best
}

// Planner places jobs by the integer programme. The next job is the second of the queue in the order of the base
// policy, as in the program, counted while the job that is placed still waits there: so it can be the job itself. Not
// safe for concurrent use.
type Planner struct {
	finder    Finder
	programme Programme
	ways      [][]Part
}

// Choose appends the way that the programme chooses to dst[:0]. There is one where there is a way of tier 1. next and
// whole are as in Programme.Choose.
func (o *Planner) Choose(p *Pool, free []int32, gpus, next int, whole bool, dst []Part) ([]Part, bool) {
	if !o.finder.Fits(p, free, gpus) {
		return dst[:0], false
	}
	o.ways = o.finder.Best(p, free, gpus, true, o.ways)
	i := o.programme.Choose(free, o.ways, next, whole)
	return append(dst[:0], o.ways[i]...), true
}
