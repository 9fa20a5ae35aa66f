package woa

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/env/dagplace"
	"clustergym/internal/par"
	"clustergym/simulator/dag"
)

// These numbers of the search in rank space were chosen on graphs that no table reports.
const (
	// mostNoise is the largest standard deviation of the logarithms of ranks in a whale drawn anew. The least is 1/tasks,
	// about the distance between neighbours in the order.
	mostNoise = 0.2
	mostLeft  = 0.1 // largest share of tasks that leave out the earliest GPU in a whale drawn anew
	deepest   = 3   // most GPUs that a task leaves out
	mostMoved = 7   // most tasks of the critical chain that change at once
	raised    = 0.3 // standard deviation of what raises the logarithm of a critical task's rank
)

// asked in place of a number of GPUs that a task leaves out means that the policy chooses.
const asked = 255

// rankWhale is one whale in rank space: a plan by list scheduling, whose priorities are upward ranks with noise.
type rankWhale struct {
	back     bool      // planned from the last task to the first
	noise    []float64 // of the logarithms of ranks
	leave    []uint8   // GPUs of earlier end that each task leaves out, or asked
	makespan float64
	chain    []int32   // tasks that determine the makespan
	load     []float64 // with a policy: position in running-time space
	plan     *dag.Plan // of the problem in its direction
}

func (x *rankWhale) copyFrom(o *rankWhale) {
	x.back, x.makespan = o.back, o.makespan
	copy(x.noise, o.noise)
	copy(x.leave, o.leave)
	copy(x.load, o.load)
	x.plan.CopyFrom(o.plan)
	x.chain = append(x.chain[:0], o.chain...)
}

// side is the problem read in one direction.
type side struct {
	q    *dag.Problem
	rank []float64
}

// rankSearch is a search in rank space.
type rankSearch struct {
	*search
	sides     [2]side // forwards and backwards
	now, next []*rankWhale
	given     []*dag.Plan
	workers   []*rankWorker
}

// rankWorker is the state of one goroutine.
type rankWorker struct {
	s     *rankSearch
	pcg   rand.PCG
	src   *rand.Rand
	views [2]view
	by    []int32 // of chain
	at    []int32
	hope  []float64
	total []float64

	policy  agents.Policy // nil = none is asked
	batch   *env.Batch
	actions *env.Actions
}

// view makes plans in one direction.
type view struct {
	side
	priority []float64
	order    []int32
	queue    *dag.Queue
	builder  *dagplace.Builder
	encoder  *dagplace.Encoder // nil without a policy
}

// searchRanks plans in rank space. The ranks of HEFT are known to it whatever it begins with.
func (s *search) searchRanks(ctx context.Context, seeds []*dag.Plan, workers int, hooks Hooks) (*Result, error) {
	r := &rankSearch{search: s, given: seeds}
	back, err := s.q.Reversed()
	if err != nil {
		return nil, err
	}
	r.sides = [2]side{{s.q, s.rank}, {back, back.UpwardRanks(dag.Pairs, nil)}}
	for range s.cfg.Whales {
		r.now, r.next = append(r.now, r.newWhale()), append(r.next, r.newWhale())
	}
	for range max(1, min(workers, s.cfg.Whales)) {
		w, err := r.newWorker(hooks)
		if err != nil {
			return nil, err
		}
		r.workers = append(r.workers, w)
	}
	if err := r.begin(ctx); err != nil {
		return nil, err
	}
	out := &Result{Initial: r.now[s.leader].makespan}
	for k := range s.cfg.Iterations {
		if err := r.iterate(ctx, k); err != nil {
			return nil, err
		}
		out.Curve = append(out.Curve, r.now[s.leader].makespan)
		if hooks.Progress != nil {
			hooks.Progress(float64(k+1)/float64(s.cfg.Iterations), r.now[s.leader].makespan)
		}
	}
	out.Plans = s.plans
	x := r.now[s.leader]
	out.Plan = x.plan.Clone()
	if x.back {
		out.Plan = s.q.Mirrored(x.plan)
	}
	return out, nil
}

func (r *rankSearch) newWhale() *rankWhale {
	return &rankWhale{noise: make([]float64, r.n), leave: make([]uint8, r.n), load: make([]float64, r.n),
		plan: dag.NewPlan(r.n)}
}

func (r *rankSearch) newWorker(hooks Hooks) (*rankWorker, error) {
	w := &rankWorker{s: r, by: make([]int32, r.n), at: make([]int32, r.n), hope: make([]float64, r.n),
		total: make([]float64, r.m)}
	w.src = rand.New(&w.pcg)
	if r.cfg.Generator == "policy" {
		var err error
		if w.policy, err = hooks.Policy(); err != nil {
			return nil, err
		}
		spec, err := PolicySpec(r.cfg.Slots)
		if err != nil {
			return nil, err
		}
		w.batch, w.actions = env.NewBatch(spec, 1), env.NewActions(spec, 1)
	}
	for k := range w.views {
		v := &w.views[k]
		v.side = r.sides[k]
		v.priority, v.queue = make([]float64, r.n), dag.NewQueue(v.q.Graph, nil)
		v.order = dag.SortedOrder(v.q.Graph, v.rank, nil)
		v.builder = dagplace.NewBuilder(v.q, v.order, r.cfg.Insert)
		if w.policy != nil {
			v.encoder = dagplace.NewEncoder(v.q, v.rank, 1, r.cfg.Slots, true)
		}
	}
	return w, nil
}

// begin makes the first population: HEFT's ranks in both directions, then ranks with noise; without seeds, random
// orders.
func (r *rankSearch) begin(ctx context.Context) error {
	err := par.For(ctx, len(r.workers), len(r.now), func(k, i int) error {
		w, x := r.workers[k], r.now[i]
		src := r.stream(&w.pcg, w.src, -1, i)
		switch {
		case len(r.given) == 0:
			x.back = src.IntN(2) == 0
			w.shuffle(x, src)
		case i < 2:
			x.back = i == 1
		default:
			w.fresh(x, src)
		}
		return w.evaluate(ctx, x)
	})
	r.plans += len(r.now)
	r.lead(nil)
	return err
}

// lead finds the leader: one of the best; of several, one that is new.
func (r *rankSearch) lead(changed []bool) {
	r.leader = 0
	for i, x := range r.now {
		best := r.now[r.leader].makespan
		if x.makespan < best || x.makespan == best && changed != nil && changed[i] && !changed[r.leader] {
			r.leader = i
		}
	}
}

// iterate moves the population once. As in time space the leader rests, and |A| says how far a whale goes: from 1 on it
// looks elsewhere, and is drawn anew around the ranks; below it encircles the leader or, on the spiral, changes tasks
// that determine the leader's makespan. A whale that finds a longer plan than its own stays where it was.
func (r *rankSearch) iterate(ctx context.Context, k int) error {
	share := float64(k) / float64(r.cfg.Iterations)
	changed := make([]bool, len(r.now))
	err := par.For(ctx, len(r.workers), len(r.now), func(wk, i int) error {
		w, x := r.workers[wk], r.next[i]
		if i == r.leader {
			x.copyFrom(r.now[i])
			return nil
		}
		src := r.stream(&w.pcg, w.src, k, i)
		pull := dagplace.NewPull(share, src)
		switch r.cfg.Hopes {
		case "random":
			pull.Random = true
		case "leader":
			pull.Random, pull.Spiral = false, src.Float64() > 0.5
		}
		if w.policy != nil {
			target := r.now[r.leader]
			if pull.Random {
				target = r.now[src.IntN(len(r.now))]
			}
			pull.Hopes(w.hope, target.load, r.now[i].load, r.cfg.B, src)
		}
		if pull.Random {
			w.fresh(x, src)
		} else {
			x.copyFrom(r.now[r.leader])
			w.near(x, pull.Spiral, src)
		}
		if err := w.evaluate(ctx, x); err != nil {
			return err
		}
		if x.makespan > r.now[i].makespan {
			x.copyFrom(r.now[i])
		} else {
			changed[i] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.plans += len(r.now) - 1
	r.now, r.next = r.next, r.now
	r.lead(changed)
	return nil
}

// fresh draws x anew around the ranks, in either direction.
func (w *rankWorker) fresh(x *rankWhale, src *rand.Rand) {
	x.back = src.IntN(2) == 0
	least := min(mostNoise, 1/float64(len(x.noise)))
	sigma := least * math.Pow(mostNoise/least, src.Float64())
	left := 0.0
	if src.IntN(2) == 0 {
		left = mostLeft * src.Float64()
	}
	for i := range x.noise {
		x.noise[i], x.leave[i] = sigma*src.NormFloat64(), 0
		if left > 0 && src.Float64() < left {
			x.leave[i] = 1
		}
	}
}

// shuffle gives x priorities that have nothing to do with ranks.
func (w *rankWorker) shuffle(x *rankWhale, src *rand.Rand) {
	rank := w.views[0].rank
	if x.back {
		rank = w.views[1].rank
	}
	most := slices.Max(rank)
	for i, u := range rank {
		if u > 0 {
			x.noise[i] = math.Log(most * (1 - src.Float64()) / u)
		}
	}
}

// near changes x a little. On the spiral only tasks that determine the makespan change: their ranks rise, or they leave
// out other GPUs. Encircling changes ranks of any tasks. Half of the time it instead makes critical tasks leave out
// other GPUs; then ranks of any tasks change as well with probability 1/2, and so do those of critical tasks.
func (w *rankWorker) near(x *rankWhale, spiral bool, src *rand.Rand) {
	coin := func() bool { return src.IntN(2) == 0 }
	ranks, rise, leave := true, false, false
	switch {
	case spiral:
		ranks, rise = false, coin()
		leave = !rise
	case coin():
		ranks, rise, leave = coin(), coin(), true
	}
	if ranks {
		share, sigma := math.Pow(1/float64(len(x.noise)), src.Float64()), 2*mostNoise*math.Pow(0.1, src.Float64())
		for i := range x.noise {
			if src.Float64() < share {
				x.noise[i] += sigma * src.NormFloat64()
			}
		}
	}
	for more := 0; rise && more < mostMoved; more++ {
		x.noise[x.critical(src)] += raised * math.Abs(src.NormFloat64())
		rise = coin()
	}
	for more := 0; leave && more < mostMoved; more++ {
		i := x.critical(src)
		switch {
		case x.leave[i] > 0:
			x.leave[i] = 0
		case w.policy != nil && coin():
			x.leave[i] = asked
		default:
			for x.leave[i] = 1; x.leave[i] < deepest && src.IntN(3) == 0; {
				x.leave[i]++
			}
		}
		leave = coin()
	}
}

// critical draws a task that determines the makespan.
func (x *rankWhale) critical(src *rand.Rand) int32 { return x.chain[src.IntN(len(x.chain))] }

// evaluate plans x, and finds what determines its makespan.
func (w *rankWorker) evaluate(ctx context.Context, x *rankWhale) error {
	v, err := w.plan(ctx, x)
	if err != nil {
		return err
	}
	x.makespan = v.builder.Makespan()
	x.plan.CopyFrom(v.builder.Plan())
	x.chain = w.chain(x.chain[:0], v)
	if w.policy != nil {
		dagplace.PrefixLoads(v.q, v.order, x.plan.Proc, x.load, w.total)
	}
	return nil
}

// plan plans x: every task in the order of its priorities where it ends first, or where it leaves earlier ends out.
func (w *rankWorker) plan(ctx context.Context, x *rankWhale) (*view, error) {
	v := &w.views[0]
	if x.back {
		v = &w.views[1]
	}
	for i, u := range v.rank {
		v.priority[i] = u * math.Exp(x.noise[i])
	}
	v.queue.Reset(v.priority)
	for k := range v.order {
		v.order[k], _ = v.queue.Next()
	}
	b := v.builder
	b.Reset()
	for i := b.Task(); i >= 0; i = b.Task() {
		switch {
		case x.leave[i] == 0:
			b.Place(b.Earliest())
		case x.leave[i] != asked:
			b.Place(late(b.Finish(), int(x.leave[i])))
		default:
			g, err := w.choose(ctx, v, w.hope[i])
			if err != nil {
				return nil, err
			}
			b.Place(g)
		}
	}
	return v, ctx.Err()
}

// late returns the processor of the earliest finish but skip, or the last one that can run the task.
func late(finish []float64, skip int) int32 {
	var best [deepest + 1]int32
	var ends [deepest + 1]float64
	n := 0
	for g, f := range finish {
		if math.IsInf(f, 1) || n > skip && f >= ends[skip] {
			continue
		}
		if n <= skip {
			n++
		}
		at := n - 1
		for ; at > 0 && ends[at-1] > f; at-- {
			best[at], ends[at] = best[at-1], ends[at-1]
		}
		best[at], ends[at] = int32(g), f
	}
	return best[n-1]
}

// choose has the policy choose among the processors other than the one on which the next task would end first.
func (w *rankWorker) choose(ctx context.Context, v *view, hope float64) (int32, error) {
	b, earliest := v.builder, v.builder.Earliest()
	v.encoder.Encode(w.batch.Obs, w.batch.Mask, b, hope)
	slots, others := v.encoder.Slots(), false
	for k, g := range slots {
		if g == earliest {
			w.batch.Mask[k] = false
		}
		others = others || w.batch.Mask[k]
	}
	if !others {
		return earliest, nil
	}
	w.batch.Kind[0] = env.Mid
	if err := w.policy.Act(ctx, w.batch, w.actions, nil); err != nil {
		return 0, err
	}
	return slots[w.actions.Disc[0]], nil
}

// chain appends to dst the tasks that determine the makespan of v's plan: from the one that ends last, back to what
// each waited for, a parent before a task on the same processor.
func (w *rankWorker) chain(dst []int32, v *view) []int32 {
	p, eps := v.builder.Plan(), 1e-9*v.builder.Makespan()
	last := int32(0)
	for i := range w.by {
		w.by[i] = int32(i)
		if p.Finish[i] > p.Finish[last] {
			last = int32(i)
		}
	}
	slices.SortFunc(w.by, func(a, b int32) int {
		switch {
		case p.Proc[a] != p.Proc[b]:
			return int(p.Proc[a] - p.Proc[b])
		case p.Start[a] < p.Start[b]:
			return -1
		case p.Start[a] > p.Start[b]:
			return 1
		}
		return int(a - b)
	})
	for k, i := range w.by {
		w.at[i] = int32(k)
	}
	for i := last; i >= 0 && len(dst) < len(w.by); {
		dst = append(dst, i)
		next := int32(-1)
		for _, e := range v.q.Graph.Preds(i) {
			if math.Abs(p.Finish[e.Task]+v.q.Comm(e.Bytes, p.Proc[e.Task], p.Proc[i])-p.Start[i]) <= eps {
				next = e.Task
				break
			}
		}
		if k := w.at[i]; next < 0 && k > 0 {
			if j := w.by[k-1]; p.Proc[j] == p.Proc[i] && math.Abs(p.Finish[j]-p.Start[i]) <= eps {
				next = j
			}
		}
		if i = next; i >= 0 && p.Finish[i] <= eps {
			break // tasks of no length at the beginning
		}
	}
	return dst
}
