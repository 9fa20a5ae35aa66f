package delay

import (
	"slices"
	"time"

	"clustergym/internal/fault"
	spelling "clustergym/internal/nearest"
)

// Leases are the settings of the policies of this package.
type Leases struct {
	// RackWait is the number of leases for which a job of dally declines GPUs that are not inside a node, NetworkWait
	// the number for which it declines GPUs that are not inside a rack; 0 = never. They apply if Auto, which tunes
	// both, is off.
	RackWait    float64       `yaml:"rack_wait"`
	NetworkWait float64       `yaml:"nw_wait"`
	Auto        bool          `yaml:"auto"`
	Lease       time.Duration `yaml:"lease,omitempty"` // how long dally, delay-las and tiresias-lease grant GPUs for
	History     int           `yaml:"history"`         // number of past leases that dally's tuner looks at
	// Together makes leases end together, at whole multiples of Lease: the first one of a job is shorter.
	Together bool `yaml:"together,omitempty"`
	// Ask is the order in which dally asks jobs: "nw" (or ""), the network-sensitive one of its paper, or "las", the least
	// attained GPU-time first.
	Ask string `yaml:"ask,omitempty"`
	// Accept is the share of the rate at its best place that a job of delay-las waits for. It halves with every Patience
	// leases that the job has waited; Patience 0 = it never does.
	Accept   float64 `yaml:"accept"`
	Patience float64 `yaml:"patience"`
}

// DefaultLeases returns the settings of a configuration that names none.
func DefaultLeases() Leases {
	return Leases{RackWait: 5, NetworkWait: 10, Auto: true, Lease: time.Hour, History: 24, Accept: 0.9, Patience: 48}
}

// Check adds the faults of l to f.
func (l *Leases) Check(f *fault.List) {
	f.Add(l.RackWait >= 0 && l.RackWait <= 1e6, "rack_wait", l.RackWait, "a number of leases, 0 to 1e6")
	f.Add(l.NetworkWait >= 0 && l.NetworkWait <= 1e6, "nw_wait", l.NetworkWait, "a number of leases, 0 to 1e6")
	f.Add(l.Lease == 0 || l.Lease >= time.Second, "lease", l.Lease, "a time of 1s or more, or 0s for an hour")
	f.Add(l.History >= 0 && l.History <= 1e6, "history", l.History, "a number of leases, 0 to 1e6")
	f.Add(l.Ask == "" || slices.Contains(Asks(), l.Ask), "ask", l.Ask, spelling.OneOf(l.Ask, Asks()))
	f.Add(l.Accept >= 0 && l.Accept <= 1, "accept", l.Accept, "a share of the best rate, 0 to 1")
	f.Add(l.Patience >= 0 && l.Patience <= 1e6, "patience", l.Patience, "a number of leases, 0 (never) to 1e6")
}

// Asks returns the orders in which dally can ask jobs: the values of Leases.Ask.
func Asks() []string { return []string{askNetwork, askLAS} }

// The values of Leases.Ask.
const (
	askNetwork = "nw"
	askLAS     = "las"
)
