package rollout

import (
	"slices"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
)

// passes is a base that stops gangs. In each pass it gives the GPUs to the first in line, whether they run or wait, and
// passes over what has no room, as a preemptive order of simulator/schedulers does. It is made for rollouts, of which a
// decision plays a hundred: it counts GPUs and remembers ranks. Ranks that follow from forecasts are computed anew when
// a job has run for a quarter longer. The queues of las and las-2d follow from what a job has attained: in each,
// running jobs go first, in order of start, then waiting ones by position, and behind these what falls at this moment.
// Unlike las in simulator/schedulers it keeps no memory of when a waiting job fell to its queue.
type passes struct {
	ranking
	place cluster.Placement
	moves *[]move // that candidates name

	queue   []entry   // in line, but for jobs that have been stopped at the current point
	gangs   []gang    // that run, but for those that are always spared
	behind  []entry   // gangs behind the first in the queue
	bare    int       // of the queue, those that ask for no GPU
	started []sim.Job // by the last pass
	ranks   []rank    // by job
	begin   []rank    // by job, at the decision of stamp
	stamp   *uint64   // the number of the decision; ranks of others would depend on what this worker has played
	plan    []sim.Decision
	next    int
	until   time.Duration
	open    bool // a point is being decided
	dec     sim.Decision
}

// entry is a job in line, which waits or runs.
type entry struct {
	key, next float64
	pos       int
	milli     int // thousandths of GPUs
	job       sim.Job
}

func (a *entry) compare(b *entry) int {
	switch {
	case a.key < b.key:
		return -1
	case a.key > b.key:
		return 1
	case a.next < b.next:
		return -1
	case a.next > b.next:
		return 1
	}
	return a.pos - b.pos
}

// gang is a running job. Its key falls by slope with each nanosecond.
type gang struct {
	entry
	at    float64 // its key at time 0
	slope float64
	due   time.Duration // until then at and slope hold
	falls time.Duration // when it reaches the next queue
	from  time.Duration // it may be stopped from then on
}

var _ Opener = (*passes)(nil)

// newPasses returns a base of an order of Stopping. moves are those that its candidates name.
// stamp is the number of the decision that is searched.
func newPasses(order string, est sim.Estimates, placement string, moves *[]move, stamp *uint64) (*passes, error) {
	place, err := cluster.NewPlacement(placement)
	return &passes{ranking: ranking{order: order, est: est}, place: place, moves: moves, stamp: stamp}, err
}

// Reset implements sim.Scheduler. Jobs that have been stopped at v's current time are left out; they come back with the
// events of the next point.
func (b *passes) Reset(v *sim.View) {
	b.queue, b.gangs, b.started, b.open, b.bare = b.queue[:0], b.gangs[:0], b.started[:0], false, 0
	for i := range b.ranks { // of jobs of another future
		b.ranks[i].pos = -1
	}
	for _, list := range [...][]sim.Job{v.Waiting(), v.Running()} {
		for _, j := range list {
			m := seat(&b.begin, j)
			if m.stamp != *b.stamp {
				*m = b.rank(v, j)
				m.stamp = *b.stamp
			}
			*seat(&b.ranks, j) = *m
		}
	}
	for _, j := range v.Waiting() {
		if !v.Decided(j) {
			b.queue = append(b.queue, b.enter(v, j))
		}
	}
	slices.SortFunc(b.queue, func(x, y entry) int { return x.compare(&y) })
	for _, j := range v.Running() {
		b.run(v, j)
	}
}

// seat returns j's place in a list by job.
func seat(list *[]rank, j sim.Job) *rank {
	for int(j) >= len(*list) {
		*list = append(*list, rank{pos: -1})
	}
	return &(*list)[j]
}

// known returns what j's place in line follows from.
func (b *passes) known(v *sim.View, j sim.Job) *rank {
	m, ran := seat(&b.ranks, j), v.Ran(j)
	if m.pos != v.Pos(j) || ran < m.from || ran > m.from && ran >= m.until {
		*m = b.rank(v, j)
	}
	return m
}

// enter returns the place in line of j, which waits.
func (b *passes) enter(v *sim.View, j sim.Job) entry {
	e := entry{pos: v.Pos(j), milli: milli(v, j), job: j}
	b.put(v, &e, b.known(v, j))
	if e.milli == 0 {
		b.bare++
	}
	return e
}

// run notes that j runs.
func (b *passes) run(v *sim.View, j sim.Job) {
	if v.Pos(j) < b.first {
		return
	}
	g := gang{entry: entry{pos: v.Pos(j), milli: milli(v, j), job: j}, from: sim.After(v.Started(j), max(1, b.min))}
	b.renew(v, &g)
	b.gangs = append(b.gangs, g)
}

// renew computes from when on and how g's key falls.
func (b *passes) renew(v *sim.View, g *gang) {
	m := b.known(v, g.job)
	b.put(v, &g.entry, m)
	g.slope = 0
	if m.less {
		g.slope = 1
		if b.byGPU() {
			g.slope = float64(g.milli)
		}
	}
	g.at = g.key + g.slope*float64(v.Now())
	g.falls = sim.After(v.Now(), max(1, m.until-v.Ran(g.job)))
	if g.due = g.falls; m.fell > 0 && m.fell == v.Ran(g.job) {
		g.due = sim.After(v.Now(), 1) // it is behind those that wait at this pass only
	}
}

// insert puts j, which waits, into the queue.
func (b *passes) insert(v *sim.View, j sim.Job) {
	e := b.enter(v, j)
	i, _ := slices.BinarySearchFunc(b.queue, e, func(x, y entry) int { return x.compare(&y) })
	b.queue = slices.Insert(b.queue, i, e)
}

// observe updates the lines to the events since the last point.
func (b *passes) observe(v *sim.View, p *sim.Point) {
	for i := range p.Events {
		switch e := &p.Events[i]; e.Kind {
		case sim.Submit:
			b.insert(v, e.Job)
		case sim.Preempt, sim.Fail:
			if v.State(e.Job) == sim.Waiting {
				b.insert(v, e.Job)
			}
			b.leave(e.Job)
		case sim.Finish:
			b.leave(e.Job)
		}
	}
}

// leave takes a gang out.
func (b *passes) leave(j sim.Job) {
	for i := range b.gangs {
		if b.gangs[i].job == j {
			last := len(b.gangs) - 1
			b.gangs[i] = b.gangs[last]
			b.gangs = b.gangs[:last]
			return
		}
	}
}

// Decide implements sim.Scheduler.
func (b *passes) Decide(v *sim.View, p *sim.Point, d *sim.Decision) error {
	if !b.open {
		for _, j := range b.started { // their start times are known now
			b.run(v, j)
		}
		b.started = b.started[:0]
		b.observe(v, p)
		b.pass(v)
	}
	for b.open = true; b.next < len(b.plan); {
		c := &b.plan[b.next]
		b.next++
		d.Op, d.Job, d.GPUs = c.Op, c.Job, d.GPUs[:0]
		if c.Op == sim.PreemptJob {
			b.leave(c.Job)
			return nil
		}
		if b.fits(v, d) {
			i := slices.IndexFunc(b.queue, func(e entry) bool { return e.job == c.Job })
			if b.queue[i].milli == 0 {
				b.bare--
			}
			b.queue = slices.Delete(b.queue, i, i+1)
			b.started = append(b.started, c.Job)
			return nil
		}
	}
	b.open = false
	d.Op, d.Until = sim.Wait, b.until
	return nil
}

// fits chooses the GPUs of a start. It returns false if the placement refuses, although there was room by count.
func (b *passes) fits(v *sim.View, d *sim.Decision) (ok bool) {
	if v.Cluster().Pool() {
		return v.Fits(d.Job)
	}
	d.GPUs, ok = b.place.Place(v.Cluster(), v.Request(d.Job), d.GPUs)
	return ok
}

// pass plans the decisions of a point. Gangs before the first in the queue stay, so only those behind it are sorted.
func (b *passes) pass(v *sim.View) {
	b.plan, b.next, b.until, b.behind = b.plan[:0], 0, 0, b.behind[:0]
	if len(b.queue) == 0 {
		return
	}
	now, room, first := v.Now(), v.Cluster().FreeMilli(), &b.queue[0]
	for i := range b.gangs {
		g := &b.gangs[i]
		if now >= g.due {
			b.renew(v, g)
		}
		if b.wakes && b.queues() && (b.until == 0 || g.falls < b.until) {
			b.until = g.falls
		}
		if now < g.from {
			continue
		}
		if g.key = g.at - g.slope*float64(now); g.compare(first) < 0 {
			continue
		}
		room += g.milli
		b.behind = append(b.behind, g.entry)
	}
	if room == 0 && b.bare == 0 {
		return
	}
	if len(b.behind) > 1 {
		slices.SortFunc(b.behind, func(x, y entry) int { return x.compare(&y) })
	}
	b.merge(room)
}

// merge walks down both lines with a count of what is left of room. Stops come before starts in the plan.
func (b *passes) merge(room int) {
	r, stops := 0, 0
	for w := range b.queue {
		e := &b.queue[w]
		for ; r < len(b.behind) && b.behind[r].compare(e) < 0; r++ {
			room = b.stay(&b.behind[r], room, &stops)
		}
		if room == 0 && b.bare == 0 {
			break
		}
		if e.milli <= room {
			room -= e.milli
			b.plan = append(b.plan, sim.Decision{Op: sim.StartJob, Job: e.job})
		}
	}
	for ; r < len(b.behind); r++ {
		room = b.stay(&b.behind[r], room, &stops)
	}
}

// stay keeps a gang if there is room; else it is stopped, before the starts in the plan.
func (b *passes) stay(g *entry, room int, stops *int) int {
	if g.milli <= room {
		return room - g.milli
	}
	b.plan = slices.Insert(b.plan, *stops, sim.Decision{Op: sim.PreemptJob, Job: g.job})
	*stops++
	return room
}

// Open implements Opener.
func (b *passes) Open(fork *sim.Simulator, c *sim.Decision) error {
	v := fork.View()
	if c.Op != sim.Wait {
		if err := b.make(fork, c); err != nil {
			return err
		}
	}
	b.Reset(v)
	if c.Op == sim.Wait {
		return fork.Apply(c)
	}
	b.pass(v)
	b.open = true
	return sim.Decide(fork, b, nil, &b.dec, nil)
}

// make makes the candidate's decisions.
func (b *passes) make(fork *sim.Simulator, c *sim.Decision) error {
	if c.Op != sim.PreemptJob || c.N == 0 {
		return fork.Apply(c)
	}
	m, d := &(*b.moves)[c.N-1], &b.dec
	for _, j := range m.stops {
		*d = sim.Decision{Op: sim.PreemptJob, Job: j, GPUs: d.GPUs[:0]}
		if err := fork.Apply(d); err != nil {
			return err
		}
	}
	d.Op, d.Job = sim.StartJob, m.start
	if !b.fits(fork.View(), d) {
		return nil
	}
	return fork.Apply(d)
}

// Reseed changes the seed of noisy estimates.
func (b *passes) Reseed(seed uint64) { b.est.Seed = seed }

// milli returns the thousandths of GPUs that j asks for.
func milli(v *sim.View, j sim.Job) int {
	r := v.Request(j)
	return r.GPUs * r.Milli
}
