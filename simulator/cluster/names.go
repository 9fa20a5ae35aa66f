package cluster

import (
	"fmt"

	"clustergym/internal/fault"
)

// NodeNames returns the name of each node in order, "" for nodes without one; nil if no node has a name.
func (s *Spec) NodeNames() []string {
	var names []string
	nodes := 0
	for _, r := range s.Racks {
		for range r.Count.N() {
			for _, n := range r.Nodes {
				if len(n.Names) > 0 {
					names = append(append(names, make([]string, nodes-len(names))...), n.Names...)
				}
				nodes += n.Count.N()
			}
		}
	}
	if names == nil {
		return nil
	}
	return append(names, make([]string, nodes-len(names))...)
}

// Same reports whether nodes of n and o differ in nothing but their number and names.
func (n NodeSpec) Same(o NodeSpec) bool {
	return n.GPUs == o.GPUs && n.GPUType == o.GPUType && n.GPUMemGB == o.GPUMemGB && n.CPUs == o.CPUs &&
		n.MemGB == o.MemGB && n.Link == o.Link && n.NIC == o.NIC
}

// checkNames reports faults of the nodes' names.
func (s *Spec) checkNames(l *fault.List) {
	seen := map[string]bool{}
	for i, r := range s.Racks {
		for k, n := range r.Nodes {
			if n.Names == nil {
				continue
			}
			key := fmt.Sprintf("racks[%d].nodes[%d].names", i, k)
			l.Add(r.Count.N() == 1, key, fmt.Sprintf("%d names", len(n.Names)),
				"none in a rack with a count: each node has a name of its own")
			l.Add(len(n.Names) == n.Count.N(), key, fmt.Sprintf("%d names", len(n.Names)),
				fmt.Sprintf("a name for each of the %d nodes", n.Count.N()))
			for _, name := range n.Names {
				l.Add(name != "" && !seen[name], key, name, "a name of its own for each node")
				seen[name] = true
			}
		}
	}
}
