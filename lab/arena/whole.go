package arena

import (
	"context"
	"fmt"

	"clustergym/env/sched"
	"clustergym/lab/report"
	"clustergym/simulator/metrics"
	"clustergym/traces"
)

// whole is a whole part as a single window.
type whole struct {
	jobs            []traces.Job
	warm            int
	first           int
	sched.Foresight // of the workload
	offered         float64
}

// Offered implements sched.Offering.
func (w *whole) Offered() float64 { return w.offered }

// At implements sched.Windows.
func (w *whole) At(traces.Part, uint64, int) (traces.Window, error) {
	return traces.Window{Jobs: w.jobs, Warm: w.warm, Counted: len(w.jobs) - w.warm, First: w.first + w.warm}, nil
}

// Jobs implements envs.Windows.
func (w *whole) Jobs(traces.Part) []traces.Job { return w.jobs }

// all returns the whole part as a single window, and how many jobs at each end of it are not counted.
func (r *runner) all() (all *whole, cut int, err error) {
	windows := r.scenario.Taken.Windows
	at, err := windows.At(r.part, 0, 0)
	if err != nil {
		return nil, 0, err
	}
	warm := windows.Warm()
	all = &whole{jobs: windows.Jobs(r.part), warm: warm, first: at.First - warm}
	all.Foresight, _ = r.scenario.Source.Windows.(sched.Foresight)
	if o, ok := r.scenario.Source.Windows.(sched.Offering); ok {
		all.offered = o.Offered()
	}
	return all, (len(all.jobs) - warm) / 20, nil
}

// wholeReport returns the report of the games on the whole part, whose summaries are of by policy.
func (r *runner) wholeReport(of []metrics.Summary) (*report.WholeReport, error) {
	all, cut, err := r.all()
	if err != nil {
		return nil, err
	}
	counted := len(all.jobs) - all.warm
	out := &report.WholeReport{FirstJob: all.first + all.warm, Jobs: counted, Counted: counted - 2*cut,
		Policies: []report.WholePolicy{}}
	for i := range r.policies {
		if r.policies[i].whole() {
			out.Policies = append(out.Policies, report.WholePolicy{Name: r.policies[i].name, Metrics: of[i]})
		}
	}
	return out, nil
}

// wholly plays p on the whole part, and returns the summary of the jobs that count.
func (r *runner) wholly(ctx context.Context, p *policy) (sum metrics.Summary, err error) {
	all, cut, err := r.all()
	if err != nil {
		return sum, err
	}
	src := *r.scenario.Source
	src.Windows = all
	e, err := r.scenario.open(r.scenario.judged(), &src, r.part)
	if err != nil {
		return sum, err
	}
	play, err := p.player(e)
	if err != nil {
		return sum, err
	}
	counted := len(all.jobs) - all.warm
	seen := metrics.Collector{Keep: func(pos int) bool { return pos >= all.warm+cut && pos < all.warm+counted-cut }}
	ep := r.episode(0)
	if _, err := play(ctx, ep, ep.Seed, &seen); err != nil {
		return sum, fmt.Errorf("%s on the whole %v part: %w", p.name, r.part, err)
	}
	return seen.Summary(0, 0), nil
}
