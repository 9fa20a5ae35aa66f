package rltune

import (
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// shared is where the results of the authors' program are, beside this repository, of which they are no part.
const shared = "../../../../shared/groundtruth/rltune"

// rows reads a CSV, packed if it ends in .gz, as one map a row.
func rows(t testing.TB, name string) []map[string]string {
	t.Helper()
	f, err := os.Open(filepath.Join(shared, name))
	if err != nil {
		t.Skip("the published program's results are not at hand: looked for in ../shared, beside this repository, of which it is no part")
	}
	defer f.Close() //nolint:errcheck // only read
	var r io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	all, err := csv.NewReader(r).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]string
	for _, line := range all[1:] {
		row := map[string]string{}
		for i, name := range all[0] {
			row[name] = line[i]
		}
		out = append(out, row)
	}
	return out
}

func number(t testing.TB, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func whole(t testing.TB, text string) int { t.Helper(); return int(number(t, text)) }

// partsOf reads "1:2 3:8".
func partsOf(t testing.TB, text string) (all []Part) {
	t.Helper()
	for _, p := range strings.Fields(text) {
		n, k, _ := strings.Cut(p, ":")
		all = append(all, Part{int32(whole(t, n)), int32(whole(t, k))})
	}
	return all
}

func text(parts []Part, first int) string {
	var all []string
	for _, p := range parts {
		all = append(all, fmt.Sprintf("%d:%d", int(p.Node)+first, p.GPUs))
	}
	return strings.Join(all, " ")
}

// In all recorded states: how many ways of each tier, the one that base policies take, and the best of each tier and order
// with what it changes.
func TestTheRecordedWays(t *testing.T) {
	all := rows(t, "placement_cases.csv")
	var f Finder
	for _, r := range all {
		each := whole(t, r["gpus_per_node"])
		state := partsOf(t, r["free"])
		nodes := 0
		for _, s := range state {
			nodes = max(nodes, int(s.Node))
		}
		p := NewPool("", 1, Block{Nodes: nodes, Each: each})
		free := make([]int32, nodes)
		for _, s := range state {
			free[s.Node-1] = s.GPUs
		}
		gpus := whole(t, r["request"])
		one, two := f.Count(p, free, gpus, 0)
		if fmt.Sprint(one, two) != r["tier1_count"]+" "+r["tier2_count"] {
			t.Errorf("case %s: %d and %d ways, want %s and %s", r["case"], one, two, r["tier1_count"], r["tier2_count"])
		}
		first, ok := f.First(p, free, gpus, nil)
		if text(first, 1) != r["greedy"] || ok != f.Fits(p, free, gpus) || ok != (r["greedy"] != "") {
			t.Errorf("case %s: first way %s, want %s", r["case"], text(first, 1), r["greedy"])
		}
		f.Best(p, free, gpus, true, nil)
		for i, name := range []string{"tier1_defrag", "tier1_balance", "tier2_defrag", "tier2_balance"} {
			w := &f.best[i]
			got := ""
			if w.ok {
				got = text(w.parts, 1)
			}
			if got != r[name] {
				t.Errorf("case %s: %s %s, want %s", r["case"], name, got, r[name])
			}
		}
		if w := &f.best[0]; w.ok {
			scale := float64(f.nodes * f.nodes * int64(each*each))
			if got := fmt.Sprint(w.partial, w.waste); got != r["defrag_delta_partial"]+" "+r["defrag_delta_waste"] {
				t.Errorf("case %s: changes %s, want %s %s", r["case"], got, r["defrag_delta_partial"], r["defrag_delta_waste"])
			}
			for i, name := range []string{"defrag_delta_variance", "balance_delta_variance"} {
				if got, want := float64(f.best[i].variance)/scale, number(t, r[name]); got-want > 1e-9 || want-got > 1e-9 {
					t.Errorf("case %s: %s %v, want %v", r["case"], name, got, want)
				}
			}
		}
	}
	if len(all) != 236 {
		t.Errorf("%d cases, want 236", len(all))
	}
}
