package incumbent

import (
	"cmp"
	"slices"
	"time"

	"clustergym/internal/hostlist"
	"clustergym/simulator/cluster"
)

// mostPartitions is how many partitions are looked for.
const mostPartitions = 16

// partitions returns the virtual clusters that own nodes as the record shows them; nil where it shows none. A
// partition's jobs keep to its own nodes if the record names other nodes for every partition, or if all partitions
// together never held more than the cluster has at their most. The nodes of the cluster must be alike, because a
// virtual cluster owns a number of them.
func (p *Past) partitions() []cluster.VCSpec {
	nodes, each := alike(&p.Spec)
	if nodes == 0 || len(p.Spec.VCs) > 0 {
		return nil
	}
	type part struct {
		hosts map[string]bool
	}
	parts := map[string]*part{}
	var names []string
	named := true // every job that ran names its nodes
	for i := range p.Jobs {
		j := &p.Jobs[i]
		x := parts[j.VC]
		if x == nil {
			x = &part{hosts: map[string]bool{}}
			parts[j.VC], names = x, append(names, j.VC)
		}
		if p.Starts[i] < 0 {
			continue
		}
		hosts, err := hostlist.Expand(j.Hosts)
		named = named && err == nil && len(hosts) > 0
		for _, h := range hosts {
			x.hosts[h] = true
		}
	}
	if len(names) < 2 || len(names) > mostPartitions || parts[""] != nil {
		return nil
	}
	slices.Sort(names)
	owned := map[string]bool{}
	var all []cluster.VCSpec
	sum, largest := 0, 0
	for k, name := range names {
		n := 0
		if named {
			n = len(parts[name].hosts)
			for h := range parts[name].hosts {
				if owned[h] {
					return nil // partitions share nodes
				}
				owned[h] = true
			}
		} else {
			n = (p.most(name) + each - 1) / each
		}
		if n == 0 {
			return nil
		}
		all = append(all, cluster.VCSpec{Name: name, Nodes: n})
		if sum += n; n > all[largest].Nodes {
			largest = k
		}
	}
	if sum > nodes {
		return nil
	}
	all[largest].Nodes += nodes - sum // nodes on which no job ran
	return all
}

// most returns the most GPUs that the recorded jobs of a partition held at one time.
func (p *Past) most(vc string) (most int) {
	type change struct {
		at time.Duration
		by int
	}
	var all []change
	for i, s := range p.Starts {
		if j := &p.Jobs[i]; s >= 0 && j.VC == vc {
			all = append(all, change{s, j.GPUs}, change{s + j.Work, -j.GPUs})
		}
	}
	slices.SortFunc(all, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	now := 0
	for _, c := range all {
		now += c.by
		most = max(most, now)
	}
	return most
}

// alike returns the number of nodes, 0 if they differ or if there are none, and the GPUs of each.
func alike(s *cluster.Spec) (nodes, each int) {
	kind := ""
	for _, r := range s.Racks {
		for _, n := range r.Nodes {
			if nodes > 0 && (n.GPUs != each || n.GPUType != kind) {
				return 0, 0
			}
			nodes, each, kind = nodes+r.Count.N()*n.Count.N(), n.GPUs, n.GPUType
		}
	}
	return nodes, max(1, each)
}
