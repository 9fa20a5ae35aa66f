package ppo

import (
	"context"
	"fmt"
	"math"

	"clustergym/internal/par"
	"clustergym/nets"
	"clustergym/nets/optim"
)

// critic learns values in passes of its own, as in OpenAI's Spinning Up: the policy's passes can end early, and the two
// have learning rates of their own. Its optimiser has moments for all parameters; those of the policy stay 0, because
// their gradient here is 0.
type critic struct {
	a      *Agent
	opt    *optim.Adam
	losses []*valueLoss // one for each worker
	shards []float64    // value losses of a minibatch's shards
	grads  *optim.ShardSum
	work   func(worker, i int) error
	taught bool // targets are the returns of what was watched
}

func newCritic(a *Agent, adam optim.AdamConfig, capacity int) (*critic, error) {
	c := &critic{a: a, opt: optim.NewAdam(a.net.Params(), adam), shards: make([]float64, a.cfg.Shards)}
	c.work = c.workShard
	for range a.losses {
		l, err := newValueLoss(a.net, a.spec.ObsLen(), capacity)
		if err != nil {
			return nil, err
		}
		c.losses = append(c.losses, l)
	}
	c.grads = optim.NewShardSum(c.losses[0].prog.Grad(), a.cfg.Shards, len(c.losses))
	return c, nil
}

// gradient is Agent.gradient of the value loss. Only the value of the statistics is filled in.
func (c *critic) gradient(ctx context.Context, m moments, _ float64) (*nets.Params, stats, error) {
	a := c.a
	b := &a.batch
	b.index = a.index[m.from:m.to]
	b.coefs = coefs{clipValue: a.cfg.ClipValue, vf: a.cfg.VFCoef, divisor: float64(m.steps)}
	if c.taught {
		b.coefs.clipValue = 0
	}
	c.grads.Begin()
	if err := par.For(ctx, len(c.losses), len(c.shards), c.work); err != nil {
		return nil, stats{}, err
	}
	grad := c.grads.Sum()
	sums := append(a.sums[:0], 0)
	for i, v := range c.shards {
		if from, to := a.cut(i); from < to {
			sums[0] += v
		}
	}
	if a.exchange != nil {
		if err := a.exchange.Sum(a.rank, grad.Data, sums); err != nil {
			return nil, stats{}, err
		}
	}
	if v := sums[0]; math.IsNaN(v) || math.IsInf(v, 0) {
		return nil, stats{}, fmt.Errorf("ppo: value_loss is %v at step %d of the optimiser", v, a.updates)
	}
	return grad, stats{value: sums[0]}, nil
}

// workShard computes shard i with the worker's own loss.
func (c *critic) workShard(worker, i int) error {
	a, l := c.a, c.losses[worker]
	from, to := a.cut(i)
	if from == to {
		return nil
	}
	r, o := a.roll, a.act.obsLen
	setCoefs(l.coef, a.batch.coefs)
	for k, at := range a.batch.index[from:to] {
		copy(l.obs[k*o:(k+1)*o], r.Obs[at*o:(at+1)*o])
		l.weight[k] = 1
		if c.taught {
			l.value[k], l.target[k] = 0, float32(float64(r.Value[at])/a.taught.Unit)
			if r.Final[at] == unknown {
				l.weight[k] = 0
			}
			continue
		}
		l.value[k], l.target[k] = a.popart.output(r.Value[at]), a.popart.output(r.Return[at])
	}
	clear(l.weight[to-from:])
	if err := l.prog.Run(); err != nil {
		return err
	}
	c.shards[i] = float64(l.prog.Output(outStats)[0])
	c.grads.Put(i, l.prog.Grad())
	return nil
}
