package cluster

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"clustergym/internal/fault"
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

// maxGPUs and maxNodes bound a cluster so that a mistyped count is a fault and not a machine without memory; the
// others keep sums of a node's resources within an int64.
const (
	maxGPUs  = 1 << 24
	maxNodes = 1 << 20
	maxCPUs  = 1 << 20
	maxMemGB = 1 << 30
	maxVCs   = 1 << 16
)

var shortForm = regexp.MustCompile(`^(?:(pool|swf)[:-](\d+)|(\d+)x(\d+))$`)

// Parse reads a short form: "pool:256" (a counter), "swf-256" (the same, by its customary name) or "6x8" (six
// nodes of eight GPUs in one rack). ok is false where s has none of these forms.
func Parse(s string) (spec Spec, ok bool, err error) {
	m := shortForm.FindStringSubmatch(s)
	if m == nil {
		return Spec{}, false, nil
	}
	num := func(t string) int {
		n, _ := strconv.Atoi(t) // digits only; what is out of range becomes the largest int, which Validate refuses
		return n
	}
	spec.Name = s
	if m[1] != "" {
		spec.Pool = num(m[2])
	} else {
		spec.Racks = []RackSpec{{Count: 1, Nodes: []NodeSpec{{Count: Count(num(m[3])), GPUs: num(m[4])}}}}
	}
	// In a Spec 0 means "left out".
	if spec.Pool == 0 && (len(spec.Racks) == 0 || spec.Racks[0].Nodes[0].Count == 0) {
		return Spec{}, true, fault.New("cluster", s, "a number of GPUs above 0, as pool:256 or 6x8")
	}
	if err := spec.Validate(); err != nil {
		return Spec{}, true, fmt.Errorf("cluster %q: %w", s, err)
	}
	return spec, true, nil
}

// Validate reports every fault of the specification.
func (s *Spec) Validate() error {
	var l fault.List
	l.Add(s.Pool >= 0 && s.Pool <= maxGPUs, "pool", s.Pool, fmt.Sprintf("1 to %d GPUs", maxGPUs))
	l.Add(s.Pool != 0 || len(s.Racks) > 0, "racks", "none", "a list of racks, or pool: N for a plain counter")
	l.Add(s.Pool == 0 || len(s.Racks) == 0, "racks", len(s.Racks), "none beside pool (a counter has no racks)")
	total, nodes := 0, 0
	for i, r := range s.Racks {
		key := fmt.Sprintf("racks[%d]", i)
		l.Add(r.Count >= 0, key+".count", r.Count, "1 or more (left out = 1)")
		l.Add(len(r.Nodes) > 0, key+".nodes", "none", "a list of nodes")
		checkLink(&l, key+".uplink", r.Uplink)
		for k, n := range r.Nodes {
			key := fmt.Sprintf("%s.nodes[%d]", key, k)
			l.Add(n.Count >= 0, key+".count", n.Count, "1 or more (left out = 1)")
			l.Add(n.GPUs >= 0 && n.GPUs <= 1024, key+".gpus", n.GPUs, "0 to 1024")
			l.Add(n.CPUs >= 0 && n.CPUs <= maxCPUs, key+".cpus", n.CPUs, fmt.Sprintf("0 to %d cores, 0 = not limited", maxCPUs))
			l.Add(n.MemGB >= 0 && n.MemGB <= maxMemGB, key+".mem_gb", n.MemGB, fmt.Sprintf("0 to %d GiB, 0 = not limited", maxMemGB))
			l.Add(n.GPUMemGB >= 0 && n.GPUMemGB <= maxMemGB, key+".gpu_mem_gb", n.GPUMemGB, "GiB, 0 = not stated")
			checkLink(&l, key+".link", n.Link)
			checkLink(&l, key+".nic", n.NIC)
			// Counts are cut to just above the bound first, so that no product overflows.
			count := min(r.Count.N(), maxNodes+1) * min(n.Count.N(), maxNodes+1)
			nodes = min(nodes+count, maxNodes+1)
			total = min(total+min(count, maxGPUs+1)*min(max(0, n.GPUs), maxGPUs+1), maxGPUs+1)
		}
	}
	if len(s.Racks) > 0 {
		l.Add(total > 0 && total <= maxGPUs, "racks", inAll(total, maxGPUs, "GPUs"), fmt.Sprintf("1 to %d GPUs", maxGPUs))
		l.Add(nodes <= maxNodes, "racks", inAll(nodes, maxNodes, "nodes"), fmt.Sprintf("at most %d nodes", maxNodes))
	}
	for _, t := range sortedKeys(s.Speeds) {
		v := s.Speeds[t]
		l.Add(v > 0 && v < 1e6, "speeds."+t, v, "a positive factor, 1 = the reference GPU")
	}
	types := map[string]bool{}
	for _, r := range s.Racks {
		for _, n := range r.Nodes {
			types[n.GPUType] = true
		}
	}
	l.Add(len(types) <= 64, "racks", fmt.Sprintf("%d GPU types", len(types)), "at most 64")
	s.checkVCs(&l, nodes)
	return l.Err()
}

// checkVCs reports faults of the virtual clusters of a cluster with so many nodes, 0 of a counter.
func (s *Spec) checkVCs(l *fault.List, nodes int) {
	owned := 0
	first := map[string]int{}
	l.Add(len(s.VCs) <= maxVCs, "vcs", len(s.VCs), fmt.Sprintf("at most %d virtual clusters", maxVCs))
	for i, v := range s.VCs {
		key := fmt.Sprintf("vcs[%d]", i)
		l.Add(v.Name != "", key+".name", v.Name, "a name, as jobs call it")
		if at, twice := first[v.Name]; twice && v.Name != "" {
			l.Add(false, key+".name", v.Name, fmt.Sprintf("a name of its own: vcs[%d] has this one", at))
		} else {
			first[v.Name] = i
		}
		l.Add(v.Quota >= 0 && v.Quota <= maxGPUs, key+".quota", v.Quota, fmt.Sprintf("0 to %d GPUs, 0 = not limited", maxGPUs))
		l.Add(v.Nodes == 0 || v.Quota == 0, key+".quota", v.Quota, "none beside nodes: a virtual cluster has nodes of its own or a quota")
		switch {
		case s.Pool > 0:
			l.Add(v.Nodes == 0, key+".nodes", v.Nodes, "none: a counter has no nodes; a quota does it")
		case v.Nodes < 0 || v.Nodes > nodes-owned:
			l.Add(false, key+".nodes", v.Nodes, fmt.Sprintf("0 to %d: of %d nodes, the virtual clusters before it own %d", nodes-owned, nodes, owned))
			owned += max(0, min(v.Nodes, nodes-owned))
		default:
			owned += v.Nodes
		}
	}
	if s.Pool > 0 || len(s.Racks) == 0 {
		return
	}
	for i, v := range s.VCs {
		l.Add(v.Nodes != 0 || owned < nodes, fmt.Sprintf("vcs[%d].nodes", i), v.Nodes,
			fmt.Sprintf("1 or more: others own all %d nodes, so that none is left for it", nodes))
	}
}

// inAll prints a sum that was cut to just above limit.
func inAll(n, limit int, what string) string {
	if n > limit {
		return fmt.Sprintf("more than %d %s in all", limit, what)
	}
	return fmt.Sprintf("%d %s in all", n, what)
}

func checkLink(l *fault.List, key string, k Link) {
	l.Add(k.Gbps >= 0, key+".gbps", k.Gbps, "10^9 bits per second, 0 = not stated")
	l.Add(k.Latency >= 0, key+".latency", k.Latency, "a time, as 5us")
}
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
