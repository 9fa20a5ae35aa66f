package steer

import (
	"context"
	"errors"
	"os"
	"slices"

	"clustergym/env/jobselect"
	"clustergym/env/rollout"
	"clustergym/env/sched"
	"clustergym/internal/fault"
	"clustergym/lab/config"
	"clustergym/lab/envs"
	"clustergym/lab/rundir"
	"clustergym/ops/steer/mirror"
	"clustergym/simulator/cluster"
	"clustergym/simulator/policyname"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Start is a job that a policy starts, and where.
type Start struct {
	Job  sim.Job
	GPUs []cluster.GPU
}

// Policy is a policy in an environment that follows a cluster.
type Policy struct {
	Name string
	Env  sched.Steered
	// NoOrder says why the policy cannot order a queue; "" = it can.
	NoOrder string

	keeps  bool        // its decisions are carried out
	tells  bool        // Decisions are wanted
	hurry  func() bool // reports that there is no time for another decision; nil = there is any time
	cut    bool        // the last Starts has left out what there was no time for
	weighs weigher
	starts func(ctx context.Context, add func(d *sim.Decision)) error
	order  func(ctx context.Context, most int, starts []Start) (jobs []sim.Job, decided int, err error)
}

// late reports whether there is no time for another decision, after one at least.
func (p *Policy) late(decided int) bool { return decided > 0 && p.hurry != nil && p.hurry() }

// errEnough ends what a policy is asked for, with what it has decided so far.
var errEnough = errors.New("enough has been decided")

// Starts returns the jobs that the policy starts now, in order.
func (p *Policy) Starts(ctx context.Context) (all []Start, err error) {
	p.weighs.lines, p.cut = nil, false
	err = p.starts(ctx, func(d *sim.Decision) {
		if d.Op == sim.StartJob {
			all = append(all, Start{d.Job, slices.Clone(d.GPUs)})
		}
	})
	return all, err
}

// Order returns the waiting jobs. The first decided of them are in the order in which the policy prefers them: most of
// them, if there are so many and there is time; the others are in order of arrival. starts are what Starts has returned
// at this moment.
func (p *Policy) Order(ctx context.Context, most int, starts []Start) (jobs []sim.Job, decided int, err error) {
	if p.NoOrder != "" {
		return nil, 0, errors.New(p.NoOrder)
	}
	return p.order(ctx, most, starts)
}

// Choice says which policy is wanted, and what it may know.
type Choice struct {
	Policy string      // a run folder or checkpoint, RULE, RULE@slots, rollout:RULE
	Model  *envs.Model // in place of Policy
	// Config has the environment of a model, and of rules (its estimates and placement).
	Config  config.Config
	Budget  rollout.Budget // of rollouts
	History []traces.Job   // in order of submit; what predictors know when steering begins
	Visible int            // jobs that RULE@slots sees; 0 = as the environment has it
}

// Open returns the policy on a cluster. A policy that was trained for another one is refused with the reason.
func Open(c *Choice, l mirror.Layout) (*Policy, error) {
	w := &historyWindows{jobs: c.History}
	if c.Model != nil {
		return openModel(c, l, w)
	}
	n, err := Names().Find(c.Policy)
	switch {
	case err != nil:
		return nil, noPolicy(c.Policy, err)
	case n.Kind == policyname.Folder:
		return openCheckpoint(c, l, w)
	}
	return openRule(c, n, l, w)
}

// Names resolves the names of policies on a cluster.
func Names() *policyname.Resolver {
	return &policyname.Resolver{
		Folder: isFolder, Orders: schedulers.Orders(), Rules: schedulers.Orders(),
		Written: envs.Find(jobselect.V1).CheckWritten,
		Ahead:   []policyname.Ahead{policyname.Rollout},
		Check: func(n policyname.Name) error {
			if schedulers.Preemptive(n.Base) {
				return fault.Errorf(
					"%s stops running jobs, which steer never does; use an order such as sjf, or another of gymctl sim %s help", n,
					fault.Key("policy"))
			}
			return nil
		},
	}
}

// noPolicy says why a name is neither that of a run or checkpoint nor that of a rule.
func noPolicy(name string, err error) error {
	if _, err := os.Stat(name); err == nil { // it says what is missing there
		_, _, err := rundir.CheckpointDir(name)
		return err
	}
	if policyname.IsWritten(name) {
		return fault.Mistakef("policy: got %q, want %s%w", name, policyname.Compiles, err)
	}
	return fault.Mistakef("policy: got %q, want %s: there is no such folder, and %w", name, Names().Forms(), err)
}

// isFolder reports whether a policy's name is that of a run or checkpoint.
func isFolder(name string) bool {
	_, _, err := rundir.CheckpointDir(name)
	return err == nil
}

// Largest returns the largest gang that the policy is asked about.
func (p *Policy) Largest() int {
	if e, ok := p.Env.(*sched.Env); ok {
		return e.Parts().MaxGPUs
	}
	return 0
}
