package rollout

import (
	"context"
	"slices"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
)

// stopping is a search over a base that stops gangs. Its candidates are
//
//   - the base's own choice;
//   - waiting;
//   - moves: stop gangs so that a waiting job can start, and start it. The job is one of the first in a line, the gangs
//     are the last of those behind it, and none that it does not need;
//   - starts of jobs that fit.
//
// There are two lines: that of the base, and that of the Gittins index, which ranks by what is known of run times. A
// move takes several decisions of one instant. Once its first has been made, the others follow without another search.
type stopping struct {
	search  *Search
	bases   []*passes // of the search
	lines   [2]ranking
	most    int
	cands   []sim.Decision
	moves   []move // by N − 1 of the candidates that stop gangs
	pending pending
	stamp   uint64  // counts decisions
	place   *passes // that seats jobs
	ranked  []entry
	then    *cluster.Cluster // what would be free after the stops
	of      *cluster.Cluster // the cluster that then is a copy of
}

// move is a candidate that stops gangs so that a job starts.
type move struct {
	stops []sim.Job
	start sim.Job
}

// pending is a move that has begun: what is left of it at this instant.
type pending struct {
	move
	at   time.Duration
	done int // stops made
	open bool
	next sim.Decision
}

// newStopping returns the search over an order of Stopping.
func newStopping(setup Setup, order, placement string, est sim.Estimates) (*stopping, error) {
	s := &stopping{most: setup.Candidates, lines: [2]ranking{{order: order, est: est}, {order: "gittins", est: est}}}
	var err error
	if s.place, err = newPasses(order, est, placement, nil, &s.stamp); err != nil {
		return nil, err
	}
	s.search, err = NewSearch(Options{
		Config: setup.Config, Estimates: est, Source: setup.Source, Workers: setup.Workers, Clock: setup.Clock,
		Base: func() (Base, error) {
			b, err := newPasses(order, est, placement, &s.moves, &s.stamp)
			s.bases = append(s.bases, b)
			return b, err
		},
	})
	return s, err
}

// reseed begins another run.
func (s *stopping) reseed(seed uint64) {
	s.pending.open = false
	for i := range s.lines {
		s.lines[i].est.Seed = seed
	}
	s.place.Reseed(seed)
	s.search.Reseed(seed)
}

// keep sets which gangs are spared.
func (s *stopping) keep(first int, least time.Duration) {
	for i := range s.lines {
		s.lines[i].first, s.lines[i].min = first, least
	}
	s.place.first, s.place.min = first, least
	for _, b := range s.bases {
		b.first, b.min = first, least
	}
}

// own makes room for the base's own choice, the first candidate.
func (s *stopping) own() *sim.Decision {
	s.cands, s.moves = grow(s.cands[:0]), s.moves[:0]
	s.stamp++
	return &s.cands[0]
}

// choose returns the best candidate, where these jobs wait and these gangs may be stopped. The base's own choice has
// been set.
func (s *stopping) choose(ctx context.Context, v *sim.View, seed uint64, wait, gangs []sim.Job, canWait bool,
	t *Tally) (*sim.Decision, error) {
	if s.cands[0].Op != sim.Wait && canWait && len(v.Running()) > 0 {
		s.cands = grow(s.cands) // to wait
	}
	for i := len(s.lines) - 1; i >= 0; i-- {
		s.line(v, &s.lines[i], wait, gangs)
		s.promising(v, i == 0)
	}
	for i := range s.ranked {
		if e := &s.ranked[i]; len(s.cands) < s.most && v.State(e.job) == sim.Waiting && !s.starts(e.job) && v.Fits(e.job) {
			s.add(v, e.job)
		}
	}
	best, err := s.search.take(ctx, v, seed, s.cands, t)
	if err != nil {
		return nil, err
	}
	c := &s.cands[best]
	if c.Op == sim.PreemptJob && c.N > 0 {
		m, p := &s.moves[c.N-1], &s.pending
		p.stops, p.start = append(p.stops[:0], m.stops...), m.start
		p.at, p.done, p.open = v.Now(), 1, true
		c.N = 0
	}
	return c, nil
}

// goOn returns the next decision of the move that has begun. It returns nil if no move has begun, or if it cannot go
// on.
func (s *stopping) goOn(v *sim.View) *sim.Decision {
	p := &s.pending
	open := p.open && p.at == v.Now()
	for i := 0; open && i < p.done; i++ { // a stop that was not made ends the move
		open = v.State(p.stops[i]) == sim.Waiting && v.Decided(p.stops[i])
	}
	p.open = false
	if !open {
		return nil
	}
	d := &p.next
	*d = sim.Decision{GPUs: d.GPUs[:0]}
	if p.done < len(p.stops) {
		d.Op, d.Job = sim.PreemptJob, p.stops[p.done]
		p.done++
		p.open = true
		return d
	}
	if d.Op, d.Job = sim.StartJob, p.start; v.State(d.Job) != sim.Waiting || !s.place.fits(v, d) {
		return nil
	}
	return d
}

// add appends the start of a job that fits to the candidates.
func (s *stopping) add(v *sim.View, j sim.Job) {
	s.cands = grow(s.cands)
	d := &s.cands[len(s.cands)-1]
	if d.Op, d.Job = sim.StartJob, j; !s.place.fits(v, d) {
		s.cands = s.cands[:len(s.cands)-1]
	}
}

// starts reports whether a candidate starts j, at once or after stops.
func (s *stopping) starts(j sim.Job) bool {
	for i := range s.cands {
		switch c := &s.cands[i]; {
		case c.Op == sim.StartJob && c.Job == j, c.Op == sim.PreemptJob && c.N > 0 && s.moves[c.N-1].start == j:
			return true
		}
	}
	return false
}

// line ranks the jobs that wait and the gangs that may be stopped.
func (s *stopping) line(v *sim.View, by *ranking, wait, gangs []sim.Job) {
	s.ranked = s.ranked[:0]
	for _, list := range [...][]sim.Job{wait, gangs} {
		for _, j := range list {
			e, m := entry{pos: v.Pos(j), milli: milli(v, j), job: j}, by.rank(v, j)
			by.put(v, &e, &m)
			s.ranked = append(s.ranked, e)
		}
	}
	slices.SortFunc(s.ranked, func(a, b entry) int { return a.compare(&b) })
}

// eachLine is how many candidates each line gives before the starts of other jobs.
const eachLine = 2

// promising adds the starts of the first waiting jobs of the line, or the moves that make room for them. Of the base's
// own line it leaves out the move that the base has begun.
func (s *stopping) promising(v *sim.View, own bool) {
	for i, left := 0, eachLine; i < len(s.ranked) && left > 0 && len(s.cands) < s.most; i++ {
		j := s.ranked[i].job
		switch {
		case v.State(j) == sim.Running || s.starts(j):
			continue
		case v.Fits(j):
			left--
			s.add(v, j)
			continue
		case !s.room(v, i):
			continue
		}
		left--
		m := &s.moves[len(s.moves)-1]
		if c := &s.cands[0]; own && c.Op == sim.PreemptJob && slices.Contains(m.stops, c.Job) {
			s.moves = s.moves[:len(s.moves)-1]
			continue
		}
		s.cands = grow(s.cands)
		c := &s.cands[len(s.cands)-1]
		c.Op, c.Job, c.N = sim.PreemptJob, m.stops[0], len(s.moves)
	}
}

// room adds the move that makes room for the waiting job at place i of the line. It stops the last of the line, none
// before i, and none that the job does not need. It reports false if there are none.
func (s *stopping) room(v *sim.View, i int) bool {
	r := v.Request(s.ranked[i].job)
	m := s.grow()
	m.start = s.ranked[i].job
	s.clear(v)
	for k := len(s.ranked) - 1; k > i && !s.then.Fits(r); k-- {
		if g := s.ranked[k].job; v.State(g) == sim.Running {
			m.stops = append(m.stops, g)
			s.then.Release(v.Request(g), v.GPUs(g))
		}
	}
	if !s.then.Fits(r) {
		s.moves = s.moves[:len(s.moves)-1]
		return false
	}
	for k := 0; k < len(m.stops) && len(m.stops) > 1; {
		s.clear(v)
		for n, g := range m.stops {
			if n != k {
				s.then.Release(v.Request(g), v.GPUs(g))
			}
		}
		if s.then.Fits(r) {
			m.stops = slices.Delete(m.stops, k, k+1)
		} else {
			k++
		}
	}
	return true
}

// clear makes then a copy of the cluster.
func (s *stopping) clear(v *sim.View) {
	if c := v.Cluster(); s.of != c {
		s.then, s.of = c.Twin(), c
	}
	s.then.CopyFrom(s.of)
}

// grow adds a move, whose list is one that it had before.
func (s *stopping) grow() *move {
	if len(s.moves) < cap(s.moves) {
		s.moves = s.moves[:len(s.moves)+1]
	} else {
		s.moves = append(s.moves, move{})
	}
	m := &s.moves[len(s.moves)-1]
	m.stops = m.stops[:0]
	return m
}
