package woa

import (
	"context"
	"math"
	"math/rand/v2"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/env/dagplace"
	"clustergym/simulator/dag"
)

// worker is the state of one goroutine.
type worker struct {
	s     *search
	pcg   rand.PCG
	src   *rand.Rand
	total []float64 // by processor
	hope  []float64

	list  *dag.Evaluator // without gaps
	moves *dag.Evaluator
	times []dag.Timeline
	plan  *dag.Plan
	ready []float64

	// Of the generator policy.
	policy  agents.Policy
	builder *dagplace.Builder
	encoder *dagplace.Encoder
	batch   *env.Batch
	actions *env.Actions
}

func (s *search) newWorker(hooks Hooks) (*worker, error) {
	w := &worker{
		s: s, total: make([]float64, s.m), hope: make([]float64, s.n), list: dag.NewEvaluator(s.q, s.order),
		times: make([]dag.Timeline, s.m), plan: dag.NewPlan(s.n), ready: make([]float64, s.m),
	}
	w.src = rand.New(&w.pcg)
	if s.cfg.Moves > 0 {
		w.moves = dag.NewEvaluator(s.q, s.order)
	}
	if s.cfg.Generator != "policy" {
		return w, nil
	}
	p, err := hooks.Policy()
	if err != nil {
		return nil, err
	}
	w.policy = p
	w.builder = dagplace.NewBuilder(s.q, s.order, s.cfg.Insert)
	w.encoder = dagplace.NewEncoder(s.q, s.rank, 1, s.cfg.Slots, true)
	spec, err := PolicySpec(s.cfg.Slots)
	if err != nil {
		return nil, err
	}
	w.batch, w.actions = env.NewBatch(spec, 1), env.NewActions(spec, 1)
	return w, nil
}

// PolicySpec returns the spec of the environment whose observations a policy receives.
func PolicySpec(slots int) (env.Spec, error) {
	c := dagplace.DefaultConfig()
	c.Slots, c.Scale = slots, "local"
	e, err := dagplace.New(c)
	if err != nil {
		return env.Spec{}, err
	}
	return e.Spec(), e.Close()
}

// evaluate returns the makespan of a plan given by its processors.
func (w *worker) evaluate(proc []int32) float64 {
	if !w.s.cfg.Insert {
		return w.list.Makespan(proc)
	}
	return w.timed(proc).Makespan
}

// timed returns a plan with its times. It belongs to the worker.
func (w *worker) timed(proc []int32) *dag.Plan {
	p, q := w.plan, w.s.q
	if !w.s.cfg.Insert {
		w.list.Makespan(proc)
		w.list.Plan(p)
		return p
	}
	for g := range w.times {
		w.times[g].Reset(q.Instant())
	}
	p.Makespan = 0
	for _, i := range w.s.order {
		g := proc[i]
		ready := 0.0
		for _, e := range q.Graph.Preds(i) {
			ready = max(ready, p.Finish[e.Task]+q.Comm(e.Bytes, p.Proc[e.Task], g))
		}
		x := q.Exec(i, g)
		at := w.times[g].Take(ready, x, true)
		p.Proc[i], p.Start[i], p.Finish[i] = g, at, at+x
		p.Makespan = max(p.Makespan, at+x)
	}
	return p
}

// generate makes x a plan near w.hope, and evaluates it.
func (w *worker) generate(ctx context.Context, x *whale, unit, explore float64, src *rand.Rand) error {
	if w.s.cfg.Generator == "greedy" {
		w.greedy(x.proc)
		x.makespan = w.evaluate(x.proc)
		return ctx.Err()
	}
	b := w.builder
	b.Reset()
	w.encoder.Unit(unit)
	for i := b.Task(); i >= 0; i = b.Task() {
		w.encoder.Encode(w.batch.Obs, w.batch.Mask, b, w.hope[i])
		slots := w.encoder.Slots()
		k := -1
		if explore > 0 && src.Float64() < explore {
			k = src.IntN(len(slots))
			if !w.batch.Mask[k] {
				k = -1
			}
		}
		if k < 0 {
			w.batch.Kind[0] = env.Mid
			if err := w.policy.Act(ctx, w.batch, w.actions, nil); err != nil {
				return err
			}
			k = int(w.actions.Disc[0])
		}
		b.Place(slots[k])
	}
	copy(x.proc, b.Plan().Proc)
	x.makespan = b.Makespan()
	return nil
}

// greedy puts every task where the load comes nearest to its hope (Generate of the published code).
func (w *worker) greedy(proc []int32) {
	load := w.total
	clear(load)
	for _, i := range w.s.order {
		best, least, hope := -1, math.Inf(1), w.hope[i]
		for g, x := range w.s.q.Row(i) {
			if d := math.Abs(hope - (load[g] + x)); d < least {
				best, least = g, d
			}
		}
		proc[i] = int32(best)
		load[best] += w.s.q.Exec(i, int32(best))
	}
}

// critical draws a task uniformly from a chain that determines the makespan: from the task that ends last, back to
// the task that each waited for.
func (w *worker) critical(e *dag.Evaluator, src *rand.Rand) int32 {
	order, finish := e.Order(), e.Finish()
	last := order[0]
	for _, i := range order {
		if finish[i] > finish[last] {
			last = i
		}
	}
	at, pick, seen := last, last, 0
	for at >= 0 {
		if seen++; src.IntN(seen) == 0 {
			pick = at
		}
		at = e.Blocker(at)
	}
	return pick
}

// earliest returns a processor for task i other than old: mostly the one where it ends first after the tasks already
// there, sometimes a random one.
func (w *worker) earliest(e *dag.Evaluator, i, old int32, src *rand.Rand) int32 {
	q := w.s.q
	if src.IntN(4) == 0 {
		if g := int32(src.IntN(w.s.m)); !math.IsInf(q.Exec(i, g), 1) {
			return g
		}
	}
	q.Arrivals(w.ready, i, e.Proc(), e.Finish())
	best, least := old, math.Inf(1)
	for g, x := range q.Row(i) {
		if int32(g) == old {
			continue
		}
		// Random noise gives the second and third best a chance.
		if f := (w.ready[g] + x) * (1 + 0.2*src.Float64()); f < least {
			best, least = int32(g), f
		}
	}
	return best
}
