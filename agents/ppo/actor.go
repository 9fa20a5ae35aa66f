package ppo

import (
	"fmt"
	"math"
	"math/rand/v2"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/nets/model"
	"clustergym/nets/op"
	"clustergym/replay"
)

// actor turns the network's heads into actions. Buffers grow with the largest batch seen.
type actor struct {
	spec   env.Spec
	dist   op.Distribution
	obsLen int
	noop   int              // of agents.NoOp
	scale  *replay.ObsScale // nil = observations enter as they are
	box    box
	logStd []float32 // [Dims], the network's own parameter

	obs       []float32 // [N, ObsLen], scaled; unused without scale
	head      []float32 // [N, Head]
	mask      []float32 // [N, Logits], 1 = legal
	logp      []float32 // [N, Logits], after masking
	number    []float32 // [N, Dims], as drawn
	precision []float32 // [Dims], 1/deviation
	weights   []float64 // of one factor's actions, scratch
}

func newActor(cfg Config, s env.Spec, logStd []float32, scale *replay.ObsScale) actor {
	d := distribution(s)
	most := 0
	for _, k := range d.Sizes {
		most = max(most, k)
	}
	return actor{
		spec: s, dist: d, obsLen: s.ObsLen(), noop: agents.NoOp(s), scale: scale,
		box: newBox(s.Action, cfg.ScaleActions), logStd: logStd,
		precision: make([]float32, d.Dims), weights: make([]float64, most),
	}
}

// fit makes room for n rows and checks the batch.
func (a *actor) fit(b *env.Batch, dst *env.Actions, src []*rand.Rand, draws bool) error {
	n, l, f, c := b.N, a.dist.Logits(), len(a.dist.Sizes), a.dist.Dims
	if dst.N != n || len(dst.Disc) < n*f || len(dst.Cont) < n*c || draws && len(src) < n {
		return fmt.Errorf(
			"ppo: a batch of %d rows, room for %d actions (%d indices, %d numbers) and %d streams, want as many of each",
			n, dst.N, len(dst.Disc), len(dst.Cont), len(src))
	}
	if len(b.Obs) < n*a.obsLen || len(b.Mask) < n*l || len(b.Kind) < n {
		return fmt.Errorf("ppo: a batch of %d rows with %d observations and %d mask bits does not fit %s", n, len(b.Obs),
			len(b.Mask), a.spec.ID)
	}
	if len(a.head) < n*a.dist.Head() {
		a.head, a.mask, a.logp = make([]float32, n*a.dist.Head()), make([]float32, n*l), make([]float32, n*l)
		a.number = make([]float32, n*c)
		if a.scale != nil {
			a.obs = make([]float32, n*a.obsLen)
		}
	}
	model.Legal(a.mask[:n*l], b.Mask)
	return nil
}

// seen returns n observations as the network sees them.
func (a *actor) seen(obs []float32, n int) []float32 {
	if a.scale == nil {
		return obs
	}
	a.scale.Apply(a.obs, obs, n)
	return a.obs
}

// distribution fills logp for n rows. The losses compute theirs with the same functions from the same heads, so the
// ratio of probabilities is exactly 1 before the first step of an update.
func (a *actor) distribution(n int) {
	op.LogProbs(a.dist, a.logp, a.head, a.mask, n)
	op.Precisions(a.precision, a.logStd)
}

// sample draws row i's action, factor by factor, then number by number.
func (a *actor) sample(b *env.Batch, i int, src *rand.Rand, dst *env.Actions) error {
	f, c, l, w := len(a.dist.Sizes), a.dist.Dims, a.dist.Logits(), a.dist.Head()
	at := i * l
	for k, size := range a.dist.Sizes {
		j := a.draw(a.logp[at:at+size], a.mask[at:at+size], src.Float64())
		var err error
		if dst.Disc[i*f+k], err = a.chosen(b, i, k, j); err != nil {
			return err
		}
		at += size
	}
	mean := a.head[i*w+l : (i+1)*w]
	for k, m := range mean {
		x := m + float32(src.NormFloat64())/a.precision[k]
		if x-x != 0 {
			return fmt.Errorf("ppo: row %d: number %d is %v, drawn around %v with deviation %v", i, k, x, m, 1/a.precision[k])
		}
		a.number[i*c+k] = x
		dst.Cont[i*c+k] = a.box.action(k, x)
	}
	return nil
}

// draw takes a factor's action by inversion: the first legal action whose cumulative probability, summed in float64
// and in order, exceeds u, one uniform draw.
func (a *actor) draw(logp, mask []float32, u float64) int {
	weights := a.weights[:len(logp)]
	total, last := 0.0, agents.NoneLegal
	for k, lp := range logp {
		weights[k] = 0
		if mask[k] != 0 {
			weights[k] = math.Exp(float64(lp))
			total += weights[k]
			last = k
		}
	}
	if last < 0 {
		return agents.NoneLegal
	}
	if !(total > 0) { // NaN too
		return agents.NotSane
	}
	u *= total
	sum := 0.0
	for k, w := range weights {
		sum += w
		if w > 0 && u < sum {
			return k
		}
	}
	return last // rounding pushed u to the total
}

// chosen turns a result of draw or agents.Choose into a factor's action. An ended row, whose mask may be empty and
// whose action is ignored, gets action 0.
func (a *actor) chosen(b *env.Batch, i, factor, j int) (int32, error) {
	switch {
	case j >= 0:
		return int32(j), nil
	case j == agents.NotSane:
		return 0, fmt.Errorf("ppo: row %d: the policy's probabilities are no numbers", i)
	case b.Kind[i].Last():
		return 0, nil
	case len(a.dist.Sizes) > 1:
		return 0, fmt.Errorf("ppo: row %d has no legal action in factor %d", i, factor)
	}
	return 0, fmt.Errorf("ppo: row %d has no legal action", i)
}

// best chooses row i's action by a rule that draws nothing, factor by factor, and the means of the numbers.
func (a *actor) best(r agents.Rule, b *env.Batch, i int, dst *env.Actions) error {
	f, c, l, w := len(a.dist.Sizes), a.dist.Dims, a.dist.Logits(), a.dist.Head()
	at := 0
	for k, size := range a.dist.Sizes {
		j := agents.Choose(r, agents.Logits, a.head[i*w+at:i*w+at+size], b.Mask[i*l+at:i*l+at+size], a.noop, nil)
		var err error
		if dst.Disc[i*f+k], err = a.chosen(b, i, k, j); err != nil {
			return err
		}
		at += size
	}
	for k, m := range a.head[i*w+l : (i+1)*w] {
		if m-m != 0 {
			return fmt.Errorf("ppo: row %d: number %d is %v", i, k, m)
		}
		dst.Cont[i*c+k] = a.box.action(k, m)
	}
	return nil
}

// logProb returns the log-probability of row i's action, and puts the numbers drawn for it into number: those of
// sample if the action is sample's, otherwise the numbers that the action corresponds to.
func (a *actor) logProb(act *env.Actions, i int, number []float32) (float32, error) {
	f, c, l, w := len(a.dist.Sizes), a.dist.Dims, a.dist.Logits(), a.dist.Head()
	var sum float32
	at := i * l
	for k, size := range a.dist.Sizes {
		j := int(act.Disc[i*f+k])
		if j < 0 || j >= size {
			return 0, fmt.Errorf("ppo: row %d: action %d of %d", i, j, size)
		}
		sum += a.logp[at+j]
		at += size
	}
	if c == 0 {
		return sum, nil
	}
	for k, x := range act.Cont[i*c : (i+1)*c] {
		if x-x != 0 {
			return 0, fmt.Errorf("ppo: row %d: number %d of the action is %v", i, k, x)
		}
		number[k] = a.number[i*c+k]
		if a.box.action(k, number[k]) != x {
			number[k] = a.box.number(k, x)
		}
	}
	return sum + op.NormalLogProb(number, a.head[i*w+l:(i+1)*w], a.logStd, a.precision), nil
}

// box holds the bounds of continuous actions and the unit in which the policy expresses them.
type box struct {
	low, high []float32
	mid, half []float32 // an action is mid + half·number, cut to the bounds
}

func newBox(s env.ActionSpec, scaled bool) box {
	b := box{low: s.Low, high: s.High, mid: make([]float32, len(s.Low)), half: make([]float32, len(s.Low))}
	for k := range s.Low {
		b.half[k] = 1
		mid, half := s.Low[k]/2+s.High[k]/2, s.High[k]/2-s.Low[k]/2
		if scaled && mid-mid == 0 && half-half == 0 && half > 0 {
			b.mid[k], b.half[k] = mid, half
		}
	}
	return b
}

// action returns what the environment gets for a number that the policy drew.
func (b *box) action(k int, x float32) float32 {
	return min(max(b.mid[k]+b.half[k]*x, b.low[k]), b.high[k])
}

// number returns a number that the policy could have drawn for an action.
func (b *box) number(k int, action float32) float32 { return (action - b.mid[k]) / b.half[k] }
