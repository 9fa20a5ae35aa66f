package encode_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/jobselect"
	"clustergym/env/sched"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
	"clustergym/traces/profile"
)

const second = time.Second

var ctx = context.Background()

func job(id string, submit, work time.Duration, gpus int) traces.Job {
	return traces.Job{ID: id, Submit: submit, Work: work, GPUs: gpus, GPUMilli: 1000, Estimate: work}
}

// begin returns the environment over window 0 of jobs, on a linear axis of 10 s a row, with an empty machine.
func begin(t testing.TB, spec cluster.Spec, jobs []traces.Job, change func(c *jobselect.Config)) (*sched.Env,
	*env.TimeStep) {
	t.Helper()
	cfg := jobselect.DefaultConfig()
	cfg.Window, cfg.Warm, cfg.Load, cfg.Comm, cfg.Visible, cfg.MaxGPUs = len(jobs), 0, 0, "none", 2, 2
	cfg.TimeAxis, cfg.Row = "linear", 10*second
	change(&cfg)
	all := slices.Clone(jobs)
	for len(all)*7/10 < len(jobs) {
		all = append(all, job("later", 1000*time.Hour, second, 1))
	}
	w, err := jobselect.NewWorkload(cfg, spec, all)
	if err != nil {
		t.Fatal(err)
	}
	e, err := jobselect.New(cfg, spec, w.Windows, traces.Training)
	if err != nil {
		t.Fatal(err)
	}
	ts := env.NewTimeStep(e.Spec())
	if err := e.Reset(ctx, env.Episode{Window: 0}, ts); err != nil {
		t.Fatal(err)
	}
	return e, ts
}

func step(t testing.TB, e env.Env, a int, ts *env.TimeStep) {
	t.Helper()
	for i := range ts.Obs { // the buffer's old content is arbitrary
		ts.Obs[i] = -7
	}
	if err := e.Step(ctx, env.Action{Disc: []int32{int32(a)}}, ts); err != nil {
		t.Fatal(err)
	}
	if err := e.Spec().Check(ts); err != nil {
		t.Fatal(err)
	}
}

// field is one field of an observation.
func field(t testing.TB, e env.Env, ts *env.TimeStep, name string) []float32 {
	t.Helper()
	at := 0
	for _, f := range e.Spec().Obs {
		if f.Name == name {
			return ts.Obs[at : at+f.Len()]
		}
		at += f.Len()
	}
	t.Fatalf("no field %s", name)
	return nil
}

// bars sums the columns of an image, and fails if a bar has a gap.
func bars(t testing.TB, image []float32) []float64 {
	t.Helper()
	cols := len(image) / 20
	sums := make([]float64, cols)
	for c := range cols {
		for h := range 20 {
			v := image[h*cols+c]
			if h > 0 && v > 0 && image[(h-1)*cols+c] < 1 {
				t.Fatalf("column %d: %v stands on %v", c, v, image[(h-1)*cols+c])
			}
			sums[c] += float64(v)
		}
	}
	return sums
}

func want(t *testing.T, what string, got []float64, want ...float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %v, want %v", what, got, want)
	}
	for i := range got {
		if math.Abs(got[i]-want[i]) > 1e-6 {
			t.Fatalf("%s[%d] is %v, want %v (all: %v)", what, i, got[i], want[i], got)
		}
	}
}

func wide(v []float32) []float64 {
	out := make([]float64, len(v))
	for i := range v {
		out[i] = float64(v[i])
	}
	return out
}

func l(d time.Duration) float64 { return math.Log1p(d.Minutes()) / math.Log1p(14*24*60) }

// A small state worked out on paper: two machines of two GPUs; A (2 GPUs, 35 s) and C (20 s) have been started; B (50
// s) and D (2 GPUs, 60 s) are in the two slots.
func TestObservationByHand(t *testing.T) {
	spec := cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 2}}}}}
	e, ts := begin(t, spec,
		[]traces.Job{job("A", 0, 35*second, 2), job("B", 0, 50*second, 1), job("C", 0, 20*second, 1),
			job("D", 0, 60*second, 2)},
		func(*jobselect.Config) {})
	var names []string
	for _, f := range e.Spec().Obs {
		names = append(names, fmt.Sprint(f.Name, f.Shape))
	}
	if got := fmt.Sprint(names); got != "[cluster[20 4] global[8] jobs[2 10] queue[20 4]]" {
		t.Fatal(got)
	}
	mix, err := profile.Named("topdrl-cnn")
	if err != nil {
		t.Fatal(err)
	}
	model := func(id string) (mb, batch float64) {
		m, b := mix.Draw(0, id)
		return math.Log1p(m.MB) / math.Log1p(1e6), math.Log2(float64(b)) / 16
	}

	// At first the slots hold A, the oldest, and C, the smallest of the others. B and D are the backlog.
	want(t, "cluster", bars(t, field(t, e, ts, "cluster")), 0, 0, 0, 0)
	want(t, "queue", bars(t, field(t, e, ts, "queue")), 3.5, 3.5, 2, 0)
	c := func(k, m float64) float64 { return math.Log1p(k) / math.Log1p(m) }
	want(t, "global", wide(field(t, e, ts, "global")), 1, 0, c(2, 1024), 3.0/16, l((50+120)*second/4), 0, 0, 1)

	step(t, e, 0, ts) // A goes to machine 0
	step(t, e, 1, ts) // B, C are shown; C goes to machine 1
	want(t, "cluster", bars(t, field(t, e, ts, "cluster")), 3.5, 3.5, 2, 0)
	want(t, "queue", bars(t, field(t, e, ts, "queue")), 5, 0, 6, 6)
	want(t, "global", wide(field(t, e, ts, "global")), 0.25, c(2, 4), 0, 0, 0, 0, 0, 1)
	mb, mbatch := model("B")
	md, dbatch := model("D")
	want(t, "jobs", wide(field(t, e, ts, "jobs")),
		1, 0, 0.25, l(50*second), l(50*second/4), mb, mbatch, 1, 1, 1,
		1, 0, 0.5, l(60*second), l(30*second), md, dbatch, 0.8/1.05, 1, 0) // D does not fit

	step(t, e, 2, ts) // wait for C's end at 20 s: D fits, on machine 1
	want(t, "cluster", bars(t, field(t, e, ts, "cluster")), 1.5, 1.5, 0, 0)
	want(t, "global", wide(field(t, e, ts, "global")), 0.5, c(1, 4), 0, 0, 0, l(20*second), 0, 1)
	want(t, "jobs", wide(field(t, e, ts, "jobs")),
		1, l(20*second), 0.25, l(50*second), l(50*second/4), mb, mbatch, 1, 1, 1,
		1, l(20*second), 0.5, l(60*second), l(30*second), md, dbatch, 0.8/1.05, 0.8/1.05, 1)

	step(t, e, 0, ts) // B takes one GPU of machine 1; D waits until A ends at 35 s
	want(t, "cluster", bars(t, field(t, e, ts, "cluster")), 0, 0, 3.5, 0)
	want(t, "jobs", wide(field(t, e, ts, "jobs")), 1, l(35*second), 0.5, l(60*second), l(30*second), md, dbatch, 0.8/1.05,
		0.8/1.05, 1,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
}

// The mean rate is below 1 if a gang is spread out; the cost shown is that of where the gang would be placed.
func TestDistanceShows(t *testing.T) {
	spec := cluster.Spec{Racks: []cluster.RackSpec{{Count: 2, Nodes: []cluster.NodeSpec{{GPUs: 1}}}}}
	e, ts := begin(t, spec, []traces.Job{job("A", 0, 100*second, 2), job("B", 5*second, second, 1)},
		func(c *jobselect.Config) { c.Comm = "tree" })
	// The two machines in two racks are the only choice, so best and worst cost are the same.
	want(t, "jobs", wide(field(t, e, ts, "jobs"))[7:10], 1, 1, 1)
	spec = cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{GPUs: 2}, {GPUs: 1}}}}}
	e, ts = begin(t, spec, []traces.Job{job("B", 0, 1000*second, 1), job("A", 0, 100*second, 2), job("C", 0, second, 1)},
		func(c *jobselect.Config) { c.Comm = "tree" })
	step(t, e, 0, ts) // B goes where most is free, the machine of two
	slot := slices.IndexFunc(e.State().Slots, func(j sim.Job) bool { return e.State().View.Trace(j).ID == "A" })
	jobs := wide(field(t, e, ts, "jobs"))
	want(t, "cost of A", jobs[slot*10+7:slot*10+10], 0.8/1.05, 1, 1)
	step(t, e, slot, ts) // nothing else fits until A ends, at 100·1.05/0.8 s
	if ts.Elapsed != 131250*time.Millisecond {
		t.Errorf("A ran %v", ts.Elapsed)
	}
}

// If a job runs longer than its estimate, the estimate doubles until it exceeds the time run.
func TestOverrunsDouble(t *testing.T) {
	long := job("A", 0, 190*second, 1)
	long.Estimate = 10 * second
	jobs := []traces.Job{long}
	for _, at := range []time.Duration{5, 10, 15, 39, 41} {
		jobs = append(jobs, job(fmt.Sprint(at), at*second, 100*second, 2))
	}
	e, ts := begin(t, cluster.Spec{Pool: 3}, jobs, func(c *jobselect.Config) { c.Estimates = sim.MustEstimates("trace") })
	step(t, e, 0, ts)
	// Remaining, in rows of 10 s: 10−5, 20−10, 20−15, 40−39, 80−41.
	for _, rows := range []float64{0.5, 1, 0.5, 0.1, 3.9} {
		want(t, "cluster", bars(t, field(t, e, ts, "cluster")), rows, 0, 0)
		step(t, e, 2, ts)
	}
}

// Without estimates, the time run replaces the remaining time, and the time waited replaces e.
func TestNoEstimates(t *testing.T) {
	e, ts := begin(t, cluster.Spec{Pool: 3},
		[]traces.Job{job("A", 0, 1000*second, 1), job("B", 5*second, 70*second, 1), job("C", 10*second, second, 2),
			job("D", 20*second, second, 1), job("E", 25*second, second, 2), job("F", 30*second, second, 1)},
		func(c *jobselect.Config) { c.Estimates = sim.MustEstimates("none") })
	step(t, e, 0, ts)
	for range 4 {
		step(t, e, 2, ts) // wait for C, D, E, F
	}
	want(t, "cluster", bars(t, field(t, e, ts, "cluster")), 3, 0, 0) // A has run for 30 s
	// Slots: B, the oldest, then D, which has the fewest GPUs and then the lowest position among the others.
	want(t, "queue", bars(t, field(t, e, ts, "queue")), 2.5, 0, 1, 0)
	jobs := wide(field(t, e, ts, "jobs"))
	want(t, "B", jobs[1:5], l(25*second), 1.0/3, l(25*second), l(25*second/3))
	want(t, "D", jobs[11:15], l(10*second), 1.0/3, l(10*second), l(10*second/3))
	// The backlog: C has waited 20 s for two GPUs, E 5 s for two, F came now.
	want(t, "backlog", wide(field(t, e, ts, "global"))[2:6], math.Log1p(3)/math.Log1p(1024), 5.0/12, l((40+10)*second/3),
		0) // F has arrived now
}

// A shared GPU shows its longest job, in whatever order the jobs started.
func TestSharedGPUs(t *testing.T) {
	share := func(id string, work time.Duration, milli int) traces.Job {
		j := job(id, 0, work, 1)
		j.GPUMilli = milli
		return j
	}
	spec := cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{GPUs: 1}}}}}
	e, ts := begin(t, spec,
		[]traces.Job{share("A", 25*second, 300), share("B", 40*second, 300), share("C", 5*second, 300),
			share("D", 9*second, 200)},
		func(c *jobselect.Config) { c.Slots, c.Visible = "oldest", 4 })
	want(t, "shares", []float64{float64(field(t, e, ts, "jobs")[2]), float64(field(t, e, ts, "jobs")[32])}, 0.3, 0.2)
	for _, rows := range []float64{2.5, 4} { // A, B
		step(t, e, 0, ts)
		want(t, "cluster", bars(t, field(t, e, ts, "cluster")), rows)
	}
	free := float64(field(t, e, ts, "global")[0])
	if math.Abs(free-0.4) > 1e-6 {
		t.Errorf("%v is free, want 0.4", free)
	}
	step(t, e, 0, ts) // C; D waits for 5 s
	want(t, "cluster", bars(t, field(t, e, ts, "cluster")), 3.5)
}

// On a pool the running jobs are side by side in order of start.
func TestCounter(t *testing.T) {
	e, ts := begin(t, cluster.Spec{Pool: 5},
		[]traces.Job{job("A", 0, 30*second, 1), job("B", 0, 20*second, 2), job("C", 0, 50*second, 1), job("D", 0, second, 2)},
		func(c *jobselect.Config) { c.Slots, c.Visible = "oldest", 4 })
	step(t, e, 1, ts) // B
	step(t, e, 0, ts) // A
	want(t, "cluster", bars(t, field(t, e, ts, "cluster")), 3, 2, 2, 0, 0)
	step(t, e, 0, ts) // C; D waits until 20 s
	want(t, "cluster", bars(t, field(t, e, ts, "cluster")), 1, 3, 0, 0, 0)
}

// Above 512 GPUs there is one column per machine: the mean of its GPUs' bars.
func TestWideClusters(t *testing.T) {
	spec := cluster.Spec{
		Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 4}, {Count: 1, GPUs: 0},
			{Count: 64, GPUs: 8}}}}}
	jobs := []traces.Job{job("A", 0, 30*second, 4), job("B", 0, 190*second, 2), job("C", 0, 1000*second, 8),
		job("D", 0, second, 510)}
	e, ts := begin(t, spec, jobs, func(c *jobselect.Config) {
		c.Slots, c.Visible, c.MaxGPUs, c.Placement = "oldest", 4, 1024, "best-fit"
	})
	if s := e.Spec().Obs[0].Shape; s[1] != 67 {
		t.Fatalf("%v columns", s)
	}
	for range 2 {
		step(t, e, 0, ts) // A on machine 0, B on machine 1
	}
	got := bars(t, field(t, e, ts, "cluster"))
	want(t, "cluster", got[:4], 3, 19.0/2, 0, 0)
	step(t, e, 0, ts) // C on machine 3, all of it, longer than the axis; D does not fit before A ends at 30 s
	want(t, "cluster", bars(t, field(t, e, ts, "cluster"))[:5], 0, 8, 0, 20, 0)

	// Shares on one machine: the mean over its GPUs of each GPU's longest job, never more than the image holds.
	var shares []traces.Job
	for i := range 8 {
		j := job(fmt.Sprint(i), 0, time.Duration(1000+i)*second, 1)
		j.GPUMilli = 400
		shares = append(shares, j)
	}
	spec = cluster.Spec{
		Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{GPUs: 2, GPUType: "x"}, {Count: 64, GPUs: 8}}}}}
	for i := range shares {
		shares[i].GPUTypes = []string{"x"}
	}
	e, ts = begin(t, spec, shares, func(c *jobselect.Config) { c.Slots, c.Visible, c.Placement = "oldest", 8, "best-fit" })
	for range 3 {
		step(t, e, 0, ts)
	}
	want(t, "two on GPU 0, one on GPU 1", bars(t, field(t, e, ts, "cluster"))[:2], 20, 0)
}

// Every number stays within its bounds for any play, and encoding twice gives the same result.
func TestBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var jobs []traces.Job
	at := time.Duration(0)
	for i := range 400 {
		at += time.Duration(r.ExpFloat64() * float64(200*second))
		j := job(fmt.Sprint(i), at, time.Duration(math.Exp(2+9*r.Float64())*1e9), 1+r.IntN(8))
		j.Estimate = time.Duration(math.Exp(2+9*r.Float64()) * 1e9)
		if r.IntN(4) == 0 {
			j.GPUMilli = 1 + r.IntN(1000)
		}
		jobs = append(jobs, j)
	}
	for _, estimates := range []string{"exact", "trace", "noisy:3", "none"} {
		for _, spec := range []cluster.Spec{{Pool: 12}, {Racks: []cluster.RackSpec{{Count: 2, Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 4}}}}},
			{Racks: []cluster.RackSpec{{Count: 3, Nodes: []cluster.NodeSpec{{Count: 100, GPUs: 2}}}}}} {
			e, ts := begin(t, spec, jobs[:280], func(c *jobselect.Config) { // with the other 120 they are 70 %
				c.Estimates, c.Visible, c.MaxGPUs, c.TimeAxis, c.Comm, c.Window = sim.MustEstimates(estimates), 10, 8, "log",
					"tree", 200
			})
			for !ts.Kind.Last() {
				a := r.IntN(11)
				for !ts.Mask[a] {
					a = r.IntN(11)
				}
				step(t, e, a, ts)
				bars(t, field(t, e, ts, "cluster"))
				bars(t, field(t, e, ts, "queue"))
			}
		}
	}
}
