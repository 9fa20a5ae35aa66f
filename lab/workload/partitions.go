package workload

import (
	"clustergym/internal/hostlist"
	"clustergym/simulator/cluster"
	"clustergym/traces"
	"clustergym/traces/inventory"
)

// Partition is a partition of Slurm: a queue, and the nodes that its jobs may use. A node may be in several.
type Partition struct {
	Name  string
	Hosts string // the nodes as a list that package hostlist expands
}

// Partitions returns the partitions of the cluster that a user names, in the order in which its list of nodes has them.
// It returns nil for clusters that are no list of nodes with partitions. Mistakes are those of ClusterSpec.
func Partitions(name string) ([]Partition, error) {
	inv, err := nodesOf(name)
	if err != nil || inv == nil {
		return nil, err
	}
	var all []Partition
	at := map[string]int{}
	hosts := [][]string{}
	for _, n := range inv.Nodes {
		for _, p := range n.Partitions {
			i, seen := at[p]
			if !seen {
				i = len(all)
				at[p] = i
				all, hosts = append(all, Partition{Name: p}), append(hosts, nil)
			}
			hosts[i] = append(hosts[i], n.Name)
		}
	}
	for i := range all {
		all[i].Hosts = hostlist.Compress(hosts[i])
	}
	return all, nil
}

// Divided returns spec with a virtual cluster for each partition in which jobs are, on the nodes of the partition,
// which others may share. It returns spec unchanged if that would change nothing: no job is in a partition of the list,
// all of these partitions have all nodes with GPUs, or spec has virtual clusters already.
func Divided(spec cluster.Spec, parts []Partition, jobs []traces.Job) cluster.Spec {
	names := spec.NodeNames()
	if len(spec.VCs) > 0 || names == nil {
		return spec
	}
	in := map[string]bool{}
	for i := range jobs {
		if jobs[i].GPUs > 0 {
			in[jobs[i].VC] = true
		}
	}
	gpus := map[string]bool{} // nodes with GPUs
	for _, r := range spec.Racks {
		for _, n := range r.Nodes {
			for _, name := range n.Names {
				gpus[name] = n.GPUs > 0
			}
		}
	}
	var all []cluster.VCSpec
	whole := true
	for _, p := range parts {
		hosts, err := hostlist.Expand(p.Hosts)
		if !in[p.Name] || err != nil {
			continue
		}
		left := len(gpus)
		for _, has := range gpus {
			if !has {
				left--
			}
		}
		for _, h := range hosts {
			if gpus[h] {
				left--
			}
		}
		whole = whole && left == 0
		all = append(all, cluster.VCSpec{Name: p.Name, Hosts: []string{p.Hosts}})
	}
	if len(all) == 0 || whole {
		return spec
	}
	spec.VCs = all
	return spec
}

// nodesOf returns the list of nodes that name is or has, nil if it has none.
func nodesOf(name string) (*inventory.Inventory, error) {
	name, err := Located(name)
	if err != nil {
		return nil, err
	}
	if inv, _, ok, err := joined(name); ok {
		return &inv, err
	}
	inv, ok, err := readInventory(name)
	if err != nil || !ok {
		return nil, err
	}
	return &inv, nil
}
