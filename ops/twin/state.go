package twin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"clustergym/env/sched"
	"clustergym/internal/fault"
	"clustergym/lab/predictors"
	"clustergym/live"
	"clustergym/ops/steer/mirror"
	"clustergym/simulator/cluster"
	"clustergym/simulator/predict"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// State is a cluster at one moment, from which forecasts play on.
type State struct {
	At      time.Time
	Now     time.Duration // the same on the clock of the jobs' Submit
	Origin  time.Duration // what the clock of the history shows when that one shows 0
	Cluster string
	Spec    cluster.Spec
	Nodes   []string // names by number; nil on a counter
	Racks   []string // of the nodes, by number
	Down    []int    // nodes on which no job can start
	// Jobs run, or compete for GPUs: those that run in order of start, then those that wait in the order of the cluster's
	// own queue.
	Jobs []Job
	// Blocked wait for something else than GPUs.
	Blocked []BlockedJob
}

// Job is a job that runs, or competes for GPUs.
type Job struct {
	traces.Job
	Runs     bool
	Start    time.Duration // of a job that runs
	Held     []cluster.GPU // likewise; nil on a counter
	Forecast predict.Forecast
	Told     bool      // there is a Forecast
	Planned  time.Time // when the cluster itself expects it to start; zero = it does not say
	Tied     string    // what the forecast does not know of where it may run
	Unfit    bool      // the cluster as it is could never run it
}

// BlockedJob is a job that has no forecast.
type BlockedJob struct {
	ID   string `json:"id"`
	GPUs int    `json:"gpus"`
	Why  string `json:"why"`
}

// Eye looks at a cluster again and again. Its predictor learns from the jobs that end between two looks. Not safe for
// concurrent use.
type Eye struct {
	Estimates sim.Estimates // history, gbdt, or trace for time limits alone
	History   []traces.Job  // what predictors know from the beginning
	Mirror    mirror.Config

	layout mirror.Layout
	sim    *sim.Simulator
	mirror *mirror.Mirror
	origin time.Duration
}

// follower makes a simulator take the facts of a mirror: it is sched.Facts.
type follower struct{ e *Eye }

func (f follower) Follow(g sched.Following) error {
	f.e.origin = g.Origin
	return f.e.sim.Follow(sim.Following{Origin: g.Origin, Estimates: f.e.Estimates})
}

func (f follower) Tell(fact *sim.Fact) error {
	_, err := f.e.sim.Tell(fact)
	return err
}

func (f follower) Look(now time.Duration) error {
	_, err := f.e.sim.Look(now)
	return err
}

// open makes the simulator that follows.
func (e *Eye) open(spec cluster.Spec) error {
	cfg := sim.DefaultConfig()
	cfg.Comm = "none"
	if e.Estimates.Causal() {
		by, err := predictors.Maker(e.Estimates, e.History)
		if err != nil {
			return err
		}
		cfg.Predictor = by
	}
	var err error
	e.sim, err = sim.New(cfg, spec)
	return err
}

// Look asks the cluster and returns its state.
func (e *Eye) Look(ctx context.Context, c live.Cluster, timeout time.Duration) (*State, *live.Snapshot, error) {
	within, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	s, err := c.Observe(within)
	if err != nil {
		if within.Err() != nil && ctx.Err() == nil {
			err = fmt.Errorf("%w: no answer within %v", live.ErrUnreachable, timeout)
		}
		return nil, nil, err
	}
	st, err := e.See(s)
	return st, s, err
}

// See takes in what a cluster says.
func (e *Eye) See(s *live.Snapshot) (*State, error) {
	for again := false; ; again = true {
		if e.mirror == nil {
			e.layout = mirror.LayoutOf(s)
			if len(e.layout.Nodes) == 0 {
				return nil, fmt.Errorf("%w: the cluster has no node with GPUs", live.ErrUnsupported)
			}
			if err := e.open(e.layout.Spec); err != nil {
				return nil, err
			}
			var err error
			if e.mirror, err = mirror.New(e.Mirror, e.layout, s); err != nil {
				return nil, err
			}
		}
		_, err := e.mirror.Show(follower{e}, sched.Following{}, s)
		if errors.Is(err, mirror.ErrLayout) && !again {
			e.mirror = nil
			continue
		}
		if err != nil {
			return nil, err
		}
		return e.state(s)
	}
}

// state returns what s shows, with forecasts.
func (e *Eye) state(s *live.Snapshot) (*State, error) {
	st := &State{At: s.At, Now: e.mirror.Now(), Origin: e.origin, Cluster: s.Cluster, Spec: e.layout.Spec,
		Nodes: e.layout.Nodes}
	racks, vcs := map[string]*live.Node{}, false
	for i := range s.Nodes {
		racks[s.Nodes[i].Name] = &s.Nodes[i]
		vcs = vcs || s.Nodes[i].GPUs > 0 && s.Nodes[i].VCs != nil
	}
	for k, name := range e.layout.Nodes {
		n := racks[name]
		if n == nil || n.Down { // one that is not told of any more
			st.Down = append(st.Down, k)
		}
		rack := ""
		if n != nil {
			rack = n.Rack
		}
		st.Racks = append(st.Racks, rack)
	}
	var waiting []*live.Job
	for i := range s.Jobs {
		t := &s.Jobs[i]
		switch {
		case t.GPUs < 1:
		case t.State == live.Running:
			j, err := e.job(t)
			if err != nil {
				return nil, err
			}
			j.Runs, j.Start, j.Held = true, s.At.Sub(t.Start), e.mirror.GPUs(t.ID)
			j.Start = max(0, st.Now-max(0, j.Start))
			j.Submit = min(j.Submit, j.Start)
			st.Jobs = append(st.Jobs, j)
		case t.Blocked != "":
			st.Blocked = append(st.Blocked, BlockedJob{t.ID, t.GPUs, t.Blocked})
		default:
			waiting = append(waiting, t)
		}
	}
	slices.SortFunc(st.Jobs, func(a, b Job) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.ID, b.ID)) })
	slices.SortFunc(waiting, func(a, b *live.Job) int { // as the cluster has it
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(b.Rank, a.Rank), a.Submit.Compare(b.Submit),
			cmp.Compare(a.ID, b.ID))
	})
	for _, t := range waiting {
		j, err := e.job(t)
		if err != nil { // a question may add nodes that can
			j = Job{Job: t.Job, Unfit: true}
			j.Work, j.Submit = 0, max(0, st.Now-max(0, s.At.Sub(t.Submit)))
		}
		j.Planned = t.Planned
		j.Submit, j.Tied = min(j.Submit, st.Now), tied(s, t, vcs)
		st.Jobs = append(st.Jobs, j)
	}
	return st, nil
}

// tied says what restricts a job to some nodes.
func tied(s *live.Snapshot, t *live.Job, vcs bool) string {
	switch {
	case len(t.Nodes) > 0:
		return "it must run on " + strings.Join(t.Nodes, ",")
	case len(t.Excluded) > 0:
		return "it must not run on " + strings.Join(t.Excluded, ",")
	case vcs && t.VC != "" && slices.ContainsFunc(s.Nodes,
		func(n live.Node) bool { return n.GPUs > 0 && n.VCs != nil && !slices.Contains(n.VCs, t.VC) }):
		return "some nodes do not belong to " + t.VC
	}
	return ""
}

// job returns a job as the simulator has it.
func (e *Eye) job(t *live.Job) (Job, error) {
	v := e.sim.View()
	k, ok := v.Find(t.ID)
	if !ok {
		return Job{}, fault.Mistakef("job %s cannot run on this cluster", t.ID)
	}
	return jobOf(v, k), nil
}

func jobOf(v *sim.View, k sim.Job) Job {
	j := Job{Job: *v.Trace(k)}
	j.Work = 0
	if f, ok := v.Renewed(k); ok {
		j.Forecast, j.Told = f, true
	} else if f := v.Forecast(k); f != nil {
		j.Forecast, j.Told = *f, true
	}
	return j
}
