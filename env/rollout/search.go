package rollout

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"clustergym/internal/par"
	"clustergym/internal/rng"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
)

// Base plays on in forks. It must be able to continue any run from Reset on, without having seen how it came about.
type Base interface{ sim.Scheduler }

// Opener is an ability that a Base may have: it takes a candidate itself, where that is more than a decision of the
// simulator (such as holding GPUs back for a job). Otherwise the candidate is applied to the fork, and the Base is
// reset after it.
type Opener interface {
	// Open makes the candidate's decision in the run of fork, whose point is open, and all further decisions of that
	// point, up to and including Wait.
	Open(fork *sim.Simulator, candidate *sim.Decision) error
}

// Options are what a search is made of.
type Options struct {
	Config
	// Base makes the schedulers that play on, one for each worker.
	Base func() (Base, error)
	// Estimates are what is known of run times. Estimates none are refused: there is nothing to play on with.
	Estimates sim.Estimates
	Source    Source
	Workers   int // goroutines; the decision does not depend on their number
	// Clock returns the time since some moment. Budgets of time need it.
	Clock func() time.Duration
}

// ErrBlind is returned for estimates that say nothing of run times. It is a *schedulers.HiddenError.
var ErrBlind error = &schedulers.HiddenError{
	Order: "rollout",
	Says: "a rollout plays jobs to their end, and estimates: none hides run times; want estimates history, gbdt, " +
		"trace, noisy:SIGMA or exact",
}

// errPast is returned for recorded run times where futures are of the run's own past.
var errPast = errors.New(
	"rollout: lifetimes: recorded draws run times of jobs from a training part, and a run of gymctl sim has none; want " +
		"lifetimes: forecast")

// Search chooses between candidates by rollouts. Not safe for concurrent use.
type Search struct {
	opt     Options
	players []player
	of      *sim.View // whose simulator the players' forks continue
	cluster any       // of that simulator when the forks were made
	slots   []slot    // the futures of a batch
	seed    uint64    // of the current decision

	lifetimes Lifetimes // nil = run times are drawn from forecasts
	low, high int       // positions that it must not draw from, in the current decision

	v     *sim.View
	cands []sim.Decision
	tasks []task
	alive []int // the candidates left, the base's choice first
	cost  [][]float64
	task  func(worker, i int) error

	choice Choice
}

// slot is one imagined future.
type slot struct {
	future sim.Future
	left   []float64
	work   []float64 // run times of the jobs in the system, in seconds, by Job; for bounded slowdowns
}

type task struct{ candidate, slot, at int }

// Choice is the outcome of a search.
type Choice struct {
	Best int // the candidate to take
	// Mean cost of a future by candidate, in seconds or as a slowdown, summed over jobs; of the futures that it has
	// played.
	Mean   []float64
	Played []int   // futures by candidate
	Gain   float64 // mean gain of the best of the others over candidate 0, future by future
	Error  float64 // standard error of that mean
}

// leastPairs is the least number of futures from which a gain is told from chance.
const leastPairs = 8

// batch is how many futures are held in memory at a time.
const batch = 8

// NewSearch returns a search.
func NewSearch(opt Options) (*Search, error) {
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	if !opt.Estimates.Known() {
		return nil, ErrBlind
	}
	if opt.Budget.Time > 0 && opt.Clock == nil {
		return nil, errors.New("rollout: a budget of time needs a clock")
	}
	s := &Search{opt: opt, players: make([]player, max(1, opt.Workers)), slots: make([]slot, batch)}
	for i := range s.players {
		b, err := opt.Base()
		if err != nil {
			return nil, err
		}
		s.players[i].base = b
		s.players[i].opener, _ = b.(Opener)
	}
	s.task = s.work
	if opt.Lifetimes != OfForecasts && opt.Estimates.Causal() {
		l, ok := opt.Source.(Lifetimes)
		if !ok && opt.Lifetimes == OfRecords {
			return nil, errPast
		}
		s.lifetimes = l
	}
	return s, nil
}

// Reseed changes the seed of noisy estimates, and that of bases that have one.
func (s *Search) Reseed(seed uint64) {
	s.opt.Estimates.Seed = seed
	for i := range s.players {
		if b, ok := s.players[i].base.(interface{ Reseed(seed uint64) }); ok {
			b.Reseed(seed)
		}
	}
}

// adopt makes forks of v's simulator.
func (s *Search) adopt(v *sim.View) error {
	if s.of == v && s.cluster == any(v.Cluster()) {
		return nil
	}
	for i := range s.players {
		t, err := v.Fork()
		if err != nil {
			return err
		}
		s.players[i].fork = t
	}
	s.of, s.cluster = v, v.Cluster()
	return nil
}

var (
	decisionStream = rng.Hash("rollout/decision")
	futureStream   = rng.Hash("rollout/future")
	workStream     = rng.Hash("rollout/work")
	failStream     = rng.Hash("rollout/failures")
)

// Choose returns which of the candidates to take at v's open point. The first is the base's choice. seed names the run.
// The result belongs to the search and is valid until the next call. If ctx is cancelled, Choose returns its error
// after the rollouts that have begun.
func (s *Search) Choose(ctx context.Context, v *sim.View, seed uint64, cands []sim.Decision) (*Choice, error) {
	n := len(cands)
	for len(s.cost) < n {
		s.cost = append(s.cost, nil)
	}
	s.alive = s.alive[:0]
	for c := range n {
		s.cost[c] = s.cost[c][:0]
		s.alive = append(s.alive, c)
	}
	s.v, s.cands = v, cands
	s.seed = rng.At(seed, decisionStream, uint64(v.Now()), uint64(v.Arrived()), uint64(v.Ended()),
		uint64(len(v.Waiting())), uint64(len(v.Running())))
	if n > 1 {
		if err := s.adopt(v); err != nil {
			return nil, err
		}
		if s.lifetimes != nil {
			s.low, s.high = s.lifetimes.Near(v)
		}
		if err := s.halve(ctx); err != nil {
			return nil, err
		}
	}
	s.judge(n)
	return &s.choice, nil
}

// rounds returns how many times n candidates are halved until one is left beside the base's choice.
func rounds(n int) int {
	r := 0
	for others := n - 1; others > 1; others = (others + 1) / 2 {
		r++
	}
	return r + 1
}

// halve spends the budget.
func (s *Search) halve(ctx context.Context) error {
	b := s.opt.Budget
	if b.Rollouts > 0 {
		// Fewer candidates where each could not be compared often enough.
		for len(s.alive) > 2 && s.futures(b.Rollouts, len(s.alive)) < leastPairs {
			s.alive = s.alive[:len(s.alive)-1]
		}
	}
	var begin time.Duration
	if b.Time > 0 {
		begin = s.opt.Clock()
	}
	all, played := rounds(len(s.alive)), 0
	for r := range all {
		share := b.Rollouts / (all * len(s.alive))
		for more := share; b.Time > 0 || more > 0; more -= batch {
			count := batch
			if b.Time == 0 {
				count = min(count, more)
			} else if len(s.players) < batch {
				count = len(s.players)
			}
			ok, err := s.play(ctx, played, count)
			if err != nil {
				return err
			}
			if !ok {
				s.forget()
				return nil
			}
			played += count
			if b.Time > 0 && (s.opt.Clock()-begin >= b.Time*time.Duration(r+1)/time.Duration(all) || played >= mostRollouts) {
				break
			}
		}
		if r < all-1 {
			s.drop()
		}
	}
	return nil
}

// futures returns how many futures the last candidates of n have played after a budget of rollouts.
func (s *Search) futures(budget, n int) (sum int) {
	all := rounds(n)
	for others := n - 1; ; others = (others + 1) / 2 {
		sum += budget / (all * (others + 1))
		if others == 1 {
			return sum
		}
	}
}

// forget drops all costs, where no future can be imagined.
func (s *Search) forget() {
	for c := range s.cost {
		s.cost[c] = s.cost[c][:0]
	}
}

// drop keeps the better half of the candidates beside the base's choice; ties go to the earlier.
func (s *Search) drop() {
	others := s.alive[1:]
	slices.SortFunc(others, func(a, b int) int {
		switch x, y := total(s.cost[a]), total(s.cost[b]); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return a - b
	})
	s.alive = s.alive[:1+(len(others)+1)/2]
}

func total(costs []float64) (sum float64) {
	for _, x := range costs {
		sum += x
	}
	return sum
}

// play plays the futures of numbers from on with every candidate left. It returns false if none can be imagined.
func (s *Search) play(ctx context.Context, from, count int) (bool, error) {
	for k := range count {
		if !s.imagine(&s.slots[k], uint64(from+k)) {
			return false, nil
		}
	}
	s.tasks = s.tasks[:0]
	for k := range count {
		for _, c := range s.alive {
			s.tasks = append(s.tasks, task{c, k, len(s.cost[c])})
			s.cost[c] = append(s.cost[c], 0)
		}
	}
	return true, par.For(ctx, len(s.players), len(s.tasks), s.task)
}

// work does one rollout.
func (s *Search) work(worker, i int) error {
	t := &s.tasks[i]
	cost, err := s.players[worker].play(s.v, &s.cands[t.candidate], &s.slots[t.slot], &s.opt.Config)
	s.cost[t.candidate][t.at] = cost
	return err
}

// imagine draws future number k of the decision. It returns false if the source knows too little.
func (s *Search) imagine(f *slot, k uint64) bool {
	v := s.v
	if !s.opt.Source.Draw(v, rng.At(s.seed, futureStream, k), s.opt.Ahead, &f.future) {
		return false
	}
	f.fit(v)
	f.future.Seed = rng.At(s.seed, failStream, k)
	f.future.Left = nil
	drawn := s.opt.Estimates.Mode != sim.EstimateExact
	if !drawn && s.opt.Objective != Slowdown {
		return true
	}
	for _, list := range [...][]sim.Job{v.Waiting(), v.Running()} {
		for _, j := range list {
			for int(j) >= len(f.left) {
				f.left, f.work = append(f.left, 0), append(f.work, 0)
			}
			f.work[j] = v.Trace(j).Work.Seconds()
			if drawn {
				f.left[j] = s.draw(j, rng.At(s.seed, workStream, k, uint64(v.Pos(j))))
				f.work[j] = v.Ran(j).Seconds() + f.left[j]/1e9
			}
		}
	}
	if drawn {
		f.future.Left = f.left
	}
	return true
}

// draw draws what is left of j, in nanoseconds at rate 1, from 64 random bits.
func (s *Search) draw(j sim.Job, x uint64) float64 {
	v := s.v
	if s.lifetimes != nil {
		ran := v.Ran(j)
		if t, ok := s.lifetimes.Lasting(v, j, ran, s.low, s.high, x); ok {
			left := float64(t - ran)
			if rate := v.Rate(j); rate > 0 {
				left *= rate
			}
			return max(1, left)
		}
	}
	return s.opt.Estimates.Draw(v, j, x)
}

// fit leaves out the jobs that can never fit the cluster.
func (f *slot) fit(v *sim.View) {
	n, told := 0, len(f.future.Forecasts) > 0
	for i := range f.future.Jobs {
		if _, ok := v.Cluster().Request(&f.future.Jobs[i]); !ok {
			continue
		}
		if n < i {
			f.future.Jobs[n] = f.future.Jobs[i]
			if told {
				f.future.Forecasts[n] = f.future.Forecasts[i]
			}
		}
		n++
	}
	if f.future.Jobs = f.future.Jobs[:n]; told {
		f.future.Forecasts = f.future.Forecasts[:n]
	}
}

// judge fills in the choice among n candidates.
func (s *Search) judge(n int) {
	c := &s.choice
	*c = Choice{Mean: c.Mean[:0], Played: c.Played[:0]}
	for i := range n {
		mean := math.NaN()
		if k := len(s.cost[i]); k > 0 {
			mean = total(s.cost[i]) / float64(k)
		}
		c.Mean, c.Played = append(c.Mean, mean), append(c.Played, len(s.cost[i]))
	}
	if len(s.alive) < 2 || len(s.cost[0]) < leastPairs {
		return
	}
	best := s.alive[1]
	for _, i := range s.alive[2:] {
		if total(s.cost[i]) < total(s.cost[best]) {
			best = i
		}
	}
	c.Gain, c.Error = paired(s.cost[0], s.cost[best])
	if c.Gain > 0 && c.Gain > s.opt.Confidence*c.Error && better(s.cost[0], s.cost[best]) > s.opt.Share {
		c.Best = best
	}
}

// better returns the share of the futures in which b costs less than a.
func better(a, b []float64) float64 {
	n := 0
	for i := range a {
		if b[i] < a[i] {
			n++
		}
	}
	return float64(n) / float64(len(a))
}

// paired returns the mean of a − b and its standard error.
func paired(a, b []float64) (mean, err float64) {
	n := float64(len(a))
	for i := range a {
		mean += a[i] - b[i]
	}
	mean /= n
	for i := range a {
		d := a[i] - b[i] - mean
		err += d * d
	}
	return mean, math.Sqrt(err / (n - 1) / n)
}
