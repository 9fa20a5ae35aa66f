package jobselect_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/jobselect"
	"clustergym/env/sched"
	"clustergym/simulator/cluster"
	"clustergym/simulator/predict"
	"clustergym/simulator/predict/history"
	"clustergym/simulator/sim"
	"clustergym/traces"
	"clustergym/traces/synth"
)

const second = time.Second

var ctx = context.Background()

// topdrl is the default cluster: 2 racks of 4 machines of 4 GPUs.
func topdrl() cluster.Spec {
	return cluster.Spec{Name: "topdrl-2x4x4",
		Racks: []cluster.RackSpec{{Count: 2, Nodes: []cluster.NodeSpec{{Count: 4, GPUs: 4}}}}}
}

func job(id string, submit, work time.Duration, gpus int) traces.Job {
	return traces.Job{ID: id, Submit: submit, Work: work, GPUs: gpus, GPUMilli: 1000}
}

// small is a configuration for hand-made workloads: their own clock, an empty machine, no cost of distance.
func small(window int) jobselect.Config {
	cfg := jobselect.DefaultConfig()
	cfg.Window, cfg.Warm, cfg.Load, cfg.Comm = window, 0, 0, "none"
	return cfg
}

// padded adds jobs long after, so that the training part (70 %) holds exactly window 0 of jobs.
func padded(jobs []traces.Job) []traces.Job {
	all := append([]traces.Job(nil), jobs...)
	for len(all)*7/10 < len(jobs) {
		late := job("later", 1000*time.Hour, second, 1)
		late.Estimate = second
		all = append(all, late)
	}
	return all
}

func newEnv(t testing.TB, cfg jobselect.Config, spec cluster.Spec, jobs []traces.Job) *sched.Env {
	t.Helper()
	w, err := jobselect.NewWorkload(cfg, spec, jobs)
	if err != nil {
		t.Fatal(err)
	}
	e, err := jobselect.New(cfg, spec, remembering{w.Windows}, traces.Training)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// remembering are windows whose predictors are history's, with the archive of all jobs.
type remembering struct{ *traces.Windows }

func (w remembering) Predictor(sim.Estimates) (predict.Maker, error) {
	return history.NewArchive(w.All()), nil
}

// hand is window 0 of jobs made by hand.
func hand(t testing.TB, cfg jobselect.Config, spec cluster.Spec, jobs []traces.Job) (*sched.Env, *env.TimeStep) {
	t.Helper()
	e := newEnv(t, cfg, spec, padded(jobs))
	ts := env.NewTimeStep(e.Spec())
	reset(t, e, env.Episode{Window: 0}, ts)
	return e, ts
}

func reset(t testing.TB, e env.Env, ep env.Episode, ts *env.TimeStep) {
	t.Helper()
	if err := e.Reset(ctx, ep, ts); err != nil {
		t.Fatal(err)
	}
	if err := e.Spec().Check(ts); err != nil {
		t.Fatal(err)
	}
}

func step(t testing.TB, e env.Env, a int, ts *env.TimeStep) {
	t.Helper()
	if err := e.Step(ctx, env.Action{Disc: []int32{int32(a)}}, ts); err != nil {
		t.Fatal(err)
	}
	if err := e.Spec().Check(ts); err != nil {
		t.Fatal(err)
	}
}

// anyLegal draws one of the legal actions.
func anyLegal(r *rand.Rand, mask []bool) int {
	n := 0
	for _, ok := range mask {
		if ok {
			n++
		}
	}
	k := r.IntN(n)
	for a, ok := range mask {
		if ok {
			if k == 0 {
				return a
			}
			k--
		}
	}
	panic("no legal action")
}

// philly is a generated workload of the shape of Microsoft's Philly trace.
func philly(t testing.TB, n int) []traces.Job {
	t.Helper()
	cfg := synth.DefaultConfig()
	cfg.Jobs = n
	jobs, err := synth.Generate(cfg, 1)
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}

// tangled draws a workload with gangs, shares, ties and estimates that are wrong.
func tangled(r *rand.Rand, n int) []traces.Job {
	jobs := make([]traces.Job, n)
	at := time.Duration(0)
	for i := range jobs {
		if r.IntN(3) > 0 {
			at += time.Duration(r.ExpFloat64() * 300 * float64(second))
		}
		j := job(fmt.Sprint("j", i), at, time.Duration(1+r.IntN(3000))*second, 1+r.IntN(8))
		if r.IntN(5) == 0 {
			j.GPUs, j.GPUMilli = 1+r.IntN(2), 1+r.IntN(999)
		}
		j.Estimate = time.Duration(1+r.IntN(3000)) * second
		jobs[i] = j
	}
	return jobs
}

// facts is an observer that keeps what happened to each counted job, from the events alone.
type facts struct {
	first  int
	begin  time.Duration
	jobs   map[int]*fact // by position
	order  []int
	points []time.Duration
}

type fact struct {
	submit, start, finish time.Duration // -1 = not yet
	work                  time.Duration
	gpus                  float64
	rate                  float64
}

func (f *facts) Observe(v *sim.View, p *sim.Point) error {
	if f.jobs == nil {
		f.jobs = map[int]*fact{}
	}
	f.points = append(f.points, p.Now)
	for _, e := range p.Events {
		if e.Job < 0 {
			continue
		}
		pos := v.Pos(e.Job)
		switch e.Kind {
		case sim.Submit:
			t := v.Trace(e.Job)
			f.jobs[pos] = &fact{submit: e.At, start: -1, finish: -1, work: t.Work, gpus: float64(t.Milli()) / 1000}
			f.order = append(f.order, pos)
		case sim.Start:
			if k := f.jobs[pos]; k != nil {
				k.start, k.rate = e.At, v.Factor(e.Job, e.GPUs)
			}
		case sim.Finish:
			if k := f.jobs[pos]; k != nil {
				k.finish = e.At
			}
		}
	}
	return nil
}

// counted calls fn for every counted job that has arrived, in order.
func (f *facts) counted(fn func(k *fact)) {
	for _, pos := range f.order {
		if pos >= f.first {
			fn(f.jobs[pos])
		}
	}
}
