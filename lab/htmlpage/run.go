package htmlpage

import (
	"math"
	"math/bits"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
)

// Run collects one run of a page. It is a sim.Observer.
type Run struct {
	page  *Page
	name  string
	begun bool
	last  int          // position of the last job that arrived
	done  []completion // in the order of events

	cluster  *cluster.Cluster
	from, to time.Duration
	now      levels // the values since to
	series   series
	heat     heat
	live     []liveJob // by sim.Job
	scratch  []int32

	// Stints are kept as long as they can all be drawn.
	detail   bool
	stints   []stint
	spans    []span
	lanes    lanes
	coreJobs int // stints of jobs without GPUs, which are not drawn
	counts   [endings]int
	started  int

	downs      []outage
	downSince  []int32 // by node: its outage in downs, -1 = none
	downsInAll int
}

var _ sim.Observer = (*Run)(nil)

// stint is a period in which a job held the same GPUs.
type stint struct {
	job   int32 // position
	start time.Duration
	end   time.Duration
	began beginning
	ended ending
	to    int32 // end of its spans, which begin where those of the previous stint end
}

// span is a range of consecutive GPUs, or a share of one GPU of milli thousandths, drawn from off on.
type span struct {
	gpu, n     int32
	off, milli int16
}

// outage is a period in which a node was down.
type outage struct {
	node     int32
	from, to time.Duration // to is -1 as long as it lasts
}

// beginning says how a stint began.
type beginning uint8

const (
	first beginning = iota // the job starts for the first time
	again
	moved
	sized
)

// ending says how a stint ended.
type ending uint8

const (
	finished ending = iota
	preempted
	failed
	movedOn
	sizedOn
	cutOff // by the end of the run
	endings
)

// liveJob is the state of a job between its arrival and its end.
type liveJob struct {
	spans []span // of its current stint
	stint int32  // index of its current stint, -1 = not kept
	milli int64  // GPU-thousandths held
	class int32
	area  float64 // thousandths × nanoseconds of its earlier stints
	since time.Duration
	begun bool // it has been started before
	here  bool // it is in the system
	runs  bool // it holds its GPUs
}

// sizeNames are the names of the size classes, by the number of GPUs.
var sizeNames = [...]string{"a share", "1", "2", "3–4", "5–8", "9–16", "17–32", "33–64", "over 64"}

// classOf returns the size class of a gang with milli thousandths of each of n GPUs.
func classOf(n, milli int) int {
	if milli < 1000 {
		return 0
	}
	return min(1+bits.Len(uint(max(1, n)-1)), len(sizeNames)-1)
}

// begin starts the run at the first event of its first point.
func (r *Run) begin(v *sim.View, p *sim.Point) {
	c := v.Cluster()
	r.begun, r.cluster, r.from, r.to = true, c, p.Now, p.Now
	for i := range p.Events {
		r.from = min(r.from, p.Events[i].At)
	}
	r.to = r.from
	r.series.begin(r.from)
	r.detail = c.GPUs() <= r.page.limits.gpus
	defer r.join(v, p)
	if c.Pool() {
		r.lanes.begin(c.GPUs(), r.detail)
		return
	}
	r.heat.begin(r.from, c.Nodes(), r.page.limits.rows, func(node int) int32 {
		if node == c.Nodes() {
			return int32(c.GPUs())
		}
		g, _ := c.NodeGPUs(node)
		return int32(g)
	})
	if r.detail {
		r.lanes.beginShares(c.GPUs())
	}
	r.downSince = make([]int32, c.Nodes())
	for i := range r.downSince {
		r.downSince[i] = -1
	}
}

// join takes in the jobs that were in the system before the first point: all but those whose first event there is a
// Submit. Decisions that were made at that point before the first observation are in the state of v already, and their
// events are yet to come: those change nothing.
func (r *Run) join(v *sim.View, p *sim.Point) {
	seen := map[sim.Job]*sim.Event{} // its first event
	for i := range p.Events {
		if e := &p.Events[i]; e.Job >= 0 && seen[e.Job] == nil {
			seen[e.Job] = e
		}
	}
	add := func(j sim.Job, isRunning bool) {
		pos := v.Pos(j)
		r.last = max(r.last, pos)
		r.page.jobs.add(pos, v.Trace(j), v.Request(j).Milli, &r.page.limits)
		l := r.job(j)
		*l = liveJob{spans: l.spans[:0], stint: -1, here: true, begun: isRunning || v.Ran(j) > 0, runs: isRunning}
		if isRunning {
			r.now[running]++
		} else {
			r.now[queue]++
		}
	}
	for _, j := range v.Running() {
		if seen[j] == nil {
			add(j, true)
			r.hold(v, j)
		}
	}
	for _, j := range v.Waiting() {
		if seen[j] == nil {
			add(j, false)
		}
	}
	for i := range p.Events { // in the order of events
		e := &p.Events[i]
		if e.Job < 0 || seen[e.Job] != e || e.Kind == sim.Submit {
			continue
		}
		add(e.Job, e.Kind != sim.Start && e.Kind != sim.Drop)
	}
}

// hold opens the stint of a job that runs since before the first point.
func (r *Run) hold(v *sim.View, j sim.Job) {
	e := sim.Event{Kind: sim.Start, Job: j, At: r.from, GPUs: v.GPUs(j)}
	r.open(v, &sim.Point{Now: r.from}, &e, first)
}

// Observe implements sim.Observer. The decisions at the previous point are the first events of p and have the time of
// that point.
func (r *Run) Observe(v *sim.View, p *sim.Point) error {
	if !r.begun {
		r.begin(v, p)
	}
	for i := range p.Events {
		e := &p.Events[i]
		r.advance(e.At)
		r.take(v, p, e)
	}
	r.advance(p.Now)
	return nil
}

// advance records that nothing changed until t.
func (r *Run) advance(t time.Duration) {
	if t > r.to {
		r.series.hold(&r.now, r.to, t)
		r.to = t
	}
}

// take records one event.
func (r *Run) take(v *sim.View, p *sim.Point, e *sim.Event) {
	switch e.Kind {
	case sim.Submit:
		r.now[queue]++
		r.last = max(r.last, v.Pos(e.Job))
		r.page.jobs.add(r.last, v.Trace(e.Job), v.Request(e.Job).Milli, &r.page.limits)
		l := r.job(e.Job)
		*l = liveJob{spans: l.spans[:0], stint: -1, here: true}
	case sim.Start:
		if r.job(e.Job).runs { // see join
			break
		}
		r.now[queue]--
		r.now[running]++
		how := again
		if l := r.job(e.Job); !l.begun {
			how, l.begun = first, true
		}
		r.started++
		r.open(v, p, e, how)
	case sim.Preempt:
		if !r.job(e.Job).runs {
			break
		}
		r.now[queue]++
		r.now[running]--
		r.close(e.Job, preempted)
	case sim.Fail:
		r.now[queue]++
		r.now[running]--
		r.close(e.Job, failed)
	case sim.Finish:
		r.now[running]--
		r.done = append(r.done, completion{int32(v.Pos(e.Job)), e.At - v.Trace(e.Job).Submit, e.At})
		r.close(e.Job, finished)
		r.job(e.Job).here = false
	case sim.Drop:
		if l := r.job(e.Job); l.here {
			l.here = false
			r.now[queue]--
		}
	case sim.Migrate:
		r.close(e.Job, movedOn)
		r.open(v, p, e, moved)
	case sim.Resize:
		r.close(e.Job, sizedOn)
		r.open(v, p, e, sized)
	case sim.NodeFail:
		r.fail(int(e.Node))
	case sim.NodeRecover:
		r.recover(int(e.Node))
	case sim.Timer:
	}
}

// job returns the state of j.
func (r *Run) job(j sim.Job) *liveJob {
	for int(j) >= len(r.live) {
		r.live = append(r.live, liveJob{stint: -1})
	}
	return &r.live[j]
}

// open starts a stint of e.Job.
func (r *Run) open(v *sim.View, p *sim.Point, e *sim.Event, how beginning) {
	l := r.job(e.Job)
	milli := v.Request(e.Job).Milli
	n := 0
	if r.cluster.Pool() {
		n = r.poolGang(v, p, e, l, milli)
		l.spans = r.lanes.take(n, milli, l.spans[:0])
	} else {
		n = r.gang(e.GPUs, milli, l)
		for _, s := range l.spans {
			r.heatSpan(s, 1)
		}
	}
	if n == 0 {
		r.coreJobs++
		milli = 0
	}
	l.since, l.runs = r.to, true
	l.milli, l.class, l.stint = int64(n)*int64(milli), int32(classOf(n, milli)), -1
	r.now[used] += l.milli
	r.now[sizes+int(l.class)] += l.milli
	if !r.detail {
		return
	}
	lim := &r.page.limits
	if len(r.stints) == lim.stints || len(r.spans)+len(l.spans) > lim.spans {
		r.dropDetail()
		return
	}
	l.stint = int32(len(r.stints))
	r.spans = append(r.spans, l.spans...)
	r.stints = append(r.stints, stint{
		job: int32(v.Pos(e.Job)), start: e.At, end: -1, began: how, ended: cutOff, to: int32(len(r.spans)),
	})
}

// dropDetail discards the stints and stops keeping them.
func (r *Run) dropDetail() {
	r.detail, r.stints, r.spans = false, nil, nil
	r.lanes.end()
}

// poolGang returns the number of GPUs of the gang that e starts or resizes on a pool. The event does not say. If the
// job no longer runs, its request may have its original size again; then the number follows from the GPU-time since e,
// because the job held its GPUs from e until now.
func (r *Run) poolGang(v *sim.View, p *sim.Point, e *sim.Event, l *liveJob, milli int) int {
	t := v.Trace(e.Job)
	if v.State(e.Job) == sim.Running || t.MaxGPUs == 0 || p.Now <= e.At || milli == 0 {
		return v.Request(e.Job).GPUs
	}
	held := (v.GPUTime(e.Job)*1000 - l.area) / float64(p.Now-e.At)
	return int(math.Round(held / float64(milli)))
}

// gang sets l's spans to gpus and returns the number of GPUs.
func (r *Run) gang(gpus []cluster.GPU, milli int, l *liveJob) int {
	l.spans = l.spans[:0]
	r.scratch = r.scratch[:0]
	for _, g := range gpus {
		if g >= 0 { // a job without GPUs has a negative one
			r.scratch = append(r.scratch, int32(g))
		}
	}
	l.spans = merge(r.scratch, int16(milli), l.spans)
	if milli < 1000 && r.detail {
		for i := range l.spans {
			r.lanes.share(&l.spans[i])
		}
	}
	return len(r.scratch)
}

// heatSpan adds s to the map of node × time if by is 1, and removes it if by is -1.
func (r *Run) heatSpan(s span, by int64) {
	for g, end := s.gpu, s.gpu+s.n; g < end; {
		node := r.cluster.NodeOf(cluster.GPU(g))
		_, to := r.cluster.NodeGPUs(node)
		n := min(end, int32(to)) - g
		r.heat.change(node, by*int64(n)*int64(s.milli), r.to)
		g += n
	}
}

// close ends j's current stint.
func (r *Run) close(j sim.Job, how ending) {
	l := r.job(j)
	r.counts[how]++
	l.area += float64(l.milli) * float64(r.to-l.since)
	r.now[used] -= l.milli
	r.now[sizes+int(l.class)] -= l.milli
	if r.cluster.Pool() {
		r.lanes.give(l.spans)
	} else {
		for _, s := range l.spans {
			r.heatSpan(s, -1)
			if s.milli < 1000 && r.detail {
				r.lanes.unshare(s)
			}
		}
	}
	if r.detail && l.stint >= 0 {
		s := &r.stints[l.stint]
		s.end, s.ended = r.to, how
	}
	l.spans, l.stint, l.milli, l.runs = l.spans[:0], -1, 0, false
}

// fail records that a node goes down.
func (r *Run) fail(node int) {
	from, to := r.cluster.NodeGPUs(node)
	r.now[down] += int64(to-from) * 1000
	r.downsInAll++
	if len(r.downs) < r.page.limits.downs {
		r.downSince[node] = int32(len(r.downs))
		r.downs = append(r.downs, outage{int32(node), r.to, -1})
	}
}

// recover records that a node is up again.
func (r *Run) recover(node int) {
	from, to := r.cluster.NodeGPUs(node)
	r.now[down] -= int64(to-from) * 1000
	if i := r.downSince[node]; i >= 0 {
		r.downs[i].to, r.downSince[node] = r.to, -1
	}
}

// settle completes the map of node × time until the end of the run.
func (r *Run) settle() {
	for row := range r.heat.level {
		r.heat.settle(row, r.to)
	}
}
