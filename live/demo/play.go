package demo

import (
	"time"

	"clustergym/live"
	"clustergym/traces"
)

// Played is a job as a demo's scheduler ran it.
type Played struct {
	traces.Job
	State      live.State
	Start, End time.Duration // on the clock of Submit; 0 before it
	Nodes      []string      // in the order in which they were chosen
}

// Play lets a demo's scheduler run a workload from its first submit to its last one. It returns the jobs that have a
// place on the nodes, in order of submit, as they are at the last submit.
func Play(jobs []traces.Job, nodes []live.Node, backfill string) ([]Played, LeftOut, error) {
	p, err := newPast(jobs, nodes, backfill, 0)
	if err != nil {
		return nil, LeftOut{}, err
	}
	m := newMachine(nodes, backfill, 0)
	for i := range p.jobs {
		m.future = append(m.future, newJob(&p.jobs[i]))
	}
	all := m.future
	m.advance(p.end)
	played := make([]Played, len(all))
	for i, j := range all {
		played[i] = Played{Job: p.jobs[i], State: j.State, Start: j.start, End: j.end, Nodes: j.where}
	}
	return played, p.leftOut, nil
}
