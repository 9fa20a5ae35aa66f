package topdrl

import (
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/simulator/policyname"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
)

// A schedule has a selector, which chooses the next job, and a placement, which chooses its GPUs. variants are the
// placements that the first agent is played with, beside closest-b.
var (
	selectors  = []string{"fifo", "sjf"}
	placements = []string{"first-available", "random", "load-balance", "closest-b"}
	variants   = []string{"closest-a", "closest-c", "optimal", "first-available"}
)

// Policies that the tables name in columns.
const (
	stronger  = "sjf+skip + closest-b" // the strongest of the precursor's kind
	stops     = "srsf+skip"            // what policies that stop jobs are compared with
	best      = "hindsight"            // the best of the noisy schedules
	bestOrder = "hindsight, orders"    // the best of those that start whatever fits
)

// rule is a schedule with a name in the tables.
type rule struct {
	name     string
	config   schedulers.Config
	forecast bool // it knows forecasts alone
}

// random reports whether the rule draws at random.
func (r *rule) random() bool { return r.config.Placement == "random" }

// newRule returns a selector with a placement, with the name that the tables give it.
func newRule(selector, admission, placement string) rule {
	name := selector
	if admission == "skip" {
		name += "+skip"
	}
	c := schedulers.DefaultConfig()
	c.Order, c.Admission, c.Placement, c.Estimates = selector, admission, placement, sim.Estimates{Mode: sim.EstimateExact}
	return rule{name: name + " + " + placement, config: c}
}

// sixBaselines returns baselines of the precursor. They stand for the paper's six, which the paper does not name.
func sixBaselines() []rule {
	var rules []rule
	for _, sel := range selectors {
		for _, pl := range placements[:3] {
			rules = append(rules, newRule(sel, "strict", pl))
		}
	}
	return rules
}

// skipping returns the baselines that pass over what does not fit.
func skipping() []rule {
	rules := []rule{newRule("fifo", "skip", "closest-b")}
	for _, pl := range placements {
		rules = append(rules, newRule("sjf", "skip", pl))
	}
	return rules
}

// others are rules beyond the precursor's, by the names of gymctl eval --policies, all with closest-b. srtf and srsf
// stop running jobs, which costs nothing in stages without costs.
var others = []string{"area+skip", "srtf+skip", "srsf+skip"}

// stoppers are the rules of stages in which a stop has a cost.
var stoppers = []string{"area+skip", "srtf+skip", "srsf+skip", "las-2d-prompt+skip"}

// stoppersInSlots are those that act through the agent's slots.
var stoppersInSlots = policyname.Rules("sjf", "srtf", "srsf", "las-2d")

// foreseen are the rules that are also played with the shipped predictor's forecasts.
var foreseen = []string{"sjf+skip", "area+skip"}

// forecasting ends the names of policies that know forecasts alone.
const forecasting = ", forecast"

// rules returns the schedules over the whole queue of a stage.
func (st *stage) rules(cfg *config.Config) ([]rule, error) {
	var rules []rule
	if st.Preempt {
		rules = append(rules, newRule("sjf", "skip", "closest-b"))
	} else {
		rules = append(rules, sixBaselines()...)
		rules = append(rules, skipping()...)
	}
	names := others
	if st.Preempt {
		names = stoppers
	}
	for _, name := range names {
		r, err := cfg.Rival(name)
		if err != nil {
			return nil, err
		}
		rules = append(rules, rule{name: name, config: r.Sched})
	}
	if st.Preempt {
		return rules, nil
	}
	for _, name := range foreseen {
		r, err := cfg.Rival(name)
		if err != nil {
			return nil, err
		}
		r.Sched.Estimates = sim.Estimates{Mode: sim.EstimateHistory}
		rules = append(rules, rule{name: name + forecasting, config: r.Sched, forecast: true})
	}
	return rules, nil
}

// inScenario returns w with the settings of cfg's environment.
func inScenario(w *arena.Scenario, cfg *config.Config) *arena.Scenario {
	own := *w
	own.Settings = cfg.Env.Settings
	return &own
}
