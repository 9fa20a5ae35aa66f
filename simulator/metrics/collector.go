package metrics

import (
	"iter"
	"math"
	"time"

	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Job is the collector's record of one job. Times are since the origin. Finish is -1 if the run ended before the job
// did; Run then extends to the end of the run.
type Job struct {
	Submit   time.Duration
	First    time.Duration // first start, -1 = never
	Finish   time.Duration
	Run      time.Duration // time on GPUs
	Work     time.Duration // work in the trace; for an unfinished job, the work done
	GPUTime  float64       // GPU-seconds held, shared GPUs by their share
	Fairness float32       // finish-time fairness ρ, see Summary; 0 = undefined
	Pos      int32         // position among the jobs that fit the cluster
	GPUs     int32         // as asked for
	Milli    int16         // share of each GPU
	Missed   bool          // it had a deadline and finished after it
	Deadline bool          // it had a deadline

	Preemptions, Migrations int32
}

// Collector is a sim.Observer that records the jobs of a run and what happens between their events. It is not safe for
// concurrent use.
type Collector struct {
	Keep func(pos int) bool // nil = all jobs; jobs not kept are counted nowhere

	jobs   chunks
	gpus   int
	events int
	begun  bool
	end    time.Duration

	system  systemLog
	queue   queueLog
	nodes   nodeLog
	dropped int
	failed  int           // times that a job lost its node
	lost    time.Duration // progress lost, summed over all jobs

	alone map[int32]time.Duration // by position of jobs that held more or fewer GPUs than they asked for: see summarize
}

var _ sim.Observer = (*Collector)(nil)

// Reset forgets everything.
func (c *Collector) Reset() {
	c.jobs.reset()
	clear(c.alone)
	c.events, c.begun, c.end, c.dropped, c.failed, c.lost = 0, false, 0, 0, 0, 0
	c.system.reset()
	c.queue.reset()
	c.nodes.reset()
}

// Observe implements sim.Observer.
func (c *Collector) Observe(v *sim.View, p *sim.Point) error {
	c.gpus = v.Cluster().GPUs()
	c.events += len(p.Events)
	// The numbers of jobs waiting and in the system between the last point and this one.
	waiting, system := len(v.Waiting()), v.Arrived()-v.Ended()
	for i := range p.Events {
		switch p.Events[i].Kind {
		case sim.Submit:
			waiting--
			system--
		case sim.Finish:
			system++
		case sim.Fail:
			waiting--
			c.failed++
		case sim.Drop:
			c.dropped++
		}
	}
	if c.begun {
		span := p.Now - c.end
		c.queue.add(waiting, span)
		c.system.add(system, span)
		c.nodes.observe(v.Cluster(), p, span)
	} else {
		c.begun = true
		c.system.begin(v)
		c.nodes.begin(v)
	}
	c.end = p.Now
	for i := range p.Events {
		switch e := &p.Events[i]; e.Kind {
		case sim.Submit:
			c.system.submit(e.Job)
		case sim.Finish:
			c.add(v, e.Job, e.At)
		case sim.Drop:
			if c.Keep == nil || c.Keep(v.Pos(e.Job)) {
				c.lost += v.Lost(e.Job)
			}
		}
	}
	if v.Over() {
		c.End(v)
	}
	return nil
}

// End counts the jobs that wait or run as unfinished. It is for a run that is stopped before the simulator's own end.
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
		Pos: int32(pos), GPUs: int32(t.GPUs), Milli: int16(r.Milli), Submit: t.Submit, First: v.FirstStart(j), Finish: finish,
		Run: v.Ran(j), Work: t.Work, Preemptions: int32(v.Preemptions(j)),
		Migrations: int32(v.Migrations(j)),
	}
	k.GPUTime = v.GPUTime(j) / 1e9
	c.lost += v.Lost(j)
	if finish < 0 {
		k.Work = max(0, t.Work-time.Duration(v.Left(j)))
	} else {
		k.Deadline = t.Deadline > 0
		k.Missed = k.Deadline && finish > t.Deadline
		k.Fairness = float32(c.system.fairness(j, &k, float64(c.gpus)))
	}
	if finish >= 0 {
		c.solo(&k, t.Profile)
	}
	c.jobs.add(&k)
}

// solo notes how long the work of k, an elastic job, would take alone on as many GPUs as it held on average, if these
// are not as many as it asked for.
func (c *Collector) solo(k *Job, p *traces.Profile) {
	held := float64(k.GPUs) * float64(k.Milli) / 1000 * k.Run.Seconds()
	if held == 0 || math.Abs(k.GPUTime-held) <= 1e-9*held {
		return
	}
	n := k.GPUTime / held * float64(k.GPUs)
	whole := math.Floor(n)
	on := p.Throughput(int(whole))
	if more := n - whole; more > 0 {
		on += more * (p.Throughput(int(whole)+1) - on)
	}
	if on <= 0 {
		return
	}
	if c.alone == nil {
		c.alone = map[int32]time.Duration{}
	}
	c.alone[k.Pos] = time.Duration(float64(k.Work) * p.Throughput(int(k.GPUs)) / on)
}

// Jobs yields the jobs counted so far: in order of finish, then those unfinished at the end of the run. The yielded
// values belong to the collector.
func (c *Collector) Jobs() iter.Seq[*Job] { return c.jobs.all() }

// Len returns the number of jobs counted so far.
func (c *Collector) Len() int { return c.jobs.n }

// Events returns the number of events seen.
func (c *Collector) Events() int { return c.events }

// chunks is a list that grows without copying: runs of many millions of jobs must not hold it twice.
type chunks struct {
	full [][]Job
	n    int
}

const chunk = 1 << 13

func (c *chunks) reset() { c.n = 0 }

func (c *chunks) add(j *Job) {
	at := c.n / chunk
	if at == len(c.full) {
		size := chunk
		if at == 0 {
			size = 64 // most collectors see one window; the first chunk grows like a slice
		}
		c.full = append(c.full, make([]Job, 0, size))
	}
	c.full[at] = append(c.full[at][:c.n%chunk], *j)
	c.n++
}

func (c *chunks) all() iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		for i := range c.n {
			if !yield(&c.full[i/chunk][i%chunk]) {
				return
			}
		}
	}
}
