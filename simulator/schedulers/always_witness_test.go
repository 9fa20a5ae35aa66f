package schedulers_test

import (
	"fmt"
	"math"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// witness wraps a policy. It keeps its own books from events alone, and remembers the first fault. Each policy that
// decides, the whole one or that of a part, has its promise checked.
type witness struct {
	schedulers.Policy
	x    *world
	s    *sim.Simulator
	seen map[string]int // how often each promise was checked
	err  error

	nodes []site
	gpus  []int // thousandths held, by GPU; of a counter the first is the sum
	owner []int // node of a GPU
	quota map[string]int
	lives map[int]*life // by position
	last  time.Duration
	begun bool
	first time.Duration

	system, waiting     int   // jobs, until the next event
	inSystem, inQueue   int64 // integrals
	events, decisions   int
	finished, submitted int
	fragments, someFree float64 // seconds × share; seconds
	kinds               [sim.NodeRecover + 1]int
}

// site is a node's spec, and what of it is in use.
type site struct {
	kind     string
	vc       string // that owns it
	cpu, mem int64  // free
	down     bool
	jobs     int
}

// life is what happened to a job.
type life struct {
	t              *traces.Job
	running, ended bool
	gpus           []cluster.GPU
	n              int // GPUs while it runs
	since          time.Duration
	ran            time.Duration
	finish         time.Duration
	starts         int
}

func newWitness(x *world, s *sim.Simulator, h schedulers.Policy) *witness {
	w := &witness{x: x, s: s, lives: map[int]*life{}, quota: map[string]int{}, seen: map[string]int{}}
	w.Policy = schedulers.Watch(h, func(p schedulers.Policy) schedulers.Policy {
		return &bound{Policy: p, w: w, promise: newPromise(x, w.seen)}
	})
	for _, v := range x.spec.VCs {
		w.quota[v.Name] = math.MaxInt
		if v.Quota > 0 {
			w.quota[v.Name] = v.Quota * 1000
		}
	}
	if x.spec.Pool > 0 {
		w.gpus = make([]int, 1)
		return w
	}
	unlimited := func(v float64, unit int64) int64 {
		if v == 0 {
			return math.MaxInt64 / 2
		}
		return int64(v * float64(unit))
	}
	for _, r := range x.spec.Racks {
		for range r.Count.N() {
			for _, n := range r.Nodes {
				for range n.Count.N() {
					for range n.GPUs {
						w.gpus, w.owner = append(w.gpus, 0), append(w.owner, len(w.nodes))
					}
					w.nodes = append(w.nodes, site{kind: n.GPUType, cpu: unlimited(n.CPUs, 1000), mem: unlimited(n.MemGB, 1<<30)})
				}
			}
		}
	}
	n := 0
	for _, v := range x.spec.VCs {
		for range v.Nodes {
			w.nodes[n].vc = v.Name
			n++
		}
	}
	return w
}

// fail remembers the first fault.
func (w *witness) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

// bound is a policy with its promise.
type bound struct {
	schedulers.Policy
	w       *witness
	promise *promise
	open    bool
}

// Reset implements sim.Scheduler.
func (b *bound) Reset(v *sim.View) {
	b.open = false
	b.Policy.Reset(v)
}

// Decide implements sim.Scheduler.
func (b *bound) Decide(v *sim.View, p *sim.Point, d *sim.Decision) error {
	if !b.open {
		b.promise.see()
	}
	if err := b.Policy.Decide(v, p, d); err != nil {
		return err
	}
	b.open = d.Op != sim.Wait
	b.w.decisions++
	if err := b.promise.hold(v, d); err != nil {
		b.w.fail("at %v: %w", v.Now(), err)
	}
	return b.w.err
}

// Observe implements sim.Observer.
func (w *witness) Observe(v *sim.View, p *sim.Point) error {
	if err := w.s.CheckInvariants(); err != nil {
		w.fail("%w", err)
	}
	if !w.begun {
		w.begun, w.first, w.last = true, p.Now, p.Now
	}
	if p.Now < w.last {
		w.fail("%v comes after %v", p.Now, w.last)
	}
	w.events += len(p.Events)
	at := w.last
	for i := range p.Events {
		e := &p.Events[i]
		if e.At != w.last && e.At != p.Now || e.At < at {
			w.fail("%v of job %d at %v, after %v, at the point %v", e.Kind, e.Job, e.At, at, p.Now)
		}
		if at = e.At; at > w.last {
			w.pass(at)
		}
		w.take(v, e)
	}
	w.pass(p.Now)
	return w.err
}

// pass advances the time.
func (w *witness) pass(to time.Duration) {
	w.inSystem += int64(w.system) * int64(to-w.last)
	w.inQueue += int64(w.waiting) * int64(to-w.last)
	w.fragment(to - w.last)
	w.last = to
}

// fragment adds the share of the free GPUs that are on nodes in use.
func (w *witness) fragment(span time.Duration) {
	used := make([]bool, len(w.nodes))
	for g, milli := range w.gpus {
		if len(w.nodes) > 0 && milli > 0 {
			used[w.owner[g]] = true
		}
	}
	free, beside := 0, 0
	for g, milli := range w.gpus {
		if len(w.nodes) > 0 && milli == 0 {
			free++
			if used[w.owner[g]] {
				beside++
			}
		}
	}
	if free > 0 {
		w.fragments += float64(beside) / float64(free) * span.Seconds()
		w.someFree += span.Seconds()
	}
}

func (w *witness) take(v *sim.View, e *sim.Event) {
	w.kinds[e.Kind]++
	switch e.Kind {
	case sim.Timer:
		return
	case sim.NodeFail, sim.NodeRecover:
		if n := &w.nodes[e.Node]; n.down == (e.Kind == sim.NodeFail) || n.jobs > 0 {
			w.fail("%v of node %d, which runs %d jobs (down: %v)", e.Kind, e.Node, n.jobs, n.down)
		} else {
			n.down = !n.down
		}
		return
	case sim.Submit:
		t := v.Trace(e.Job)
		if w.lives[v.Pos(e.Job)] != nil || t.Submit != e.At {
			w.fail("%s is submitted twice, or at %v", t.ID, e.At)
		}
		w.lives[v.Pos(e.Job)] = &life{t: t, finish: -1}
		copied := *t // the number may be reused by another job
		w.lives[v.Pos(e.Job)].t = &copied
		w.submitted++
		w.system++
		w.waiting++
		return
	}
	l := w.lives[v.Pos(e.Job)]
	if l == nil || l.ended || l.running == (e.Kind == sim.Start) {
		w.fail("%v of job %d at %v, which is in no state for it: %+v", e.Kind, e.Job, e.At, l)
		return
	}
	if e.Kind != sim.Start {
		w.hold(l, -1)
	}
	switch e.Kind {
	case sim.Start:
		l.running, l.since = true, e.At
		l.starts++
		w.waiting--
		l.gpus, l.n = append(l.gpus[:0], e.GPUs...), int(e.N)
		w.whole(l)
		w.hold(l, 1)
	case sim.Migrate, sim.Resize:
		l.gpus, l.n = append(l.gpus[:0], e.GPUs...), int(e.N)
		w.whole(l)
		w.hold(l, 1)
	case sim.Preempt, sim.Fail:
		l.running = false
		l.ran += e.At - l.since
		w.waiting++
	case sim.Finish:
		l.running, l.ended, l.finish = false, true, e.At
		l.ran += e.At - l.since
		w.system--
		w.finished++
	default:
		w.fail("%v of %s", e.Kind, l.t.ID)
	}
}

// whole checks that the gang is complete and on nodes that it may use.
func (w *witness) whole(l *life) {
	t := l.t
	if n := l.n; n != t.GPUs && (t.MaxGPUs == 0 || n < max(1, t.MinGPUs) || n > t.MaxGPUs) {
		w.fail("%s runs on %d GPUs", t.ID, n)
	}
	if w.x.spec.Pool > 0 {
		if len(l.gpus) > 0 {
			w.fail("%s has %v on a counter", t.ID, l.gpus)
		}
		return
	}
	if len(l.gpus) != max(1, l.n) {
		w.fail("%s has %v for %d GPUs", t.ID, l.gpus, l.n)
	}
	for i, g := range l.gpus {
		n := &w.nodes[w.nodeOf(g)]
		for _, other := range l.gpus[:i] {
			if other == g {
				w.fail("%s has GPU %d twice", t.ID, g)
			}
		}
		ok := len(t.GPUTypes) == 0 || g < 0
		for _, k := range t.GPUTypes {
			ok = ok || k == n.kind || n.kind == ""
		}
		here := 0
		for _, other := range l.gpus {
			if w.nodeOf(other) == w.nodeOf(g) {
				here++
			}
		}
		if t.Nodes > 0 && l.n > 1 && l.n%t.Nodes == 0 && t.MaxGPUs == 0 && here != l.n/t.Nodes {
			w.fail("%s has %d GPUs on node %d, want %d nodes with equal parts of %d", t.ID, here, w.nodeOf(g), t.Nodes, l.n)
		}
		owns := ""
		for _, v := range w.x.spec.VCs {
			if v.Name == t.VC && v.Nodes > 0 {
				owns = v.Name
			}
			var from, to int
			if v.Name != t.VC || v.Hosts == nil {
				continue
			}
			_, err := fmt.Sscanf(v.Hosts[0], "[%d-%d]", &from, &to)
			ok = ok && err == nil && from <= w.nodeOf(g) && w.nodeOf(g) <= to
		}
		if (g < 0) != (l.n == 0) || !ok || n.down || n.vc != owns {
			w.fail("%s runs on %d, of a node that it may not use: %+v", t.ID, g, *n)
		}
	}
}

func (w *witness) nodeOf(g cluster.GPU) int {
	if g < 0 {
		return -1 - int(g)
	}
	return w.owner[g]
}

// hold books what l holds (sign 1) or gives it back (sign -1).
func (w *witness) hold(l *life, sign int) {
	t := l.t
	if _, ok := w.quota[t.VC]; ok && len(w.x.spec.VCs) > 0 {
		if w.quota[t.VC] -= sign * l.n * t.GPUMilli; w.quota[t.VC] < 0 {
			w.fail("%s is beyond the quota of %s", t.ID, t.VC)
		}
	}
	if w.x.spec.Pool > 0 {
		if w.gpus[0] += sign * l.n * t.GPUMilli; w.gpus[0] > w.x.spec.Pool*1000 {
			w.fail("%d thousandths of %d GPUs are held", w.gpus[0], w.x.spec.Pool)
		}
		return
	}
	per := int64(max(1, t.GPUs))
	cpu, mem := (t.CPUMilli+per-1)/per, (t.MemBytes+per-1)/per
	for _, g := range l.gpus {
		n := &w.nodes[w.nodeOf(g)]
		n.jobs += sign
		n.cpu -= int64(sign) * cpu
		n.mem -= int64(sign) * mem
		if n.cpu < 0 || n.mem < 0 {
			w.fail("%s takes more than node %d has", t.ID, w.nodeOf(g))
		}
		if g < 0 {
			continue
		}
		if w.gpus[g] += sign * t.GPUMilli; w.gpus[g] > 1000 {
			w.fail("%s takes more than GPU %d has", t.ID, g)
		}
	}
}

// end returns the faults after the run.
func (w *witness) end() error {
	v := w.s.View()
	var jct, ran, waits int64
	ended := 0
	for _, l := range w.lives {
		until := v.Now()
		if l.ended {
			ended++
			until = l.finish
		} else if l.running {
			l.ran += until - l.since
		}
		jct += int64(until - l.t.Submit)
		ran += int64(l.ran)
		waits += int64(until - l.t.Submit - l.ran)
		if w.x.steadily() && l.ended && l.t.MaxGPUs == 0 && l.ran != l.t.Work {
			w.fail("%s ran for %v, its work is %v", l.t.ID, l.ran, l.t.Work)
		}
	}
	cut := w.x.cfg.Horizon > 0 && v.Now() == w.x.cfg.Horizon
	switch left := len(v.Waiting()) + len(v.Running()); {
	case w.err != nil:
	case !v.Over():
		w.fail("the run is not over")
	case !cut && w.submitted+w.s.Refused().Count != len(w.x.jobs):
		w.fail("%d jobs arrived and %d were refused, of %d", w.submitted, w.s.Refused().Count, len(w.x.jobs))
	case w.submitted != w.finished+left || ended != w.finished || v.Ended() != ended || v.Arrived() != w.submitted:
		w.fail("%d jobs arrived, %d finished, %d are left", w.submitted, w.finished, left)
	case !cut && left > 0:
		w.fail("the run is over at %v and %d jobs wait, %d run", v.Now(), len(v.Waiting()), len(v.Running()))
	case jct != w.inSystem:
		w.fail("Little: jobs are in the system for %d ns, the integral of their number is %d", jct, w.inSystem)
	case waits != w.inQueue:
		w.fail("Little: jobs wait for %d ns, the integral of the queue's length is %d", waits, w.inQueue)
	}
	return w.err
}

// steadily reports whether every job runs exactly for its work.
func (x *world) steadily() bool {
	c := &x.cfg
	return c.Comm == "none" && c.Overhead == sim.Overhead{} && c.Restart == 0 && c.Failures.MTBF == 0 &&
		c.Interference == nil &&
		len(x.spec.Speeds) == 0 && c.Horizon == 0
}

// count adds up how often each situation occurred.
func (w *witness) count(sum map[string]int) {
	for k, n := range w.kinds {
		sum[sim.EventKind(k).String()] += n
	}
	sum["refused"] += w.s.Refused().Count
	sum["decision"] += w.decisions
	if w.inQueue > 0 {
		sum["wait"]++
	}
	if w.finished == w.submitted {
		sum["drained"]++
	} else {
		sum["cut off"]++
	}
	for what, n := range w.seen {
		sum[what] += n
	}
}
