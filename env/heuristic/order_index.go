package heuristic

import (
	"clustergym/env/heuristic/queue"
	"clustergym/env/heuristic/tuned"
	"clustergym/env/sim"
)

// index ranks by a sum of weighted traits (Index) and preempts. Ranks are computed anew at every point.
var index = rule{name: "index", preemptive: true, estimates: true, dynamic: true,
	prepare: func(s *Scheduler, v *sim.View) { s.state.(indexing).Look(v) },
	key:     func(s *Scheduler, v *sim.View, j sim.Job) float64 { return s.state.(indexing).Key(v, j) },
	state: func(s *Scheduler) stateful {
		x, ok := s.state.(indexing)
		if !ok {
			x = indexing{tuned.NewIndexer(s.cfg.Index, s.est)}
		}
		x.Reset(s.est.Seed)
		return x
	}}

// indexing is the state of index: what it has computed of jobs, which follows from the state of the run.
type indexing struct{ *tuned.Indexer }

func (x indexing) Submit(v *sim.View, j sim.Job) { x.Meet(v, j) }

func (indexing) Before(*sim.View, []queue.Entry) (until int64) { return 0 }

func (indexing) After(*sim.View, []queue.Entry, []queue.Entry) {}
