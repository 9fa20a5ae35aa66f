package mbmpo

import (
	"context"
	"math"
	"math/rand/v2"

	"clustergym/env"
	"clustergym/env/workerplace"
)

// subspaces keep the models' errors in each subspace.
type subspaces struct {
	cfg    *Config
	err    [workerplace.Sharings]float64
	visits [workerplace.Sharings]int
	seen   int
}

func newSubspaces(c *Config) *subspaces { return &subspaces{cfg: c} }

// note records the relative error for job j of p in the subspaces of all its servers.
func (s *subspaces) note(p *workerplace.Placement, j int, off float64) {
	for m, w := range p.Jobs[j].On {
		if w == 0 {
			continue
		}
		k := p.SharingOf(j, m).Index()
		if s.visits[k] == 0 {
			s.seen++
			s.err[k] = off
		}
		s.visits[k]++
		s.err[k] += s.cfg.Average * (off - s.err[k])
	}
}

// score returns how much there is to learn in a subspace.
func (s *subspaces) score(k int) float64 {
	return s.err[k] + s.cfg.Bonus/math.Sqrt(1+float64(s.visits[k]))
}

// explorer chooses like the first player, and explores as configured.
func (l *Loop) explorer() chooser {
	m, speed := l.players[0], &crowd{view: l.models.View()}
	var b *env.Batch
	var a *env.Actions
	var weight []float64
	return func(ctx context.Context, e *workerplace.Env, ts *env.TimeStep, src *rand.Rand) (int32, error) {
		if b == nil {
			b, a = env.NewBatch(e.Spec(), 1), env.NewActions(e.Spec(), 1)
			weight = make([]float64, e.Spec().MaskLen())
		}
		b.Kind[0] = ts.Kind
		copy(b.Obs, ts.Obs)
		copy(b.Mask, ts.Mask)
		if err := m.Act(ctx, b, a, []*rand.Rand{src}); err != nil {
			return 0, err
		}
		own := a.Disc[0]
		switch {
		case l.cfg.Explore == "random" && src.Float64() < l.cfg.Random:
			seen := 0
			for k, legal := range ts.Mask {
				if legal {
					if seen++; src.IntN(seen) == 0 {
						own = int32(k)
					}
				}
			}
			return own, nil
		case !l.cfg.subspace():
			return own, nil
		}
		logp, sum, likeliest := m.LogProbs(), 0.0, int32(-1)
		for k, legal := range ts.Mask {
			weight[k] = 0
			if !legal {
				continue
			}
			w := float64(logp[k])
			if !e.Closes(int32(k)) {
				if likeliest < 0 || logp[k] > logp[likeliest] {
					likeliest = int32(k)
				}
				w += l.beta * l.sub.score(e.Sharing(int32(k)).Index())
			}
			weight[k] = math.Exp(w)
			sum += weight[k]
		}
		u, drawn := src.Float64()*sum, own
		for k, w := range weight {
			if w > 0 {
				if drawn = int32(k); u < w {
					break
				}
				u -= w
			}
		}
		if drawn == own || e.Closes(drawn) || likeliest < 0 {
			return drawn, nil
		}
		there, err := speed.after(e, drawn)
		if err != nil {
			return 0, err
		}
		best, err := speed.after(e, likeliest)
		if err != nil {
			return 0, err
		}
		if there < (1-l.cfg.Guard)*best {
			return own, nil
		}
		return drawn, nil
	}
}
