package schedulers

import (
	"clustergym/simulator/schedulers/expression"
	"clustergym/simulator/schedulers/queue"
	"clustergym/simulator/sim"
)

// rule is one order. Jobs with the least key go first; ties go to the earlier position in the trace.
type rule struct {
	name       string
	preemptive bool
	estimates  bool // key looks at run times
	// dynamic keys depend on the time or on what is free, so waiting jobs are ranked anew in every pass.
	dynamic bool
	// everyStart also ranks waiting jobs anew after every start, because the keys depend on what is taken.
	everyStart bool
	// classes returns the classes of jobs that always have equal keys, so that ranking anew means ranking these; nil if
	// every job has a key of its own.
	classes func(in *inputs) queue.Classifier
	// prepare is called before waiting jobs are ranked anew; nil if the key needs no preparation.
	prepare func(in *inputs, v *sim.View)
	// passOver leaves the job behind each one that starts out of the rest of the pass, and is strict.
	passOver bool
	key      func(in *inputs, v *sim.View, j sim.Job) float64
	// state is called at the beginning of each run; nil if the key needs no state.
	state func(in *inputs) stateful
	// written is the order that a user has written out; nil for those of rules.
	written *expression.Order
}

// inputs is what keys follow from besides the job and the run.
type inputs struct {
	cfg   Config
	est   sim.Estimates
	use   queue.Usage // for orders that look at what users and jobs hold
	state stateful    // of stateful orders
}

// stateful is the state of an order that depends on a job's history.
type stateful interface {
	Submit(v *sim.View, j sim.Job)
	// Before is called before a pass ranks the running jobs; it returns when the ranks will next change by
	// themselves, 0 if never.
	Before(v *sim.View, running []queue.Entry) (until int64)
	// After is called at the end of a pass with the jobs that run, in rank order, and those that were stopped, in
	// rank order; the latter are queued afterwards.
	After(v *sim.View, chosen, stopped []queue.Entry)
}

// riser is a stateful order whose waiting jobs change rank by themselves.
type riser interface {
	// Rise is called at the beginning of a pass. If it returns true, waiting jobs are ranked anew.
	Rise(v *sim.View) bool
}

// steady is a stateful order with dynamic keys that knows when they change: only with what it learns, and those of
// running jobs as time passes.
type steady interface {
	stateful
	// Ranked reports whether the waiting jobs' keys still hold, computed when they were queued. It is called at the
	// beginning of a pass; if it returns false, they are ranked anew. fresh is true if they must be.
	Ranked(fresh bool) bool
	// Still reports whether a pass would decide nothing, if no job has come or gone since the last one: jobs with the
	// same request are in the same line, and counting what is free decides which run.
	Still(q *queue.Queue, v *sim.View) bool
	// Wakes returns what before would return.
	Wakes(v *sim.View) (until int64)
}

// learner is a stateful order that learns from finished jobs.
type learner interface {
	Learn(v *sim.View, j sim.Job)
}

var rules = []rule{
	fifo, sjf, srtf, srsf, las, las2D, las2DPrompt, gittins, gittins2D, index,
	ljf, lcfs, lpf, smallest, smallestPreempt, largest, area, qssf, largestArea,
	wfp3, unicep, f1, f2, f3, f4, multifactor, fairShare, wfp3Peer, unicepPeer,
	drf, packer, tetris,
	random,
}
