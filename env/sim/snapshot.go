package sim

import (
	"errors"
	"fmt"
	"math"
	"time"

	"clustergym/env/cluster"
	"clustergym/internal/rng"
	"clustergym/internal/snap"
	"clustergym/traces"
)

// A snapshot holds what cannot be read again: the clock, the lists with their order, and of every live job its
// row in the stream and its state. What the trace says of the jobs is read again from the stream, whose rows so
// far are known by a hash.
const snapshotMagic = "CGsim1"

// snapJob and snapEvent are the least bytes that a job and an event take.
const (
	snapJob   = 13 * 8
	snapEvent = 4 * 8
)

// AppendSnapshot appends the state of the run to dst and returns the longer slice. It may be called between
// decisions at a point.
func (s *Simulator) AppendSnapshot(dst []byte) []byte {
	start := len(dst)
	b := snap.Begin(dst, snapshotMagic)
	b = snap.U64(b, s.fingerprint())
	b = snap.U64(b, s.rows)
	for _, v := range []int64{s.now, s.read, s.arrived, s.ended, s.seq, s.timer, s.points} {
		b = snap.Int(b, int(v))
	}
	for _, v := range []bool{s.more, s.waited, s.begun, s.over} {
		b = snap.Bool(b, v)
	}
	b = snap.Int(b, len(s.jobs))
	for i := range s.jobs {
		st := &s.jobs[i]
		for _, v := range []int64{st.row, st.pos, st.since, st.start, st.first, st.ran, st.finish, st.changed, int64(st.stops), int64(st.state)} {
			b = snap.Int(b, int(v))
		}
		b = snap.F64(b, st.left)
		b = snap.F64(b, st.rate)
		b = appendGPUs(b, st.gpus)
	}
	for _, list := range [][]Job{s.waiting, s.running, s.spare, s.dead} {
		b = snap.Int(b, len(list))
		for _, j := range list {
			b = snap.Int(b, int(j))
		}
	}
	b = snap.Int(b, s.gone)
	for _, j := range s.running {
		b = snap.Int(b, int(s.finishes[s.jobs[j].heap].seq))
	}
	for _, events := range [][]Event{s.point.Events, s.events} {
		b = snap.Int(b, len(events))
		for _, e := range events {
			b = snap.Int(b, int(e.At))
			b = snap.Int(b, int(e.Kind))
			b = snap.Int(b, int(e.Job))
			b = appendGPUs(b, e.GPUs)
		}
	}
	return snap.Seal(b, start)
}

func appendGPUs(b []byte, gpus []cluster.GPU) []byte {
	b = snap.Int(b, len(gpus))
	for _, g := range gpus {
		b = snap.Int(b, int(g))
	}
	return b
}

// fingerprint tells configurations and clusters apart; fmt prints maps in order of their keys.
func (s *Simulator) fingerprint() uint64 {
	return rng.Hash(fmt.Sprintf("%+v %+v", s.cfg, s.cluster.Spec()))
}

// RestoreSnapshot continues from src, a snapshot of a simulator with the same configuration and cluster. jobs is
// the same stream of jobs from its beginning. src may be hostile: what cannot be restored is an ErrSnapshot and
// changes nothing but jobs' position.
func (s *Simulator) RestoreSnapshot(src []byte, jobs traces.Stream) error {
	n, err := New(s.cfg, s.cluster.Spec())
	if err != nil {
		return err
	}
	if err := n.restore(src, jobs); err != nil {
		return fmt.Errorf("%w: %v", ErrSnapshot, err)
	}
	*s = *n
	s.view.s = s
	return nil
}

// saved is a snapshot taken apart.
type saved struct {
	now, read, arrived, ended, seq, timer, points int64
	more, waited, begun, over                     bool
	rows                                          uint64
	jobs                                          []jobState
	lists                                         [4][]Job // waiting, running, spare, dead
	gone                                          int
	seqs                                          []int64 // by place in running
	events                                        [2][]Event
}

func (s *Simulator) restore(src []byte, jobs traces.Stream) error {
	p, err := s.parse(src)
	if err != nil {
		return err
	}
	if err := p.check(s.cluster.GPUs()); err != nil {
		return err
	}
	if err := s.reread(p, jobs); err != nil {
		return err
	}
	s.now, s.arrived, s.ended, s.seq, s.timer, s.points = p.now, p.arrived, p.ended, p.seq, p.timer, p.points
	s.waited, s.begun, s.over = p.waited, p.begun, p.over
	s.spare, s.dead, s.gone = p.lists[2], p.lists[3], p.gone
	for _, j := range p.lists[0] {
		s.addTo(&s.waiting, j)
	}
	for i, j := range p.lists[1] {
		st := &s.jobs[j]
		if err := s.cluster.Allocate(&st.req, st.gpus); err != nil {
			return err
		}
		if st.rate != s.factor(&st.req, st.gpus) || st.since != st.start || st.finish != finishAt(st.since, st.left, st.rate) {
			return fmt.Errorf("job %d progresses at rate %v since %d and finishes at %d", j, st.rate, st.since, st.finish)
		}
		s.addTo(&s.running, j)
		s.heapPush(finish{at: st.finish, seq: p.seqs[i], job: j})
	}
	s.point = Point{Now: time.Duration(p.now), Events: p.events[0]}
	s.events = p.events[1]
	return s.CheckInvariants()
}

func (s *Simulator) parse(src []byte) (*saved, error) {
	r, err := snap.Open(src, snapshotMagic)
	if err != nil {
		return nil, err
	}
	if r.U64() != s.fingerprint() {
		return nil, errors.New("of a run with another configuration or cluster")
	}
	p := &saved{rows: r.U64()}
	for _, f := range []*int64{&p.now, &p.read, &p.arrived, &p.ended, &p.seq, &p.timer, &p.points} {
		*f = int64(r.Int())
	}
	for _, f := range []*bool{&p.more, &p.waited, &p.begun, &p.over} {
		*f = r.Bool()
	}
	gpus := func() []cluster.GPU {
		list := make([]cluster.GPU, r.Count(8))
		for i := range list {
			g := r.Int()
			list[i] = cluster.GPU(g)
			if int(list[i]) != g {
				list[i] = -1 // check refuses it
			}
		}
		return list
	}
	p.jobs = make([]jobState, r.Count(snapJob))
	for i := range p.jobs {
		st := &p.jobs[i]
		var stops, state int64
		for _, f := range []*int64{&st.row, &st.pos, &st.since, &st.start, &st.first, &st.ran, &st.finish, &st.changed, &stops, &state} {
			*f = int64(r.Int())
		}
		if st.stops, st.state = int32(stops), State(state); int64(st.stops) != stops || int64(st.state) != state {
			return nil, fmt.Errorf("job %d was stopped %d times and is in state %d", i, stops, state)
		}
		st.left, st.rate = r.F64(), r.F64()
		st.gpus = gpus()
	}
	for k := range p.lists {
		p.lists[k] = make([]Job, r.Count(8))
		for i := range p.lists[k] {
			j := r.Int()
			if j < 0 || j >= len(p.jobs) {
				return nil, fmt.Errorf("job %d of %d stands in a list", j, len(p.jobs))
			}
			p.lists[k][i] = Job(j)
		}
	}
	p.gone = r.Int()
	p.seqs = make([]int64, len(p.lists[1]))
	for i := range p.seqs {
		p.seqs[i] = int64(r.Int())
	}
	for k := range p.events {
		p.events[k] = make([]Event, r.Count(snapEvent))
		for i := range p.events[k] {
			at, kind, j := r.Int(), r.Int(), r.Int()
			if kind < 0 || kind > int(Timer) || j < -1 || j >= len(p.jobs) || (j < 0) != (kind == int(Timer)) {
				return nil, fmt.Errorf("event %d of job %d", kind, j)
			}
			p.events[k][i] = Event{At: time.Duration(at), Kind: EventKind(kind), Job: Job(j), GPUs: gpus()}
		}
	}
	return p, r.Done()
}

// check says whether the numbers can be those of a run on a cluster of so many GPUs. Most of what remains is
// found when the books are filled in.
func (p *saved) check(gpus int) error {
	if min(p.now, p.read, p.arrived, p.ended, p.seq, p.timer, p.points) < 0 || p.timer > 0 && p.timer <= p.now {
		return fmt.Errorf("time %d, timer %d, %d rows, %d jobs arrived, %d ended, %d starts, %d points", p.now, p.timer, p.read, p.arrived, p.ended, p.seq, p.points)
	}
	legal := func(list []cluster.GPU) bool {
		for _, g := range list {
			if g < 0 || int(g) >= gpus {
				return false
			}
		}
		return true
	}
	for i := range p.jobs {
		st := &p.jobs[i]
		ok := st.since >= 0 && st.since <= p.now && st.start >= 0 && st.start <= p.now && st.first >= -1 && st.first <= st.start &&
			st.ran >= 0 && st.ran <= p.now && st.finish >= 0 && st.changed >= 0 && st.changed <= p.points && st.stops >= 0 &&
			st.state <= Dropped && st.left >= 0 && st.rate >= 0 && !math.IsInf(st.left, 0) && !math.IsInf(st.rate, 0) && legal(st.gpus)
		if !ok {
			return fmt.Errorf("job %d is in a state that cannot be: %+v", i, *st)
		}
	}
	in := make([]int, len(p.jobs)) // list + 1
	for k, list := range p.lists {
		for _, j := range list {
			if in[j] != 0 {
				return fmt.Errorf("job %d stands in two lists", j)
			}
			in[j] = k + 1
			if k == 3 && p.jobs[j].state < Finished {
				return fmt.Errorf("job %d has ended and is %v", j, p.jobs[j].state)
			}
		}
	}
	if p.gone < 0 || p.gone > len(p.lists[3]) {
		return fmt.Errorf("%d of %d ended jobs were told of", p.gone, len(p.lists[3]))
	}
	for _, q := range p.seqs {
		if q < 0 || q >= p.seq {
			return fmt.Errorf("start %d of %d", q, p.seq)
		}
	}
	for _, events := range p.events {
		for _, e := range events {
			if e.At < 0 || int64(e.At) > p.now || e.Job >= 0 && in[e.Job] == 3 || !legal(e.GPUs) {
				return fmt.Errorf("a %v of job %d at %v on %v", e.Kind, e.Job, e.At, e.GPUs)
			}
		}
	}
	return nil
}

// reread reads the stream up to where the snapshot was taken and takes from it what the trace says of the jobs.
func (s *Simulator) reread(p *saved, jobs traces.Stream) error {
	slot := map[int64]int{} // row in the stream → number
	for k, list := range p.lists {
		for _, j := range list {
			if k == 2 {
				continue // spare numbers have no row any more
			}
			if _, twice := slot[p.jobs[j].row]; twice {
				return fmt.Errorf("row %d is two jobs", p.jobs[j].row)
			}
			slot[p.jobs[j].row] = int(j)
		}
	}
	if err := s.Reset(jobs); err != nil {
		return err
	}
	s.jobs, s.traced = p.jobs, make([]traces.Job, len(p.jobs))
	fit := int64(0) // jobs so far that fit the cluster
	for s.more && (s.read < p.read || !p.more && s.read == p.read) {
		if i, ok := slot[s.read-1]; ok {
			if p.jobs[i].pos != fit || int64(s.next.Submit) > p.now {
				return fmt.Errorf("job %d is at position %d, the workload has it at %d", i, p.jobs[i].pos, fit)
			}
			s.traced[i], s.jobs[i].req = s.next, s.nextReq
			delete(slot, s.read-1)
		}
		fit++
		if err := s.readNext(); err != nil {
			return err
		}
	}
	if len(slot) != 0 || s.read != p.read || s.more != p.more || s.rows != p.rows || fit != p.arrived {
		return errors.New("of a run of another workload")
	}
	return nil
}
