package incumbent

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"clustergym/internal/fault"
	"clustergym/internal/par"
	"clustergym/simulator/schedulers/fairshare"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// MostReserved is how many jobs a Past may have for Fit to try models that make a reservation for every waiting job:
// they take about a millisecond for each job.
const MostReserved = 12_000

// Fitted is a model of the incumbent with how close it comes to the recorded starts. Times are in seconds.
type Fitted struct {
	Model
	Error      float64 // mean of |wait under the model − recorded wait|, of jobs that arrived in the first half
	Mean       float64 // mean wait under the model, likewise
	Second     float64 // as Error, of the second half
	SecondMean float64
	*Schedule         // nil if it was not played
	Left       string // why it was not
}

// Halves are the positions of the jobs by which models are chosen and judged: those whose wait was for the scheduler to
// decide and is recorded.
type Halves struct {
	First, Second []int
	Warm          time.Duration // until then jobs count for nothing
	Half          time.Duration // between the halves
}

// warm is the share of the first half that counts for nothing: an export by submit time lacks the jobs before it.
const warm = 0.1

// Halves cuts the time between Begin and End into two.
func (p *Past) Halves() Halves {
	h := Halves{Half: (p.Begin + p.End) / 2}
	h.Warm = p.Begin + time.Duration(warm*float64(h.Half-p.Begin))
	for i := range p.Jobs {
		switch at := p.Jobs[i].Submit; {
		case p.Starts[i] < 0 || p.Starts[i] < p.Begin || at < h.Warm || p.Jobs[i].GPUs < 1:
		case at < h.Half:
			h.First = append(h.First, i)
		default:
			h.Second = append(h.Second, i)
		}
	}
	return h
}

// Waits returns how long the jobs waited under s, in seconds by position: from the submit to the first start. A job
// that never starts waits to the end of the record or of the play, whatever is later.
func (p *Past) Waits(s *Schedule) []float64 {
	last := p.End
	for _, t := range s.Starts {
		last = max(last, t)
	}
	w := make([]float64, len(p.Jobs))
	for i := range w {
		start := s.Starts[i]
		if start < 0 {
			start = last
		}
		w[i] = max(0, start-p.Jobs[i].Submit).Seconds()
		if p.Held != nil {
			w[i] += p.Held[i].Seconds()
		}
	}
	return w
}

// Recorded returns what happened as a Schedule.
func (p *Past) Recorded() *Schedule { return &Schedule{Starts: p.Starts} }

// HasLimits reports whether every job has a time limit, its own or the one that stands for it.
func (p *Past) HasLimits() bool {
	return !slices.ContainsFunc(p.Jobs, func(j traces.Job) bool { return j.Estimate <= 0 })
}

// Models returns the models that are tried on p, the simplest first.
func (p *Past) Models() []Model {
	all := Simple()
	all = append(all,
		Model{Name: "fifo+strict+easy", Limits: Alike, Text: "as easy, where every limit is the longest one"},
		Model{Name: "area+strict+easy", Text: "smallest GPUs x limit first, with back-filling"},
		Model{Name: "smallest+strict+easy", Text: "fewest GPUs first, with back-filling"},
		Model{Name: "drf+strict+easy", Text: "the user with the fewest GPUs first, with back-filling"},
	)
	all = append(all, p.owned()...)
	if vcs := p.partitions(); vcs != nil {
		for _, m := range all {
			if m.Limits == AsRecorded {
				m.Apart, m.vcs, m.Text = true, vcs, m.Text+"; each partition on nodes of its own"
				all = append(all, m)
			}
		}
	}
	if len(p.Spec.VCs) > 0 {
		for i := range all {
			all[i].Apart = true
		}
		for _, name := range []string{"fifo+strict", "fifo+strict+easy", "fifo+skip"} {
			all = append(all, Model{Name: name, Text: "partitions are no bounds: every job may use every node"})
		}
	}
	return all
}

// owned returns the models for which it matters whose a job is.
func (p *Past) owned() []Model {
	users, accounts := map[string]bool{}, map[string]bool{}
	for i := range p.Jobs {
		users[p.Jobs[i].User], accounts[p.Jobs[i].Group] = true, true
	}
	var all []Model
	if len(users) > 1 {
		all = append(all, Fair(false)...)
	}
	if len(accounts) > 1 {
		all = append(all, Fair(true)...)
	}
	return append(all, p.favoured()...)
}

// For returns p as a model sees it.
func (p *Past) For(m *Model, placement string) (*Past, error) {
	q := p
	if m.Limits == Alike {
		longest := time.Duration(0)
		for i := range p.Jobs {
			longest = max(longest, p.Jobs[i].Estimate)
		}
		q = q.Limited(func(*traces.Job) time.Duration { return longest })
	}
	return q.On(m, placement)
}

// On returns p on the nodes that a model gives to the jobs: what other policies have to keep to.
func (p *Past) On(m *Model, placement string) (*Past, error) {
	spec := p.Spec
	switch {
	case m.vcs != nil && len(spec.VCs) == 0:
		spec.VCs = m.vcs
	case !m.Apart && len(spec.VCs) > 0:
		spec.VCs = nil
	case p.seating == "" || p.seating == placement: // as recorded, or as this model would have
		return p, nil
	}
	return p.With(spec, placement)
}

// PlayModel plays a model of the incumbent.
func (p *Past) PlayModel(ctx context.Context, m *Model, placement string) (*Schedule, error) {
	placement = cmp.Or(m.Placement, placement)
	q, err := p.For(m, placement)
	if err != nil {
		return nil, err
	}
	known := ByLimits
	if !p.HasLimits() {
		known = sim.Estimates{Mode: sim.EstimateNone}
	}
	var sch sim.Scheduler
	if m.own != nil {
		sch, err = newRanked(*m.own, placement)
	} else {
		sch, err = ruled(m.Name, placement, known, m.fair)
	}
	if err != nil {
		return nil, err
	}
	s, err := q.Play(ctx, sch, known)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Name, err)
	}
	return s, nil
}

// Progress reports that so many of all plays are done, and what was played last. Calls do not overlap.
type Progress func(done, all int, what string)

// counter calls a Progress from several goroutines.
type counter struct {
	mu   sync.Mutex
	done int
	all  int
	tell Progress
}

func (c *counter) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done++; c.tell != nil {
		c.tell(c.done, c.all, what)
	}
}

func (c *counter) more(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all += n
}

// Fit plays all models of the incumbent and returns them, the one that comes closest to the recorded starts of the
// first half first; equal ones in order of Models. Those that were not played come last and say why. The result is the
// same for any number of workers.
func Fit(ctx context.Context, p *Past, placement string, workers int, tell Progress) ([]Fitted, error) {
	h := p.Halves()
	if len(h.First) == 0 || len(h.Second) == 0 {
		return nil, fault.Mistakef("all jobs arrived in one half of the recorded time, and a model of the scheduler that is " +
			"chosen on one half is judged on the other: give a longer record")
	}
	f := &fitting{ctx: ctx, past: p, halves: h, placement: placement, workers: workers, was: p.Waits(p.Recorded()),
		limits: p.HasLimits()}
	models := p.Models()
	if p.Spec.Pool == 0 && len(p.Jobs) <= mostPlaced {
		for _, m := range slices.Clone(models) {
			if m.Placement = lowest; m.Placement != placement && !m.Reserves() {
				models = append(models, m)
			}
		}
	}
	f.count = &counter{all: len(models), tell: tell}
	if p.Spec.Pool == 0 {
		f.count.all += placed * (len(placements) - 1)
	}
	all, err := f.play(models)
	if err == nil {
		all, err = f.refine(all)
	}
	if err != nil || p.Spec.Pool > 0 {
		return all, err
	}
	var other []Model
	for _, x := range all[:min(placed, len(all))] {
		for _, name := range placements {
			if m := x.Model; x.Schedule != nil && !slices.ContainsFunc(all, func(o Fitted) bool {
				return m.same(&o.Model) && cmp.Or(o.Placement, placement) == name
			}) {
				m.Placement = name
				other = append(other, m)
			}
		}
	}
	more, err := f.play(other)
	all = append(all, more...)
	sortFitted(all)
	return all, err
}

// lowest is the placement that is tried with all models on records of at most mostPlaced jobs: where no topology is
// configured, a scheduler may take the first nodes that are free.
const (
	lowest     = "first-fit"
	mostPlaced = 50_000
)

// placed is how many of the closest models are played with other placements, too.
const placed = 3

// placements are those that a cluster's scheduler may have: gangs on one node or whole nodes, full ones or low ones
// first, or wherever there is room.
var placements = []string{"consolidate-best", "consolidate-first", "best-fit", "first-fit"}

// fitting plays models of the incumbent.
type fitting struct {
	ctx       context.Context
	past      *Past
	halves    Halves
	placement string
	workers   int
	was       []float64
	limits    bool
	count     *counter
}

// play plays models and sorts them, the closest first.
func (f *fitting) play(models []Model) ([]Fitted, error) {
	all := make([]Fitted, len(models))
	p, h := f.past, &f.halves
	err := par.For(f.ctx, f.workers, len(models), func(_, i int) error {
		x := &all[i]
		x.Model, x.Error = models[i], math.Inf(1)
		switch {
		case x.Reserves() && len(p.Jobs) > MostReserved:
			x.Left = fmt.Sprintf("tried up to %d jobs only, because it takes long", MostReserved)
		case x.NeedsLimits() && !f.limits:
			x.Left = "needs time limits, which the record lacks"
		default:
			s, err := p.PlayModel(f.ctx, &x.Model, f.placement)
			if err != nil {
				return err
			}
			w := p.Waits(s)
			x.Schedule = s
			x.Error, x.Mean = Apart(w, f.was, h.First), Mean(w, h.First)
			x.Second, x.SecondMean = Apart(w, f.was, h.Second), Mean(w, h.Second)
		}
		f.count.add(x.Name)
		return nil
	})
	sortFitted(all)
	return all, err
}

// The search for the weights of fair share begins at the closest of its models, where that is among the first three,
// and ends where no neighbour is closer.
const (
	refined     = 3
	climbs      = 3
	rounds      = 8
	mostRefined = 20_000 // jobs
)

// refine plays neighbours of the closest model with fair share.
func (f *fitting) refine(all []Fitted) ([]Fitted, error) {
	at := slices.IndexFunc(all, func(x Fitted) bool { return x.fair != nil })
	if at < 0 || at >= refined || len(f.past.Jobs) > mostRefined || all[at].Schedule == nil {
		return all, nil
	}
	starts := []Fitted{all[at]}
	got, err := f.near(&all[at], between)
	if err != nil {
		return nil, err
	}
	starts = append(starts, got...)
	sortFitted(starts)
	for _, best := range starts[:min(climbs, len(starts))] { // errors have many local minima
		for range rounds * mostRefined / max(mostRefined, 4*len(f.past.Jobs)) { // fewer for long records
			got, err := f.near(&best, neighbours)
			if err != nil {
				return nil, err
			}
			if got[0].Error >= best.Error {
				break
			}
			best = got[0]
		}
		if !slices.ContainsFunc(all, func(x Fitted) bool { return x.Error == best.Error && x.fair != nil }) {
			all = append(all, best)
		}
	}
	sortFitted(all)
	return all, nil
}

// near plays priorities near one that was played, on the same nodes.
func (f *fitting) near(x *Fitted, of func(p *fairshare.Priority) []Model) ([]Fitted, error) {
	near := of(x.fair)
	for i := range near {
		near[i].Apart, near[i].vcs, near[i].Limits, near[i].Placement = x.Apart, x.vcs, x.Limits, x.Placement
	}
	f.count.more(len(near))
	return f.play(near)
}

func sortFitted(all []Fitted) {
	slices.SortStableFunc(all, func(x, y Fitted) int { return cmp.Compare(x.Error, y.Error) })
}

// Apart returns the mean distance of a and b over some positions.
func Apart(a, b []float64, of []int) (sum float64) {
	for _, i := range of {
		sum += math.Abs(a[i] - b[i])
	}
	return sum / float64(len(of))
}

// Mean returns the mean of a over some positions.
func Mean(a []float64, of []int) (sum float64) {
	for _, i := range of {
		sum += a[i]
	}
	return sum / float64(len(of))
}
