package metrics

import (
	"time"

	"clustergym/env/sim"
)

// Job is what the collector keeps of one job. Times are since the origin; Finish is -1 where the run ended
// before the job did, and then Run goes up to that end.
type Job struct {
	Pos         int
	GPUs        int
	Milli       int // share of each GPU
	Submit      time.Duration
	First       time.Duration // first start, -1 = never
	Finish      time.Duration
	Run         time.Duration // on GPUs
	Work        time.Duration // as the trace says; of an unfinished job, what it has done
	Preemptions int
}

// Collector is a sim.Observer that gathers the jobs of a run. Not safe for concurrent use.
type Collector struct {
	Keep func(pos int) bool // nil = all jobs; others are not counted anywhere

	jobs   []Job
	gpus   int
	events int
	end    time.Duration
}

var _ sim.Observer = (*Collector)(nil)

// Reset forgets everything.
func (c *Collector) Reset() { c.jobs, c.events, c.end = c.jobs[:0], 0, 0 }

// Observe implements sim.Observer.
func (c *Collector) Observe(v *sim.View, p *sim.Point) error {
	c.gpus = v.Cluster().GPUs()
	c.events += len(p.Events)
	c.end = p.Now
	for i := range p.Events {
		if e := &p.Events[i]; e.Kind == sim.Finish {
			c.add(v, e.Job, e.At)
		}
	}
	if v.Over() {
		c.End(v)
	}
	return nil
}

// End counts the jobs that wait or run as unfinished, where a run is broken off before the simulator's own end.
func (c *Collector) End(v *sim.View) {
	for _, j := range v.Running() {
		c.add(v, j, -1)
	}
	for _, j := range v.Waiting() {
		c.add(v, j, -1)
	}
}

func (c *Collector) add(v *sim.View, j sim.Job, finish time.Duration) {
	pos := v.Pos(j)
	if c.Keep != nil && !c.Keep(pos) {
		return
	}
	t, r := v.Trace(j), v.Request(j)
	k := Job{
		Pos: pos, GPUs: r.GPUs, Milli: r.Milli, Submit: t.Submit, First: v.FirstStart(j), Finish: finish,
		Run: v.Ran(j), Work: t.Work, Preemptions: v.Preemptions(j),
	}
	if finish < 0 {
		k.Work = max(0, t.Work-time.Duration(v.Left(j)))
	}
	c.jobs = append(c.jobs, k)
}

// Jobs are the jobs counted so far, in order of finish, then those that the end of the run found unfinished.
// The slice belongs to the collector.
func (c *Collector) Jobs() []Job { return c.jobs }

// Events is the number of events seen.
func (c *Collector) Events() int { return c.events }
