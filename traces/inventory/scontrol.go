package inventory

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"clustergym/internal/hostlist"
	"clustergym/traces"
)

// entity is a node, partition or switch as scontrol show and slurm.conf write it: keys and values.
type entity struct {
	line int // where it begins
	keys map[string]string
}

func (e *entity) get(keys ...string) string {
	for _, k := range keys {
		if v := e.keys[k]; !traces.NotGiven([]byte(v)) {
			return v
		}
	}
	return ""
}

// entities calls each with every entity that begins with one of first, which may be on one line or on several.
func (l *list) entities(r io.Reader, each func(e *entity) error, first ...string) (last int, err error) {
	e := entity{keys: map[string]string{}}
	done := func() error {
		if len(e.keys) == 0 {
			return nil
		}
		err := each(&e)
		clear(e.keys)
		return err
	}
	last, err = l.lines(r, func(line int, text string) error {
		text = strings.TrimSpace(text)
		if text == "" || text[0] == '#' {
			return nil
		}
		key, _, _ := strings.Cut(text, "=")
		if begins := slices.Contains(first, key); begins {
			if err := done(); err != nil {
				return err
			}
			e.line = line
		} else if len(e.keys) == 0 {
			return nil // other lines of slurm.conf
		}
		for word := range strings.FieldsSeq(text) {
			k, v, ok := strings.Cut(word, "=")
			if _, there := e.keys[k]; ok && !there {
				e.keys[k] = v
			}
		}
		return nil
	})
	if err != nil {
		return last, err
	}
	return last, done()
}

const scontrolCommand = "scontrol show node"

// scontrol reads what scontrol show node prints, on one line for each node or on several, and as JSON; what scontrol
// show partition prints may be behind it. Such lines of slurm.conf are the same.
func (l *list) scontrol(r io.Reader) error {
	head := make([]byte, 1<<10)
	n, err := io.ReadFull(r, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return err
	}
	head = head[:n]
	r = io.MultiReader(bytes.NewReader(head), r)
	if trimmed := bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))); len(trimmed) > 0 && trimmed[0] == '{' {
		return l.scontrolJSON(r)
	}
	var partitions []entity
	last, err := l.entities(r, func(e *entity) error {
		if name := e.keys["PartitionName"]; name != "" {
			partitions = append(partitions, entity{e.line, map[string]string{"name": name, "nodes": e.get("Nodes")}})
			return nil
		}
		if e.keys["NodeName"] == "DEFAULT" {
			return nil
		}
		return l.scontrolNode(e.line, "NodeName", e.keys["NodeName"], e.get("Gres"), e.get("CfgTRES"),
			e.get("CPUTot", "CPUs", "Procs"), e.get("RealMemory"), strings.Split(e.get("Partitions"), ","))
	}, "NodeName", "PartitionName", "SwitchName")
	if err != nil {
		return err
	}
	for _, p := range partitions {
		if err := l.partition(p.line, p.keys["name"], p.keys["nodes"]); err != nil {
			return err
		}
	}
	return l.done(last, scontrolCommand)
}

func (l *list) scontrolNode(line int, column, name, generic, configured, cpus, mem string, partitions []string) error {
	var n Node
	n.Partitions = slices.DeleteFunc(partitions, func(p string) bool { return traces.NoName([]byte(p)) })
	if len(n.Partitions) == 0 {
		n.Partitions = nil
	}
	var want string
	if n.GPUs, n.GPUType, want = gres(generic); want != "" {
		return l.fault(line, "Gres", generic, want)
	}
	if n.GPUs == 0 && configured != "" {
		if n.GPUs, n.GPUType, want = configuredGPUs(configured); want != "" {
			return l.fault(line, "CfgTRES", configured, want)
		}
	}
	var ok bool
	if n.CPUs, ok = amount(cpus); !ok {
		return l.fault(line, "CPUTot", cpus, "a number of cores")
	}
	m, ok := amount(mem)
	if !ok {
		return l.fault(line, "RealMemory", mem, "memory in MB")
	}
	n.MemGB = m / 1024
	return l.add(line, column, name, n)
}

// configuredGPUs reads cpu=64,mem=515000M,billing=64,gres/gpu=8,gres/gpu:a100=8: all GPUs, and those of a type.
func configuredGPUs(tres string) (gpus int, kind, want string) {
	var all, typed []string
	for item := range strings.SplitSeq(tres, ",") {
		switch {
		case strings.HasPrefix(item, "gres/gpu="):
			all = append(all, item)
		case strings.HasPrefix(item, "gres/gpu:"):
			typed = append(typed, item)
		}
	}
	if gpus, _, want = gres(strings.Join(all, ",")); want != "" {
		return 0, "", want
	}
	n, kind, want := gres(strings.Join(typed, ","))
	return max(gpus, n), kind, want
}

// partition adds a partition to its nodes.
func (l *list) partition(line int, name, nodes string) error {
	if name == "DEFAULT" {
		return nil
	}
	var all []string
	if strings.EqualFold(nodes, "ALL") {
		for _, n := range l.inv.Nodes {
			all = append(all, n.Name)
		}
	} else {
		var err error
		if all, err = hostlist.Expand(nodes); err != nil {
			return l.fault(line, "Nodes", nodes, fmt.Sprintf("the nodes of partition %s as g[01-03,07]", name))
		}
	}
	for _, node := range all {
		if i, there := l.at[node]; there && !slices.Contains(l.inv.Nodes[i].Partitions, name) {
			l.inv.Nodes[i].Partitions = append(slices.Clip(l.inv.Nodes[i].Partitions), name)
		}
	}
	return nil
}
