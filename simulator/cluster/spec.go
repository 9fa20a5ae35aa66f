package cluster

import (
	"fmt"
	"strconv"
	"time"
)

// Spec is a user's description of a cluster: one YAML file, or a short form (Parse). It never changes after
// construction.
type Spec struct {
	Name  string     `yaml:"name"`
	Pool  int        `yaml:"pool,omitempty"`  // a plain counter of this many GPUs or processors, without racks
	Racks []RackSpec `yaml:"racks,omitempty"` // in order
	// Speeds gives the speed of each GPU type; 1 = the reference on which a job's work is measured. Types that are not
	// named have speed 1. A gang runs at the speed of its slowest GPU.
	Speeds map[string]float64 `yaml:"speeds,omitempty"`
	// VCs are virtual clusters. If there are any, every job belongs to one, by name, and jobs of others are refused.
	VCs []VCSpec `yaml:"vcs,omitempty"`
	// Literal reads jobs to the letter, as the environments of version 1 do: a gang may be on any nodes whatever its job
	// says of their number (traces.Job.Nodes), and types of GPU are compared letter by letter, so that a job that names
	// one does not run on nodes that name none. It is no part of the description.
	Literal bool `yaml:"-" json:"-"`
}

// VCSpec is a virtual cluster. If it owns nodes, its jobs run only there, and no other jobs do. Virtual clusters
// without nodes share the nodes without an owner, each within its quota. If it names hosts, as a partition of Slurm does,
// its jobs run only there, and so do those of every other virtual cluster that names them too.
type VCSpec struct {
	Name  string `yaml:"name"`
	Nodes int    `yaml:"nodes,omitempty"` // number of nodes it owns, the next in order after those of the VCs before it
	Quota int    `yaml:"quota,omitempty"` // number of GPUs that its running jobs may hold together; 0 = unlimited
	// Hosts are lists of the names of the nodes that its jobs may use, as g[1-4],h7. A number for which no node is named
	// is that of a node in order, from 0: [0-3]. nil = see Nodes. A cluster with hosts has at most 64 virtual clusters,
	// and none of them owns nodes.
	Hosts []string `yaml:"hosts,omitempty" json:",omitempty"`
}

// RackSpec is Count equal racks.
type RackSpec struct {
	Count Count      `yaml:"count,omitempty"`
	Nodes []NodeSpec `yaml:"nodes"`
	// from the rack to the site; less than the sum of NICs means oversubscribed
	Uplink Link `yaml:"uplink,omitempty"`
}

// Count is a number of equal items. Its zero value, for a key left out of a file, means one.
type Count int

// N returns the number that c represents.
func (c Count) N() int { return max(1, int(c)) }

// UnmarshalText reads a number of at least 1. It refuses 0, which in a file would mean none.
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
	CPUs     float64 `yaml:"cpus,omitempty"`       // cores; 0 = unlimited
	MemGB    float64 `yaml:"mem_gb,omitempty"`     // main memory, GiB; 0 = unlimited
	Link     Link    `yaml:"link,omitempty"`       // between the node's GPUs
	NIC      Link    `yaml:"nic,omitempty"`        // to the rack
	// Names are those of the nodes, Count of them and in order, as the cluster's own programs call them; nil = not given.
	// A rack with names has Count 1.
	Names []string `yaml:"names,omitempty" json:",omitempty"`
}

// Link is a connection; a zero field means not stated.
type Link struct {
	Class   string        `yaml:"class,omitempty"` // "nvlink", "pcie", "infiniband", "ethernet", …
	Gbps    float64       `yaml:"gbps,omitempty"`  // 10^9 bits per second, each way
	Latency time.Duration `yaml:"latency,omitempty"`
}
