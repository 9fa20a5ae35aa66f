package sched

import (
	"cmp"
	"context"
	"errors"
	"math"

	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
)

// relative runs heuristics over the window before the agent does. Config.Relative subtracts what one of them earns at
// each moment; Config.Contested compares FIFO with SJF, because there is little to learn where they agree. They see the
// whole queue, with admission skip and the same estimates.
type relative struct {
	plays  Baseline
	orders map[string]schedulers.Policy // those that are played, by name
	order  string                       // the reward is relative to it, "" = none
	line   timeline
	reward Reward

	// The warm-up of a baseline is that of the episode, so it goes on from there. Where estimates come from a predictor,
	// it needs one that has seen the warm-up, and plays it itself, as Parts.Rival does: fork is nil.
	fork   *sim.Simulator
	future sim.Future

	first     int // position of the first counted job
	mode      Mode
	recording bool
	fresh     bool    // no point has been seen since recording began
	jct       float64 // seconds, of the counted jobs that have finished
	done      int
	event     sim.Event // scratch space
}

func newRelative(e *Env) (*relative, error) {
	b := &relative{reward: e.parts.Baseline, order: e.cfg.baseline(), orders: map[string]schedulers.Policy{}}
	if b.order != "" && b.reward == nil {
		return nil, errors.New("sched: a relative reward needs a second instance of the reward")
	}
	var err error
	simulated := e.parts.Sim
	if !e.est.Causal() {
		simulated.Predictor = nil // it is for observations
	}
	if b.plays.sim, err = NewSimulator(simulated, e.parts.Cluster); err != nil {
		return nil, err
	}
	if p := e.parts.Rival; p != nil {
		b.plays.warm, b.orders[b.order] = p, p
		return b, nil
	}
	if b.plays.warm, err = e.parts.order(cmp.Or(e.cfg.order(e.cfg.Ahead), "fifo"), e.cfg.Estimates); err != nil {
		return nil, err
	}
	if !e.est.Causal() {
		if b.fork, err = e.sim.View().Fork(); err != nil {
			return nil, err
		}
	}
	played := []string{b.order}
	if e.cfg.Contested {
		played = append(played, "fifo", "sjf")
	}
	for _, order := range played {
		if order == "" {
			continue
		}
		if b.orders[order], err = e.parts.order(order, e.cfg.Estimates); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// contested reports whether the mean JCTs of FIFO and SJF differ by at least 1 % on e's window.
func (b *relative) contested(ctx context.Context, e *Env, _ uint64) (bool, error) {
	fifo, err := b.play(ctx, e, "fifo")
	if err != nil {
		return false, err
	}
	sjf, err := b.play(ctx, e, "sjf")
	return math.Abs(fifo-sjf) >= 0.01*math.Max(fifo, sjf), err
}

// record plays the baseline that Config.Relative names on e's window and records what it earns. e is at p, the end of
// its warm-up.
func (b *relative) record(ctx context.Context, e *Env, p *sim.Point) error {
	b.line.reset()
	b.reward.Reset(&e.win)
	b.recording, b.fresh = true, true
	defer func() { b.recording = false }()
	v := e.state.View
	if b.fork == nil || e.sim.Refused().Count > 0 {
		_, err := b.play(ctx, e, b.order)
		return err
	}
	h := b.begin(e, b.order)
	b.future.Jobs = e.win.Traced[v.Arrived():]
	b.fork.CopyFrom(v, &b.future)
	jobs := e.win.Play()
	return b.plays.playOn(ctx, b.fork, p, &jobs, h, b)
}

// begin makes a baseline ready for e's window.
func (b *relative) begin(e *Env, order string) schedulers.Policy {
	h := b.orders[order]
	if schedulers.Estimating(order) { // the noise is the episode's; a random placement keeps its seed
		h.Reseed(e.seed)
	}
	b.first, b.mode, b.jct, b.done = e.win.First, e.win.Mode, 0, 0
	return h
}

// play runs one baseline and returns the mean JCT of the counted jobs in seconds.
func (b *relative) play(ctx context.Context, e *Env, order string) (jct float64, err error) {
	h := b.begin(e, order)
	err = b.plays.Play(ctx, e.win.Play(), h, b)
	return b.jct / float64(b.done), err
}

// Observe implements sim.Observer.
func (b *relative) Observe(v *sim.View, p *sim.Point) error {
	if b.recording && b.fresh && b.mode == Ongoing {
		enter(b.reward, v, &b.event)
		b.line.add(p.Now, b.reward.Rate(), 0)
		b.fresh = false
		return nil
	}
	for i := range p.Events {
		ev := &p.Events[i]
		if ev.Kind == sim.Finish && v.Pos(ev.Job) >= b.first {
			b.jct += (ev.At - v.Trace(ev.Job).Submit).Seconds()
			b.done++
		}
		if b.recording {
			lump := b.reward.Event(v, ev)
			b.line.add(ev.At, b.reward.Rate(), lump)
		}
	}
	return nil
}
