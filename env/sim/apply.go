package sim

import (
	"fmt"
	"time"

	"clustergym/env/cluster"
)

// Apply takes one decision at the current point. An error (ErrDecision, ErrWait, or one of package cluster)
// changes nothing.
func (s *Simulator) Apply(d *Decision) error {
	if s.err != nil {
		return s.err
	}
	if !s.begun || s.waited || s.over {
		return fmt.Errorf("%w: there is no open decision point", ErrDecision)
	}
	switch d.Op {
	case Wait:
		return s.wait(int64(d.Until))
	case StartJob:
		return s.startJob(d.Job, d.GPUs)
	case PreemptJob:
		return s.preempt(d.Job)
	case DropJob:
		return s.drop(d.Job)
	}
	return fmt.Errorf("%w: operation %d is unknown", ErrDecision, d.Op)
}

func (s *Simulator) wait(until int64) error {
	if until != 0 && until <= s.now {
		return fmt.Errorf("%w: wait until %v, which is not after now (%v)", ErrDecision, time.Duration(until), time.Duration(s.now))
	}
	if until == 0 && len(s.running) == 0 && !s.more && len(s.waiting) > 0 {
		return ErrWait
	}
	s.timer, s.waited = until, true
	return nil
}

// live checks that j is a job in the given state that was not started or stopped in this instant.
func (s *Simulator) live(j Job, want State, verb string) (*jobState, error) {
	if j < 0 || int(j) >= len(s.jobs) {
		return nil, fmt.Errorf("%w: %s job %d, which does not exist", ErrDecision, verb, j)
	}
	st := &s.jobs[j]
	if st.state != want {
		return nil, fmt.Errorf("%w: %s job %d (%s), which is %v", ErrDecision, verb, j, s.traced[j].ID, st.state)
	}
	if st.changed == s.points {
		return nil, fmt.Errorf("%w: %s job %d (%s) twice at %v", ErrDecision, verb, j, s.traced[j].ID, time.Duration(s.now))
	}
	return st, nil
}

func (s *Simulator) startJob(j Job, gpus []cluster.GPU) error {
	st, err := s.live(j, Waiting, "start")
	if err != nil {
		return err
	}
	if err := s.cluster.Allocate(&st.req, gpus); err != nil {
		return fmt.Errorf("start job %d (%s): %w", j, s.traced[j].ID, err)
	}
	// The event of the stop before still shows the old list at this point.
	st.gpus, st.other = append(st.other[:0], gpus...), st.gpus
	st.start, st.since, st.changed = s.now, s.now, s.points
	if st.first < 0 {
		st.first = s.now
	} else {
		st.left += float64(s.cfg.Restart)
	}
	st.rate = s.factor(&st.req, st.gpus)
	st.state = Running
	st.finish = finishAt(s.now, st.left, st.rate)
	s.removeFrom(&s.waiting, j)
	s.addTo(&s.running, j)
	s.heapPush(finish{at: st.finish, seq: s.seq, job: j})
	s.seq++
	s.events = append(s.events, Event{At: time.Duration(s.now), Kind: Start, Job: j, GPUs: st.gpus})
	s.check()
	return nil
}

func (s *Simulator) preempt(j Job) error {
	st, err := s.live(j, Running, "preempt")
	if err != nil {
		return err
	}
	s.heapRemove(int(st.heap))
	s.removeFrom(&s.running, j)
	s.addTo(&s.waiting, j)
	s.cluster.Release(&st.req, st.gpus)
	st.left = leftAt(st, s.now)
	st.ran += s.now - st.start
	st.since, st.changed, st.state, st.rate = s.now, s.points, Waiting, 0
	st.stops++
	s.events = append(s.events, Event{At: time.Duration(s.now), Kind: Preempt, Job: j, GPUs: st.gpus})
	s.check()
	return nil
}

// leftAt is the work left of a job at now.
func leftAt(st *jobState, now int64) float64 {
	if st.state != Running {
		return st.left
	}
	return max(0, st.left-float64(now-st.since)*st.rate)
}

func (s *Simulator) drop(j Job) error {
	st, err := s.live(j, Waiting, "drop")
	if err != nil {
		return err
	}
	s.removeFrom(&s.waiting, j)
	st.state, st.finish, st.changed = Dropped, s.now, s.points
	s.ended++
	s.dead = append(s.dead, j)
	s.events = append(s.events, Event{At: time.Duration(s.now), Kind: Drop, Job: j})
	s.check()
	return nil
}
