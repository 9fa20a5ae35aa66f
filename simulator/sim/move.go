package sim

import (
	"fmt"
	"time"

	"clustergym/simulator/cluster"
)

// Moving and resizing write a checkpoint first, so nothing is lost; the gang pays for the stop and the start. They are
// not restarts.

func (s *Simulator) migrate(d *Decision) error {
	st, err := s.live(d.Job, Running, "migrate")
	if err != nil {
		return err
	}
	if s.cluster.Pool() {
		return fmt.Errorf("%w: migrate job %d (%s) on a counter, whose GPUs lie nowhere", ErrDecision, d.Job,
			s.traced[d.Job].ID)
	}
	if err := s.move(d.Job, st, &st.req, d.GPUs, "migrate", Migrate); err != nil {
		return err
	}
	s.extra(d.Job).moves++
	return nil
}

func (s *Simulator) resize(d *Decision) error {
	st, err := s.live(d.Job, Running, "resize")
	if err != nil {
		return err
	}
	n := s.sizeOf(d, st)
	if err := s.elastic(d.Job, n, "resize"); err != nil {
		return err
	}
	if n == st.req.GPUs {
		return fmt.Errorf("%w: resize job %d (%s) to the %d GPUs that it has", ErrDecision, d.Job, s.traced[d.Job].ID, n)
	}
	r := s.cluster.Resized(st.req, n)
	if err := s.move(d.Job, st, &r, d.GPUs, "resize", Resize); err != nil {
		return err
	}
	s.extra(d.Job).sizes++
	return nil
}

// move runs j as req on gpus from now on. Its own GPUs are released first, so they may be among the new ones.
func (s *Simulator) move(j Job, st *jobState, req *cluster.Request, gpus []cluster.GPU, verb string,
	kind EventKind) error {
	s.cluster.Release(&st.req, st.gpus)
	if err := s.cluster.Allocate(req, gpus); err != nil {
		if again := s.cluster.Allocate(&st.req, st.gpus); again != nil {
			panic(fmt.Sprintf("sim: job %d cannot have its own GPUs %v back: %v", j, st.gpus, again))
		}
		return fmt.Errorf("%s job %d (%s): %w", verb, j, s.traced[j].ID, err)
	}
	if s.near.on {
		s.departFrom(j)
	}
	s.settle(j, st)
	overhead := s.cfg.Overhead.stop(st.req.GPUs) + s.cfg.Overhead.start(req.GPUs)
	s.account(j, st)
	s.resized(j, st, req.GPUs)
	st.changed = s.points
	s.hold(st, gpus)
	s.place(j, st)
	if s.stints {
		s.begin(j, st, overhead)
	} else {
		st.finish = finishAt(s.now, st.left, st.rate)
	}
	s.refile(st)
	s.events = append(s.events, Event{At: time.Duration(s.now), Kind: kind, Job: j, N: int32(st.req.GPUs), GPUs: st.gpus})
	s.check()
	return nil
}
