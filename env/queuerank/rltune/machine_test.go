package rltune

import (
	"cmp"
	"fmt"
	"slices"
)

// Job is one job. Times are in seconds.
type Job struct {
	ID     string
	Submit int64
	Run    int64 // how long it runs, at least 1
	Known  int64 // what policies know of Run; in the program the same
	GPUs   int
	Pool   int   // position in Cluster.Pools
	Wait   int64 // the wait that the trace records, by which multifactor ranks
}

// running is a running job. Equal ends are in the order of starts.
type running struct {
	end int64
	seq int32
	job int32
}

func (a *running) compare(b *running) int {
	return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(a.seq, b.seq))
}

// Machine is the simulator that the authors of RLTune published, rebuilt from its rules alone: the state of a run over
// a list of jobs. It is nodes in pools, to one of which a job belongs. Times are whole seconds. The waiting job that a
// base policy or an agent chooses is committed to: if it does not fit, the clock runs until it does, whatever pool the
// others are of, and no policy is asked meanwhile. Events are handled one at a time, an arrival before a completion of
// the same second. Jobs arrive while a job is held; when none waits, the clock runs until one job has arrived. A job
// that never fits is dropped once nothing runs.
//
// Some of the rules are faults of the program. They are kept, and the names and comments say where: "wfp3" favours jobs
// that came early, back-filling in Helios passes over jobs, and run times are known. Not safe for concurrent use.
type Machine struct {
	cluster  *Cluster
	backfill bool

	jobs    []Job // in order of submit; never written
	next    int   // the first that has not arrived
	now     int64
	queue   []int32   // places in jobs, in the order in which the last policy left them
	running []running // in order of end
	free    [][]int32 // by pool and node
	parts   [][]Part  // by job that runs
	version uint64    // counts starts and ends

	started, dropped int
	score            Score

	finder Finder
	way    []Part
	spare  []int32 // scratch of early
	known  []running
	list   []int32 // scratch of back-filling

	// OnStart is called for every job that starts, with its place in the list of jobs, its start, and its nodes by their
	// positions in its pool. The nodes are valid until it returns. nil = nobody is told.
	OnStart func(job int, at int64, parts []Part)
}

// NewMachine returns a machine with or without back-filling.
func NewMachine(c *Cluster, backfill bool) *Machine {
	m := &Machine{cluster: c, backfill: backfill}
	for _, p := range c.Pools {
		m.free = append(m.free, make([]int32, p.nodes))
	}
	return m
}

// Reset empties the machine and moves its clock to the first of the jobs, which must be in order of submit. They are
// not copied, and must not change until the run is over.
func (m *Machine) Reset(jobs []Job) {
	m.jobs, m.next, m.now = jobs, 0, 0
	m.queue, m.running = m.queue[:0], m.running[:0]
	for len(m.parts) < len(jobs) {
		m.parts = append(m.parts, nil)
	}
	for i, p := range m.cluster.Pools {
		n := 0
		for _, b := range p.Blocks {
			for range b.Nodes {
				m.free[i][n] = int32(b.Each)
				n++
			}
		}
	}
	m.version++
	m.started, m.dropped, m.score = 0, 0, Score{}
	if len(jobs) > 0 {
		m.now = jobs[0].Submit
	}
	m.awake()
}

// Done reports whether all jobs have started or were dropped.
func (m *Machine) Done() bool { return len(m.queue) == 0 }

// Now returns the clock, in seconds.
func (m *Machine) Now() int64 { return m.now }

// Waiting returns how many jobs can be chosen.
func (m *Machine) Waiting() int { return len(m.queue) }

// Job returns the i-th waiting job, in the order of the queue.
func (m *Machine) Job(i int) *Job { return &m.jobs[m.queue[i]] }

// Started returns how many jobs have started.
func (m *Machine) Started() int { return m.started }

// Dropped returns how many jobs were dropped because they never fit.
func (m *Machine) Dropped() int { return m.dropped }

// A Placer places a job in one of the ways that its pools allow. It returns false if there is none. The parts are
// appended to dst[:0].
type Placer interface {
	Place(m *Machine, j *Job, dst []Part) ([]Part, bool)
}

// Commit commits to the i-th waiting job and runs the clock to the next decision. A nil placer takes the first way of
// tier 1.
func (m *Machine) Commit(i int, place Placer) {
	at := m.queue[i]
	m.queue = slices.Delete(m.queue, i, i+1)
	j := &m.jobs[at]
	early, held := int64(0), false
	for !m.try(at, place) {
		if m.backfill {
			if !held {
				early, held = m.early(j), true
			}
			m.fill(at, early)
		}
		if len(m.running) == 0 {
			m.dropped++ // it never fits
			break
		}
		m.event()
	}
	m.awake()
}

// try starts a job if it fits.
func (m *Machine) try(at int32, place Placer) bool {
	j := &m.jobs[at]
	var ok bool
	if place == nil {
		m.way, ok = m.finder.First(m.cluster.Pools[j.Pool].Pool, m.free[j.Pool], j.GPUs, m.way)
	} else {
		m.way, ok = place.Place(m, j, m.way)
	}
	if !ok {
		return false
	}
	free := m.free[j.Pool]
	for _, p := range m.way {
		if free[p.Node] -= p.GPUs; free[p.Node] < 0 {
			panic(fmt.Sprintf("rltune: job %s takes %d GPUs more than node %d has", j.ID, -free[p.Node], p.Node))
		}
	}
	m.parts[at] = append(m.parts[at][:0], m.way...)
	r := running{end: m.now + j.Run, seq: int32(m.started), job: at}
	k, _ := slices.BinarySearchFunc(m.running, r, func(a, b running) int { return a.compare(&b) })
	m.running = slices.Insert(m.running, k, r)
	m.started++
	m.version++
	m.score.add(j, m.now, m.jobs[0].Submit)
	if m.OnStart != nil {
		m.OnStart(int(at), m.now, m.way)
	}
	return true
}

// early returns when j will fit as far as run times are known: running jobs of its pool are released in order of their
// known ends until it does. It panics for a job that never fits, as the program raises an error.
func (m *Machine) early(j *Job) int64 {
	m.spare = append(m.spare[:0], m.free[j.Pool]...)
	m.known = m.known[:0]
	for _, r := range m.running {
		if o := &m.jobs[r.job]; o.Pool == j.Pool {
			r.end += o.Known - o.Run
			m.known = append(m.known, r)
		}
	}
	slices.SortFunc(m.known, func(a, b running) int { return a.compare(&b) })
	for _, r := range m.known {
		for _, p := range m.parts[r.job] {
			m.spare[p.Node] += p.GPUs
		}
		if m.finder.Fits(m.cluster.Pools[j.Pool].Pool, m.spare, j.GPUs) {
			return max(r.end, m.now)
		}
	}
	panic(fmt.Sprintf("rltune: job %s of %d GPUs never fits pool %s, and back-filling waits for it", j.ID, j.GPUs,
		m.cluster.Pools[j.Pool].Name))
}

// fill back-fills while a job is held: jobs of its pool that fit and end before early start, in order of submit. The
// held job is in the list that is gone through, so that it can be the one that is passed over.
func (m *Machine) fill(held int32, early int64) {
	m.list = append(m.list[:0], held)
	for _, at := range m.queue {
		if m.jobs[at].Pool != m.jobs[held].Pool {
			continue
		}
		i := len(m.list)
		m.list = append(m.list, at)
		for ; i > 0 && m.jobs[m.list[i-1]].Submit > m.jobs[at].Submit; i-- {
			m.list[i-1], m.list[i] = m.list[i], m.list[i-1]
		}
	}
	for i := 0; i < len(m.list); i++ {
		at := m.list[i]
		if at == held || m.now+m.jobs[at].Known >= early || !m.try(at, nil) {
			continue
		}
		k := slices.Index(m.queue, at)
		m.queue = slices.Delete(m.queue, k, k+1)
		if m.cluster.Skips {
			i++
		}
	}
}

// awake runs the clock until a job waits or none is left.
func (m *Machine) awake() {
	for len(m.queue) == 0 && m.next < len(m.jobs) {
		m.event()
	}
}

// event handles the next event.
func (m *Machine) event() {
	if m.next < len(m.jobs) && (len(m.running) == 0 || m.jobs[m.next].Submit <= m.running[0].end) {
		m.now = max(m.now, m.jobs[m.next].Submit)
		m.queue = append(m.queue, int32(m.next))
		m.next++
		return
	}
	r := m.running[0]
	m.running = slices.Delete(m.running, 0, 1)
	m.now = r.end
	j := &m.jobs[r.job]
	for _, p := range m.parts[r.job] {
		m.free[j.Pool][p.Node] += p.GPUs
	}
	m.version++
}

// Score is sums over the jobs that have started.
type Score struct {
	Jobs int
	// Bounded is at least 1 a job and divides by 10 s or more; Area is in GPU-seconds
	Bounded, Wait, Turnaround, Slow, Area float64
	End                                   int64 // last end after the first submit
}

// add counts a job that starts at now.
func (s *Score) add(j *Job, now, first int64) {
	wait, run := float64(now-j.Submit), float64(j.Run)
	s.Jobs++
	s.Bounded += max(1, (wait+run)/max(run, 10))
	s.Wait += wait
	s.Turnaround += wait + run
	s.Slow += (wait + run) / run
	s.Area += run * float64(j.GPUs)
	s.End = max(s.End, now+j.Run-first)
}

// Of returns a metric, lower is better: bsld, wait, jct or slowdown, a mean over the jobs that have started, or
// utilisation, minus that of so many GPUs. It is NaN if no job has started.
func (s *Score) Of(metric string, gpus int) float64 {
	n := float64(s.Jobs)
	switch metric {
	case "bsld":
		return s.Bounded / n
	case "wait":
		return s.Wait / n
	case "jct":
		return s.Turnaround / n
	case "utilisation":
		return -s.Area / (float64(gpus) * float64(s.End))
	case "slowdown":
		return s.Slow / n
	}
	panic("rltune: metric " + metric)
}

// Score returns the sums of the jobs that have started.
func (m *Machine) Score() Score { return m.score }

// Reward returns what an agent gets at the end of a window in which the base policy had base: their relative
// difference.
func Reward(base, agent float64) float64 { return (base - agent) / max(base, agent, 1) }

// A Policy chooses the place in the queue of the job to commit to. At least one job waits.
type Policy interface {
	Choose(m *Machine) int
}

// Play lets p choose until all jobs have started or were dropped.
func Play(m *Machine, p Policy, place Placer) {
	for !m.Done() {
		m.Commit(p.Choose(m), place)
	}
}

// Programmed is the Placer of the integer programme.
type Programmed struct {
	Planner
	Base *Rule
}

// Place implements Placer.
func (o *Programmed) Place(m *Machine, j *Job, dst []Part) ([]Part, bool) {
	next := 0
	first, second := o.Base.rankOf(j, -1), ranked{}
	for i, at := range m.queue {
		k := o.Base.rankOf(&m.jobs[at], at)
		switch {
		case k.compare(&first) < 0:
			first, second = k, first
		case i == 0 || k.compare(&second) < 0:
			second = k
		}
	}
	if len(m.queue) > 0 {
		next = j.GPUs
		if second.at >= 0 {
			next = m.jobs[second.at].GPUs
		}
	}
	return o.Choose(m.cluster.Pools[j.Pool].Pool, m.free[j.Pool], j.GPUs, next, m.cluster.WholePool, dst)
}

// Slots is how many jobs are visible at most.
const Slots = 128

// Observer fills observations. Not safe for concurrent use.
type Observer struct {
	finder Finder
	pools  []State
	cache  map[request]seenWays
	of     uint64 // version of the machine that the cache is of
	rows   []float64
}

// request is what the ways of a job depend on, beside the machine.
type request struct{ pool, gpus int }

type seenWays struct {
	ways int
	fits bool
}

// Look fills a row for each visible job, up to Slots in the order of the queue, which the base policy must have sorted.
// It returns how many are visible. The rows are valid until the next call.
func (o *Observer) Look(m *Machine) (rows []float64, visible int) {
	visible = min(len(m.queue), Slots)
	c := m.cluster
	if o.cache == nil {
		o.cache = map[request]seenWays{}
	}
	if o.of != m.version {
		clear(o.cache)
		o.of = m.version
	}
	o.pools = o.pools[:0]
	for i, p := range c.Pools {
		s := State{PerNode: float64(c.PerNode)}
		s.Count(p.Pool, m.free[i], c.AllNodes)
		o.pools = append(o.pools, s)
	}
	for i := range visible {
		j := m.Job(i)
		o.pools[j.Pool].Demand += float64(j.GPUs)
	}
	o.rows = o.rows[:0]
	for i := range visible {
		j := m.Job(i)
		n, ok := o.cache[request{j.Pool, j.GPUs}]
		if !ok {
			n.ways, n.fits = o.finder.Ways(c.Pools[j.Pool].Pool, m.free[j.Pool], j.GPUs, !c.Wide1)
			o.cache[request{j.Pool, j.GPUs}] = n
		}
		var row [Features]float64
		o.pools[j.Pool].Row(float64(m.now-j.Submit), float64(j.GPUs), n.ways, n.fits, row[:])
		o.rows = append(o.rows, row[:]...)
	}
	return o.rows, visible
}
