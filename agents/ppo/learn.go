package ppo

import (
	"context"
	"fmt"
	"math"

	"clustergym/agents"
	"clustergym/internal/par"
	"clustergym/nets"
	"clustergym/nets/kernel"
	"clustergym/nets/model"
	"clustergym/nets/optim"
)

// Learn makes one update, all epochs over a full rollout, and empties the rollout. Before the rollout is full it
// returns agents.ErrNotReady. The statistics, in this order: policy_loss, value_loss, entropy, approx_kl, clip_fraction
// and grad_norm (means over the minibatches), explained_variance (of the acting critic), learning_rate, clip_range,
// reward_scale, epochs (passes begun, fewer when target_kl ended the update) and n_updates; then those of keys that are
// off by default. With CriticEpochs all but value_loss are of the policy's passes. An update that has begun is finished
// even if ctx is cancelled, because half an update could not be resumed. A loss or a gradient that is not finite is an
// error that names it and the step, and the parameters stay as they were before that step. Parameters that are not
// finite after the update are an error too.
func (a *Agent) Learn(ctx context.Context) (agents.Stats, error) {
	if !a.roll.Full() {
		return nil, agents.ErrNotReady
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx)
	scale := 1.0
	if a.cfg.RewardScale {
		scale = a.scale.Scale()
	}
	if a.taught.Unit != 0 {
		a.graduate(scale)
	}
	if a.cfg.Average > 0 {
		a.subtract()
	}
	if err := a.roll.Advantages(a.last, float32(a.cfg.Lambda), float32(1/scale)); err != nil {
		return nil, err
	}
	explained, err := a.explained()
	if err != nil {
		return nil, err
	}
	shared := 0.0
	if a.groups != nil {
		shared = a.baselines(1 / scale)
	}
	if err := a.rescale(); err != nil {
		return nil, err
	}
	a.index = a.index[:0]
	for k, live := range a.roll.Live[:a.roll.Len()*a.rows] {
		if live {
			a.index = append(a.index, k)
		}
	}
	lr, clip := a.cfg.LR, a.cfg.Clip
	if a.cfg.AnnealLR {
		lr *= 1 - a.begun
	}
	if a.cfg.AnnealClip {
		clip *= 1 - a.begun
	}

	if a.batch.anchor, err = a.anchored(ctx); err != nil {
		return nil, err
	}
	warming := a.warm < a.cfg.CriticWarmup
	p, v, err := a.teach(ctx, lr, clip, warming)
	if err != nil {
		return nil, err
	}
	if sum := kernel.SumSquares(a.net.Params().Data); math.IsNaN(sum) || math.IsInf(sum, 0) {
		return nil, fmt.Errorf("ppo: the parameter %s after step %d of the optimiser", a.net.Params().NotFinite(), a.updates)
	}
	a.roll.Reset()
	a.warmed(warming)

	return a.report(p, v, explained, lr, clip, scale, shared), nil
}

// report returns the statistics of an update, see Learn.
func (a *Agent) report(p, v passed, explained, lr, clip, scale, shared float64) agents.Stats {
	sum, d := p.sum, float64(max(p.measured, 1))
	if a.critic != nil {
		sum.value = v.sum.value * d / float64(max(v.measured, 1))
	}
	a.stats = append(a.stats[:0],
		agents.Stat{Name: "policy_loss", Value: sum.policy / d},
		agents.Stat{Name: "value_loss", Value: sum.value / d},
		agents.Stat{Name: "entropy", Value: sum.entropy / d},
		agents.Stat{Name: "approx_kl", Value: sum.kl / d},
		agents.Stat{Name: "clip_fraction", Value: sum.clipped / d},
		agents.Stat{Name: "grad_norm", Value: p.norms / d},
		agents.Stat{Name: "explained_variance", Value: explained},
		agents.Stat{Name: "learning_rate", Value: lr},
		agents.Stat{Name: "clip_range", Value: clip},
		agents.Stat{Name: "reward_scale", Value: scale},
		agents.Stat{Name: "epochs", Value: float64(p.epochs)},
		agents.Stat{Name: "n_updates", Value: float64(a.updates)},
	)
	if a.groups != nil {
		a.stats = append(a.stats, agents.Stat{Name: "ppo/group_share", Value: shared})
	}
	if a.cfg.Average > 0 {
		a.stats = append(a.stats, agents.Stat{Name: "ppo/average_reward", Value: 3600 * a.average.PerSecond})
	}
	if a.popart != nil {
		a.stats = append(a.stats, agents.Stat{Name: "ppo/value_mean", Value: a.popart.Mu},
			agents.Stat{Name: "ppo/value_deviation", Value: a.popart.Sigma})
	}
	if a.anchor != nil {
		a.stats = append(a.stats, agents.Stat{Name: "ppo/anchor", Value: a.batch.anchor},
			agents.Stat{Name: "ppo/anchor_loss", Value: sum.anchor / d})
	}
	if a.cfg.CriticWarmup > 0 {
		a.stats = append(a.stats, agents.Stat{Name: "ppo/critic_warmup", Value: float64(a.cfg.CriticWarmup - a.warm)})
	}
	return a.stats
}

// teach makes the update's passes: p of the policy and, where it has none of its own, of the critic; v of the critic
// alone. While the critic warms up, nothing but the critic's own parameters changes.
func (a *Agent) teach(ctx context.Context, lr, clip float64, warming bool) (p, v passed, err error) {
	step := descent{opt: a.opt, lr: lr, to: len(a.net.Params().Data)}
	if warming {
		step.from, step.to = a.net.Critic()
	}
	if !warming || a.critic == nil {
		if p, err = a.passes(ctx, a.cfg.Epochs, a.gradient, clip, step); err != nil {
			return p, v, err
		}
	}
	c := a.critic
	if c == nil {
		return p, v, nil
	}
	step.opt, step.lr = c.opt, a.cfg.criticLR()
	if a.cfg.AnnealLR {
		step.lr *= 1 - a.begun
	}
	v, err = a.passes(ctx, a.cfg.CriticEpochs, c.gradient, clip, step)
	return p, v, err
}

// descent is how a step is made: by which optimiser, how far, and of which elements of the parameters.
type descent struct {
	opt      *optim.Adam
	lr       float64
	from, to int
}

// passed is what passes over a rollout did: sums over minibatches.
type passed struct {
	sum              stats
	norms            float64
	measured, epochs int
}

// passes makes passes over the live steps of the rollout, in a new order each: a step along the gradient of every
// minibatch. TargetKL ends them.
func (a *Agent) passes(ctx context.Context, epochs int,
	gradient func(ctx context.Context, b moments, clip float64) (*nets.Params, stats, error),
	clip float64, step descent) (p passed, err error) {
	n := len(a.index)
	for ; p.epochs < epochs; p.epochs++ {
		a.order.Shuffle(n, func(i, j int) { a.index[i], a.index[j] = a.index[j], a.index[i] })
		if err := a.measure(); err != nil {
			return p, err
		}
		for _, b := range a.pass {
			if b.steps == 0 { // fewer live steps than minibatches
				continue
			}
			grad, s, err := gradient(ctx, b, clip)
			if err != nil {
				return p, err
			}
			p.sum.add(s)
			p.measured++
			if a.cfg.TargetKL > 0 && s.kl > 1.5*a.cfg.TargetKL {
				p.epochs++
				return p, nil
			}
			norm, err := a.descend(grad, step)
			if err != nil {
				return p, err
			}
			p.norms += norm
		}
	}
	return p, nil
}

// descend makes one step along grad, whose norm it clips and returns.
func (a *Agent) descend(grad *nets.Params, step descent) (norm float64, err error) {
	clear(grad.Data[:step.from]) // what is clipped is the gradient of the parts that learn
	clear(grad.Data[step.to:])
	norm, scale := optim.ClipScale(grad, a.cfg.MaxGradNorm)
	if math.IsNaN(norm) || math.IsInf(norm, 0) {
		return 0, fmt.Errorf("ppo: the gradient of %s at step %d of the optimiser", grad.NotFinite(), a.updates)
	}
	step.opt.StepPart(grad, step.lr, scale, step.from, step.to)
	a.updates++
	return norm, nil
}

// rescale has popart count the targets of the rollout, over all replicas.
func (a *Agent) rescale() error {
	if a.popart == nil {
		return nil
	}
	sums := append(a.sums[:0], 0, 0, 0)
	for k, live := range a.roll.Live[:a.roll.Len()*a.rows] {
		if live {
			x := float64(a.roll.Return[k])
			sums[0], sums[1], sums[2] = sums[0]+1, sums[1]+x, sums[2]+x*x
		}
	}
	if err := a.add(sums); err != nil {
		return err
	}
	a.popart.update(sums[0], sums[1], sums[2], a.net.ValueHead())
	return nil
}

// explained returns the explained variance of the acting critic, the mean over replicas.
func (a *Agent) explained() (float64, error) {
	sums := append(a.sums[:0], a.roll.ExplainedVariance(), 1)
	if err := a.add(sums); err != nil {
		return 0, err
	}
	return sums[0] / sums[1], nil
}

// add replaces sums by the sums over replicas.
func (a *Agent) add(sums []float64) error {
	if a.exchange == nil {
		return nil
	}
	return a.exchange.Sum(a.rank, nil, sums)
}

// gradient returns the gradient over one minibatch, parts of which other replicas may have, with the minibatch's
// statistics. Replicas' gradients are weighted by their numbers of steps: their sum over the common divisor
// is what one agent with all steps would get. The statistics go with the gradient, so a minibatch is one exchange.
func (a *Agent) gradient(ctx context.Context, m moments, clip float64) (*nets.Params, stats, error) {
	b := &a.batch
	a.normalise(m)
	b.coefs = coefs{clip: clip, clipValue: a.cfg.ClipValue, vf: a.cfg.VFCoef, ent: a.cfg.EntCoef, anchor: b.anchor,
		divisor: float64(m.steps)}
	a.grads.Begin()
	if err := par.For(ctx, len(a.losses), len(a.shards), a.work); err != nil {
		return nil, stats{}, err
	}
	grad := a.grads.Sum()
	var sum stats
	for i, s := range a.shards { // in their order, as the gradients
		if from, to := a.cut(i); from < to {
			sum.add(s)
		}
	}
	if a.exchange != nil {
		sums := append(a.sums[:0], sum.policy, sum.value, sum.entropy, sum.kl, sum.clipped, sum.anchor)
		if err := a.exchange.Sum(a.rank, grad.Data, sums); err != nil {
			return nil, stats{}, err
		}
		sum = stats{sums[0], sums[1], sums[2], sums[3], sums[4], sums[5]}
	}
	for _, l := range [...]struct {
		name  string
		value float64
	}{{"policy_loss", sum.policy}, {"value_loss", sum.value}, {"entropy", sum.entropy}, {"anchor_loss", sum.anchor}} {
		if math.IsNaN(l.value) || math.IsInf(l.value, 0) {
			return nil, stats{}, fmt.Errorf("ppo: %s is %v at step %d of the optimiser", l.name, l.value, a.updates)
		}
	}
	return grad, sum, nil
}

// cut returns the part of the minibatch that shard i works on.
func (a *Agent) cut(i int) (from, to int) {
	n, s := len(a.batch.index), len(a.shards)
	return i * n / s, (i + 1) * n / s
}

// workShard computes shard i with the worker's own loss.
func (a *Agent) workShard(worker, i int) error {
	l, b, r := a.losses[worker], &a.batch, a.roll
	from, to := a.cut(i)
	if from == to {
		return nil
	}
	l.set(b.coefs)
	a.loadSteps(l, b.index[from:to])
	for k, at := range b.index[from:to] {
		l.logp[k], l.value[k], l.target[k] = r.LogProb[at], a.popart.output(r.Value[at]), a.popart.output(r.Return[at])
		l.advantage[k] = b.advantage[from+k]
		l.weight[k] = 1
	}
	clear(l.weight[to-from:])
	a.anchor.load(l, b.index[from:to])
	if err := l.run(); err != nil {
		return err
	}
	a.shards[i] = l.stats()
	a.grads.Put(i, l.grad())
	return nil
}

// loadSteps copies what was seen and done at steps of the rollout to a loss.
func (a *Agent) loadSteps(l *loss, steps []int) {
	r, o, m, f, c := a.roll, a.act.obsLen, a.act.dist.Logits(), len(a.act.dist.Sizes), a.act.dist.Dims
	for k, at := range steps {
		copy(l.obs[k*o:(k+1)*o], r.Obs[at*o:(at+1)*o])
		model.Legal(l.mask[k*m:(k+1)*m], r.Mask[at*m:])
		for j, x := range r.Action.Disc[at*f : (at+1)*f] {
			l.action[k*f+j] = float32(x)
		}
		copy(l.number[k*c:(k+1)*c], r.Action.Cont[at*c:(at+1)*c])
	}
}

// moments are what is known of a minibatch of a pass before its gradient is computed.
type moments struct {
	from, to        int     // which of the shuffled steps are this replica's part
	steps           int     // of the minibatch of all replicas
	mean, deviation float64 // of its advantages, likewise
}

// measure fills pass with the minibatches of a pass over the shuffled steps. They depend on the shuffle and on the
// advantages but not on the parameters, so replicas exchange those of all minibatches at once, before the first.
func (a *Agent) measure() error {
	n := len(a.index)
	m, _ := a.cfg.pieces(len(a.roll.Live)) // the same number for every replica
	if cap(a.pass) < m {
		a.pass, a.ahead = make([]moments, m), make([]float64, 2*m)
	}
	a.pass = a.pass[:m]
	sums := a.ahead[:2*m]
	for k := range a.pass {
		b := &a.pass[k]
		b.from, b.to = a.cfg.piece(k, n)
		if a.roll.Len() < a.roll.Steps { // cut short: smaller pieces, so that it has a part in every minibatch
			b.from, b.to = k*n/m, (k+1)*n/m
		}
		sum := 0.0
		for _, at := range a.index[b.from:b.to] {
			sum += float64(a.roll.Advantage[at])
		}
		sums[2*k], sums[2*k+1] = float64(b.to-b.from), sum
	}
	if err := a.add(sums); err != nil {
		return err
	}
	for k := range a.pass {
		b := &a.pass[k]
		b.steps, b.mean, b.deviation = int(sums[2*k]), 0, 1
		if a.cfg.NormAdvantage && b.steps > 1 {
			b.mean = sums[2*k+1] / float64(b.steps)
		}
	}
	if !a.cfg.NormAdvantage {
		return nil
	}
	squares := a.ahead[:m]
	for k := range a.pass {
		b := &a.pass[k]
		sum := 0.0
		for _, at := range a.index[b.from:b.to] {
			d := float64(a.roll.Advantage[at]) - b.mean
			sum += d * d
		}
		squares[k] = sum
	}
	if err := a.add(squares); err != nil {
		return err
	}
	for k := range a.pass {
		if b := &a.pass[k]; b.steps > 1 {
			b.deviation = math.Sqrt(squares[k]/(float64(b.steps)-1)) + 1e-8
		}
	}
	return nil
}

// normalise makes a minibatch the current one and fills its advantages: minus their mean, divided by their sample
// deviation, both over all replicas. A minibatch of one step is left as it is.
func (a *Agent) normalise(m moments) {
	b := &a.batch
	b.index = a.index[m.from:m.to]
	for k, at := range b.index {
		b.advantage[k] = float32((float64(a.roll.Advantage[at]) - m.mean) / m.deviation)
	}
}
