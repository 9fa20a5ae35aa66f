package schedulers

import (
	"fmt"
	"math"

	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers/place"
	"clustergym/simulator/schedulers/queue"
	"clustergym/simulator/sim"
)

// exactPlan is a preemptive pass for cases where counting GPUs is not enough: shares, types, cores, memory, and
// placements that refuse what fits. It walks down the merged ranks over three copies of the cluster:
//
//	high  what the chosen hold that have been met so far, all of them of higher rank; everything else is free
//	kept  the same and, as far as there is room, the running jobs still to come that a plain count would keep
//	full  the same and, as far as there is room, all running jobs still to come, in rank order
//
// A running job keeps its place if its GPUs are still free in high; otherwise it is stopped. A waiting job is placed
// on full, where no job has to be stopped for it; else on kept; else on high beside as many running jobs as leave it
// a place. Of these, the jobs of its own virtual cluster for which it leaves no quota give way first, then the last in
// rank. If it has no place, strict ends the pass of its virtual cluster
// and stops every job with a lower rank that runs there; skip steps over it. Under skip, therefore, a job is stopped
// only for one that starts in its place. If counting is enough, the choice equals that of the count, because what the
// count keeps has room beside what it lets start.
type exactPlan struct {
	of               *cluster.Cluster // the cluster that was copied
	high, kept, full *cluster.Cluster
	guess            []queue.Entry // what the counted walk chose
	run              []runner      // by place in Scheduler.running
	spans            []span        // by place in Scheduler.chosen; empty if the count was enough
	spots            []cluster.GPU // GPUs of the jobs that start
	displaced        []queue.Entry // jobs that stop because others take their GPUs
	beside           []queue.Entry // scratch: running jobs that may stay
	dst, other       []cluster.GPU // scratch
}

// runner is what the plan notes about a running job.
type runner struct {
	keep       bool // chosen by the count
	kept, full bool // it has its GPUs in that copy
}

type span struct{ from, to int }

// make turns the choice of the counted walk into one that can be placed.
func (x *exactPlan) make(s *Scheduler, v *sim.View) {
	x.begin(s, v)
	r := 0
	for {
		l, w := s.best(v, x.high)
		if w != queue.None && s.heldBack(v, l.Top(w).Job, len(v.Running())+len(s.chosen) > 0) {
			s.holdBack(v, l, w)
			continue
		}
		switch {
		case r < len(s.running) && (w == queue.None || s.running[r].Before(l.Top(w))):
			e := s.running[r]
			r++
			own := &s.queues[s.queueOf(v, e.Job)]
			if !own.over && place.Take(x.high, v.Request(e.Job), v.GPUs(e.Job)) {
				s.chosen, x.spans = append(s.chosen, e), append(x.spans, span{})
				if n := &x.run[r-1]; !n.full || !n.kept && !place.Take(x.kept, v.Request(e.Job), v.GPUs(e.Job)) {
					x.rebuild(s, v, r)
				}
				continue
			}
			s.stopped = append(s.stopped, e)
			if !own.over {
				x.displaced = append(x.displaced, e)
			}
			own.over = own.over || s.strict
			if n := &x.run[r-1]; n.kept || n.full {
				x.rebuild(s, v, r)
			}
		case w == queue.None:
			return
		case x.placed(s, v, r, l.Top(w).Job):
			n := len(x.spots)
			x.spots = append(x.spots, x.dst...)
			s.chosen, x.spans = append(s.chosen, s.pop(l, w)), append(x.spans, span{n, len(x.spots)})
		case s.strict:
			l.over = true
		default:
			l.Close(w)
		}
	}
}

// begin makes the copies and undoes the counted walk.
func (x *exactPlan) begin(s *Scheduler, v *sim.View) {
	c := v.Cluster()
	same := x.of == c
	x.high, x.kept, x.full, x.of = place.CopyOf(c, x.high,
		same), place.CopyOf(c, x.kept, same), place.CopyOf(c, x.full, same), c
	x.guess = append(x.guess[:0], s.chosen...)
	s.chosen, s.stopped = s.chosen[:0], s.stopped[:0]
	for _, e := range x.guess {
		if v.State(e.Job) == sim.Waiting {
			s.push(v, e)
		}
	}
	for i := range s.queues {
		s.queues[i].over = false
		s.queues[i].Open(c, &s.freed)
	}
	x.run, x.spans, x.spots = x.run[:0], x.spans[:0], x.spots[:0]
	k := 0
	for _, e := range s.running {
		for k < len(x.guess) && v.State(x.guess[k].Job) != sim.Running {
			k++
		}
		keep := k < len(x.guess) && x.guess[k].Job == e.Job // both are in rank order
		if keep {
			k++
		}
		x.run = append(x.run, runner{keep: keep})
	}
	x.high.CopyFrom(c)
	for _, e := range s.running {
		x.high.Release(v.Request(e.Job), v.GPUs(e.Job))
	}
	x.rebuild(s, v, 0)
}

// rebuild computes kept and full anew. r is the first running job still to come.
func (x *exactPlan) rebuild(s *Scheduler, v *sim.View, r int) {
	x.kept.CopyFrom(x.high)
	x.full.CopyFrom(x.high)
	for i := r; i < len(s.running); i++ {
		j := s.running[i].Job
		n := &x.run[i]
		n.kept = n.keep && place.Take(x.kept, v.Request(j), v.GPUs(j))
		n.full = place.Take(x.full, v.Request(j), v.GPUs(j))
	}
}

// placed finds a place for j, which waits and ranks before the running job r, and leaves it in x.dst.
func (x *exactPlan) placed(s *Scheduler, v *sim.View, r int, j sim.Job) bool {
	req := v.Request(j)
	var ok bool
	if x.dst, ok = s.place.Place(v, j, v.Request(j), x.full, x.dst); ok {
		x.put(v, x.high, req)
		if !place.Take(x.full, req, x.dst) || !place.Take(x.kept, req, x.dst) {
			x.rebuild(s, v, r)
		}
		return true
	}
	if x.dst, ok = s.place.Place(v, j, v.Request(j), x.kept, x.dst); !ok {
		if x.dst, ok = s.place.Place(v, j, v.Request(j), x.high, x.dst); !ok {
			return false
		}
		x.spare(s, v, r, j)
	}
	x.put(v, x.high, req)
	x.rebuild(s, v, r)
	return true
}

// spare places j, which has a place on high but not beside all running jobs from r on. It keeps as many of these, in
// rank order, as bisection finds to leave j a place. Those that its quota has no room for beside j are out of the
// question whatever the others do, so others are not given up for them.
func (x *exactPlan) spare(s *Scheduler, v *sim.View, r int, j sim.Job) {
	vc := v.Request(j).VC
	room := x.high.VCRoom(vc)
	if room != math.MaxInt {
		room -= queue.Milli(v, j)
	}
	x.beside = x.beside[:0]
	for _, e := range s.running[r:] {
		if n := queue.Milli(v, e.Job); room != math.MaxInt && v.Request(e.Job).VC == vc {
			if n > room {
				continue
			}
			room -= n
		}
		x.beside = append(x.beside, e)
	}
	// j has a place beside the first some of them. It has none beside the first none, or none is one past all.
	some, none := 0, len(x.beside)
	if len(x.beside) < len(s.running)-r {
		none++
	}
	for none-some > 1 {
		mid := (some + none) / 2
		x.full.CopyFrom(x.high)
		for _, e := range x.beside[:mid] {
			place.Take(x.full, v.Request(e.Job), v.GPUs(e.Job))
		}
		gpus, ok := s.place.Place(v, j, v.Request(j), x.full, x.other)
		if x.other = gpus; !ok {
			none = mid
			continue
		}
		some = mid
		x.dst, x.other = x.other, x.dst
	}
}

func (x *exactPlan) put(v *sim.View, on *cluster.Cluster, r *cluster.Request) {
	if !place.Take(on, r, x.dst) {
		panic(fmt.Sprintf("heuristic: at %v a job for %d GPUs was placed on %v, which are not free", v.Now(), r.GPUs, x.dst))
	}
}
