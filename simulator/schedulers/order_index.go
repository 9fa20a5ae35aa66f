package schedulers

import (
	"clustergym/simulator/schedulers/queue"
	"clustergym/simulator/schedulers/tuned"
	"clustergym/simulator/sim"
)

// index ranks by a sum of weighted traits (Index) and preempts. Ranks are computed anew at every point.
var index = rule{name: "index", preemptive: true, estimates: true, dynamic: true,
	prepare: func(in *inputs, v *sim.View) { in.state.(indexing).Look(v) },
	key:     func(in *inputs, v *sim.View, j sim.Job) float64 { return in.state.(indexing).Key(v, j) },
	state: func(in *inputs) stateful {
		x, ok := in.state.(indexing)
		if !ok {
			x = indexing{tuned.NewIndexer(in.cfg.Index, in.est)}
		}
		x.Reset(in.est.Seed)
		return x
	}}

// indexing is the state of index: what it has computed of jobs, which follows from the state of the run.
type indexing struct{ *tuned.Indexer }

func (x indexing) Submit(v *sim.View, j sim.Job) { x.Meet(v, j) }

func (indexing) Before(*sim.View, []queue.Entry) (until int64) { return 0 }

func (indexing) After(*sim.View, []queue.Entry, []queue.Entry) {}
