package jobselect

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"clustergym/env/encode"
	"clustergym/env/reward"
	"clustergym/env/sched"
	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
	"clustergym/traces/profile"
)

// The versions of the environment. Episodes of version 1 are windows that begin without a queue and end empty; those of
// version 2 are stretches of a cluster in operation (sched.Ongoing).
const (
	ID = "JobSelect-v2"
	V1 = "JobSelect-v1"
)

// Is reports whether id is a version of the environment.
func Is(id string) bool { return id == ID || id == V1 }

// Config holds the settings. A change of a default that changes returns gets a new version.
type Config struct {
	sched.Config `yaml:",inline"`

	Visible   int           `yaml:"visible"`   // K, jobs that the agent sees and can start
	Slots     string        `yaml:"slots"`     // mixed or oldest: which jobs are visible
	MaxGPUs   int           `yaml:"max_gpus"`  // M, the largest gang; larger jobs are left out of the workload
	Placement string        `yaml:"placement"` // which GPUs a job gets
	Comm      string        `yaml:"comm"`      // how its placement slows a gang down: none or tree
	Reward    string        `yaml:"reward"`    // see package reward
	WaitCost  float64       `yaml:"wait_cost"` // c of reward throughput
	TimeAxis  string        `yaml:"time_axis"` // log or linear: rows of the images
	Row       time.Duration `yaml:"row"`       // of a linear axis
	Models    string        `yaml:"models"`    // mix from which jobs get a model and a batch size

	Running int    `yaml:"running,omitempty"` // R, running gangs that the agent sees in a table; 0 = none
	Images  Images `yaml:"images,omitempty"`  // whether the observation has the images of queue and cluster
	// Privileged adds a field for critics: what a policy may not know.
	Privileged bool `yaml:"privileged,omitempty"`

	// Preempt lets the agent stop running gangs that it sees, once they have run for MinRun since their last start. At its
	// next start a stopped gang of n GPUs holds them for Checkpoint + Restart + n·(CheckpointPerGPU + RestartPerGPU)
	// before it progresses. Nothing else is lost.
	Preempt          bool          `yaml:"preempt,omitempty"`
	MinRun           time.Duration `yaml:"min_run,omitempty"`
	Checkpoint       time.Duration `yaml:"checkpoint,omitempty"`
	CheckpointPerGPU time.Duration `yaml:"checkpoint_per_gpu,omitempty"`
	Restart          time.Duration `yaml:"restart,omitempty"`
	RestartPerGPU    time.Duration `yaml:"restart_per_gpu,omitempty"`
}

// The largest settings of Preempt: a week's run, and costs that the simulator accepts.
const (
	mostMinRun = 168 * time.Hour
	mostCost   = 24 * time.Hour
	mostPerGPU = 30 * time.Second
)

// stopCost returns what a stop costs a gang of gpus GPUs, in nanoseconds.
func (c *Config) stopCost(gpus int) float64 {
	return float64(c.Checkpoint+c.Restart) + float64(gpus)*float64(c.CheckpointPerGPU+c.RestartPerGPU)
}

// Price says in words what Preempt allows and what a stop costs.
func (c *Config) Price() string {
	text := fmt.Sprintf("a gang that has run for %v can be stopped, and pays %v", c.MinRun, c.Checkpoint+c.Restart)
	if c.MinRun == 0 {
		text = fmt.Sprintf("running gangs can be stopped, and pay %v", c.Checkpoint+c.Restart)
	}
	if per := c.CheckpointPerGPU + c.RestartPerGPU; per > 0 {
		text += fmt.Sprintf(" and %v for each GPU", per)
	}
	return text + " at the next start"
}

// validatePreempt adds the faults of Preempt and of the keys that need it.
func (c *Config) validatePreempt(l *fault.List) {
	l.Add(!c.Preempt || c.Running > 0, "preempt", c.Preempt,
		"false, or running gangs that the agent sees: running from 1 to 1024")
	for _, k := range []struct {
		key   string
		value time.Duration
		most  time.Duration
	}{
		{"min_run", c.MinRun, mostMinRun}, {"checkpoint", c.Checkpoint, mostCost},
		{"checkpoint_per_gpu", c.CheckpointPerGPU, mostPerGPU},
		{"restart", c.Restart, mostCost}, {"restart_per_gpu", c.RestartPerGPU, mostPerGPU},
	} {
		want := "0s, as no job can be stopped (preempt: false)"
		if c.Preempt {
			want = fmt.Sprintf("a time from 0s to %v", k.most)
		}
		l.Add(k.value == 0 || c.Preempt && k.value > 0 && k.value <= k.most, k.key, k.value, want)
	}
}

// Images is the value of the key env.images.
type Images bool

// IsZero reports whether i is the default, which configurations leave out: they are older than the key, and the hashes
// of scenarios are made of them.
func (i Images) IsZero() bool { return bool(i) }

// OngoingConfig returns the default settings of version 2. Waiting is the part of a job's completion time that the
// schedule decides; comparisons count completion times.
func OngoingConfig() Config {
	c := DefaultConfig()
	c.Config, c.Reward = sched.OngoingConfig(ID), "wait"
	return c
}

// DefaultConfig returns the settings of version 1, which its published results use.
func DefaultConfig() Config {
	return Config{
		Config: sched.DefaultConfig(), Visible: 10, Slots: "mixed", MaxGPUs: 8, Placement: "closest-b", Comm: "tree",
		Reward: "jct", WaitCost: 2, TimeAxis: "log", Row: 241500 * time.Millisecond, Models: "topdrl-cnn",
		Images: true,
	}
}

// Validate reports every fault.
func (c *Config) Validate() error {
	var l fault.List
	l.Join("", c.Config.Validate())
	l.Add(!c.Estimates.IsZero(), "estimates", c.Estimates.String(), sim.EstimatesWanted)
	l.Add(c.Visible >= 2 && c.Visible <= 1024 && c.Visible%2 == 0, "visible", c.Visible, "an even number from 2 to 1024")
	l.Add(c.Slots == "mixed" || c.Slots == "oldest", "slots", c.Slots, "mixed or oldest")
	l.Add(c.MaxGPUs >= 1 && c.MaxGPUs <= 1024, "max_gpus", c.MaxGPUs, "1 to 1024")
	l.Add(slices.Contains(sched.Placements(), c.Placement), "placement", c.Placement,
		nearest.OneOf(c.Placement, sched.Placements()))
	l.Add(c.Comm == "none" || c.Comm == "tree", "comm", c.Comm, "none or tree")
	l.Add(reward.Known(c.Reward), "reward", c.Reward, nearest.OneOf(c.Reward, reward.Names()))
	l.Add(c.Mode != sched.Ongoing || c.Reward != "makespan" && c.Reward != "utilisation", "reward", c.Reward,
		"jct, wait, slowdown, bsld or throughput: a cluster in operation has no makespan")
	l.Add(c.WaitCost >= 0 && c.WaitCost <= 1e6, "wait_cost", c.WaitCost, "0 to 1000000")
	l.Add(c.TimeAxis == "log" || c.TimeAxis == "linear", "time_axis", c.TimeAxis, "log or linear")
	l.Add(c.Row > 0, "row", c.Row, "a time above 0s")
	l.Add(slices.Contains(profile.Names(), c.Models), "models", c.Models, nearest.OneOf(c.Models, profile.Names()))
	l.Add(c.Running >= 0 && c.Running <= 1024, "running", c.Running, "1 to 1024 gangs, or 0 for no table of them")
	c.validatePreempt(&l)
	return l.Err()
}

// NewWorkload makes jobs ready for environments with configuration cfg on a cluster: see sched.Take.
func NewWorkload(cfg Config, spec cluster.Spec, jobs []traces.Job) (*sched.Workload, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return sched.Take(sched.Taken{MaxGPUs: cfg.MaxGPUs, Window: cfg.Window, Warm: cfg.Warm, Estimates: cfg.Estimates,
		Forecast: cfg.Forecast, Mode: cfg.Mode}, spec, jobs)
}

// New returns an environment over the windows w. Episodes without a Split are of part.
func New(cfg Config, spec cluster.Spec, w sched.Windows, part traces.Part) (*sched.Env, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	rule, err := cluster.NewPlacement(cfg.Placement)
	if err != nil {
		return nil, err
	}
	mix, err := profile.Shared(cfg.Models)
	if err != nil {
		return nil, err
	}
	parts := sched.Parts{
		ID: cmp.Or(cfg.ID, V1), Sim: sim.Config{Comm: cfg.Comm}, Cluster: spec, Placement: cfg.Placement,
		Windows: w, Part: part, Models: mix, MaxGPUs: cfg.MaxGPUs,
		Slots: &slots{k: cfg.Visible, oldest: cfg.Slots == "oldest"}, Running: cfg.Running,
	}
	if parts.Reward, err = reward.New(cfg.Reward, cfg.WaitCost); err != nil {
		return nil, err
	}
	if parts.Baseline, err = reward.New(cfg.Reward, cfg.WaitCost); err != nil {
		return nil, err
	}
	place := encode.NewPlacements(rule)
	act := &actions{k: cfg.Visible, place: place}
	parts.Actions = act
	var cost encode.StopCost
	if cfg.Preempt {
		// The simulator pays what a stop costs at the next start. No node fails, so every restart follows a stop.
		parts.Sim.Overhead = sim.Overhead{Stop: cfg.Checkpoint + cfg.Restart,
			StopPerGPU: cfg.CheckpointPerGPU + cfg.RestartPerGPU}
		parts.Stops, act.r, cost = &sched.Stops{Min: cfg.MinRun}, cfg.Running, cfg.stopCost
	}
	axis := encode.LogAxis()
	if cfg.TimeAxis == "linear" {
		axis = encode.LinearAxis(cfg.Row)
	}
	c, err := cluster.New(spec) // the encoder reads only what never changes
	if err != nil {
		return nil, err
	}
	seen := encode.ForecastsOf(cfg.Forecast, cfg.Estimates, c.GPUs())
	image := encode.NewTables(axis, c, cfg.Visible, place, seen)
	if cfg.Images {
		if image, err = encode.NewImage(axis, c, cfg.Visible, min(cfg.MaxGPUs, c.GPUs()), place, seen); err != nil {
			return nil, err
		}
	}
	if cfg.Preempt {
		image.Stopping()
	}
	if parts.Encoder = image; cfg.Running > 0 {
		parts.Encoder = encode.NewRunning(image, cfg.Running, c.GPUs(), seen, cost)
	}
	if cfg.Privileged {
		parts.Encoder = encode.NewTruth(parts.Encoder, cfg.Visible, cfg.Window, c.GPUs())
	}
	return sched.New(cfg.Config, parts)
}
