package heuristic

import (
	"fmt"

	"clustergym/env/cluster"
	"clustergym/env/sim"
)

// exactPlan is a preemptive pass where a count of GPUs is not enough: for shares, types, cores, memory, virtual
// clusters and placements that refuse what fits. It walks down the merged ranks over three copies of the cluster:
//
//	high  what the chosen hold that have been met so far, all of them of higher rank; everything else is free
//	kept  the same and, as far as there is room, the running jobs still to come that a plain count would keep
//	full  the same and, as far as there is room, all running jobs still to come, in rank order
//
// A running job keeps its place if its GPUs are still free in high, else it is stopped. A waiting job is placed on
// full, where nobody has to be stopped for it, else on kept, else on high beside as many running jobs as leave it a
// place, the last in rank giving way first. If one has no place, strict ends the pass of
// its virtual cluster, and whoever runs there with a lower rank is stopped; skip steps over it. So under skip
// no job is stopped but for one that starts in its place; and where a count is enough the choice is that of the count,
// since what the count keeps has room beside what it lets start.
type exactPlan struct {
	of               *cluster.Cluster // what the copies are of
	high, kept, full *cluster.Cluster
	guess            []entry       // what the count chooses
	run              []runner      // by place in Scheduler.running
	spans            []span        // by place in Scheduler.chosen; empty where the count was enough
	spots            []cluster.GPU // of the jobs that start
	dst, other       []cluster.GPU // scratch
}

// runner is what the plan notes of a running job.
type runner struct {
	keep       bool // chosen by the count
	kept, full bool // has its GPUs in that copy
}

type span struct{ from, to int }

// copyOf is a cluster built as c is: dst again if it is one already.
func copyOf(c, dst *cluster.Cluster, same bool) *cluster.Cluster {
	if same && dst != nil {
		return dst
	}
	k, err := cluster.New(c.Spec())
	if err != nil {
		panic(fmt.Sprintf("heuristic: a cluster cannot be built twice: %v", err))
	}
	return k
}

// make turns the choice of the counted walk into one that can be placed.
func (x *exactPlan) make(s *Scheduler, v *sim.View) {
	x.begin(s, v)
	r := 0
	for {
		l, w := s.best(v, x.high)
		switch {
		case r < len(s.running) && (w == none || s.running[r].before(l.top(w))):
			e := s.running[r]
			r++
			own := &s.lanes[s.laneOf(v, e.job)]
			if !own.over && take(x.high, v.Request(e.job), v.GPUs(e.job)) {
				s.chosen, x.spans = append(s.chosen, e), append(x.spans, span{})
				if n := &x.run[r-1]; !n.full || !n.kept && !take(x.kept, v.Request(e.job), v.GPUs(e.job)) {
					x.rebuild(s, v, r)
				}
				continue
			}
			s.stopped = append(s.stopped, e)
			own.over = own.over || s.strict
			if n := &x.run[r-1]; n.kept || n.full {
				x.rebuild(s, v, r)
			}
		case w == none:
			return
		case x.placed(s, v, r, l.top(w).job):
			n := len(x.spots)
			x.spots = append(x.spots, x.dst...)
			s.chosen, x.spans = append(s.chosen, s.pop(l, w)), append(x.spans, span{n, len(x.spots)})
		case s.strict:
			l.over = true
		default:
			l.close(w)
		}
	}
}

// begin makes the copies and takes the counted walk back.
func (x *exactPlan) begin(s *Scheduler, v *sim.View) {
	c := v.Cluster()
	same := x.of == c
	x.high, x.kept, x.full, x.of = copyOf(c, x.high, same), copyOf(c, x.kept, same), copyOf(c, x.full, same), c
	x.guess = append(x.guess[:0], s.chosen...)
	s.chosen, s.stopped = s.chosen[:0], s.stopped[:0]
	for _, e := range x.guess {
		if v.State(e.job) == sim.Waiting {
			s.push(v, e)
		}
	}
	for i := range s.lanes {
		s.lanes[i].over = false
		s.lanes[i].open(c, &s.freed)
	}
	x.run, x.spans, x.spots = x.run[:0], x.spans[:0], x.spots[:0]
	k := 0
	for _, e := range s.running {
		for k < len(x.guess) && v.State(x.guess[k].job) != sim.Running {
			k++
		}
		keep := k < len(x.guess) && x.guess[k].job == e.job // both are in rank order
		if keep {
			k++
		}
		x.run = append(x.run, runner{keep: keep})
	}
	x.high.CopyFrom(c)
	for _, e := range s.running {
		x.high.Release(v.Request(e.job), v.GPUs(e.job))
	}
	x.rebuild(s, v, 0)
}

// rebuild makes kept and full anew; r is the first running job still to come.
func (x *exactPlan) rebuild(s *Scheduler, v *sim.View, r int) {
	x.kept.CopyFrom(x.high)
	x.full.CopyFrom(x.high)
	for i := r; i < len(s.running); i++ {
		j := s.running[i].job
		n := &x.run[i]
		n.kept = n.keep && take(x.kept, v.Request(j), v.GPUs(j))
		n.full = take(x.full, v.Request(j), v.GPUs(j))
	}
}

// placed finds a place for j, which waits and comes before the running job r; it is left in x.dst.
func (x *exactPlan) placed(s *Scheduler, v *sim.View, r int, j sim.Job) bool {
	req := v.Request(j)
	var ok bool
	if x.dst, ok = s.place.Place(v, j, x.full, x.dst); ok {
		x.put(v, x.high, req)
		if !take(x.full, req, x.dst) || !take(x.kept, req, x.dst) {
			x.rebuild(s, v, r)
		}
		return true
	}
	if x.dst, ok = s.place.Place(v, j, x.kept, x.dst); !ok {
		if x.dst, ok = s.place.Place(v, j, x.high, x.dst); !ok {
			return false
		}
		x.spare(s, v, r, j)
	}
	x.put(v, x.high, req)
	x.rebuild(s, v, r)
	return true
}

// spare places j, which has a place on high but not beside all running jobs from r on, beside as many of these as
// halving finds, in rank order.
func (x *exactPlan) spare(s *Scheduler, v *sim.View, r int, j sim.Job) {
	some, none := 0, len(s.running)-r // beside so many it has a place; beside so many it has not
	for none-some > 1 {
		mid := (some + none) / 2
		x.full.CopyFrom(x.high)
		for i := r; i < r+mid; i++ {
			take(x.full, v.Request(s.running[i].job), v.GPUs(s.running[i].job))
		}
		gpus, ok := s.place.Place(v, j, x.full, x.other)
		if x.other = gpus; !ok {
			none = mid
			continue
		}
		some = mid
		x.dst, x.other = x.other, x.dst
	}
}

func (x *exactPlan) put(v *sim.View, on *cluster.Cluster, r *cluster.Request) {
	if !take(on, r, x.dst) {
		panic(fmt.Sprintf("heuristic: at %v a job for %d GPUs was placed on %v, which are not free", v.Now(), r.GPUs, x.dst))
	}
}

// take allocates gpus if they are free.
func take(c *cluster.Cluster, r *cluster.Request, gpus []cluster.GPU) bool {
	for _, g := range gpus { // first without making an error that nobody reads
		if g >= 0 && c.GPUFree(g) < r.Milli {
			return false
		}
	}
	return c.Allocate(r, gpus) == nil
}
