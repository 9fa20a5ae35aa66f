package simulate

import (
	"strings"
	"testing"
	"time"

	"clustergym/simulator/sim"
)

// Without a choice, policies see what a cluster has: requested times where every job has one, else forecasts. A streamed
// run chooses alike, and the head of the table says what was chosen and why.
func TestEstimatesAreWhatAClusterHas(t *testing.T) {
	const whole = "job_id,submit_time,duration,num_gpu,estimate\na,0,100,2,200\nb,1,10,1,20\nc,2,10,1,20\n"
	swf := strings.Join([]string{"1 0 -1 100 2 -1 -1 2 200 -1 1 1 1 1 1 -1 -1 -1",
		"2 1 -1 10 1 -1 -1 1 %s -1 1 1 1 1 1 -1 -1 -1\n"}, "\n")
	for _, c := range []struct{ name, text, policies, want, why string }{
		{"all.csv", whole, "fifo,sjf", "trace (submit-time)", ", as all jobs have a requested time"},
		{"part.csv", strings.Replace(whole, ",10,1,20", ",10,1,", 1), "fifo,sjf", "history (causal)",
			", as not all jobs have a requested time"},
		{"none.csv", small, "fifo+easy", "history (causal)", ", as not all jobs have a requested time"},
		{"all.swf", strings.Replace(swf, "%s", "20", 1), "sjf", "trace (submit-time)", ", as all jobs have a requested time"},
		// Such a log gets the run time as a request: that would be an oracle.
		{"part.swf", strings.Replace(swf, "%s", "-1", 1), "sjf", "history (causal)",
			", as not all jobs have a requested time"},
		{"fifo.csv", whole, "fifo,las", "history (causal)", ""}, // nothing asks
		{"looks.csv", whole, "rollout:fifo+skip", "trace (submit-time)", ", as all jobs have a requested time"},
	} {
		for _, stream := range []string{"off", "on"} {
			cfg := DefaultConfig()
			cfg.Trace.File, cfg.Cluster, cfg.Stream = file(t, c.name, c.text), "pool:2", stream
			cfg.Policies = strings.Split(c.policies, ",")
			r, err := Run(t.Context(), cfg, Hooks{})
			if err != nil {
				t.Fatalf("%s, stream %s: %v", c.name, stream, err)
			}
			var table strings.Builder
			if err := r.WriteTable(&table); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(table.String(), "\nestimates  "+c.want+c.why+"\n") {
				t.Errorf("%s, stream %s: want estimates %s%s in\n%s", c.name, stream, c.want, c.why, table.String())
			}
			if got := r.Runs[0].Estimates.Label(); got != c.want {
				t.Errorf("%s, stream %s: the document has %s, want %s", c.name, stream, got, c.want)
			}
			if !cfg.Policy.Estimates.IsZero() {
				t.Error("Run has changed the caller's configuration")
			}
		}
	}
	// A limit stands for requests that are missing. A stop that costs is not called free.
	cfg := DefaultConfig()
	cfg.Trace.File, cfg.Trace.Limit, cfg.Cluster = file(t, "limit.csv", small), time.Hour, "pool:2"
	cfg.Policies, cfg.Simulator.Restart = []string{"srtf"}, time.Second
	r, err := Run(t.Context(), cfg, Hooks{})
	if err != nil || r.Runs[0].Estimates.Mode != sim.EstimateTrace || r.stops() != "" {
		t.Errorf("with a limit: %+v, stops %q, %v", r.Runs, r.stops(), err)
	}
	if got := DefaultConfig().Policy.Estimates; got != (sim.Estimates{}) {
		t.Errorf("the default estimates are %v", got)
	}
}
