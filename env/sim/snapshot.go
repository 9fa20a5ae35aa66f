package sim

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"clustergym/env/cluster"
	"clustergym/traces"
)

// A snapshot holds what cannot be read again: the clock, the lists with their order, and of every live job its
// row in the stream and its state. What the trace says of the jobs is read again from the stream.
const snapshotVersion = 1

// AppendSnapshot appends the state of the run to dst and returns the longer slice. It may be called between
// decisions at a point.
func (s *Simulator) AppendSnapshot(dst []byte) []byte {
	w := writer{b: dst}
	w.num(snapshotVersion, s.now, s.read, s.arrived, s.ended, s.seq, s.timer, s.points)
	w.flag(s.waited, s.begun, s.over)
	w.num(int64(len(s.jobs)))
	for i := range s.jobs {
		st := &s.jobs[i]
		w.num(st.row, st.pos, st.since, st.start, st.first, st.ran, st.finish, st.changed, int64(st.stops), int64(st.state))
		w.float(st.left)
		w.float(st.rate)
		w.num(int64(len(st.gpus)))
		for _, g := range st.gpus {
			w.num(int64(g))
		}
	}
	for _, list := range [][]Job{s.waiting, s.running, s.spare, s.dead} {
		w.num(int64(len(list)))
		for _, j := range list {
			w.num(int64(j))
		}
	}
	for _, j := range s.running {
		w.num(s.finishes[s.jobs[j].heap].seq)
	}
	for _, events := range [][]Event{s.point.Events, s.events} {
		w.num(int64(len(events)))
		for _, e := range events {
			w.num(int64(e.At), int64(e.Kind), int64(e.Job))
		}
	}
	return w.b
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

func (s *Simulator) restore(src []byte, jobs traces.Stream) error {
	r := reader{b: src}
	if v := r.num(); v != snapshotVersion {
		return fmt.Errorf("version %d, want %d", v, snapshotVersion)
	}
	var read int64
	for _, f := range []*int64{&s.now, &read, &s.arrived, &s.ended, &s.seq, &s.timer, &s.points} {
		*f = r.num()
	}
	var waited, begun, over bool
	for _, f := range []*bool{&waited, &begun, &over} {
		*f = r.flag()
	}
	now, arrived, ended, seq, timer, points := s.now, s.arrived, s.ended, s.seq, s.timer, s.points
	rows := map[int64]int{} // row in the stream → slot
	slots := make([]jobState, r.count(20))
	for i := range slots {
		st := &slots[i]
		for _, f := range []*int64{&st.row, &st.pos, &st.since, &st.start, &st.first, &st.ran, &st.finish, &st.changed} {
			*f = r.num()
		}
		st.stops, st.state = int32(r.num()), State(r.num())
		st.left, st.rate = r.float(), r.float()
		if !(st.left >= 0) || !(st.rate >= 0) || math.IsInf(st.left, 0) || math.IsInf(st.rate, 0) || st.state > Finished {
			return fmt.Errorf("job %d has %v left at rate %v in state %d", i, st.left, st.rate, st.state)
		}
		st.gpus = make([]cluster.GPU, r.count(1))
		for k := range st.gpus {
			st.gpus[k] = cluster.GPU(r.num())
		}
	}
	var lists [4][]Job
	live := make([]bool, len(slots))
	for k := range lists {
		lists[k] = make([]Job, r.count(1))
		for i := range lists[k] {
			j := r.num()
			if j < 0 || j >= int64(len(slots)) || live[j] {
				return fmt.Errorf("job %d stands in a list and should not", j)
			}
			live[j] = true
			lists[k][i] = Job(j)
			if k != 2 { // spare numbers have no row any more
				rows[slots[j].row] = int(j)
			}
		}
	}
	seqs := make([]int64, len(lists[1]))
	for i := range seqs {
		seqs[i] = r.num()
	}
	var events [2][]Event
	for k := range events {
		events[k] = make([]Event, r.count(3))
		for i := range events[k] {
			e := Event{At: time.Duration(r.num()), Kind: EventKind(r.num()), Job: Job(r.num())}
			if e.Kind > Timer || e.Job < -1 || int(e.Job) >= len(slots) || (e.Job < 0) != (e.Kind == Timer) {
				return fmt.Errorf("event %d of job %d", e.Kind, e.Job)
			}
			if e.Kind == Start || e.Kind == Preempt || e.Kind == Finish {
				e.GPUs = slots[e.Job].gpus
			}
			events[k][i] = e
		}
	}
	if r.bad || len(r.b) != 0 {
		return fmt.Errorf("%d bytes too many, or too few", len(r.b))
	}

	// Read the rows again.
	if err := s.Reset(jobs); err != nil {
		return err
	}
	s.jobs, s.traced = slots, make([]traces.Job, len(slots))
	for s.more {
		if i, ok := rows[s.read-1]; ok {
			s.traced[i], s.jobs[i].req = s.next, s.nextReq
			delete(rows, s.read-1)
		}
		if s.read >= read {
			break
		}
		if err := s.readNext(); err != nil {
			return err
		}
	}
	if len(rows) != 0 || s.read != read {
		return fmt.Errorf("the workload has %d jobs up to there, the snapshot %d", s.read, read)
	}
	s.now, s.arrived, s.ended, s.seq, s.timer, s.points = now, arrived, ended, seq, timer, points
	s.waited, s.begun, s.over = waited, begun, over
	s.spare, s.dead = lists[2], lists[3]
	for _, j := range lists[0] {
		s.addTo(&s.waiting, j)
	}
	for i, j := range lists[1] {
		st := &s.jobs[j]
		if err := s.cluster.Allocate(&st.req, st.gpus); err != nil {
			return err
		}
		s.addTo(&s.running, j)
		if seqs[i] >= seq {
			return fmt.Errorf("job %d was started later than now", j)
		}
		s.heapPush(finish{at: st.finish, seq: seqs[i], job: j})
	}
	s.point = Point{Now: time.Duration(now), Events: events[0]}
	s.events = events[1]
	return s.CheckInvariants()
}

// writer appends numbers as varints.
type writer struct{ b []byte }

func (w *writer) num(vs ...int64) {
	for _, v := range vs {
		w.b = binary.AppendVarint(w.b, v)
	}
}

func (w *writer) float(v float64) { w.b = binary.LittleEndian.AppendUint64(w.b, math.Float64bits(v)) }

func (w *writer) flag(vs ...bool) {
	for _, v := range vs {
		n := byte(0)
		if v {
			n = 1
		}
		w.b = append(w.b, n)
	}
}

// reader is the other way round. After a fault it returns zeros and bad is set.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) num() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

// count is a length, of items that take at least size bytes each: never more than the bytes that are left hold.
func (r *reader) count(size int) int {
	v := r.num()
	if v < 0 || v > int64(len(r.b)/size) {
		r.bad, r.b = true, nil
		return 0
	}
	return int(v)
}

func (r *reader) float() float64 {
	if len(r.b) < 8 {
		r.bad, r.b = true, nil
		return 0
	}
	v := math.Float64frombits(binary.LittleEndian.Uint64(r.b))
	r.b = r.b[8:]
	return v
}

func (r *reader) flag() bool {
	if len(r.b) < 1 || r.b[0] > 1 {
		r.bad, r.b = true, nil
		return false
	}
	v := r.b[0] == 1
	r.b = r.b[1:]
	return v
}
