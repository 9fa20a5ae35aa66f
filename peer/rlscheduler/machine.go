package rlscheduler

import (
	"fmt"
	"math"
	"time"

	"clustergym/traces"
)

// Job is one job. Times are in seconds.
type Job struct {
	ID      string
	Submit  int64
	Run     int64 // how long it runs, at least 1
	Request int64 // how long it asks for, at least 1; what policies know
	Procs   int32
}

// Jobs converts jobs of a log: those that ran for no time or want more than procs processors are left out. A job that
// asks for no time asks for its run time.
func Jobs(log []traces.Job, procs int) []Job {
	var all []Job
	for i := range log {
		t := &log[i]
		j := Job{ID: t.ID, Submit: int64(t.Submit / time.Second), Run: int64(t.Work / time.Second),
			Request: int64(t.Estimate / time.Second), Procs: int32(min(t.GPUs, math.MaxInt32))}
		if j.Run <= 0 || int(j.Procs) > procs || j.Procs < 1 {
			continue
		}
		if j.Request <= 0 {
			j.Request = j.Run
		}
		all = append(all, j)
	}
	return all
}

// Slowdown returns the bounded slowdown of a job that starts after wait: max(1, (wait + run time)/max(run time, 10 s)).
func (j *Job) Slowdown(wait int64) float64 {
	return max(1, float64(wait+j.Run)/float64(max(j.Run, 10)))
}

// ending is the end of a running job. Equal ends are in the order of starts.
type ending struct {
	at    int64 // by its run time
	asked int64 // by its request
	seq   int32
	procs int32
}

func (a *ending) before(b *ending) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq }

// Machine is the state of a run over a list of jobs. Copies are made with CopyFrom. Not safe for concurrent use.
type Machine struct {
	procs    int32
	backfill bool

	jobs    []Job // in order of submit; never written
	next    int   // the first that has not arrived
	now     int64
	free    int32
	waiting []int32  // places in jobs, in the order of the queue
	mixed   bool     // waiting is not in order of submit
	running []ending // a heap
	started int32
	sum     float64
	ends    []ending // scratch of the shadow time

	// OnStart is called for every job that starts, with its place in the list of jobs and its start time; nil = not.
	// Copies do not have it.
	OnStart func(job int, at int64)
}

// NewMachine returns a machine of a number of processors, with or without back-filling.
func NewMachine(procs int, backfill bool) *Machine {
	if procs < 1 || procs > math.MaxInt32 {
		panic(fmt.Sprintf("rlscheduler: a machine of %d processors", procs))
	}
	return &Machine{procs: int32(procs), backfill: backfill}
}

// Reset empties the machine and moves its clock to the first of the jobs, which must be in order of submit and fit the
// machine. They are not copied. With no jobs the machine is done at once.
func (m *Machine) Reset(jobs []Job) {
	m.jobs, m.next, m.now, m.free = jobs, 0, 0, m.procs
	m.waiting, m.running, m.mixed, m.started, m.sum = m.waiting[:0], m.running[:0], false, 0, 0
	if len(jobs) > 0 {
		m.now = jobs[0].Submit
	}
	m.awake()
}

// CopyFrom makes m a copy of o, which shares the list of jobs.
func (m *Machine) CopyFrom(o *Machine) {
	m.procs, m.backfill, m.jobs, m.next, m.now, m.free = o.procs, o.backfill, o.jobs, o.next, o.now, o.free
	m.waiting, m.running = append(m.waiting[:0], o.waiting...), append(m.running[:0], o.running...)
	m.mixed, m.started, m.sum = o.mixed, o.started, o.sum
}

// Done reports whether all jobs have started.
func (m *Machine) Done() bool { return len(m.waiting) == 0 }

// Now returns the clock, in seconds.
func (m *Machine) Now() int64 { return m.now }

// Procs returns the processors of the machine.
func (m *Machine) Procs() int { return int(m.procs) }

// Waiting returns how many jobs can be chosen.
func (m *Machine) Waiting() int { return len(m.waiting) }

// Job returns the i-th waiting job, in the order of the queue.
func (m *Machine) Job(i int) *Job { return &m.jobs[m.waiting[i]] }

// Place returns the place in the list of jobs of the i-th waiting job.
func (m *Machine) Place(i int) int { return int(m.waiting[i]) }

// Started returns how many jobs have started.
func (m *Machine) Started() int { return int(m.started) }

// Sum returns the sum of the bounded slowdowns of the jobs that have started.
func (m *Machine) Sum() float64 { return m.sum }

// Mean returns the mean bounded slowdown of the jobs that have started.
func (m *Machine) Mean() float64 { return m.sum / float64(m.started) }

// Commit commits to the i-th waiting job and runs the clock to the next decision.
func (m *Machine) Commit(i int) {
	at := m.waiting[i]
	m.remove(i)
	need := m.jobs[at].Procs
	if need > m.free {
		if m.backfill {
			m.hold(need)
		} else {
			for need > m.free {
				m.event()
			}
		}
	}
	m.start(at)
	m.awake()
}

// hold runs the clock until need processors are free, and back-fills meanwhile.
func (m *Machine) hold(need int32) {
	shadow := m.shadow(need)
	for need > m.free {
		m.bySubmit()
		kept := m.waiting[:0]
		for k, at := range m.waiting {
			if m.free == 0 {
				kept = append(kept, m.waiting[k:]...)
				break
			}
			if j := &m.jobs[at]; j.Procs <= m.free && m.now+j.Request < shadow {
				m.start(at)
			} else {
				kept = append(kept, at)
			}
		}
		m.waiting = kept
		m.event()
	}
}

// shadow returns when need processors will be free by the requests.
func (m *Machine) shadow(need int32) int64 {
	// A heap of requests that is emptied only as far as needed.
	h := append(m.ends[:0], m.running...)
	m.ends = h
	for i := range h {
		h[i].at = h[i].asked
	}
	for i := len(h)/2 - 1; i >= 0; i-- {
		sink(h, i)
	}
	free, at := m.free, m.now
	for free < need {
		free += h[0].procs
		at = h[0].at
		last := len(h) - 1
		h[0] = h[last]
		h = h[:last]
		sink(h, 0)
	}
	return at
}

// awake runs the clock until a job waits or none is left.
func (m *Machine) awake() {
	for len(m.waiting) == 0 && m.next < len(m.jobs) {
		m.event()
	}
}

// event handles the next event.
func (m *Machine) event() {
	if m.next < len(m.jobs) && (len(m.running) == 0 || m.jobs[m.next].Submit <= m.running[0].at) {
		m.now = max(m.now, m.jobs[m.next].Submit)
		m.waiting = append(m.waiting, int32(m.next))
		m.next++
		return
	}
	m.now = m.running[0].at
	m.free += m.running[0].procs
	last := len(m.running) - 1
	m.running[0] = m.running[last]
	m.running = m.running[:last]
	sink(m.running, 0)
}

func (m *Machine) start(at int32) {
	j := &m.jobs[at]
	m.sum += j.Slowdown(m.now - j.Submit)
	m.free -= j.Procs
	e := ending{at: m.now + j.Run, asked: m.now + j.Request, seq: m.started, procs: j.Procs}
	m.started++
	h := append(m.running, e)
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !e.before(&h[up]) {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = e
	m.running = h
	if m.OnStart != nil {
		m.OnStart(int(at), m.now)
	}
}

// sink moves h[i] down to where a heap has it.
func sink(h []ending, i int) {
	if i >= len(h) {
		return
	}
	e := h[i]
	for {
		k := 2*i + 1
		if k >= len(h) {
			break
		}
		if k+1 < len(h) && h[k+1].before(&h[k]) {
			k++
		}
		if !h[k].before(&e) {
			break
		}
		h[i] = h[k]
		i = k
	}
	h[i] = e
}

func (m *Machine) remove(i int) {
	copy(m.waiting[i:], m.waiting[i+1:])
	m.waiting = m.waiting[:len(m.waiting)-1]
}

// bySubmit puts the queue in order of submit. Jobs of one second stay as they are.
func (m *Machine) bySubmit() {
	if !m.mixed {
		return
	}
	m.mixed = false
	for i := 1; i < len(m.waiting); i++ {
		at := m.waiting[i]
		k := i
		for ; k > 0 && m.jobs[m.waiting[k-1]].Submit > m.jobs[at].Submit; k-- {
			m.waiting[k] = m.waiting[k-1]
		}
		m.waiting[k] = at
	}
}

// A Policy chooses the place in the queue of the job to commit to. At least one job waits.
type Policy interface {
	Choose(m *Machine) int
}

// Play lets p choose until all jobs have started, and returns the mean bounded slowdown.
func Play(m *Machine, p Policy) float64 {
	for !m.Done() {
		m.Commit(p.Choose(m))
	}
	return m.Mean()
}
