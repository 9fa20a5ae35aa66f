package report

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"time"

	"clustergym/env/sched"
	"clustergym/live"
	"clustergym/ops/incumbent"
	"clustergym/ops/steer"
	"clustergym/ops/steer/mirror"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// replay is the workload of a log, for simulations. Its clock shows 0 at the first submit.
type replay struct {
	log    *Log
	layout mirror.Layout
	zero   time.Time
	half   time.Duration // between Begin and End, the first look and the last one
	of     []*Job        // by position in Jobs

	incumbent.Past

	// What is left out, and what is not known.
	withdrawn, blocked, large, running, waiting, elsewhere int
}

// layoutOf returns the cluster of a log.
func layoutOf(l *Log) mirror.Layout {
	s := &live.Snapshot{Cluster: l.Cluster, At: l.From}
	for _, n := range l.Nodes {
		s.Nodes = append(s.Nodes, live.Node{Name: n.Name, Rack: n.Rack, GPUType: n.Type, GPUs: n.GPUs})
	}
	return mirror.LayoutOf(s)
}

// newReplay makes the workload. limit stands for the time limits of jobs without; history is in order of submit, and
// its last job ended at the first look.
func newReplay(l *Log, limit time.Duration, history []traces.Job) (*replay, error) {
	r := &replay{log: l, layout: layoutOf(l), zero: l.From}
	r.Spec, r.Archive = r.layout.Spec, history
	machine, err := cluster.New(r.layout.Spec)
	if err != nil {
		return nil, err
	}
	guess := newGuess(l)
	for _, j := range l.Jobs {
		t := traces.Job{ID: j.ID, User: j.User, VC: j.VC, GPUs: j.GPUs, GPUTypes: j.Types, GPUMilli: 1000, Estimate: j.Limit}
		if t.Estimate <= 0 {
			t.Estimate, t.Assumed = limit, true
		}
		_, fits := machine.Request(&t)
		switch {
		case !j.End.IsZero() && !j.End.After(l.From): // it was over before
			continue
		case j.Gone:
			r.withdrawn++
			continue
		case j.blocked:
			r.blocked++
			continue
		case !fits:
			r.large++
			continue
		case j.Start.IsZero():
			r.waiting++
			t.Work = guess.run(j, 0, t.Estimate)
		case j.End.IsZero():
			r.running++
			t.Work = guess.run(j, l.To.Sub(j.Again), t.Estimate)
		default:
			t.Work = max(j.End.Sub(j.Again), time.Second)
		}
		if j.Submit.Before(r.zero) {
			r.zero = j.Submit
		}
		r.Jobs, r.of = append(r.Jobs, t), append(r.of, j)
	}
	r.Begin, r.End = r.clock(l.From), r.clock(l.To)
	r.half = (r.Begin + r.End) / 2
	for i, j := range r.of {
		r.Jobs[i].Submit = r.clock(j.Submit)
	}
	r.seat(machine.GPUs())
	end := time.Duration(0)
	for i := range history {
		end = max(end, history[i].Submit+history[i].Work)
	}
	r.Origin = end - r.Begin
	if r.Origin < 0 && len(history) > 0 { // the history is shorter than the oldest job is old
		r.Archive = slices.Clone(history)
		for i := range r.Archive {
			r.Archive[i].Submit -= r.Origin
		}
	}
	r.Origin = max(0, r.Origin)
	return r, nil
}

func (r *replay) clock(t time.Time) time.Duration { return max(0, t.Sub(r.zero)) }

// seat chooses the GPUs of the jobs that run at the first look: on their nodes, where there is room.
func (r *replay) seat(gpus int) {
	for i, j := range r.of {
		if !j.Start.IsZero() && !j.Start.After(r.log.From) {
			start := min(r.clock(j.Start), r.Begin-1)
			r.Seated = append(r.Seated, incumbent.Seat{Job: i, Start: max(start, r.Jobs[i].Submit)})
		}
	}
	slices.SortStableFunc(r.Seated, func(a, b incumbent.Seat) int { return int(min(max(a.Start-b.Start, -1), 1)) })
	b := newBooks(r.layout, r.log.Nodes, gpus)
	kept := r.Seated[:0]
	for _, f := range r.Seated {
		j := r.of[f.Job]
		got, own := b.take(j)
		if !own {
			r.elsewhere++
		}
		if f.GPUs = got; len(got) == j.GPUs && f.Start < r.Begin {
			kept = append(kept, f)
		}
	}
	r.Seated = kept
}

// books say who holds which GPU.
type books struct {
	node  map[string]int
	first []cluster.GPU // of each node, and one more
	owner []*Job
	held  map[*Job][]cluster.GPU
}

func newBooks(l mirror.Layout, nodes []steer.NodeLine, gpus int) *books {
	b := &books{node: map[string]int{}, owner: make([]*Job, gpus), held: map[*Job][]cluster.GPU{}}
	g := cluster.GPU(0)
	for i, name := range l.Nodes {
		b.node[name] = i
		b.first = append(b.first, g)
		k := slices.IndexFunc(nodes, func(n steer.NodeLine) bool { return n.Name == name })
		g += cluster.GPU(nodes[k].GPUs)
	}
	b.first = append(b.first, g)
	return b
}

// free appends the first n free GPUs of a node to dst.
func (b *books) free(dst []cluster.GPU, node, n int) []cluster.GPU {
	for g := b.first[node]; g < b.first[node+1] && n > 0; g++ {
		if b.owner[g] == nil {
			dst = append(dst, g)
			n--
		}
	}
	return dst
}

// take gives j GPUs on its nodes, or elsewhere, which it reports; nothing if there are too few.
func (b *books) take(j *Job) (got []cluster.GPU, own bool) {
	own = true
	left := j.GPUs
	for i, name := range j.Nodes {
		n := left
		if len(j.On) == len(j.Nodes) {
			n = min(left, j.On[i])
		} else if len(j.Nodes) > 1 {
			n = min(left, (left+len(j.Nodes)-i-1)/(len(j.Nodes)-i))
		}
		if k, known := b.node[name]; known {
			got = b.free(got, k, n)
		}
		left = j.GPUs - len(got)
	}
	if left > 0 {
		own = false
		got = got[:0]
		for k := range b.first[:len(b.first)-1] {
			got = b.free(got, k, j.GPUs-len(got))
		}
		if len(got) < j.GPUs {
			return nil, false
		}
	}
	for _, g := range got {
		b.owner[g] = j
	}
	b.held[j] = got
	return got, own
}

func (b *books) leave(j *Job) {
	for _, g := range b.held[j] {
		b.owner[g] = nil
	}
	delete(b.held, j)
}

// guess guesses run times that the log does not tell: the median of those that ended after a longer time, of the same
// user if there are some.
type guess struct {
	all  []float64
	user map[string][]float64
}

func newGuess(l *Log) *guess {
	g := &guess{user: map[string][]float64{}}
	for _, j := range l.Jobs {
		if !j.End.IsZero() && !j.Again.IsZero() {
			ran := j.End.Sub(j.Again).Seconds()
			g.all = append(g.all, ran)
			g.user[j.User] = append(g.user[j.User], ran)
		}
	}
	slices.Sort(g.all)
	for _, v := range g.user {
		slices.Sort(v)
	}
	return g
}

// run guesses the run time of a job that has run for ran.
func (g *guess) run(j *Job, ran, limit time.Duration) time.Duration {
	for _, v := range [][]float64{g.user[j.User], g.all} {
		v = v[sort.SearchFloat64s(v, ran.Seconds()+1e-9):]
		if len(v) < 3 {
			continue
		}
		t := time.Duration(v[len(v)/2] * float64(time.Second))
		if j.Limit > ran {
			t = min(t, j.Limit)
		}
		return max(t, ran, time.Second)
	}
	if limit > ran && j.Limit > 0 {
		return limit
	}
	return max(2*ran, time.Minute)
}

// steered is a policy as steer opens it: it follows the simulation as if that were the cluster, and its starts are
// carried out.
type steered struct {
	ctx    context.Context
	r      *replay
	p      *steer.Policy
	here   map[string]sim.Job
	todo   []steer.Start
	ids    []string
	done   int
	decide time.Duration // the point whose starts are in todo
	seen   bool
	err    error
}

// Reset implements sim.Scheduler.
func (s *steered) Reset(v *sim.View) {
	s.here, s.todo, s.done, s.seen = map[string]sim.Job{}, nil, 0, false
	s.err = s.p.Env.Follow(sched.Following{Origin: s.r.Origin})
	now := sim.Present{Now: v.Now()}
	add := func(j sim.Job) {
		x := sim.PresentJob{Job: v.Trace(j)}
		if v.State(j) == sim.Running {
			x.Runs, x.Start, x.GPUs = true, v.FirstStart(j), v.GPUs(j)
		}
		s.here[x.Job.ID] = j
		now.Jobs = append(now.Jobs, x)
	}
	for _, j := range v.Running() {
		add(j)
	}
	for _, j := range v.Waiting() {
		add(j)
	}
	facts := now.Facts(nil)
	for i := range facts {
		s.tell(&facts[i])
	}
}

func (s *steered) tell(f *sim.Fact) {
	if s.err == nil {
		s.err = s.p.Env.Tell(f)
	}
}

// Decide implements sim.Scheduler.
func (s *steered) Decide(v *sim.View, p *sim.Point, d *sim.Decision) error {
	if !s.seen || s.decide != p.Now {
		s.seen, s.decide = true, p.Now
		for i := range p.Events {
			e := &p.Events[i]
			if e.Kind == sim.Timer {
				continue
			}
			f := v.Fact(e)
			if e.Kind == sim.Submit {
				s.here[f.Job.ID] = e.Job
			}
			s.tell(&f)
			if e.Kind == sim.Finish {
				delete(s.here, f.ID)
			}
		}
		if s.err == nil {
			s.err = s.p.Env.Look(p.Now)
		}
		if s.err != nil {
			return fmt.Errorf("%s: %w", s.p.Name, s.err)
		}
		s.todo, s.done = nil, 0
		if len(v.Waiting()) > 0 {
			if s.todo, s.err = s.p.Starts(s.ctx); s.err != nil {
				return fmt.Errorf("%s: %w", s.p.Name, s.err)
			}
			s.ids = s.ids[:0]
			for _, x := range s.todo {
				s.ids = append(s.ids, s.p.Env.View().Trace(x.Job).ID)
			}
		}
	}
	if s.done < len(s.todo) {
		d.Op, d.Job = sim.StartJob, s.here[s.ids[s.done]]
		d.GPUs = append(d.GPUs[:0], s.todo[s.done].GPUs...)
		s.done++
	}
	return nil
}
