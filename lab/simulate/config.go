package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"clustergym/env/rollout"
	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/lab/workload"
	"clustergym/simulator/policyname"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Config describes the simulation of one workload on one cluster under one or more policies.
type Config struct {
	Trace   workload.TraceConfig `yaml:"trace"`
	Cluster string               `yaml:"cluster"` // see workload.ClusterSpec
	// Policies are names of package schedulers: an order or other policy, with its admission and back-filling after it if
	// they are not those below: "sjf", "sjf+skip", "fifo+strict+easy". Some can look ahead: "rollout:sjf+skip".
	Policies []string `yaml:"policies"`
	// of policies that name none: strict, skip, commit, or "" = skip for policies that preempt, strict for others
	Admission string `yaml:"admission"`
	Backfill  string `yaml:"backfill"` // of policies that name none: none, easy or conservative
	// Policy holds everything else that applies to all policies: placement, estimates, limits, …. Its order, admission,
	// back-filling and seed are ignored. Estimates that are unset are trace if every job comes with a requested time, else
	// history: what a cluster has.
	Policy    schedulers.Config `yaml:"policy"`
	Simulator sim.Config        `yaml:"simulator"` // its seed is ignored, and its horizon must be 0: use Horizon
	// Interference says how jobs that share hardware slow each other down: one of workload.InterferenceForms, "" = not at
	// all.
	Interference string `yaml:"interference"`
	// Service is the distribution of the jobs' GPU-times that gittins-2d assumes: a file of times, such as Tiresias'
	// sample; "workload" = the times of the workload itself, known beforehand; "" = the times of the jobs that have
	// finished.
	Service string `yaml:"service"`
	// Rollout says how policies of the form rollout:POLICY look ahead.
	Rollout rollout.Config `yaml:"rollout"`
	Seed    uint64         `yaml:"seed"` // of random orders, noisy estimates, failures and model mixes

	Horizon time.Duration `yaml:"horizon"` // end the run this long after the first submit; 0 = never
	Warmup  int           `yaml:"warmup"`  // jobs at the beginning that run but are not counted
	Tail    int           `yaml:"tail"`    // jobs at the end that run but are not counted
	// FailRefused makes jobs that can never fit the cluster a mistake. Otherwise they are left out, counted and named.
	FailRefused bool `yaml:"fail_refused"`
	// Stream says whether the trace is read during the simulation, once for each policy, instead of being held in memory:
	// "auto" (for large files), "on" or "off".
	Stream string `yaml:"stream"`
	// Peer runs the workload on a peer's own machine instead of the simulator. Of the other keys it then uses trace,
	// cluster, policies, seed and fail_refused; horizon, warmup, tail and interference must have no value.
	Peer PeerConfig `yaml:"peer"`
}

// DefaultConfig returns a configuration of FIFO, strict, with first-fit, for a generated workload on the cluster
// philly-192. Its estimates are unset.
func DefaultConfig() Config {
	h := schedulers.DefaultConfig()
	h.Estimates = sim.Estimates{}
	return Config{
		Trace: workload.DefaultTraceConfig(), Cluster: "philly-192", Policies: []string{h.Order},
		Policy: h, Simulator: sim.DefaultConfig(), Rollout: rollout.DefaultConfig(), Seed: 1, Stream: "auto",
		Peer: defaultPeerConfig(),
	}
}

// Validate returns an error that names every fault of c, or nil. It does not look at files.
func (c *Config) Validate() error {
	var l fault.List
	l.Join("trace", c.Trace.Validate())
	l.Add(c.Cluster != "", "cluster", c.Cluster, workload.ClusterForms)
	l.Add(len(c.Policies) > 0, "policies", "none", "one or more of "+strings.Join(schedulers.Orders(), ", "))
	if c.Peer.Name != "" {
		c.validatePeer(&l)
		return l.Err()
	}
	admission := c.Admission == "" || slices.Contains(policyname.Admissions(), c.Admission)
	l.Add(admission, "admission", c.Admission, nearest.OneOf(c.Admission, policyname.Admissions()))
	backfill := c.Backfill == "" || slices.Contains(policyname.Backfills(), c.Backfill)
	l.Add(backfill, "backfill", c.Backfill, nearest.OneOf(c.Backfill, policyname.Backfills()))
	blinded, blind, names := c.Policy.Estimates.Mode == sim.EstimateNone, false, rollout.Names()
	for i, p := range c.Policies {
		key := fmt.Sprintf("policies[%d]", i)
		n, err := names.Find(p)
		if err != nil {
			l.Add(false, key, policyname.Excerpt(p), names.Wanted(p, err))
			continue
		}
		// Faults of this policy's admission and back-filling are reported at the key that set them.
		own, filled, looks := n.Admission != "", n.Backfill != "", n.Ahead != policyname.None
		if admission && !own {
			n.Admission = c.Admission
		}
		if backfill && !filled {
			n.Backfill = c.Backfill
		}
		h := schedulers.Named(n)
		if blinded && !blind {
			h.Estimates = c.Policy.Estimates // a fault with those policies that ask for run times; one of them is enough
		}
		for _, f := range fault.All(h.Validate()) {
			g := *f
			if f.Key == "estimates" {
				g.Key, blind = "policy.estimates", true
			}
			if own && f.Key == "admission" || filled && f.Key == "backfill" {
				g.Key, g.Value = key, p
			}
			l.Join("", &g)
		}
		if h.Validate() != nil || !looks {
			continue
		}
		switch err := rollout.CheckBase(&h); {
		case blinded && !blind:
			blind = true
			l.Add(false, "policy.estimates", c.Policy.Estimates.String(),
				"trace, history, gbdt, exact or noisy:SIGMA, as "+p+" plays jobs to their end")
		case err != nil && !blinded:
			l.Add(false, key, p, "a base that can be played on: "+err.Error())
		}
	}
	l.Join("rollout", c.Rollout.Validate())
	// The rest of the policies' configuration, with an order and an admission that are valid.
	h := c.Policy
	d := schedulers.DefaultConfig()
	h.Order, h.Admission, h.Backfill = d.Order, "", d.Backfill
	if h.Estimates.IsZero() {
		h.Estimates = d.Estimates
	}
	l.Join("policy", h.Validate())
	l.Join("simulator", c.Simulator.Validate())
	l.Add(c.Simulator.Horizon == 0, "simulator.horizon", c.Simulator.Horizon,
		"nothing here; horizon counts from the first submit")
	l.Add(c.Horizon >= 0 && c.Horizon <= traces.MaxTime, "horizon", c.Horizon,
		"a time of at most 146 years, or 0s for none")
	l.Add(c.Warmup >= 0, "warmup", c.Warmup, "a number of jobs, 0 or more")
	l.Add(c.Tail >= 0, "tail", c.Tail, "a number of jobs, 0 or more")
	l.Add(slices.Contains([]string{"", "auto", "on", "off"}, c.Stream), "stream", c.Stream,
		"auto, on or off"+nearest.Meant(c.Stream, []string{"auto", "off", "on"}))
	return l.Err()
}

// Heuristic returns the configuration of the scheduler that name, one of c.Policies, stands for.
func (c *Config) Heuristic(name string) schedulers.Config {
	h := c.Policy
	h.Seed = c.Seed
	n := policyname.Of(name)
	n.Admission, n.Backfill = cmp.Or(n.Admission, c.Admission), cmp.Or(n.Backfill, c.Backfill)
	h.Take(n)
	h.Admission = cmp.Or(n.Admission, policyname.Of(h.Name()).Admission) // the default of the order is in its full name
	return h
}
