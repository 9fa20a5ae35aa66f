package asrpt

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"clustergym/traces"
)

// job is a training job.
type job struct {
	submit     float64 // seconds
	iterations float64
	graph      *graph
	best       float64 // seconds of an iteration as heaviest edge places it on the empty cluster
	worst      float64 // with each replica on a server of its own
	least      float64 // less than which no iteration takes
	// meta is what predictors may look at. Its Work, which they learn when the job has ended, is iterations × best.
	meta traces.Job
}

// solo returns the seconds that the job takes on the empty cluster.
func (j *job) solo() float64 { return j.iterations * j.best }

// outcome is what became of a job.
type outcome struct {
	begin, finish float64
	iteration     float64    // seconds; of the last start
	placed        *placement // where it ran last
}

// policy decides which job starts next. Jobs are known by their position.
type policy interface {
	submitted(now float64, j int)
	finished(now float64, j int)
	// next returns the job to start now, −1 if there is none. The machine calls it until it returns −1.
	next(now float64, m *machine) int
	// wake returns the next time at which the policy's own state changes, +Inf if it does not by itself.
	wake() float64
}

// preemptive is a policy that also stops and moves running jobs, at no cost: it shows what better knowledge would be
// worth.
type preemptive interface {
	policy
	// keep returns the jobs that should run from now on. They fit the cluster.
	keep(now float64, m *machine) []int
}

// machine is a cluster of equal servers and the jobs on it.
type machine struct {
	net   network
	how   string // placement
	seed  uint64 // of random placements
	jobs  []job
	free  []int // GPUs, by server
	total int   // of free
	runs  []stint
	left  []float64 // iterations, by job
	out   []outcome
}

// stint is a running job.
type stint struct {
	job    int
	since  float64
	finish float64
}

// newMachine returns an empty cluster.
func newMachine(net network, servers int, how string, seed uint64, jobs []job) *machine {
	m := &machine{net: net, how: how, seed: seed, jobs: jobs, free: make([]int, servers), total: servers * net.Server}
	for i := range m.free {
		m.free[i] = net.Server
	}
	m.left, m.out = make([]float64, len(jobs)), make([]outcome, len(jobs))
	for i := range jobs {
		m.left[i] = jobs[i].iterations
	}
	return m
}

// place returns where job j would be placed now. It must fit.
func (m *machine) place(j int) *placement {
	return place(m.how, &m.net, m.jobs[j].graph, m.free, m.seed+uint64(j))
}

// start places job j and runs it.
func (m *machine) start(now float64, j int) error {
	g := m.jobs[j].graph
	if g.gpus > m.total {
		return fmt.Errorf("job %d needs %d GPUs, %d are free", j, g.gpus, m.total)
	}
	p := m.place(j)
	for i, s := range p.server {
		m.free[s] -= p.on(i)
	}
	m.total -= g.gpus
	o := &m.out[j]
	if o.placed == nil {
		o.begin = now
	}
	o.placed, o.iteration = p, m.net.iteration(g, p)
	r := stint{job: j, since: now, finish: now + m.left[j]*o.iteration}
	at, _ := slices.BinarySearchFunc(m.runs, r, func(a, b stint) int {
		return cmp.Or(cmp.Compare(a.finish, b.finish), cmp.Compare(a.job, b.job))
	})
	m.runs = slices.Insert(m.runs, at, r)
	return nil
}

// stop takes runs[i] off the cluster.
func (m *machine) stop(now float64, i int) {
	r := m.runs[i]
	m.runs = slices.Delete(m.runs, i, i+1)
	p := m.out[r.job].placed
	for k, s := range p.server {
		m.free[s] += p.on(k)
	}
	m.total += m.jobs[r.job].graph.gpus
	m.left[r.job] = max(0, m.left[r.job]-(now-r.since)/m.out[r.job].iteration)
}

// remaining returns the iterations of job j that are left now.
func (m *machine) remaining(now float64, j int) float64 {
	for _, r := range m.runs {
		if r.job == j {
			return max(0, m.left[j]-(now-r.since)/m.out[j].iteration)
		}
	}
	return m.left[j]
}

// play runs all jobs, which are in order of submit, and returns what became of them.
func (m *machine) play(ctx context.Context, p policy) ([]outcome, error) {
	stops, canStop := p.(preemptive)
	for next, done, steps := 0, 0, 0; done < len(m.jobs); steps++ {
		if steps%4096 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		now := p.wake()
		if next < len(m.jobs) {
			now = min(now, m.jobs[next].submit)
		}
		if len(m.runs) > 0 {
			now = min(now, m.runs[0].finish)
		}
		if math.IsInf(now, 1) {
			return nil, fmt.Errorf("%d jobs never start", len(m.jobs)-done)
		}
		for len(m.runs) > 0 && m.runs[0].finish <= now {
			j := m.runs[0].job
			m.stop(now, 0)
			m.left[j], m.out[j].finish = 0, now
			done++
			p.finished(now, j)
		}
		for ; next < len(m.jobs) && m.jobs[next].submit <= now; next++ {
			p.submitted(now, next)
		}
		if canStop {
			if err := m.change(now, stops.keep(now, m)); err != nil {
				return nil, err
			}
			continue
		}
		for j := p.next(now, m); j >= 0; j = p.next(now, m) {
			if err := m.start(now, j); err != nil {
				return nil, err
			}
		}
	}
	return m.out, nil
}

// change lets the jobs of keep run and no others, all of them placed anew, the largest first.
func (m *machine) change(now float64, keep []int) error {
	same := len(keep) == len(m.runs)
	for _, r := range m.runs {
		same = same && slices.Contains(keep, r.job)
	}
	if same {
		return nil
	}
	for len(m.runs) > 0 {
		m.stop(now, 0)
	}
	slices.SortStableFunc(keep, func(a, b int) int { return cmp.Compare(m.jobs[b].graph.gpus, m.jobs[a].graph.gpus) })
	for _, j := range keep {
		if err := m.start(now, j); err != nil {
			return err
		}
	}
	return nil
}
