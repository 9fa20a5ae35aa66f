package topdrl

import (
	"errors"
	"time"

	"clustergym/env/sched"
	"clustergym/experiments/study"
	"clustergym/simulator/metrics"
	"clustergym/simulator/sim"
)

// measure collects the figures by which TopDRL and its precursor are judged, over the counted jobs of one window.
type measure struct {
	metrics.Collector
	win  *sched.Window
	last time.Duration // submit of the last counted job

	finished int     // jobs until last
	work     float64 // of the finished jobs, in GPU-seconds
	running  int
	since    time.Duration
	held     float64 // integral of the running jobs over time, in seconds
	starts   int
	cost     float64 // Σ of communication costs
	close    float64 // Σ of closeness, of gangs of more than one GPU
	gangs    int
}

// begin starts the measurement of e's next window. Observe reads the window's times at its first event, because
// e.Window describes the new window only from then on.
func (m *measure) begin(e *sched.Env) {
	m.Collector.Reset()
	*m = measure{Collector: m.Collector, win: e.Window()}
	m.Keep = func(pos int) bool { return pos >= m.win.First }
}

// Reset implements the observer that sched.Env resets when an episode begins. It does nothing: begin starts a window.
func (m *measure) Reset() {}

// Observe implements sim.Observer.
func (m *measure) Observe(v *sim.View, p *sim.Point) error {
	if m.last == 0 {
		m.last, m.since = m.win.Traced[len(m.win.Traced)-1].Submit, m.win.Begin
	}
	c := v.Cluster()
	for i := range p.Events {
		ev := &p.Events[i]
		if ev.Job < 0 || v.Pos(ev.Job) < m.win.First {
			continue
		}
		switch ev.Kind {
		case sim.Start:
			m.pass(ev.At)
			m.running++
			m.starts++
			cost := c.Cost(ev.GPUs)
			m.cost += cost
			if n := len(ev.GPUs); n > 1 {
				if best, worst := c.BestCost(n), c.WorstCost(n); worst > best {
					m.close += 1 - (cost-best)/(worst-best)
					m.gangs++
				}
			}
		case sim.Finish:
			m.pass(ev.At)
			m.running--
			if ev.At <= m.last {
				t := v.Trace(ev.Job)
				m.finished++
				m.work += float64(t.Milli()) / 1000 * t.Work.Seconds()
			}
		case sim.Preempt:
			m.pass(ev.At)
			m.running--
		}
	}
	return m.Collector.Observe(v, p)
}

// pass adds the time from the last event until now to held.
func (m *measure) pass(now time.Duration) {
	if now > m.since {
		m.held += float64(m.running) * (now - m.since).Seconds()
		m.since = now
	}
}

// figures are those of one window.
type figures struct {
	throughput, work, running              float64 // by which tables of throughput judge
	jct, wait, makespan, cost, close, wide float64
}

// figures returns the window's figures. A window whose jobs are all submitted at once has none: no time passes while
// jobs arrive.
func (m *measure) figures() (figures, error) {
	s := m.Summary(0, 0)
	span := (m.last - m.win.Begin).Seconds()
	if span <= 0 {
		return figures{},
			errors.New(
				"all jobs are submitted at once, so that there is no throughput while jobs arrive; want a workload whose jobs " +
					"arrive over time, and env.window 2 or more")
	}
	return figures{
		throughput: float64(m.finished) / span * 3600, work: m.work / (float64(m.win.GPUs) * span),
		running: m.held / s.Makespan,
		jct:     s.JCT.Mean / 3600, wait: s.Wait.Mean / 3600, wide: s.JCT.P99 / 3600, makespan: s.Makespan / 3600,
		cost: m.cost / float64(m.starts), close: m.close / float64(max(1, m.gangs)),
	}, nil
}

// rows returns the figures as rows. Tables of shares of the headroom want a JCT that is higher where it is better.
func (f *figures) rows(labels map[string]string) []study.Row {
	row := study.RowOf("play", labels)
	return []study.Row{
		row("throughput_jobs_per_h", f.throughput), row("finished_work_share", f.work), row("running_jobs", f.running),
		row("jct_h", f.jct), row("minus_jct_h", -f.jct), row("jct_p99_h", f.wide), row("wait_h", f.wait),
		row("makespan_h", f.makespan), row("comm_cost", f.cost), row("closeness", f.close),
	}
}

// with returns f with the figures by which tables of throughput judge taken from t.
func (f figures) with(t figures) figures {
	f.throughput, f.work, f.running = t.throughput, t.work, t.running
	return f
}
