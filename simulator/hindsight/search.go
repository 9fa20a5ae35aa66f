package hindsight

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"clustergym/internal/grow"
	"clustergym/internal/rng"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
)

// Objective is what a schedule costs.
type Objective int

// Objectives.
const (
	JCT             Objective = iota // mean completion time of the jobs
	BoundedSlowdown                  // mean of max(1, JCT / max(run time, 10 s))
)

// Config says how to search.
type Config struct {
	Objective Objective
	Tries     int // schedules that are played, at least 1, besides the base's own
	Memory    int // tries for which costs are remembered; 0 = DefaultMemory
}

// DefaultMemory is how many costs late acceptance remembers.
const DefaultMemory = 10

// Game plays the same jobs anew with sch and shows o every point. An error of o ends it and is returned.
type Game func(ctx context.Context, sch sim.Scheduler, o sim.Observer) error

// Search finds schedules. It is not safe for concurrent use.
type Search struct {
	cfg    Config
	play   follower
	record recorder
	late   []float64 // costs of the last Memory present schedules, as a ring
}

// New returns a search for schedules whose jobs get the GPUs that place chooses.
func New(cfg Config, place cluster.Placement) *Search {
	if cfg.Memory == 0 {
		cfg.Memory = DefaultMemory
	}
	return &Search{cfg: cfg, play: follower{place: place}, record: recorder{objective: cfg.Objective},
		late: make([]float64, cfg.Memory)}
}

// Result is what a search has found.
type Result struct {
	Base, Best float64 // mean cost of the base's play and of the schedule found: seconds, or slowdowns
	At         int     // the try that found it; 0 = none was better than the base
}

// Play searches for the best schedule of the jobs that game plays, beginning with base's, and plays it before o. Draws
// follow seed. Jobs that game's run does not finish make a schedule infinitely expensive.
func (s *Search) Play(ctx context.Context, seed uint64, base sim.Scheduler, game Game, o sim.Observer) (Result, error) {
	var r Result
	rec := &s.record
	rec.begin(math.Inf(1))
	if err := game(ctx, base, rec); err != nil {
		return r, err
	}
	jobs := rec.counted()
	if jobs == 0 {
		return r, game(ctx, base, o)
	}
	basis := rec.total()
	p := &s.play
	p.follow(rec)

	// The base's own play may be better than the first schedule, which starts the jobs in the same order but chooses GPUs
	// by itself and never waits.
	present, err := s.try(ctx, game, math.Inf(1))
	if err != nil {
		return r, err
	}
	best, found := basis, 0
	bestOrder, bestInsists, bestFollows := slices.Clone(p.order), slices.Clone(p.insists), slices.Clone(p.follows)
	better := func(cost float64, at int) {
		if cost < best {
			best, found = cost, at
			copy(bestOrder, p.order)
			copy(bestInsists, p.insists)
			copy(bestFollows, p.follows)
		}
	}
	better(present, 1)
	for i := range s.late {
		s.late[i] = present
	}
	src := rng.Stream(seed, "hindsight")
	for k := 2; k <= s.cfg.Tries; k++ {
		undo := p.change(rec, src)
		at := k % len(s.late)
		limit := max(present, s.late[at])
		cost, err := s.try(ctx, game, limit)
		if err != nil {
			return r, err
		}
		if cost <= limit {
			present = cost
			better(cost, k)
		} else {
			undo()
		}
		s.late[at] = present
	}
	r = Result{Base: basis / float64(jobs), Best: best / float64(jobs), At: found}
	if found == 0 {
		return r, game(ctx, base, o)
	}
	copy(p.order, bestOrder)
	copy(p.insists, bestInsists)
	copy(p.follows, bestFollows)
	p.rank()
	return r, game(ctx, p, o)
}

var errDearer = errors.New("hindsight: the schedule costs more than the limit")

// try returns the cost of the present schedule, +Inf if it exceeds limit.
func (s *Search) try(ctx context.Context, game Game, limit float64) (float64, error) {
	s.record.begin(limit)
	switch err := game(ctx, &s.play, &s.record); {
	case errors.Is(err, errDearer):
		return math.Inf(1), nil
	case err != nil:
		return 0, err
	}
	return s.record.total(), nil
}

// recorder is the observer that counts what a play costs, and notes when the jobs start and how long they wait.
type recorder struct {
	objective Objective
	limit     float64
	cost      float64
	at        []record // by position
	open      int      // jobs that have arrived and not finished
}

type record struct {
	seen       bool
	submit, on time.Duration // submit and first start
}

func (r *recorder) begin(limit float64) {
	r.limit, r.cost, r.open = limit, 0, 0
	clear(r.at)
}

// Observe implements sim.Observer.
func (r *recorder) Observe(v *sim.View, p *sim.Point) error {
	for i := range p.Events {
		e := &p.Events[i]
		switch e.Kind {
		case sim.Submit:
			pos := v.Pos(e.Job)
			*grow.At(&r.at, pos) = record{seen: true, submit: v.Trace(e.Job).Submit, on: -1}
			r.open++
		case sim.Finish:
			pos := v.Pos(e.Job)
			if pos >= len(r.at) || !r.at[pos].seen { // it belongs to the warm-up
				continue
			}
			a := &r.at[pos]
			a.on = v.FirstStart(e.Job)
			r.open--
			took := (e.At - a.submit).Seconds()
			if r.objective == BoundedSlowdown {
				took = max(1, took/max(v.Ran(e.Job).Seconds(), 10))
			}
			if r.cost += took; r.cost > r.limit {
				return errDearer
			}
		}
	}
	return nil
}

// counted returns how many jobs have been seen.
func (r *recorder) counted() int {
	n := 0
	for i := range r.at {
		if r.at[i].seen {
			n++
		}
	}
	return n
}

// total returns the cost of all jobs, +Inf if some have not finished.
func (r *recorder) total() float64 {
	if r.open > 0 {
		return math.Inf(1)
	}
	return r.cost
}

// near is how far in the order a job usually moves.
const near = 24

// change changes the schedule at random and returns a function that takes the change back.
func (f *follower) change(rec *recorder, src *rand.Rand) (undo func()) {
	n := len(f.order)
	switch src.IntN(8) {
	case 0:
		pos := f.order[src.IntN(n)]
		f.insists[pos] = !f.insists[pos]
		return func() { f.insists[pos] = !f.insists[pos] }
	case 1, 2:
		pos := f.order[src.IntN(n)]
		f.follows[pos] = !f.follows[pos]
		return func() { f.follows[pos] = !f.follows[pos] }
	}
	from := src.IntN(n)
	to := src.IntN(n)
	if src.IntN(4) != 0 {
		to = min(max(from+src.IntN(2*near+1)-near, 0), n-1)
	}
	f.move(from, to)
	return func() { f.move(to, from) }
}
