package estimates

import (
	"context"
	"fmt"
	"slices"

	"clustergym/env/sched"
	"clustergym/experiments/study"
	"clustergym/simulator/metrics"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// scheduler is a policy of the tables.
type scheduler struct {
	name                       string
	order, admission, backfill string
	asks                       bool // for run times
}

// The names of the schedulers to which others are compared.
const (
	fifoSkip = "fifo+skip"
	fifo     = "fifo+strict"
	easy     = "fifo+strict+easy"
	sjfSkip  = "sjf+skip"
	srsf     = "srsf"
	gittins  = "gittins"
	las      = "las"
)

// scheduled are all policies: those that ask for no run times, those that never stop a running job, those that do.
var scheduled = []scheduler{
	{name: fifo, order: "fifo", admission: "strict"},
	{name: fifoSkip, order: "fifo", admission: "skip"},
	{name: "smallest+skip", order: "smallest", admission: "skip"},
	{name: las, order: "las"},
	{name: easy, order: "fifo", admission: "strict", backfill: "easy", asks: true},
	{name: sjfSkip, order: "sjf", admission: "skip", asks: true},
	{name: "qssf+skip", order: "qssf", admission: "skip", asks: true},
	{name: "srtf", order: "srtf", asks: true},
	{name: srsf, order: "srsf", asks: true},
	{name: gittins, order: "gittins", asks: true},
}

// schedulersOf returns the policies that are played with a kind of knowledge. gittins with one number is srsf: it is
// played with forecasts, and with exact run times as what they are compared with.
func schedulersOf(known string) []scheduler {
	return slices.DeleteFunc(slices.Clone(scheduled), func(c scheduler) bool {
		point := rungOf(known) != sim.RungCausal && known != knowExact || known == knowLastTwo
		return c.asks == (known == knowNone) || c.name == gittins && point
	})
}

// new returns the policy with estimates est.
func (c *scheduler) new(est sim.Estimates) (schedulers.Policy, error) {
	h := schedulers.DefaultConfig()
	h.Order, h.Admission, h.Estimates, h.Seed = c.order, c.admission, est, est.Seed
	if c.backfill != "" {
		h.Backfill = c.backfill
	}
	return schedulers.New(h)
}

// means are mean figures of the jobs of a unit.
type means struct{ wait, jct, slowdown, jobs float64 }

func (m *means) add(j *metrics.Job) {
	jct := j.Finish - j.Submit
	m.wait += (jct - j.Run).Hours()
	m.jct += jct.Hours()
	m.slowdown += max(1, jct.Seconds()/max(j.Work.Seconds(), 10))
	m.jobs++
}

func (m *means) rows(table string, labels map[string]string) []study.Row {
	row := study.RowOf(table, labels)
	return []study.Row{row("wait_h", m.wait/m.jobs), row("jct_h", m.jct/m.jobs), row("slowdown", m.slowdown/m.jobs)}
}

// play runs jobs, which begin at first, under a policy, and returns the records of those from position counted on.
func play(ctx context.Context, l *log, k *knowledge, c *scheduler, jobs []traces.Job,
	counted int) (*metrics.Collector, error) {
	cfg := sim.DefaultConfig()
	cfg.Predictor = k.maker
	b, err := sched.NewBaseline(cfg, l.on)
	if err != nil {
		return nil, err
	}
	policy, err := c.new(k.estimates)
	if err != nil {
		return nil, err
	}
	m := &metrics.Collector{Keep: func(pos int) bool { return pos >= counted }}
	if err := b.Play(ctx, sched.Jobs{List: from(jobs), Origin: jobs[0].Submit}, policy, m); err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	if m.Len() != len(jobs)-counted {
		return nil, fmt.Errorf("%s: %d of %d jobs finished", c.name, m.Len(), len(jobs)-counted)
	}
	return m, nil
}

// each calls fn for each policy and seed with the knowledge by a name of the jobs of a log.
func (s *settings) each(b *study.Bench, name string, l *log, known string, half bool,
	fn func(k *knowledge, c *scheduler, labels map[string]string) error) error {
	all := schedulersOf(known)
	for seed := range s.seedsOf(known) {
		k, err := know(known, l.jobs, half, uint64(seed+1), b.Workers)
		if err != nil {
			return err
		}
		for i := range all {
			own := labels(name, known)
			own["scheduler"], own["seed"] = all[i].name, fmt.Sprint(seed+1)
			if err := fn(&k, &all[i], own); err != nil {
				return err
			}
			b.Progress(int64(seed*len(all)+i+1), int64(s.seedsOf(known)*len(all)))
		}
	}
	return nil
}

// playWhole plays a log from its beginning to its end. Its blocks are the units.
func (s *settings) playWhole(ctx context.Context, b *study.Bench, name string, l *log,
	known string) (rows []study.Row, err error) {
	err = s.each(b, name, l, known, false, func(k *knowledge, c *scheduler, labels map[string]string) error {
		m, err := play(ctx, l, k, c, k.jobs, 0)
		if err != nil {
			return err
		}
		blocks := make([]means, s.Blocks)
		for j := range m.Jobs() {
			blocks[int(j.Pos)*s.Blocks/len(k.jobs)].add(j)
		}
		for i := range blocks {
			rows = append(rows, blocks[i].rows("whole", study.With(labels, "block", i+1))...)
		}
		return nil
	})
	return rows, err
}

// playWindows plays windows of the second half of a log, each after the jobs before it, half as many, which fill the
// cluster under the same policy and are not counted.
func (s *settings) playWindows(ctx context.Context, b *study.Bench, name string, l *log,
	known string) (rows []study.Row, err error) {
	err = s.each(b, name, l, known, true, func(k *knowledge, c *scheduler, labels map[string]string) error {
		n := len(k.jobs)
		warm := n / 2 / s.Windows / 2
		for w := range s.Windows {
			first, end := n/2+warm+w*(n-n/2-warm)/s.Windows, n/2+warm+(w+1)*(n-n/2-warm)/s.Windows
			m, err := play(ctx, l, k, c, k.jobs[first-warm:end], warm)
			if err != nil {
				return err
			}
			var all means
			for j := range m.Jobs() {
				all.add(j)
			}
			rows = append(rows, all.rows("windows", study.With(labels, "window", w+1))...)
		}
		return nil
	})
	return rows, err
}
