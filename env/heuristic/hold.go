package heuristic

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"

	"clustergym/env/predict"
	"clustergym/env/sim"
	"clustergym/internal/fault"
)

// Hold are the weights of hold, an order that can hold jobs back although they fit. It never stops a running job. What is known of run
// times, and what is free, decides; nothing is remembered, so it can play on from any state.
//
// Let r be the estimated run time of a job in hours, at least one second, g its GPUs, w the hours for which it has waited, G the GPUs of the cluster and q those
// for which all waiting jobs ask. Jobs are served in order of
//
//	log r + Width·log g + Spread·s
//
// least first, where s is the logarithm of the forecast's mean over its median, 0 for estimates that are no forecasts. Those that do not fit are
// passed over. While any job runs, one that fits is held back if
//
//	Base + Time·log r + Wide·log g + Unsure·s + Full·u + Blocked·b + Both·b·log r + Age·log(1 + w/r) + Queue·log(1 + q/G) + Delay·d + Later·log(1 + l) > 0
//
// u is the share of G that is taken once the job has started, and b the share that is blocked for as long as it runs: its own GPUs, and those of each
// running job, times the part of r for which that job goes on. Let f be the first job in line that does not fit. If it is before this one, and this one would take
// GPUs that f could have before r is over, then d is 1 and l the time for which f would wait for them, over the run time of f; otherwise both are 0.
//
// A running job goes on for its estimate less the time that it has run. With forecasts, that is the median of jobs that have run for so long.
type Hold struct {
	Width  float64 `yaml:"width"`
	Spread float64 `yaml:"spread"`

	Base    float64 `yaml:"base"`
	Time    float64 `yaml:"time"`
	Wide    float64 `yaml:"wide"`
	Unsure  float64 `yaml:"unsure"`
	Full    float64 `yaml:"full"`
	Blocked float64 `yaml:"blocked"`
	Both    float64 `yaml:"both"`
	Age     float64 `yaml:"age"`
	Queue   float64 `yaml:"queue"`
	Delay   float64 `yaml:"delay"`
	Later   float64 `yaml:"later"`
}

// HoldNames returns the names of the weights, in the order of Hold.Weights.
func HoldNames() []string {
	return []string{"width", "spread", "base", "time", "wide", "unsure", "full", "blocked", "both", "age", "queue", "delay", "later"}
}

// Weights returns where the weights are, in the order of HoldNames.
func (h *Hold) Weights() []*float64 {
	return []*float64{&h.Width, &h.Spread, &h.Base, &h.Time, &h.Wide, &h.Unsure, &h.Full, &h.Blocked, &h.Both, &h.Age, &h.Queue, &h.Delay, &h.Later}
}

// IsZero reports whether no weights are given.
func (h Hold) IsZero() bool { return h == Hold{} }

// Validate reports every fault.
func (h *Hold) Validate() error {
	var l fault.List
	for i, w := range h.Weights() {
		l.Add(math.Abs(*w) <= HeaviestHold || w == &h.Base && *w == unheld, HoldNames()[i], *w, "a number from -1e6 to 1e6")
	}
	return l.Err()
}

// DefaultHold returns the weights that hold has with these estimates if none are given. gymctl tune has found them for the workloads of
// quickstart-exact and, if estimates are forecasts, quickstart; docs/schedulers.md says how well they carry over to others.
func DefaultHold(e sim.Estimates) Hold {
	if e.Causal() {
		return Hold{
			Width: 0.68, Spread: 0.08,
			Base: -2.33, Time: -0.07, Wide: 0.41, Unsure: -0.04, Full: 1.63, Blocked: 0.61, Both: 0.41, Age: -0.8, Queue: -1.08, Delay: 0.17, Later: 0.1,
		}
	}
	return Hold{
		Width: 0.85,
		Base:  -3.04, Time: 0.11, Wide: 0.31, Full: 2.47, Blocked: 0.12, Both: 0.16, Age: -0.61, Queue: -0.12, Delay: 0.34, Later: 0.35,
	}
}

// HeaviestHold is the bound of a weight's size.
const HeaviestHold = 1e6

// unheld is a Base that holds nothing back, whatever the other weights.
const unheld = -1e300

// holder is the policy hold.
type holder struct {
	cfg  Config
	hold Hold
	est  sim.Estimates
	put  placer

	line  []inLine  // waiting jobs by key and position; some may have left
	asked int       // thousandths of GPUs of all in line
	jobs  []heldJob // by job
	run   uint64    // number of the current run: what jobs have of others is out of date
	seen  int       // jobs before this position have been queued
	open  bool      // the current point has been seen
	err   error     // found by Reset

	gangs []goesOn  // running jobs, those that end first at the front
	fresh []goesOn  // scratch: those whose place is new
	sums  []holding // by number of these
}

// inLine is a job that waits.
type inLine struct {
	entry
	milli int // thousandths of GPUs, which add up without rounding
}

// heldJob is what is known of a job in the system. What follows from its request and estimate alone is kept from one run to the next, because
// rollouts begin thousands of runs with the same jobs.
type heldJob struct {
	run            uint64 // in which the rest has been set
	pos            int
	queued, listed bool // it is in line; among gangs

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

// goesOn is a running job.
type goesOn struct {
	job   sim.Job
	pos   int
	begun time.Duration // now less the time that it has run; it moves where a job does not run although it has GPUs
	milli int
	end   time.Duration // when it is expected to end
	renew time.Duration // when that changes
}

// holding is what some running jobs hold: thousandths of GPUs, and the sum of their products with the hours at which they end.
type holding struct {
	milli int
	until float64
}

func newHold(cfg Config) (Policy, error) {
	h := &holder{cfg: cfg, hold: cfg.Hold}
	var err error
	if h.put, err = newPlacement(cfg); err != nil {
		return nil, err
	}
	h.est = cfg.Estimates
	h.est.Seed = cfg.Seed
	if h.hold.IsZero() {
		h.hold = DefaultHold(h.est)
	}
	return h, nil
}

// Unheld returns the weights of the same order, which holds nothing back.
func (h Hold) Unheld() Hold { return Hold{Width: h.Width, Spread: h.Spread, Base: unheld} }

// Name implements Policy.
func (h *holder) Name() string { return "hold" }

// Reseed implements Policy.
func (h *holder) Reseed(seed uint64) {
	h.cfg.Seed, h.est.Seed = seed, seed
	if p, ok := h.put.(interface{ Reseed(seed uint64) }); ok {
		p.Reseed(seed)
	}
}

// Reset implements sim.Scheduler.
func (h *holder) Reset(v *sim.View) {
	h.run++
	h.line, h.asked, h.gangs, h.open, h.err = h.line[:0], 0, h.gangs[:0], false, nil
	h.put.Reset()
	for _, j := range v.Waiting() {
		if h.err = h.meet(v, j); h.err != nil {
			return // Decide reports it
		}
		h.line = append(h.line, h.entry(j))
		h.jobs[j].queued = true
		h.asked += h.jobs[j].milli
	}
	slices.SortFunc(h.line, func(a, b inLine) int { return a.compare(&b.entry) })
	h.seen = v.Arrived()
}

// meet writes down what is known of j.
func (h *holder) meet(v *sim.View, j sim.Job) error {
	for int(j) >= len(h.jobs) {
		h.jobs = append(h.jobs, heldJob{})
	}
	k := &h.jobs[j]
	if k.run == h.run && k.pos == v.Pos(j) {
		return nil
	}
	if err := h.est.Check(v, j); err != nil {
		return fmt.Errorf("hold: %w", err)
	}
	k.run, k.pos, k.queued, k.listed = h.run, v.Pos(j), false, false
	estimate, gpus := h.est.Of(v, j), milli(v, j)
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

func (h *holder) entry(j sim.Job) inLine {
	k := &h.jobs[j]
	return inLine{entry{key: k.lr + h.hold.Width*k.lg + h.hold.Spread*k.s, pos: k.pos, job: j}, k.milli}
}

// queue takes in a job that waits.
func (h *holder) queue(v *sim.View, j sim.Job) error {
	if err := h.meet(v, j); err != nil {
		return err
	}
	k := &h.jobs[j]
	if k.queued {
		return nil
	}
	k.queued = true
	e := h.entry(j)
	i, _ := slices.BinarySearchFunc(h.line, e, func(a, b inLine) int { return a.compare(&b.entry) })
	h.line = slices.Insert(h.line, i, e)
	h.asked += k.milli
	return nil
}

// observe processes the events since the last point.
func (h *holder) observe(v *sim.View, p *sim.Point) error {
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
		if err := h.queue(v, e.Job); err != nil {
			return err
		}
	}
	return nil
}

// Decide implements sim.Scheduler.
func (h *holder) Decide(v *sim.View, p *sim.Point, d *sim.Decision) error {
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
func (h *holder) start(v *sim.View, d *sim.Decision) (bool, error) {
	if len(h.line) != len(v.Waiting()) {
		h.sweep(v)
	}
	c := v.Cluster()
	free := c.FreeMilli()
	if !slices.ContainsFunc(h.line, func(e inLine) bool { return e.milli <= free }) {
		return false, nil
	}
	s := situation{now: v.Now(), all: 1000 * ownGPUs(c), first: -1}
	s.taken, s.queue = 1000*c.Own()-free, math.Log1p(float64(h.asked)/float64(s.all))
	runs := len(v.Running()) > 0
	if runs {
		if err := h.look(v); err != nil {
			return false, err
		}
	}
	for i := range h.line {
		e := &h.line[i]
		if e.milli > free || v.Decided(e.job) || !v.Fits(e.job) {
			if s.first < 0 && !v.Decided(e.job) {
				h.wait(&s, e.job, free)
			}
			continue
		}
		if runs && h.held(v, &s, e.job) {
			continue
		}
		ok := c.Pool()
		if d.GPUs = d.GPUs[:0]; !ok {
			d.GPUs, ok = h.put.Place(v, e.job, c, d.GPUs)
		}
		if !ok {
			continue
		}
		d.Op, d.Job = sim.StartJob, e.job
		h.asked -= e.milli
		h.jobs[e.job].queued = false
		h.line = slices.Delete(h.line, i, i+1)
		return true, nil
	}
	return false, nil
}

// sweep drops jobs that others have started, or that have left.
func (h *holder) sweep(v *sim.View) {
	h.asked = 0
	h.line = slices.DeleteFunc(h.line, func(e inLine) bool {
		if v.Pos(e.job) == e.pos && v.State(e.job) == sim.Waiting {
			h.asked += e.milli
			return false
		}
		if k := &h.jobs[e.job]; k.pos == e.pos {
			k.queued = false
		}
		return true
	})
}

// situation is what held looks at beside the job.
type situation struct {
	now        time.Duration
	all, taken int           // thousandths of GPUs
	queue      float64       // log(1 + q/G)
	first      sim.Job       // in line that does not fit, −1 = none
	due        time.Duration // when it has GPUs enough
	spare      int           // and how many are left over then
}

// look brings the list of running jobs up to date.
func (h *holder) look(v *sim.View) error {
	now, gone := v.Now(), false
	kept := h.gangs[:0]
	h.fresh = h.fresh[:0]
	for i := range h.gangs {
		g := h.gangs[i]
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
	if h.gangs = kept; len(kept)+len(h.fresh) < len(v.Running()) {
		for _, j := range v.Running() {
			if err := h.meet(v, j); err != nil {
				return err
			}
			if k := &h.jobs[j]; !k.listed {
				k.listed = true
				g := goesOn{job: j, pos: k.pos, milli: k.milli}
				h.expect(v, &g)
				h.fresh = append(h.fresh, g)
			}
		}
	}
	if n := len(h.fresh); n > 0 {
		slices.SortFunc(h.fresh, func(a, b goesOn) int {
			if a.before(&b) {
				return -1
			}
			return 1
		})
		h.gangs = append(h.gangs, h.fresh...)
		for i, a, b := len(h.gangs)-1, len(kept)-1, n-1; b >= 0 && a >= 0; i-- { // merge from the end
			if h.fresh[b].before(&kept[a]) {
				h.gangs[i], a = kept[a], a-1
			} else {
				h.gangs[i], b = h.fresh[b], b-1
			}
			if a < 0 {
				copy(h.gangs, h.fresh[:b+1])
			}
		}
	}
	if len(h.fresh) > 0 || gone || len(h.sums) == 0 {
		h.sums = append(h.sums[:0], holding{})
		for i := range h.gangs {
			g, s := &h.gangs[i], h.sums[i]
			h.sums = append(h.sums, holding{s.milli + g.milli, s.until + float64(g.milli)*g.end.Hours()})
		}
	}
	return nil
}

func (g *goesOn) before(o *goesOn) bool { return g.end < o.end || g.end == o.end && g.pos < o.pos }

// expect computes when g, which runs, is expected to end, and for how long that stands.
func (h *holder) expect(v *sim.View, g *goesOn) {
	now := v.Now()
	g.begun = now - v.Ran(g.job)
	if !h.est.Causal() {
		g.end = now + h.est.Left(v, g.job)
		g.renew = g.end // if it outlives its estimate
		return
	}
	// What forecasts say changes slowly, so it is computed at ages that grow by a quarter of a doubling, and stands between them.
	k, ran := &h.jobs[g.job], now-g.begun
	number, age, next := ageStep(ran)
	m := &k.medians[int(number)%len(k.medians)]
	if m.age != number {
		*m = median{number, v.Forecast(g.job).Draw(0.5, age)}
	}
	g.end, g.renew = g.begun+m.lasting, g.begun+next
}

// ageStep returns the number, from 1, of the greatest age that is at most t, among 0, and four in each doubling from a second on; that age, and the next.
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
func (h *holder) wait(s *situation, j sim.Job, free int) {
	s.first = j
	need := h.jobs[j].milli - free
	if len(h.gangs) == 0 {
		return // nothing is held back then
	}
	i := 0 // running jobs that have ended by then
	if need > 0 {
		i, _ = slices.BinarySearchFunc(h.sums, need, func(a holding, x int) int { return a.milli - x })
	}
	if i >= len(h.sums) { // never, as things are
		s.due, s.spare = math.MaxInt64, 0
		return
	}
	s.due = s.now
	if i > 0 {
		s.due = max(s.due, h.gangs[i-1].end)
	}
	for i < len(h.gangs) && h.gangs[i].end <= s.due {
		i++
	}
	s.spare = h.sums[i].milli - need
}

// held reports whether j, which fits, is held back.
func (h *holder) held(v *sim.View, s *situation, j sim.Job) bool {
	w, k, now := &h.hold, &h.jobs[j], s.now.Hours()
	// Running jobs up to here have ended, up to there end before j would.
	here, _ := slices.BinarySearchFunc(h.gangs, s.now, func(a goesOn, x time.Duration) int { return cmp.Compare(a.end, x) })
	there, _ := slices.BinarySearchFunc(h.gangs, s.now+max(k.estimate, time.Second), func(a goesOn, x time.Duration) int { return cmp.Compare(a.end, x) })
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
