package dagplace

import (
	"math"

	"clustergym/env"
	"clustergym/simulator/dag"
)

// The sizes of what is seen of the task and of each GPU.
const (
	taskFeatures = 8
	gpuFeatures  = 6
	bound        = 4 // times are cut at so many units, on either side
)

// Encoder shows the state of a Builder. What depends on the problem alone is computed once. Not safe for concurrent
// use.
type Encoder struct {
	q     *dag.Problem
	slots int // GPUs in an observation
	all   bool
	local bool

	unit  float64   // F, the leader's makespan
	mean  []float64 // mean run time of each task
	least []float64 // shortest run time of each task
	rank  []float64
	depth []float64 // share of the longest chain

	picked []int32 // the GPUs of the slots, -1 = empty
	near   []int32 // buffers of the choice
	first  []int32
	gaps   []float64
	best   smallest
}

// NewEncoder returns the encoder for plans of q whose leader takes unit seconds. slots is how many GPUs are offered, 0
// = all of them; local measures times in the task's own mean run time, from the earliest end on, instead of in units.
func NewEncoder(q *dag.Problem, rank []float64, unit float64, slots int, local bool) *Encoder {
	n := q.Tasks()
	e := &Encoder{
		q: q, slots: slots, all: slots == 0, local: local, unit: unit, mean: make([]float64,
			n), least: make([]float64, n), rank: rank,
		depth: make([]float64, n),
	}
	if e.all {
		e.slots = q.Procs()
	}
	e.picked, e.gaps = make([]int32, e.slots), make([]float64, q.Procs())
	longest := 0.0
	for _, i := range q.Graph.Order() {
		e.mean[i] = q.MeanExec(i)
		e.least[i] = math.Inf(1)
		for _, x := range q.Row(i) {
			e.least[i] = min(e.least[i], x)
		}
		for _, p := range q.Graph.Preds(i) {
			e.depth[i] = max(e.depth[i], e.depth[p.Task]+1)
		}
		longest = max(longest, e.depth[i])
	}
	for i := range e.depth {
		e.depth[i] /= max(longest, 1)
	}
	return e
}

// Unit changes the unit of times.
func (e *Encoder) Unit(unit float64) { e.unit = unit }

// fields describes an observation of so many slots.
func fields(slots int, local bool) []env.Field {
	low := float32(0)
	unit := "leader's makespan"
	if local {
		low, unit = -bound, "mean run time of the task"
	}
	gpus := "for each GPU: capability for the task over the best; load so far; free from; |hope − (load + run time)|; " +
		"arrival of the task's inputs; end of the task if it goes there"
	task := "mean run time; depth over the largest; parents/16; children/16; upward rank; hope; end of the last parent; " +
		"share of the tasks left"
	if local {
		gpus = "for each GPU: capability for the task over the best; hope − (load + run time); free from, from the " +
			"earliest end of the task on; |hope − (load + run time)| beyond the smallest; arrival of the task's inputs and end of the task, from that earliest end on"
		task = "mean run time (of the leader's makespan); depth over the largest; parents/16; children/16; upward rank (of " +
			"the leader's makespan); hope beyond the mean load; earliest end of the task beyond the latest end so far; share of the tasks left"
	}
	return []env.Field{
		{Name: "gpus", Shape: []int{slots, gpuFeatures}, Low: low, High: bound, Unit: unit, Doc: gpus},
		{Name: "task", Shape: []int{taskFeatures}, Low: low, High: bound, Unit: unit, Doc: task},
	}
}

// Slots are the GPUs of the slots of the last Encode, -1 for an empty one. It belongs to the encoder.
func (e *Encoder) Slots() []int32 { return e.picked }

// Encode fills obs and mask with the state of b before its next task, for which hope is wished. Once the plan is
// complete both are empty.
func (e *Encoder) Encode(obs []float32, mask []bool, b *Builder, hope float64) {
	clear(obs)
	clear(mask)
	i := b.Task()
	if i < 0 {
		return
	}
	e.pick(b, i, hope)
	row := e.q.Row(i)
	w, from := e.unit, 0.0
	gap := math.Inf(1)
	if e.local {
		w = e.mean[i]
		from = b.finish[b.Earliest()]
		for _, g := range e.picked {
			if g >= 0 && !math.IsInf(row[g], 1) {
				gap = min(gap, math.Abs(hope-(b.load[g]+row[g])))
			}
		}
	}
	if !(w > 0) { // a task, or a leader, of no length
		w = 1
	}
	for s, g := range e.picked {
		if g < 0 || math.IsInf(row[g], 1) {
			continue
		}
		mask[s] = true
		x, o := row[g], obs[s*gpuFeatures:(s+1)*gpuFeatures]
		o[0] = 1
		if x > 0 {
			o[0] = float32(e.least[i] / x)
		}
		off := hope - (b.load[g] + x)
		if e.local {
			o[1] = cut(off/w, -bound)
			o[2] = cut((b.end[g]-from)/w, -bound)
			o[3] = cut((math.Abs(off)-gap)/w, 0)
			o[4] = cut((b.arrival[g]-from)/w, -bound)
			o[5] = cut((b.finish[g]-from)/w, 0)
			continue
		}
		o[1] = cut(b.load[g]/w, 0)
		o[2] = cut(b.end[g]/w, 0)
		o[3] = cut(math.Abs(off)/w, 0)
		o[4] = cut(b.arrival[g]/w, 0)
		o[5] = cut(b.finish[g]/w, 0)
	}
	o := obs[e.slots*gpuFeatures:]
	unit := e.unit
	if !(unit > 0) {
		unit = 1
	}
	o[0] = cut(e.mean[i]/unit, 0)
	o[1] = float32(e.depth[i])
	o[2] = cut(float64(len(e.q.Graph.Preds(i)))/16, 0)
	o[3] = cut(float64(len(e.q.Graph.Succs(i)))/16, 0)
	o[4] = cut(e.rank[i]/unit, 0)
	o[5], o[6] = cut(hope/unit, 0), cut(b.ready/unit, 0)
	if e.local {
		mean := 0.0
		for _, l := range b.load {
			mean += l
		}
		o[5], o[6] = cut((hope-mean/float64(len(b.load)))/w, -bound), cut((from-b.plan.Makespan)/w, -bound)
	}
	o[7] = float32(len(b.order)-b.next) / float32(len(b.order))
}

func cut(x, low float64) float32 { return float32(min(max(x, low), bound)) }

// pick chooses the GPUs of the slots: all in their order or, where there are more than slots, half of them by the
// earliest end of the task and half by how near they come to hope, earliest ends first.
func (e *Encoder) pick(b *Builder, i int32, hope float64) {
	m := len(b.finish)
	if e.all || m <= e.slots {
		for s := range e.picked {
			e.picked[s] = -1
			if s < m {
				e.picked[s] = int32(s)
			}
		}
		return
	}
	row := e.q.Row(i)
	for g, x := range row {
		e.gaps[g] = math.Abs(hope - (b.load[g] + x))
	}
	early := (e.slots + 1) / 2
	e.first = e.best.least(e.first, early, b.finish)
	e.near = e.best.least(e.near, e.slots, e.gaps) // enough, were the first ones all among them
	n := copy(e.picked, e.first)
	for _, g := range e.near {
		if n == e.slots {
			break
		}
		if !contains(e.picked[:early], g) {
			e.picked[n] = g
			n++
		}
	}
}

func contains(all []int32, g int32) bool {
	for _, h := range all {
		if h == g {
			return true
		}
	}
	return false
}

// smallest finds the indices of the smallest values.
type smallest struct{ values []float64 } // of those found so far, ascending

// least fills dst with the k indices of least value, ascending, equal ones in order. k is small.
func (s *smallest) least(dst []int32, k int, values []float64) []int32 {
	dst, kept := dst[:0], s.values[:0]
	worst := math.Inf(1)
	for g, v := range values {
		if len(dst) == k {
			if !(v < worst) {
				continue
			}
		} else {
			dst, kept = append(dst, 0), append(kept, 0)
		}
		at := len(dst) - 1
		for ; at > 0 && kept[at-1] > v; at-- {
			dst[at], kept[at] = dst[at-1], kept[at-1]
		}
		dst[at], kept[at] = int32(g), v
		if len(dst) == k {
			worst = kept[k-1]
		}
	}
	s.values = kept
	return dst
}
