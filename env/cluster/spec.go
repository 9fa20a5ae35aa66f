package cluster

import (
	"fmt"
	"strconv"
	"time"
)

// Spec is what a user writes of a cluster: one YAML file, or a short form (Parse). It never changes after
// construction.
type Spec struct {
	Name  string     `yaml:"name"`
	Pool  int        `yaml:"pool,omitempty"`  // a plain counter of so many GPUs or processors; no racks then
	Racks []RackSpec `yaml:"racks,omitempty"` // in order
	// Speeds is how fast each GPU type is, 1 = the reference on which a job's work is measured. Types that are
	// not named have speed 1. A gang runs at the speed of its slowest GPU.
	Speeds map[string]float64 `yaml:"speeds,omitempty"`
	// VCs are virtual clusters. Where there are any, every job belongs to one, by name, and jobs of others are
	// refused.
	VCs []VCSpec `yaml:"vcs,omitempty"`
}

// VCSpec is a virtual cluster. One with nodes owns them: its jobs run there and nowhere else, and nobody else's do.
// Those without share the nodes that nobody owns, each within its quota.
type VCSpec struct {
	Name  string `yaml:"name"`
	Nodes int    `yaml:"nodes,omitempty"` // it owns so many nodes, the next in order after those of the VCs before it
	Quota int    `yaml:"quota,omitempty"` // its running jobs may hold so many GPUs together; 0 = not limited
}

// RackSpec is Count equal racks.
type RackSpec struct {
	Count  Count      `yaml:"count,omitempty"`
	Nodes  []NodeSpec `yaml:"nodes"`
	Uplink Link       `yaml:"uplink,omitempty"` // from the rack to the site; less than the sum of NICs = oversubscribed
}

// Count is how many of a thing there are; its zero value, a key left out of a file, means one.
type Count int

// N is the number that c stands for.
func (c Count) N() int { return max(1, int(c)) }

// UnmarshalText reads a number of at least 1: a file that says 0 means none, which nothing can be.
func (c *Count) UnmarshalText(text []byte) error {
	n, err := strconv.Atoi(string(text))
	if err != nil || n < 1 {
		return fmt.Errorf("got %s, want 1 or more (left out = 1)", text)
	}
	*c = Count(n)
	return nil
}

// NodeSpec is Count equal nodes.
type NodeSpec struct {
	Count    Count   `yaml:"count,omitempty"`
	GPUs     int     `yaml:"gpus"`
	GPUType  string  `yaml:"gpu_type,omitempty"`
	GPUMemGB float64 `yaml:"gpu_mem_gb,omitempty"` // of each GPU, GiB
	CPUs     float64 `yaml:"cpus,omitempty"`       // cores; 0 = not limited
	MemGB    float64 `yaml:"mem_gb,omitempty"`     // main memory, GiB; 0 = not limited
	Link     Link    `yaml:"link,omitempty"`       // between the node's GPUs
	NIC      Link    `yaml:"nic,omitempty"`        // to the rack
}

// Link is a connection; a zero field is not stated.
type Link struct {
	Class   string        `yaml:"class,omitempty"` // "nvlink", "pcie", "infiniband", "ethernet", …
	Gbps    float64       `yaml:"gbps,omitempty"`  // 10^9 bits per second, each way
	Latency time.Duration `yaml:"latency,omitempty"`
}
