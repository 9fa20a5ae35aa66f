package ppo

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/internal/par"
	"clustergym/nets"
	"clustergym/nets/kernel"
	"clustergym/nets/model"
	"clustergym/nets/op"
	"clustergym/nets/optim"
)

var _ agents.Pupil = (*Agent)(nil)

// study is what imitation needs beside the agent's own parts. It is made when the first step is watched.
type study struct {
	fwd  []*model.ACForward // one for each worker
	logp [][]float32        // likewise [rows of a shard, Logits]
	work func(worker, i int) error
	seen []studied // by shard
}

// taught is what a checkpoint keeps of an imitation. While it goes on, the critic counts in units of the root mean
// square of all returns that are known, because a teacher's returns can be much smaller than the learner's own: with
// env.relative those of the baseline itself are near 0. The first update after it goes over to the units of scaled
// rewards (Agent.recount).
type taught struct {
	N       int64   `json:"n"`       // returns
	Squares float64 `json:"squares"` // their sum
	Unit    float64 `json:"unit"`    // of the critic; 0 = as in training
}

// size returns the root mean square of the returns, 1 if there are none or all are 0.
func (t *taught) size() float64 {
	if t.Squares == 0 {
		return 1
	}
	return math.Sqrt(t.Squares / float64(t.N))
}

// recount makes the critic count in units of the given size without changing what it says, and returns the factor of
// its numbers.
func (a *Agent) recount(unit float64) (factor float32) {
	factor = 1
	if was := a.taught.Unit; was != 0 {
		factor = float32(was / unit)
	}
	a.taught.Unit = unit
	for _, p := range a.net.ValueHead() {
		multiply(p, factor)
	}
	return factor
}

// graduate ends an imitation at the first update after it: the critic and the values that it gave for the rollout now
// count in scaled rewards.
func (a *Agent) graduate(scale float64) {
	factor := a.recount(scale)
	a.taught.Unit = 0
	n := a.roll.Len() * a.rows
	for _, column := range [...][]float32{a.roll.Value[:n], a.roll.Final[:n], a.last} {
		multiply(column, factor)
	}
}

func multiply(x []float32, factor float32) {
	if factor == 1 {
		return
	}
	for i := range x {
		x[i] *= factor
	}
}

// studied are sums over the steps of a shard or minibatch.
type studied struct{ cross, agree, value float64 }

// Foresee implements agents.Pupil.
func (a *Agent) Foresee(ret []float32) {
	for _, r := range ret {
		if x := float64(r); !math.IsNaN(x) {
			a.taught.N++
			a.taught.Squares += x * x
		}
	}
}

// Watch implements agents.Pupil. The rollout keeps the teacher's actions, and the returns in place of the critic's
// values.
func (a *Agent) Watch(b *env.Batch, label, _ *env.Actions, ret []float32, next *env.Batch) error {
	if b.N != a.rows || next.N != a.rows || len(ret) < a.rows {
		return fmt.Errorf("ppo: batches of %d and %d rows with %d returns for an agent of %d", b.N, next.N, len(ret), a.rows)
	}
	if err := a.act.fit(b, label, nil, false); err != nil {
		return err
	}
	if s := a.act.scale; s != nil {
		for i, kind := range next.Kind[:a.rows] {
			if kind != env.First {
				s.Observe(b.Obs[i*a.act.obsLen:], 1)
			}
		}
	}
	a.step = *b
	a.step.Obs = a.act.seen(b.Obs, b.N)
	clear(a.logp)
	a.acted = false
	if err := a.roll.Add(&a.step, label, next, a.logp, nil, nil); err != nil {
		return err
	}
	at := (a.roll.Len() - 1) * a.rows
	for i, r := range ret[:a.rows] {
		a.roll.Final[at+i] = unknown
		if r == r {
			a.roll.Value[at+i], a.roll.Final[at+i] = r, 0
		}
	}
	return nil
}

// unknown, in column Final of a rollout that was watched, marks a step whose return is not known.
const unknown = 1

// Pace implements agents.Pupil. A critic with parameters of its own keeps its own rate.
func (a *Agent) Pace(lr float64) { a.pace = lr }

// Study implements agents.Pupil: one pass in minibatches over a full rollout, or over what there is of one. The
// policy's loss is the cross entropy −log π(teacher's action), the critic's half the squared error to the return of
// what was played, where it is known; entropy is not rewarded, and schedules have not begun.
//
// The cross entropy's gradient is that of the clipped surrogate for advantage 1 at ratio 1, so the loss is the agent's
// own. The statistics: imitation/cross_entropy, imitation/agreement (share of the steps in which the teacher's action
// has the largest logit), imitation/value_loss, imitation/grad_norm, imitation/return_size (the root mean square, in
// which the critic counts) and imitation/n_updates.
func (a *Agent) Study(ctx context.Context, end bool) (agents.Stats, error) {
	if end {
		a.roll.Cut()
	}
	if !a.roll.Full() {
		return nil, agents.ErrNotReady
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx)
	a.studying()
	a.recount(a.taught.size())
	a.index = a.index[:0]
	for k, live := range a.roll.Live[:a.roll.Len()*a.rows] {
		if live {
			a.index = append(a.index, k)
		}
	}
	n := len(a.index)
	a.order.Shuffle(n, func(i, j int) { a.index[i], a.index[j] = a.index[j], a.index[i] })
	var sum studied
	norms, steps := 0.0, 0
	m, _ := a.cfg.pieces(n)
	for k := range m {
		from, to := a.cfg.piece(k, n)
		if from == to {
			continue
		}
		grad, part, err := a.studyPiece(ctx, a.index[from:to])
		if err != nil {
			return nil, err
		}
		norm, scale := optim.ClipScale(grad, a.cfg.MaxGradNorm)
		if math.IsNaN(norm) || math.IsInf(norm, 0) {
			return nil, fmt.Errorf("ppo: the gradient of %s at step %d of the optimiser, while it imitates", grad.NotFinite(),
				a.updates)
		}
		a.opt.StepScaled(grad, cmp.Or(a.pace, a.cfg.LR), scale)
		a.updates++
		if c := a.critic; c != nil {
			c.taught = true
			grad, _, err := c.gradient(ctx, moments{from: from, to: to, steps: to - from}, 0)
			c.taught = false
			if err != nil {
				return nil, err
			}
			if _, err := a.descend(grad, descent{opt: c.opt, lr: a.cfg.criticLR(), to: len(grad.Data)}); err != nil {
				return nil, err
			}
		}
		norms, steps = norms+norm, steps+1
		sum.cross, sum.agree, sum.value = sum.cross+part.cross, sum.agree+part.agree, sum.value+part.value
	}
	if sum := kernel.SumSquares(a.net.Params().Data); math.IsNaN(sum) || math.IsInf(sum, 0) {
		return nil, fmt.Errorf("ppo: the parameter %s after step %d of the optimiser", a.net.Params().NotFinite(), a.updates)
	}
	a.roll.Reset()
	if n == 0 {
		return nil, agents.ErrNotReady
	}
	d := float64(n)
	a.stats = append(a.stats[:0],
		agents.Stat{Name: "imitation/cross_entropy", Value: sum.cross / d},
		agents.Stat{Name: "imitation/agreement", Value: sum.agree / d},
		agents.Stat{Name: "imitation/value_loss", Value: sum.value / d},
		agents.Stat{Name: "imitation/grad_norm", Value: norms / float64(steps)},
		agents.Stat{Name: "imitation/return_size", Value: a.taught.Unit},
		agents.Stat{Name: "imitation/n_updates", Value: float64(a.updates)},
	)
	return a.stats, nil
}

func (a *Agent) studying() {
	if a.study != nil {
		return
	}
	s := &study{work: a.studyShard, seen: make([]studied, len(a.shards))}
	for _, l := range a.losses {
		s.fwd, s.logp = append(s.fwd, a.net.Forward(l.cap)), append(s.logp, make([]float32, l.cap*a.act.dist.Logits()))
	}
	a.study = s
}

// studyPiece returns the gradient over one minibatch and the sums over its steps.
func (a *Agent) studyPiece(ctx context.Context, index []int) (*nets.Params, studied, error) {
	b := &a.batch
	b.index = index
	b.coefs = coefs{clip: a.cfg.Clip, vf: a.cfg.VFCoef, divisor: float64(len(index))}
	a.grads.Begin()
	if err := par.For(ctx, len(a.losses), len(a.shards), a.study.work); err != nil {
		return nil, studied{}, err
	}
	grad := a.grads.Sum()
	var sum studied
	for i, s := range a.study.seen {
		if from, to := a.cut(i); from < to {
			sum.cross, sum.agree, sum.value = sum.cross+s.cross, sum.agree+s.agree, sum.value+s.value
		}
	}
	if c := sum.cross + sum.value; math.IsNaN(c) || math.IsInf(c, 0) {
		return nil, studied{},
			fmt.Errorf("ppo: cross entropy %v and value loss %v at step %d of the optimiser, while it imitates", sum.cross,
				sum.value, a.updates)
	}
	return grad, sum, nil
}

// studyShard computes shard i with the worker's own loss.
func (a *Agent) studyShard(worker, i int) error {
	l, b, r, s := a.losses[worker], &a.batch, a.roll, a.study
	from, to := a.cut(i)
	if from == to {
		return nil
	}
	n, d := to-from, a.act.dist
	m, f, w := d.Logits(), len(d.Sizes), d.Head()
	l.set(b.coefs)
	a.loadSteps(l, b.index[from:to])
	head, value := s.fwd[worker].Run(l.obs[:n*a.act.obsLen], n)
	logp := s.logp[worker][:n*m]
	op.LogProbs(d, logp, head, l.mask, n)
	var sum studied
	for k, at := range b.index[from:to] {
		var lp float32
		agrees, first := 1.0, 0
		for j, size := range d.Sizes {
			taken, logits := int(l.action[k*f+j]), head[k*w+first:k*w+first+size]
			lp += logp[k*m+first+taken]
			for c, x := range logits {
				if l.mask[k*m+first+c] != 0 && x > logits[taken] {
					agrees = 0
				}
			}
			first += size
		}
		l.logp[k], l.value[k], l.advantage[k], l.weight[k] = lp, value[k], 1, 1
		l.target[k] = value[k]
		if r.Final[at] != unknown {
			l.target[k] = float32(float64(r.Value[at]) / a.taught.Unit)
		}
		e := float64(l.target[k]) - float64(value[k])
		sum.cross -= float64(lp)
		sum.agree += agrees
		sum.value += e * e / 2
	}
	clear(l.weight[n:])
	if err := l.run(); err != nil {
		return err
	}
	s.seen[i] = sum
	a.grads.Put(i, l.grad())
	return nil
}
