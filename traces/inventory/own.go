package inventory

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"clustergym/internal/hostlist"
	"clustergym/traces"
)

// The formats that the programs of a cluster print.
const (
	formatSinfo    = "sinfo"
	formatScontrol = "scontrol"
	formatKube     = "kubernetes"
	formatTopology = "topology"
)

// own is a format of a cluster's own programs.
type own struct {
	name  string
	sniff func(head []byte) bool
	read  func(l *list, r io.Reader) error
}

var owns = []own{
	{formatScontrol, func(head []byte) bool { return keyed.Match(head) || sniffScontrolJSON(head) }, (*list).scontrol},
	{formatTopology, func(head []byte) bool { return switched.Match(head) }, (*list).topology},
	{formatKube, sniffKube, (*list).kube},
	{formatSinfo, func(head []byte) bool { _, ok := sinfoHeader(head); return ok }, (*list).sinfo},
}

var (
	keyed    = regexp.MustCompile(`(?m)^\s*NodeName=`)
	switched = regexp.MustCompile(`(?m)^\s*SwitchName=`)
)

// ownOf returns the format of a cluster's own programs that head begins, nil if it is of none.
func ownOf(head []byte) *own {
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	i := slices.IndexFunc(owns, func(o own) bool { return o.sniff(head) })
	if i < 0 {
		return nil
	}
	return &owns[i]
}

// list gathers the nodes of a format of a cluster's own programs.
type list struct {
	file string
	inv  Inventory
	at   map[string]int // by name
}

func (l *list) fault(line int, column, value, want string) error {
	return &traces.RowError{File: l.file, Line: line, Column: column, Value: clip(value), Want: want}
}

func (l *list) saying(line int, format string, args ...any) error {
	return &traces.RowError{File: l.file, Line: line, Says: fmt.Sprintf(format, args...)}
}

func clip(s string) string {
	const most = 100
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// add adds nodes that are equal but for their names. A node that is there already gets the partitions, and must be
// equal to what it was.
func (l *list) add(line int, column, names string, n Node) error {
	all, err := hostlist.Expand(names)
	if err != nil || len(all) == 0 {
		return l.fault(line, column, names, "the name of a node, or a list of nodes as g[01-03,07]")
	}
	for _, name := range all {
		i, again := l.at[name]
		if !again {
			if len(l.inv.Nodes) == maxNodes {
				return l.fault(line, column, name, fmt.Sprintf("at most %d nodes in the whole file", maxNodes))
			}
			n.Name = name
			l.at[name] = len(l.inv.Nodes)
			l.inv.Nodes = append(l.inv.Nodes, n)
			continue
		}
		old := &l.inv.Nodes[i]
		if old.GPUs != n.GPUs || old.GPUType != n.GPUType {
			return l.saying(line, "node %s has %s here and %s in a row before; a node that is in several partitions has the "+
				"same GPUs in all of them", name, gpusText(n), gpusText(*old))
		}
		for _, p := range n.Partitions {
			if !slices.Contains(old.Partitions, p) {
				old.Partitions = append(slices.Clip(old.Partitions), p)
			}
		}
	}
	return nil
}

func gpusText(n Node) string {
	return strings.TrimSpace(fmt.Sprintf("%d GPUs %s", n.GPUs, n.GPUType))
}

// done checks what was read.
func (l *list) done(line int, how string) error {
	switch {
	case len(l.inv.Nodes) == 0:
		return l.saying(line, "there are no nodes in it; use what %s prints", how)
	case !slices.ContainsFunc(l.inv.Nodes, func(n Node) bool { return n.GPUs > 0 }):
		return l.saying(line, "none of its %d nodes has GPUs; use a list of nodes with GPUs, as %s prints it where Slurm or "+
			"Kubernetes knows of them", len(l.inv.Nodes), how)
	}
	return nil
}

// wantGRES is what generic resources should look like.
const wantGRES = "generic resources as gpu:a100:8(S:0-1), gpu:8 or (null)"

// gres reads the GPUs of a node's generic resources: gpu:a100:8(S:0-1), gres/gpu:a100=8, gpu:8, (null). want says what
// would be right if they are none, or of several types.
func gres(s string) (gpus int, kind, want string) {
	depth := 0
	items := strings.FieldsFunc(s, func(r rune) bool { // commas in parentheses stand between numbers of GPUs
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		return r == ',' && depth <= 0
	})
	for _, item := range items {
		item, _, _ = strings.Cut(strings.TrimSpace(item), "(")
		item = strings.TrimPrefix(strings.TrimPrefix(item, "gres:"), "gres/")
		parts := strings.Split(strings.Replace(item, "=", ":", 1), ":")
		if parts[0] != "gpu" {
			continue
		}
		n, last := 1, len(parts)-1
		if v, err := strconv.ParseUint(parts[last], 10, 31); err == nil && last > 0 {
			n, parts = int(v), parts[:last]
		} else if last > 1 || last == 1 && parts[1] == "" {
			return 0, "", wantGRES
		}
		if gpus += n; gpus > maxGPUs {
			return 0, "", fmt.Sprintf("at most %d GPUs", maxGPUs)
		}
		name := strings.Join(parts[1:], ":")
		if kind != "" && name != kind {
			return 0, "", "GPUs of one type on each node; a cluster file can have such a node as two, each with its type"
		}
		kind = name
	}
	return gpus, kind, ""
}

// amount reads cores or memory in MB as Slurm writes them: 64, 64+ (the least of several nodes), 0/64/0/64 (the last
// is the total); 0 where it is not given.
func amount(s string) (v float64, ok bool) {
	s = strings.TrimSuffix(s[strings.LastIndexByte(s, '/')+1:], "+")
	if traces.NotGiven([]byte(s)) {
		return 0, true
	}
	n, _, err := traces.Decimal(s, 3)
	return float64(n) / 1000, err == nil && n >= 0 && n <= maxUnits
}

// lines yields the lines of a text with their numbers, without what ends them, and returns the first error.
func (l *list) lines(r io.Reader, each func(line int, text string) error) (last int, err error) {
	in := traces.NewLines(r, l.file)
	for {
		b, err := in.Next()
		if err == io.EOF {
			return max(1, in.Line()), nil
		} else if err != nil {
			return in.Line(), err
		}
		if err := each(in.Line(), strings.TrimRight(string(b), " \t\r")); err != nil {
			return in.Line(), err
		}
	}
}
