package sim

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"clustergym/internal/snap"
	"clustergym/simulator/cluster"
	"clustergym/traces"
)

// saved is a decoded snapshot.
type saved struct {
	now, read, arrived, ended, seq, timer, points int64
	coming, waited, begun, over                   bool
	rows                                          uint64
	jobs                                          []jobState
	more                                          []jobMore
	size                                          []int64  // GPUs of a running job's gang
	lists                                         [4][]Job // waiting, running, spare, dead
	gone                                          int
	seqs                                          []int64 // in the order of running
	events                                        [2][]Event
	nodes                                         []savedNode // one per node of the cluster if nodes fail, else none
	forecasts                                     savedForecasts
}

type savedNode struct{ node, at, draws int64 }

func (s *Simulator) restore(src []byte, jobs traces.Stream) error {
	p, err := s.parse(src)
	if err != nil {
		return err
	}
	if err := p.check(s.cluster); err != nil {
		return err
	}
	if err := s.reread(p, jobs); err != nil {
		return err
	}
	s.now, s.arrived, s.ended, s.seq, s.timer, s.points = p.now, p.arrived, p.ended, p.seq, p.timer, p.points
	s.waited, s.begun, s.over = p.waited, p.begun, p.over
	s.spare, s.dead, s.gone = p.lists[2], p.lists[3], p.gone
	if err := s.restoreNodes(p); err != nil {
		return err
	}
	for _, j := range p.lists[0] {
		s.addTo(&s.waiting, j)
	}
	for i, j := range p.lists[1] {
		st := &s.jobs[j]
		if n := p.size[j]; n != int64(st.asked) {
			if err := s.elastic(j, int(n), "run"); err != nil {
				return err
			}
			st.req = s.cluster.Resized(st.req, int(n))
		}
		if err := s.cluster.Allocate(&st.req, st.gpus); err != nil {
			return err
		}
		if s.dynamic {
			s.extra(j).base = s.base(j, st, &st.req, st.gpus)
		}
		s.addTo(&s.running, j)
		s.heapPush(finish{at: st.finish, seq: p.seqs[i], job: j})
		if s.near.on {
			s.enter(j)
		}
	}
	if f := &s.forecasts; f.by != nil {
		if err := f.by.RestoreSnapshot(p.forecasts.by); err != nil {
			return err
		}
		f.of = p.forecasts.of
	}
	s.point = Point{Now: time.Duration(p.now), Events: p.events[0]}
	s.events = p.events[1]
	return s.CheckInvariants() // rates and finishes included
}

func (s *Simulator) restoreNodes(p *saved) error {
	f := &s.nodes
	if !f.on {
		return nil
	}
	f.down, f.pending = 0, f.pending[:0]
	clear(f.draws)
	for _, n := range p.nodes {
		if n.node < 0 || n.node >= int64(len(f.draws)) || n.draws < 1 || n.at < p.now || f.draws[n.node] != 0 {
			return fmt.Errorf("node %d of %d has its event %d at %d", n.node, len(f.draws), n.draws, n.at)
		}
		f.draws[n.node] = n.draws
		down := n.draws%2 == 0
		if down {
			f.down++
			if err := s.cluster.SetDown(int(n.node), true); err != nil {
				return err
			}
		}
		f.pending = append(f.pending, nodeEvent{at: n.at, node: int32(n.node), recover: down})
	}
	f.order()
	return nil
}

func (s *Simulator) parse(src []byte) (*saved, error) {
	r, err := snap.Open(src, snapshotMagic)
	if err != nil {
		return nil, err
	}
	if r.U64() != s.fingerprint() {
		return nil, errors.New("of a run with another configuration or cluster")
	}
	p := new(saved)
	p.code(r.Codec(), s)
	return p, r.Done()
}

// check reports whether the numbers can be those of a run on c. Most of the remaining errors are found when the books
// are filled in.
func (p *saved) check(c *cluster.Cluster) error {
	if min(p.now, p.read, p.arrived, p.ended, p.seq, p.timer, p.points) < 0 || p.timer > 0 && p.timer <= p.now {
		return fmt.Errorf("time %d, timer %d, %d rows, %d jobs arrived, %d ended, %d starts, %d points", p.now, p.timer,
			p.read, p.arrived, p.ended, p.seq, p.points)
	}
	legal := func(list []cluster.GPU) bool {
		for _, g := range list {
			if int(g) >= c.GPUs() || int(g) < -c.Nodes() {
				return false
			}
		}
		return true
	}
	for i := range p.jobs {
		st, m := &p.jobs[i], &p.more[i]
		if !st.possible(m, p.now, p.points) || !legal(st.gpus) {
			return fmt.Errorf("job %d is in a state that cannot be: %+v, %+v", i, *st, *m)
		}
	}
	in := make([]int, len(p.jobs)) // list + 1
	for k, list := range p.lists {
		for _, j := range list {
			if j < 0 || int(j) >= len(p.jobs) {
				return fmt.Errorf("job %d of %d stands in a list", j, len(p.jobs))
			}
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
			if e.Kind > NodeRecover || e.Job < -1 || int(e.Job) >= len(p.jobs) || (e.Job < 0) != e.Kind.jobless() ||
				e.Node < 0 || int(e.Node) >= c.Nodes() || e.N < 0 || int(e.N) > c.GPUs() {
				return fmt.Errorf("event %d of job %d, node %d, %d GPUs", uint8(e.Kind), e.Job, e.Node, e.N)
			}
			if e.At < 0 || int64(e.At) > p.now || e.Job >= 0 && in[e.Job] == 3 || !legal(e.GPUs) {
				return fmt.Errorf("a %v of job %d at %v on %v", e.Kind, e.Job, e.At, e.GPUs)
			}
		}
	}
	for i := range p.forecasts.of {
		if g := &p.forecasts.of[i]; !g.Valid() {
			return fmt.Errorf("job %d is forecast to run for %v", i, g.Q)
		}
	}
	return nil
}

// possible reports whether the times and amounts of a job make sense at now.
func (st *jobState) possible(m *jobMore, now, points int64) bool {
	for _, v := range [...]float64{st.left, st.rate, m.saved, m.lost} {
		if !(v >= 0) || math.IsInf(v, 0) {
			return false
		}
	}
	past := func(ns ...int64) bool { return slices.Min(ns) >= 0 && slices.Max(ns) <= now }
	ok := st.state <= Dropped && past(st.start, st.ran,
		m.held) && st.first >= -1 && st.first <= st.start && st.finish >= 0 &&
		st.changed >= 0 && st.changed <= points && st.stops >= 0 && (!st.sized || st.more) &&
		m.begun >= 0 && m.owed >= 0 && m.owed <= maxOwed && m.fails >= 0 && m.moves >= 0 && m.sizes >= 0
	if st.state != Running {
		return ok && past(st.since)
	}
	// Only an overhead delays progress.
	return ok && st.first >= 0 && st.since >= st.start && (st.since <= now || st.more && st.since == m.begun)
}

// reread reads the stream up to the snapshot's position, and takes the jobs' trace data from it.
func (s *Simulator) reread(p *saved, jobs traces.Stream) error {
	slot := map[int64]int{} // row in the stream → number
	for k, list := range p.lists {
		for _, j := range list {
			if k == 2 {
				continue // unused numbers have no row any more
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
	s.jobs, s.more = p.jobs, p.more
	for len(s.traced) < len(s.jobs) {
		s.traced = s.moreRows()
	}
	fit := int64(0) // jobs so far that fit the cluster
	for s.coming && (s.read < p.read || !p.coming && s.read == p.read) {
		if i, ok := slot[s.read-1]; ok {
			if p.jobs[i].pos != fit || int64(s.next.Submit) > p.now {
				return fmt.Errorf("job %d is at position %d, the workload has it at %d", i, p.jobs[i].pos, fit)
			}
			st := &s.jobs[i]
			s.keepRow(i)
			st.req = s.nextReq
			st.asked, st.speeds = int32(s.nextReq.GPUs), s.ownSpeeds()
			delete(slot, s.read-1)
		}
		fit++
		if err := s.readNext(); err != nil {
			return err
		}
	}
	if len(slot) != 0 || s.read != p.read || s.coming != p.coming || s.rows != p.rows || fit != p.arrived {
		return errors.New("of a run of another workload")
	}
	return nil
}
