package external

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"clustergym/bridge/budget"
	"clustergym/bridge/handle"
	"clustergym/bridge/server"
	"clustergym/bridge/wire"
	"clustergym/env/rollout"
	"clustergym/internal/fault"
	"clustergym/internal/plain"
	"clustergym/lab/envs"
	"clustergym/lab/simulate"
	"clustergym/simulator/cluster"
	"clustergym/simulator/policyname"
	"clustergym/simulator/schedulers"
)

// factory serves environments, and simulations for clients that schedule them.
type factory struct {
	server.Factory
	registry *envs.Registry
	budget   *budget.Budget // nil = no limit
	clock    func() time.Duration
}

var (
	_ handle.Simulations = (*factory)(nil)
	_ handle.Budgeted    = (*factory)(nil)
)

// NewFactory returns a factory with which a server serves the environments of r, and simulations of the workloads and
// clusters that r allows. clock measures for how long a reply is computed, which changes no result.
func NewFactory(r *envs.Registry, clock func() time.Duration) server.Factory {
	return &factory{Factory: envs.NewFactory(r), registry: r, clock: clock}
}

// UseBudget implements server.Budgeted.
func (f *factory) UseBudget(b *budget.Budget) {
	f.budget = b
	f.registry.UseBudget(b)
}

// Simulate implements handle.Simulations.
func (f *factory) Simulate(ctx context.Context, lim handle.Limits, o *handle.Opening,
	w *wire.Writer) (handle.Served, error) {
	parts, e := partsOf(o.Req)
	if e != nil {
		return nil, e
	}
	kwargs, e := o.Req.Sub("kwargs")
	if e != nil {
		return nil, e
	}
	args := DefaultArgs()
	given, err := envs.DecodeKwargs(kwargs, &args)
	if err != nil {
		return nil, err
	}
	s := &simulations{
		account: f.budget.Account(), clock: f.clock, most: lim.MaxFrameOut, workers: lim.Workers, log: o.Log,
	}
	if s.workers == 0 {
		s.workers = runtime.GOMAXPROCS(0)
	}
	s.workers = min(s.workers, len(parts))
	whole := false
	defer func() { // of a panic too
		if !whole {
			s.account.Release()
		}
	}()
	if err := f.fill(ctx, s, &args, given, parts); err != nil {
		return nil, err
	}
	s.writeOpened(w, o)
	if w.Len() > lim.MaxFrameOut {
		return nil, wire.Errorf(wire.TooLarge, "the description of the cluster has %d bytes, want at most %d", w.Len(),
			lim.MaxFrameOut)
	}
	whole = true
	return s, nil
}

// fill makes the plays. Their memory is reserved first.
func (f *factory) fill(ctx context.Context, s *simulations, args *Args, given *cluster.Spec, parts []part) error {
	if !f.registry.Own() {
		if err := cheap(parts); err != nil {
			return err
		}
	}
	spec, err := f.registry.Cluster(args.Cluster, given)
	if err != nil {
		return err
	}
	jobs, info, err := f.registry.Jobs(ctx, args.Trace, s.account)
	if err != nil {
		return err
	}
	mistake := func(err error) error { return f.registry.Mistake(err, args.Trace, args.Trace) }
	if s.stage, err = simulate.NewStage(ctx, args.config(), spec, jobs, info); err != nil {
		return mistake(err)
	}
	s.jobs, _ = s.stage.Jobs()
	if need := int64(len(parts)) * s.playBytes(); !s.account.Reserve(budget.Environments, need) {
		return s.account.Refuse(plain.Count(len(parts), "simulation", "simulations"), need)
	}
	for i, p := range parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		x, err := s.stage.Begin(ctx, p.policy, p.seed)
		if err != nil {
			if m, ok := errors.AsType[*fault.Mistake](err); ok {
				err = &fault.Mistake{Err: fmt.Errorf("play %d: %w", i, m.Err)}
			}
			return mistake(err)
		}
		s.plays = append(s.plays, newPlay(x, args, p.ask))
	}
	return nil
}

// cheap returns the mistake of a client that asks for a policy which searches: it may take any time for a decision.
func cheap(parts []part) error {
	for i, p := range parts {
		n, err := rollout.Names().Find(p.policy)
		if p.policy == "" || err != nil {
			continue // Begin says what is wrong
		}
		if h := schedulers.Named(n); n.Ahead != policyname.None || h.Clairvoyant() {
			return &wire.Error{Code: wire.BadKwargs, Msg: fmt.Sprintf("play %d: policy", i), Got: fmt.Sprintf("%.60q", p.policy),
				Want: "one that does not search: this server has clients besides its owner"}
		}
	}
	return nil
}

// playBytes bounds the memory of one play: its jobs in the simulator, the records of its metrics and its predictor.
func (s *simulations) playBytes() int64 {
	c := s.stage.Cluster()
	bytes := 256<<10 + 500*int64(s.jobs) + 130*int64(c.GPUs()) + 350*int64(c.Nodes())
	if est, _ := s.stage.Estimates(); est.Causal() {
		bytes += 900 * int64(s.jobs)
	}
	return bytes
}

// simulations are the plays that a client has opened together.
type simulations struct {
	stage   *simulate.Stage
	plays   []*play
	jobs    int // of each play
	account *budget.Account
	clock   func() time.Duration
	most    int // bytes of a reply
	workers int
	log     *slog.Logger
	broken  bool // a request was abandoned
}

var _ handle.Served = (*simulations)(nil)

// Envs implements handle.Served.
func (s *simulations) Envs() int { return 0 }

// Stats implements handle.Served.
func (s *simulations) Stats() handle.Stats { return handle.Stats{} }

// Poison implements handle.Served.
func (s *simulations) Poison() { s.broken = true }

// Close implements handle.Served.
func (s *simulations) Close() error {
	s.plays, s.stage = nil, nil
	s.account.Release()
	return nil
}

// ReplyBytes implements handle.Served. Replies in which many jobs arrive or end at once take more, which is reserved
// when it happens.
func (s *simulations) ReplyBytes() int { return len(s.plays) * (16<<10 + 8*min(s.jobs, 1<<14)) }

// RequestBytes implements handle.Served.
func (s *simulations) RequestBytes() int { return 16 << 10 * len(s.plays) }

// Refuse implements handle.Served.
func (s *simulations) Refuse(need int64) *wire.Error {
	return s.account.Refuse(plain.Count(len(s.plays), "simulation", "simulations"), need)
}
