package simulate

import (
	"errors"
	"strings"
	"testing"
	"time"

	"clustergym/internal/fault"
)

// Two jobs on one GPU: A takes 10 h from 0, and B takes 1 h from 1 h. With a sample in which jobs that have run for an
// hour nearly always end soon, A continues. With one in which they never end, B runs first.
func TestGittinsKnowsTheSampleItIsGiven(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Trace.File = file(t, "two.csv", "job_id,submit_time,duration,num_gpu\nA,0,36000,1\nB,3600,3600,1\n")
	cfg.Cluster, cfg.Policies = "pool:1", []string{"gittins-2d"}
	cfg.Policy.Quantum = time.Hour
	jct := map[string]float64{}
	for name, rows := range map[string]string{"soon": strings.Repeat("20000\n", 2) + strings.Repeat("7000\n", 60),
		"late": strings.Repeat("3000\n", 60) + strings.Repeat("900000\n", 3)} {
		cfg.Service = file(t, name+".csv", "duration\n"+rows)
		report, err := Run(t.Context(), cfg, Hooks{})
		if err != nil {
			t.Fatal(err)
		}
		jct[name] = report.Runs[0].Metrics.JCT.Mean
	}
	// B first: A 39600, B 3600. A first: 36000 and 36000.
	if jct["late"] != 21600 || jct["soon"] <= jct["late"] {
		t.Errorf("mean completion times %v, want late 21600 and soon more", jct)
	}
	cfg.Service = file(t, "bad.csv", "duration\nsoon\n")
	_, err := Run(t.Context(), cfg, Hooks{})
	if _, ok := errors.AsType[*fault.Mistake](err); !ok ||
		!strings.Contains(err.Error(), "bad.csv:2: duration: got \"soon\"") {
		t.Errorf("got %v", err)
	}
}
