package inventory

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// The columns of sinfo that are read, by the headings that its options -o, -O and -l give them.
const (
	sinfoNode = iota
	sinfoGRES
	sinfoCPUs
	sinfoMem
	sinfoPartition
	sinfoColumns
)

var sinfoNames = [sinfoColumns][]string{
	sinfoNode:      {"NODELIST", "HOSTNAMES", "NODENAME", "NODE"},
	sinfoGRES:      {"GRES"},
	sinfoCPUs:      {"CPUS", "CPUS(A/I/O/T)"},
	sinfoMem:       {"MEMORY"},
	sinfoPartition: {"PARTITION"},
}

// sinfoOthers are headings that are not read, by which a header of sinfo is known all the same.
var sinfoOthers = []string{"NODES", "AVAIL", "TIMELIMIT", "STATE", "S:C:T", "SOCKETS", "CORES", "THREADS", "TMP_DISK",
	"WEIGHT", "AVAIL_FEATURES", "AVAIL_FE", "FEATURES", "ACTIVE_FEATURES", "ACTIVE_FE", "REASON", "GRES_USED", "CPU_LOAD",
	"FREE_MEM", "NODES(A/I)", "NODES(A/I/O/T)", "NODE_ADDR", "GROUPS", "OVERSUBS", "JOB_SIZE", "ROOT", "TIMESTAMP",
	"VERSION", "CLUSTER"}

const sinfoCommand = `sinfo -N -o "%N %G %c %m %f %P"`

// sinfoDate is the line that sinfo -l prints first.
var sinfoDate = regexp.MustCompile(`^[A-Z][a-z]{2} [A-Z][a-z]{2} +[0-9]{1,2} [0-9:]{8} [0-9]{4}$`)

// sinfoTable is a header of sinfo.
type sinfoTable struct {
	apart string // between fields; "" = blanks
	names []string
	at    [sinfoColumns]int // -1 = absent
}

func (t *sinfoTable) split(line string) []string {
	if t.apart == "" {
		return strings.Fields(line)
	}
	all := strings.Split(line, t.apart)
	for i, f := range all {
		all[i] = strings.TrimSpace(f)
	}
	return all
}

// parseSinfo reads a line as a header; ok is false if it is none.
func parseSinfo(line string) (t sinfoTable, ok bool) {
	for _, by := range []string{"|", ";", "\t", ","} {
		if strings.Contains(line, by) {
			t.apart = by
			break
		}
	}
	t.names = t.split(line)
	known := 0
	for i := range t.at {
		t.at[i] = slices.IndexFunc(t.names, func(n string) bool {
			return slices.Contains(sinfoNames[i], strings.ToUpper(n))
		})
	}
	for _, n := range t.names {
		n = strings.ToUpper(n)
		ours := slices.ContainsFunc(sinfoNames[:], func(all []string) bool { return slices.Contains(all, n) })
		if ours || slices.Contains(sinfoOthers, n) {
			known++
		}
	}
	return t, t.at[sinfoNode] >= 0 && known >= 2 && known >= len(t.names)-1
}

// sinfoHeader returns the header of what head begins.
func sinfoHeader(head []byte) (sinfoTable, bool) {
	for line := range bytes.SplitSeq(head, []byte{'\n'}) {
		text := strings.TrimSpace(string(line))
		if text == "" || sinfoDate.MatchString(text) {
			continue
		}
		return parseSinfo(text)
	}
	return sinfoTable{}, false
}

func (l *list) sinfo(r io.Reader) error {
	var t sinfoTable
	last, err := l.lines(r, func(line int, text string) error {
		switch bare := strings.TrimSpace(text); {
		case bare == "" || sinfoDate.MatchString(bare):
			return nil
		case t.names == nil:
			t, _ = parseSinfo(bare)
			if t.at[sinfoGRES] < 0 {
				return l.saying(line, "no column GRES, so it is not known which nodes have GPUs, and how many; use what %s prints",
					sinfoCommand)
			}
			return nil
		}
		return l.sinfoRow(&t, line, text)
	})
	if err != nil {
		return err
	}
	return l.done(last, sinfoCommand)
}

func (l *list) sinfoRow(t *sinfoTable, line int, text string) error {
	f := t.split(text)
	if slices.Equal(f, t.names) { // of a dump that was joined
		return nil
	}
	if n := len(t.names); len(f) != n && (len(f) < n || t.apart != "" || !strings.EqualFold(t.names[n-1], "REASON")) {
		return l.fault(line, "", fmt.Sprintf("%d fields", len(f)), fmt.Sprintf("%d, as in the header", n))
	}
	cell := func(col int) string {
		if t.at[col] < 0 {
			return ""
		}
		return f[t.at[col]]
	}
	heading := func(col int) string { return t.names[t.at[col]] }
	var (
		n    Node
		want string
		ok   bool
	)
	g := cell(sinfoGRES)
	if n.GPUs, n.GPUType, want = gres(g); want != "" {
		return l.fault(line, heading(sinfoGRES), g, want)
	}
	if k := strings.LastIndexByte(g, ':'); len(g) == 20 && strings.Contains(g, "gpu:") && n.GPUs == 1 && n.GPUType != "" &&
		!strings.HasSuffix(g[k:], ":1") {
		return l.fault(line, heading(sinfoGRES), g,
			"generic resources that sinfo has not cut at 20 letters, as -o %G prints them")
	}
	if n.CPUs, ok = amount(cell(sinfoCPUs)); !ok {
		return l.fault(line, heading(sinfoCPUs), cell(sinfoCPUs), "a number of cores")
	}
	mem, ok := amount(cell(sinfoMem))
	if !ok {
		return l.fault(line, heading(sinfoMem), cell(sinfoMem), "memory in MB")
	}
	n.MemGB = mem / 1024
	if p := strings.TrimSuffix(cell(sinfoPartition), "*"); p != "" {
		n.Partitions = []string{p}
	}
	return l.add(line, heading(sinfoNode), cell(sinfoNode), n)
}
