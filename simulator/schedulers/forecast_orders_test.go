package schedulers_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"clustergym/internal/testseed"
	past "clustergym/simulator/predict/history"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// ranking plays an order on a counter as it is written down: at every point the jobs of the least score that fit run.
// An order that does not preempt keeps those that run.
type ranking struct {
	score   func(v *sim.View, j sim.Job) float64
	preempt bool
	plan    []sim.Decision
	open    bool
}

func (r *ranking) Reset(*sim.View) { r.open = false }

func (r *ranking) Decide(v *sim.View, _ *sim.Point, d *sim.Decision) error {
	if !r.open {
		r.open, r.plan = true, r.plan[:0]
		jobs := slices.Clone(v.Waiting())
		free := v.Cluster().Free()
		if r.preempt {
			jobs = append(jobs, v.Running()...)
			free = v.Cluster().GPUs()
		}
		slices.SortFunc(jobs, func(a, b sim.Job) int {
			return cmp.Or(cmp.Compare(r.score(v, a), r.score(v, b)), v.Pos(a)-v.Pos(b))
		})
		var stops, starts []sim.Decision
		for _, j := range jobs {
			n, runs := v.Request(j).GPUs, v.State(j) == sim.Running
			fits := n <= free
			if fits {
				free -= n
			}
			switch {
			case fits && !runs:
				starts = append(starts, sim.Decision{Op: sim.StartJob, Job: j})
			case !fits && runs:
				stops = append(stops, sim.Decision{Op: sim.PreemptJob, Job: j})
			}
		}
		r.plan = append(append(r.plan, stops...), starts...)
	}
	if len(r.plan) == 0 {
		r.open = false
		return nil
	}
	d.Op, d.Job = r.plan[0].Op, r.plan[0].Job
	r.plan = r.plan[1:]
	return nil
}

// moments lists when jobs start and stop.
type moments []string

func (m *moments) Observe(v *sim.View, p *sim.Point) error {
	var now []string
	for i := range p.Events {
		if e := &p.Events[i]; e.Kind == sim.Start || e.Kind == sim.Preempt || e.Kind == sim.Finish {
			now = append(now, fmt.Sprint(e.At, " ", e.Kind, " ", v.Trace(e.Job).ID))
		}
	}
	slices.Sort(now) // in which order jobs start at one instant does not matter
	*m = append(*m, now...)
	return nil
}

// Orders that read more of a forecast than one number do what their formulas say, while the predictor learns.
func TestOrdersReadForecasts(t *testing.T) {
	seed := testseed.Or(43)
	for order, r := range map[string]*ranking{
		"qssf": {score: func(v *sim.View, j sim.Job) float64 {
			return float64(v.Forecast(j).Mean()) * float64(v.Request(j).GPUs)
		}},
		"sjf": {score: func(v *sim.View, j sim.Job) float64 { return float64(v.Forecast(j).Median()) }},
		"gittins": {preempt: true, score: func(v *sim.View, j sim.Job) float64 {
			return float64(v.Request(j).GPUs) / v.Forecast(j).Gittins(v.Ran(j))
		}},
		"srtf": {preempt: true, score: func(v *sim.View, j sim.Job) float64 {
			return float64(v.Forecast(j).Outliving(v.Ran(j)) - v.Ran(j))
		}},
	} {
		t.Run(order, func(t *testing.T) {
			stops := 0
			for k := range uint64(10) {
				g := rand.New(rand.NewPCG(seed, k))
				jobs := make([]traces.Job, 120)
				at := time.Duration(0)
				for i := range jobs {
					at += time.Duration(g.IntN(100)) * time.Second
					user := g.IntN(4)
					jobs[i] = traces.Job{
						ID: fmt.Sprint("j", i), Submit: at, GPUs: 1 << g.IntN(4), GPUMilli: 1000, User: fmt.Sprint("u", user),
						Work: time.Duration(1+g.IntN(20)*(1+user*user*g.IntN(20))) * 3 * time.Second,
					}
				}
				var want, got moments
				cfg := schedulers.DefaultConfig()
				cfg.Order, cfg.Admission, cfg.Estimates = order, "skip", sim.MustEstimates("history")
				for s, m := range map[sim.Scheduler]*moments{r: &want, newPolicy(t, cfg): &got} {
					played(t, s, past.NewArchive(nil), jobs, m)
				}
				for i := range want {
					if i >= len(got) || got[i] != want[i] {
						t.Fatalf("drawn world %d: after %d of %d moments %v, want %v", k, i, len(want), got[min(i, len(got)-1)], want[i])
					}
				}
				stops += len(want) - 2*len(jobs)
			}
			if r.preempt && stops == 0 {
				t.Error("nothing was stopped")
			}
		})
	}
}
