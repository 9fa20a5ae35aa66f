package look

import (
	"math"
	"slices"

	"clustergym/simulator/cluster"
)

// ClusterDocument is a cluster in JSON: totals, then what it was built from, with the default values of links that are
// not stated.
type ClusterDocument struct {
	Name   string        `json:"name"`
	Pool   bool          `json:"pool"` // a plain counter, whose GPUs have no identity
	Racks  int           `json:"racks"`
	Nodes  int           `json:"nodes"`
	GPUs   int           `json:"gpus"`
	CPUs   float64       `json:"cpus"`   // cores; 0 if some node does not limit them
	MemGB  float64       `json:"mem_gb"` // GiB; 0 if some node does not limit it
	ByType []gpuDocument `json:"by_type"`
	VCs    []vcDocument  `json:"vcs"`
	Shared nodeRange     `json:"shared"` // nodes that no virtual cluster owns; all nodes if there are no virtual clusters
	Tree   []rackDoc     `json:"tree"`
}

type gpuDocument struct {
	GPUType string  `json:"gpu_type"` // "" = not stated
	Nodes   int     `json:"nodes"`
	GPUs    int     `json:"gpus"`
	Speed   float64 `json:"speed"` // 1 = the reference GPU
}

// nodeRange is a range of neighbouring nodes, numbered from 0.
type nodeRange struct {
	First int `json:"first"`
	Nodes int `json:"nodes"`
	GPUs  int `json:"gpus"`
}

type vcDocument struct {
	Name string `json:"name"`
	nodeRange
	Quota int `json:"quota"` // GPUs that its jobs may hold; 0 = unlimited
	// the nodes that its jobs may use, which need be no neighbours; nodes and gpus count them, and first is 0
	Hosts []string `json:"hosts,omitempty"`
}

type rackDoc struct {
	Count  int       `json:"count"`
	Uplink linkDoc   `json:"uplink"`
	Nodes  []nodeDoc `json:"nodes"`
}

type nodeDoc struct {
	Count    int     `json:"count"`
	GPUs     int     `json:"gpus"`
	GPUType  string  `json:"gpu_type"`
	GPUMemGB float64 `json:"gpu_mem_gb"` // 0 = not stated
	CPUs     float64 `json:"cpus"`       // 0 = unlimited
	MemGB    float64 `json:"mem_gb"`     // 0 = unlimited
	Link     linkDoc `json:"link"`
	NIC      linkDoc `json:"nic"`
}

type linkDoc struct {
	Class     string  `json:"class"`
	Gbps      float64 `json:"gbps"`
	LatencyUS float64 `json:"latency_us"`
	Stated    bool    `json:"stated"` // the file states all of it; otherwise the rest has the usual values of the class
}

func documentOf(c *cluster.Cluster) ClusterDocument {
	spec := c.Spec()
	d := ClusterDocument{Name: spec.Name, Pool: c.Pool(), Racks: c.Racks(), Nodes: c.Nodes(), GPUs: c.GPUs(),
		ByType: []gpuDocument{}, VCs: []vcDocument{}, Tree: []rackDoc{}}
	if d.Pool { // a counter counts each GPU as a node of its own
		d.Racks, d.Nodes = 0, 0
	}
	d.Shared = nodeRange{0, d.Nodes, d.GPUs}
	cpus, mem := true, true
	rack := 0
	for _, r := range spec.Racks {
		doc := rackDoc{Count: r.Count.N(), Uplink: linkOf(c.Uplink(rack), r.Uplink), Nodes: []nodeDoc{}}
		node, _ := c.RackNodes(rack)
		for _, n := range r.Nodes {
			doc.Nodes = append(doc.Nodes,
				nodeDoc{n.Count.N(), n.GPUs, n.GPUType, n.GPUMemGB, n.CPUs, n.MemGB, linkOf(c.Link(node), n.Link),
					linkOf(c.NIC(node), n.NIC)})
			node += n.Count.N()
			count := r.Count.N() * n.Count.N()
			cpus, mem = cpus && n.CPUs > 0, mem && n.MemGB > 0
			d.CPUs += float64(count) * n.CPUs
			d.MemGB += float64(count) * n.MemGB
			d.addType(&spec, n, count)
		}
		d.Tree = append(d.Tree, doc)
		rack += r.Count.N()
	}
	if !cpus {
		d.CPUs = 0
	}
	if !mem {
		d.MemGB = 0
	}
	first := 0
	for i, v := range spec.VCs {
		doc := vcDocument{Name: v.Name, Quota: v.Quota}
		if v.Nodes > 0 {
			doc.nodeRange = nodeRange{first, v.Nodes, c.VCFree(int32(i + 1))}
			first += v.Nodes
			d.Shared.GPUs -= doc.GPUs
		}
		if v.Hosts != nil {
			doc.Hosts, doc.GPUs = v.Hosts, c.VCFree(int32(i+1))
			for n := range c.Nodes() {
				if c.Serves(n, int32(i+1)) {
					doc.Nodes++
				}
			}
		}
		d.VCs = append(d.VCs, doc)
	}
	d.Shared.First, d.Shared.Nodes = first, d.Nodes-first
	return d
}

// addType counts a group of equal nodes by GPU type, if they have GPUs.
func (d *ClusterDocument) addType(spec *cluster.Spec, n cluster.NodeSpec, count int) {
	if n.GPUs == 0 {
		return
	}
	i := slices.IndexFunc(d.ByType, func(t gpuDocument) bool { return t.GPUType == n.GPUType })
	if i < 0 {
		speed, ok := spec.Speeds[n.GPUType]
		if !ok {
			speed = 1
		}
		i = len(d.ByType)
		d.ByType = append(d.ByType, gpuDocument{GPUType: n.GPUType, Speed: speed})
	}
	d.ByType[i].Nodes += count
	d.ByType[i].GPUs += count * n.GPUs
}

// linkOf describes link l; stated holds what the file says of it.
func linkOf(l, stated cluster.Link) linkDoc {
	us := math.Round(float64(l.Latency)) / 1000
	return linkDoc{Class: l.Class, Gbps: l.Gbps, LatencyUS: us, Stated: l == stated}
}
