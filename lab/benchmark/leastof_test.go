package benchmark

// What no policy gets below, computed: for each test window or episode of a configuration, a value of the metric that
// is out of reach for any policy. bounds.json has the values of the tasks.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"clustergym/env"
	"clustergym/env/dagplace"
	"clustergym/env/sched"
	"clustergym/env/workerplace"
	"clustergym/internal/rng"
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/lab/envs"
	"clustergym/simulator/cluster"
	"clustergym/simulator/metrics"
	"clustergym/simulator/schedulers"
	"clustergym/traces"
)

// newBound computes the bound of a task.
func (t *Task) newBound(ctx context.Context) (bound, error) {
	cfg, err := t.Config()
	if err != nil {
		return bound{}, err
	}
	w, err := arena.NewScenarioContext(ctx, &cfg)
	if err != nil {
		return bound{}, err
	}
	if err := t.check(w, &cfg); err != nil {
		return bound{}, err
	}
	b := bound{Hash: t.Hash}
	b.Least, err = leastOf(ctx, &cfg, w, Windows(&cfg))
	for i, x := range b.Least {
		b.Least[i] = roundDown(x)
	}
	return b, err
}

// roundDown returns the largest number of six digits that is not above x, 0 or more.
func roundDown(x float64) float64 {
	if !(x > 0) {
		return 0
	}
	cut := func(x float64) float64 {
		y, err := strconv.ParseFloat(strconv.FormatFloat(x, 'e', 5, 64), 64)
		if err != nil {
			panic(err) // of a number that was just formatted
		}
		return y
	}
	y := cut(x)
	if y > x {
		y = cut(x - math.Pow(10, math.Floor(math.Log10(x))-5))
	}
	return y
}

// leastOf returns for each of n test windows or episodes of cfg, whose scenario is w, a value of the metric that no
// policy gets below if it finishes all jobs, whatever it knows. cfg is of a scheduling environment.
func leastOf(ctx context.Context, cfg *config.Config, w *arena.Scenario, n int) (all []float64, err error) {
	if cfg.Simulated() {
		return simulated(ctx, cfg, w, n)
	}
	e, err := w.About.Open(w.Settings, w.Source, traces.Test)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	ts := env.NewTimeStep(e.Spec())
	for i := range n {
		ep := testEpisode(cfg, i)
		switch e := e.(type) {
		case *dagplace.Env:
			least, leader, err := e.Least(ctx, ep)
			if err != nil {
				return nil, err
			}
			all = append(all, least/leader)
		case *workerplace.Env:
			if err := e.Reset(ctx, ep, ts); err != nil {
				return nil, err
			}
			all = append(all, e.Least())
		default:
			return nil, fmt.Errorf("%s has no bound", cfg.Env.ID)
		}
	}
	return all, nil
}

// simulated is leastOf on the cluster simulator. A heuristic plays each window, so that its jobs are seen as policies
// get them.
func simulated(ctx context.Context, cfg *config.Config, w *arena.Scenario, n int) ([]float64, error) {
	fifo, err := cfg.Rival("fifo+skip")
	if err != nil {
		return nil, err
	}
	empty, err := cluster.New(w.Cluster())
	if err != nil {
		return nil, err
	}
	metric := w.About.Metric.Key
	return arena.EachWindow(ctx, w, traces.Test, n, 1, func(e sched.Arena) (func(i int) (float64, error), error) {
		h, err := schedulers.New(fifo.Sched)
		seen := metrics.Collector{Keep: func(pos int) bool { return pos >= e.First() }}
		return func(i int) (float64, error) {
			seen.Reset()
			ep := testEpisode(cfg, i)
			h.Reseed(ep.Seed)
			if err := e.Simulate(ctx, ep, h, &seen); err != nil {
				return 0, fmt.Errorf("%s: %w", cfg.Env.ID, err)
			}
			var jobs []job
			cost := 0.0
			for j := range seen.Jobs() {
				if j.Finish >= 0 && float64(j.Run) < float64(j.Work)*(1-1e-9) {
					return 0, fmt.Errorf("%s: a job runs for %v, and %v alone: there is no bound for jobs that become faster",
						cfg.Env.ID, j.Run, j.Work)
				}
				jobs = append(jobs, asked(j, w.GPUs, metric))
				cost += empty.BestCost(int(j.GPUs))
			}
			if len(jobs) == 0 {
				return 0, fmt.Errorf("%s: there are no jobs", cfg.Env.ID)
			}
			of := float64(len(jobs))
			switch metric {
			case envs.JCT.Key:
				return leastDelay(jobs) / of, nil
			case slowdown: // no job's is below 1
				return max(1, leastDelay(jobs)/of), nil
			case "comm_cost":
				return cost / of, nil
			}
			return 0, fmt.Errorf("%s: the metric %s has no bound", cfg.Env.ID, metric)
		}, err
	})
}

// slowdown is the key of the metric bounded slowdown.
const slowdown = "bounded_slowdown"

// asked is what a job of the collector asks of a cluster of so many GPUs.
func asked(j *metrics.Job, gpus int, metric string) job {
	p := job{at: j.Submit.Seconds(), time: j.Work.Seconds(), size: float64(j.GPUs) / float64(gpus), weight: 1}
	if j.Milli > 0 {
		p.size *= float64(j.Milli) / 1000
	}
	if metric == slowdown {
		p.weight = 1 / max(p.time, 10)
	}
	return p
}

// job comes at a time, runs for a time at least, has a share of the cluster meanwhile, and each second
// until it ends counts with a weight.
type job struct {
	at, time, size, weight float64

	left, middle float64 // time on the whole cluster that is left; the integral over the clock of what it got
}

// leastDelay returns a weighted sum of the jobs' delays, from when they come until they end, that no schedule gets
// below. It is the larger of two bounds.
//
// A job does not end before its own time is over. And a schedule hands out the cluster, whole or in parts, so that the
// means of the times at which jobs are served, weighted, add up to at least what preemptive serving of the job with
// most weight for its work gives (Goemans, "Improved approximation algorithms for scheduling with release dates", SODA
// 1997); a job ends at least half of its own time after its mean.
func leastDelay(jobs []job) float64 {
	alone, shared, came := 0.0, 0.0, 0.0
	for i := range jobs {
		j := &jobs[i]
		j.left, j.middle = j.time*j.size, 0
		alone += j.weight * j.time
		came += j.weight * j.at
	}
	byArrival := slices.Clone(jobs)
	slices.SortStableFunc(byArrival, func(a, b job) int {
		if a.at < b.at {
			return -1
		}
		if a.at > b.at {
			return 1
		}
		return 0
	})
	var open []*job
	now, next := 0.0, 0
	for next < len(byArrival) || len(open) > 0 {
		if len(open) == 0 {
			now = max(now, byArrival[next].at)
		}
		for next < len(byArrival) && byArrival[next].at <= now {
			open = append(open, &byArrival[next])
			next++
		}
		best := 0
		for i, j := range open {
			if j.weight*open[best].time*open[best].size > open[best].weight*j.time*j.size {
				best = i
			}
		}
		j := open[best]
		until := now + j.left
		if next < len(byArrival) {
			until = min(until, byArrival[next].at)
		}
		j.middle += (until - now) * (until + now) / 2
		if j.left -= until - now; j.left <= 1e-12*j.time*j.size || until == now {
			open = slices.Delete(open, best, best+1)
			mean := now
			if work := j.time * j.size; work > 0 {
				mean = j.middle / work
			}
			shared += j.weight * (mean + j.time/2)
		}
		now = until
	}
	return max(alone, shared-came)
}

// testEpisode returns test window i of cfg, or test episode i of one whose episodes are generated, as every policy is
// judged on it.
func testEpisode(cfg *config.Config, i int) env.Episode {
	if cfg.Simulated() {
		return (*arena.Scenario)(nil).Episode(cfg, i)
	}
	return env.Episode{Seed: env.EpisodeSeed(rng.At(cfg.Eval.Seed, rng.Hash("test episodes")), i), Window: -1}
}
