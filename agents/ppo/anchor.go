package ppo

import (
	"context"

	"clustergym/env"
	"clustergym/nets/model"
)

// anchor is the policy that the training began with, which Config.Anchor keeps the agent near: a coefficient times
//
//	KL(π_first ‖ π) at the states that the agent visits
//
// is added to the loss, as AlphaStar does with the policy that it imitated (Vinyals et al. 2019, Nature 575, "Methods,
// Reinforcement learning"), and the coefficient falls linearly over the training, as the weight of demonstrations does
// in DAPG (Rajeswaran et al. 2018, arXiv 1709.10087, section IV-B), there geometrically. It is exact over all actions,
// not sampled.
type anchor struct {
	net  *model.ActorCritic
	fwd  *model.ACBatches
	set  bool      // net is the first policy
	head []float32 // [Steps*rows, Head], of the rollout that is learnt from
}

func newAnchor(cfg Config, s env.Spec, workers int, seed uint64, size int) (*anchor, error) {
	net, err := newNet(cfg, s, seed)
	if err != nil {
		return nil, err
	}
	return &anchor{net: net, fwd: net.Batches(workers), head: make([]float32, size*distribution(s).Head())}, nil
}

// anchored prepares the anchor for the rollout and returns its weight, which is 0 without one. The first call makes the
// policy of the moment the anchor.
func (a *Agent) anchored(ctx context.Context) (float64, error) {
	c := a.anchor
	if c == nil {
		return 0, nil
	}
	if !c.set {
		if err := c.net.Params().CopyFrom(a.net.Params()); err != nil {
			return 0, err
		}
		c.set = true
	}
	n := a.roll.Len() * a.rows
	if err := c.fwd.Run(ctx, a.roll.Obs[:n*a.act.obsLen], n, c.head[:n*a.act.dist.Head()], nil); err != nil {
		return 0, err
	}
	return a.cfg.Anchor * (1 - a.cfg.AnchorDecay*a.begun), nil
}

// load copies what the anchor would do at steps of the rollout to a loss.
func (c *anchor) load(l *loss, steps []int) {
	if c == nil {
		return
	}
	w := c.net.Actions()
	for k, at := range steps {
		copy(l.anchor[k*w:(k+1)*w], c.head[at*w:(at+1)*w])
	}
	copy(l.anchorStd, c.net.LogStd())
}

// warmed counts an update of the critic's warm-up. After the last the optimiser begins anew if the policy has not
// learned anything yet: its moments are 0, and Adam's corrections for that count all steps. After an imitation it goes
// on with those from there.
func (a *Agent) warmed(warming bool) {
	if !warming {
		return
	}
	a.warm++
	if a.warm == a.cfg.CriticWarmup && a.taught.N == 0 {
		a.opt.Reset()
	}
}
