package dag

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Problem is a graph on a platform. It is read-only and safe for concurrent use.
type Problem struct {
	Graph    *Graph
	Platform *Platform

	n, m    int
	exec    []float64 // [tasks, processors]; +Inf = cannot run there
	instant bool      // some task takes no time somewhere
}

// maxPairs bounds tasks × processors: a run time is stored for each pair.
const maxPairs = 1 << 28

// NewProblem checks that graph and platform fit together: costs for every processor, a processor for every task, and
// bandwidths if edges carry bytes.
func NewProblem(g *Graph, p *Platform) (*Problem, error) {
	n, m := g.Len(), p.Len()
	if !p.known() && g.Bytes() > 0 {
		return nil,
			fmt.Errorf("bandwidth: none is given, want bytes per second between processors, for edges carry %.6g bytes",
				g.Bytes())
	}
	if float64(n)*float64(m) > maxPairs {
		return nil, fmt.Errorf("%d tasks on %d processors: want at most %d pairs of both", n, m, int(maxPairs))
	}
	q := &Problem{Graph: g, Platform: p, n: n, m: m, exec: make([]float64, n*m)}
	longest := 0.0 // an upper bound on the length of any plan that a planner makes
	for i := range n {
		t, row := &g.tasks[i], q.exec[i*m:(i+1)*m]
		if t.Cost != nil && len(t.Cost) != m {
			return nil, fmt.Errorf("tasks[%d] (%s): cost: got %d numbers, want one for each of %d processors", i, t.ID,
				len(t.Cost), m)
		}
		able, most := false, 0.0
		for k := range m {
			x := 0.0
			if t.Cost != nil {
				x = t.Cost[k]
			} else {
				x = t.Work / p.procs[k].Speed
			}
			if math.IsNaN(x) || t.Types != nil && !slices.Contains(t.Types, p.procs[k].Type) {
				x = math.Inf(1)
			}
			able = able || !math.IsInf(x, 1)
			q.instant = q.instant || x == 0
			row[k] = x
			if !math.IsInf(x, 1) {
				most = max(most, x)
			}
		}
		longest += most
		if !able {
			return nil, fmt.Errorf("tasks[%d] (%s): %s", i, t.ID, unable(t, p))
		}
	}
	slowest := math.Inf(1)
	if m > 1 && p.known() {
		for k := range m {
			low, _ := p.extremes(int32(k))
			slowest = min(slowest, low)
		}
	}
	if longest += g.Bytes() / slowest; !(longest < 1e300) {
		return nil,
			fmt.Errorf("work, costs and bytes: together they could take %v s, which is more than can be computed with", longest)
	}
	return q, nil
}

// unable returns the reason why no processor can run t.
func unable(t *Task, p *Platform) string {
	if t.Types == nil {
		return fmt.Sprintf("none of %d processors can run it, every cost is null; want at least one that can", p.Len())
	}
	var have []string
	for _, c := range p.procs {
		kind := c.Type
		if kind == "" {
			kind = "no type"
		}
		if !slices.Contains(have, kind) {
			have = append(have, kind)
		}
	}
	return fmt.Sprintf("it runs on %s only, and there are only processors of %s", strings.Join(t.Types, ", "),
		strings.Join(have, ", "))
}

// Tasks returns the number of tasks.
func (q *Problem) Tasks() int { return q.n }

// Procs returns the number of processors.
func (q *Problem) Procs() int { return q.m }

// Row returns the seconds that task i takes on each processor, +Inf if it cannot run there. It belongs to the
// problem.
func (q *Problem) Row(i int32) []float64 { return q.exec[int(i)*q.m : (int(i)+1)*q.m] }

// Exec returns the seconds that task i takes on processor g.
func (q *Problem) Exec(i, g int32) float64 { return q.exec[int(i)*q.m+int(g)] }

// Instant reports whether some task takes no time on some processor.
func (q *Problem) Instant() bool { return q.instant }

// Comm returns the seconds that bytes need from processor g to h.
func (q *Problem) Comm(bytes float64, g, h int32) float64 {
	switch {
	case g == h || bytes == 0:
		return 0
	case q.Platform.matrix != nil:
		return bytes / q.Platform.matrix[int(g)*q.m+int(h)]
	case q.Platform.tiers != nil:
		return bytes / q.Platform.tier(int(g), int(h))
	}
	return bytes / q.Platform.scalar
}

// Arrivals fills ready with the time at which task i has its inputs, by processor, if its parents run on proc and end
// at finish. It skips every parent whose data reach all processors before a time that no processor can beat; of a
// hundred parents only a few matter.
func (q *Problem) Arrivals(ready []float64, i int32, proc []int32, finish []float64) {
	preds := q.Graph.Preds(i)
	floor := q.floor(preds, proc, finish)
	for k := range ready {
		ready[k] = floor
	}
	for _, e := range preds {
		h, f := proc[e.Task], finish[e.Task]
		slowest, _ := q.Platform.extremes(h)
		if e.Bytes == 0 || q.m == 1 || f+e.Bytes/slowest <= floor {
			continue
		}
		if links := q.links(h); links != nil {
			for k, b := range links { // infinite for h itself
				if t := f + e.Bytes/b; t > ready[k] {
					ready[k] = t
				}
			}
			continue
		}
		if q.Platform.tiers != nil {
			q.arriveByTiers(ready, int(h), f, e.Bytes)
			continue
		}
		far, own := f+e.Bytes/q.Platform.scalar, ready[h]
		for k, r := range ready {
			if far > r {
				ready[k] = far
			}
		}
		ready[h] = own
	}
}

// arriveByTiers raises ready to the times at which bytes that are on processor h from time f on reach the others.
func (q *Problem) arriveByTiers(ready []float64, h int, f, bytes float64) {
	ready[h] = max(ready[h], f)
	from, to := h, h+1 // the processors that are done
	for _, t := range q.Platform.tiers {
		at := f + bytes/t.Bandwidth
		first, last := q.Platform.group(h, t.Size)
		for _, part := range [][]float64{ready[first:from], ready[to:last]} {
			for k, r := range part {
				if at > r {
					part[k] = at
				}
			}
		}
		from, to = first, last
	}
}

// floor returns a time before which no processor has the data of all preds: the later of two times. One is the end of
// the last of them. For the other, take for each processor that preds run on the time at which their data can be on
// another processor: every processor waits at least for the second-latest of these times, because only the processor
// with the latest data does without that transfer.
func (q *Problem) floor(preds []Link, proc []int32, finish []float64) float64 {
	last, first, second, at := 0.0, 0.0, 0.0, int32(-1)
	for _, e := range preds {
		h, f := proc[e.Task], finish[e.Task]
		last = max(last, f)
		if e.Bytes > 0 && q.m > 1 {
			_, fastest := q.Platform.extremes(h)
			f += e.Bytes / fastest
		}
		switch {
		case h == at:
			first = max(first, f)
		case f > first:
			first, second, at = f, first, h
		default:
			second = max(second, f)
		}
	}
	return max(last, second)
}

// links returns the bandwidth matrix's row of sender g, with +Inf for g itself; nil if there is no matrix.
func (q *Problem) links(g int32) []float64 {
	if q.Platform.matrix == nil {
		return nil
	}
	return q.Platform.matrix[int(g)*q.m : (int(g)+1)*q.m]
}

// MeanExec returns the mean time of task i over the processors that can run it.
func (q *Problem) MeanExec(i int32) float64 {
	sum, n := 0.0, 0
	for _, x := range q.Row(i) {
		if !math.IsInf(x, 1) {
			sum += x
			n++
		}
	}
	return sum / float64(n)
}

// UpwardRanks fills u (nil makes it) with the upward rank of every task: its mean time plus the largest of mean cost
// and rank over its children (Topcuoglu et al. 2002, equation 6).
func (q *Problem) UpwardRanks(mean RankMean, u []float64) []float64 {
	if u == nil {
		u = make([]float64, q.n)
	}
	c := q.Platform.MeanCost(mean)
	for k := q.n - 1; k >= 0; k-- {
		i := q.Graph.order[k]
		most := 0.0
		for _, s := range q.Graph.Succs(i) {
			most = max(most, c.Of(s.Bytes)+u[s.Task])
		}
		u[i] = q.MeanExec(i) + most
	}
	return u
}
