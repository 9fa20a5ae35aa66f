package workload

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"clustergym/internal/fault"
	"clustergym/simulator/cluster"
	"clustergym/traces"
	"clustergym/traces/inventory"
)

// usualGPUs is the number of GPUs of a node if the list of machines has none. It is 8 in every published cluster whose
// list has none.
const usualGPUs = 8

// listHead is the size of the beginning of a file that decides whether it is an inventory or YAML.
const listHead = 64 << 10

// readInventory reads the list of machines at path, compressed or not. ok is false if the file is no such list, if it
// is no ordinary file, or if it cannot be read at all; reading it as YAML then reports the error.
func readInventory(path string) (inv inventory.Inventory, ok bool, err error) {
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
		return inv, false, nil
	}
	f, err := traces.OrdinaryFiles().Open(context.Background(), path)
	// a file of another kind, or packed in a way that is not read
	if kind, ok := errors.AsType[*traces.OpenError](err); ok && kind.Err == nil {
		return inv, true, fault.Mistakef("cluster file %s: %s", path, kind.Why)
	} else if err != nil {
		return inv, false, nil
	}
	defer f.Close() //nolint:errcheck // open for reading only
	head := make([]byte, listHead)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return inv, false, nil
	}
	head = head[:n]
	if dailyVCs(head) {
		return inv, true,
			fault.Mistakef(
				"cluster file %s: this is Helios' list of the GPUs of each virtual cluster day by day, want its list of their "+
					"nodes, with the header %q", path, ",num")
	}
	if says := inventory.Mistaken(head); says != "" {
		return inv, true, fault.Mistakef("cluster file %s: %s", path, says)
	}
	if !inventory.Sniff(head) {
		return inv, false, nil
	}
	inv, err = inventory.Read(io.MultiReader(bytes.NewReader(head), f), path)
	if err != nil {
		return inv, true, &fault.Mistake{Err: err}
	}
	return inv, true, nil
}

// listed returns the cluster of a list of machines, which has the name of its file.
func listed(inv *inventory.Inventory, path string) (cluster.Spec, error) {
	spec := inventorySpec(inv)
	spec.Name, _, _ = strings.Cut(filepath.Base(path), ".")
	if err := spec.Validate(); err != nil {
		return spec, fault.Mistakef("cluster file %s: %w", path, err)
	}
	return spec, nil
}

// joined reads nodes.txt+topology.conf: a list of nodes and the switches that they are on, in any order. path is that
// of the list. ok is false if name is no such pair of files.
func joined(name string) (inv inventory.Inventory, path string, ok bool, err error) {
	first, second, ok := strings.Cut(name, "+")
	if !ok || first == "" || second == "" {
		return inv, "", false, nil
	}
	paths := [2]string{first, second}
	var lists [2]inventory.Inventory
	there := 0
	for _, path := range paths {
		if st, err := os.Stat(path); err == nil && !st.IsDir() {
			there++
		}
	}
	if there == 0 {
		return inv, "", false, nil
	}
	const want = "use NODES+TOPOLOGY, a list of nodes and the topology.conf of the same cluster"
	for i, path := range paths {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return inv, "", true, fault.Mistakef("cluster file %s: there is no such file; %s", path, want)
		}
		if lists[i], ok, err = readInventory(path); err != nil {
			return inv, "", true, err
		} else if !ok {
			return inv, "", true, fault.Mistakef("cluster file %s: this is neither a list of nodes nor a topology.conf; %s", path, want)
		}
	}
	nodes, topo := 0, 1
	if lists[nodes].Topology() {
		nodes, topo = 1, 0
	}
	if lists[nodes].Topology() || !lists[topo].Topology() || !lists[nodes].Own() {
		return inv, "", true, fault.Mistakef("cluster files %s and %s: these are %s and %s; %s", first, second,
			lists[0].Format, lists[1].Format, want)
	}
	inv, err = lists[nodes].Racked(&lists[topo])
	if err != nil {
		return inv, "", true, fault.Mistakef("cluster files %s and %s: %w", first, second, err)
	}
	return inv, paths[nodes], true, nil
}

// inventorySpec makes a cluster of a list of machines. Racks are in the order in which the list first names them, and
// nodes within a rack in the order of the list. Equal neighbours become one entry with a count. Nodes without GPUs
// stay. Nodes have their names if the cluster's own programs have printed the list. A list of virtual clusters becomes
// one rack of the nodes that they own; a virtual cluster without nodes is left out, because its jobs could never run.
// If the list does not mention GPUs, every node has usualGPUs.
func inventorySpec(inv *inventory.Inventory) cluster.Spec {
	var s cluster.Spec
	nodes := 0
	for _, v := range inv.VCs {
		if v.Nodes > 0 {
			s.VCs = append(s.VCs, cluster.VCSpec{Name: v.Name, Nodes: v.Nodes})
			nodes += v.Nodes
		}
	}
	if nodes > 0 {
		s.Racks = []cluster.RackSpec{{Count: 1, Nodes: []cluster.NodeSpec{{Count: cluster.Count(nodes), GPUs: usualGPUs}}}}
		return s
	}
	at := map[string]int{}
	for _, n := range inv.Nodes {
		i, seen := at[n.Rack]
		if !seen {
			i = len(s.Racks)
			at[n.Rack] = i
			s.Racks = append(s.Racks, cluster.RackSpec{Count: 1})
		}
		spec := cluster.NodeSpec{Count: 1, GPUs: n.GPUs, GPUType: n.GPUType, GPUMemGB: n.GPUMemGB, CPUs: n.CPUs,
			MemGB: n.MemGB}
		if !inv.GivesGPUs() {
			spec.GPUs = usualGPUs
		}
		if inv.Own() {
			spec.Names = []string{n.Name}
		}
		s.Racks[i].Nodes = addNode(s.Racks[i].Nodes, spec)
	}
	s.Racks = foldRacks(s.Racks)
	return s
}

// addNode appends n to nodes, or increases the count of the last node if it is equal.
func addNode(nodes []cluster.NodeSpec, n cluster.NodeSpec) []cluster.NodeSpec {
	if len(nodes) > 0 {
		last := &nodes[len(nodes)-1]
		if last.Same(n) && (last.Names == nil) == (n.Names == nil) {
			last.Count++
			last.Names = append(last.Names, n.Names...)
			return nodes
		}
	}
	return append(nodes, n)
}

// sameNodes reports whether two entries of racks are equal and without names.
func sameNodes(a, b cluster.NodeSpec) bool {
	return a.Count == b.Count && a.Names == nil && b.Names == nil && a.Same(b)
}

// foldRacks replaces equal neighbours without names by one rack with a count.
func foldRacks(racks []cluster.RackSpec) []cluster.RackSpec {
	var folded []cluster.RackSpec
	for _, r := range racks {
		if len(folded) > 0 {
			if last := &folded[len(folded)-1]; slices.EqualFunc(last.Nodes, r.Nodes, sameNodes) && last.Uplink == r.Uplink {
				last.Count++
				continue
			}
		}
		folded = append(folded, r)
	}
	return folded
}
