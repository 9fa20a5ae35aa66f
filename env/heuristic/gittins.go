package heuristic

import (
	"math"
	"slices"
	"sort"

	"clustergym/env/heuristic/queue"
	"clustergym/env/sim"
)

// gittins2D serves the job with the greatest Gittins index in GPU-time first and preempts for it ("2D-Gittins",
// Tiresias: Gu et al., NSDI 2019, section 4.3). With a the GPU-time that a job has held, counted in whole quanta D
// (Config.Quantum), and S the GPU-time of a job drawn from Config.Service, the index is
//
//	G(a) = P(S − a ≤ D | S > a) / E[min(S − a, D) | S > a],
//
// or 0 if no S exceeds a: such jobs go last. A rank changes when a running job completes a quantum.
//
// If Config.Service is empty, the distribution is that of the jobs that have finished so far; before the first, all
// ranks are equal. Tiresias' simulator combines the index with the queues of las-2d, rounds P and E to five digits
// and looks a up among the values of S; this implementation evaluates the formula.
var gittins2D = rule{name: "gittins-2d", preemptive: true, dynamic: true, key: gittinsKey, state: newGittins}

func gittinsKey(s *Scheduler, v *sim.View, j sim.Job) float64 {
	g := s.state.(*gittins2Dstate)
	return g.key(g.quantaOf(v, j))
}

// gittins2Dstate is a distribution of GPU-times, and what the ranks of the running jobs follow from. Most of its passes come
// when one job completes a quantum, and only that job's rank has changed.
type gittins2Dstate struct {
	quantum float64 // nanoseconds
	service queue.Sample
	learns  bool
	version int           // of the distribution
	keys    []gittinsMemo // by quanta

	jobs  []gittinsJob  // by job
	clock []quantumEnd  // a heap of the running jobs, by due
	due   []quantumEnd  // scratch
	heads []queue.Entry // the first of each line of waiting jobs, in rank order, while noted
	noted bool
	sound int // the version with which the waiting jobs were ranked

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

func newGittins(s *Scheduler) stateful {
	g, ok := s.state.(*gittins2Dstate)
	if !ok {
		g = &gittins2Dstate{quantum: float64(s.cfg.Quantum), learns: len(s.cfg.Service) == 0, version: 1}
		for _, d := range s.cfg.Service {
			g.service.Add(float64(d))
		}
	}
	if g.learns {
		g.service.Reset()
		g.version++
	}
	g.jobs, g.sound = g.jobs[:0], 0
	g.forget()
	return g
}

// forget drops what is known of running jobs.
func (g *gittins2Dstate) forget() {
	g.clock, g.noted = g.clock[:0], false
	for i := range g.jobs {
		g.jobs[i].stamp = 0
	}
}

// index returns G(a).
func (g *gittins2Dstate) index(a float64) float64 {
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

// key returns the rank of a job that has held so many quanta.
func (g *gittins2Dstate) key(quanta int64) float64 {
	if quanta < 0 || quanta >= maxMemo {
		return -g.index(float64(quanta) * g.quantum)
	}
	for int(quanta) >= len(g.keys) {
		g.keys = append(g.keys, gittinsMemo{})
	}
	m := &g.keys[quanta]
	if m.version != g.version {
		*m = gittinsMemo{g.version, -g.index(float64(quanta) * g.quantum)}
	}
	return m.key
}

// quanta returns the number of whole quanta that j has held.
func (g *gittins2Dstate) quanta(v *sim.View, j sim.Job) int64 { return int64(v.GPUTime(j) / g.quantum) }

// quantaOf is quanta, which it does not compute again while they cannot have changed.
func (g *gittins2Dstate) quantaOf(v *sim.View, j sim.Job) int64 {
	if int(j) < len(g.jobs) {
		if a := &g.jobs[j]; g.follows(v, j) && int64(v.Now()) < a.due {
			return a.quanta
		}
	}
	return g.quanta(v, j)
}

// follows reports whether j, a number in jobs, runs as its entry in the clock says.
func (g *gittins2Dstate) follows(v *sim.View, j sim.Job) bool {
	a := &g.jobs[j]
	return a.stamp != 0 && v.State(j) == sim.Running && a.pos == v.Pos(j) && a.start == int64(v.Started(j)) && a.milli == queue.Milli(v, j)
}

// live reports whether e is the entry of a job that still runs.
func (g *gittins2Dstate) live(v *sim.View, e *quantumEnd) bool {
	return g.jobs[e.job].stamp == e.stamp && g.follows(v, e.job)
}

// completes returns when j, which runs on m thousandths of a GPU, has held a quantum more than quanta; never if that is
// too far away.
func (g *gittins2Dstate) completes(v *sim.View, j sim.Job, quanta int64, m int) int64 {
	left := float64(quanta+1)*g.quantum - v.GPUTime(j)
	wait := max(1, math.Ceil(left*1000/float64(m)))
	if wait > math.MaxInt64/4 {
		return queue.Never
	}
	return int64(v.Now()) + int64(wait)
}

// follow enters j, which runs, in the clock. Computing with GPU-times is not exact, so the time at which the quanta
// change, and what completes returns later, can differ a little from what it returns now: due is safely before.
func (g *gittins2Dstate) follow(v *sim.View, j sim.Job) {
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
func (g *gittins2Dstate) tick() quantumEnd {
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
func (g *gittins2Dstate) advance(v *sim.View, moved func(j sim.Job, from, to int64)) {
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
func (g *gittins2Dstate) next(v *sim.View, i int, until int64) int64 {
	if i >= len(g.clock) || g.clock[i].due >= until {
		return until
	}
	if e := &g.clock[i]; g.live(v, e) {
		a := &g.jobs[e.job]
		until = min(until, g.completes(v, e.job, a.quanta, a.milli))
	}
	return g.next(v, 2*i+2, g.next(v, 2*i+1, until))
}

func (*gittins2Dstate) submit(*sim.View, sim.Job) {}

func (g *gittins2Dstate) before(v *sim.View, running []queue.Entry) (until int64) {
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
	return g.wakes(v)
}

// wakes returns when a rank changes next, 0 if never.
func (g *gittins2Dstate) wakes(v *sim.View) (until int64) {
	if len(v.Waiting()) == 0 {
		return 0 // no rank matters
	}
	if until = g.next(v, 0, queue.Never); until == queue.Never {
		return 0
	}
	return until
}

func (g *gittins2Dstate) ranked(fresh bool) bool {
	same := g.sound == g.version
	g.sound = g.version
	return same && !fresh
}

// still reports whether the running jobs that have completed a quantum are still before the same first jobs of all
// lines of waiting jobs. A job that comes forward leaves less for the waiting ones that it passes, and nothing more for
// the others.
func (g *gittins2Dstate) still(s *Scheduler, v *sim.View) bool {
	if g.sound != g.version {
		return false
	}
	if !g.noted {
		g.heads, g.noted = s.lanes[0].Heads(g.heads[:0]), true
		slices.SortFunc(g.heads, func(a, b queue.Entry) int {
			if a.Before(&b) {
				return -1
			}
			return 1
		})
	}
	still := true
	g.advance(v, func(j sim.Job, from, to int64) {
		old, is := queue.Entry{Key: g.key(from), Pos: v.Pos(j), Job: j}, queue.Entry{Key: g.key(to), Pos: v.Pos(j), Job: j}
		i := sort.Search(len(g.heads), func(i int) bool { return old.Before(&g.heads[i]) })
		still = still && (i == len(g.heads) || !g.heads[i].Before(&is))
	})
	return still
}

func (*gittins2Dstate) after(*sim.View, []queue.Entry, []queue.Entry) {}

// learn adds the GPU-time of j.
func (g *gittins2Dstate) learn(v *sim.View, j sim.Job) {
	if !g.learns {
		return
	}
	g.service.Add(math.Floor(v.GPUTime(j)))
	g.version++
}
