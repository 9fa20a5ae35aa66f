package encode_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/jobselect"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Gangs in a table by hand. On a counter of 8 GPUs A (2 GPUs, 100 s), B (1 GPU, 300 s) and C (4 GPUs, 60 s) start at 0;
// D comes at 40 s. A and C have 120 and 80 GPU-seconds left then, B 260.
func runningJobs() []traces.Job {
	jobs := []traces.Job{job("A", 0, 100*second, 2), job("B", 0, 300*second, 1), job("C", 0, 60*second, 4),
		job("D", 40*second, second, 1)}
	jobs[0].VC, jobs[1].VC, jobs[2].VC = "x", "y", "x"
	return jobs
}

func TestRunningGangsByHand(t *testing.T) {
	for _, x := range []struct {
		estimates string
		order     []int // of A, B, C
		left      [3]time.Duration
	}{
		{"exact", []int{1, 0, 2}, [3]time.Duration{60 * second, 260 * second, 20 * second}},
		{"trace", []int{1, 0, 2}, [3]time.Duration{60 * second, 260 * second, 20 * second}},
		{"none", []int{2, 0, 1}, [3]time.Duration{}}, // by the GPU-time held: 80, 40 and 160 s
	} {
		for _, rows := range []int{2, 3, 5} {
			e, ts := begin(t, cluster.Spec{Pool: 8}, runningJobs(), func(c *jobselect.Config) {
				c.Visible, c.MaxGPUs, c.Estimates, c.Running, c.Images = 4, 4, sim.MustEstimates(x.estimates), rows, false
			})
			if got := len(e.Spec().Obs); got != 3 {
				t.Fatalf("there are %d fields, want global, jobs and running", got)
			}
			if got := field(t, e, ts, "running"); slices.Max(got) != 0 {
				t.Errorf("nothing runs, and the table is %v", got)
			}
			for range 3 {
				step(t, e, 0, ts)
			}
			got := field(t, e, ts, "running")
			gpus, smaller, held := []float64{2, 1, 4}, []float64{1. / 3, 0, 2. / 3}, []float64{6. / 7, 1. / 7, 6. / 7}
			for row := range rows {
				if row >= 3 {
					want(t, "an empty row", wide(got[row*12:][:12]), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
					continue
				}
				k := x.order[row]
				left := x.left[k]
				want(t, x.estimates, wide(got[row*12:][:12]), 1, gpus[k]/8, l(40*second), l(40*second),
					l(left), math.Log1p(left.Minutes()*gpus[k]/8)/math.Log1p(14*24*60), smaller[k], 1, held[k], 0, 0, 0)
			}
		}
	}
}

// With forecasts each row ends with those of its job, given for how long it has run.
func TestRunningGangsHaveForecasts(t *testing.T) {
	e, ts := begin(t, cluster.Spec{Pool: 8}, runningJobs(), func(c *jobselect.Config) {
		c.Visible, c.MaxGPUs, c.Running, c.Forecast = 4, 4, 3, "on"
	})
	for range 3 {
		step(t, e, 0, ts)
	}
	got := field(t, e, ts, "running")
	for row, left := range []time.Duration{260 * second, 60 * second, 20 * second} {
		f := got[row*26+12:][:14]
		for _, q := range f[:5] {
			want(t, "a quantile of the time left", []float64{float64(q)}, l(left))
		}
		want(t, "the certainty", []float64{float64(f[5])}, 1)
	}
}

// The table changes nothing else: the other fields are those of an environment without it, and without the images those
// that are left are the same.
func TestTablesLeaveTheOtherFieldsAsTheyAre(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	var jobs []traces.Job
	for i := range 40 {
		jobs = append(jobs,
			job(string(rune('A'+i)), time.Duration(i)*20*second, time.Duration(1+r.IntN(600))*second, 1+r.IntN(2)))
	}
	spec := cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 4}}}}}
	for _, forecast := range []string{"off", "on"} {
		open := func(running int, images bool) (env.Env, *env.TimeStep) {
			return begin(t, spec, jobs, func(c *jobselect.Config) {
				c.Running, c.Images = running, jobselect.Images(images)
				_ = c.Forecast.UnmarshalText([]byte(forecast))
			})
		}
		plain, a := open(0, true)
		table, b := open(3, true)
		alone, c := open(3, false)
		for !a.Kind.Last() {
			for _, f := range plain.Spec().Obs {
				if !slices.Equal(field(t, plain, a, f.Name), field(t, table, b, f.Name)) {
					t.Fatalf("forecast %s: field %s differs with the table", forecast, f.Name)
				}
			}
			for _, f := range alone.Spec().Obs {
				if !slices.Equal(field(t, alone, c, f.Name), field(t, table, b, f.Name)) {
					t.Fatalf("forecast %s: field %s differs without images", forecast, f.Name)
				}
			}
			var legal []int
			for act, ok := range a.Mask {
				if ok {
					legal = append(legal, act)
				}
			}
			act := legal[r.IntN(len(legal))]
			step(t, plain, act, a)
			step(t, table, act, b)
			step(t, alone, act, c)
		}
	}
}

// Without images the observation has the same size on every cluster.
func TestTablesDoNotDependOnTheCluster(t *testing.T) {
	tables := func(c *jobselect.Config) { c.Images, c.Running = false, 4 }
	small, _ := begin(t, cluster.Spec{Pool: 8}, runningJobs()[:1], tables)
	for _, spec := range []cluster.Spec{{Pool: 4000},
		{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 20, GPUs: 8}}}}}} {
		large, _ := begin(t, spec, runningJobs()[:1], func(c *jobselect.Config) { tables(c); c.MaxGPUs = 64 })
		if !slices.EqualFunc(small.Spec().Obs, large.Spec().Obs,
			func(a, b env.Field) bool { return a.Name == b.Name && slices.Equal(a.Shape, b.Shape) }) {
			t.Errorf("on %v: %v, want %v", spec, large.Spec().Obs, small.Spec().Obs)
		}
	}
}
