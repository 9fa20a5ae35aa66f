package heuristic

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"

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
		l.Add(math.Abs(*w) <= heaviest || w == &h.Base && *w == unheld, HoldNames()[i], *w, "a number from -1e6 to 1e6")
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

// heaviest is the bound of a weight's size.
const heaviest = 1e6

// unheld is a Base that holds nothing back, whatever the other weights.
const unheld = -1e300

// holder is the policy hold.
type holder struct {
	cfg  Config
	hold Hold
	name string
	est  sim.Estimates
	put  placer

	line []entry   // waiting jobs by key and position; some may have left
	jobs []heldJob // by job
	seen int       // jobs before this position have been queued
	open bool      // the current point has been seen
	err  error     // found by Reset

	// Of a decision.
	gangs []goesOn // running jobs, those that end first at the front
	sums  []goesOn // by number of these: their GPUs, and the sum of GPUs × hours
}

// heldJob is what is known of a job in the system.
type heldJob struct {
	pos       int
	queued    bool
	r, lr, lg float64       // hours; logarithms of hours and of GPUs
	milli     int           // thousandths of GPUs
	s         float64       // spread
	grid      int32         // the age at which lasting was computed
	lasting   time.Duration // median of jobs that have run for so long
}

// goesOn is a running job: its GPUs in thousandths, which add up without rounding, and the hours for which it goes on.
type goesOn struct {
	milli int
	left  float64
}

func newHold(cfg Config) (Policy, error) {
	h := &holder{cfg: cfg, hold: cfg.Hold, name: "hold"}
	var err error
	if h.put, err = newPlacement(cfg); err != nil {
		return nil, err
	}
	h.est, err = sim.ParseEstimates(cfg.Estimates)
	h.est.Seed = cfg.Seed
	if h.hold.IsZero() {
		h.hold = DefaultHold(h.est)
	}
	return h, err
}

// Unheld returns the weights of the same order, which holds nothing back.
func (h Hold) Unheld() Hold { return Hold{Width: h.Width, Spread: h.Spread, Base: unheld} }

// Name implements Policy.
func (h *holder) Name() string { return h.name }

// Reseed implements Policy.
func (h *holder) Reseed(seed uint64) {
	h.cfg.Seed, h.est.Seed = seed, seed
	if p, ok := h.put.(interface{ Reseed(seed uint64) }); ok {
		p.Reseed(seed)
	}
}

// Reset implements sim.Scheduler.
func (h *holder) Reset(v *sim.View) {
	h.line, h.jobs, h.open, h.err = h.line[:0], h.jobs[:0], false, nil
	h.put.Reset()
	for _, list := range [...][]sim.Job{v.Waiting(), v.Running()} {
		for _, j := range list {
			if err := h.meet(v, j); err != nil && h.err == nil {
				h.err = err // Decide reports it
			}
		}
	}
	for _, j := range v.Waiting() {
		h.line = append(h.line, h.entry(v, j))
		h.jobs[j].queued = true
	}
	slices.SortFunc(h.line, func(a, b entry) int { return a.compare(&b) })
	h.seen = v.Arrived()
}

// meet writes down what is known of j.
func (h *holder) meet(v *sim.View, j sim.Job) error {
	for int(j) >= len(h.jobs) {
		h.jobs = append(h.jobs, heldJob{pos: -1})
	}
	if err := h.est.Check(v, j); err != nil {
		return fmt.Errorf("%s: %w", h.name, err)
	}
	k := &h.jobs[j]
	*k = heldJob{pos: v.Pos(j), grid: -1, milli: milli(v, j)}
	k.r = max(h.est.Of(v, j), time.Second).Hours()
	k.lr, k.lg = math.Log(k.r), math.Log(float64(max(k.milli, 1))/1000)
	if h.est.Causal() {
		if f := v.Forecast(j); f.Median() > 0 {
			k.s = math.Log(float64(f.Mean()) / float64(f.Median()))
		}
	}
	return nil
}

func (h *holder) entry(v *sim.View, j sim.Job) entry {
	k := &h.jobs[j]
	return entry{key: k.lr + h.hold.Width*k.lg + h.hold.Spread*k.s, pos: k.pos, job: j}
}

// queue takes in a job that waits.
func (h *holder) queue(v *sim.View, j sim.Job) error {
	if int(j) >= len(h.jobs) || h.jobs[j].pos != v.Pos(j) {
		if err := h.meet(v, j); err != nil {
			return err
		}
	}
	if h.jobs[j].queued {
		return nil
	}
	h.jobs[j].queued = true
	e := h.entry(v, j)
	i, _ := slices.BinarySearchFunc(h.line, e, func(a, b entry) int { return a.compare(&b) })
	h.line = slices.Insert(h.line, i, e)
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
	if !h.start(v, d) {
		d.Op, d.Until, h.open = sim.Wait, 0, false
	}
	return nil
}

// start looks for the first job in line that fits and is not held back.
func (h *holder) start(v *sim.View, d *sim.Decision) bool {
	c := v.Cluster()
	free, asked, room, kept := c.FreeMilli(), 0, false, h.line[:0]
	for _, e := range h.line {
		k := &h.jobs[e.job]
		if k.pos != e.pos || v.Pos(e.job) != e.pos || v.State(e.job) != sim.Waiting {
			if k.pos == e.pos {
				k.queued = false
			}
			continue
		}
		kept = append(kept, e)
		asked += k.milli
		room = room || k.milli <= free
	}
	h.line = kept
	if !room {
		return false
	}
	s := situation{all: 1000 * c.GPUs(), first: -1}
	s.taken, s.queue = s.all-free, math.Log1p(float64(asked)/float64(s.all))
	runs := len(v.Running()) > 0
	if runs {
		h.look(v)
	}
	for i := range h.line {
		j := h.line[i].job
		k := &h.jobs[j]
		if k.milli > free || v.Decided(j) || !v.Fits(j) {
			if s.first < 0 && !v.Decided(j) {
				h.wait(&s, j, free)
			}
			continue
		}
		if runs && h.held(v, &s, j) {
			continue
		}
		ok := c.Pool()
		if d.GPUs = d.GPUs[:0]; !ok {
			d.GPUs, ok = h.put.Place(v, j, c, d.GPUs)
		}
		if !ok {
			continue
		}
		d.Op, d.Job = sim.StartJob, j
		k.queued = false
		h.line = slices.Delete(h.line, i, i+1)
		return true
	}
	return false
}

// situation is what held looks at beside the job.
type situation struct {
	all, taken int     // thousandths of GPUs
	queue      float64 // log(1 + q/G)
	first      sim.Job // in line that does not fit, −1 = none
	due        float64 // after how many hours it has GPUs enough
	spare      int     // and how many are left over then
}

// look sorts the running jobs by the time for which they go on.
func (h *holder) look(v *sim.View) {
	h.gangs = h.gangs[:0]
	for _, j := range v.Running() {
		h.gangs = append(h.gangs, goesOn{milli(v, j), h.left(v, j)})
	}
	slices.SortFunc(h.gangs, func(a, b goesOn) int {
		return cmp.Compare(a.left, b.left)
	})
	h.sums = append(h.sums[:0], goesOn{})
	for i := range h.gangs {
		g, s := &h.gangs[i], &h.sums[i]
		h.sums = append(h.sums, goesOn{s.milli + g.milli, s.left + float64(g.milli)*g.left})
	}
}

// left returns for how many hours j, which runs, goes on.
func (h *holder) left(v *sim.View, j sim.Job) float64 {
	if !h.est.Causal() {
		return h.est.Left(v, j).Hours()
	}
	if int(j) >= len(h.jobs) || h.jobs[j].pos != v.Pos(j) {
		if h.meet(v, j) != nil {
			return 0
		}
	}
	// What forecasts say changes slowly, so it is computed at ages that grow by a quarter, and not at those between.
	k, ran := &h.jobs[j], v.Ran(j)
	if g, age := ageStep(ran); g != k.grid {
		k.grid, k.lasting = g, v.Forecast(j).Draw(0.5, age)
	}
	return max(0, (k.lasting - ran).Hours())
}

// ageStep returns the number of the greatest age that is at most t, among 0, and four in each doubling from a second on; and that age.
func ageStep(t time.Duration) (int32, time.Duration) {
	const unit = time.Second
	n := uint64(t / unit)
	if n == 0 {
		return 0, 0
	}
	top := bits.Len64(n) - 1
	quarter := uint64(t/(unit/4)) >> top & 3
	return int32(top*4) + int32(quarter) + 1, (unit << top) / 4 * time.Duration(4+quarter)
}

// wait computes when j, which does not fit, could start: when as many GPUs are free as it asks for.
func (h *holder) wait(s *situation, j sim.Job, free int) {
	s.first = j
	need := h.jobs[j].milli - free
	i, _ := slices.BinarySearchFunc(h.sums, need, func(a goesOn, x int) int { return a.milli - x })
	switch {
	case len(h.sums) == 0 || need <= 0: // it is not GPUs that it lacks
		s.due, s.spare = 0, -need
	case i >= len(h.sums): // never, as things are
		s.due, s.spare = math.Inf(1), 0
	default:
		for s.due = h.gangs[i-1].left; i < len(h.gangs) && h.gangs[i].left == s.due; i++ {
		}
		s.spare = h.sums[i].milli - need
	}
}

// held reports whether j, which fits, is held back.
func (h *holder) held(v *sim.View, s *situation, j sim.Job) bool {
	w, k := &h.hold, &h.jobs[j]
	n, _ := slices.BinarySearchFunc(h.gangs, k.r, func(a goesOn, r float64) int { return cmp.Compare(a.left, r) })
	last := &h.sums[len(h.sums)-1]
	all := float64(s.all)
	blocked := (float64(k.milli+last.milli-h.sums[n].milli) + h.sums[n].left/k.r) / all
	wait := (v.Now() - v.Trace(j).Submit).Hours()
	z := w.Base + w.Time*k.lr + w.Wide*k.lg + w.Unsure*k.s + w.Full*float64(s.taken+k.milli)/all +
		(w.Blocked+w.Both*k.lr)*blocked + w.Age*math.Log1p(wait/k.r) + w.Queue*s.queue
	if s.first >= 0 && k.milli > s.spare && k.r > s.due {
		z += w.Delay + w.Later*math.Log1p((k.r-s.due)/h.jobs[s.first].r)
	}
	return z > 0
}
