package dally

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"clustergym/experiments/study"
	peer "clustergym/peer/dally"
	"clustergym/simulator/cluster"
	"clustergym/simulator/metrics"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// The policies, by their names in the tables.
const (
	tunedTimers      = "Dally, tuned timers"
	fixedTimers      = "Dally, timers 5/10"
	acceptAtOnce     = "accept at once"
	waitForNearest   = "wait for the nearest tier"
	longGiveWay      = "the same, long gangs give way"
	lasTimers        = "LAS order, tuned timers"
	lasNearest       = "LAS order, nearest tier"
	delayLAS         = "delay-las"
	delayTogether    = "delay-las, leases end together"
	tiresiasLease    = "Tiresias, leases"
	tiresiasTogether = "Tiresias, leases end together"
	tiresiasLAS      = "Tiresias, las-2d"
	lasSkewed        = "las-2d, skewed models consolidated"
	gandivaHours     = "Gandiva, turns of an hour"
	gandiva          = "Gandiva"
)

// timerPolicies returns the policies that differ only in their timers.
func timerPolicies() []string {
	return []string{tunedTimers, fixedTimers, acceptAtOnce, waitForNearest}
}

// lasPolicies returns the policies of delay scheduling that ask the job with the least attained GPU-time first.
func lasPolicies() []string { return []string{lasTimers, lasNearest, delayLAS, delayTogether} }

// everyPolicy returns all policies of this simulator, in the order of the tables.
func everyPolicy() []string {
	return slices.Concat(timerPolicies(), lasPolicies(),
		[]string{tiresiasLease, tiresiasTogether, tiresiasLAS, lasSkewed, gandiva})
}

// costly returns the policies of the table overheads for what a stop costs. Gandiva's turns of a minute end before a
// gang of many GPUs has started if that takes longer than a second for each GPU, so it plays with turns of an hour
// then.
func costly(overhead string) []string {
	list := []string{tunedTimers, lasTimers, lasNearest, delayLAS, tiresiasLease, tiresiasTogether, tiresiasLAS, lasSkewed,
		gandivaHours}
	if cost, err := costOf(overhead, tunedTimers); err == nil && cost <= time.Second {
		list = append(list, gandiva)
	}
	return list
}

// leasing returns the policies of the table leases: those that have leases.
func leasing() []string {
	return []string{tunedTimers, lasTimers, delayLAS, tiresiasLease, tiresiasTogether}
}

// waits are the times for which policies with these names wait in the order dally, in place of tuned ones.
var waits = map[string][2]float64{
	fixedTimers: {5, 10}, acceptAtOnce: {0, 0}, waitForNearest: {1e6, 1e6}, lasNearest: {1e6, 1e6},
}

// orders are the orders of the other policies.
var orders = map[string]string{
	delayLAS: "delay-las", delayTogether: "delay-las", tiresiasLease: "tiresias-lease", tiresiasTogether: "tiresias-lease",
	tiresiasLAS: "las-2d", lasSkewed: "las-2d", gandivaHours: "gandiva", gandiva: "gandiva",
}

// policyConfig returns the configuration of the policy with this name.
func policyConfig(name string) schedulers.Config {
	h := schedulers.DefaultConfig()
	h.Order, h.Placement = cmp.Or(orders[name], "dally"), "rack"
	if w, ok := waits[name]; ok {
		h.Auto, h.RackWait, h.NetworkWait = false, w[0], w[1]
	}
	switch name {
	case lasTimers, lasNearest:
		h.Ask = "las"
	case delayTogether, tiresiasTogether:
		h.Together = true
	case lasSkewed:
		h.Placement = "rack-skewed"
	case gandivaHours:
		h.Round = time.Hour
	}
	return h
}

// played holds the outcome of a workload.
type played struct{ jct, makespan, comm float64 } // hours; comm includes what stops cost

// rows returns the outcome as rows of a table.
func (p played) rows(table string, labels map[string]string) []study.Row {
	row := study.RowOf(table, labels)
	return []study.Row{row("jct_h", p.jct), row("makespan_h", p.makespan), row("comm_h", p.comm)}
}

// authorsCost is the overhead of the authors' program: a gang that is stopped or moved loses a second for each of its
// GPUs, unless Gandiva moves it.
const authorsCost = "authors"

// costOf returns the time that a stop costs a policy for each GPU. overhead is authorsCost or a time.
func costOf(overhead, policy string) (time.Duration, error) {
	switch {
	case overhead != authorsCost:
		return time.ParseDuration(overhead)
	case policy == gandiva || policy == gandivaHours:
		return 0, nil
	}
	return time.Second, nil
}

// rules are what holds for all policies of a run.
type rules struct {
	overhead string        // authorsCost or a time for each GPU
	lease    time.Duration // 0 = an hour
}

// playHere runs jobs under a policy in this simulator. Gangs communicate in rings, and a job's recorded run time counts
// as its compute time.
func playHere(ctx context.Context, jobs []traces.Job, spec cluster.Spec, policy string, by rules) (played, error) {
	h := policyConfig(policy)
	if by.lease > 0 {
		h.Lease = by.lease
	}
	sch, err := schedulers.New(h)
	if err != nil {
		return played{}, err
	}
	c := sim.DefaultConfig()
	if c.Overhead.StopPerGPU, err = costOf(by.overhead, policy); err != nil {
		return played{}, err
	}
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
	return outcomeOf(&m), nil
}

// outcomeOf returns the outcome of the jobs that m has seen to their ends.
func outcomeOf(m *metrics.Collector) played {
	sum := m.Summary(0, 0)
	p := played{jct: sum.JCT.Mean / 3600, makespan: sum.Makespan / 3600}
	for j := range m.Jobs() {
		p.comm += (j.Run - j.Work).Hours()
	}
	return p
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
