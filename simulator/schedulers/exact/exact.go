// Package exact implements the policy exact, which plays the best schedule of a workload that it knows beforehand.
package exact

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"clustergym/internal/fault"
	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers/place"
	"clustergym/simulator/schedulers/queue"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Policy plays the schedule with the least mean completion time among all that never stop a running job: the
// clairvoyant optimum, against which the gap of any other policy is measured. It knows every job beforehand and
// searches all schedules (search.go). It is therefore for small instances, some dozens of jobs at most, on a
// counter or on nodes of equal GPUs where every job fits whenever enough GPUs are free.
//
// If the search gives up, the best schedule found is played and Proven returns false.
type Policy struct {
	jobs  []traces.Job
	start []int64 // by position, relative to the first submit
	base  time.Duration
	done  bool
	shown error
	place place.Placement
	ok    bool // proven
}

var errNotAlike = errors.New(
	"exact plans on a counter, or on nodes of like GPUs for jobs that ask for whole GPUs and nothing else, with nothing " +
		"that slows jobs down")

// New returns the policy for jobs, which are the whole workload of the run and do not change. called is the name of p.
func New(jobs []traces.Job, p place.Placement, called string) (*Policy, error) {
	if !place.Anywhere(p) {
		return nil,
			fmt.Errorf(
				"exact: placement %s may refuse a job although enough GPUs are free; want one that does not, as first-fit", called)
	}
	if n := len(jobs); n > maxTasks {
		return nil, fault.Errorf("exact: %d jobs are too many to search all schedules, want at most %d (%s %d)", n, maxTasks,
			fault.Key("jobs"), maxTasks)
	}
	return &Policy{jobs: jobs, place: p}, nil
}

// Name returns exact.
func (p *Policy) Name() string { return "exact" }

// Reseed does nothing: there is nothing random.
func (p *Policy) Reseed(uint64) {}

// Proven reports whether the schedule that was played is optimal. It returns an error after a run on a cluster that
// exact cannot plan for.
func (p *Policy) Proven() (bool, error) { return p.ok, p.shown }

// Reset implements sim.Scheduler. It searches for the schedule.
func (p *Policy) Reset(v *sim.View) {
	p.place.Reset()
	p.shown = p.plan(v.Cluster())
}

func (p *Policy) plan(c *cluster.Cluster) error {
	if p.done {
		return nil
	}
	tasks := make([]task, 0, len(p.jobs))
	for i := range p.jobs {
		j := &p.jobs[i]
		r, ok := c.Request(j)
		if !ok {
			continue
		}
		if !c.Pool() && !(queue.Plain(&r) && r.VC == 0 && r.GPUs > 0) {
			return errNotAlike
		}
		if len(tasks) == 0 {
			p.base = j.Submit
		}
		tasks = append(tasks, task{int64(j.Submit - p.base), int64(j.Work), int64(r.GPUs * r.Milli)})
	}
	p.start, p.ok = searchExact(tasks, int64(c.GPUs())*1000, searchLimit)
	p.done = true
	return nil
}

// Decide implements sim.Scheduler. Every start of the schedule coincides with a submit or a finish, so there is a
// point for it. Jobs start in the order of the schedule. Of jobs that start together, the one that ends first goes
// first: a job without work ends at a point of its own at the same time, and the jobs that it holds back start there.
func (p *Policy) Decide(v *sim.View, _ *sim.Point, d *sim.Decision) error {
	if p.shown != nil {
		return p.shown
	}
	next, at, end := sim.Job(-1), time.Duration(0), time.Duration(0)
	for _, j := range v.Waiting() {
		pos := v.Pos(j)
		if pos >= len(p.start) {
			return errors.New("exact: the run has other jobs than those that were planned with")
		}
		start := p.base + time.Duration(p.start[pos])
		over := start + v.Trace(j).Work
		if start <= v.Now() && (next < 0 || cmp.Or(cmp.Compare(start, at), cmp.Compare(over, end), pos-v.Pos(next)) < 0) {
			next, at, end = j, start, over
		}
	}
	if next < 0 {
		return nil
	}
	var ok bool
	if d.GPUs, ok = p.place.Place(v, next, v.Request(next), v.Cluster(), d.GPUs); ok {
		d.Op, d.Job = sim.StartJob, next
		return nil
	}
	if at < v.Now() || !v.CanWait() {
		return errNotAlike
	}
	return nil
}
