package dally

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
)

// machine is the state of a run.
type machine struct {
	cfg     Config
	load    []Job
	jobs    []job
	spreads []bool // by job: Tiresias does not consolidate its model
	factors Factors
	hook    func(*Event)
	err     error // from factors: the run cannot go on

	cl      *cluster
	find    search
	queue   queue
	seq     uint64
	now     float64
	ticking bool
	eager   bool // every block is an event: gandiva, and tests
	report  *Report

	live    []int32 // in the order of arrival; −1 = ended
	alive   int
	line    []int32 // waiting-only: waiting jobs, by (prio, last, id)
	asked   []int32 // scratch: candidates of a pass
	granted []int32 // scratch: waiting jobs that got GPUs in this pass
	found   []int32 // scratch: GPUs for a candidate
	trace   [2][]float64

	histories []*histories // by GPUs
	memory    float64      // how far back they go
	known     []map[Shape]float64
	models    map[string]int
	model     []int // by job: index of known

	gandiva gandiva
}

// Run simulates jobs; simultaneous arrivals keep their order. It passes every event to hook, which may be nil. A job
// that is larger than the cluster is an error. ctx ends the run early.
func Run(ctx context.Context, jobs []Job, factors Factors, cfg Config, hook func(*Event)) (*Report, error) {
	return run(ctx, jobs, factors, cfg, hook, false)
}

func run(ctx context.Context, jobs []Job, factors Factors, cfg Config, hook func(*Event), eager bool) (*Report, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	m := &machine{
		cfg: cfg, load: jobs, factors: factors, hook: hook, eager: eager || cfg.Policy == "gandiva",
		cl: newCluster(cfg.Racks, cfg.Machines), memory: cfg.Lease * cfg.History,
		jobs: make([]job,
			len(jobs)), spreads: make([]bool, len(jobs)), model: make([]int, len(jobs)), models: map[string]int{},
		report: &Report{Jobs: make([]Result, len(jobs))},
	}
	m.find.c = m.cl
	m.queue.tied = m.tied
	m.gandiva.random = newJavaRandom(cfg.Seed)
	if err := m.begin(); err != nil {
		return nil, err
	}
	for n := 0; len(m.queue.heap) > 0 && m.err == nil; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		m.handle(m.queue.pop())
	}
	return m.report, m.err
}

// begin checks the workload and notes all arrivals.
func (m *machine) begin() error {
	all := m.cl.machines * perMachine
	for i := range m.load {
		w := &m.load[i]
		if w.GPUs < 1 || w.GPUs > all {
			return fmt.Errorf("job %s: got gpus %d, want 1 to the %d of %d racks of %d machines of %d", w.Name, w.GPUs, all,
				m.cfg.Racks, m.cfg.Machines, perMachine)
		}
		if !(w.Arrival >= 0) || !(w.Iterations > 0) || !(w.Time > 0) || w.Iterations >= 1<<53 ||
			math.IsInf(w.Arrival+w.Time, 0) {
			return fmt.Errorf(
				"job %s: got arrival %v, iterations %v and time_per_iteration %v, want an arrival of 0 or more and the others "+
					"above 0", w.Name, w.Arrival, w.Iterations, w.Time)
		}
		if blocks := w.Iterations / m.cfg.Granularity; blocks > 1e9 {
			return fmt.Errorf("job %s: got %v iterations, %.3g blocks of %v, want at most 1e9 blocks: a larger granularity",
				w.Name, w.Iterations, blocks, m.cfg.Granularity)
		}
		j := &m.jobs[i]
		*j = job{rem: w.Iterations, first: -1, waiting: true, last: w.Arrival, n: int32(w.GPUs)}
		j.comped = w.Time * m.cfg.Granularity
		j.ideal = float64(w.Time*w.Iterations) / float64(w.GPUs)
		m.spreads[i] = spreadable[w.Model]
		// Built-in networks use a job's Compute and Bytes besides the model's name.
		key := w.Model
		if w.Compute > 0 {
			key = fmt.Sprint(w.Model, "\x00", w.Compute, "\x00", w.Bytes)
		}
		k, ok := m.models[key]
		if !ok {
			k = len(m.known)
			m.models[key] = k
			m.known = append(m.known, map[Shape]float64{})
		}
		m.model[i] = k
		m.note(event{at: w.Arrival, class: arrival, job: int32(i)})
	}
	return nil
}

// note adds e after the events of its time and class.
func (m *machine) note(e event) {
	m.seq++
	e.seq = m.seq
	m.queue.push(e)
}

func (m *machine) tell(kind EventKind, j int32, gpus []int32) {
	if m.hook != nil {
		m.hook(&Event{At: m.now, Kind: kind, Job: int(j), GPUs: gpus})
	}
}

// handle handles one event.
func (m *machine) handle(e event) {
	m.now = e.at
	switch {
	case e.class == pass:
		m.pass()
	case e.class == blockEnd:
		m.endBlock(e.job)
	case e.job == tick:
		if len(m.queue.heap) > 0 {
			m.note(event{at: m.now + 0.1*m.cfg.Lease, class: arrival, job: tick})
		}
	default:
		j := &m.jobs[e.job]
		j.last, j.seen = m.now, true
		if m.cl.count > 0 {
			m.note(event{at: m.now, class: pass})
		}
		j.at = int32(len(m.live))
		m.live = append(m.live, e.job)
		m.alive++
		m.wait(e.job)
		m.tell(Submit, e.job, nil)
	}
	if len(m.queue.heap) == 0 && m.alive > 0 {
		m.note(event{at: m.now + 60, class: pass})
	}
}

// wait adds j to the line of waiting jobs. A job's rank does not change while it waits.
func (m *machine) wait(j int32) {
	if m.cfg.Variant != "waiting-only" || m.cfg.Policy == "gandiva" {
		return
	}
	at, _ := slices.BinarySearchFunc(m.line, j, m.rank)
	m.line = slices.Insert(m.line, at, j)
}

// rank orders candidates: the lowest priority value, then the job that was assigned GPUs the longest ago, then the
// lowest id.
func (m *machine) rank(a, b int32) int {
	x, y := &m.jobs[a], &m.jobs[b]
	switch {
	case x.prio != y.prio:
		return cmp.Compare(x.prio, y.prio)
	case x.last != y.last:
		return cmp.Compare(x.last, y.last)
	}
	return cmp.Or(cmp.Compare(m.load[a].ID, m.load[b].ID), int(a-b))
}

// grant leases gpus to job i from now.
func (m *machine) grant(i int32, gpus []int32) {
	j := &m.jobs[i]
	for _, g := range gpus {
		m.cl.take(g, i, m.now+m.cfg.Lease)
	}
	j.nxt = append(j.nxt, gpus...)
	if !m.ticking {
		m.ticking = true
		m.note(event{at: m.now + 1, class: arrival, job: tick})
	}
	if j.waiting {
		j.grants[levelOf(m.count(gpus))]++
		m.granted = append(m.granted, i)
		m.tell(Start, i, gpus)
		return
	}
	j.running++
	m.tell(Second, i, gpus)
}

func (m *machine) count(gpus []int32) (n, racks, machines, slots int) {
	racks, machines, slots = m.cl.place(gpus, &m.find.seen)
	return len(gpus), racks, machines, slots
}

// started starts the waiting jobs that got GPUs, in the order of arrival.
func (m *machine) started() {
	slices.SortFunc(m.granted, func(a, b int32) int { return int(m.jobs[a].at - m.jobs[b].at) })
	for _, i := range m.granted {
		j := &m.jobs[i]
		j.waiting = false
		j.queue += m.now - j.last
		if j.first < 0 {
			j.first = m.now
		}
		j.last = m.now
		m.startBlock(i)
	}
	m.granted = m.granted[:0]
}

// finish ends job i: all its GPUs become free now, and a pass follows as many seconds later as it had GPUs.
func (m *machine) finish(i int32) {
	j := &m.jobs[i]
	freed := 0
	for g, owner := range m.cl.owner {
		if owner == i {
			m.cl.give(int32(g))
			freed++
		}
	}
	m.note(event{at: m.now + float64(freed), class: pass})
	j.end, j.seen = m.now, false
	m.live[j.at] = -1
	if m.alive--; 2*m.alive < len(m.live) {
		m.compact()
	}
	m.report.Jobs[i] = Result{
		First: j.first, End: j.end, Queue: j.queue, GPUTime: j.gpu, CompTime: j.comp, Grants: j.grants,
		WhileRunning: j.running,
	}
	m.report.End = max(m.report.End, m.now)
	m.tell(Finish, i, j.cur)
	j.cur, j.nxt = nil, nil
}

// compact removes ended jobs from live.
func (m *machine) compact() {
	k := 0
	for _, i := range m.live {
		if i >= 0 {
			m.live[k], m.jobs[i].at = i, int32(k)
			k++
		}
	}
	m.live = m.live[:k]
}

// factorOf returns the factor of job i on a set of GPUs.
func (m *machine) factorOf(i int32, gpus []int32) float64 {
	if len(gpus) == 1 {
		return 1
	}
	n, racks, machines, slots := m.count(gpus)
	if m.cfg.Policy == "gandiva" {
		return m.remembered(i, n, racks, machines, slots)
	}
	return m.lookUp(i, shapeOf(n, racks, machines, slots))
}

func (m *machine) lookUp(i int32, s Shape) float64 {
	known := m.known[m.model[i]]
	f, ok := known[s]
	if !ok {
		var err error
		if f, err = m.factors.Factor(&m.load[i], s); err == nil && !(f > 0 && f <= 1) {
			err = fmt.Errorf("got factor %v of model %s and shape %v, want a share above 0 and up to 1", f, m.load[i].Model, s)
		}
		if err != nil {
			if m.err == nil {
				m.err = fmt.Errorf("job %s: %w", m.load[i].Name, err)
			}
			f = 1
		}
		known[s] = f
	}
	return f
}
