package heuristic

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"clustergym/env/cluster"
	"clustergym/internal/fault"
	"clustergym/traces"
)

// Config names one scheduler.
type Config struct {
	Order     string `yaml:"order"`     // see Orders
	Admission string `yaml:"admission"` // "strict", "skip", or "" for the order's own: skip if it preempts, else strict
	Placement string `yaml:"placement"` // see cluster.PlacementNames
	Estimates string `yaml:"estimates"` // what orders that rank by run time are told: exact, trace, noisy:SIGMA
	// Limits are the attained service times at which LAS demotes a job to the next queue.
	Limits []time.Duration `yaml:"limits,omitempty"`
	// Promote brings a job of las and las-2d back to the first queue, with nothing attained, when it has waited
	// since its last stop for this many times the time it has run (Tiresias' knob: 1, 2, 4, 8); 0 = never.
	Promote float64 `yaml:"promote,omitempty"`
	// Quantum is the service quantum of gittins-2d, in GPU-time.
	Quantum time.Duration `yaml:"quantum,omitempty"`
	// Service is the distribution of the jobs' GPU-times that gittins-2d knows; needed there only. It is not
	// changed.
	Service []time.Duration `yaml:"-"`
	// Align is how much tetris weighs alignment against shortness, 0 to 1.
	Align float64 `yaml:"align,omitempty"`
	Seed   uint64          `yaml:"seed,omitempty"` // of random orders and noisy estimates
}

// DefaultConfig is FIFO strict with first-fit. The limits of LAS are those of Tiresias' simulator (3250 and
// 7200 s).
func DefaultConfig() Config {
	return Config{
		Order: "fifo", Placement: "first-fit", Estimates: "exact",
		Limits: []time.Duration{3250 * time.Second, 7200 * time.Second}, Quantum: 3250 * time.Second, Align: 0.5,
	}
}

// Orders are the orders that New knows, in the order of their files' importance to readers.
func Orders() []string {
	names := make([]string, 0, len(rules))
	for _, r := range rules {
		names = append(names, r.name)
	}
	return names
}

// Preemptive says whether the order called name stops running jobs.
func Preemptive(name string) bool {
	i := slices.IndexFunc(rules, func(r rule) bool { return r.name == name })
	return i >= 0 && rules[i].preemptive
}

// Validate reports every fault.
func (c *Config) Validate() error {
	var l fault.List
	l.Add(slices.Contains(Orders(), c.Order), "order", c.Order, "one of "+strings.Join(Orders(), ", "))
	l.Add(slices.Contains([]string{"", "strict", "skip"}, c.Admission), "admission", c.Admission, "strict or skip")
	_, err := cluster.NewPlacement(c.Placement)
	l.Add(err == nil, "placement", c.Placement, "one of "+strings.Join(cluster.PlacementNames(), ", "))
	e, err := traces.ParseEstimates(c.Estimates)
	l.Add(err == nil && e.Mode != traces.EstimateNone, "estimates", c.Estimates, "exact, trace or noisy:SIGMA")
	ok := len(c.Limits) <= 7
	for i, d := range c.Limits {
		ok = ok && d > 0 && (i == 0 || d > c.Limits[i-1])
	}
	l.Add(ok, "limits", fmt.Sprint(c.Limits), "at most 7 growing times above 0s")
	l.Add(c.Promote >= 0 && c.Promote <= 1e6, "promote", c.Promote, "a factor of 0 (never) or more")
	l.Add(c.Quantum > 0, "quantum", c.Quantum, "a time above 0s")
	l.Add(c.Align >= 0 && c.Align <= 1, "align", c.Align, "0 to 1")
	return l.Err()
}

// Name is order and admission together, which is what peers' papers call by one name: "sjf+skip".
func (c *Config) Name() string { return c.Order + "+" + c.admission() }

func (c *Config) admission() string {
	switch {
	case c.Admission != "":
		return c.Admission
	case Preemptive(c.Order):
		return "skip"
	}
	return "strict"
}

// Estimating says whether the order called name ranks by run time, and so needs estimates.
func Estimating(name string) bool {
	i := slices.IndexFunc(rules, func(r rule) bool { return r.name == name })
	return i >= 0 && rules[i].estimates
}
