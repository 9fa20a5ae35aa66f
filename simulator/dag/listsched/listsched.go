package listsched

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"clustergym/simulator/dag"
)

// Options are the options of all planners.
type Options struct {
	RankMean dag.RankMean // "" = dag.Pairs
}

// Planner makes plans of one problem. Its buffers are made once, so that planning again allocates little. Not safe
// for concurrent use.
type Planner struct {
	q    *dag.Problem
	o    Options
	n, m int

	rank  []float64
	down  []float64
	order []int32
	times []dag.Timeline
	ready []float64 // by processor
	queue *dag.Queue
	table []float64 // PEFT's, [tasks, processors]
	plan  *dag.Plan
}

// New returns a planner of q.
func New(q *dag.Problem, o Options) *Planner {
	n, m := q.Tasks(), q.Procs()
	return &Planner{
		q: q, o: o, n: n, m: m, rank: make([]float64, n), down: make([]float64, n), order: make([]int32, 0, n),
		times: make([]dag.Timeline, m), ready: make([]float64, m), plan: dag.NewPlan(n),
	}
}

// HEFT plans by upward ranks. The plan belongs to the planner and is valid until the next call of a planning method;
// so are the plans of the other methods.
func (p *Planner) HEFT(insert bool) *dag.Plan {
	p.q.UpwardRanks(p.o.RankMean, p.rank)
	p.begin()
	for _, i := range p.sorted(p.rank) {
		p.place(i, p.earliest(i, insert, nil), insert)
	}
	return p.end()
}

// CPOP plans the critical path on the one processor that is best for it.
func (p *Planner) CPOP() *dag.Plan {
	g, cost := p.q.Graph, p.q.Platform.MeanCost(p.o.RankMean)
	p.q.UpwardRanks(p.o.RankMean, p.rank)
	for _, i := range g.Order() {
		d := 0.0
		for _, e := range g.Preds(i) {
			d = max(d, p.down[e.Task]+p.q.MeanExec(e.Task)+cost.Of(e.Bytes))
		}
		p.down[i] = d
	}
	at := int32(-1)
	for i := range int32(p.n) {
		if len(g.Preds(i)) == 0 && (at < 0 || p.rank[i] > p.rank[at]) {
			at = i
		}
	}
	critical := make([]bool, p.n)
	sum := make([]float64, p.m)
	for at >= 0 {
		critical[at] = true
		for k, x := range p.q.Row(at) {
			sum[k] += x
		}
		next, most := int32(-1), 0.0
		for _, s := range g.Succs(at) {
			if v := cost.Of(s.Bytes) + p.rank[s.Task]; next < 0 || v > most {
				next, most = s.Task, v
			}
		}
		at = next
	}
	best := 0
	for k, s := range sum {
		if s < sum[best] {
			best = k
		}
	}
	for i := range p.rank {
		p.rank[i] += p.down[i]
	}
	p.begin()
	q := p.ready0(p.rank)
	for i, ok := q.Next(); ok; i, ok = q.Next() {
		// If no processor can run the whole path, its tasks go where they end first.
		if critical[i] && !math.IsInf(p.q.Exec(i, int32(best)), 1) {
			p.arrivals(i)
			p.place(i, int32(best), true)
		} else {
			p.place(i, p.earliest(i, true, nil), true)
		}
	}
	return p.end()
}

// PEFT plans by the optimistic cost table: for each task and processor, the least time from the task's end to the end
// of all if it runs there.
func (p *Planner) PEFT() *dag.Plan {
	g, m, cost := p.q.Graph, p.m, p.q.Platform.MeanCost(p.o.RankMean)
	if p.table == nil {
		p.table = make([]float64, p.n*m)
	}
	clear(p.table)
	behind := p.ready // a buffer of the right size
	order := g.Order()
	for k := len(order) - 1; k >= 0; k-- {
		i := order[k]
		row := p.table[int(i)*m : (int(i)+1)*m]
		for _, s := range g.Succs(i) {
			// The child goes where it and what follows it take least. On another processor than its parent's it waits
			// for the transfer, so of the others only the best matters, or the second if the parent is on the best.
			first, second, from := math.Inf(1), math.Inf(1), -1
			for h, x := range p.q.Row(s.Task) {
				v := p.table[int(s.Task)*m+h] + x
				behind[h] = v
				if v < first {
					first, second, from = v, first, h
				} else if v < second {
					second = v
				}
			}
			c := cost.Of(s.Bytes)
			for h := range row {
				other := first
				if h == from {
					other = second
				}
				row[h] = max(row[h], min(behind[h], other+c))
			}
		}
	}
	for i := range p.rank {
		sum := 0.0
		for _, x := range p.table[i*m : (i+1)*m] {
			sum += x
		}
		p.rank[i] = sum / float64(m)
	}
	p.begin()
	q := p.ready0(p.rank)
	for i, ok := q.Next(); ok; i, ok = q.Next() {
		p.place(i, p.earliest(i, true, p.table[int(i)*m:(int(i)+1)*m]), true)
	}
	return p.end()
}

// EFTIndex plans in index order as if edges carried nothing. If they do carry bytes, the plan is not feasible: it
// shows what a model without transfers promises. dag.Check with transfers false checks it.
func (p *Planner) EFTIndex() *dag.Plan {
	avail := p.ready
	clear(avail)
	for _, i := range p.q.Graph.Order() {
		from := 0.0
		for _, e := range p.q.Graph.Preds(i) {
			from = max(from, p.plan.Finish[e.Task])
		}
		best, end := int32(-1), 0.0
		for k, x := range p.q.Row(i) {
			if f := max(from, avail[k]) + x; best < 0 || f < end {
				best, end = int32(k), f
			}
		}
		p.plan.Proc[i], p.plan.Start[i], p.plan.Finish[i] = best, max(from, avail[best]), end
		avail[best] = end
	}
	return p.end()
}

// Random draws a processor for every task among those that can run it. Tasks run in index order.
func (p *Planner) Random(src *rand.Rand) *dag.Plan {
	p.begin()
	for _, i := range p.q.Graph.Order() {
		g := src.IntN(p.m)
		for math.IsInf(p.q.Exec(i, int32(g)), 1) {
			g = src.IntN(p.m)
		}
		p.arrivals(i)
		p.place(i, int32(g), false)
	}
	return p.end()
}

// ListReady is Graham's rule: whenever a processor is idle, the one of lowest index takes the first task of the list
// whose inputs have arrived there.
func (p *Planner) ListReady() *dag.Plan {
	avail := p.ready
	clear(avail)
	missing := make([]int, p.n)
	var open []int32 // tasks whose parents are planned, in the order of the list
	for i := range missing {
		if missing[i] = len(p.q.Graph.Preds(int32(i))); missing[i] == 0 {
			open = append(open, int32(i))
		}
	}
	for now, next := 0.0, 0.0; len(open) > 0; now = next {
		for started := true; started; { // tasks of no length may make others ready at the same time
			started, next = false, math.Inf(1)
			for k := range int32(p.m) {
				if avail[k] > now {
					next = min(next, avail[k])
					continue
				}
				for at, i := range open {
					x := p.q.Exec(i, k)
					if math.IsInf(x, 1) {
						continue
					}
					if from := p.arrival(i, k); from > now {
						next = min(next, from)
						continue
					}
					p.plan.Proc[i], p.plan.Start[i], p.plan.Finish[i] = k, now, now+x
					avail[k], started = now+x, true
					open = slices.Delete(open, at, at+1)
					for _, s := range p.q.Graph.Succs(i) {
						if missing[s.Task]--; missing[s.Task] == 0 {
							to, _ := slices.BinarySearch(open, s.Task)
							open = slices.Insert(open, to, s.Task)
						}
					}
					break
				}
			}
		}
	}
	return p.end()
}

// arrival returns when the inputs of task i, whose parents are planned, are on processor k.
func (p *Planner) arrival(i, k int32) (at float64) {
	for _, e := range p.q.Graph.Preds(i) {
		at = max(at, p.plan.Finish[e.Task]+p.q.Comm(e.Bytes, p.plan.Proc[e.Task], k))
	}
	return at
}

// begin empties the processors.
func (p *Planner) begin() {
	for k := range p.times {
		p.times[k].Reset(p.q.Instant())
	}
}

// end computes the makespan.
func (p *Planner) end() *dag.Plan {
	p.plan.Makespan = slices.Max(p.plan.Finish)
	return p.plan
}

// arrivals fills p.ready with the time at which task i has its inputs, by processor.
func (p *Planner) arrivals(i int32) { p.q.Arrivals(p.ready, i, p.plan.Proc, p.plan.Finish) }

// earliest returns the processor on which task i ends first or, if later is given, on which its end plus later is
// least.
func (p *Planner) earliest(i int32, insert bool, later []float64) int32 {
	p.arrivals(i)
	best, least := int32(-1), math.Inf(1)
	for k, x := range p.q.Row(i) {
		l := 0.0
		if later != nil {
			l = later[k]
		}
		if math.IsInf(x, 1) || p.ready[k]+x+l >= least {
			continue // it cannot be better: task i cannot start before its inputs are there
		}
		var at float64
		if insert {
			at = p.times[k].Earliest(p.ready[k], x)
		} else {
			at = p.times[k].Append(p.ready[k])
		}
		if f := at + x + l; f < least {
			best, least = int32(k), f
		}
	}
	if best < 0 {
		panic(fmt.Sprintf("listsched: no processor for task %d: its times are not numbers", i))
	}
	return best
}

// place books task i on processor k. p.ready must hold its arrivals.
func (p *Planner) place(i, k int32, insert bool) {
	x := p.q.Exec(i, k)
	at := p.times[k].Take(p.ready[k], x, insert)
	p.plan.Proc[i], p.plan.Start[i], p.plan.Finish[i] = k, at, at+x
}

// ready0 returns a ready queue over priority, reset to its beginning.
func (p *Planner) ready0(priority []float64) *dag.Queue {
	if p.queue == nil {
		p.queue = dag.NewQueue(p.q.Graph, priority)
	} else {
		p.queue.Reset(priority)
	}
	return p.queue
}

// sorted returns the order of a ready queue over rank. A plain sort gives the same unless a task sorts before its
// parent.
func (p *Planner) sorted(rank []float64) []int32 {
	p.order = p.order[:0]
	for i := range int32(p.n) {
		p.order = append(p.order, i)
	}
	slices.SortFunc(p.order, func(a, b int32) int {
		switch ra, rb := rank[a], rank[b]; {
		case ra > rb:
			return -1
		case ra < rb:
			return 1
		}
		return int(a - b)
	})
	place := p.down // free here
	for k, i := range p.order {
		place[i] = float64(k)
	}
	for i := range int32(p.n) {
		for _, e := range p.q.Graph.Preds(i) {
			if place[e.Task] > place[i] {
				p.order = p.order[:0]
				q := p.ready0(rank)
				for j, ok := q.Next(); ok; j, ok = q.Next() {
					p.order = append(p.order, j)
				}
				return p.order
			}
		}
	}
	return p.order
}

// Policies returns the names of the rules here, without the searches of agents/woa. Plan knows all but optimum.
func Policies() []string {
	return []string{"heft", "heft-noinsert", "cpop", "peft", "eft-index", "list-ready", "random", "optimum"}
}

// Plan returns a plan by the rule called policy. It is a copy that the caller owns.
func (p *Planner) Plan(ctx context.Context, policy string, src *rand.Rand) (*dag.Plan, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	plan, ok := map[string]func() *dag.Plan{
		"heft":          func() *dag.Plan { return p.HEFT(true) },
		"heft-noinsert": func() *dag.Plan { return p.HEFT(false) },
		"cpop":          p.CPOP,
		"peft":          p.PEFT,
		"eft-index":     p.EFTIndex,
		"list-ready":    p.ListReady,
		"random":        func() *dag.Plan { return p.Random(src) },
	}[policy]
	if !ok {
		return nil, fmt.Errorf("listsched: policy %q is unknown", policy)
	}
	return plan().Clone(), nil
}

// NoisyHEFT returns the best of so many plans: the first is HEFT's with insertion, and the others are made like it with
// every upward rank multiplied by exp(sigma × a standard normal number). Of equal plans it takes the first. The plan is
// a copy that the caller owns.
func (p *Planner) NoisyHEFT(ctx context.Context, plans int, sigma float64, src *rand.Rand) (*dag.Plan, error) {
	best := p.HEFT(true).Clone()
	rank := p.q.UpwardRanks(p.o.RankMean, nil)
	noisy := make([]float64, p.n)
	for range plans - 1 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for i, r := range rank {
			noisy[i] = r * math.Exp(sigma*src.NormFloat64())
		}
		p.begin()
		for _, i := range p.sorted(noisy) {
			p.place(i, p.earliest(i, true, nil), true)
		}
		if p.end().Makespan < best.Makespan {
			best.CopyFrom(p.plan)
		}
	}
	return best, nil
}
