package demo

import (
	"cmp"
	"slices"
	"time"

	"clustergym/live"
)

// Backfills returns what the demo's own scheduler can do with jobs behind one that does not fit.
func Backfills() []string { return []string{BackfillEasy, BackfillNone, BackfillAny} }

// The ways of back-filling.
const (
	BackfillEasy = "easy" // they start if that does not delay the first one that does not fit, by time limits
	BackfillNone = "none" // they wait
	BackfillAny  = "any"  // they start if they fit
)

// noLimit stands for the time limit of a job without one.
const noLimit = 24 * time.Hour

// never is a time that does not come.
const never = time.Duration(1<<62 - 1)

// keepEnded is how long jobs are shown that have ended.
const keepEnded = time.Hour

// machine is the pretended cluster. All times are on the clock of the history. What happens does not depend on how
// often it is looked at: jobs start only when a job comes or ends, or when something is done to one.
type machine struct {
	backfill string
	now      time.Duration
	nodes    []*node // in order of name
	free     int     // GPUs
	jobs     map[string]*job
	queue    []*job // that wait, by rank and then in the order in which they came
	running  []*job // in order of end
	ended    []*job // in order of end, those of the last hour
	future   []*job // not submitted yet, in order of submit
	head     *job   // the first that did not fit when jobs were last started, nil = all did
	until    time.Duration
	come     int // how many jobs have come, which numbers them
}

type node struct {
	live.Node
	number int
	free   []bool // by GPU
	idle   int    // how many are free
}

// job is a job of the demo. What is known of it in the history never changes.
type job struct {
	live.Job
	submit, work time.Duration
	limit        time.Duration // by which back-filling goes
	shape        string        // jobs of one shape fit alike
	seq          int
	start, end   time.Duration // of a job that runs or has ended
	held         []share
	where        []string // the nodes on which it runs, or ran last
}

// share is what a running job holds of a node.
type share struct {
	on    *node
	index []int
}

func newMachine(nodes []live.Node, backfill string, now time.Duration) *machine {
	m := &machine{backfill: backfill, now: now, jobs: map[string]*job{}}
	for i := range nodes {
		n := &node{Node: nodes[i], idle: nodes[i].GPUs, free: slices.Repeat([]bool{true}, nodes[i].GPUs)}
		m.nodes = append(m.nodes, n)
		m.free += n.GPUs
	}
	slices.SortFunc(m.nodes, func(a, b *node) int { return cmp.Compare(a.Name, b.Name) })
	for i, n := range m.nodes {
		n.number = i
	}
	return m
}

// advance moves the clock: jobs end, come and start on the way, each at its time.
func (m *machine) advance(to time.Duration) {
	for {
		next := to + 1
		if len(m.running) > 0 {
			next = min(next, m.running[0].end)
		}
		if len(m.future) > 0 {
			next = min(next, m.future[0].submit)
		}
		if next > to {
			break
		}
		m.now = max(m.now, next)
		m.due()
	}
	m.now = max(m.now, to)
	n := 0
	for n < len(m.ended) && m.ended[n].end < m.now-keepEnded {
		delete(m.jobs, m.ended[n].ID)
		n++
	}
	m.ended = slices.Delete(m.ended, 0, n)
}

// due does what is due now.
func (m *machine) due() {
	for len(m.running) > 0 && m.running[0].end <= m.now {
		m.over(m.running[0])
	}
	for len(m.future) > 0 && m.future[0].submit <= m.now {
		m.wait(m.future[0])
		m.future = m.future[1:]
	}
	m.schedule()
}

// over ends the first job that runs.
func (m *machine) over(j *job) {
	m.leave(j)
	j.State = live.Ended
	m.ended = append(m.ended, j)
}

// leave gives back what a running job holds.
func (m *machine) leave(j *job) {
	for _, h := range j.held {
		for _, i := range h.index {
			h.on.free[i] = true
		}
		h.on.idle += len(h.index)
		m.free += len(h.index)
	}
	j.held = nil
	m.running = slices.DeleteFunc(m.running, func(r *job) bool { return r == j })
}

// wait puts a job into the queue.
func (m *machine) wait(j *job) {
	if m.jobs[j.ID] == nil {
		m.jobs[j.ID] = j
		j.seq = m.come
		m.come++
	}
	j.State, j.start, j.end = live.Waiting, 0, 0
	i, _ := slices.BinarySearchFunc(m.queue, j, before)
	m.queue = slices.Insert(m.queue, i, j)
}

// before is the order of the queue.
func before(a, b *job) int { return cmp.Or(cmp.Compare(b.Rank, a.Rank), cmp.Compare(a.seq, b.seq)) }

// run starts a job that is not in the queue. Since when it runs may be past.
func (m *machine) run(j *job, since time.Duration, places []place) {
	j.where = j.where[:0:0]
	for _, p := range places {
		h := share{on: p.on}
		j.where = append(j.where, p.on.Name)
		for i := 0; len(h.index) < p.gpus; i++ {
			if p.on.free[i] {
				p.on.free[i] = false
				h.index = append(h.index, i)
			}
		}
		p.on.idle -= p.gpus
		m.free -= p.gpus
		j.held = append(j.held, h)
	}
	j.State, j.start, j.end = live.Running, since, since+j.work
	i, _ := slices.BinarySearchFunc(m.running, j,
		func(a, b *job) int { return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(a.seq, b.seq)) })
	m.running = slices.Insert(m.running, i, j)
}

// schedule starts what can start now.
func (m *machine) schedule() {
	m.head, m.until = nil, 0
	idle := make([]int, len(m.nodes)) // as the nodes have it
	for i, n := range m.nodes {
		idle[i] = n.idle
	}
	var then []int // free GPUs when the first one in line is to start, by node
	var wait []*job
	tried := map[string]bool{} // what does not fit; less is free later on
	for i, j := range m.queue {
		if m.free == 0 && m.head != nil || m.head != nil && m.backfill == BackfillNone {
			wait = append(wait, m.queue[i:]...)
			break
		}
		long := m.head != nil && m.backfill == BackfillEasy && m.now+j.limit > m.until
		shape := j.shape
		if long {
			shape += " long"
		}
		var places []place
		switch {
		case j.Ours || j.GPUs > m.free || tried[shape] && len(j.Nodes) == 0:
		case long:
			places = m.beside(j, idle, then)
		default:
			places = m.place(j, idle)
		}
		switch {
		case places != nil:
			take(idle, places)
			m.run(j, m.now, places)
			continue
		case m.head == nil && !j.Ours:
			m.head = j
			m.until, then = m.reserve(j)
		}
		tried[shape] = tried[shape] || !j.Ours && len(j.Nodes) == 0
		wait = append(wait, j)
	}
	m.queue = wait
}

// reserve returns when a job fits if those that run keep to their limits, and how many GPUs of each node are free then.
func (m *machine) reserve(j *job) (at time.Duration, then []int) {
	then = make([]int, len(m.nodes))
	for i, n := range m.nodes {
		then[i] = n.idle
	}
	all := slices.Clone(m.running)
	ends := func(r *job) time.Duration { return max(r.start+r.limit, m.now) }
	slices.SortStableFunc(all, func(a, b *job) int { return cmp.Compare(ends(a), ends(b)) })
	for i, r := range all {
		for _, h := range r.held {
			then[h.on.number] += len(h.index)
		}
		if i+1 < len(all) && ends(all[i+1]) == ends(r) {
			continue
		}
		if m.place(j, then) != nil {
			return ends(r), then
		}
	}
	return never, then
}

// beside returns where a job fits that will still run when the first one in line is to start, and leaves that a place.
// Its GPUs are not free then.
func (m *machine) beside(j *job, idle, then []int) []place {
	places := m.place(j, idle)
	if places == nil {
		return nil
	}
	take(then, places)
	if m.until < never && m.place(m.head, then) == nil {
		for _, p := range places {
			then[p.on.number] += p.gpus
		}
		return nil
	}
	return places
}
