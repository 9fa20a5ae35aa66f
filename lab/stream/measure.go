package stream

import (
	"slices"
	"time"

	"clustergym/internal/grow"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
)

// Job is what is measured of one counted job. Times are in seconds.
type Job struct {
	JCT, Wait, FirstWait      float64
	Slowdown, BoundedSlowdown float64
	Cost                      float64 // of the communication of its first placement (cluster.Cost)
	Ended                     bool
}

// Measure is a sim.Observer that measures one stream. It sees every point from the first job on. Not safe for
// concurrent use.
type Measure struct {
	First, Counted int // the positions of the jobs that count
	// From and Until are the submit of the first counted job and that of the first job after them: use and backlog are
	// those of the time between.
	From, Until time.Duration
	Bins        int // equal stretches into which that time is cut

	jobs   []Job // by position − First
	now    time.Duration
	begun  bool
	used   float64   // GPUs in use, shared ones by their share
	holds  []float64 // of that, by sim.Job
	busy   float64   // GPU-seconds used in [From, Until)
	system []int     // jobs in the system at the edges of bins that have come, Bins+1 in all
	after  int       // counted jobs that ended when nothing was left to arrive
	gpus   float64   // of the cluster
}

var _ sim.Observer = (*Measure)(nil)

// Begin begins a stream whose counted jobs are at positions first to before first + counted, and arrive from from to
// until, a time that is cut into bins.
func (m *Measure) Begin(first, counted int, from, until time.Duration, bins int) {
	*m = Measure{First: first, Counted: counted, From: from, Until: until, Bins: max(1, bins), system: m.system[:0],
		jobs: slices.Grow(m.jobs[:0], counted)[:counted], holds: m.holds[:0]}
	clear(m.jobs)
}

// Observe implements sim.Observer.
func (m *Measure) Observe(v *sim.View, p *sim.Point) error {
	c := v.Cluster()
	m.gpus = float64(c.GPUs())
	i := 0
	for ; i < len(p.Events) && p.Events[i].At < p.Now; i++ { // decisions at the point before
		m.hold(v, &p.Events[i])
	}
	if m.begun {
		if from, until := max(m.now, m.From), min(p.Now, m.Until); until > from {
			m.busy += m.used * (until - from).Seconds()
		}
	}
	m.begun, m.now = true, p.Now
	for ; i < len(p.Events); i++ {
		m.hold(v, &p.Events[i])
	}
	for len(m.system) <= m.Bins && p.Now >= m.edge(len(m.system)) {
		m.system = append(m.system, v.Arrived()-v.Ended())
	}
	for i := range p.Events {
		switch e := &p.Events[i]; e.Kind {
		case sim.Start:
			m.started(v, c, e)
		case sim.Finish:
			m.finished(v, e)
		}
	}
	return nil
}

// End implements the end of a stream that the clock cuts: jobs that have not ended are Unfinished.
func (m *Measure) End(*sim.View) {}

// hold follows what a job holds.
func (m *Measure) hold(v *sim.View, e *sim.Event) {
	switch e.Kind {
	case sim.Start, sim.Migrate, sim.Resize:
		gpus := v.Asked(e.Job) // on a counter, whose GPUs have no names
		if !v.Cluster().Pool() {
			gpus = named(e.GPUs)
		}
		m.set(e.Job, float64(gpus*v.Request(e.Job).Milli)/1000)
	case sim.Finish, sim.Preempt, sim.Fail:
		m.set(e.Job, 0)
	}
}

// named returns how many of gpus are any: jobs of cores alone have none.
func named(gpus []cluster.GPU) (n int) {
	for _, g := range gpus {
		if g >= 0 {
			n++
		}
	}
	return n
}

func (m *Measure) set(j sim.Job, gpus float64) {
	at := grow.At(&m.holds, j)
	m.used += gpus - *at
	*at = gpus
}

// of returns the record of a job, nil if it does not count.
func (m *Measure) of(v *sim.View, j sim.Job) *Job {
	if k := v.Pos(j) - m.First; k >= 0 && k < m.Counted {
		return &m.jobs[k]
	}
	return nil
}

func (m *Measure) started(v *sim.View, c *cluster.Cluster, e *sim.Event) {
	if k := m.of(v, e.Job); k != nil && v.FirstStart(e.Job) == e.At && !c.Pool() {
		k.Cost = c.Cost(e.GPUs)
	}
}

func (m *Measure) finished(v *sim.View, e *sim.Event) {
	k := m.of(v, e.Job)
	if k == nil {
		return
	}
	t := v.Trace(e.Job)
	jct := (e.At - t.Submit).Seconds()
	k.Ended, k.JCT, k.Wait = true, jct, jct-v.Ran(e.Job).Seconds()
	k.FirstWait = (v.FirstStart(e.Job) - t.Submit).Seconds()
	if t.Work > 0 {
		k.Slowdown = jct / t.Work.Seconds()
	}
	k.BoundedSlowdown = max(1, jct/max(t.Work.Seconds(), 10))
	if !v.Arriving() {
		m.after++
	}
}

// Jobs returns what was measured of the counted jobs, in order of submit. They belong to m.
func (m *Measure) Jobs() []Job { return m.jobs }

// Span is how long the counted jobs arrive.
func (m *Measure) Span() time.Duration { return m.Until - m.From }

// Use returns the share of the GPU time that is in use while the counted jobs arrive.
func (m *Measure) Use() float64 {
	if m.Until <= m.From || m.gpus == 0 {
		return 0
	}
	return m.busy / (m.gpus * m.Span().Seconds())
}

// System returns the number of jobs in the system at the edges of bins. It belongs to m.
func (m *Measure) System() []int { return m.system }

// edge returns the time of the edge of a bin, 0 to Bins.
func (m *Measure) edge(i int) time.Duration {
	return m.From + time.Duration(float64(m.Span())*float64(i)/float64(m.Bins))
}

// Bin returns the bin of a time.
func (m *Measure) Bin(t time.Duration) int {
	if m.Span() <= 0 {
		return 0
	}
	return max(0, min(m.Bins-1, int(float64(t-m.From)/float64(m.Span())*float64(m.Bins))))
}

// Unfinished returns how many counted jobs had not ended.
func (m *Measure) Unfinished() (n int) {
	for i := range m.jobs {
		if !m.jobs[i].Ended {
			n++
		}
	}
	return n
}

// After returns the share of the counted jobs that ended when nothing was left to arrive, so that the cluster was
// emptier for them than it would have been.
func (m *Measure) After() float64 { return float64(m.after) / float64(max(1, m.Counted)) }
