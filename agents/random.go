package agents

import (
	"context"
	"math"
	"math/rand/v2"

	"clustergym/env"
)

// Random chooses uniformly among the legal actions of every factor, and uniformly between the bounds of every real
// number. A number without two finite bounds is drawn from the standard normal distribution and clipped to the bound
// it has. Rules that know what an environment is about live next to it, such as env/jobselect's.
type Random struct{ spec env.Spec }

var _ Policy = (*Random)(nil)

// NewRandom returns random play for environments like spec.
func NewRandom(spec env.Spec) *Random { return &Random{spec} }

// Act implements Policy.
func (p *Random) Act(_ context.Context, b *env.Batch, dst *env.Actions, src []*rand.Rand) error {
	masks, factors := p.spec.MaskLen(), len(p.spec.Action.Sizes)
	for i := range b.N {
		mask := b.Mask[i*masks : (i+1)*masks]
		for f, n := range p.spec.Action.Sizes {
			dst.Disc[i*factors+f] = int32(env.Uniform(mask[:n], src[i]))
			mask = mask[n:]
		}
		for k, low := range p.spec.Action.Low {
			dst.Cont[i*len(p.spec.Action.Low)+k] = between(low, p.spec.Action.High[k], src[i])
		}
	}
	return nil
}

// between draws one number from [low, high].
func between(low, high float32, src *rand.Rand) float32 {
	if math.IsInf(float64(low), 0) || math.IsInf(float64(high), 0) {
		return min(max(float32(src.NormFloat64()), low), high)
	}
	return min(max(low+(high-low)*src.Float32(), low), high)
}

// Results of Best and Choose that are no action.
const (
	NoneLegal = -1
	NotSane   = -2 // a number is NaN, or not of its kind
)
