package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"clustergym/internal/fault"
	"clustergym/internal/hostlist"
	"clustergym/internal/plain"
)

// maxGPUs and maxNodes bound a cluster, so that a mistyped count is reported instead of exhausting the machine's
// memory; the others keep the sums of a node's resources within an int64.
const (
	maxGPUs  = 1 << 24
	maxNodes = 1 << 20
	maxCPUs  = 1 << 20
	maxMemGB = 1 << 30
	maxVCs   = 1 << 16
	maxMasks = 64 // virtual clusters, if some name hosts
)

// Validate reports all faults of the specification.
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
			l.Add(n.MemGB >= 0 && n.MemGB <= maxMemGB, key+".mem_gb", n.MemGB,
				fmt.Sprintf("0 to %d GiB, 0 = not limited", maxMemGB))
			l.Add(n.GPUMemGB >= 0 && n.GPUMemGB <= maxMemGB, key+".gpu_mem_gb", n.GPUMemGB, "GiB, 0 = not stated")
			checkLink(&l, key+".link", n.Link)
			checkLink(&l, key+".nic", n.NIC)
			// Counts are first limited to just above the bound, so that no product overflows.
			count := min(r.Count.N(), maxNodes+1) * min(n.Count.N(), maxNodes+1)
			nodes = min(nodes+count, maxNodes+1)
			total = min(total+min(count, maxGPUs+1)*min(max(0, n.GPUs), maxGPUs+1), maxGPUs+1)
		}
	}
	if len(s.Racks) > 0 {
		l.Add(total > 0 && total <= maxGPUs, "racks", inAll(total, maxGPUs, "GPUs"), fmt.Sprintf("1 to %d GPUs", maxGPUs))
		l.Add(nodes <= maxNodes, "racks", inAll(nodes, maxNodes, "nodes"), fmt.Sprintf("at most %d nodes", maxNodes))
	}
	s.checkNames(&l)
	types := s.types()
	l.Add(len(types) <= 64, "racks", fmt.Sprintf("%d GPU types", len(types)), "at most 64")
	for _, t := range slices.Sorted(maps.Keys(s.Speeds)) {
		v := s.Speeds[t]
		l.Add(v > 0 && v < 1e6, "speeds."+t, v, "a positive factor, 1 = the reference GPU")
		l.Add(s.Pool == 0, "speeds."+t, v, "none: the GPUs of a counter have no type")
		if s.Pool == 0 && len(s.Racks) > 0 && !slices.Contains(types, t) {
			l.Add(false, "speeds."+t, v, wantType(types))
		}
	}
	s.checkVCs(&l, nodes)
	return l.Err()
}

// types returns the GPU types, sorted, with "" for nodes that state none.
func (s *Spec) types() []string {
	seen := map[string]bool{}
	for _, r := range s.Racks {
		for _, n := range r.Nodes {
			seen[n.GPUType] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// wantType names the types that the nodes have.
func wantType(types []string) string {
	named := slices.DeleteFunc(slices.Clone(types), func(k string) bool { return k == "" })
	if len(named) == 0 {
		return "none: no node states a gpu_type"
	}
	return "the type of some node: " + strings.Join(named, ", ")
}

// checkVCs reports faults of the virtual clusters of a cluster with the given number of nodes, 0 for a counter.
func (s *Spec) checkVCs(l *fault.List, nodes int) {
	owned, wrong := 0, false
	first := map[string]int{}
	s.checkHosts(l)
	l.Add(len(s.VCs) <= maxVCs, "vcs", len(s.VCs), fmt.Sprintf("at most %d virtual clusters", maxVCs))
	for i, v := range s.VCs {
		key := fmt.Sprintf("vcs[%d]", i)
		l.Add(v.Name != "", key+".name", v.Name, "a name, as jobs call it")
		if at, twice := first[v.Name]; twice && v.Name != "" {
			l.Add(false, key+".name", v.Name, fmt.Sprintf("a name of its own: vcs[%d] has this one", at))
		} else {
			first[v.Name] = i
		}
		l.Add(v.Quota >= 0 && v.Quota <= maxGPUs, key+".quota", v.Quota,
			fmt.Sprintf("0 to %d GPUs, 0 = not limited", maxGPUs))
		l.Add(v.Nodes == 0 || v.Quota == 0, key+".quota", v.Quota,
			"none beside nodes: a virtual cluster has nodes of its own or a quota")
		switch {
		case s.Pool > 0:
			l.Add(v.Nodes == 0, key+".nodes", v.Nodes, "none: a counter has no nodes; a quota does it")
		case v.Nodes < 0 || v.Nodes > nodes-owned:
			l.Add(false, key+".nodes", v.Nodes,
				fmt.Sprintf("0 to %d: of %d nodes, the virtual clusters before it own %d", nodes-owned, nodes, owned))
			owned, wrong = owned+max(0, min(v.Nodes, nodes-owned)), true
		default:
			owned += v.Nodes
		}
	}
	if s.Pool > 0 || len(s.Racks) == 0 || wrong {
		return
	}
	for i, v := range s.VCs {
		l.Add(v.Nodes != 0 || owned < nodes, fmt.Sprintf("vcs[%d].nodes", i), v.Nodes,
			fmt.Sprintf("1 or more: others own all %d nodes, so that none is left for it", nodes))
	}
}

// checkHosts reports faults of the hosts of virtual clusters.
func (s *Spec) checkHosts(l *fault.List) {
	if !slices.ContainsFunc(s.VCs, func(v VCSpec) bool { return v.Hosts != nil }) {
		return
	}
	l.Add(len(s.VCs) <= maxMasks, "vcs", len(s.VCs), fmt.Sprintf("at most %d virtual clusters where some name hosts", maxMasks))
	find := s.finder()
	for i, v := range s.VCs {
		key := fmt.Sprintf("vcs[%d]", i)
		l.Add(v.Nodes == 0, key+".nodes", v.Nodes, "none: other virtual clusters name hosts, so this one names its own too")
		l.Add(v.Hosts == nil || len(v.Hosts) > 0, key+".hosts", "none", "a list of nodes, or no such key")
		l.Add(v.Hosts == nil || s.Pool == 0, key+".hosts", strings.Join(v.Hosts, ","), "none: a counter has no nodes")
		for _, list := range v.Hosts {
			names, err := hostlist.Expand(list)
			l.Add(err == nil && len(names) > 0, key+".hosts", plain.Clip(list, 80), "a list of nodes as g[01-03,07]")
			i := slices.IndexFunc(names, func(name string) bool { return find(name) < 0 })
			if i >= 0 && s.Pool == 0 {
				l.Add(false, key+".hosts", plain.Clip(list, 80), "names of nodes: none is called "+plain.Clip(names[i], 80))
			}
		}
	}
}

// inAll prints a sum that was limited to just above limit.
func inAll(n, limit int, what string) string {
	if n > limit {
		return fmt.Sprintf("more than %d %s in all", limit, what)
	}
	return fmt.Sprintf("%d %s in all", n, what)
}

func checkLink(l *fault.List, key string, k Link) {
	l.Add(k.Gbps >= 0 && k.Gbps <= 1e9, key+".gbps", k.Gbps, "0 to 1e9 Gbit/s, 0 = not stated")
	l.Add(k.Latency >= 0, key+".latency", k.Latency, "a time, as 5us")
}
