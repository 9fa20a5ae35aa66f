package bench

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"time"

	"clustergym/env/heuristic"
	"clustergym/experiments/simulate"
	"clustergym/experiments/workload"
	"clustergym/internal/fault"
	"clustergym/nets/kernel"
)

// BenchConfig says what Bench measures.
type Config struct {
	Groups []string // of BenchGroups; empty = all of them but the bridge, or with a trace the simulator
	Quick  bool     // small workloads and short rounds: an impression within seconds
	Long   bool     // also 11.5 million jobs, read from a file while they are simulated
	// Trace, where it names a file, is what the simulator's rows play instead of generated workloads, on Cluster under
	// Policies (as SimConfig has them; empty = a choice of them).
	Trace    workload.TraceConfig
	Cluster  string
	Policies []string
	Python   string // of the bridge: a Python in which the clustergym package is installed
}

// BenchGroups are what can be measured. The bridge is measured only where it is named, for it needs a Python.
func Groups() []string {
	return []string{"simulator", "encoders", "envs", "training", "planning", "bridge"}
}

// Validate reports every fault. Files are not looked at.
func (c *Config) Validate() error {
	var l fault.List
	for _, g := range c.Groups {
		l.Add(slices.Contains(Groups(), g), "groups", g, simulate.OneOf(Groups()))
	}
	l.Join("trace", c.Trace.Validate())
	file := c.Trace.File != ""
	l.Add(!c.Long || c.measures("simulator") && !file, "long", c.Long, "false where the simulator is not measured on generated workloads")
	l.Add(!file || c.measures("simulator"), "trace", c.Trace.File, "nothing where the simulator is not measured")
	if file {
		l.Add(c.Cluster != "", "cluster", c.Cluster, workload.ClusterForms)
	} else {
		l.Add(c.Cluster == "", "cluster", c.Cluster, "nothing without a trace: generated workloads have clusters of their own")
		l.Add(len(c.Policies) == 0, "policies", strings.Join(c.Policies, ","), "nothing without a trace")
	}
	for _, p := range c.Policies {
		order, _, _, ok := heuristic.SplitName(p)
		l.Add(ok && slices.Contains(heuristic.Orders(), order), "policies", p, "one of "+strings.Join(heuristic.Orders(), ", ")+
			", with +strict, +skip or +commit and +easy or +conservative after it where wanted")
	}
	return l.Err()
}

// measures says whether group is among those to measure.
func (c *Config) measures(group string) bool {
	if len(c.Groups) == 0 {
		return c.Trace.File == "" && group != "bridge" || group == "simulator"
	}
	return slices.Contains(c.Groups, group)
}

// BenchHooks is what Bench needs from outside.
type Hooks struct {
	Now func() time.Time       // the clock; must not be nil
	Row func(what string)      // what is going to be measured; nil = nobody asks
	Dir func() (string, error) // a folder for large files, removed by the caller; needed for Long only
}

// BenchReport is what Bench measured. Its JSON form is a published document.
type Report struct {
	Machine     Machine       `json:"machine"`
	Quick       bool          `json:"quick,omitempty"`
	Calibration []Row         `json:"calibration"` // what the machine gave at its best in this run
	Rows        []Row         `json:"rows"`
	Queues      []QueueTiming `json:"queues,omitempty"` // how cost grows with the number of jobs that wait
	Bridge      []BridgeRow   `json:"bridge,omitempty"`
	Ratios      []BridgeRatio `json:"ratios,omitempty"` // between rows of the bridge
}

// BenchMachine is where it was measured.
type Machine struct {
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	CPU        string `json:"cpu,omitempty"` // "" where the system does not tell
	Processors int    `json:"processors"`    // that Go uses
	Go         string `json:"go"`
	Kernels    string `json:"kernels"` // set of float32 kernels
}

// BenchRow is one measurement. A rate is units of work per second of wall time, that of the best of three rounds.
type Row struct {
	Group    string  `json:"group"`
	What     string  `json:"what"`
	Jobs     int     `json:"jobs,omitempty"`
	Cluster  string  `json:"cluster,omitempty"`
	Policy   string  `json:"policy,omitempty"`
	Rate     float64 `json:"rate"`
	Unit     string  `json:"unit"`
	Allocs   float64 `json:"allocs_per_unit"`
	Mark     float64 `json:"mark,omitempty"` // the rate that the project holds itself to, on one core of a server of 2020 or later
	Runs     int     `json:"runs"`           // in the best round
	WallS    float64 `json:"wall_s"`         // of the best round
	CPUShare float64 `json:"cpu_share"`      // processor time over wall time in it; 0 where the system does not tell
	// Loop and Walk are what one unit of work costs in steps of the calibration rows, measured beside this row: figures
	// of two machines, or of two moments, are compared by these.
	Loop    float64 `json:"loop_steps"`
	Walk    float64 `json:"walk_steps"`
	PeakMiB float64 `json:"peak_mib,omitempty"` // of the process, where memory is what the row is about
}

// bench is a Bench under way.
type bench struct {
	cfg    *Config
	hooks  Hooks
	report *Report
	walk   []uint32 // see calibrate
}

// Bench measures. Faults in cfg and in the files it names are *InputErrors; ctx ends it between two runs of a
// workload, or inside one between two events.
func Run(ctx context.Context, cfg Config, hooks Hooks) (*Report, error) {
	if err := cfg.Validate(); err != nil {
		return nil, &workload.InputError{Err: err}
	}
	b := &bench{cfg: &cfg, hooks: hooks, report: &Report{
		Quick:   cfg.Quick,
		Machine: Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, CPU: processor(), Processors: runtime.GOMAXPROCS(0), Go: runtime.Version(), Kernels: kernel.Set()},
	}}
	if cfg.Long { // first: the peak of memory is that of the process
		if err := b.streaming(ctx); err != nil {
			return nil, err
		}
	}
	b.prepare()
	for _, g := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"simulator", b.simulator}, {"encoders", b.encoders}, {"envs", b.envs}, {"training", b.training}, {"planning", b.planning}, {"bridge", b.bridge},
	} {
		if !cfg.measures(g.name) {
			continue
		}
		if err := g.run(ctx); err != nil {
			return nil, err
		}
	}
	return b.report, nil
}

// say tells what is measured next.
func (b *bench) say(what string) {
	if b.hooks.Row != nil {
		b.hooks.Row(what)
	}
}

// size is n, or what quick makes of it.
func (b *bench) size(n int) int {
	if b.cfg.Quick {
		return max(200, n/20)
	}
	return n
}
