package sched

import (
	"context"
	"fmt"
	"math"
	"time"

	"clustergym/env"
	"clustergym/env/cluster"
	"clustergym/env/sim"
	"clustergym/traces"
)

// Session runs the episodes of an environment that is not assembled from Parts. It chooses an episode's jobs, feeds them to
// the simulator and shows the points to the watcher. The jobs are a window of the workload on an empty cluster; their
// submit times count from the first one's and are stretched to a load. Not safe for concurrent use.
type Session struct {
	id      string // of the environment, for errors
	windows Windows
	part    traces.Part // for episodes without a Split
	load    float64     // 0 = as recorded

	sim    *sim.Simulator
	view   *sim.View
	stream traces.Slice
	watch  sim.Observer
	whole  Baseline
	dec    sim.Decision

	jobs   []traces.Job
	first  int
	origin time.Duration // of the jobs' clock on that of the trace
}

// NewSession returns a session of the environment called id on s over the windows w. Episodes without a Split are of part.
// load is the offered load to which submit times are stretched, 0 = as recorded.
func NewSession(id string, s *sim.Simulator, w Windows, part traces.Part, load float64) *Session {
	return &Session{id: id, windows: w, part: part, load: load, sim: s, view: s.View(), whole: Baseline{sim: s}}
}

// Draw chooses the jobs of episode ep. It returns ep with its Split filled in.
func (s *Session) Draw(ep env.Episode) (env.Episode, error) {
	if ep.Task != nil {
		return ep, fmt.Errorf("%w: %s: this environment has no tasks, got one of %d numbers", env.ErrEpisode, s.id, len(ep.Task))
	}
	part, split, err := SplitPart(s.id, ep.Split, s.part)
	if err != nil {
		return ep, err
	}
	_, counted, at, err := s.windows.At(part, ep.Seed, ep.Window)
	if err != nil {
		return ep, fmt.Errorf("%w: %s: %w", env.ErrEpisode, s.id, err)
	}
	f := 1.0
	if s.load > 0 {
		f = traces.LoadFactor(counted, s.GPUs(), s.load)
	}
	s.jobs, s.first = append(s.jobs[:0], counted...), at
	first := counted[0].Submit
	s.origin = first
	for i := range s.jobs {
		s.jobs[i].Submit = stretched(s.jobs[i].Submit-first, f)
	}
	return env.Episode{Seed: ep.Seed, Window: ep.Window, Split: split}, nil
}

// stretched returns t times f, at most half of the clock's time, so that the other half is left for the jobs to run.
func stretched(t time.Duration, f float64) time.Duration {
	if f == 1 {
		return t
	}
	return time.Duration(min(math.Round(float64(t)*f), traces.MaxTime/2))
}

// NewSimulator returns a simulator for episodes. A run that does not end before the clock does is cut there, and its
// episode is truncated; without a horizon the simulator would report an error.
func NewSimulator(cfg sim.Config, spec cluster.Spec) (*sim.Simulator, error) {
	if cfg.Horizon == 0 {
		cfg.Horizon = traces.MaxTime
	}
	return sim.New(cfg, spec)
}

// Start resets the simulator to the beginning of the episode drawn last.
func (s *Session) Start() error {
	s.stream.ResetAt(s.jobs, s.origin)
	return s.begin(&s.stream)
}

// Open resets the simulator to the beginning of a stream of jobs that is no episode: Len, Jobs and Episode have nothing to say of it.
func (s *Session) Open(jobs traces.Stream) error {
	s.jobs, s.first, s.origin = s.jobs[:0], 0, 0
	return s.begin(jobs)
}

func (s *Session) begin(jobs traces.Stream) error {
	if err := s.sim.Reset(jobs); err != nil {
		return err
	}
	if r, ok := s.watch.(interface{ Reset() }); ok {
		r.Reset()
	}
	return nil
}

// Advance advances to the next point.
func (s *Session) Advance(ctx context.Context) (*sim.Point, error) {
	p, err := s.sim.Advance(ctx)
	if err == nil {
		s.Show(p)
	}
	return p, err
}

// Show shows the watcher a point.
func (s *Session) Show(p *sim.Point) {
	if s.watch != nil {
		_ = s.watch.Observe(s.view, p)
	}
}

// Wait applies a decision to wait and advances to the next point.
func (s *Session) Wait(ctx context.Context) (*sim.Point, error) {
	s.dec.Op, s.dec.GPUs, s.dec.Until = sim.Wait, s.dec.GPUs[:0], 0
	if err := s.sim.Apply(&s.dec); err != nil {
		return nil, err
	}
	return s.Advance(ctx)
}

// Finish runs on to the last finish, or the end of the clock, if there is a watcher. Environments whose episodes end once the last job has started
// call it after filling the last time step.
func (s *Session) Finish(ctx context.Context) error {
	for s.watch != nil && s.view.Ended() < len(s.jobs) && !s.view.Over() {
		if _, err := s.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Episode returns the jobs of the episode drawn last. They are valid until the next Draw.
func (s *Session) Episode() Jobs { return Jobs{s.jobs, s.origin} }

// Play plays the episode drawn last with sch in the agent's place, as Arena.Simulate does.
func (s *Session) Play(ctx context.Context, sch sim.Scheduler, o sim.Observer) error {
	return s.whole.Play(ctx, s.Episode(), 0, sch, o)
}

// Watch shows o the points of later episodes, as Arena.Watch does.
func (s *Session) Watch(o sim.Observer) { s.watch = o }

// Part returns the part of the workload that a split names.
func (s *Session) Part(split string) (traces.Part, error) {
	part, _, err := SplitPart(s.id, split, s.part)
	return part, err
}

// View returns the simulator's state.
func (s *Session) View() *sim.View { return s.view }

// GPUs returns the number of GPUs of the cluster.
func (s *Session) GPUs() int { return s.view.Cluster().GPUs() }

// Jobs returns the episode's jobs in order of submit. They belong to the session.
func (s *Session) Jobs() []traces.Job { return s.jobs }

// Len returns the number of the episode's jobs.
func (s *Session) Len() int { return len(s.jobs) }

// At returns the index of the episode's first job in the workload.
func (s *Session) At() int { return s.first }
