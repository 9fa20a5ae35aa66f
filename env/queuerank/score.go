package queuerank

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"clustergym/env"
	"clustergym/env/sched"
	"clustergym/simulator/cluster"
	"clustergym/simulator/predict"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// The columns of Info. Means are over all jobs of the window; at the end.
const (
	InfoDiscount = iota
	InfoScore
	InfoBase
	InfoBSLD
	InfoWait
	InfoJCT
	InfoMakespan
)

// sums are over the jobs that have started, whose ends are known then.
type sums struct {
	jobs                      int
	bsld, wait, jct, slowdown float64 // times in seconds
	area                      float64 // GPU-seconds of run time
	end                       time.Duration
}

// add counts a job that starts at now after wait and will run for runs. Its slowdowns compare with its work, which is
// its run time on GPUs of speed 1.
func (s *sums) add(t *traces.Job, wait, runs, now time.Duration) {
	jct := (wait + runs).Seconds()
	s.jobs++
	s.wait += wait.Seconds()
	s.jct += jct
	s.bsld += max(1, jct/max(t.Work.Seconds(), 10))
	s.slowdown += jct / t.Work.Seconds()
	s.area += float64(t.Milli()) / 1000 * runs.Seconds()
	s.end = max(s.end, now+runs)
}

// of returns the sum whose mean is metric.
func (s *sums) of(metric string) float64 {
	switch metric {
	case "bsld":
		return s.bsld
	case "wait":
		return s.wait
	case "jct":
		return s.jct
	}
	return s.slowdown
}

// score returns S of a window whose jobs have all started. Lower is better.
func (s *sums) score(cfg *Config, gpus int) float64 {
	if cfg.Metric == "utilisation" {
		return -s.area / (float64(gpus) * s.end.Seconds())
	}
	return s.of(cfg.Metric) / float64(s.jobs)
}

// score is what is paid: by the starts of jobs, whose ends are known then, or at the end.
type score struct {
	cfg    *Config
	base   func(ctx context.Context, ep env.Episode) (float64, error)
	orders *baseline // in its place

	view        *sim.View
	jobs, gpus  int
	sum, before sums
	relative    float64 // S of the base order, if it was played
}

var _ sched.Score = (*score)(nil)

// Fields implements sched.Score.
func (*score) Fields() []env.Field {
	inf := float32(math.Inf(1))
	return []env.Field{
		{Name: "score", Low: -1, High: inf, Unit: "metric", Doc: "S of the window; at the end", Metric: true},
		{Name: "base_score", Low: -1, High: inf, Unit: "metric",
			Doc: "S of the base order on the same window; at the end, where it was played", Metric: true},
		{Name: "bsld", High: inf, Unit: "ratio", Doc: "mean of max(1, JCT / max(run time, 10 s)); at the end", Metric: true},
		{Name: "wait_s", High: inf, Unit: "seconds", Doc: "mean wait; at the end", Metric: true},
		{Name: "jct_s", High: inf, Unit: "seconds", Doc: "mean job completion time; at the end", Metric: true},
		{Name: "makespan_s", High: inf, Unit: "seconds", Doc: "last finish − first submit; at the end", Metric: true},
	}
}

// Begin implements sched.Score.
func (x *score) Begin(ctx context.Context, e *sched.Env, ep env.Episode, _ *sim.Point) (err error) {
	w := e.Window()
	x.view, x.jobs, x.gpus, x.sum, x.relative = e.View(), w.Jobs, w.GPUs, sums{}, math.NaN()
	switch {
	case x.cfg.Reward != "relative" || x.jobs == 0:
	case x.base != nil:
		x.relative, err = x.base(ctx, ep)
	default:
		var s sums
		s, err = x.orders.play(ctx, x.cfg.Base, w.Play(), ep.Seed)
		x.relative = s.score(x.cfg, x.gpus)
	}
	return err
}

// Point implements sched.Score.
func (*score) Point(*sim.Point) {}

// Decided implements sched.Score. Nothing can stop a job or slow it down, so its end is known when it starts.
func (x *score) Decided(d *sim.Decision) {
	t := x.view.Trace(d.Job)
	runs := time.Duration(math.Ceil(float64(t.Work) / x.view.Rate(d.Job)))
	x.sum.add(t, x.view.Now()-t.Submit, runs, x.view.Now())
}

// Start implements sched.Score.
func (x *score) Start() { x.before = x.sum }

// Pay implements sched.Score.
func (x *score) Pay(kind env.Kind) float64 {
	switch {
	case x.cfg.Reward == "dense":
		return -(x.sum.of(x.cfg.Metric) - x.before.of(x.cfg.Metric)) / float64(x.jobs)
	case kind != env.Terminated:
		return 0
	}
	s := x.sum.score(x.cfg, x.gpus)
	if x.cfg.Reward == "minus" {
		return -s
	}
	return (x.relative - s) / max(x.relative, s, 1)
}

// Infos implements sched.Score.
func (x *score) Infos(dst []float64, kind env.Kind) {
	if kind != env.Terminated {
		return
	}
	n := float64(x.jobs)
	dst[InfoScore-1], dst[InfoBase-1] = x.sum.score(x.cfg, x.gpus), x.relative
	dst[InfoBSLD-1], dst[InfoWait-1], dst[InfoJCT-1] = x.sum.bsld/n, x.sum.wait/n, x.sum.jct/n
	dst[InfoMakespan-1] = x.sum.end.Seconds()
}

// baseline plays orders on the same jobs, with admission commit and the same back-filling.
type baseline struct {
	cfg    *Config
	plays  *sched.Baseline
	orders map[string]schedulers.Policy
	sum    sums
}

func newBaseline(cfg *Config, spec cluster.Spec, w sched.Windows, est sim.Estimates) (*baseline, error) {
	var maker predict.Maker // observations may have forecasts where estimates ask none
	var err error
	if est.Causal() {
		if maker, err = sched.Predictor(w, est, cfg.Forecast); err != nil {
			return nil, err
		}
	}
	plays, err := sched.NewBaseline(sim.Config{Comm: "none", Serial: true, Predictor: maker}, spec)
	if err != nil {
		return nil, err
	}
	b := &baseline{cfg: cfg, plays: plays, orders: map[string]schedulers.Policy{}}
	for _, order := range []string{cfg.Base, "sjf"} {
		h := schedulers.DefaultConfig()
		h.Order, h.Admission, h.Backfill, h.Placement, h.Estimates = order, "commit", cfg.Backfill, cfg.Placement,
			cfg.Estimates
		if b.orders[order], err = schedulers.New(h); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// play returns the sums of order on jobs.
func (b *baseline) play(ctx context.Context, order string, jobs sched.Jobs, seed uint64) (sums, error) {
	b.sum = sums{}
	h := b.orders[order]
	h.Reseed(seed)
	err := b.plays.Play(ctx, jobs, h, b)
	return b.sum, err
}

// keeps reports whether S under SJF is between 10 and 150 in the window that e has drawn.
func (b *baseline) keeps(ctx context.Context, e *sched.Env, seed uint64) (bool, error) {
	s, err := b.play(ctx, "sjf", e.Window().Play(), seed)
	x := s.score(b.cfg, e.Window().GPUs)
	return x > 10 && x < 150, err
}

// Observe implements sim.Observer: it counts the jobs that start.
func (b *baseline) Observe(v *sim.View, p *sim.Point) error {
	for i := range p.Events {
		if e := &p.Events[i]; e.Kind == sim.Start {
			t := v.Trace(e.Job)
			b.sum.add(t, e.At-t.Submit, v.Finished(e.Job)-e.At, e.At)
		}
	}
	return nil
}

// ending is when a running job ends by its requested time, and its GPUs in thousandths.
type ending struct{ at, milli int64 }

// Early implements Machine: it is computed once, when j is chosen.
func (c *counter) Early(j sim.Job) int64 {
	s := c.l.state
	now, free := int64(s.View.Now()), int64(s.View.Cluster().FreeMilli())
	need := c.l.of(s, j).Milli
	c.ends = c.ends[:0]
	for _, r := range s.View.Running() {
		w := c.l.of(s, r)
		c.ends = append(c.ends, ending{int64(s.View.Started(r)) + w.E, w.Milli})
	}
	slices.SortFunc(c.ends, func(a, b ending) int { return cmp.Compare(a.at, b.at) })
	at := now
	for _, r := range c.ends {
		if free >= need {
			break
		}
		free += r.milli
		at = max(at, r.at)
	}
	return at
}
