package synth

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/simulator/dag"
)

// PlatformConfig describes processors.
type PlatformConfig struct {
	GPUs int `yaml:"gpus"`
	// Speeds is the distribution of speeds: "equal" (1 each), "spread" (log-uniform from 0.5 to 4), or what machines
	// have left beside their load, "busy" (utilisation normal with mean 72.3 % and deviation 6.7 %, from 58 to 85 %,
	// as in the 50 machines of the WORL-RTGS authors' table) or "idle" (mean 30 %, deviation 10 %, from 5 to 58 %;
	// the authors' idle table is not public, so these numbers are our own).
	Speeds string `yaml:"speeds"`
	// Links is how they are connected: "equal" (Bandwidth between any two), "racks" (machines of 8 GPUs in racks of 4
	// machines: Bandwidth within a machine, half of it within a rack, a quarter beyond), or "random" (a matrix drawn
	// uniformly from a tenth of Bandwidth to all of it, each direction separately).
	Links     string  `yaml:"links"`
	Bandwidth float64 `yaml:"bandwidth"` // bytes per second, the highest
}

var (
	speeds = []string{"equal", "spread", "busy", "idle"}
	nets   = []string{"equal", "racks", "random"}
)

// DefaultPlatformConfig returns 50 GPUs of busy machines in racks. 2000 is the highest bandwidth that the authors'
// scripts mention, without a unit.
func DefaultPlatformConfig() PlatformConfig {
	return PlatformConfig{GPUs: 50, Speeds: "busy", Links: "racks", Bandwidth: 2000}
}

// Validate reports every fault.
func (c PlatformConfig) Validate() error {
	var l fault.List
	l.Add(c.GPUs >= 1 && c.GPUs <= 100_000, "gpus", c.GPUs, "1 to 100000")
	l.Add(slices.Contains(speeds, c.Speeds), "speeds", c.Speeds, nearest.OneOf(c.Speeds, speeds))
	l.Add(slices.Contains(nets, c.Links), "links", c.Links, nearest.OneOf(c.Links, nets))
	l.Add(c.Links == "equal" || c.GPUs <= 10_000, "links", c.Links, "equal above 10000 GPUs")
	l.Add(c.Bandwidth > 0 && c.Bandwidth <= 1e15, "bandwidth", c.Bandwidth, "a number above 0, up to 1e15")
	return l.Err()
}

// The sizes of a machine and of a rack in GPUs.
const (
	machine = 8
	rack    = 4 * machine
)

// Platform draws processors.
func Platform(c PlatformConfig, src *rand.Rand) (*dag.Platform, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	procs := make([]dag.Processor, c.GPUs)
	for g := range procs {
		procs[g] = dag.Processor{ID: strconv.Itoa(g), Speed: speed(c.Speeds, src)}
	}
	if c.Links == "equal" {
		return dag.NewPlatform(procs, c.Bandwidth)
	}
	var p *dag.Platform
	var err error
	if c.Links == "random" {
		row := make([]float64, c.GPUs)
		p, err = dag.NewPlatformOfRows(procs, func(int) []float64 {
			for h := range row {
				row[h] = c.Bandwidth * (0.1 + 0.9*src.Float64())
			}
			return row
		})
	} else {
		p, err = dag.NewTieredPlatform(procs, []dag.Tier{
			{Size: machine, Bandwidth: c.Bandwidth}, {Size: rack, Bandwidth: c.Bandwidth / 2}, {Bandwidth: c.Bandwidth / 4},
		})
	}
	if err != nil {
		return nil, fmt.Errorf("synth: %w", err)
	}
	return p, nil
}

func speed(name string, src *rand.Rand) float64 {
	mean, sd, low, high := 0.723, 0.067, 0.58, 0.85
	switch name {
	case "equal":
		return 1
	case "spread":
		return 0.5 * math.Pow(8, src.Float64())
	case "idle":
		mean, sd, low, high = 0.30, 0.10, 0.05, 0.58
	}
	for {
		if u := mean + sd*src.NormFloat64(); u >= low && u <= high {
			return 1 - u
		}
	}
}
