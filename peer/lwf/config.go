package lwf

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"clustergym/internal/fault"
	"clustergym/internal/nearest"
)

// The modelled network, 10 GbE: k transfers on a link take k·perMB + (k−1)·penalty milliseconds for each MB.
const (
	perMB   = 0.856
	penalty = 0.235
)

// estimated is what placement thinks that a transfer takes, in ms for each MB: a line of 128 MB/s, nine times perMB.
const estimated = 7.8125

// worth is how many times larger what is left of a transfer must be than a second one, if their overlap is to lower the
// sum of the two completion times.
const worth = 2 * (perMB + penalty) / perMB

// Config names one run.
type Config struct {
	Nodes  int   `yaml:"nodes"`
	GPUs   int   `yaml:"gpus"`   // of a node
	Memory int64 `yaml:"memory"` // of a GPU, MB
	// Order is the order of the waiting jobs: ssf (least compute time × workers), sf (fewest workers), stf (least compute
	// time) or blf (most workers, then most compute time).
	Order string `yaml:"order"`
	// Place chooses GPUs: lwfK (jobs of up to K workers take the least loaded GPUs, larger ones the least loaded nodes),
	// bp (the first with room) or random. With the K of the largest job lwfK is list scheduling.
	Place string `yaml:"place"`
	// Tasks orders computing and sending: srsf (least remaining compute time × workers), srtf (least remaining compute
	// time) or sf (fewest workers).
	Tasks string `yaml:"tasks"`
	// Threshold is how many transfers may already be on a link when another begins: SRSF(n) has n − 1.
	Threshold int `yaml:"threshold"`
	// Adaptive is AdaDUAL: at most two transfers share a link, and the second begins only if it is small enough beside
	// what is left of the first. Only with threshold 1.
	Adaptive bool `yaml:"adaptive"`
	// Question is how AdaDUAL asks how much of a transfer is left: pure only reads; orig moves the transfer, as published;
	// pureall only reads, and asks the transfers on all nodes of the job in place of those on one.
	Question string `yaml:"question"`
	Seed     uint64 `yaml:"seed"` // of random
}

// DefaultConfig returns Ada-SRSF with LWF-1, reading questions, on the authors' 16 nodes of four GPUs.
func DefaultConfig() Config {
	return Config{Nodes: 16, GPUs: 4, Memory: 32768, Order: "ssf", Place: "lwf1", Tasks: "srsf", Threshold: 1,
		Adaptive: true, Question: "pure"}
}

// Orders returns the values of Config.Order.
func Orders() []string { return []string{"ssf", "sf", "stf", "blf"} }

// TaskOrders returns the values of Config.Tasks.
func TaskOrders() []string { return []string{"srsf", "srtf", "sf"} }

// Questions returns the values of Config.Question.
func Questions() []string { return []string{"pure", "orig", "pureall"} }

// kappa returns K of lwfK.
func kappa(place string) (int, bool) {
	digits, ok := strings.CutPrefix(place, "lwf")
	k, err := strconv.Atoi(digits)
	return k, ok && err == nil && k >= 1 && k <= 1<<20 && digits == strconv.Itoa(k)
}

// Validate reports every fault.
func (c *Config) Validate() error {
	var l fault.List
	l.Add(c.Nodes >= 1 && c.Nodes <= 1<<14, "nodes", c.Nodes, "a number of nodes, 1 to 16384")
	l.Add(c.GPUs >= 1 && c.GPUs <= 64, "gpus", c.GPUs, "a number of GPUs in a node, 1 to 64")
	l.Add(c.Memory >= 1 && c.Memory <= 1<<40, "memory", c.Memory, "MB, 1 or more")
	l.Add(slices.Contains(Orders(), c.Order), "order", c.Order, nearest.OneOf(c.Order, Orders()))
	_, known := kappa(c.Place)
	l.Add(known || c.Place == "bp" || c.Place == "random", "place", c.Place, "lwfK with a K of 1 or more, bp or random")
	l.Add(slices.Contains(TaskOrders(), c.Tasks), "tasks", c.Tasks, nearest.OneOf(c.Tasks, TaskOrders()))
	l.Add(c.Threshold >= 0 && c.Threshold <= 1<<20, "threshold", c.Threshold, "a number of transfers, 0 or more")
	l.Add(!c.Adaptive || c.Threshold == 1, "adaptive", c.Adaptive, "false where the threshold is not 1")
	l.Add(slices.Contains(Questions(), c.Question), "question", c.Question, nearest.OneOf(c.Question, Questions()))
	return l.Err()
}

// SetAlgorithm sets the rules that name says: ORDER-PLACE-TASKS-THRESHOLD-ADAPTIVE. The program is adaptive only with
// threshold 1, whatever the name says.
func (c *Config) SetAlgorithm(name string) error {
	parts := strings.Split(name, "-")
	if len(parts) != 5 {
		return fmt.Errorf("got %q, want ORDER-PLACE-TASKS-THRESHOLD-ADAPTIVE, as ssf-lwf1-srsf-1-true", name)
	}
	n, err := strconv.Atoi(parts[3])
	if err != nil || n < 0 {
		return fmt.Errorf("threshold of %q: got %q, want a number of transfers, 0 or more", name, parts[3])
	}
	if parts[4] != "true" && parts[4] != "false" {
		return fmt.Errorf("the end of %q: got %q, want true or false", name, parts[4])
	}
	set := *c
	set.Order, set.Place, set.Tasks, set.Threshold, set.Adaptive = parts[0], parts[1], parts[2], n,
		parts[4] == "true" && n == 1
	if err := set.Validate(); err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	*c = set
	return nil
}
