package schedulers

import (
	"slices"

	"clustergym/simulator/policyname"
	"clustergym/simulator/schedulers/delay"
	"clustergym/simulator/schedulers/exact"
	"clustergym/simulator/schedulers/place"
	"clustergym/simulator/schedulers/rounds"
	"clustergym/simulator/schedulers/tuned"
	"clustergym/simulator/sim"
)

// Policy is a scheduler with a name, whose draws follow a seed.
type Policy interface {
	sim.Scheduler
	// Name is the combination that papers call by one name: order and admission, and how it back-fills.
	Name() string
	// Reseed changes the seed, from the next Reset on.
	Reseed(seed uint64)
}

// policy is a scheduler that is more than an order with an admission: one that works in rounds, for example, or
// searches.
type policy struct {
	name       string
	preemptive bool // stops running jobs
	estimates  bool // looks at run times
	stateless  bool // looks at nothing but the state of the run
	// make gets a valid configuration and its placement. It must ignore Admission and Backfill.
	make func(cfg Config, p place.Placement) (Policy, error)
}

// policies returns the policies that New knows besides rules. (It is a function so that constructors may call code
// that looks a policy up.)
func policies() []policy {
	inRounds := func(cfg Config, p place.Placement) (Policy, error) {
		return rounds.New(rounds.Setup{Name: cfg.Order, Turns: cfg.Turns, Place: p, Est: cfg.estimates(),
			Asks: cfg.Estimating()})
	}
	leases := func(cfg Config, _ place.Placement) (Policy, error) { return delay.New(cfg.Order, cfg.Leases) }
	return []policy{
		{name: "hold", estimates: true, stateless: true, make: func(cfg Config, p place.Placement) (Policy, error) {
			return tuned.NewHolder(cfg.Hold, cfg.estimates(), p), nil
		}},
		{name: "gavel-las", preemptive: true, make: inRounds},
		{name: "gavel-ftf", preemptive: true, estimates: true, make: inRounds},
		{name: "themis", preemptive: true, estimates: true, make: inRounds},
		{name: "optimus", preemptive: true, estimates: true, make: inRounds},
		{name: "gandiva", preemptive: true, make: inRounds},
		{name: "dally", preemptive: true, make: leases},
		{name: "delay-las", preemptive: true, make: leases},
		{name: "tiresias-lease", preemptive: true, make: leases},
		{name: "exact", make: func(cfg Config, p place.Placement) (Policy,
			error) {
			return exact.New(cfg.Workload, p, cfg.Placement)
		}},
	}
}

// New returns the policy that cfg names. It treats each virtual cluster that owns nodes as a cluster of its own.
func New(cfg Config) (Policy, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	from := newScheduler
	for _, p := range policies() {
		if p.name == cfg.Order {
			from = p.make
		}
	}
	build := func(cfg Config) (Policy, error) {
		p, err := newPlacement(cfg)
		if err != nil {
			return nil, err
		}
		return from(cfg, p)
	}
	p, err := build(cfg)
	if err != nil {
		return nil, err
	}
	if cfg.Clairvoyant() { // it plans no virtual clusters
		return p, nil
	}
	return &divided{Policy: p, cfg: cfg, make: build, stops: Preemptive(cfg.Order)}, nil
}

// NewDelay returns the policy that cfg names: dally, delay-las or tiresias-lease.
func NewDelay(cfg Config) (*delay.Delay, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return delay.New(cfg.Order, cfg.Leases)
}

// Orders returns the orders and other policies that New knows, the most important to readers first.
func Orders() []string {
	var names []string
	for _, r := range rules {
		names = append(names, r.name)
	}
	for _, p := range policies() {
		names = append(names, p.name)
	}
	return names
}

// named returns the order or policy called name; own is true for a policy that is not an order.
func named(name string) (r rule, own, ok bool) {
	if policyname.IsWritten(name) {
		r, err := writtenRule(name)
		return r, false, err == nil
	}
	if i := slices.IndexFunc(rules, func(r rule) bool { return r.name == name }); i >= 0 {
		return rules[i], false, true
	}
	all := policies()
	if i := slices.IndexFunc(all, func(p policy) bool { return p.name == name }); i >= 0 {
		return rule{name: name, preemptive: all[i].preemptive, estimates: all[i].estimates}, true, true
	}
	return r, false, false
}

// Preemptive reports whether the order or policy called name stops running jobs.
func Preemptive(name string) bool {
	r, _, _ := named(name)
	return r.preemptive
}

// Estimating reports whether the order or policy called name uses run times and so needs estimates. Back-filling
// needs them too (Config.Estimating).
func Estimating(name string) bool {
	r, _, _ := named(name)
	return r.estimates
}
