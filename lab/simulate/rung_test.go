package simulate

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"clustergym/internal/raced"
	"clustergym/simulator/sim"
)

// A table names the rung of its estimates, and marks what knows more than they say.
func TestTableSaysWhatPoliciesKnow(t *testing.T) {
	raced.Alone(t)
	for estimates, want := range map[string][3]string{
		"history": {"history (causal)", "exact (exact)", "gittins-2d+skip (exact)"},
		"exact":   {"exact, an oracle: no cluster knows run times", "exact", "gittins-2d+skip"},
	} {
		cfg := DefaultConfig()
		cfg.Trace.Synth.Jobs, cfg.Trace.Synth.MaxGPUs, cfg.Cluster = 12, 4, "pool:8"
		cfg.Policies, cfg.Policy.Estimates = []string{"exact", "fifo+skip", "sjf+skip", "las", "gittins-2d"},
			sim.MustEstimates(estimates)
		cfg.Service = "workload"
		report, err := Run(t.Context(), cfg, Hooks{})
		if err != nil {
			t.Fatal(err)
		}
		var table strings.Builder
		if err := report.WriteTable(&table); err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(table.String(), "\n\n")
		if !strings.Contains(parts[0], "\nestimates  "+want[0]+"\nstops      free: a job that is stopped continues where it was") {
			t.Errorf("%s: the header is\n%s", estimates, parts[0])
		}
		rows := strings.Split(parts[1], "\n")[2:]
		for i, name := range []string{want[1], "fifo+skip", "sjf+skip", "las+skip", want[2]} {
			if !strings.HasPrefix(rows[i], name+"  ") {
				t.Errorf("%s: row %q, want %s", estimates, rows[i], name)
			}
		}
		if below := "fifo+skip and las+skip ask nothing of run times.\nexact and gittins-2d+skip know the workload beforehand.\n"; parts[2] != below {
			t.Errorf("%s: below stands %q, want %q", estimates, parts[2], below)
		}
		b, err := json.Marshal(report)
		if err != nil {
			t.Fatal(err)
		}
		var d struct {
			Runs []struct {
				Policy  string
				Rung    string
				Nothing bool `json:"asks_nothing"`
			}
		}
		if err := json.Unmarshal(b, &d); err != nil {
			t.Fatal(err)
		}
		own := map[string]string{"history": "causal", "exact": "exact"}[estimates]
		if got, want := fmt.Sprint(d.Runs),
			fmt.Sprintf("[{exact exact false} {fifo %s true} {sjf %[1]s false} {las %[1]s true} {gittins-2d exact false}]",
				own); got != want {
			t.Errorf("%s: the document says %s, want %s", estimates, got, want)
		}
	}
}
