package external

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"clustergym/bridge/wire"
	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/lab/simulate"
	"clustergym/lab/workload"
	"clustergym/simulator/schedulers/place"
	"clustergym/simulator/sim"
)

// Args are what a client says of simulations: the keys of gymctl sim's configuration that it may set.
type Args struct {
	Trace   workload.TraceConfig `yaml:"trace"`
	Cluster string               `yaml:"cluster"` // see workload.ClusterForms
	// Estimates say what the policies know of run times; unset = as gymctl sim chooses.
	Estimates sim.Estimates `yaml:"estimates"`
	Placement string        `yaml:"placement"` // where jobs go for which the client names no GPUs
	Simulator sim.Config    `yaml:"simulator"`
	Horizon   time.Duration `yaml:"horizon"` // end this long after the first submit; 0 = never
	Warmup    int           `yaml:"warmup"`  // jobs at the beginning that are not counted
	Tail      int           `yaml:"tail"`    // jobs at the end that are not counted
}

// DefaultArgs returns what gymctl sim does without flags.
func DefaultArgs() Args {
	d := simulate.DefaultConfig()
	return Args{Trace: d.Trace, Cluster: d.Cluster, Placement: d.Policy.Placement, Simulator: d.Simulator}
}

// Validate reports every fault that needs neither the jobs nor the cluster.
func (a *Args) Validate() error {
	var l fault.List
	l.Join("trace", a.Trace.Validate())
	l.Add(a.Cluster != "", "cluster", a.Cluster, workload.ClusterForms)
	l.Add(a.Estimates.File == "", "estimates", a.Estimates.String(), "gbdt without a file, which is fitted in the run")
	names := slices.DeleteFunc(place.Names(), func(n string) bool { return n == place.RackSkewed })
	_, err := place.New(a.Placement, a.Estimates, place.Given{})
	l.Add(err == nil && a.Placement != place.RackSkewed, "placement", a.Placement, nearest.OneOf(a.Placement, names))
	l.Join("simulator", a.Simulator.Validate())
	l.Add(a.Simulator.Horizon == 0, "simulator.horizon", a.Simulator.Horizon,
		"nothing here; horizon counts from the first submit")
	l.Add(a.Horizon >= 0, "horizon", a.Horizon, "a time, or 0s for none")
	l.Add(a.Warmup >= 0, "warmup", a.Warmup, "a number of jobs, 0 or more")
	l.Add(a.Tail >= 0, "tail", a.Tail, "a number of jobs, 0 or more")
	return l.Err()
}

// config returns a as the configuration of gymctl sim.
func (a *Args) config() simulate.Config {
	c := simulate.DefaultConfig()
	c.Trace, c.Cluster, c.Simulator = a.Trace, a.Cluster, a.Simulator
	c.Policy.Estimates, c.Policy.Placement = a.Estimates, a.Placement
	c.Horizon, c.Warmup, c.Tail = a.Horizon, a.Warmup, a.Tail
	return c
}

// part is one play as a client asks for it.
type part struct {
	policy string // "" = the client's own
	seed   uint64
	ask    string // when the client is asked, one of asks
}

// When a client is asked: where a job waits, where one waits that fits, or whenever anything has happened.
const (
	askWaiting = "waiting"
	askRoom    = "room"
	askAlways  = "always"
)

// asks are all of these.
var asks = []string{askWaiting, askRoom, askAlways}

// mostPlays is how many plays a request may ask for.
const mostPlays = 256

// partsOf reads which plays a client asks for.
func partsOf(req wire.Map) ([]part, *wire.Error) {
	list, ok := req.Get("plays").([]any)
	if !ok || len(list) == 0 || len(list) > mostPlays {
		return nil, &wire.Error{Code: wire.BadRequest, Msg: "field plays", Got: "something else",
			Want: "a list of 1 to " + strconv.Itoa(mostPlays) + " maps of policy and seed"}
	}
	parts := make([]part, len(list))
	for i, x := range list {
		m, ok := x.(wire.Map)
		if !ok {
			return nil, wire.Errorf(wire.BadRequest, "field plays[%d], want a map of policy and seed", i)
		}
		policy, e := m.Str("policy", "")
		if e != nil {
			return nil, e
		}
		seed, e := m.Int("seed", 1, 0, 1<<53)
		if e != nil {
			return nil, e
		}
		ask, e := m.Str("ask", askWaiting)
		if e == nil && !slices.Contains(asks, ask) {
			e = &wire.Error{Code: wire.BadRequest, Msg: fmt.Sprintf("field plays[%d].ask", i), Got: fmt.Sprintf("%.40q", ask),
				Want: nearest.OneOf(ask, asks)}
		}
		if e != nil {
			return nil, e
		}
		parts[i] = part{policy, uint64(seed), ask}
	}
	return parts, nil
}
