package twin

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"time"

	"clustergym/internal/par"
	"clustergym/lab/predictors"
	"clustergym/simulator/cluster"
	"clustergym/simulator/predict"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
)

// never is the time of what does not happen within the horizon.
const never = time.Duration(math.MaxInt64)

// draws are the outcomes of a stage, by draw.
type draws struct {
	start [][]time.Duration // by job, from now on; 0 for those that run
	end   [][]time.Duration
	next  [][]time.Duration // by kind of room: when that many GPUs are free, if nothing that waits starts
	idle  [][]time.Duration // by kind of room: when that many GPUs are free beside what starts
	// mean wait of the jobs that wait, in seconds; those that have not started count until the horizon
	wait []float64
	late []int // of these, how many have not started
	// GPU hours during which GPUs did not work while jobs waited, until all that wait now have started
	lost []float64
}

// gpuDemand is so many GPUs, on one node or anywhere.
type gpuDemand struct {
	gpus int
	node bool
}

// rooms returns the kinds of room of a cluster: powers of two, on a node up to its size, and in all.
func rooms(c *cluster.Cluster) (list []gpuDemand) {
	if !c.Pool() {
		for n := 1; n < c.MaxNode(); n *= 2 {
			list = append(list, gpuDemand{n, true})
		}
		list = append(list, gpuDemand{c.MaxNode(), true})
	}
	for n := 1; n < c.GPUs(); n *= 2 {
		if c.Pool() || n > c.MaxNode() {
			list = append(list, gpuDemand{n, false})
		}
	}
	return list
}

// caster plays draws. Its workers are kept from one stage to the next where the cluster is the same.
type caster struct {
	cfg      *Config
	drawer   drawer
	arrivals *arrivals
}

// newCaster prepares the arrivals.
func newCaster(cfg *Config, causal bool) (*caster, error) {
	c := &caster{cfg: cfg, drawer: drawer{cfg.Seed, cfg.Alike}}
	if !cfg.Arrives {
		return c, nil
	}
	var maker predict.Maker
	if causal {
		var err error
		if maker, err = predictors.Maker(cfg.Predictor, nil); err != nil {
			return nil, err
		}
	}
	var err error
	c.arrivals, err = newArrivals(cfg.History, cfg.Limit, maker)
	return c, err
}

// actor plays one draw at a time.
type actor struct {
	twin   *sim.Simulator
	base   schedulers.Policy
	future sim.Future
	dec    sim.Decision
	point  sim.Point
	work   []time.Duration // by job: what it has left
	ends   []ending
	node   []int
}

type ending struct {
	at  time.Duration
	job int
}

// cast plays n draws of a stage.
func (c *caster) cast(ctx context.Context, st *State, s *stage, n int) (*draws, error) {
	workers := c.cfg.Workers
	if workers < 1 {
		workers = runtime.GOMAXPROCS(0)
	}
	workers = min(workers, n)
	actors := make([]actor, workers)
	for i := range actors {
		var err error
		if actors[i].twin, err = s.sim.View().Fork(); err != nil {
			return nil, err
		}
		if actors[i].base, err = schedulers.New(s.model.cfg); err != nil {
			return nil, err
		}
	}
	kinds := rooms(s.sim.View().Cluster())
	d := &draws{
		start: make([][]time.Duration,
			n), end: make([][]time.Duration, n), next: make([][]time.Duration, n), idle: make([][]time.Duration, n),
		wait: make([]float64, n), late: make([]int, n), lost: make([]float64, n),
	}
	err := par.For(ctx, workers, n, func(w, i int) error {
		return c.play(ctx, st, s, &actors[w], d, kinds, i)
	})
	return d, err
}

// play plays one draw, with arrivals of as many days as it takes: first of one, then of twice as many, and so on.
func (c *caster) play(ctx context.Context, st *State, s *stage, a *actor, d *draws, kinds []gpuDemand, draw int) error {
	v := s.sim.View()
	a.work = slices.Grow(a.work[:0], len(s.jobs))[:len(s.jobs)]
	a.future.Left = slices.Grow(a.future.Left[:0], v.Arrived()+1)[:0]
	for i := range s.jobs {
		j := &s.jobs[i]
		ran := time.Duration(0)
		if j.Runs {
			ran = max(0, st.Now-j.Start)
		}
		a.work[i] = c.drawer.draw(j, ran, draw) - ran
		if !s.can[i] {
			continue
		}
		k, _ := v.Find(j.ID)
		for int(k) >= len(a.future.Left) {
			a.future.Left = append(a.future.Left, 0)
		}
		a.future.Left[k] = float64(a.work[i])
	}
	d.next[draw] = c.releases(s, a, kinds)
	most := int((c.cfg.Horizon + day - 1) / day)
	for days := 1; ; days = min(2*days, most) {
		a.future.Jobs, a.future.Forecasts = a.future.Jobs[:0], a.future.Forecasts[:0]
		last := c.cfg.Horizon
		if c.arrivals != nil {
			c.arrivals.draw(&a.future, c.cfg.Seed, draw, st.Now, st.Origin, days)
			last = min(last, time.Duration(days)*day)
		}
		done, err := c.run(ctx, st, s, a, d, kinds, draw, last)
		if err != nil || done || last >= c.cfg.Horizon {
			return err
		}
	}
}

// run plays one draw until all jobs of the stage have started, or up to last.
func (c *caster) run(ctx context.Context, st *State, s *stage, a *actor, d *draws, kinds []gpuDemand, draw int,
	last time.Duration) (done bool, err error) {
	v, t := s.sim.View(), a.twin
	t.CopyFrom(v, &a.future)
	tv := t.View()
	start, idle := slices.Repeat([]time.Duration{never}, len(s.jobs)), slices.Repeat([]time.Duration{never}, len(kinds))
	open, used := 0, 0
	for i := range s.jobs {
		switch j := &s.jobs[i]; {
		case j.Runs:
			start[i] = 0
			used += j.GPUs
		case s.can[i]:
			open++
		}
	}
	lost, end := 0.0, st.Now+last
	a.point.Now, a.point.Events = tv.Now(), a.point.Events[:0]
	a.base.Reset(tv)
	if err := sim.Decide(t, a.base, &a.point, &a.dec, nil); err != nil {
		return false, err
	}
	now := st.Now
	seen := len(s.at)
	for {
		c.vacant(tv, kinds, idle, now-st.Now)
		queued := len(tv.Waiting()) > 0
		p, err := t.Advance(ctx)
		if errors.Is(err, sim.ErrDone) {
			break
		}
		if err != nil {
			return false, err
		}
		at := min(p.Now, end)
		over := tv.Over() && len(p.Events) == 0
		for i := range p.Events { // starts are told with the next point, at their own time
			switch e := &p.Events[i]; e.Kind {
			case sim.Start:
				used += int(e.N)
				if pos := tv.Pos(e.Job); pos < seen && e.At <= end {
					if i := s.at[pos]; start[i] == never {
						start[i] = e.At - st.Now
						open--
					}
				}
			}
		}
		if queued {
			lost += float64(max(0, s.gpus-used)) * (at - now).Hours()
		}
		for i := range p.Events {
			if e := &p.Events[i]; e.Kind == sim.Finish {
				used -= int(e.N)
			}
		}
		if now = p.Now; open == 0 || now > end || over || tv.Over() {
			break
		}
		if err := sim.Decide(t, a.base, p, &a.dec, nil); err != nil {
			return false, err
		}
	}
	c.note(s, a, d, draw, start, idle, lost)
	return open == 0, nil
}

// note writes down a draw.
func (c *caster) note(s *stage, a *actor, d *draws, draw int, start, idle []time.Duration, lost float64) {
	ends := make([]time.Duration, len(start))
	wait, waiting := 0.0, 0
	for i := range s.jobs {
		j := &s.jobs[i]
		ends[i] = never
		if start[i] != never {
			ends[i] = start[i] + a.work[i]
		}
		if j.Runs || !s.can[i] || j.Work > 0 {
			continue
		}
		waiting++
		at := start[i]
		if at == never {
			at = c.cfg.Horizon
			d.late[draw]++
		}
		wait += at.Seconds()
	}
	if waiting > 0 {
		wait /= float64(waiting)
	}
	d.start[draw], d.end[draw], d.idle[draw], d.wait[draw], d.lost[draw] = start, ends, idle, wait, lost
}

// vacant notes which kinds of room there are beside what has been started.
func (c *caster) vacant(v *sim.View, kinds []gpuDemand, first []time.Duration, at time.Duration) {
	cl := v.Cluster()
	free := cl.Free()
	if free == 0 {
		return
	}
	most := -1
	for i, k := range kinds {
		if first[i] != never || k.gpus > free {
			continue
		}
		if k.node {
			if most < 0 {
				for n := range cl.Nodes() {
					most = max(most, cl.NodeFree(n))
				}
			}
			if k.gpus > most {
				continue
			}
		}
		first[i] = at
	}
}

// releases returns when the kinds of room are free if nothing that waits starts.
func (c *caster) releases(s *stage, a *actor, kinds []gpuDemand) []time.Duration {
	cl := s.sim.View().Cluster()
	first := slices.Repeat([]time.Duration{never}, len(kinds))
	a.node = append(a.node[:0], s.free...)
	a.ends = a.ends[:0]
	total, most := 0, 0
	for _, n := range a.node {
		total, most = total+max(0, n), max(most, n)
	}
	for i := range s.jobs {
		if s.jobs[i].Runs {
			a.ends = append(a.ends, ending{a.work[i], i})
		}
	}
	slices.SortFunc(a.ends, func(x, y ending) int {
		if x.at != y.at {
			return int(min(1, max(-1, x.at-y.at)))
		}
		return x.job - y.job
	})
	look := func(at time.Duration) {
		for i, k := range kinds {
			if first[i] == never && (k.node && k.gpus <= most || !k.node && k.gpus <= total) {
				first[i] = at
			}
		}
	}
	look(0)
	for _, e := range a.ends {
		j := &s.jobs[e.job]
		if cl.Pool() {
			total += j.GPUs
		}
		for _, g := range j.Held {
			if n := cl.NodeOf(g); a.node[n] >= 0 {
				a.node[n]++
				total, most = total+1, max(most, a.node[n])
			}
		}
		look(e.at)
	}
	return first
}
