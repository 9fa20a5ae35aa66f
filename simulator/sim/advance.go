package sim

import (
	"context"
	"fmt"
	"math"
	"time"

	"clustergym/traces"
)

const maxTime = math.MaxInt64

// lastTime is traces.MaxTime in words.
const lastTime = "146 years"

// After returns t + d for times of 0 or more. If that is beyond the clock's 292 years, it returns the largest time,
// which never comes.
func After(t, d time.Duration) time.Duration {
	if d > maxTime-t {
		return maxTime
	}
	return t + d
}

// Advance moves to the next instant at which something happens and returns it, or ErrDone. If the current point was
// not ended by Wait, Advance ends it. The point belongs to the simulator and is valid until the next Advance.
func (s *Simulator) Advance(ctx context.Context) (*Point, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.err != nil {
		return nil, s.err
	}
	if s.over {
		return nil, ErrDone
	}
	if s.role.facts() {
		return nil, fmt.Errorf("%w: its clock goes on with Look", ErrFollows)
	}
	if s.begun && !s.waited {
		if err := s.wait(0); err != nil {
			return nil, err
		}
	}
	t := s.nextTime()
	h := int64(s.cfg.Horizon)
	if t > traces.MaxTime && len(s.running) > 0 && (h <= 0 || t <= h) {
		s.err = fmt.Errorf(
			"sim: a running job would still run after %s, where the clock ends; want shorter jobs, less overhead, or a horizon",
			lastTime)
		return nil, s.err
	}
	if t == maxTime && len(s.running) == 0 || t > traces.MaxTime && h <= 0 {
		// No job ever arrived, none is left, or those left cannot proceed before the clock ends.
		s.over = true
		if len(s.events) == 0 && len(s.waiting) == 0 && len(s.running) == 0 {
			return nil, ErrDone
		}
		return s.deliver(), nil
	}
	s.spare = append(s.spare, s.dead[:s.gone]...)
	s.dead = append(s.dead[:0], s.dead[s.gone:]...)
	s.begun, s.waited = true, false
	if h > 0 && t > h {
		s.now, s.over = h, true
		return s.deliver(), nil
	}
	s.now = t
	if s.cfg.Serial {
		if err := s.one(); err != nil {
			return nil, err
		}
	} else if err := s.all(); err != nil {
		return nil, err
	}
	if len(s.follow.drains) > 0 { // in a fork
		s.settleDrains()
	}
	s.timer = 0
	s.over = !s.coming && len(s.waiting) == 0 && len(s.running) == 0
	s.check()
	return s.deliver(), nil
}

// all processes everything that happens now.
func (s *Simulator) all() error {
	for len(s.finishes) > 0 && s.finishes[0].at == s.now {
		s.end(s.finishes[0].job)
	}
	if s.nodes.on {
		for s.nodes.pending[0].at == s.now {
			s.nextNode()
		}
	}
	for s.coming && int64(s.next.Submit) == s.now {
		if err := s.arrive(); err != nil {
			return err
		}
	}
	s.wake()
	return nil
}

// one processes the first thing that happens now.
func (s *Simulator) one() error {
	switch {
	case s.coming && int64(s.next.Submit) == s.now:
		return s.arrive()
	case len(s.finishes) > 0 && s.finishes[0].at == s.now:
		s.end(s.finishes[0].job)
	case s.nodes.on && s.nodes.pending[0].at == s.now:
		s.nextNode()
	default:
		s.wake()
	}
	return nil
}

// wake reports the timer if it is due.
func (s *Simulator) wake() {
	if s.timer == s.now && s.now > 0 {
		s.events = append(s.events, Event{At: time.Duration(s.now), Kind: Timer, Job: -1})
	}
}

// stuck reports that nothing more will happen unless a timer is set: nothing runs, nothing will arrive and no node
// will recover. Further node failures could not help a waiting job.
func (s *Simulator) stuck() bool { return len(s.running) == 0 && !s.coming && s.nodes.down == 0 }

// nextTime returns the time of the next event, maxTime if there is none.
func (s *Simulator) nextTime() int64 {
	t := int64(maxTime)
	if len(s.finishes) > 0 {
		t = s.finishes[0].at
	}
	if s.coming {
		t = min(t, int64(s.next.Submit))
	}
	if s.timer > 0 {
		t = min(t, s.timer)
	}
	if s.nodes.on && (s.timer > 0 || !s.stuck()) {
		t = min(t, s.nodes.pending[0].at)
	}
	return t
}

// deliver returns the events gathered; the next Apply starts a new list in the other buffer.
func (s *Simulator) deliver() *Point {
	s.points++
	s.gone = len(s.dead)
	s.point.Now = time.Duration(s.now)
	s.point.Events, s.events = s.events, s.point.Events[:0]
	return &s.point
}

// end finishes j now.
func (s *Simulator) end(j Job) {
	st := &s.jobs[j]
	s.heapRemove(int(st.heap))
	s.removeFrom(&s.running, j)
	s.cluster.Release(&st.req, st.gpus)
	n := int32(st.req.GPUs)
	if s.near.on {
		s.departFrom(j)
	}
	if st.sized {
		s.account(j, st)
		s.resized(j, st, int(st.asked))
	}
	st.ran += s.now - st.start
	st.left, st.since, st.state, st.rate = 0, s.now, Finished, 0
	st.finish = s.now
	s.ended++
	if f := s.forecasts.by; f != nil {
		f.Finished(time.Duration(s.now), int(j), time.Duration(st.ran))
	}
	s.dead = append(s.dead, j)
	s.events = append(s.events, Event{At: time.Duration(s.now), Kind: Finish, Job: j, N: n, GPUs: st.gpus})
}
