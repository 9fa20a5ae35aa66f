package envs

import (
	"math"
	"testing"
	"time"

	"clustergym/configs"
	"clustergym/env/jobselect"
	"clustergym/lab/workload"
	"clustergym/traces"
)

// steady returns the workload of JobSelect-v2 at a load on a cluster, of so many generated jobs.
func steady(t *testing.T, cluster string, load string, jobs int) *Workload {
	t.Helper()
	d := Find(jobselect.ID)
	s := d.Settings()
	if err := configs.Set(s, "load="+load); err != nil {
		t.Fatal(err)
	}
	trace := d.Trace()
	trace.Synth.Jobs = jobs
	w, err := LoadWorkload(t.Context(), d, s, cluster, trace)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// The load that a cluster is offered comes from how often jobs arrive. Nothing is left to stretch, so that a day of the
// generator is a day of the cluster, of whatever size it is.
func TestGeneratedWorkloadsArriveAtTheRateOfTheirLoad(t *testing.T) {
	for _, c := range []struct {
		cluster, load string
		want          float64
	}{{"2x8", "0.6", .6}, {"8x8", "0.6", .6}, {"32x8", "0.9", .9}, {"8x8", "0.05", .05}} {
		w := steady(t, c.cluster, c.load, 2000)
		got := loads.of(w.pace().trace, w.cut, w.Source.Cluster)
		if math.Abs(got/c.want-1) > .05 || math.Abs(w.offered()/c.want-1) > 1e-9 {
			t.Errorf("%s at load %s: jobs are offered at load %.3f, taken for %.3f", c.cluster, c.load, got, w.offered())
		}
	}
}

// Whether the workload of an environment is drawn or loaded, jobs come at one rate.
func TestDrawsComeAtTheRateOfTheJobs(t *testing.T) {
	w := steady(t, "4x8", "0.6", 40_000)
	drawn, err := w.Draw(t.Context(), 7, 40_000)
	if err != nil {
		t.Fatal(err)
	}
	gap := func(jobs []traces.Job) time.Duration {
		return (jobs[len(jobs)-1].Submit - jobs[0].Submit) / time.Duration(len(jobs))
	}
	if a, b := gap(w.Taken.Windows.All()), gap(drawn); math.Abs(float64(a)/float64(b)-1) > .03 {
		t.Errorf("a job every %v in the workload, every %v in a draw", a, b)
	}
}

// Windows of version 1 keep their jobs, whatever the load; recorded jobs are never made faster.
func TestOnlyGeneratedWorkloadsInOperationAreMadeFaster(t *testing.T) {
	d := Find(jobselect.V1)
	trace := workload.DefaultTraceConfig()
	trace.Synth.Jobs = 2000
	w, err := LoadWorkload(t.Context(), d, d.Settings(), "4x8", trace)
	if err != nil {
		t.Fatal(err)
	}
	jobs, _, err := workload.LoadTrace(trace)
	if err != nil {
		t.Fatal(err)
	}
	submits := map[string]time.Duration{}
	for _, j := range jobs {
		submits[j.ID] = j.Submit
	}
	all := w.Taken.Windows.All()
	if last := all[len(all)-1]; last.Submit < 24*time.Hour || last.Submit != submits[last.ID] {
		t.Errorf("the last job comes at %v, want %v", last.Submit, submits[last.ID])
	}
	file := trace
	file.File = "somewhere.csv"
	if got := w.paceOf(file, w.cut); got.trace.Synth != file.Synth {
		t.Errorf("a recorded workload is made at rate %g", got.trace.Synth.Rate)
	}
}
