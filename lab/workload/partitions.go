package workload

import (
	"clustergym/internal/hostlist"
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
