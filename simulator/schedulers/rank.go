package schedulers

import (
	"fmt"

	spelling "clustergym/internal/nearest"
	"clustergym/simulator/policyname"
	"clustergym/simulator/sim"
)

// Ranker ranks single jobs as an order does, for policies that choose among the jobs that an environment shows them.
// Not safe for concurrent use.
type Ranker struct {
	rule rule
	in   inputs
}

// Ranking returns the orders that NewRanker knows: those whose keys follow from a job, what is known of its run time,
// and the clock.
func Ranking() []string {
	var names []string
	for _, r := range rules {
		if r.ranks() {
			names = append(names, r.name)
		}
	}
	return names
}

func (r *rule) ranks() bool {
	return !r.preemptive && !r.passOver && !r.everyStart && r.prepare == nil && r.state == nil &&
		r.name != random.name && (r.written == nil || !r.written.Holds())
}

// NewRanker returns a ranker by order, with estimates of run times as in Config.
func NewRanker(order string, est sim.Estimates) (*Ranker, error) {
	r, own, ok := named(order)
	switch {
	case !ok && policyname.IsWritten(order):
		_, err := writtenRule(order)
		return nil, err
	case ok && r.written != nil && !r.ranks():
		return nil, fmt.Errorf("order %q ranks no single jobs: it stops jobs, holds jobs back, or looks at what waits and runs",
			order)
	case !ok || own || !r.ranks():
		return nil, fmt.Errorf("order %q ranks no single jobs, want %s", order, spelling.OneOf(order, Ranking()))
	case r.beyond(est):
		return nil, fmt.Errorf("estimates: got %q, want %s", est, beyondWanted(order))
	}
	return &Ranker{r, inputs{est: est}}, nil
}

// Err returns the first error of Key since the last Err: the key of a written order was not a number.
func (r *Ranker) Err() error {
	if r.rule.written == nil {
		return nil
	}
	defer r.rule.written.Reset()
	return r.rule.written.Err()
}

// Reseed changes the seed of noisy estimates.
func (r *Ranker) Reseed(seed uint64) { r.in.est.Seed = seed }

// Key returns the rank of j now. The job with the least key goes first; ties go by position in the trace.
func (r *Ranker) Key(v *sim.View, j sim.Job) float64 { return r.rule.key(&r.in, v, j) }
