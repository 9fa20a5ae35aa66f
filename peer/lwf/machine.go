package lwf

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"clustergym/internal/rng"
)

// never is later than every event.
const never = int64(math.MaxInt64)

// slack is by how many milliseconds a transfer may end after a millisecond and still count as over: sums of float64 are
// not exact.
const slack = 1e-9

// What a worker does next.
const (
	forward = iota
	backward
	waits // for the other workers and the transfer
)

// job is the state of a job.
type job struct {
	remaining  int64   // compute time of all workers that is left
	unsynced   int64   // compute time of the iterations that are not synchronised yet
	once       float64 // what placement thinks that a transfer takes
	iteration  int64   // from 1
	gpus       []int32 // by worker
	next       []uint8 // by worker
	nodes      []int32 // in the order in which the workers got them
	waiting    int     // workers that wait for the others
	rank       int     // among all placements
	sending    bool
	finished   bool
	sent, rate float64 // MB, and MB a millisecond, of the transfer
	last       int64   // when sent was true
	links      int     // transfers on its busiest link
	end        float64
}

// placedWorker is a worker on a GPU.
type placedWorker struct{ job, worker int32 }

// gpu is the state of a GPU.
type gpu struct {
	free  int64          // MB
	load  float64        // what placement thinks that its jobs still take, ms
	seats []placedWorker // in the order of placement
	ready int            // workers that could run
	now   placedWorker   // what runs
	end   int64          // when it ends; never = idle
}

// Machine is a simulator that can be used for one run after the other. Not safe for concurrent use.
type Machine struct {
	cfg    Config
	k      int // of lwfK
	load   []Job
	hook   func(*Event)
	report *Report
	random *rand.Rand
	given  func(job int) []int32 // see Give
	// stepwise makes the clock step by 1 ms, as the program's does, in tests.
	stepwise bool

	now     int64
	jobs    []job
	gpus    []gpu
	ends    []int64 // by node: when its next task ends
	sends   []int   // by node: transfers
	order   []int32 // the nodes, as the last placement sorted them
	mean    []float64
	queue   []int32 // waiting jobs, in order
	arrival []int32 // by arrival
	running []int32 // placed jobs, in order of placement
	sending []int32 // jobs with a transfer, in order of its start
	due     []int32 // jobs whose workers have just all ended backward
	ready   []int32 // jobs that could send, in order
	stirred []bool  // by node: one of its GPUs may have a task to begin
	chosen  []int32 // scratch: GPUs
	ended   int     // finished jobs among running

	placements int
	kept       []int32 // the GPUs of the results, one job after the other
}

// NewMachine returns a machine for cfg.
func NewMachine(cfg Config) (*Machine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	m := &Machine{cfg: cfg}
	m.k, _ = kappa(cfg.Place)
	m.gpus = make([]gpu, cfg.Nodes*cfg.GPUs)
	m.ends, m.sends = make([]int64, cfg.Nodes), make([]int, cfg.Nodes)
	m.order, m.mean = make([]int32, cfg.Nodes), make([]float64, cfg.Nodes)
	m.stirred = make([]bool, cfg.Nodes)
	return m, nil
}

// Give lets choose choose the GPUs of a job in place of the generator where place is random, as in a recorded run. It
// is called when enough GPUs have room, and returns one GPU with room for each worker. nil = the generator.
func (m *Machine) Give(choose func(job int) []int32) { m.given = choose }

// Run simulates jobs; simultaneous arrivals keep their order. It passes every event to hook, which may be nil. A job
// that can never be placed is an error. ctx ends the run early. The report is the caller's.
func (m *Machine) Run(ctx context.Context, jobs []Job, hook func(*Event)) (*Report, error) {
	if err := m.reset(jobs); err != nil {
		return nil, err
	}
	m.hook = hook
	seen := 0 // arrivals
	for steps := 0; ; steps++ {
		if steps%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		m.finishTasks()
		m.leave()
		for ; seen < len(m.arrival) && m.load[m.arrival[seen]].Arrival == m.now; seen++ {
			m.enqueue(m.arrival[seen])
		}
		if seen == len(m.arrival) && len(m.queue) == 0 && len(m.running) == 0 {
			break
		}
		placed := m.place()
		m.synchronise()
		again := m.send()
		m.compute()
		next := m.next()
		if seen < len(m.arrival) {
			next = min(next, m.load[m.arrival[seen]].Arrival)
		}
		// The job after a placed one has been passed over, and so has the one after a job that left.
		if placed && len(m.queue) > 0 || m.ended > 0 || again || m.stepwise {
			next = m.now + 1
		}
		if next == never {
			panic(fmt.Sprintf("lwf: nothing happens after %d ms: %d jobs wait, %d run", m.now, len(m.queue), len(m.running)))
		}
		m.now = next
	}
	m.report.Steps = m.now + 1
	r := m.report
	m.report, m.hook, m.kept = nil, nil, nil
	return r, nil
}

// reset prepares a run of jobs.
func (m *Machine) reset(jobs []Job) error {
	for i := range jobs {
		if err := jobs[i].check(&m.cfg); err != nil {
			return err
		}
	}
	m.load, m.now = jobs, 0
	m.report = &Report{Jobs: make([]Result, len(jobs))}
	workers := 0
	m.jobs = slices.Grow(m.jobs[:0], len(jobs))[:len(jobs)]
	m.arrival = m.arrival[:0]
	for i := range jobs {
		w, j := &jobs[i], &m.jobs[i]
		total := w.compute()
		*j = job{
			remaining: total * int64(w.Workers), unsynced: total, iteration: 1,
			gpus: j.gpus[:0], next: j.next[:0], nodes: j.nodes[:0],
		}
		m.report.Jobs[i].First = -1
		workers += w.Workers
		m.arrival = append(m.arrival, int32(i))
	}
	m.kept = make([]int32, 0, workers)
	slices.SortStableFunc(m.arrival, func(a, b int32) int { return cmp.Compare(jobs[a].Arrival, jobs[b].Arrival) })
	for g := range m.gpus {
		m.gpus[g] = gpu{free: m.cfg.Memory, seats: m.gpus[g].seats[:0], end: never}
	}
	for n := range m.order {
		m.ends[n], m.sends[n], m.order[n], m.stirred[n] = never, 0, int32(n), false
	}
	m.queue, m.running, m.sending, m.ended = m.queue[:0], m.running[:0], m.sending[:0], 0
	m.due, m.ready, m.placements = m.due[:0], m.ready[:0], 0
	m.random = rng.Stream(m.cfg.Seed, "peer/lwf")
	return nil
}

func (m *Machine) tell(kind EventKind, i int32, worker int32, g int32) {
	if m.hook != nil {
		node, gpu := int(g)/m.cfg.GPUs, int(g)%m.cfg.GPUs
		m.hook(&Event{At: m.now, Kind: kind, Job: int(i), Iteration: m.jobs[i].iteration, Worker: int(worker), Node: node,
			GPU: gpu})
	}
}

// finishTasks ends the tasks and transfers whose time has come, node by node in their present order: sums of loads
// depend on the order.
func (m *Machine) finishTasks() {
	over := false
	for _, i := range m.sending {
		over = over || m.over(i)
	}
	for _, n := range m.order {
		if m.ends[n] == m.now {
			m.finishOn(n)
		}
		if over && m.sends[n] > 0 {
			for _, i := range m.sending {
				if j := &m.jobs[i]; j.sending && m.over(i) && slices.Contains(j.nodes, n) {
					m.sent(i)
				}
			}
		}
	}
	if !over {
		return
	}
	m.sending = slices.DeleteFunc(m.sending, func(i int32) bool {
		j := &m.jobs[i]
		if j.sending {
			return false
		}
		for _, n := range j.nodes {
			m.sends[n]--
		}
		return true
	})
}

// over reports whether i's transfer has ended.
func (m *Machine) over(i int32) bool { return m.jobs[i].end <= float64(m.now)+slack }

// finishOn ends the tasks of node n that end now.
func (m *Machine) finishOn(n int32) {
	least := never
	for k := range m.cfg.GPUs {
		g := &m.gpus[int(n)*m.cfg.GPUs+k]
		if g.end != m.now {
			least = min(least, g.end)
			continue
		}
		i := g.now.job
		w, j := &m.load[i], &m.jobs[i]
		took := w.Forward
		if j.next[g.now.worker] == forward {
			j.next[g.now.worker] = backward
			g.ready++
		} else {
			took = w.Backward
			j.next[g.now.worker] = waits
			if j.waiting++; j.waiting == len(j.gpus) {
				m.due = append(m.due, i)
			}
		}
		g.end = never
		g.load -= float64(took)
		j.remaining -= took
		m.report.Busy += took
	}
	m.ends[n], m.stirred[n] = least, true
}

// sent ends the transfer of job i, and with it the iteration.
func (m *Machine) sent(i int32) {
	j := &m.jobs[i]
	j.sending = false
	for _, g := range j.gpus {
		m.gpus[g].load -= j.once
	}
	m.tell(SendEnd, i, 0, 0)
	m.iterate(i)
}

// iterate ends an iteration of job i.
func (m *Machine) iterate(i int32) {
	w, j := &m.load[i], &m.jobs[i]
	j.unsynced -= w.Forward + w.Backward
	j.waiting = 0
	if j.iteration == w.Iterations {
		j.finished = true
		m.ended++
		m.report.Jobs[i].Finish = m.now
		m.tell(Finish, i, 0, 0)
		return
	}
	j.iteration++
	for k, g := range j.gpus {
		j.next[k] = forward
		m.gpus[g].ready++
	}
	m.stir(i)
}

// stir notes that GPUs of job i may have a task to begin.
func (m *Machine) stir(i int32) {
	for _, n := range m.jobs[i].nodes {
		m.stirred[n] = true
	}
}

// leave gives the memory of finished jobs back. The list shortens while it is walked, so the job after one that leaves
// is not looked at before the next millisecond.
func (m *Machine) leave() {
	if m.ended == 0 {
		return
	}
	for at := 0; at < len(m.running); at++ {
		i := m.running[at]
		j := &m.jobs[i]
		if !j.finished {
			continue
		}
		for _, g := range j.gpus {
			s := &m.gpus[g]
			s.free += m.load[i].Memory
			s.seats = slices.DeleteFunc(s.seats, func(s placedWorker) bool { return s.job == i })
		}
		m.running = slices.Delete(m.running, at, at+1)
		m.ended--
	}
}

// next returns when the next task or transfer ends.
func (m *Machine) next() int64 {
	t := never
	for _, e := range m.ends {
		t = min(t, e)
	}
	for _, i := range m.sending {
		t = min(t, max(m.now+1, int64(math.Ceil(m.jobs[i].end-slack))))
	}
	return t
}

// compute lets every idle GPU begin the task with the least key; with equal keys, that of the job that was placed
// first.
func (m *Machine) compute() {
	for _, n := range m.order {
		if !m.stirred[n] {
			continue
		}
		m.stirred[n] = false
		for k := range m.cfg.GPUs {
			at := int(n)*m.cfg.GPUs + k
			g := &m.gpus[at]
			if g.ready == 0 || g.end != never {
				continue
			}
			best, least := -1, int64(0)
			for s, seat := range g.seats {
				if m.jobs[seat.job].next[seat.worker] == waits {
					continue
				}
				if key := m.key(seat.job); best < 0 || key < least {
					best, least = s, key
				}
			}
			g.now = g.seats[best]
			g.ready--
			i := g.now.job
			took, kind := m.load[i].Forward, Forward
			if m.jobs[i].next[g.now.worker] == backward {
				took, kind = m.load[i].Backward, Backward
			}
			g.end = m.now + took
			m.ends[n] = min(m.ends[n], g.end)
			if r := &m.report.Jobs[i]; r.First < 0 {
				r.First = m.now
			}
			m.tell(kind, i, g.now.worker, int32(at))
		}
	}
}

// key returns the key of job i among tasks and transfers, least first.
func (m *Machine) key(i int32) int64 {
	switch m.cfg.Tasks {
	case "srsf":
		return m.jobs[i].remaining
	case "srtf":
		return m.jobs[i].unsynced
	}
	return int64(m.load[i].Workers)
}
