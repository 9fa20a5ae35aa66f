package queuerank

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"clustergym/env"
	"clustergym/env/encode"
	"clustergym/env/sched"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Program is what an environment in which agents choose the next job does in a way of its own. Fields that are empty
// stand for what QueueRank-v1 does.
type Program struct {
	ID      string
	Eager   bool  // the agent is asked after every arrival, even if more jobs arrive at the same instant
	Seconds bool  // waits are divided in seconds, as in RLScheduler's program, to the last bit
	Queue   Queue // which of the jobs that wait are visible
	Machine Machine
	Encoder sched.Encoder
	// Base plays an episode by the order Config.Base and returns its score, for Config.Reward relative.
	Base func(ctx context.Context, ep env.Episode) (score float64, err error)
	// Suits returns why the environment cannot play jobs.
	Suits func(jobs []traces.Job) error
	// NoStreams says why no log can be played (Env.Stream); "" = it can.
	NoStreams string
}

// Queue keeps the jobs that wait, without one that is held. It does not allocate in steady state.
type Queue interface {
	Reset()
	Len() int
	Add(w Waiting)
	Drop(w Waiting)
	// Fill appends up to k visible jobs to dst, of at least one that waits.
	Fill(dst []sim.Job, k int) []sim.Job
	// InOrder appends the jobs that may be back-filled while held is held, in the order in which they are tried.
	InOrder(dst []sim.Job, held sim.Job) []sim.Job
	// Save notes the queue, and Restore returns to what was noted.
	Save()
	Restore()
}

// Waiting is a job that waits. Times are in ns.
type Waiting struct {
	Job              sim.Job
	Pos              int   // in the workload
	Submit, E, Milli int64 // its estimate is E; thousandths of GPUs
}

// Machine says where and when jobs start.
type Machine interface {
	// Place appends the GPUs that j gets to dst[:0], and reports whether it fits now. held says that it is the job that is
	// held.
	Place(j sim.Job, held bool, dst []cluster.GPU) ([]cluster.GPU, bool)
	// Early returns when j, which is held, will fit if the running jobs end as estimated.
	Early(j sim.Job) int64
}

// Env is the environment. An episode of version 1 ends once the last job has started. Schedulers in the agent's place
// (Simulate) with admission commit have the agent's choices, with one exception: of jobs submitted at the same time,
// which the simulator hands out one by one, they may hold the first before they see the others. Not safe for concurrent
// use.
type Env struct {
	*sched.Env
	cfg  Config
	line *line
	sum  *score // nil in version 2
}

// New returns an environment over the windows w. Episodes without a Split are of part. training holds the jobs of the
// training part; features are scaled by their maxima.
func New(cfg Config, spec cluster.Spec, w sched.Windows, training []traces.Job, part traces.Part) (*Env, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Peer || cfg.RLTune != "" {
		return nil, fmt.Errorf("%s: with peer it is RLScheduler-v1, and with rltune RLTune-v1: see their packages", V1)
	}
	return Assemble(cfg, Program{}, spec, w, training, part)
}

// Assemble returns an environment like QueueRank-v1 with the ways of a program. cfg must be valid.
func Assemble(cfg Config, own Program, spec cluster.Spec, w sched.Windows, training []traces.Job,
	part traces.Part) (*Env, error) {
	l, parts, err := assembly(cfg, own, spec, training)
	if err != nil {
		return nil, err
	}
	sum := &score{cfg: &l.cfg, base: own.Base}
	common := sched.DefaultConfig()
	common.Gamma, common.Window, common.Warm, common.Load, common.Estimates, common.Forecast = cfg.Gamma, cfg.Window, 0,
		cfg.Load, cfg.Estimates, cfg.Forecast
	common.Mode = cfg.Mode
	parts.Windows, parts.Part, parts.Cold, parts.PerStep, parts.Starts, parts.Score = w, part, true, true, true, sum
	if own.Base == nil && (cfg.Reward == "relative" || cfg.Filter) {
		b, err := newBaseline(&l.cfg, spec, w, cfg.Estimates)
		if err != nil {
			return nil, err
		}
		if sum.orders = b; cfg.Filter {
			parts.Filter = sched.Filter{Stream: "queuerank/filter", Keeps: b.keeps}
		}
	}
	return l.open(common, parts, sum)
}

// open returns the environment of l.
func (l *line) open(common sched.Config, parts sched.Parts, sum *score) (*Env, error) {
	e, err := sched.New(common, parts)
	if err != nil {
		return nil, err
	}
	l.state, l.win = e.State(), e.Window()
	return &Env{e, l.cfg, l, sum}, nil
}

// assembly returns what all environments have in which the agent chooses the next job: the queue, and the parts but for
// windows and what is paid.
func assembly(cfg Config, own Program, spec cluster.Spec, training []traces.Job) (*line, sched.Parts, error) {
	est := cfg.Estimates
	none := sched.Parts{}
	c, err := cluster.New(spec)
	if err != nil {
		return nil, none, err
	}
	own.ID = cmp.Or(own.ID, V1)
	l := &line{cfg: cfg, own: own, queue: own.Queue, machine: own.Machine}
	if l.queue == nil {
		l.queue = new(queue)
	}
	if own.Machine == nil {
		if cfg.Backfill != "none" && !c.Pool() {
			return nil, none, fmt.Errorf("%s: backfill %s is for counters (pool:N, swf-N), and %s has nodes", own.ID,
				cfg.Backfill, spec.Name)
		}
		place, err := cluster.NewPlacement(cfg.Placement)
		if err != nil {
			return nil, none, err
		}
		l.machine = &counter{l: l, place: place}
	}
	if own.Encoder == nil {
		own.Encoder = &encoder{l: l, most: maximaOf(training, est), seen: encode.ForecastsOf(cfg.Forecast, est, c.GPUs())}
	}
	return l, sched.Parts{
		ID: own.ID, Sim: sim.Config{Comm: "none", Serial: true}, Cluster: spec, Placement: cfg.Placement,
		MaxGPUs: cfg.MaxGPUs, Suits: own.Suits, Slots: l, Actions: choices{l}, Encoder: own.Encoder,
	}, nil
}

// Slots returns the jobs that the agent sees, by slot. They belong to the environment.
func (e *Env) Slots() []sim.Job { return e.State().Slots }

// Waiting returns how many jobs wait, visible or not.
func (e *Env) Waiting() int { return e.line.queue.Len() }

// Estimate returns what is known of a job's run time.
func (e *Env) Estimate(j sim.Job) time.Duration { return e.State().Known[j].Estimate }

// Head plays an episode by always choosing the first visible job, and returns its score.
func (e *Env) Head(ctx context.Context, ep env.Episode) (score float64, err error) {
	err = e.Play(ctx, ep, func(*sched.State) (int32, error) { return 0, nil })
	return e.sum.sum.score(&e.cfg, e.sum.gpus), err
}
