package jobselect

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"clustergym/env/sched"
	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/schedulers/tuned"
	"clustergym/simulator/sim"
)

// stopping is a rule that stops running gangs for waiting jobs: the order of that name in simulator/schedulers, among
// the jobs that are visible. It gives the GPUs to the first in rank, whether they run or wait, and passes over what has
// no room. A gang that has none is stopped, the last in rank first, but only for a visible job that fits then. So it
// looks at every decision what it would like to run, and does the first step towards it; costs of a stop do not enter.
// Ties go by position in the trace.
//
// las and las-2d have the queues and limits of simulator/schedulers. Within a queue running gangs go first, in order of
// start, then waiting jobs by position; there is no memory of when a job fell to its queue. A gang falls when something
// happens, not at the moment when it reaches a limit.
type stopping struct {
	sched.Rule
	key func(s *sched.State, j sim.Job) rank // nil = that of an indexer
}

// rank is a place in line: the least goes first, by key, then by next.
type rank struct{ key, next float64 }

var stoppings = []stopping{
	{sched.Rule{Name: "srtf", About: "the visible jobs with the shortest time left run", Estimates: true, Stops: true},
		func(s *sched.State, j sim.Job) rank { return rank{key: left(s, j)} }},
	{sched.Rule{Name: "srsf", About: "the visible jobs with the least time left × GPUs run", Estimates: true, Stops: true},
		func(s *sched.State, j sim.Job) rank { return rank{key: left(s, j) * float64(milli(s, j))} }},
	{sched.Rule{Name: "gittins", About: "the visible jobs with the greatest Gittins index for each GPU run",
		Estimates: true, Stops: true}, gittins},
	{sched.Rule{Name: "las", About: "the visible jobs in the queue of least time run, running ones first", Stops: true},
		func(s *sched.State, j sim.Job) rank { return queued(s, j, float64(s.View.Ran(j))) }},
	{sched.Rule{Name: "las-2d", About: "the visible jobs in the queue of least time run × GPUs, running ones first",
		Stops: true},
		func(s *sched.State, j sim.Job) rank { return queued(s, j, s.View.GPUTime(j)) }},
	{indexRule, nil},
}

// indexRule is the order index, whose weights can be given (NewIndex).
var indexRule = sched.Rule{Name: "index", About: "the visible jobs with the least sum of weighted traits run",
	Estimates: true, Stops: true}

// left returns what is left of j, in nanoseconds: of its work where estimates are exact.
func left(s *sched.State, j sim.Job) float64 {
	if s.Estimates.Mode == sim.EstimateExact {
		return s.View.Left(j)
	}
	return float64(s.Left(j))
}

// milli returns the thousandths of GPUs that j asks for.
func milli(s *sched.State, j sim.Job) int {
	r := s.View.Request(j)
	return r.GPUs * r.Milli
}

func gittins(s *sched.State, j sim.Job) rank {
	gpus := float64(milli(s, j)) / 1000
	if !s.Estimates.Causal() {
		return rank{key: left(s, j) * gpus}
	}
	x := s.View.Forecast(j).Gittins(s.View.Ran(j))
	if x <= 0 {
		return rank{key: math.Inf(1)}
	}
	return rank{key: gpus / x}
}

// limits are those of Tiresias' simulator.
var limits = schedulers.DefaultConfig().Limits

// queued returns the rank of j in the queue of those that have attained so much, in nanoseconds.
func queued(s *sched.State, j sim.Job, attained float64) rank {
	r := rank{key: 1}
	for _, l := range limits {
		if attained >= float64(l) {
			r.key += 2
		}
	}
	if s.View.State(j) == sim.Running {
		r.key--
		r.next = float64(s.View.Started(j))
	}
	return r
}

// entrant is a visible job in the order of a rule.
type entrant struct {
	rank
	pos    int
	action int32 // starts it, or stops it
	milli  int   // thousandths of GPUs
	runs   bool
	chosen bool // it is to run
	barred bool // it would not fit although enough GPUs would be free
}

func (a *entrant) compare(b *entrant) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.next, b.next), a.pos-b.pos)
}

// stopper plays a stopping rule in one environment.
type stopper struct {
	rule  *stopping
	index *tuned.Indexer // of index, else nil
	e     *sched.Env
	k     int // slots, so row r is stopped by action k + r
	all   []entrant
	then  *cluster.Cluster // what would be free after the stops
	of    *cluster.Cluster // the cluster that then is a copy of
}

// NewIndex returns an actor that plays the rule index in e with the given weights; zero = the default ones.
func NewIndex(e *sched.Env, weights tuned.Index) (*sched.Actor, error) {
	if err := weights.Validate(); err != nil {
		return nil, fmt.Errorf("%s: weights of rule %q: %w", e.Spec().ID, indexRule.Name, err)
	}
	return newStopper(&stoppings[slices.IndexFunc(stoppings, func(o stopping) bool { return o.Name == indexRule.Name })],
		e, weights)
}

// newStopper returns an actor that plays rule in e, index with weights.
func newStopper(rule *stopping, e *sched.Env, weights tuned.Index) (*sched.Actor, error) {
	if !e.Stops() {
		return nil, fmt.Errorf("%s: rule %q stops running jobs, which preempt: false does not allow; want preempt: true", ID,
			rule.Name)
	}
	p := &stopper{rule: rule, e: e, k: e.Spec().NoOp - e.Rows()}
	if rule.key == nil {
		p.index = tuned.NewIndexer(weights, e.Config().Estimates)
	}
	return sched.NewActor(func(mask []bool, _ *rand.Rand) (int32, error) { return p.choose(mask), nil }), nil
}

func (p *stopper) choose(mask []bool) int32 {
	s := p.e.State()
	p.line(s, mask)
	for {
		stop := p.plan(s)
		if stop == nil {
			break
		}
		first := p.hindered(s)
		if first == nil || p.helps(s, first) {
			return stop.action
		}
		first.barred = true
	}
	for _, chosen := range []bool{true, false} {
		for i := range p.all {
			if e := &p.all[i]; !e.runs && e.chosen == chosen && mask[e.action] {
				return e.action
			}
		}
	}
	return int32(len(mask) - 1)
}

// line ranks the visible jobs that wait and those that can be stopped.
func (p *stopper) line(s *sched.State, mask []bool) {
	p.all = p.all[:0]
	if p.index != nil {
		p.index.Reset(s.Seed)
		p.index.Look(s.View)
	}
	add := func(j sim.Job, action int, runs bool) {
		p.all = append(p.all,
			entrant{rank: p.rank(s, j), pos: s.View.Pos(j), action: int32(action), milli: milli(s, j), runs: runs})
	}
	for i, j := range s.Slots {
		add(j, i, false)
	}
	for i, j := range s.Running {
		if mask[p.k+i] {
			add(j, p.k+i, true)
		}
	}
	slices.SortFunc(p.all, func(a, b entrant) int { return a.compare(&b) })
}

// rank returns j's place in line.
func (p *stopper) rank(s *sched.State, j sim.Job) rank {
	if p.index != nil {
		return rank{key: p.index.Key(s.View, j)}
	}
	return p.rule.key(s, j)
}

// plan chooses who is to run by counting GPUs, and returns the last of those that must be stopped for it, nil if none
// must.
func (p *stopper) plan(s *sched.State) (stop *entrant) {
	room := s.View.Cluster().FreeMilli()
	for i := range p.all {
		if p.all[i].runs {
			room += p.all[i].milli
		}
	}
	for i := range p.all {
		e := &p.all[i]
		e.chosen = !e.barred && e.milli <= room
		switch {
		case e.chosen:
			room -= e.milli
		case e.runs:
			stop = e
		}
	}
	return stop
}

// hindered returns the first waiting job that the rule wants to run but that does not fit now, or nil.
func (p *stopper) hindered(s *sched.State) *entrant {
	for i := range p.all {
		if e := &p.all[i]; !e.runs && e.chosen && !s.Fits[e.action] {
			return e
		}
	}
	return nil
}

// helps reports whether e fits once all that is planned has been stopped.
func (p *stopper) helps(s *sched.State, e *entrant) bool {
	c := s.View.Cluster()
	if p.of != c {
		p.then, p.of = c.Twin(), c
	}
	p.then.CopyFrom(c)
	for i := range p.all {
		if x := &p.all[i]; x.runs && !x.chosen {
			j := s.Running[int(x.action)-p.k]
			p.then.Release(s.View.Request(j), s.View.GPUs(j))
		}
	}
	return p.then.Fits(s.View.Request(s.Slots[e.action]))
}
