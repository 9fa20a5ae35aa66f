package inventory

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"clustergym/internal/hostlist"
)

// topology reads Slurm's topology.conf, or what scontrol show topology prints. The switches that nodes are on are their
// racks, and the switch above is their pod. It says nothing of GPUs.
func (l *list) topology(r io.Reader) error {
	above := map[string]string{} // of a switch
	last, err := l.entities(r, func(e *entity) error {
		name, nodes, below := e.keys["SwitchName"], e.get("Nodes"), e.get("Switches")
		if name == "" || nodes == "" && below == "" {
			return l.fault(e.line, "SwitchName", name, "a switch with Nodes= or Switches=, as SwitchName=s0 Nodes=g[1-8]")
		}
		if below != "" { // scontrol names the nodes below it too
			all, err := hostlist.Expand(below)
			if err != nil {
				return l.fault(e.line, "Switches", below, "the switches below it as s[0-3]")
			}
			for _, s := range all {
				above[s] = name
			}
			return nil
		}
		all, err := hostlist.Expand(nodes)
		if err != nil {
			return l.fault(e.line, "Nodes", nodes, "the nodes on the switch as g[01-03,07]")
		}
		for _, node := range all {
			if i, again := l.at[node]; again {
				return l.fault(e.line, "Nodes", node, fmt.Sprintf("each node on one switch; it is on %s already",
					l.inv.Nodes[i].Rack))
			}
			l.at[node] = len(l.inv.Nodes)
			l.inv.Nodes = append(l.inv.Nodes, Node{Name: node, Rack: name})
		}
		if len(l.inv.Nodes) > maxNodes {
			return l.fault(e.line, "Nodes", nodes, fmt.Sprintf("at most %d nodes in the whole file", maxNodes))
		}
		return nil
	}, "SwitchName", "NodeName", "BlockName")
	if err != nil {
		return err
	}
	for i := range l.inv.Nodes {
		l.inv.Nodes[i].Pod = above[l.inv.Nodes[i].Rack]
	}
	if len(l.inv.Nodes) == 0 {
		return l.saying(last, "no switch has nodes, so it names no racks; use a topology.conf with lines as SwitchName=s0 "+
			"Nodes=g[1-8]")
	}
	return nil
}

// Racked returns v with the racks and pods of topo, which has the same nodes by name. Nodes that topo does not have are
// in a rack of their own. An error names both files if they have no node in common.
func (v *Inventory) Racked(topo *Inventory) (Inventory, error) {
	at := make(map[string]*Node, len(topo.Nodes))
	for i := range topo.Nodes {
		at[topo.Nodes[i].Name] = &topo.Nodes[i]
	}
	out := *v
	out.Nodes = slices.Clone(v.Nodes)
	found := 0
	for i := range out.Nodes {
		n := &out.Nodes[i]
		n.Rack, n.Pod, n.Core = "", "", ""
		if t := at[n.Name]; t != nil {
			n.Rack, n.Pod, n.Core = t.Rack, t.Pod, t.Core
			found++
		}
	}
	if found == 0 && len(v.Nodes) > 0 && len(topo.Nodes) > 0 {
		return out, fmt.Errorf("no node of the list is on a switch: the list has %s, and the switches have %s; use files of "+
			"one cluster", some(v.Nodes), some(topo.Nodes))
	}
	return out, nil
}

// some names the first nodes.
func some(nodes []Node) string {
	const most = 3
	var names []string
	for _, n := range nodes[:min(most, len(nodes))] {
		names = append(names, clip(n.Name))
	}
	if len(nodes) > most {
		names = append(names, "…")
	}
	return strings.Join(names, ", ")
}
