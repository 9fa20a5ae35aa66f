package sched

import (
	"context"
	"errors"
	"math"

	"clustergym/env/heuristic"
	"clustergym/env/sim"
	"clustergym/traces"
)

// baseline runs a heuristic over the window before the agent does: what it earns at each moment is what
// Config.Relative subtracts, and where FIFO and SJF agree there is little to learn (Config.Contested). Baselines
// see the whole queue, with admission skip and the same estimates.
type baseline struct {
	sim       *sim.Simulator
	warm      heuristic.Policy
	fifo, sjf heuristic.Policy
	line      timeline
	reward    Reward
	stream    traces.Slice
	dec       sim.Decision
}

func newBaseline(e *Env) (*baseline, error) {
	s, err := sim.New(e.parts.Sim, e.parts.Cluster)
	if err != nil {
		return nil, err
	}
	b := &baseline{sim: s, reward: e.parts.Baseline}
	if e.cfg.Relative != "" && b.reward == nil {
		return nil, errors.New("sched: a relative reward needs a second instance of the reward")
	}
	if b.warm, err = fifoSkip(e.parts.Placement); err != nil {
		return nil, err
	}
	if b.fifo, err = fifoSkip(e.parts.Placement); err != nil {
		return nil, err
	}
	cfg := heuristic.DefaultConfig()
	cfg.Order, cfg.Admission, cfg.Placement = "sjf", "skip", e.parts.Placement
	if !e.state.Blind {
		cfg.Estimates = e.cfg.Estimates
	}
	b.sjf, err = heuristic.New(cfg)
	return b, err
}

// run plays the baselines that e asks for and says whether the window is contested.
func (b *baseline) run(ctx context.Context, e *Env) (contested bool, err error) {
	contested = true
	b.sjf.Reseed(e.seed)
	if e.cfg.Contested {
		fifo, err := b.play(ctx, e, b.fifo, false)
		if err != nil {
			return false, err
		}
		sjf, err := b.play(ctx, e, b.sjf, false)
		if err != nil {
			return false, err
		}
		contested = math.Abs(fifo-sjf) >= 0.01*math.Max(fifo, sjf)
	}
	if e.cfg.Relative != "" {
		h := b.fifo
		if e.cfg.Relative == "sjf" {
			h = b.sjf
		}
		if _, err := b.play(ctx, e, h, true); err != nil {
			return false, err
		}
	}
	return contested, nil
}

// play runs one baseline and returns the mean JCT of the counted jobs in seconds.
func (b *baseline) play(ctx context.Context, e *Env, h heuristic.Policy, record bool) (jct float64, err error) {
	b.stream.Reset(e.win.Traced)
	if err := b.sim.Reset(&b.stream); err != nil {
		return 0, err
	}
	if record {
		b.line.reset()
		b.reward.Reset(&e.win)
	}
	p, err := warmUp(ctx, b.sim, b.warm, &b.dec, e.win.First, nil)
	if err != nil {
		return 0, err
	}
	v := b.sim.View()
	h.Reset(v)
	done := 0
	for {
		for i := range p.Events {
			ev := &p.Events[i]
			if ev.Kind == sim.Finish && v.Pos(ev.Job) >= e.win.First {
				jct += (ev.At - v.Trace(ev.Job).Submit).Seconds()
				done++
			}
			if record {
				lump := b.reward.Event(v, ev)
				b.line.add(ev.At, b.reward.Rate(), lump)
			}
		}
		if done == e.win.Jobs {
			return jct / float64(done), nil
		}
		if err := sim.Decide(b.sim, h, p, &b.dec, nil); err != nil {
			return 0, err
		}
		if p, err = b.sim.Advance(ctx); err != nil {
			return 0, err
		}
	}
}
