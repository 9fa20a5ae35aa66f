package simulate

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/peer/dally"
	"clustergym/peer/lwf"
	"clustergym/simulator/sim"
)

// PeerConfig configures a peer's own machine, which runs instead of the simulator unless Name is "".
type PeerConfig struct {
	Name string `yaml:"name"` // one of PeerNames
	// Net is the cost of communication: slow (rings of 600 GB/s in a machine, 25 in a rack, 10 between racks), one (no
	// cost), or a network of the table Factors.
	Net string `yaml:"net"`
	// Factors is the path of a table of factors by network, model and shape; "" = none.
	Factors string `yaml:"factors"`
	// Timers say how many leases Dally's jobs decline a rack and the network, as "5/10"; "auto" tunes both.
	Timers      string        `yaml:"timers"`
	Lease       time.Duration `yaml:"lease"`
	Granularity int64         `yaml:"granularity"` // iterations of a block, for each GPU
	History     int           `yaml:"history"`     // leases that the tuner looks back on
}

// defaultPeerConfig returns a configuration that runs the simulator. Its other settings are those of Dally's authors.
func defaultPeerConfig() PeerConfig {
	return PeerConfig{Net: "slow", Timers: "auto", Lease: time.Hour, Granularity: 10000, History: 24}
}

// PeerNames returns the names of the machines that can run.
func PeerNames() []string {
	return []string{"dally-waiting-only", "dally-published", "lwf-pure", "lwf-orig", "lwf-pureall"}
}

// PeerPolicies returns the names of a machine's schedulers. For the machine of LWF's authors these are examples: it
// runs every name that lwf.Config.SetAlgorithm reads.
func PeerPolicies(name string) []string {
	if lwfQuestion(name) != "" {
		return lwfPolicies()
	}
	return dally.Policies()
}

// notDally adds a fault for each of Dally's settings that does not have its default, as c's machine has no such
// settings.
func (c *PeerConfig) notDally(l *fault.List) {
	d := defaultPeerConfig()
	for _, k := range []struct {
		key       string
		got, want any
	}{
		{"net", c.Net, d.Net}, {"factors", c.Factors, d.Factors}, {"timers", c.Timers, d.Timers}, {"lease", c.Lease, d.Lease},
		{"granularity", c.Granularity, d.Granularity}, {"history", c.History, d.History},
	} {
		l.Add(k.got == k.want, "peer."+k.key, k.got, "it left out: the machine "+c.Name+" has no such setting")
	}
}

// Validate returns an error that names every fault of c, or nil.
func (c *PeerConfig) Validate() error {
	var l fault.List
	l.Add(c.Name == "" || slices.Contains(PeerNames(), c.Name), "name", c.Name, nearest.OneOf(c.Name, PeerNames()))
	l.Add(c.Net != "", "net", c.Net, "slow, one, or a network of the table of factors")
	_, _, err := c.timers()
	l.Add(err == nil, "timers", c.Timers, "auto, or two numbers of leases, the rack's and the network's, as 5/10")
	l.Add(c.Lease >= time.Second, "lease", c.Lease, "a time of 1s or more")
	l.Add(c.Granularity >= 1 && c.Granularity <= 1e12, "granularity", c.Granularity, "iterations, 1 or more")
	l.Add(c.History >= 0 && c.History <= 1e6, "history", c.History, "a number of leases, 0 or more")
	return l.Err()
}

// timers returns the two timers in leases, or dally.Auto for both.
func (c *PeerConfig) timers() (rack, network float64, err error) {
	if c.Timers == "auto" {
		return dally.Auto, dally.Auto, nil
	}
	a, b, ok := strings.Cut(c.Timers, "/")
	rack, e := strconv.ParseFloat(a, 64)
	network, f := strconv.ParseFloat(b, 64)
	if !ok || e != nil || f != nil || !(rack >= 0) || !(network >= 0) || rack > 1e9 || network > 1e9 {
		return 0, 0, errors.New("no timers")
	}
	return rack, network, nil
}

// validatePeer adds the faults of the peer's machine, and of keys that the machine does not support.
func (c *Config) validatePeer(l *fault.List) {
	l.Join("peer", c.Peer.Validate())
	if !slices.Contains(PeerNames(), c.Peer.Name) {
		return
	}
	for i, p := range c.Policies {
		key := fmt.Sprintf("policies[%d]", i)
		if lwfQuestion(c.Peer.Name) != "" {
			rules := lwf.DefaultConfig()
			err := rules.SetAlgorithm(p)
			l.Add(err == nil, key, p,
				"ORDER-PLACE-TASKS-THRESHOLD-ADAPTIVE, as "+lwfPolicies()[0]+nearest.Meant(p, lwfPolicies()))
			continue
		}
		known := dally.Policies()
		l.Add(slices.Contains(known, p), key, p,
			"one of "+strings.Join(known, ", ")+", which the machine "+c.Peer.Name+" knows"+nearest.Meant(p, known))
	}
	if lwfQuestion(c.Peer.Name) != "" {
		c.Peer.notDally(l)
	}
	l.Add(c.Horizon == 0, "horizon", c.Horizon, "0s: the machine "+c.Peer.Name+" runs until all jobs have ended")
	l.Add(c.Warmup == 0, "warmup", c.Warmup, "0: the machine "+c.Peer.Name+" counts all jobs")
	l.Add(c.Tail == 0, "tail", c.Tail, "0: the machine "+c.Peer.Name+" counts all jobs")
	est := c.Policy.Estimates
	l.Add(est.IsZero() || est.Mode == sim.EstimateExact, "policy.estimates", est.String(),
		"exact: the machine "+c.Peer.Name+" has no predictors")
	l.Add(c.Interference == "", "interference", c.Interference, "nothing: the machine "+c.Peer.Name+" knows none")
}
