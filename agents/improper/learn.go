package improper

import (
	"context"
	"fmt"
	"math"
	"slices"

	"clustergym/agents"
	"clustergym/internal/par"
)

// shard holds sums over a piece of a rollout. Shards are added up in order, so that the number of workers changes
// nothing.
type shard struct {
	grad    []float64 // [dim], of the sum of advantage·log π, and of the entropy
	share   []float64 // [controllers], of probabilities
	entropy float64
	right   []float64 // [n], the critic's features times returns
	product []float64 // [max(dim, n)], of a matrix with a vector
	x       []float64 // [n], scratch
	log     []float64 // [controllers], scratch
}

func newShard(dim, controllers, n int) shard {
	return shard{
		grad: make([]float64,
			dim), share: make([]float64, controllers), right: make([]float64, n), product: make([]float64, max(dim, n)),
		x: make([]float64, n), log: make([]float64, controllers),
	}
}

func (s *shard) clear() {
	clear(s.grad)
	clear(s.share)
	clear(s.right)
	s.entropy = 0
}

func (s *shard) add(o *shard) {
	for _, c := range [][2][]float64{{s.grad, o.grad}, {s.share, o.share}, {s.right, o.right}} {
		for i, v := range c[1] {
			c[0][i] += v
		}
	}
	s.entropy += o.entropy
}

// pieces calls fn for every shard with its steps from, …, to − 1.
func (a *Agent) pieces(ctx context.Context, fn func(s *shard, from, to int)) error {
	all := a.roll.Len() * a.rows
	return par.For(ctx, a.workers, len(a.shards), func(_, i int) error {
		fn(&a.shards[i], i*all/len(a.shards), (i+1)*all/len(a.shards))
		return nil
	})
}

// Learn makes one update when what it learns from is complete, or returns agents.ErrNotReady.
func (a *Agent) Learn(ctx context.Context) (agents.Stats, error) {
	if a.trial != nil {
		return a.trial.learn()
	}
	if !a.roll.Full() {
		return nil, agents.ErrNotReady
	}
	for i := range a.rows {
		a.value[i] = a.critic.value(a.last[i*a.obs : (i+1)*a.obs])
	}
	if err := a.roll.Advantages(a.value, float32(a.cfg.Lambda), 1); err != nil {
		return nil, err
	}
	n, mean, deviation := a.moments()
	if n == 0 { // reset steps alone
		a.roll.Reset()
		return nil, agents.ErrNotReady
	}
	if mean-mean != 0 || deviation-deviation != 0 {
		return nil, fmt.Errorf("improper: the advantages of update %d have mean %v and deviation %v", a.updates, mean,
			deviation)
	}
	explained := a.roll.ExplainedVariance()
	if err := a.pieces(ctx, func(s *shard, from, to int) {
		s.clear()
		a.gather(s, from, to, mean, deviation)
	}); err != nil {
		return nil, err
	}
	a.sum.clear()
	for i := range a.shards {
		a.sum.add(&a.shards[i])
	}
	for _, c := range [][]float64{a.sum.grad, a.sum.share} {
		for i := range c {
			c[i] /= n
		}
	}
	norm := length(a.sum.grad)
	kl, err := a.direction(ctx, n)
	if err != nil {
		return nil, err
	}
	if step := length(a.step); norm-norm != 0 || !(step <= math.MaxFloat32) {
		return nil,
			fmt.Errorf(
				"improper: the step of update %d has length %v and its gradient %v: a weight or an observation is no number, or "+
					"lr is too large", a.updates, step, norm)
	}
	if err := a.fit(ctx, n); err != nil {
		return nil, err
	}
	for i, v := range a.step {
		a.params.Data[i] += float32(v)
	}
	a.roll.Reset()
	a.updates++
	return a.report(a.sum.entropy/n, slices.Max(a.sum.share), norm, kl, explained), nil
}

// report returns the figures of an update. heaviest is the largest mean weight of a controller.
func (a *Agent) report(entropy, heaviest, norm, kl, explained float64) agents.Stats {
	a.stats = append(a.stats[:0],
		agents.Stat{Name: "entropy", Value: entropy}, agents.Stat{Name: "weight_max", Value: heaviest},
		agents.Stat{Name: "grad_norm", Value: norm},
		agents.Stat{Name: "kl", Value: kl}, agents.Stat{Name: "explained_variance", Value: explained},
		agents.Stat{Name: "n_updates", Value: float64(a.updates)})
	return a.stats
}

// moments returns the number of transitions and their advantages' mean and deviation.
func (a *Agent) moments() (n, mean, deviation float64) {
	sum, squares := 0.0, 0.0
	for k, live := range a.roll.Live[:a.roll.Len()*a.rows] {
		if live {
			n++
			sum += float64(a.roll.Advantage[k])
		}
	}
	if n == 0 {
		return 0, 0, 0
	}
	mean = sum / n
	for k, live := range a.roll.Live[:a.roll.Len()*a.rows] {
		if live {
			d := float64(a.roll.Advantage[k]) - mean
			squares += d * d
		}
	}
	return n, mean, math.Sqrt(squares/n) + 1e-8
}

// gather adds the steps from, …, to − 1 to s, and keeps the weights of the controllers in their states.
func (a *Agent) gather(s *shard, from, to int, mean, deviation float64) {
	for k := from; k < to; k++ {
		if !a.roll.Live[k] {
			continue
		}
		obs, weights := a.roll.Obs[k*a.obs:(k+1)*a.obs], a.probs[k*a.controllers:(k+1)*a.controllers]
		a.weights(weights, a.params.Data, obs, a.roll.Mask[k*a.controllers:(k+1)*a.controllers])
		entropy := 0.0
		for j, p := range weights {
			if s.log[j] = 0; p > 0 {
				s.log[j] = math.Log(p)
				entropy -= p * s.log[j]
			}
			s.share[j] += p
		}
		s.entropy += entropy
		advantage := (float64(a.roll.Advantage[k]) - mean) / deviation
		chosen := int(a.roll.Action.Disc[k])
		for j, p := range weights {
			d := -advantage*p - a.cfg.EntCoef*p*(s.log[j]+entropy)
			if j == chosen {
				d += advantage
			}
			a.spread(s.grad, j, d, obs)
		}
		a.critic.features(s.x, obs)
		ret := float64(a.roll.Return[k])
		for i, x := range s.x {
			s.right[i] += x * ret
		}
	}
}

// spread adds d times the features of a state to controller j's row of dst.
func (a *Agent) spread(dst []float64, j int, d float64, obs []float32) {
	row := dst[j*a.width : (j+1)*a.width]
	row[0] += d
	for i := range row[1:] {
		row[1+i] += d * float64(obs[i])
	}
}

// fisher adds F·v of the steps from, …, to − 1 to s.product: E[ψψᵀ] with ψ the gradient of log π, the expectation over
// controllers, which is (diag p − ppᵀ) ⊗ φφᵀ in a state of weights p and features φ.
func (a *Agent) fisher(s *shard, from, to int, v []float64) {
	z := s.log
	for k := from; k < to; k++ {
		if !a.roll.Live[k] {
			continue
		}
		obs, mean := a.roll.Obs[k*a.obs:(k+1)*a.obs], 0.0
		weights := a.probs[k*a.controllers : (k+1)*a.controllers]
		for j, p := range weights {
			row := v[j*a.width : (j+1)*a.width]
			z[j] = row[0]
			for i, x := range row[1:] {
				z[j] += x * float64(obs[i])
			}
			mean += p * z[j]
		}
		for j, p := range weights {
			if p > 0 {
				a.spread(s.product, j, p*(z[j]-mean), obs)
			}
		}
	}
}

// product fills dst with the sum over shards of what times adds to s.product for v, divided by n.
func (a *Agent) product(ctx context.Context, dst, v []float64, n float64,
	times func(s *shard, from, to int, v []float64)) error {
	if err := a.pieces(ctx, func(s *shard, from, to int) {
		clear(s.product)
		times(s, from, to, v)
	}); err != nil {
		return err
	}
	clear(dst)
	for i := range a.shards {
		for k, x := range a.shards[i].product[:len(dst)] {
			dst[k] += x
		}
	}
	for k := range dst {
		dst[k] /= n
	}
	return nil
}

// direction fills step, and returns how far it goes: half of stepᵀ·F·step, the divergence to second order, 0 where F is
// unknown.
func (a *Agent) direction(ctx context.Context, n float64) (kl float64, err error) {
	if a.cfg.Method == "pg" {
		for i, g := range a.sum.grad {
			a.step[i] = a.rate() * g
		}
		return 0, nil
	}
	dim := len(a.step)
	clear(a.step)
	if err := a.solve(a.step, a.sum.grad, func(dst, v []float64) error {
		err := a.product(ctx, dst, v, n, a.fisher)
		for i := range dst {
			dst[i] += a.cfg.Damping * v[i]
		}
		return err
	}); err != nil {
		return 0, err
	}
	far := a.residue[:dim]
	if err := a.product(ctx, far, a.step, n, a.fisher); err != nil {
		return 0, err
	}
	for i, v := range a.step {
		kl += v * far[i]
	}
	scale := a.rate()
	if kl *= 0.5 * scale * scale; a.cfg.MaxKL > 0 && kl > a.cfg.MaxKL {
		scale *= math.Sqrt(a.cfg.MaxKL / kl)
		kl = a.cfg.MaxKL
	}
	for i := range a.step {
		a.step[i] *= scale
	}
	return kl, nil
}

// fit fits the critic to the returns of the rollout, from the critic that acted on.
func (a *Agent) fit(ctx context.Context, n float64) error {
	c := a.critic
	times := func(s *shard, from, to int, v []float64) {
		for k := from; k < to; k++ {
			if !a.roll.Live[k] {
				continue
			}
			c.features(s.x, a.roll.Obs[k*a.obs:(k+1)*a.obs])
			dot := 0.0
			for i, x := range s.x {
				dot += x * v[i]
			}
			for i, x := range s.x {
				s.product[i] += x * dot
			}
		}
	}
	for i := range a.sum.right {
		a.sum.right[i] /= n
	}
	copy(c.next, c.w)
	err := a.solve(c.next, a.sum.right, func(dst, v []float64) error {
		err := a.product(ctx, dst, v, n, times)
		for i := range dst {
			dst[i] += a.cfg.Ridge * v[i]
		}
		return err
	})
	if size := length(c.next); err == nil && size-size != 0 {
		err = fmt.Errorf("improper: the critic of update %d is %v: a return or an observation is no number", a.updates, size)
	}
	if err == nil {
		copy(c.w, c.next)
	}
	return err
}

// passes bounds the steps of solve.
const passes = 40

// solve improves x towards the solution of M·x = b by conjugate gradients, M positive definite and given by its
// products.
func (a *Agent) solve(x, b []float64, times func(dst, v []float64) error) error {
	n := len(x)
	r, p, q := a.residue[:n], a.along[:n], a.image[:n]
	if err := times(q, x); err != nil {
		return err
	}
	size, rest := 0.0, 0.0
	for i := range r {
		r[i] = b[i] - q[i]
		p[i] = r[i]
		size, rest = size+b[i]*b[i], rest+r[i]*r[i]
	}
	for range min(passes, 2*n) {
		if !(rest > 1e-16*size) {
			break
		}
		if err := times(q, p); err != nil {
			return err
		}
		bent := 0.0
		for i := range p {
			bent += p[i] * q[i]
		}
		if !(bent > 0) {
			break
		}
		far, left := rest/bent, 0.0
		for i := range x {
			x[i] += far * p[i]
			r[i] -= far * q[i]
			left += r[i] * r[i]
		}
		for i := range p {
			p[i] = r[i] + left/rest*p[i]
		}
		rest = left
	}
	return nil
}

func length(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x * x
	}
	return math.Sqrt(sum)
}

// critic is linear in 1, the observation and its squares.
type critic struct {
	obs, n  int
	w, next []float64
}

func newCritic(obs int) *critic {
	n := 1 + 2*obs
	return &critic{obs: obs, n: n, w: make([]float64, n), next: make([]float64, n)}
}

func (c *critic) features(dst []float64, obs []float32) {
	dst[0] = 1
	for i, o := range obs {
		x := float64(o)
		dst[1+i], dst[1+c.obs+i] = x, x*x
	}
}

// value returns the value of an observation.
func (c *critic) value(obs []float32) float32 {
	sum := c.w[0]
	for i, o := range obs {
		x := float64(o)
		sum += x * (c.w[1+i] + x*c.w[1+c.obs+i])
	}
	return float32(sum)
}
