package ddqn

import (
	"context"
	"fmt"
	"math"

	"clustergym/agents"
	"clustergym/internal/par"
	"clustergym/nets/kernel"
	"clustergym/nets/model"
	"clustergym/nets/optim"
)

// worker is the networks and the loss of one goroutine.
type worker struct {
	online, target *model.QForward
	loss           *loss
	taught         *loss // nil until the agent imitates
}

func newWorker(net, target *model.QNet, obsLen, rows int) (*worker, error) {
	l, err := newLoss(net, obsLen, rows, false)
	return &worker{online: net.Forward(rows), target: target.Forward(rows), loss: l}, err
}

// shard is the part [from, to) of a batch, and its loss.
type shard struct {
	from, to int
	loss     float64
}

// due returns the number of updates that the observed steps call for. Steps that pass while there is too little to
// learn from are skipped for good.
func (a *Agent) due() int64 {
	since := a.steps - int64(a.cfg.LearningStarts)
	if since < 0 {
		return 0
	}
	now := since/int64(a.cfg.TrainEvery) + 1
	if a.refill && a.buffer.Added() >= uint64(max(a.cfg.Batch, min(a.cfg.LearningStarts, a.cfg.Buffer))) {
		a.refill = false
	}
	if a.refill || a.buffer.Len() < a.cfg.Batch {
		a.intervals = now
		return 0
	}
	return now - a.intervals
}

// Learn makes every update that has become due since the last call: GradientSteps gradient steps for each TrainEvery
// steps observed. If none is due it returns agents.ErrNotReady. The statistics, in this order: loss, td_error_mean,
// q_mean, target_mean and grad_norm (means over the gradient steps), epsilon, beta (with prioritised replay),
// reward_scale, learning_rate, replay_size and n_updates. Updates that have begun are finished even if ctx is
// cancelled, because half of them could not be resumed. A loss or a gradient that is not finite is an error that
// names it and the step, and the parameters stay as they were before that step. Parameters that are not finite after
// the updates are an error too.
func (a *Agent) Learn(ctx context.Context) (agents.Stats, error) {
	due := a.due()
	if due <= 0 {
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
	a.reward = a.cfg.RewardFactor / scale

	var sum measures
	first := a.updates == 0
	n := int(due) * a.cfg.GradientSteps
	if a.cfg.GradientSteps < 0 {
		n = int(due) * a.cfg.TrainEvery
	}
	for range n {
		m, err := a.update(ctx)
		if err != nil {
			return nil, err
		}
		sum.add(m)
		if a.cfg.TargetEvery == 0 {
			if err := a.moveTarget(1); err != nil {
				return nil, err
			}
		}
	}
	if sum := kernel.SumSquares(a.net.Params().Data); math.IsNaN(sum) || math.IsInf(sum, 0) {
		return nil, fmt.Errorf("ddqn: the parameter %s after step %d of the optimiser", a.net.Params().NotFinite(), a.updates)
	}
	a.intervals += due
	if every := int64(a.cfg.TargetEvery); every > 0 && a.steps/every > a.targets {
		times := a.steps/every - a.targets
		a.targets += times
		if first { // until now the networks were equal, and moves had no effect
			times = 1
		}
		if err := a.moveTarget(times); err != nil {
			return nil, err
		}
	}

	d := float64(n)
	a.stats = append(a.stats[:0],
		agents.Stat{Name: "loss", Value: sum.loss / d},
		agents.Stat{Name: "td_error_mean", Value: sum.err / d},
		agents.Stat{Name: "q_mean", Value: sum.q / d},
		agents.Stat{Name: "target_mean", Value: sum.target / d},
		agents.Stat{Name: "grad_norm", Value: sum.norm / d},
		agents.Stat{Name: "epsilon", Value: a.epsilon()},
	)
	if a.prioritized != nil {
		a.stats = append(a.stats, agents.Stat{Name: "beta", Value: a.beta()})
	}
	a.stats = append(a.stats,
		agents.Stat{Name: "reward_scale", Value: scale},
		agents.Stat{Name: "learning_rate", Value: a.rate()},
		agents.Stat{Name: "replay_size", Value: float64(a.buffer.Len())},
		agents.Stat{Name: "n_updates", Value: float64(a.updates)},
	)
	return a.stats, nil
}

// measures are the numbers that one gradient step reports, means over the batch.
type measures struct{ loss, err, q, target, norm float64 }

func (m *measures) add(o measures) {
	m.loss += o.loss
	m.err += o.err
	m.q += o.q
	m.target += o.target
	m.norm += o.norm
}

// update makes one gradient step.
func (a *Agent) update(ctx context.Context) (measures, error) {
	var err error
	if a.prioritized != nil {
		err = a.prioritized.Sample(a.draws, a.beta(), a.batch)
	} else {
		err = a.uniform.Sample(a.draws, a.batch)
	}
	if err != nil {
		return measures{}, err
	}
	a.grads.Begin()
	if err := par.For(ctx, len(a.own), len(a.shards), a.work); err != nil {
		return measures{}, err
	}
	grad := a.grads.Sum()
	var m measures
	for _, s := range a.shards { // in their order, as the gradients; of more shards than rows some are empty
		if s.from < s.to {
			m.loss += s.loss
		}
	}
	n := float64(a.cfg.Batch)
	for k, y := range a.wanted {
		e := float64(a.delta[k])
		m.err += math.Abs(e) / n
		m.target += float64(y) / n
		m.q += (float64(y) + e) / n
	}
	if math.IsNaN(m.loss) || math.IsInf(m.loss, 0) {
		return measures{}, fmt.Errorf("ddqn: the loss is %v at step %d of the optimiser", m.loss, a.updates)
	}
	var scale float64
	m.norm, scale = optim.ClipScale(grad, a.cfg.MaxGradNorm)
	if math.IsNaN(m.norm) || math.IsInf(m.norm, 0) {
		return measures{}, fmt.Errorf("ddqn: the gradient of %s at step %d of the optimiser", grad.NotFinite(), a.updates)
	}
	a.opt.StepScaled(grad, a.rate(), scale)
	a.updates++
	if a.prioritized != nil {
		if err := a.prioritized.Update(a.batch.Index, a.delta); err != nil {
			return measures{}, err
		}
	}
	return m, nil
}

// workShard computes targets, loss and gradient of shard i with a worker's own buffers.
func (a *Agent) workShard(by, i int) error {
	s, b := &a.shards[i], a.batch
	n := s.to - s.from
	if n == 0 {
		return nil
	}
	o, k := a.spec.ObsLen(), a.net.Actions()
	w := a.own[by]
	l := w.loss
	if a.teaching {
		l = w.taught
	}
	l.set(a.cfg.Huber, float64(a.cfg.Batch))

	nextObs, nextMask := b.NextObs[s.from*o:s.to*o], b.NextMask[s.from*k:s.to*k]
	value := w.target.Run(nextObs, nextMask, n)
	choice := value
	if a.cfg.Double {
		choice = w.online.Run(nextObs, nextMask, n)
	}
	for r := 0; r < n; r++ {
		at := s.from + r
		y := a.reward * float64(b.Reward[at])
		if d := float64(b.Discount[at]); d != 0 { // observations after a termination are not used
			c := agents.Best(choice[r*k:(r+1)*k], nextMask[r*k:(r+1)*k])
			if c < 0 {
				return fmt.Errorf("ddqn: a value of the next observation is NaN at step %d of the optimiser", a.updates)
			}
			y += d * float64(value[r*k+c])
		}
		l.target[r], a.wanted[at] = float32(y), float32(y)
		l.action[r] = float32(b.Action.Disc[at])
		l.weight[r] = b.Weight[at]
	}
	l.see(b.Obs[s.from*o:], n*o)
	model.Legal(l.mask[:n*k], b.Mask[s.from*k:])
	clear(l.weight[n:]) // the shard is smaller than the largest
	if a.teaching {
		l.part(n)
	}
	if err := l.run(); err != nil {
		return err
	}
	copy(a.delta[s.from:s.to], l.errors())
	s.loss = l.value()
	a.grads.Put(i, l.grad())
	return nil
}

// moveTarget moves the target network towards the online one, or onto it, the given number of times. Between two
// updates of the online network, several moves equal one by 1 - (1-tau)^times.
func (a *Agent) moveTarget(times int64) error {
	if a.cfg.Tau == 1 {
		return a.target.Params().CopyFrom(a.net.Params())
	}
	tau := a.cfg.Tau
	if times > 1 {
		tau = 1 - math.Pow(1-tau, float64(times))
	}
	return a.target.Params().Lerp(a.net.Params(), float32(tau))
}
