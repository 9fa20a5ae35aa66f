package envs

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"clustergym/configs"
	"clustergym/env/sched"
	"clustergym/internal/par"
	"clustergym/internal/rng"
	"clustergym/lab/workload"
	"clustergym/simulator/cluster"
	"clustergym/traces"
)

// Generated returns whether the jobs come from a generator, so that there are as many independent draws as one wishes.
func (w *Workload) Generated() bool { return w.Taken != nil && w.trace.File == "" }

// Draw generates n jobs as the workload's generator does with another seed, at the rate that offers the cluster the
// load of the settings, and returns those that the environment takes.
func (w *Workload) Draw(ctx context.Context, seed uint64, n int) ([]traces.Job, error) {
	return draw(ctx, w.pace().trace, w.cut, w.Source.Cluster, seed, n)
}

// paced is a workload at the rate at which its generator offers the cluster a load.
type paced struct {
	trace workload.TraceConfig
	load  float64 // offered
}

// paceOf returns t with the rate at which its generator offers the cluster the load of cut. Jobs that are made for a
// machine of another size and then stretched would have days of weeks, and users whose sessions last for months; at
// another rate, hours and days keep their length.
func (w *Workload) paceOf(t workload.TraceConfig, cut sched.Taken) (p paced) {
	p.trace = t
	if t.File != "" {
		return p
	}
	p.load = loads.of(t, cut, w.Source.Cluster)
	if cut.Load > 0 && p.load > 0 {
		p.trace.Synth = t.Synth.Faster(cut.Load / p.load)
		p.load *= p.trace.Synth.Rate / t.Synth.Rate
	}
	return p
}

func draw(ctx context.Context, t workload.TraceConfig, cut sched.Taken, spec cluster.Spec, seed uint64,
	n int) ([]traces.Job, error) {
	t.Seed, t.Synth.Jobs, t.Jobs, t.Skip = seed, n, 0, 0
	// Days and weeks have their tides: draws that all began on the same day would all count the same days.
	t.Synth.Start = time.Duration(rng.At(seed, rng.Hash("draw/start")) % uint64(week))
	jobs, _, err := workload.LoadTraceContext(ctx, t)
	if err != nil {
		return nil, err
	}
	kept, _, err := cut.Keep(spec, jobs)
	return kept, err
}

// week is the period of the generators.
const week = 7 * 24 * time.Hour

// Kept returns the share of the jobs that the environment takes.
func (w *Workload) Kept() float64 {
	l := &w.Taken.Left
	return float64(l.Of-l.Jobs()) / float64(max(1, l.Of))
}

// The load of a generator is that of so many draws of so many jobs: run times have heavy tails, and the load of one
// workload of some thousand jobs may be a quarter off.
const (
	loadDraws = 16
	loadJobs  = 1 << 14
)

// offered returns the load that the workload offers its cluster: that of its jobs, or of its generator.
func (w *Workload) offered() float64 {
	if !w.Generated() {
		return w.Taken.Offered
	}
	if load := w.pace().load; load > 0 {
		return load
	}
	return w.Taken.Offered
}

// loads are the loads of the generators that were asked for last.
var loads loadCache

type loadCache struct {
	mu    sync.Mutex
	known map[string]float64
}

// mostLoads bounds the cache: clients of a server may name any generator.
const mostLoads = 256

// of returns the load of a generator, 0 if it has none.
func (c *loadCache) of(t workload.TraceConfig, cut sched.Taken, spec cluster.Spec) float64 {
	t.Seed, t.Synth.Jobs, t.Jobs, t.Skip = 0, loadJobs, 0, 0
	text, err := configs.Encode(struct {
		Trace   workload.TraceConfig
		Cluster cluster.Spec
		Most    int
	}{t, spec, cut.MaxGPUs})
	if err != nil {
		return 0
	}
	key := string(text)
	c.mu.Lock()
	load, ok := c.known[key]
	c.mu.Unlock()
	if ok {
		return load
	}
	if load, err = generatorLoad(t, cut, spec); err != nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= mostLoads || c.known == nil {
		c.known = map[string]float64{}
	}
	c.known[key] = load
	return load
}

// generatorLoad returns the GPU time that the jobs of some draws ask for, over that of the cluster while they arrive.
func generatorLoad(t workload.TraceConfig, cut sched.Taken, spec cluster.Spec) (float64, error) {
	var areas, spans [loadDraws]float64
	err := par.For(context.Background(), runtime.GOMAXPROCS(0), loadDraws, func(_, i int) error {
		jobs, err := draw(context.Background(), t, cut, spec, rng.At(rng.Hash("envs/load"), uint64(i)), loadJobs)
		for k := range jobs {
			areas[i] += jobs[k].GPUHours()
		}
		if n := len(jobs); n > 0 {
			spans[i] = (jobs[n-1].Submit - jobs[0].Submit).Hours()
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	area, span := 0.0, 0.0
	for i := range areas { // in one order, so that the sum is the same for any number of workers
		area += areas[i]
		span += spans[i]
	}
	gpus, _ := sizeOf(&spec)
	if !(area > 0) || !(span > 0) || gpus == 0 {
		return 0, fmt.Errorf("the generator has no load")
	}
	return area / (span * float64(gpus)), nil
}
