package incumbent

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"

	"clustergym/internal/fault"
	"clustergym/simulator/cluster"
	"clustergym/traces"
)

// Reading says how a Past is made of the jobs of a trace.
type Reading struct {
	Limit     time.Duration // stands for the time limits of jobs that have none; 0 = they have none
	Placement string        // of jobs that run at Begin; see cluster.PlacementNames
}

// Left counts the jobs of a trace that a Past does not have.
type Left struct {
	Jobs    int           `json:"jobs"`     // of the trace
	CPUOnly int           `json:"cpu_only"` // ask for no GPU
	Beside  int           `json:"-"`        // of CPUOnly, which take cores from the others, and are in the Past
	Never   int           `json:"never_fit"`
	Why     []string      `json:"never_fit_why,omitempty"` // of Never, by reason
	Hours   float64       `json:"never_fit_gpu_hours"`     // of Never
	Of      float64       `json:"gpu_hours"`               // of all jobs
	Running int           `json:"still_running"`           // in the Past; their run times are guessed
	Waiting int           `json:"still_waiting"`           // likewise
	Before  int           `json:"ran_at_the_beginning"`    // in the Past, where they ran
	Given   int           `json:"limits_missing"`          // in the Past; Reading.Limit stands for theirs
	First   string        `json:"-"`                       // the first job that lacks a limit, "" = none
	Peak    int           `json:"-"`                       // the most GPUs that recorded jobs held at one time
	PeakAt  time.Duration `json:"-"`
	// Over is the share of the recorded GPU time for which the cluster has no GPUs. It is little even where the cluster is
	// the right one, if jobs were requeued: their runs count as if they had followed each other at once.
	Over float64 `json:"-"`
}

// Share returns which part of the GPU time was left out because it never fits.
func (l *Left) Share() float64 { return l.Hours / max(l.Of, 1e-9) }

// New makes the Past of a trace's jobs, which are in order of submit and have starts. The record ends with the last
// start, end or submit that it tells. A policy decides from the first recorded end on: what had started until then ran
// already, as jobs do that an export shows from its first moment on.
func New(spec cluster.Spec, jobs []traces.Job, how Reading) (*Past, *Left, error) {
	machine, err := cluster.New(spec)
	if err != nil {
		return nil, nil, err
	}
	p, left := &Past{Spec: spec}, &Left{Jobs: len(jobs)}
	var unfit cluster.Unfit
	guess := newGuess(jobs)
	cores := hasCores(&spec)
	first := time.Duration(traces.MaxTime)
	for i := range jobs {
		j := jobs[i]
		start := time.Duration(-1)
		if j.Started && j.Open != traces.StillWaiting {
			start = j.Submit + j.Waited
		}
		p.End = max(p.End, j.Submit, start)
		if start >= 0 {
			p.End = max(p.End, start+j.Work)
		}
		if j.GPUs < 1 {
			left.CPUOnly++
			if !cores || j.CPUMilli == 0 {
				continue
			}
			left.Beside++
		}
		left.Of += j.GPUHours()
		if _, fits := machine.Request(&j); !fits && j.GPUs < 1 {
			left.Beside--
			continue
		} else if !fits {
			unfit.Count(machine, &j)
			left.Never++
			left.Hours += j.GPUHours()
			continue
		}
		if j.Estimate <= 0 || j.Assumed {
			if left.Given++; left.First == "" {
				left.First = j.ID
			}
			if j.Estimate, j.Assumed = how.Limit, true; how.Limit <= 0 {
				j.Estimate = 0
			}
		}
		switch {
		case j.Open == traces.StillWaiting || start < 0:
			left.Waiting++
			start = -1
			j.Work = max(j.Work, guess.run(&j, 0))
		case j.Open == traces.StillRunning:
			left.Running++
			j.Work = guess.run(&j, j.Work)
		default:
			first = min(first, start+j.Work)
		}
		j.Work = max(j.Work, time.Second)
		held := min(j.Eligible, max(0, start-j.Submit))
		if start < 0 {
			held = j.Eligible
		}
		p.Held = append(p.Held, held)
		j.Submit += held
		p.Jobs, p.Starts = append(p.Jobs, j), append(p.Starts, start)
	}
	left.Why = unfit.Reasons(machine)
	if unfit.Large > 0 && left.Why == nil {
		left.Why = []string{fmt.Sprintf("all ask for more than its %d GPUs", machine.GPUs())}
	}
	if p.Begin = first; p.Begin == traces.MaxTime {
		p.Begin = 0
	}
	p.sort()
	err = p.seat(machine, how.Placement, left)
	left.Before = len(p.Seated)
	left.Peak, left.PeakAt, left.Over = p.peak(machine.GPUs())
	return p, left, err
}

// hasCores reports whether a cluster says how many cores its nodes have: then jobs without GPUs compete for them.
func hasCores(s *cluster.Spec) bool {
	for _, r := range s.Racks {
		for _, n := range r.Nodes {
			if n.CPUs > 0 {
				return true
			}
		}
	}
	return false
}

// sort puts the jobs in order of the time from which they may start.
func (p *Past) sort() {
	order := make([]int, len(p.Jobs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p.Jobs[a].Submit, p.Jobs[b].Submit) })
	jobs := make([]traces.Job, len(order))
	starts, held := make([]time.Duration, len(order)), make([]time.Duration, len(order))
	for i, k := range order {
		jobs[i], starts[i], held[i] = p.Jobs[k], p.Starts[k], p.Held[k]
	}
	p.Jobs, p.Starts, p.Held = jobs, starts, held
}

// seat gives the jobs that run at Begin GPUs, in order of start. Those for which there is no room wait with the others.
func (p *Past) seat(machine *cluster.Cluster, placement string, left *Left) error {
	place, err := cluster.NewPlacement(placement)
	if err != nil {
		return fault.Mistakef("placement: %w", err)
	}
	for i, start := range p.Starts {
		if start >= 0 && start < p.Begin {
			p.Seated = append(p.Seated, Seat{Job: i, Start: max(start, p.Jobs[i].Submit)})
		}
	}
	slices.SortStableFunc(p.Seated, func(a, b Seat) int { return cmp.Compare(a.Start, b.Start) })
	kept := p.Seated[:0]
	for _, s := range p.Seated {
		r, _ := machine.Request(&p.Jobs[s.Job])
		if machine.Pool() {
			if machine.Allocate(&r, nil) != nil {
				continue
			}
		} else {
			gpus, ok := place.Place(machine, &r, nil)
			if !ok || machine.Allocate(&r, gpus) != nil {
				continue
			}
			s.GPUs = slices.Clone(gpus)
		}
		kept = append(kept, s)
	}
	p.Seated, p.seating = kept, placement
	return nil
}

// peak returns the most GPUs that recorded jobs held at one time, when, and the share of their GPU time above capacity.
func (p *Past) peak(capacity int) (most int, at time.Duration, over float64) {
	type change struct {
		at time.Duration
		by int
	}
	var all []change
	for i, s := range p.Starts {
		if s >= 0 {
			n := p.Jobs[i].Milli()
			all = append(all, change{s, n}, change{min(s+p.Jobs[i].Work, p.End), -n})
		}
	}
	slices.SortFunc(all, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	now, milli, sum, last := 0, 0, 1e-9, time.Duration(0)
	for _, c := range all {
		sum += float64(now) * (c.at - last).Hours()
		over += float64(max(0, now-1000*capacity)) * (c.at - last).Hours()
		last = c.at
		if now += c.by; now > milli {
			milli, at = now, c.at
		}
	}
	return (milli + 999) / 1000, at, over / sum
}

// With returns a Past on another cluster, whose first GPUs are those of p's: seats keep their GPUs where the cluster
// has them, and are found again where it has not.
func (p *Past) With(spec cluster.Spec, placement string) (*Past, error) {
	machine, err := cluster.New(spec)
	if err != nil {
		return nil, err
	}
	q := *p
	q.Spec, q.Seated = spec, nil
	return &q, q.seat(machine, placement, &Left{})
}

// Limited returns p with other limits; the jobs of p do not change.
func (p *Past) Limited(limit func(j *traces.Job) time.Duration) *Past {
	q := *p
	q.Jobs = slices.Clone(p.Jobs)
	for i := range q.Jobs {
		q.Jobs[i].Estimate = limit(&q.Jobs[i])
	}
	return &q
}

// guess guesses run times that the record does not tell: the median of those that took longer, of the same user if
// there are some.
type guess struct {
	all  []float64
	user map[string][]float64
}

func newGuess(jobs []traces.Job) *guess {
	g := &guess{user: map[string][]float64{}}
	for i := range jobs {
		if j := &jobs[i]; j.Open == traces.Ended && j.Work > 0 && j.GPUs > 0 {
			g.all = append(g.all, j.Work.Seconds())
			g.user[j.User] = append(g.user[j.User], j.Work.Seconds())
		}
	}
	slices.Sort(g.all)
	for _, v := range g.user {
		slices.Sort(v)
	}
	return g
}

// run guesses the run time of a job that has run for ran.
func (g *guess) run(j *traces.Job, ran time.Duration) time.Duration {
	for _, v := range [][]float64{g.user[j.User], g.all} {
		v = v[sort.SearchFloat64s(v, ran.Seconds()+1e-9):]
		if len(v) < 3 {
			continue
		}
		t := time.Duration(v[len(v)/2] * float64(time.Second))
		if j.Estimate > ran {
			t = min(t, j.Estimate)
		}
		return max(t, ran, time.Second)
	}
	if j.Estimate > ran {
		return j.Estimate
	}
	return max(2*ran, time.Minute)
}
