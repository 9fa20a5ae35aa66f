package speed

import (
	"context"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/lab/workload"
	"clustergym/nets/kernel"
	"clustergym/simulator/policyname"
	"clustergym/simulator/schedulers"
)

// Config says what Run measures.
type Config struct {
	Groups []string // of Groups(); empty = all except the bridge, or only the simulator if Trace names a file
	Quick  bool     // small workloads and short rounds, for an impression within seconds
	Long   bool     // also 11.5 million jobs, read from a file during the simulation
	// Trace, if it names a file, replaces the generated workloads of the simulator's rows. It runs on Cluster under
	// Policies, which are as in simulate.Config; empty = a selection.
	Trace    workload.TraceConfig
	Cluster  string
	Policies []string
	Python   string // for the bridge: the command of a Python with the clustergym package; for ranks: with PyTorch
}

// Groups returns the groups that can be measured. The bridge and ranks are measured only on request: one needs a
// Python, and the other starts processes.
func Groups() []string {
	return []string{"simulator", "encoders", "envs", "training", "planning", "bridge", "ranks"}
}

// Validate returns an error that names every fault of c, or nil. It does not look at files.
func (c *Config) Validate() error {
	var l fault.List
	for _, g := range c.Groups {
		l.Add(slices.Contains(Groups(), g), "groups", g, nearest.OneOf(g, Groups()))
	}
	l.Join("trace", c.Trace.Validate())
	file := c.Trace.File != ""
	l.Add(!c.Long || c.measures("simulator") && !file, "long", c.Long,
		"false where the simulator is not measured on generated workloads")
	l.Add(!file || c.measures("simulator"), "trace", c.Trace.File, "nothing where the simulator is not measured")
	if file {
		l.Add(c.Cluster != "", "cluster", c.Cluster, workload.ClusterForms)
	} else {
		l.Add(c.Cluster == "", "cluster", c.Cluster,
			"nothing without a trace: generated workloads have clusters of their own")
		l.Add(len(c.Policies) == 0, "policies", strings.Join(c.Policies, ","), "nothing without a trace")
	}
	for _, p := range c.Policies {
		if _, err := schedulers.Names().Resolve(p); err != nil {
			l.Add(false, "policies", policyname.Excerpt(p), schedulers.Names().Wanted(p, err))
		}
	}
	return l.Err()
}

// measures reports whether group is to be measured.
func (c *Config) measures(group string) bool {
	if len(c.Groups) == 0 {
		return c.Trace.File == "" && group != "bridge" && group != "ranks" || group == "simulator"
	}
	return slices.Contains(c.Groups, group)
}

// Hooks connects a measurement to its caller.
type Hooks struct {
	Now func() time.Time       // the clock; must not be nil
	Row func(what string)      // called before each measurement with its name; may be nil
	Dir func() (string, error) // returns a folder for large files, which the caller removes; needed only for Long
	// Rank returns a process that calls Rank with these arguments; needed only for ranks.
	Rank func(ctx context.Context, rank, world int, rendezvous string, quick bool) *exec.Cmd
}

// Report holds the measurements. Its JSON form is a published document.
type Report struct {
	Machine     Machine       `json:"machine"`
	Quick       bool          `json:"quick,omitempty"`
	Calibration []Row         `json:"calibration"` // the best speed of the machine in this run
	Rows        []Row         `json:"rows"`
	Queues      []QueueTiming `json:"queues,omitempty"` // growth of cost with the number of waiting jobs
	Bridge      []BridgeRow   `json:"bridge,omitempty"`
	Ratios      []BridgeRatio `json:"ratios,omitempty"` // between rows of Bridge
	Ranks       []RanksRow    `json:"ranks,omitempty"`
	Torch       string        `json:"torch,omitempty"` // version of the PyTorch whose gloo is in Ranks
}

// Machine describes the machine that was measured.
type Machine struct {
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	CPU        string `json:"cpu,omitempty"` // "" if the system does not report it
	Processors int    `json:"processors"`    // used by Go
	Go         string `json:"go"`
	Kernels    string `json:"kernels"` // the set of float32 kernels
}

// Row is one measurement: the best of three rounds. The rate is units of work per second of wall time.
type Row struct {
	Group   string  `json:"group"`
	What    string  `json:"what"`
	Jobs    int     `json:"jobs,omitempty"`
	Cluster string  `json:"cluster,omitempty"`
	Policy  string  `json:"policy,omitempty"`
	Rate    float64 `json:"rate"`
	Unit    string  `json:"unit"`
	Allocs  float64 `json:"allocs_per_unit"`
	// the project's target rate, on one core of a server of 2020 or later, or as a share of another row's rate
	Mark  float64 `json:"mark,omitempty"`
	Runs  int     `json:"runs"`   // runs of the work in the best round
	WallS float64 `json:"wall_s"` // of the best round
	// processor time over wall time of the best round; 0 if the system does not report it
	CPUShare float64 `json:"cpu_share"`
	// Loop and Walk are the cost of one unit of work in steps of the calibration rows, which are measured together with
	// this row. They make measurements of different machines and times comparable.
	Loop    float64 `json:"loop_steps"`
	Walk    float64 `json:"walk_steps"`
	PeakMiB float64 `json:"peak_mib,omitempty"` // of the process, in rows that measure memory
}

// bench is the state of Run.
type bench struct {
	cfg    *Config
	hooks  Hooks
	report *Report
	walk   []uint32 // see calibrate
}

// Run measures what cfg names. Faults in cfg and in its files are *fault.Mistakes. ctx ends it between two runs of a
// workload, or within one between two events.
func Run(ctx context.Context, cfg Config, hooks Hooks) (*Report, error) {
	if err := cfg.Validate(); err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	b := &bench{cfg: &cfg, hooks: hooks, report: &Report{
		Quick: cfg.Quick,
		Machine: Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, CPU: processor(), Processors: runtime.GOMAXPROCS(0),
			Go: runtime.Version(), Kernels: kernel.Set()},
	}}
	if cfg.Long { // first, because it reports the process's peak of memory
		if err := b.streaming(ctx); err != nil {
			return nil, err
		}
	}
	b.prepare()
	for _, g := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"simulator", b.simulator}, {"encoders", b.encoders}, {"envs", b.envs}, {"training", b.training},
		{"planning", b.planning}, {"bridge", b.bridge}, {"ranks", b.ranks},
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

// say reports what is measured next.
func (b *bench) say(what string) {
	if b.hooks.Row != nil {
		b.hooks.Row(what)
	}
}

// size returns n, or a twentieth and at least 200 for a quick measurement.
func (b *bench) size(n int) int {
	if b.cfg.Quick {
		return max(200, n/20)
	}
	return n
}
