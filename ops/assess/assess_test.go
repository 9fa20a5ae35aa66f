package assess

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"time"

	"clustergym/lab/workload"
	"clustergym/ops/incumbent"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
	"clustergym/traces/synth"
)

// history generates n jobs for about the given load of a cluster, with limits, and lets a rule that knows the limits
// start them.
func history(t testing.TB, spec cluster.Spec, gpus, n int, load float64, rule string, seed uint64) []traces.Job {
	t.Helper()
	cfg := synth.DefaultConfig()
	cfg.Profile, cfg.Jobs = "hpc", n
	all, err := synth.Generate(cfg, seed)
	if err != nil {
		t.Fatal(err)
	}
	work := 0.0
	for i := range all {
		all[i].GPUs = min(all[i].GPUs, gpus/2)
		work += all[i].GPUHours()
		all[i].Work = all[i].Work.Round(time.Second)
		all[i].Estimate = max(all[i].Estimate, all[i].Work).Round(time.Second)
	}
	f := work / load / float64(gpus) / all[n-1].Submit.Hours()
	for i := range all {
		all[i].Submit = time.Duration(f * float64(all[i].Submit)).Round(time.Second)
	}
	past := &incumbent.Past{Spec: spec, Jobs: all}
	sch, err := incumbent.Rule(rule, "consolidate-best", incumbent.ByLimits)
	if err != nil {
		t.Fatal(err)
	}
	s, err := past.Play(t.Context(), sch, sim.Estimates{Mode: sim.EstimateTrace})
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		all[i].Start(s.Starts[i])
	}
	return all
}

func spec(t testing.TB, name string) cluster.Spec {
	t.Helper()
	s, err := workload.ClusterSpec(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestProbe(t *testing.T) {
	out := os.Getenv("PROBE")
	if out == "" {
		t.Skip()
	}
	n := 5000
	fmt.Sscan(os.Getenv("N"), &n)
	jobs := history(t, spec(t, "16x8"), 128, n, .8, "fifo+strict+easy", 1)
	var b bytes.Buffer
	b.WriteString("job_id,submit_time,start_time,end_time,num_gpu,user,estimate\n")
	for i := range jobs {
		j := &jobs[i]
		s := 1_760_000_000 + int((j.Submit + j.Waited).Seconds())
		fmt.Fprintf(&b, "%d,%d,%d,%d,%d,%s,%d\n", i, 1_760_000_000+int(j.Submit.Seconds()), s, s+int(j.Work.Seconds()), j.GPUs, j.User,
			int(j.Estimate.Seconds()))
	}
	os.WriteFile(out, b.Bytes(), 0o600)
}
