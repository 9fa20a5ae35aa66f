package place

import (
	"cmp"
	"math"
	"slices"

	"clustergym/internal/grow"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
)

// Ask is a request to run a job on n GPUs of one type or, with kind anyKind, of any types that the job accepts.
type Ask struct {
	Job  sim.Job
	Type int
	N    int
}

// AnyType is the Type of asks for GPUs of any types that the job accepts.
const AnyType = -1

// Gang asks for as many GPUs for j as it asks for, of any types that it accepts.
func Gang(v *sim.View, j sim.Job) Ask { return Ask{j, AnyType, v.Asked(j)} }

// Plan finds GPUs for jobs on a copy of the cluster, and computes the decisions that lead there.
type Plan struct {
	Place    Placement
	Of       *cluster.Cluster // on which jobs run
	On, live *cluster.Cluster // as it will be; as it is after the steps so far

	Loose     []sim.Job   // running jobs that may be stopped or moved
	placement []placement // by job
	chosen    []Ask
	Placed    []sim.Job // jobs with a place, in the order in which they got it
	gpus      []cluster.GPU
	dst       []cluster.GPU
	req       cluster.Request
	room      []int // by GPU type: thousandths that no job is counted on
	quota     []int // by virtual cluster: thousandths that its quota allows beyond the jobs counted

	steps []move
	next  int
	late  []move // starts that are delayed by a nanosecond
	again bool   // this point executes delayed starts; the chooser is asked a nanosecond later
	moves []move // scratch
}

// placement is the plan for one job.
type placement struct {
	loose    bool
	taken    bool
	kept     bool // where it is
	n        int
	from, to int // in gpus
}

// move is one decision; its GPUs are in Plan.gpus.
type move struct {
	op       sim.Op
	job      sim.Job
	pos, n   int
	from, to int
}

// Reset begins a run.
func (s *Plan) Reset(v *sim.View) {
	c := v.Cluster()
	same := s.Of == c
	s.On, s.live, s.Of = CopyOf(c, s.On, same), CopyOf(c, s.live, same), c
	s.Clear()
	s.late, s.again = s.late[:0], false
}

// Clear forgets the plan.
func (s *Plan) Clear() {
	s.steps, s.next, s.Loose, s.Placed, s.gpus = s.steps[:0], 0, s.Loose[:0], s.Placed[:0], s.gpus[:0]
}

func (s *Plan) of(j sim.Job) *placement { return grow.At(&s.placement, j) }

// Begin starts a plan in which no job has a place. Running jobs with GPUs for which loose returns true hold no GPUs in
// it; all others keep theirs. Jobs that were started at this same time cannot be stopped.
func (s *Plan) Begin(v *sim.View, loose func(j sim.Job) bool) {
	s.Clear()
	s.On.CopyFrom(v.Cluster())
	for _, j := range v.Waiting() {
		*s.of(j) = placement{}
	}
	for _, j := range v.Running() {
		*s.of(j) = placement{}
		if r := v.Request(j); r.GPUs > 0 && v.Started(j) < v.Now() && loose(j) {
			s.On.Release(r, v.GPUs(j))
			s.placement[j].loose = true
			s.Loose = append(s.Loose, j)
		}
	}
}

// undo takes all places back.
func (s *Plan) undo(v *sim.View) {
	for _, j := range s.Placed {
		t := &s.placement[j]
		if t.kept {
			s.On.Release(v.Request(j), v.GPUs(j))
		} else {
			r := s.request(v, Ask{j, AnyType, t.n})
			s.On.Release(&r, s.gpus[t.from:t.to])
		}
		t.taken, t.kept = false, false
	}
	s.Placed, s.gpus = s.Placed[:0], s.gpus[:0]
}

// request returns what a asks for.
func (s *Plan) request(v *sim.View, a Ask) cluster.Request {
	r := *v.Request(a.Job)
	if r.GPUs != a.N {
		r = s.On.Resized(r, a.N)
	}
	if a.Type != AnyType && Types(s.On) > 1 {
		r.Types = 1 << a.Type
	}
	return r
}

// Keep places a where it runs now. It reports whether it did.
func (s *Plan) Keep(v *sim.View, a Ask) bool {
	t := s.of(a.Job)
	r := v.Request(a.Job)
	if !t.loose || t.taken || r.GPUs != a.N || a.Type != AnyType && TypeOf(v, a.Job) != a.Type ||
		!Take(s.On, r, v.GPUs(a.Job)) {
		return false
	}
	t.taken, t.kept, t.n = true, true, a.N
	s.Placed = append(s.Placed, a.Job)
	return true
}

// Put places a, where it runs now if it can stay there. It reports whether it did.
func (s *Plan) Put(v *sim.View, a Ask) bool {
	if s.Keep(v, a) {
		return true
	}
	t := s.of(a.Job)
	if t.taken || v.State(a.Job) == sim.Running && !t.loose {
		return false
	}
	s.req = s.request(v, a)
	var ok bool
	if s.dst, ok = s.Place.Place(v, a.Job, &s.req, s.On, s.dst); !ok || !Take(s.On, &s.req, s.dst) {
		return false
	}
	t.taken, t.kept, t.n, t.from = true, false, a.N, len(s.gpus)
	s.gpus = append(s.gpus, s.dst...)
	t.to = len(s.gpus)
	s.Placed = append(s.Placed, a.Job)
	return true
}

// PutOn places j, which waits or may be moved, on gpus, which are free.
func (s *Plan) PutOn(v *sim.View, j sim.Job, gpus []cluster.GPU) {
	t, r := s.of(j), v.Request(j)
	if !Take(s.On, r, gpus) {
		panic("place: GPUs that were offered are not free")
	}
	t.taken, t.n = true, r.GPUs
	t.kept = t.loose && slices.Equal(gpus, v.GPUs(j))
	if !t.kept {
		t.from = len(s.gpus)
		s.gpus = append(s.gpus, gpus...)
		t.to = len(s.gpus)
	}
	s.Placed = append(s.Placed, j)
}

// MoveIf places j, which runs and would stay where it is, on the GPUs that to chooses if better accepts them.
func (s *Plan) MoveIf(v *sim.View, j sim.Job, to cluster.Placement, better func(gpus []cluster.GPU) bool) {
	t, r := &s.placement[j], v.Request(j)
	if t.loose != t.kept {
		return // it is stopped, or has a place elsewhere
	}
	s.On.Release(r, v.GPUs(j))
	var ok bool
	s.dst, ok = to.Place(s.On, r, s.dst)
	if !ok || !better(s.dst) || !Take(s.On, r, s.dst) {
		if !Take(s.On, r, v.GPUs(j)) {
			panic("place: a job cannot have its own GPUs back")
		}
		return
	}
	if !t.kept {
		s.Loose, s.Placed = append(s.Loose, j), append(s.Placed, j)
	}
	*t = placement{loose: true, taken: true, n: r.GPUs, from: len(s.gpus), to: len(s.gpus) + len(s.dst)}
	s.gpus = append(s.gpus, s.dst...)
}

// HasPlace reports whether j has a place.
func (s *Plan) HasPlace(j sim.Job) bool { return s.placement[j].taken }

// Movable reports whether j runs and may be stopped or moved.
func (s *Plan) Movable(j sim.Job) bool { return s.placement[j].loose }

// PutAll places as many jobs as there is room for, in order; of several asks of one job, the first that fits. A count
// of GPUs decides which jobs get a place. Of those, running jobs stay where they are if they can, and the others are
// placed from the largest gang down. If one of them finds no place, all are placed one by one, in order. What is left
// goes, in order, to jobs for which the count was too coarse.
func (s *Plan) PutAll(v *sim.View, order []Ask) {
	left := s.countRoom()
	s.chosen = s.chosen[:0]
	for _, a := range order {
		if t := s.of(a.Job); !t.taken {
			t.n = 0
		}
	}
	for _, a := range order {
		t := s.of(a.Job)
		need := a.N * v.Request(a.Job).Milli
		q := &s.quota[v.Request(a.Job).VC]
		if t.taken || t.n > 0 || need > min(left, *q) || a.Type != AnyType && need > s.room[a.Type] {
			continue
		}
		left -= need
		if *q != math.MaxInt {
			*q -= need
		}
		if a.Type != AnyType {
			s.room[a.Type] -= need
		}
		t.n = a.N
		s.chosen = append(s.chosen, a)
	}
	waits := s.chosen[:0]
	for _, a := range s.chosen {
		if !s.Keep(v, a) {
			waits = append(waits, a)
		}
	}
	slices.SortStableFunc(waits, func(a, b Ask) int {
		return cmp.Compare(b.N*v.Request(b.Job).Milli, a.N*v.Request(a.Job).Milli)
	})
	for _, a := range waits {
		if !s.Put(v, a) {
			s.undo(v)
			break
		}
	}
	for _, a := range order {
		if !s.placement[a.Job].taken && a.N*v.Request(a.Job).Milli <= s.On.FreeMilli() {
			s.Put(v, a)
		}
	}
}

// countRoom counts the free GPUs of the plan, by type in room and in total, and what quotas allow.
func (s *Plan) countRoom() int {
	s.quota = s.quota[:0]
	for vc := range len(s.On.VCs()) + 1 {
		s.quota = append(s.quota, s.On.VCRoom(int32(vc)))
	}
	k := Types(s.On)
	s.room = append(s.room[:0], make([]int, k)...)
	if k == 1 {
		s.room[0] = s.On.FreeMilli()
		return s.room[0]
	}
	for n := range s.On.Nodes() {
		from, to := s.On.NodeGPUs(n)
		for g := from; g < to; g++ {
			s.room[s.On.TypeOf(n)] += s.On.GPUFree(g)
		}
	}
	return s.On.FreeMilli()
}

// CarryOut computes the decisions that lead to the plan.
func (s *Plan) CarryOut(v *sim.View) {
	if len(s.Loose)+len(s.Placed) == 0 {
		return
	}
	s.live.CopyFrom(v.Cluster())
	for _, j := range s.Loose {
		if !s.placement[j].taken {
			s.live.Release(v.Request(j), v.GPUs(j))
			s.steps = append(s.steps, move{op: sim.PreemptJob, job: j, pos: v.Pos(j)})
		}
	}
	s.moves = s.moves[:0]
	for _, j := range s.Placed {
		t := &s.placement[j]
		if v.State(j) != sim.Running || t.kept {
			continue
		}
		m := move{sim.MigrateJob, j, v.Pos(j), t.n, t.from, t.to}
		if t.n != v.Request(j).GPUs {
			m.op = sim.ResizeJob
		}
		if m.op == sim.ResizeJob || !slices.Equal(v.GPUs(j), s.gpus[t.from:t.to]) {
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
	for _, j := range s.Placed {
		if t := &s.placement[j]; v.State(j) == sim.Waiting {
			s.steps = append(s.steps, move{sim.StartJob, j, v.Pos(j), t.n, t.from, t.to})
		}
	}
}

// moved makes m a step if its GPUs are free by now. It reports whether it did.
func (s *Plan) moved(v *sim.View, m move) bool {
	old, r := v.Request(m.job), s.request(v, Ask{m.job, AnyType, m.n})
	s.live.Release(old, v.GPUs(m.job))
	if !Take(s.live, &r, s.gpus[m.from:m.to]) {
		if !Take(s.live, old, v.GPUs(m.job)) {
			panic("place: a job cannot have its own GPUs back")
		}
		return false
	}
	s.steps = append(s.steps, m)
	return true
}

// Resume turns the delayed starts into steps. It reports whether there were any; the chooser is then asked a
// nanosecond later.
func (s *Plan) Resume(v *sim.View) bool {
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
		r := s.request(v, Ask{m.job, AnyType, m.n})
		return !Take(s.live, &r, s.gpus[m.from:m.to])
	})
	return true
}

// Pending reports whether starts are delayed, or have been delayed until now: the chooser is asked a nanosecond later.
func (s *Plan) Pending() bool { return len(s.late) > 0 || s.again }

// Delayed is what remains of a plan that has been carried out.
type Delayed struct {
	late  []move
	gpus  []cluster.GPU
	again bool
}

// Mark notes in d which starts are delayed.
func (s *Plan) Mark(d *Delayed) {
	d.late, d.gpus, d.again = append(d.late[:0], s.late...), append(d.gpus[:0], s.gpus...), s.again
}

// Back forgets the plan and returns to the delayed starts that d has noted.
func (s *Plan) Back(d *Delayed) {
	s.Clear()
	s.late, s.gpus, s.again = append(s.late[:0], d.late...), append(s.gpus, d.gpus...), d.again
}

// Step returns the next decision.
func (s *Plan) Step(v *sim.View, d *sim.Decision) bool {
	if s.next == len(s.steps) {
		return false
	}
	m := s.steps[s.next]
	s.next++
	d.Op, d.Job, d.N = m.op, m.job, 0
	d.GPUs = append(d.GPUs[:0], s.gpus[m.from:m.to]...)
	if s.Of.Pool() && m.op != sim.PreemptJob && m.n != v.Asked(m.job) || m.op == sim.ResizeJob {
		d.N = m.n
	}
	return true
}
