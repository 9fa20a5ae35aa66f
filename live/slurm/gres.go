package slurm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"clustergym/internal/hostlist"
	"clustergym/traces"
)

// gpus are GPUs of one type on one node, or wanted by a job.
type gpus struct {
	kind  string // "" = any
	n     int
	index []int // nil = not told
}

// parseGres reads the GPUs of a list of generic resources in all the ways in which Slurm writes it: gpu:a100:4(S:0-1),
// gres:gpu:2, gres/gpu=4, gpu:a100:2(IDX:0,4-5), gres/gpu:a100:4. Other resources are passed over.
func parseGres(s string) (all []gpus, err error) {
	for item := range splitGres(s) {
		parts, detail := gresParts(item)
		if parts[0] != "gpu" {
			continue
		}
		g := gpus{n: 1}
		if last := len(parts) - 1; last > 0 {
			n, err := strconv.ParseUint(parts[last], 10, 30)
			switch {
			case err == nil:
				g.n = int(n)
				parts = parts[:last]
			case parts[last] == "" || parts[last][0] >= '0' && parts[last][0] <= '9' && last > 1 ||
				strings.HasPrefix(parts[last], "-"):
				return nil, fmt.Errorf("got %q, want GPUs as gpu:a100:4", item)
			}
			g.kind = strings.Join(parts[1:], ":")
		}
		if idx, found := strings.CutPrefix(detail, "IDX:"); found {
			if g.index, err = parseIndex(idx); err != nil || len(g.index) != g.n {
				g.index = nil // N/A, or of shared GPUs
			}
		}
		all = append(all, g)
	}
	return all, nil
}

// gresParts takes an item apart: its words, and what stands in parentheses.
func gresParts(item string) (parts []string, detail string) {
	item = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(item), "gres:"), "gres/")
	word, detail, _ := strings.Cut(item, "(")
	detail, _, _ = strings.Cut(detail, ")")
	return strings.Split(strings.Replace(word, "=", ":", 1), ":"), detail
}

// splitGres yields the items between commas outside parentheses.
func splitGres(s string) func(func(string) bool) {
	return func(yield func(string) bool) {
		depth, from := 0, 0
		for i := 0; i <= len(s); i++ {
			switch {
			case i == len(s) || s[i] == ',' && depth == 0:
				if from < i && !yield(s[from:i]) {
					return
				}
				from = i + 1
			case s[i] == '(':
				depth++
			case s[i] == ')':
				depth--
			}
		}
	}
}

// parseIndex reads 0,4-5.
func parseIndex(s string) ([]int, error) {
	all, _, err := hostlist.ParseTasks(s)
	if err != nil || all.Len() > 1<<12 {
		return nil, fmt.Errorf("got %q, want numbers of GPUs as 0,4-5", s)
	}
	var index []int
	for _, r := range all {
		for i := r[0]; i <= r[1]; i++ {
			index = append(index, int(i))
		}
	}
	slices.Sort(index)
	return index, nil
}

// count returns how many GPUs these are, and of which types.
func count(all []gpus) (n int, kinds []string) {
	for _, g := range all {
		n += g.n
		if g.kind != "" && g.n > 0 && !slices.Contains(kinds, g.kind) {
			kinds = append(kinds, g.kind)
		}
	}
	return n, kinds
}

// tres are the resources of a list as cpu=8,mem=64G,node=1,gres/gpu=2,gres/gpu:a100=2.
type tres struct {
	cpus, mem int64
	gpus      int // -1 = the list does not say
}

func parseTres(s string) (t tres) {
	t.gpus = -1
	typed := 0
	for item := range strings.SplitSeq(s, ",") {
		name, value, _ := strings.Cut(item, "=")
		switch {
		case name == "cpu":
			t.cpus, _ = strconv.ParseInt(value, 10, 40)
		case name == "mem":
			t.mem = parseMem(value)
		case name == "gres/gpu":
			if n, err := strconv.ParseUint(value, 10, 30); err == nil {
				t.gpus = int(n)
			}
		case strings.HasPrefix(name, "gres/gpu:"):
			if n, err := strconv.ParseUint(value, 10, 30); err == nil {
				typed += int(n)
			}
		}
	}
	if t.gpus < 0 && typed > 0 {
		t.gpus = typed
	}
	return t
}

// parseMem reads 64G or, without a unit, MiB; 0 if it is neither.
func parseMem(s string) int64 {
	shift := 20
	if n := len(s); n > 0 {
		if k := strings.IndexByte("KMGTP", s[n-1]&^0x20); k >= 0 && s[n-1] > '9' {
			shift, s = 10*(k+1), s[:n-1]
		}
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || v < 0 || v > 1<<22 && shift >= 40 {
		return 0
	}
	return int64(v * float64(int64(1)<<shift))
}

// parseLimit reads a time limit: [days-]hours:minutes:seconds, or UNLIMITED and such, which are 0.
func parseLimit(s string) time.Duration {
	if !strings.Contains(s, ":") {
		return 0
	}
	d, ok := traces.ParseDuration([]byte(s))
	if !ok {
		return 0
	}
	return d
}
