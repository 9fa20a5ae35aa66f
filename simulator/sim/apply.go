package sim

import (
	"fmt"
	"time"

	"clustergym/simulator/cluster"
)

// Apply carries out one decision at the current point. An error (ErrDecision, ErrWait, or one of package cluster)
// changes nothing.
func (s *Simulator) Apply(d *Decision) error {
	if s.err != nil {
		return s.err
	}
	if s.role == follows {
		return ErrFollows
	}
	if !s.begun || s.waited || s.over {
		return fmt.Errorf("%w: there is no open decision point", ErrDecision)
	}
	if err := s.shaped(d); err != nil {
		return err
	}
	var err error
	switch d.Op {
	case Wait:
		return s.wait(int64(d.Until))
	case StartJob:
		err = s.startJob(d)
	case PreemptJob:
		err = s.preempt(d.Job)
	case DropJob:
		err = s.drop(d.Job)
	case MigrateJob:
		err = s.migrate(d)
	case ResizeJob:
		err = s.resize(d)
	default:
		err = fmt.Errorf("%w: operation %d is unknown", ErrDecision, d.Op)
	}
	if err == nil {
		s.decisions++
	}
	return err
}

// shaped returns an error if a gang that takes the same number of GPUs on each of its nodes would not get it. Facts may
// say otherwise: another scheduler may have read the job in another way.
func (s *Simulator) shaped(d *Decision) error {
	if d.Op != StartJob && d.Op != MigrateJob || d.Job < 0 || int(d.Job) >= len(s.jobs) {
		return nil
	}
	if r := &s.jobs[d.Job].req; r.Each > 0 && len(d.GPUs) == r.GPUs && !s.cluster.Shaped(r, d.GPUs) {
		return fmt.Errorf("%w: job %d (%s) is placed on %v, want %d GPUs on each of %d nodes", ErrDecision, d.Job,
			s.traced[d.Job].ID, d.GPUs, r.Each, r.GPUs/r.Each)
	}
	return nil
}

func (s *Simulator) wait(until int64) error {
	if until != 0 && until <= s.now {
		return fmt.Errorf("%w: wait until %v, which is not after now (%v)", ErrDecision, time.Duration(until),
			time.Duration(s.now))
	}
	if until == 0 && !s.canWait() {
		return ErrWait
	}
	s.timer, s.waited = until, true
	return nil
}

// canWait reports whether something will happen without a timer, or no waiting job could start.
func (s *Simulator) canWait() bool {
	if !s.stuck() {
		return true
	}
	for _, j := range s.waiting {
		if s.cluster.Fits(&s.jobs[j].req) {
			return false
		}
	}
	return true
}

// live checks that j is a job in the given state without a decision at this point so far.
func (s *Simulator) live(j Job, want State, verb string) (*jobState, error) {
	if j < 0 || int(j) >= len(s.jobs) {
		return nil, fmt.Errorf("%w: %s job %d, which does not exist", ErrDecision, verb, j)
	}
	st := &s.jobs[j]
	if st.state != want {
		return nil, fmt.Errorf("%w: %s job %d (%s), which is %v", ErrDecision, verb, j, s.traced[j].ID, st.state)
	}
	if st.changed == s.points && !s.waited { // a point that facts have ended takes any number of them
		return nil, fmt.Errorf("%w: %s job %d (%s) twice at %v", ErrDecision, verb, j, s.traced[j].ID, time.Duration(s.now))
	}
	return st, nil
}

func (s *Simulator) startJob(d *Decision) error {
	j := d.Job
	st, err := s.live(j, Waiting, "start")
	if err != nil {
		return err
	}
	n := s.sizeOf(d, st)
	req := &st.req
	var other cluster.Request
	if n != int(st.asked) {
		if err := s.elastic(j, n, "start"); err != nil {
			return err
		}
		other = s.cluster.Resized(*req, n)
		req = &other
	}
	if err := s.cluster.Allocate(req, d.GPUs); err != nil {
		return fmt.Errorf("start job %d (%s): %w", j, s.traced[j].ID, err)
	}
	if st.sized || n != int(st.asked) {
		s.account(j, st)
		s.resized(j, st, n)
	}
	// The event of an earlier stop at this point still shows the old list.
	s.hold(st, d.GPUs)
	st.start, st.changed = s.now, s.points
	if st.first < 0 {
		st.first = s.now
	} else {
		st.left += float64(s.cfg.Restart)
	}
	st.state = Running
	s.place(j, st)
	if s.stints {
		s.begin(j, st, s.peek(j).owed+s.cfg.Overhead.start(n))
	} else {
		st.since, st.finish = s.now, finishAt(s.now, st.left, st.rate)
	}
	s.removeFrom(&s.waiting, j)
	s.addTo(&s.running, j)
	s.heapPush(finish{at: st.finish, seq: s.seq, job: j})
	s.seq++
	if f := s.forecasts.by; f != nil {
		f.Started(time.Duration(s.now), int(j))
	}
	s.events = append(s.events, Event{At: time.Duration(s.now), Kind: Start, Job: j, N: int32(st.req.GPUs), GPUs: st.gpus})
	s.check()
	return nil
}

// place computes the rate of j, which has its GPUs, and updates its neighbours' rates.
func (s *Simulator) place(j Job, st *jobState) {
	st.rate = s.base(j, st, &st.req, st.gpus)
	if s.near.on {
		s.arriveAt(j)
	}
	if s.dynamic {
		s.extra(j).base = st.rate
		st.rate *= s.beside(j, st.gpus)
	}
}

func (s *Simulator) preempt(j Job) error {
	st, err := s.live(j, Running, "preempt")
	if err != nil {
		return err
	}
	if s.stints {
		s.extra(j).owed = s.cfg.Overhead.stop(st.req.GPUs)
	}
	st.changed = s.points
	st.stops++
	s.stop(j, Preempt)
	s.check()
	return nil
}

// stop takes j's GPUs away; j waits again, from its last checkpoint.
func (s *Simulator) stop(j Job, kind EventKind) {
	st := &s.jobs[j]
	s.heapRemove(int(st.heap))
	s.removeFrom(&s.running, j)
	s.addTo(&s.waiting, j)
	s.cluster.Release(&st.req, st.gpus)
	n := int32(st.req.GPUs)
	if s.near.on {
		s.departFrom(j)
	}
	s.settle(j, st)
	s.rollBack(j, st)
	if st.sized {
		s.account(j, st)
		s.resized(j, st, int(st.asked))
	}
	st.ran += s.now - st.start
	st.since, st.state, st.rate = s.now, Waiting, 0
	if f := s.forecasts.by; f != nil {
		f.Stopped(time.Duration(s.now), int(j), time.Duration(st.ran))
	}
	s.events = append(s.events, Event{At: time.Duration(s.now), Kind: kind, Job: j, N: n, GPUs: st.gpus})
}

func (s *Simulator) drop(j Job) error {
	st, err := s.live(j, Waiting, "drop")
	if err != nil {
		return err
	}
	s.removeFrom(&s.waiting, j)
	st.state, st.finish, st.changed = Dropped, s.now, s.points
	s.ended++
	if f := s.forecasts.by; f != nil {
		f.Dropped(time.Duration(s.now), int(j))
	}
	s.dead = append(s.dead, j)
	s.events = append(s.events, Event{At: time.Duration(s.now), Kind: Drop, Job: j})
	s.check()
	return nil
}

// sizeOf returns the gang size that d asks for.
func (s *Simulator) sizeOf(d *Decision, st *jobState) int {
	switch {
	case st.asked == 0:
		return 0
	case !s.cluster.Pool():
		return len(d.GPUs)
	case d.N == 0:
		return int(st.asked)
	}
	return d.N
}

// elastic returns an error if j's gang may not have n GPUs.
func (s *Simulator) elastic(j Job, n int, verb string) error {
	t := s.traced[j]
	switch {
	case t.MaxGPUs == 0:
		return fmt.Errorf("%w: %s job %d (%s) on %d GPUs, which is not elastic and wants %d", ErrDecision, verb, j, t.ID, n,
			t.GPUs)
	case n < max(1, t.MinGPUs) || n > t.MaxGPUs:
		return fmt.Errorf("%w: %s job %d (%s) on %d GPUs, which can use %d to %d", ErrDecision, verb, j, t.ID, n,
			max(1, t.MinGPUs), t.MaxGPUs)
	}
	return nil
}
