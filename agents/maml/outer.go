package maml

import (
	"context"
	"fmt"
	"math"

	"clustergym/nets/optim"
)

// reptile moves the parameters towards the mean of the adapted ones.
func (l *Learner) reptile() error {
	for _, t := range l.batch {
		Displacement(t.out, t.path)
	}
	l.mean(l.grad.Data)
	Step(l.theta.Data, l.theta.Data, l.grad.Data, l.cfg.ReptileStep)
	l.add("grad_norm", optim.GlobalNorm(l.grad))
	return nil
}

// trust takes one step of trust region policy optimisation on the loss after adaptation.
func (l *Learner) trust(ctx context.Context) error {
	c := &l.cfg
	err := l.each(ctx, func(h *workerState, t *trial) error {
		// At the parameters that acted, t.path is still that of collect.
		h.set(t.path.Last())
		var err error
		if t.loss, err = h.model.Surrogate(h.grad, t.after, 0, c.EntCoef); err != nil {
			return err
		}
		copy(t.out, h.grad.Data)
		if t.few = t.after; c.CurvatureEvery > 1 {
			t.few = t.after.Every(c.CurvatureEvery)
		}
		return l.pull(h, t)
	})
	if err != nil {
		return err
	}
	l.mean(l.grad.Data)
	norm, start := optim.GlobalNorm(l.grad), l.total(func(t *trial) float64 { return t.loss })
	l.add("grad_norm", norm)
	if norm == 0 {
		return nil
	}
	if math.IsInf(norm, 0) || norm != norm {
		return fmt.Errorf("the norm of the meta-gradient is %v", norm)
	}
	x, z := make([]float32, len(l.theta.Data)), make([]float32, len(l.theta.Data))
	times := func(dst, v []float32) error { return l.curvature(ctx, dst, v) }
	if err := Solve(x, l.grad.Data, c.CGIterations, times); err != nil {
		return err
	}
	if err := times(z, x); err != nil {
		return err
	}
	quadratic := dot(x, z)
	if !(quadratic > 0) {
		l.add("step_taken", 0)
		return nil
	}
	// First the longest step whose divergence is max_kl by its quadratic model, then shorter ones.
	length := math.Sqrt(2 * c.MaxKL / quadratic)
	try := make([]float32, len(x))
	for k := range c.Backtracks {
		Step(try, l.theta.Data, x, length)
		loss, kl, err := l.outcome(ctx, try)
		if err != nil {
			return err
		}
		if loss < start && kl <= c.MaxKL {
			copy(l.theta.Data, try)
			l.add("step_taken", 1)
			l.add("backtracks", float64(k))
			l.add("kl", kl)
			l.add("improvement", start-loss)
			return nil
		}
		length *= c.Backtrack
	}
	l.add("step_taken", 0)
	l.add("backtracks", float64(c.Backtracks))
	return nil
}

// curvature sets dst to the product of v with the mean over tasks of the Hessian of the divergence after adaptation, as
// a function of the parameters before it: Jᵀ·F·J with J the adaptation's derivative, 1 with order 1.
func (l *Learner) curvature(ctx context.Context, dst, v []float32) error {
	err := l.each(ctx, func(h *workerState, t *trial) error {
		copy(t.out, v)
		if l.cfg.second() {
			if err := h.differ.Push(t.out, t.path, l.cfg.InnerLR, t.inner(h), h.g); err != nil {
				return err
			}
		}
		if err := h.differ.AtRest(t.out, t.path.Last(), t.out, h.divergence(t.few)); err != nil {
			return err
		}
		return l.pull(h, t)
	})
	if err != nil {
		return err
	}
	l.mean(dst)
	for i, x := range v {
		dst[i] += float32(l.cfg.Damping) * x
	}
	return nil
}

// outcome returns the loss and the divergence after adapting from theta on the episodes already played. It leaves
// paths unchanged.
func (l *Learner) outcome(ctx context.Context, theta []float32) (loss, kl float64, err error) {
	err = l.each(ctx, func(h *workerState, t *trial) error {
		// A separate path: t.path remains that of the parameters that acted.
		p := Path[float32]{h.u}
		copy(p[0], theta)
		for k := range t.before {
			if err := h.surrogate(t.before[k], 0, 0)(h.g, p[0]); err != nil {
				return err
			}
			Step(p[0], p[0], h.g, l.cfg.InnerLR)
		}
		h.set(p[0])
		var err error
		if v, ok := h.model.(Valuer); ok {
			t.loss, t.kl, err = v.Values(t.after, 0, l.cfg.EntCoef)
			return err
		}
		if t.loss, err = h.model.Surrogate(nil, t.after, 0, l.cfg.EntCoef); err != nil {
			return err
		}
		t.kl, err = h.model.Divergence(nil, t.after)
		return err
	})
	return l.total(func(t *trial) float64 { return t.loss }), l.total(func(t *trial) float64 { return t.kl }), err
}

// proximal takes some steps of Adam on the clipped loss after adaptation, with the divergences of the policies before
// and after adaptation from those that acted as anchors.
func (l *Learner) proximal(ctx context.Context) error {
	c := &l.cfg
	norms := 0.0
	for range c.Epochs {
		err := l.each(ctx, func(h *workerState, t *trial) error {
			if err := l.adapt(h, t, l.theta.Data); err != nil {
				return err
			}
			if err := h.surrogate(t.after, c.Clip, c.EntCoef)(t.out, t.path.Last()); err != nil {
				return err
			}
			if c.KLCoef > 0 {
				if err := h.divergence(t.after)(h.g, t.path.Last()); err != nil {
					return err
				}
				Step(t.out, t.out, h.g, -c.KLCoef)
			}
			var err error
			if t.kl, err = h.model.Divergence(nil, t.after); err != nil {
				return err
			}
			if err := l.pull(h, t); err != nil {
				return err
			}
			if c.KLCoef > 0 && len(t.before) > 0 {
				if err := h.divergence(t.before[0])(h.g, t.path[0]); err != nil {
					return err
				}
				Step(t.out, t.out, h.g, -c.KLCoef)
			}
			return nil
		})
		if err != nil {
			return err
		}
		l.mean(l.grad.Data)
		norm, scale := optim.ClipScale(l.grad, c.MaxGradNorm)
		if norm-norm != 0 {
			return fmt.Errorf("the norm of the meta-gradient is %v", norm)
		}
		norms += norm
		l.adam.StepScaled(l.grad, c.LR, scale)
	}
	l.add("grad_norm", norms/float64(c.Epochs))
	l.add("kl", l.total(func(t *trial) float64 { return t.kl }))
	return nil
}
