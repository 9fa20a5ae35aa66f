package steer

import (
	"context"
	"fmt"
	"strconv"

	"clustergym/env/sched"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
)

// Simulated is a policy on a simulated cluster, which its environment follows as it follows a real one: it is told
// what happens and not how long jobs will run. It has to watch its run from the first point on (sim.Observer).
//
// A start that the run does not allow is left out, and asked about again at the next point: jobs without GPUs hold
// cores of which an environment knows nothing.
type Simulated struct {
	ctx    context.Context //nolint:containedctx // a scheduler's methods have none
	p      *Policy
	jobs   []sim.Job // of the run, by position
	starts []Start   // decided at the current point and not yet carried out
	asked  bool      // at the current point
	unseen int       // jobs without GPUs that wait or run
	twin   *cluster.Cluster
}

// Simulated returns p for one run of a simulator on the cluster that p was opened on. Until the run has ended, p does
// nothing else.
func (p *Policy) Simulated(ctx context.Context) (*Simulated, error) {
	s := &Simulated{ctx: ctx, p: p}
	return s, p.Env.Follow(sched.Following{})
}

// Reset implements sim.Scheduler.
func (s *Simulated) Reset(*sim.View) {}

// Observe implements sim.Observer: what has happened is told.
func (s *Simulated) Observe(v *sim.View, p *sim.Point) error {
	for i := range p.Events {
		e := &p.Events[i]
		f := v.Fact(e)
		if e.Job >= 0 {
			t, pos := v.Trace(e.Job), v.Pos(e.Job)
			if e.Kind == sim.Submit {
				for len(s.jobs) <= pos {
					s.jobs = append(s.jobs, -1)
				}
				s.jobs[pos] = e.Job
			}
			if t.GPUs < 1 {
				s.count(e.Kind)
				continue
			}
			// Accountings name a job twice where it ran in two pieces; a position is one job's.
			if f.ID = strconv.Itoa(pos); e.Kind == sim.Submit {
				job := *t
				job.ID, f.ID, f.Job = f.ID, "", &job
			}
		}
		if err := s.p.Env.Tell(&f); err != nil {
			return fmt.Errorf("%s: %w", s.p.Name, err)
		}
	}
	s.asked, s.starts = false, nil
	s.p.Env.More(v.Arriving())
	return s.p.Env.Look(p.Now)
}

// Decide implements sim.Scheduler.
func (s *Simulated) Decide(v *sim.View, _ *sim.Point, d *sim.Decision) (err error) {
	if !s.asked {
		s.asked = true
		if s.starts, err = s.p.Starts(s.ctx); err != nil {
			return fmt.Errorf("%s: %w", s.p.Name, err)
		}
	}
	for len(s.starts) > 0 {
		x := &s.starts[0]
		s.starts = s.starts[1:]
		pos, err := strconv.Atoi(s.p.Env.View().Trace(x.Job).ID)
		if err != nil {
			return err
		}
		j := s.jobs[pos]
		if s.unseen > 0 && !s.allows(v, j, x.GPUs) {
			continue
		}
		d.Op, d.Job, d.GPUs = sim.StartJob, j, append(d.GPUs[:0], x.GPUs...)
		return nil
	}
	return nil
}

// count counts jobs that the environment does not see.
func (s *Simulated) count(kind sim.EventKind) {
	switch kind {
	case sim.Submit:
		s.unseen++
	case sim.Finish, sim.Drop:
		s.unseen--
	}
}

// allows reports whether the cluster lets j start on gpus beside jobs that the environment does not see.
func (s *Simulated) allows(v *sim.View, j sim.Job, gpus []cluster.GPU) bool {
	if s.twin == nil {
		s.twin = v.Cluster().Twin()
	}
	s.twin.CopyFrom(v.Cluster())
	return s.twin.Allocate(v.Request(j), gpus) == nil
}
