package attained

import (
	"math"
	"slices"
	"sort"
	"time"

	"clustergym/internal/grow"
	"clustergym/simulator/schedulers/queue"
	"clustergym/simulator/sim"
)

// Gittins is a distribution of GPU-times, and what the ranks of the running jobs follow from. Most of its passes come
// when one job completes a quantum, and only that job's rank has changed.
type Gittins struct {
	quantum float64 // nanoseconds
	service queue.Sample
	learns  bool
	version int           // of the distribution
	keys    []gittinsMemo // by quanta

	jobs       []gittinsJob  // by job
	clock      []quantumEnd  // a heap of the running jobs, by due
	due        []quantumEnd  // scratch
	heads      []queue.Entry // the first of each line of waiting jobs, in rank order, while noted
	noted      bool
	rankedWith int // the version with which the waiting jobs were ranked

	stamps int64
}

// gittinsMemo is the key of a job with some number of quanta.
type gittinsMemo struct {
	version int // of the distribution; 0 = not computed
	key     float64
}

// gittinsJob is what is known of a job that runs.
type gittinsJob struct {
	stamp  int64 // of its entry in the clock, 0 = none
	pos    int
	start  int64
	milli  int
	quanta int64
	due    int64 // its quanta stay as they are before this time
}

// quantumEnd is the time before which a job does not complete its quantum.
type quantumEnd struct {
	due   int64
	stamp int64
	job   sim.Job
}

// maxMemo bounds the numbers of quanta whose keys are kept.
const maxMemo = 1 << 16

// NewGittins returns the state for a quantum and a distribution of GPU-times; if it is empty, it is learned from jobs
// that finish.
func NewGittins(quantum time.Duration, service []time.Duration) *Gittins {
	g := &Gittins{quantum: float64(quantum), learns: len(service) == 0, version: 1}
	for _, d := range service {
		g.service.Add(float64(d))
	}
	return g
}

// Reset begins a run.
func (g *Gittins) Reset() {
	if g.learns {
		g.service.Reset()
		g.version++
	}
	g.jobs, g.rankedWith = g.jobs[:0], 0
	g.forget()
}

// Key returns the rank of j now, least first.
func (g *Gittins) Key(v *sim.View, j sim.Job) float64 { return g.rank(g.quantaOf(v, j)) }

// forget drops what is known of running jobs.
func (g *Gittins) forget() {
	g.clock, g.noted = g.clock[:0], false
	for i := range g.jobs {
		g.jobs[i].stamp = 0
	}
}

// index returns G(a).
func (g *Gittins) index(a float64) float64 {
	from, below := g.service.UpTo(a)
	n := g.service.N
	if from == n {
		return 0
	}
	to, sum := g.service.UpTo(a + g.quantum)
	if to < from {
		to, sum = from, below
	}
	work := sum - below - float64(to-from)*a + float64(n-to)*g.quantum
	return float64(to-from) / work
}

// rank returns the rank of a job that has held so many quanta.
func (g *Gittins) rank(quanta int64) float64 {
	if quanta < 0 || quanta >= maxMemo {
		return -g.index(float64(quanta) * g.quantum)
	}
	m := grow.At(&g.keys, quanta)
	if m.version != g.version {
		*m = gittinsMemo{g.version, -g.index(float64(quanta) * g.quantum)}
	}
	return m.key
}

// quanta returns the number of whole quanta that j has held.
func (g *Gittins) quanta(v *sim.View, j sim.Job) int64 { return int64(v.GPUTime(j) / g.quantum) }

// quantaOf is quanta, which it does not compute again while they cannot have changed.
func (g *Gittins) quantaOf(v *sim.View, j sim.Job) int64 {
	if int(j) < len(g.jobs) {
		if a := &g.jobs[j]; g.follows(v, j) && int64(v.Now()) < a.due {
			return a.quanta
		}
	}
	return g.quanta(v, j)
}

// follows reports whether j, a number in jobs, runs as its entry in the clock says.
func (g *Gittins) follows(v *sim.View, j sim.Job) bool {
	a := &g.jobs[j]
	return a.stamp != 0 && v.State(j) == sim.Running && a.pos == v.Pos(j) && a.start == int64(v.Started(j)) &&
		a.milli == queue.Milli(v, j)
}

// live reports whether e is the entry of a job that still runs.
func (g *Gittins) live(v *sim.View, e *quantumEnd) bool {
	return g.jobs[e.job].stamp == e.stamp && g.follows(v, e.job)
}

// completes returns when j, which runs on m thousandths of a GPU, has held a quantum more than quanta; never if that is
// too far away.
func (g *Gittins) completes(v *sim.View, j sim.Job, quanta int64, m int) int64 {
	left := float64(quanta+1)*g.quantum - v.GPUTime(j)
	wait := max(1, math.Ceil(left*1000/float64(m)))
	if wait > math.MaxInt64/4 {
		return queue.Never
	}
	return int64(v.Now()) + int64(wait)
}

// follow enters j, which runs, in the clock. Computing with GPU-times is not exact, so the time at which the quanta
// change, and what completes returns later, can differ a little from what it returns now: due is safely before.
func (g *Gittins) follow(v *sim.View, j sim.Job) {
	a := &g.jobs[j]
	a.pos, a.start, a.milli, a.quanta = v.Pos(j), int64(v.Started(j)), queue.Milli(v, j), g.quanta(v, j)
	a.due = g.completes(v, j, a.quanta, a.milli)
	if a.due != queue.Never {
		const rounding = 1.0 / (1 << 46)
		size := (v.GPUTime(j) + 2*g.quantum) * 1000 / float64(a.milli)
		a.due -= 2 + int64(rounding*size)
	}
	g.stamps++
	a.stamp = g.stamps
	g.clock = append(g.clock, quantumEnd{a.due, a.stamp, j})
	for i := len(g.clock) - 1; i > 0; {
		p := (i - 1) / 2
		if g.clock[p].due <= g.clock[i].due {
			break
		}
		g.clock[p], g.clock[i] = g.clock[i], g.clock[p]
		i = p
	}
}

// tick removes and returns the first entry of the clock.
func (g *Gittins) tick() quantumEnd {
	h := g.clock
	top, last := h[0], len(h)-1
	h[0] = h[last]
	h = h[:last]
	g.clock = h
	for i := 0; ; {
		k := 2*i + 1
		if k >= len(h) {
			return top
		}
		if k+1 < len(h) && h[k+1].due < h[k].due {
			k++
		}
		if h[i].due <= h[k].due {
			return top
		}
		h[i], h[k] = h[k], h[i]
		i = k
	}
}

// advance brings the clock up to the current time. It calls moved, if it is not nil, for each job whose quanta have
// changed, with the old and the new number.
func (g *Gittins) advance(v *sim.View, moved func(j sim.Job, from, to int64)) {
	now := int64(v.Now())
	g.due = g.due[:0]
	for len(g.clock) > 0 && g.clock[0].due <= now {
		if e := g.tick(); g.live(v, &e) {
			g.due = append(g.due, e)
		}
	}
	for _, e := range g.due {
		old := g.jobs[e.job].quanta
		g.follow(v, e.job)
		if is := g.jobs[e.job].quanta; is != old && moved != nil {
			moved(e.job, old, is)
		}
	}
}

// next returns when the first running job completes its quantum, until or never if that is earlier. It looks at the
// entries of the clock from i down that may be the first.
func (g *Gittins) next(v *sim.View, i int, until int64) int64 {
	if i >= len(g.clock) || g.clock[i].due >= until {
		return until
	}
	if e := &g.clock[i]; g.live(v, e) {
		a := &g.jobs[e.job]
		until = min(until, g.completes(v, e.job, a.quanta, a.milli))
	}
	return g.next(v, 2*i+2, g.next(v, 2*i+1, until))
}

// Submit does nothing: a job has held no quantum yet.
func (*Gittins) Submit(*sim.View, sim.Job) {}

// Before takes note of the running jobs; it returns when a rank changes next, 0 if never.
func (g *Gittins) Before(v *sim.View, running []queue.Entry) (until int64) {
	g.noted = false
	for _, e := range running {
		for int(e.Job) >= len(g.jobs) {
			g.jobs = append(g.jobs, gittinsJob{})
		}
		if queue.Milli(v, e.Job) > 0 && !g.follows(v, e.Job) {
			g.follow(v, e.Job)
		}
	}
	g.advance(v, nil)
	return g.Wakes(v)
}

// Wakes returns when a rank changes next, 0 if never.
func (g *Gittins) Wakes(v *sim.View) (until int64) {
	if len(v.Waiting()) == 0 {
		return 0 // no rank matters
	}
	if until = g.next(v, 0, queue.Never); until == queue.Never {
		return 0
	}
	return until
}

// Ranked reports whether the keys of waiting jobs still hold; fresh is true if they must be computed.
func (g *Gittins) Ranked(fresh bool) bool {
	same := g.rankedWith == g.version
	g.rankedWith = g.version
	return same && !fresh
}

// Still reports whether the running jobs that have completed a quantum are still before the same first jobs of all
// lines of waiting jobs. A job that comes forward leaves less for the waiting ones that it passes, and nothing more for
// the others.
func (g *Gittins) Still(q *queue.Queue, v *sim.View) bool {
	if g.rankedWith != g.version {
		return false
	}
	if !g.noted {
		g.heads, g.noted = q.Heads(g.heads[:0]), true
		slices.SortFunc(g.heads, func(a, b queue.Entry) int { return a.Compare(&b) })
	}
	still := true
	g.advance(v, func(j sim.Job, from, to int64) {
		old, is := queue.Entry{Key: g.rank(from), Pos: v.Pos(j), Job: j}, queue.Entry{Key: g.rank(to), Pos: v.Pos(j), Job: j}
		i := sort.Search(len(g.heads), func(i int) bool { return old.Before(&g.heads[i]) })
		still = still && (i == len(g.heads) || !g.heads[i].Before(&is))
	})
	return still
}

// After does nothing: ranks follow from what jobs have held.
func (*Gittins) After(*sim.View, []queue.Entry, []queue.Entry) {}

// Learn adds the GPU-time of j.
func (g *Gittins) Learn(v *sim.View, j sim.Job) {
	if !g.learns {
		return
	}
	g.service.Add(math.Floor(v.GPUTime(j)))
	g.version++
}
