package tuned

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"

	"clustergym/internal/grow"
	"clustergym/simulator/predict"
	"clustergym/simulator/schedulers/place"
	"clustergym/simulator/schedulers/queue"
	"clustergym/simulator/sim"
)

// Holder is the policy hold.
type Holder struct {
	hold Hold
	est  sim.Estimates
	put  place.Placement

	queue []waiting // waiting jobs by key and position; some may have left
	asked int       // thousandths of GPUs of all in line
	jobs  []holdJob // by job
	run   uint64    // number of the current run: what jobs have of others is out of date
	seen  int       // jobs before this position have been queued
	open  bool      // the current point has been seen
	err   error     // found by Reset

	running []running // running jobs, those that end first at the front
	fresh   []running // scratch: those whose place is new
	sums    []held    // by number of these
}

// waiting is a job that waits.
type waiting struct {
	queue.Entry
	milli int // thousandths of GPUs, which add up without rounding
}

// holdJob is what is known of a job in the system. What follows from its request and estimate alone is kept from one
// run to the next, because rollouts begin thousands of runs with the same jobs.
type holdJob struct {
	run            uint64 // in which the rest has been set
	pos            int
	queued, listed bool // it is in the queue; among the running jobs

	milli     int
	estimate  time.Duration
	forecast  [predict.Quantiles]time.Duration
	r, lr, lg float64 // hours; logarithms of hours and of GPUs
	s         float64 // spread

	medians [8]median // of jobs that have run for so long, by age modulo their number
}

// median is how long half of the jobs of an age run at most.
type median struct {
	age     int32 // number of ageStep; 0 = not computed
	lasting time.Duration
}

// running is a running job.
type running struct {
	job   sim.Job
	pos   int
	begun time.Duration // now less the time that it has run; it moves where a job does not run although it has GPUs
	milli int
	end   time.Duration // when it is expected to end
	renew time.Duration // when that changes
}

// held is what some running jobs hold: thousandths of GPUs, and the sum of their products with the hours at which they
// end.
type held struct {
	milli int
	until float64
}

// NewHolder returns the policy hold with these weights; zero weights = the default ones of est.
func NewHolder(w Hold, est sim.Estimates, p place.Placement) *Holder {
	if w.IsZero() {
		w = DefaultHold(est)
	}
	return &Holder{hold: w, est: est, put: p}
}

// Name implements Policy.
func (h *Holder) Name() string { return "hold" }

// Reseed implements Policy.
func (h *Holder) Reseed(seed uint64) {
	h.est.Seed = seed
	place.Reseed(h.put, seed)
}

// Reset implements sim.Scheduler.
func (h *Holder) Reset(v *sim.View) {
	h.run++
	h.queue, h.asked, h.running, h.open, h.err = h.queue[:0], 0, h.running[:0], false, nil
	h.put.Reset()
	for _, j := range v.Waiting() {
		if h.err = h.meet(v, j); h.err != nil {
			return // Decide reports it
		}
		h.queue = append(h.queue, h.entry(j))
		h.jobs[j].queued = true
		h.asked += h.jobs[j].milli
	}
	slices.SortFunc(h.queue, func(a, b waiting) int { return a.Compare(&b.Entry) })
	h.seen = v.Arrived()
}

// meet writes down what is known of j.
func (h *Holder) meet(v *sim.View, j sim.Job) error {
	k := grow.At(&h.jobs, j)
	if k.run == h.run && k.pos == v.Pos(j) {
		return nil
	}
	if err := h.est.Check(v, j); err != nil {
		return fmt.Errorf("hold: %w", err)
	}
	k.run, k.pos, k.queued, k.listed = h.run, v.Pos(j), false, false
	estimate, gpus := h.est.Of(v, j), queue.Milli(v, j)
	var f *predict.Forecast
	if h.est.Causal() {
		f = v.Forecast(j)
	}
	if k.estimate == estimate && k.milli == gpus && (f == nil || k.forecast == f.Q) {
		return nil
	}
	k.estimate, k.milli, k.medians = estimate, gpus, [len(k.medians)]median{}
	k.r = max(estimate, time.Second).Hours()
	k.lr, k.lg, k.s = math.Log(k.r), math.Log(float64(max(gpus, 1))/1000), 0
	if f != nil {
		k.forecast = f.Q
		k.s = math.Log(float64(f.Mean()) / float64(f.Median()))
	}
	return nil
}

func (h *Holder) entry(j sim.Job) waiting {
	k := &h.jobs[j]
	return waiting{queue.Entry{Key: k.lr + h.hold.Width*k.lg + h.hold.Spread*k.s, Pos: k.pos, Job: j}, k.milli}
}

// add takes in a job that waits.
func (h *Holder) add(v *sim.View, j sim.Job) error {
	if err := h.meet(v, j); err != nil {
		return err
	}
	k := &h.jobs[j]
	if k.queued {
		return nil
	}
	k.queued = true
	e := h.entry(j)
	i, _ := slices.BinarySearchFunc(h.queue, e, func(a, b waiting) int { return a.Compare(&b.Entry) })
	h.queue = slices.Insert(h.queue, i, e)
	h.asked += k.milli
	return nil
}

// observe processes the events since the last point.
func (h *Holder) observe(v *sim.View, p *sim.Point) error {
	for i := range p.Events {
		e := &p.Events[i]
		switch e.Kind {
		case sim.Submit:
			// A job that Reset found waiting can also be among the events of the first point.
			if v.Pos(e.Job) < h.seen {
				continue
			}
		case sim.Preempt, sim.Fail: // other code has stopped it, or its node
			if v.State(e.Job) != sim.Waiting {
				continue
			}
		default:
			continue
		}
		if err := h.add(v, e.Job); err != nil {
			return err
		}
	}
	return nil
}

// Decide implements sim.Scheduler.
func (h *Holder) Decide(v *sim.View, p *sim.Point, d *sim.Decision) error {
	if h.err != nil {
		return h.err
	}
	if !h.open {
		h.open = true
		if err := h.observe(v, p); err != nil {
			return err
		}
	}
	started, err := h.start(v, d)
	if !started {
		d.Op, d.Until, h.open = sim.Wait, 0, false
	}
	return err
}

// start looks for the first job in line that fits and is not held back.
func (h *Holder) start(v *sim.View, d *sim.Decision) (bool, error) {
	if len(h.queue) != len(v.Waiting()) {
		h.sweep(v)
	}
	c := v.Cluster()
	free := c.FreeMilli()
	if !slices.ContainsFunc(h.queue, func(e waiting) bool { return e.milli <= free }) {
		return false, nil
	}
	s := pass{now: v.Now(), all: 1000 * place.OwnGPUs(c), first: -1}
	s.taken, s.queue = 1000*c.Own()-free, math.Log1p(float64(h.asked)/float64(s.all))
	runs := len(v.Running()) > 0
	if runs {
		if err := h.look(v); err != nil {
			return false, err
		}
	}
	for i := range h.queue {
		e := &h.queue[i]
		if e.milli > free || v.Decided(e.Job) || !v.Fits(e.Job) {
			if s.first < 0 && !v.Decided(e.Job) {
				h.wait(&s, e.Job, free)
			}
			continue
		}
		if runs && h.holdsBack(v, &s, e.Job) {
			continue
		}
		ok := c.Pool()
		if d.GPUs = d.GPUs[:0]; !ok {
			d.GPUs, ok = h.put.Place(v, e.Job, v.Request(e.Job), c, d.GPUs)
		}
		if !ok {
			continue
		}
		d.Op, d.Job = sim.StartJob, e.Job
		h.asked -= e.milli
		h.jobs[e.Job].queued = false
		h.queue = slices.Delete(h.queue, i, i+1)
		return true, nil
	}
	return false, nil
}

// sweep drops jobs that others have started, or that have left.
func (h *Holder) sweep(v *sim.View) {
	h.asked = 0
	h.queue = slices.DeleteFunc(h.queue, func(e waiting) bool {
		if v.Pos(e.Job) == e.Pos && v.State(e.Job) == sim.Waiting {
			h.asked += e.milli
			return false
		}
		if k := &h.jobs[e.Job]; k.pos == e.Pos {
			k.queued = false
		}
		return true
	})
}

// pass is what holdsBack looks at besides the job.
type pass struct {
	now        time.Duration
	all, taken int           // thousandths of GPUs
	queue      float64       // log(1 + q/G)
	first      sim.Job       // in line that does not fit, −1 = none
	due        time.Duration // when it has GPUs enough
	spare      int           // and how many are left over then
}

// look brings the list of running jobs up to date.
func (h *Holder) look(v *sim.View) error {
	now, gone := v.Now(), false
	kept := h.running[:0]
	h.fresh = h.fresh[:0]
	for i := range h.running {
		g := h.running[i]
		if v.Pos(g.job) != g.pos || v.State(g.job) != sim.Running {
			if k := &h.jobs[g.job]; k.pos == g.pos {
				k.listed = false
			}
			gone = true
			continue
		}
		if now >= g.renew || now-v.Ran(g.job) != g.begun {
			h.expect(v, &g)
			h.fresh = append(h.fresh, g)
			continue
		}
		kept = append(kept, g)
	}
	if h.running = kept; len(kept)+len(h.fresh) < len(v.Running()) {
		for _, j := range v.Running() {
			if err := h.meet(v, j); err != nil {
				return err
			}
			if k := &h.jobs[j]; !k.listed {
				k.listed = true
				g := running{job: j, pos: k.pos, milli: k.milli}
				h.expect(v, &g)
				h.fresh = append(h.fresh, g)
			}
		}
	}
	if n := len(h.fresh); n > 0 {
		slices.SortFunc(h.fresh, func(a, b running) int {
			if a.before(&b) {
				return -1
			}
			return 1
		})
		h.running = append(h.running, h.fresh...)
		for i, a, b := len(h.running)-1, len(kept)-1, n-1; b >= 0 && a >= 0; i-- { // merge from the end
			if h.fresh[b].before(&kept[a]) {
				h.running[i], a = kept[a], a-1
			} else {
				h.running[i], b = h.fresh[b], b-1
			}
			if a < 0 {
				copy(h.running, h.fresh[:b+1])
			}
		}
	}
	if len(h.fresh) > 0 || gone || len(h.sums) == 0 {
		h.sums = append(h.sums[:0], held{})
		for i := range h.running {
			g, s := &h.running[i], h.sums[i]
			h.sums = append(h.sums, held{s.milli + g.milli, s.until + float64(g.milli)*g.end.Hours()})
		}
	}
	return nil
}

func (g *running) before(o *running) bool { return g.end < o.end || g.end == o.end && g.pos < o.pos }

// expect computes when g, which runs, is expected to end, and for how long that stands.
func (h *Holder) expect(v *sim.View, g *running) {
	now := v.Now()
	g.begun = now - v.Ran(g.job)
	if !h.est.Causal() {
		g.end = now + h.est.Left(v, g.job)
		g.renew = g.end // if it outlives its estimate
		return
	}
	// What forecasts say changes slowly, so it is computed at ages that grow by a quarter of a doubling, and stands
	// between them.
	k, ran := &h.jobs[g.job], now-g.begun
	number, age, next := ageStep(ran)
	m := &k.medians[int(number)%len(k.medians)]
	if m.age != number {
		*m = median{number, v.Forecast(g.job).Draw(0.5, age)}
	}
	g.end, g.renew = g.begun+m.lasting, g.begun+next
}

// ageStep returns the number, from 1, of the greatest age that is at most t, among 0, and four in each doubling from a
// second on; that age, and the next.
func ageStep(t time.Duration) (number int32, age, next time.Duration) {
	const unit = time.Second
	n := uint64(t / unit)
	if n == 0 {
		return 1, 0, unit
	}
	top := bits.Len64(n) - 1
	quarter := uint64(t/(unit/4)) >> top & 3
	step := (unit << top) / 4
	return int32(top*4) + int32(quarter) + 2, step * time.Duration(4+quarter), step * time.Duration(5+quarter)
}

// wait computes when j, which does not fit, could start: when as many GPUs are free as it asks for.
func (h *Holder) wait(s *pass, j sim.Job, free int) {
	s.first = j
	need := h.jobs[j].milli - free
	if len(h.running) == 0 {
		return // nothing is held back then
	}
	i := 0 // running jobs that have ended by then
	if need > 0 {
		i, _ = slices.BinarySearchFunc(h.sums, need, func(a held, x int) int { return a.milli - x })
	}
	if i >= len(h.sums) { // never, as things are
		s.due, s.spare = math.MaxInt64, 0
		return
	}
	s.due = s.now
	if i > 0 {
		s.due = max(s.due, h.running[i-1].end)
	}
	for i < len(h.running) && h.running[i].end <= s.due {
		i++
	}
	s.spare = h.sums[i].milli - need
}

// held reports whether j, which fits, is held back.
func (h *Holder) holdsBack(v *sim.View, s *pass, j sim.Job) bool {
	w, k, now := &h.hold, &h.jobs[j], s.now.Hours()
	// Running jobs up to here have ended, up to there end before j would.
	here, _ := slices.BinarySearchFunc(h.running, s.now,
		func(a running, x time.Duration) int { return cmp.Compare(a.end, x) })
	there, _ := slices.BinarySearchFunc(h.running, s.now+max(k.estimate, time.Second),
		func(a running, x time.Duration) int { return cmp.Compare(a.end, x) })
	a, b, last := &h.sums[here], &h.sums[there], &h.sums[len(h.sums)-1]
	all := float64(s.all)
	blocked := (float64(k.milli+last.milli-b.milli) + max(0, b.until-a.until-float64(b.milli-a.milli)*now)/k.r) / all
	wait := (s.now - v.Trace(j).Submit).Hours()
	z := w.Base + w.Time*k.lr + w.Wide*k.lg + w.Unsure*k.s + w.Full*float64(s.taken+k.milli)/all +
		(w.Blocked+w.Both*k.lr)*blocked + w.Age*math.Log1p(wait/k.r) + w.Queue*s.queue
	if s.first >= 0 && k.milli > s.spare && s.due != math.MaxInt64 {
		if over := max(k.estimate, time.Second) - (s.due - s.now); over > 0 {
			z += w.Delay + w.Later*math.Log1p(over.Hours()/h.jobs[s.first].r)
		}
	}
	return z > 0
}
