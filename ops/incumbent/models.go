package incumbent

import (
	"clustergym/internal/fault"
	"clustergym/simulator/cluster"
	"clustergym/simulator/policyname"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/schedulers/fairshare"
	"clustergym/simulator/sim"
)

// Model is a scheduler that the incumbent may be. What it knows of run times are the users' time limits.
type Model struct {
	Name string // of the policy
	Text string // the rule in words
	// Limits says what the model makes of the limits.
	Limits Limits
	// Placement is where the model puts jobs; "" = as all others.
	Placement string
	// Apart says that jobs keep to the nodes of their virtual cluster (partition). It is false of models that pool them.
	Apart bool

	// vcs are the virtual clusters that a model with Apart takes from the record, where the cluster has none.
	vcs  []cluster.VCSpec
	fair *fairshare.Priority // of models with fair share
	own  *Ranking            // what a model ranks by that no policy of the simulator does; nil = Name says it
}

// Limits says what a model of the incumbent makes of the users' time limits.
type Limits uint8

// What may be made of time limits.
const (
	AsRecorded Limits = iota
	// Alike takes all limits to be as long as the longest: that of a cluster whose users do not set any, so that only jobs
	// that leave the first in line enough GPUs overtake it.
	Alike
)

// Simple returns the models that need nothing but jobs and their limits, the simplest first.
func Simple() []Model {
	return []Model{
		{Name: "fifo+strict", Text: "first come, first served"},
		{Name: "fifo+strict+easy", Text: "first come; what does not delay the first in line overtakes (easy)"},
		{Name: Timely, Text: "first come; what ends before the first in line could start overtakes"},
		{Name: "fifo+strict+conservative", Text: "first come; what delays nobody in line overtakes (conservative)"},
		{Name: "fifo+skip", Text: "first come; what does not fit is passed over"},
		{Name: "smallest+skip", Text: "fewest GPUs first"},
		{Name: "largest+strict+easy", Text: "most GPUs first, with back-filling"},
		{Name: "largest+skip", Text: "most GPUs first"},
		{Name: "sjf+strict+easy", Text: "shortest limit first, with back-filling"},
		{Name: "sjf+skip", Text: "shortest limit first"},
		{Name: "area+skip", Text: "smallest GPUs x limit first"},
		{Name: "multifactor+strict+easy", Text: "age and size (Slurm's multi-factor), with back-filling"},
		{Name: "drf+skip", Text: "the user with the fewest GPUs first"},
		{Name: "lcfs+skip", Text: "last come, first served"},
	}
}

// same reports whether two models differ in nothing but the placement.
func (m *Model) same(o *Model) bool {
	return m.Name == o.Name && m.Text == o.Text && m.Limits == o.Limits && m.Apart == o.Apart
}

// Reserves reports whether a model makes a reservation for every waiting job, which takes long where many wait.
func (m *Model) Reserves() bool {
	return m.own == nil && policyname.Of(m.Name).Backfill == "conservative"
}

// NeedsLimits reports whether a model looks at time limits.
func (m *Model) NeedsLimits() bool { return m.own != nil || NeedsRunTimes(m.Name) }

// NeedsRunTimes reports whether a policy over the whole queue looks at run times, or what stands for them.
func NeedsRunTimes(name string) bool {
	n := policyname.Of(name)
	return name == Timely || schedulers.Estimating(n.Base) || n.Backfill != "" && n.Backfill != "none"
}

// ByLimits are the estimates of a rule that looks at time limits alone.
var ByLimits = sim.Estimates{Mode: sim.EstimateTrace}

// Replayed reports whether a model exists in replays alone, and so is the name of no policy.
func (m *Model) Replayed() bool { return m.own != nil || m.Name == Timely }

// Rule returns the scheduler of a rule. One that back-fills may begin in the middle of a run, too: until then it has
// expected the running jobs to end when their limits, or forecasts, say so.
func Rule(name, placement string, known sim.Estimates) (sim.Scheduler, error) {
	return ruled(name, placement, known, nil)
}

// ruled is Rule with the weights of a policy with fair share.
func ruled(name, placement string, known sim.Estimates, fair *fairshare.Priority) (sim.Scheduler, error) {
	if name == Timely {
		p, err := cluster.NewPlacement(placement)
		return &timely{place: p}, err
	}
	h, err := schedulers.Parse(name)
	if err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	h.Placement, h.Estimates = placement, known
	if fair != nil {
		h.Priority = *fair
	}
	s, err := schedulers.New(h)
	if err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	return s, nil
}
