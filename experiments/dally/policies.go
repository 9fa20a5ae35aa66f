package dally

import (
	"context"
	"fmt"

	"clustergym/env/cluster"
	"clustergym/env/heuristic"
	"clustergym/env/metrics"
	peer "clustergym/env/peer/dally"
	"clustergym/env/sim"
	"clustergym/experiments/study"
	"clustergym/traces"
)

// The policies, by their names in the tables.
const (
	tunedTimers    = "Dally, tuned timers"
	fixedTimers    = "Dally, timers 5/10"
	acceptAtOnce   = "accept at once"
	waitForNearest = "wait for the nearest tier"
	longGiveWay    = "the same, long gangs give way"
	tiresiasLease  = "Tiresias, leases"
	tiresiasLAS    = "Tiresias, las-2d"
	gandiva        = "Gandiva"
)

// timerPolicies returns the policies that differ only in their timers.
func timerPolicies() []string {
	return []string{tunedTimers, fixedTimers, acceptAtOnce, waitForNearest}
}

// policyConfig returns the configuration of the policy with this name.
func policyConfig(name string) heuristic.Config {
	h := heuristic.DefaultConfig()
	h.Placement = "rack"
	switch name {
	case tunedTimers:
		h.Order = "dally"
	case fixedTimers:
		h.Order, h.Auto, h.RackWait, h.NetworkWait = "dally", false, 5, 10
	case acceptAtOnce:
		h.Order, h.Auto, h.RackWait, h.NetworkWait = "dally", false, 0, 0
	case waitForNearest:
		h.Order, h.Auto, h.RackWait, h.NetworkWait = "dally", false, 1e6, 1e6
	case tiresiasLease:
		h.Order = "tiresias-lease"
	case tiresiasLAS:
		h.Order = "las-2d"
	case gandiva:
		h.Order = "gandiva"
	}
	return h
}

// played holds the outcome of a workload.
type played struct{ jct, makespan, comm float64 } // hours

// rows returns the outcome as rows of a table.
func (p played) rows(table string, labels map[string]string) []study.Row {
	return []study.Row{
		{Table: table, Labels: labels, Metric: "jct_h", Value: p.jct}, {Table: table, Labels: labels, Metric: "makespan_h", Value: p.makespan},
		{Table: table, Labels: labels, Metric: "comm_h", Value: p.comm},
	}
}

// playHere runs jobs under a policy in this simulator. Gangs communicate in rings, and a job's recorded run time counts as
// its compute time.
func playHere(ctx context.Context, jobs []traces.Job, spec cluster.Spec, policy string) (played, error) {
	sch, err := heuristic.New(policyConfig(policy))
	if err != nil {
		return played{}, err
	}
	c := sim.DefaultConfig()
	c.Comm, c.Ring.Ideal, c.Ring.PerGPU = "ring", true, true
	s, err := sim.New(c, spec)
	if err != nil {
		return played{}, err
	}
	if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
		return played{}, err
	}
	var m metrics.Collector
	if err := sim.Run(ctx, s, sch, &m); err != nil {
		return played{}, fmt.Errorf("%s: %w", policy, err)
	}
	if m.Len() != len(jobs) {
		return played{}, fmt.Errorf("%s: %d of %d jobs finished", policy, m.Len(), len(jobs))
	}
	sum := m.Summary(0, 0)
	p := played{jct: sum.JCT.Mean / 3600, makespan: sum.Makespan / 3600}
	for j := range m.Jobs() {
		p.comm += (j.Run - j.Work).Hours()
	}
	return p, nil
}

// playPeer runs jobs under a policy on the authors' machine.
func playPeer(ctx context.Context, jobs []peer.Job, machine, policy string) (played, error) {
	c := peer.DefaultConfig()
	switch policy {
	case fixedTimers:
		c.RackWait, c.NetworkWait = 5, 10
	case "Tiresias":
		c.Policy = "tiresias"
	case "Gandiva":
		c.Policy = "gandiva"
	}
	if machine == machines()[2] {
		c.Variant = "published"
	}
	r, err := peer.Run(ctx, jobs, peer.Slow(), c, nil)
	if err != nil {
		return played{}, err
	}
	t := r.Totals(jobs)
	return played{t.MeanJCT / 3600, t.Makespan / 3600, t.CommTime / 3600}, nil
}
