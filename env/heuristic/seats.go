package heuristic

import (
	"cmp"
	"math"
	"slices"

	"clustergym/env/cluster"
	"clustergym/env/sim"
)

// ask is a request to run a job on n GPUs of one type or, with kind anyKind, of any types that the job accepts.
type ask struct {
	job  sim.Job
	kind int
	n    int
}

const anyKind = -1

// seats finds GPUs for jobs on a copy of the cluster, and computes the decisions that lead there.
type seats struct {
	place      placer
	of         *cluster.Cluster
	plan, live *cluster.Cluster

	loose  []sim.Job // running jobs that may be stopped or moved
	seat   []seat    // by job
	chosen []ask
	taken  []sim.Job // jobs with a seat, in the order in which they got it
	spots  []cluster.GPU
	dst    []cluster.GPU
	req    cluster.Request
	room   []int // by GPU type: thousandths that no job is counted on
	quota  []int // by virtual cluster: thousandths that its quota allows beyond the jobs counted

	steps []move
	next  int
	late  []move // starts that are delayed by a nanosecond
	again bool   // this point executes delayed starts; the chooser is asked a nanosecond later
	moves []move // scratch
}

// seat is the plan for one job.
type seat struct {
	loose    bool
	taken    bool
	kept     bool // where it is
	n        int
	from, to int // in spots
}

// move is one decision; its GPUs are in spots.
type move struct {
	op       sim.Op
	job      sim.Job
	pos, n   int
	from, to int
}

func (s *seats) reset(v *sim.View) {
	c := v.Cluster()
	same := s.of == c
	s.plan, s.live, s.of = copyOf(c, s.plan, same), copyOf(c, s.live, same), c
	s.clear()
	s.late, s.again = s.late[:0], false
}

// clear forgets the plan.
func (s *seats) clear() {
	s.steps, s.next, s.loose, s.taken, s.spots = s.steps[:0], 0, s.loose[:0], s.taken[:0], s.spots[:0]
}

func (s *seats) of1(j sim.Job) *seat {
	for int(j) >= len(s.seat) {
		s.seat = append(s.seat, seat{})
	}
	return &s.seat[j]
}

// begin starts a plan without seats. Running jobs with GPUs for which loose returns true hold no GPUs in it; all
// others keep theirs. Jobs that were started at this same time cannot be stopped.
func (s *seats) begin(v *sim.View, loose func(j sim.Job) bool) {
	s.clear()
	s.plan.CopyFrom(v.Cluster())
	for _, j := range v.Waiting() {
		*s.of1(j) = seat{}
	}
	for _, j := range v.Running() {
		*s.of1(j) = seat{}
		if r := v.Request(j); r.GPUs > 0 && v.Started(j) < v.Now() && loose(j) {
			s.plan.Release(r, v.GPUs(j))
			s.seat[j].loose = true
			s.loose = append(s.loose, j)
		}
	}
}

// undo removes all seats.
func (s *seats) undo(v *sim.View) {
	for _, j := range s.taken {
		t := &s.seat[j]
		if t.kept {
			s.plan.Release(v.Request(j), v.GPUs(j))
		} else {
			r := s.request(v, ask{j, anyKind, t.n})
			s.plan.Release(&r, s.spots[t.from:t.to])
		}
		t.taken, t.kept = false, false
	}
	s.taken, s.spots = s.taken[:0], s.spots[:0]
}

// request returns what a asks for.
func (s *seats) request(v *sim.View, a ask) cluster.Request {
	r := *v.Request(a.job)
	if r.GPUs != a.n {
		r = s.plan.Resized(r, a.n)
	}
	if a.kind != anyKind && kinds(s.plan) > 1 {
		r.Types = 1 << a.kind
	}
	return r
}

// takes reports whether r accepts GPUs of type kind.
func takes(r *cluster.Request, kind int) bool { return r.Types == 0 || r.Types>>kind&1 != 0 }

// keep seats a where it runs now. It reports whether it did.
func (s *seats) keep(v *sim.View, a ask) bool {
	t := s.of1(a.job)
	r := v.Request(a.job)
	if !t.loose || t.taken || r.GPUs != a.n || a.kind != anyKind && kindOf(v, a.job) != a.kind || !take(s.plan, r, v.GPUs(a.job)) {
		return false
	}
	t.taken, t.kept, t.n = true, true, a.n
	s.taken = append(s.taken, a.job)
	return true
}

// kindOf returns the GPU type that j has, or had last; mixed if its GPUs are of several types.
func kindOf(v *sim.View, j sim.Job) int {
	c := v.Cluster()
	if c.Pool() {
		return 0
	}
	kind := mixed
	for i, g := range v.GPUs(j) {
		if k := c.TypeOf(c.NodeOf(g)); i == 0 {
			kind = k
		} else if k != kind {
			return mixed
		}
	}
	return kind
}

const mixed = -2

// put seats a, where it runs now if it can stay there. It reports whether it did.
func (s *seats) put(v *sim.View, a ask) bool {
	if s.keep(v, a) {
		return true
	}
	t := s.of1(a.job)
	if t.taken || v.State(a.job) == sim.Running && !t.loose {
		return false
	}
	s.req = s.request(v, a)
	var ok bool
	if s.dst, ok = s.place.PlaceAs(v, a.job, &s.req, s.plan, s.dst); !ok || !take(s.plan, &s.req, s.dst) {
		return false
	}
	t.taken, t.kept, t.n, t.from = true, false, a.n, len(s.spots)
	s.spots = append(s.spots, s.dst...)
	t.to = len(s.spots)
	s.taken = append(s.taken, a.job)
	return true
}

// seatAll seats as many jobs as there is room for, in order; of several asks of one job, the first that fits. A count
// of GPUs decides which jobs get a seat. Of those, running jobs stay where they are if they can, and the others are
// placed from the largest gang down. If one of them finds no place, all are seated one by one, in order. What is left
// goes, in order, to jobs for which the count was too coarse.
func (s *seats) seatAll(v *sim.View, order []ask) {
	left := s.countRoom()
	s.chosen = s.chosen[:0]
	for _, a := range order {
		if t := s.of1(a.job); !t.taken {
			t.n = 0
		}
	}
	for _, a := range order {
		t := s.of1(a.job)
		need := a.n * v.Request(a.job).Milli
		q := &s.quota[v.Request(a.job).VC]
		if t.taken || t.n > 0 || need > min(left, *q) || a.kind != anyKind && need > s.room[a.kind] {
			continue
		}
		left -= need
		if *q != math.MaxInt {
			*q -= need
		}
		if a.kind != anyKind {
			s.room[a.kind] -= need
		}
		t.n = a.n
		s.chosen = append(s.chosen, a)
	}
	waits := s.chosen[:0]
	for _, a := range s.chosen {
		if !s.keep(v, a) {
			waits = append(waits, a)
		}
	}
	slices.SortStableFunc(waits, func(a, b ask) int {
		return cmp.Compare(b.n*v.Request(b.job).Milli, a.n*v.Request(a.job).Milli)
	})
	for _, a := range waits {
		if !s.put(v, a) {
			s.undo(v)
			break
		}
	}
	for _, a := range order {
		if !s.seat[a.job].taken && a.n*v.Request(a.job).Milli <= s.plan.FreeMilli() {
			s.put(v, a)
		}
	}
}

// countRoom counts the free GPUs of the plan, by type in room and in total, and what quotas allow.
func (s *seats) countRoom() int {
	s.quota = s.quota[:0]
	for vc := range len(s.plan.VCs()) + 1 {
		s.quota = append(s.quota, s.plan.VCRoom(int32(vc)))
	}
	k := kinds(s.plan)
	s.room = append(s.room[:0], make([]int, k)...)
	if k == 1 {
		s.room[0] = s.plan.FreeMilli()
		return s.room[0]
	}
	for n := range s.plan.Nodes() {
		from, to := s.plan.NodeGPUs(n)
		for g := from; g < to; g++ {
			s.room[s.plan.TypeOf(n)] += s.plan.GPUFree(g)
		}
	}
	return s.plan.FreeMilli()
}

// carryOut computes the decisions that lead to the plan.
func (s *seats) carryOut(v *sim.View) {
	if len(s.loose)+len(s.taken) == 0 {
		return
	}
	s.live.CopyFrom(v.Cluster())
	for _, j := range s.loose {
		if !s.seat[j].taken {
			s.live.Release(v.Request(j), v.GPUs(j))
			s.steps = append(s.steps, move{op: sim.PreemptJob, job: j, pos: v.Pos(j)})
		}
	}
	s.moves = s.moves[:0]
	for _, j := range s.taken {
		t := &s.seat[j]
		if v.State(j) != sim.Running || t.kept {
			continue
		}
		m := move{sim.MigrateJob, j, v.Pos(j), t.n, t.from, t.to}
		if t.n != v.Request(j).GPUs {
			m.op = sim.ResizeJob
		}
		if m.op == sim.ResizeJob || !slices.Equal(v.GPUs(j), s.spots[t.from:t.to]) {
			s.moves = append(s.moves, m)
		}
	}
	for len(s.moves) > 0 {
		n := len(s.moves)
		s.moves = slices.DeleteFunc(s.moves, func(m move) bool { return s.moved(v, m) })
		if len(s.moves) < n {
			continue
		}
		// The remaining moves wait for each other's GPUs.
		m := s.moves[0]
		s.moves = slices.Delete(s.moves, 0, 1)
		s.live.Release(v.Request(m.job), v.GPUs(m.job))
		s.steps = append(s.steps, move{op: sim.PreemptJob, job: m.job, pos: m.pos})
		m.op = sim.StartJob
		s.late = append(s.late, m)
	}
	for _, j := range s.taken {
		if t := &s.seat[j]; v.State(j) == sim.Waiting {
			s.steps = append(s.steps, move{sim.StartJob, j, v.Pos(j), t.n, t.from, t.to})
		}
	}
}

// moved makes m a step if its GPUs are free by now. It reports whether it did.
func (s *seats) moved(v *sim.View, m move) bool {
	old, r := v.Request(m.job), s.request(v, ask{m.job, anyKind, m.n})
	s.live.Release(old, v.GPUs(m.job))
	if !take(s.live, &r, s.spots[m.from:m.to]) {
		if !take(s.live, old, v.GPUs(m.job)) {
			panic("heuristic: a job cannot have its own GPUs back")
		}
		return false
	}
	s.steps = append(s.steps, m)
	return true
}

// resume turns the delayed starts into steps. It reports whether there were any; the chooser is then asked a
// nanosecond later.
func (s *seats) resume(v *sim.View) bool {
	s.again = len(s.late) > 0
	if !s.again {
		return false
	}
	s.steps, s.next = append(s.steps[:0], s.late...), 0
	s.late = s.late[:0]
	s.live.CopyFrom(v.Cluster())
	s.steps = slices.DeleteFunc(s.steps, func(m move) bool {
		if v.State(m.job) != sim.Waiting || v.Pos(m.job) != m.pos {
			return true
		}
		r := s.request(v, ask{m.job, anyKind, m.n})
		return !take(s.live, &r, s.spots[m.from:m.to])
	})
	return true
}

// step returns the next decision.
func (s *seats) step(v *sim.View, d *sim.Decision) bool {
	if s.next == len(s.steps) {
		return false
	}
	m := s.steps[s.next]
	s.next++
	d.Op, d.Job, d.N = m.op, m.job, 0
	d.GPUs = append(d.GPUs[:0], s.spots[m.from:m.to]...)
	if s.of.Pool() && m.op != sim.PreemptJob && m.n != v.Asked(m.job) || m.op == sim.ResizeJob {
		d.N = m.n
	}
	return true
}
