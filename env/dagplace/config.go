package dagplace

import (
	"fmt"
	"slices"
	"strings"

	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/simulator/dag/synth"
)

// ID names the environment and its version.
const ID = "DAGPlace-v1"

// Config describes the environment.
type Config struct {
	Graph    string  `yaml:"graph"` // one of synth.Kinds
	Tasks    int     `yaml:"tasks"`
	Degree   float64 `yaml:"degree"` // parents of a task on average
	CCR      float64 `yaml:"ccr"`    // mean transfer time over mean run time
	GPUs     int     `yaml:"gpus"`
	Speeds   string  `yaml:"speeds"` // as synth.PlatformConfig; so too Links
	Links    string  `yaml:"links"`
	Vary     bool    `yaml:"vary"`            // every episode draws graph, size, degree, transfers and platform anew
	Order    string  `yaml:"order"`           // of tasks: index or rank
	Insert   bool    `yaml:"insertion"`       // tasks may go into gaps
	Reward   string  `yaml:"reward"`          // hope or makespan
	Hopes    string  `yaml:"hopes,omitempty"` // the plans that hopes are drawn from: random or search; "" = random
	Slots    int     `yaml:"slots"`           // GPUs that are offered, the best ones; 0 = all
	Scale    string  `yaml:"scale"`           // of times in observations: leader or local
	MaxSteps int     `yaml:"max_steps"`       // truncate after so many tasks; 0 = none
}

// DefaultConfig is 100 tasks of degree 3 on 50 GPUs.
func DefaultConfig() Config {
	return Config{
		Graph: "erdos", Tasks: 100, Degree: 3, CCR: 0.2, GPUs: 50, Speeds: "spread", Links: "racks",
		Order: "rank", Reward: "hope", Scale: "leader",
	}
}

// These are the values of the settings of that name.
var (
	rewards = []string{"hope", "makespan"}
	orders  = []string{"index", "rank"}
	scales  = []string{"leader", "local"}
	hopes   = []string{"random", "search"}
)

// The largest environment.
const (
	maxTasks = 100_000
	maxGPUs  = 10_000
	maxPairs = 1 << 26 // of a task and a GPU
)

// Validate reports every fault.
func (c Config) Validate() error {
	var l fault.List
	l.Add(slices.Contains(synth.Kinds(), c.Graph), "graph", c.Graph, nearest.OneOf(c.Graph, synth.Kinds()))
	l.Add(c.Tasks >= 1 && c.Tasks <= maxTasks, "tasks", c.Tasks, fmt.Sprintf("1 to %d", maxTasks))
	l.Add(c.Degree >= 0 && c.Degree <= 1000, "degree", c.Degree, "0 to 1000")
	l.Add(c.CCR >= 0 && c.CCR <= 1000, "ccr", c.CCR, "0 to 1000")
	l.Add(c.GPUs >= 1 && c.GPUs <= maxGPUs, "gpus", c.GPUs, fmt.Sprintf("1 to %d", maxGPUs))
	l.Add(float64(c.Tasks)*float64(c.GPUs) <= maxPairs, "tasks", c.Tasks, "at most 67108864 pairs of a task and a GPU")
	p := synth.DefaultPlatformConfig()
	p.Speeds, p.Links = c.Speeds, c.Links
	l.Join("", p.Validate())
	l.Add(slices.Contains(orders, c.Order), "order", c.Order, strings.Join(orders, " or "))
	l.Add(slices.Contains(rewards, c.Reward), "reward", c.Reward, strings.Join(rewards, " or "))
	l.Add(c.Hopes == "" || slices.Contains(hopes, c.Hopes), "hopes", c.Hopes, strings.Join(hopes, " or "))
	l.Add(slices.Contains(scales, c.Scale), "scale", c.Scale, strings.Join(scales, " or "))
	l.Add(c.Slots == 0 || c.Slots >= 2 && c.Slots <= 1024, "slots", c.Slots, "0, or 2 to 1024")
	l.Add(c.MaxSteps >= 0, "max_steps", c.MaxSteps, "0 or more")
	return l.Err()
}

// actions is the number of actions.
func (c *Config) actions() int {
	if c.Slots > 0 {
		return c.Slots
	}
	return c.GPUs
}
