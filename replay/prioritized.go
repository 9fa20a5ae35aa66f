package replay

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"clustergym/env"
	"clustergym/internal/fault"
)

// PriorityConfig sets how errors become priorities.
type PriorityConfig struct {
	Alpha float64 `yaml:"alpha"` // exponent of the error; 0 = uniform
	Eps   float64 `yaml:"eps"`   // added to the error, so that every transition can be drawn
}

// DefaultPriorityConfig returns the values of Schaul et al. 2016, table 3 (proportional variant).
func DefaultPriorityConfig() PriorityConfig { return PriorityConfig{Alpha: 0.6, Eps: 1e-6} }

// Validate reports all faults of c at once.
func (c PriorityConfig) Validate() error {
	var l fault.List
	l.Add(c.Alpha >= 0 && c.Alpha <= 1, "alpha", c.Alpha, "a number in [0, 1]")
	l.Add(c.Eps > 0 && c.Eps <= 1, "eps", c.Eps, "a number in (0, 1]")
	return l.Err()
}

// Prioritized is a buffer in which transition i is drawn with probability P(i) = p_i/Σp, p = (|δ|+eps)^alpha with δ
// its last temporal-difference error (Schaul et al. 2016, "Prioritized Experience Replay", equation 1, proportional
// variant). A transition that has never been drawn has the largest priority of all so far. It is not safe for
// concurrent use.
type Prioritized struct {
	*ring
	pri  PriorityConfig
	tree sumTree
	max  float64 // largest p so far
}

// NewPrioritized returns an empty buffer for rows environments of spec s that are stepped together.
func NewPrioritized(cfg Config, pri PriorityConfig, s env.Spec, rows int) (*Prioritized, error) {
	if err := pri.Validate(); err != nil {
		return nil, err
	}
	r, err := newRing(cfg, s, rows)
	if err != nil {
		return nil, err
	}
	return &Prioritized{ring: r, pri: pri, tree: newSumTree(cfg.Capacity), max: 1}, nil
}

// Add stores one step of all rows, as Uniform.Add does, at the largest priority.
func (p *Prioritized) Add(b *env.Batch, a *env.Actions, next *env.Batch) error {
	if err := p.ring.Add(b, a, next); err != nil {
		return err
	}
	for _, s := range p.ring.fresh {
		p.tree.set(s, p.max)
	}
	return nil
}

// Sample fills dst with dst.N transitions, one from each of N equal shares of the total priority (appendix B.2.1),
// with importance weights w = (N·P(i))^-beta divided by the largest in the batch. (Section 3.4 divides by the largest
// in the whole buffer, which would let one rare transition shrink every step.) The caller anneals beta in [0, 1].
// Sample returns ErrTooFew while the buffer holds fewer than dst.N.
func (p *Prioritized) Sample(rng *rand.Rand, beta float64, dst *Batch) error {
	if err := p.ring.checkDst(dst); err != nil {
		return err
	}
	if !(beta >= 0 && beta <= 1) {
		return fmt.Errorf("replay: beta is %v, want a number in [0, 1]", beta)
	}
	share := p.tree.total() / float64(dst.N)
	least := math.Inf(1)
	for i := 0; i < dst.N; i++ {
		s := p.tree.find((float64(i) + rng.Float64()) * share)
		p.ring.gather(dst, i, s)
		least = min(least, p.tree.leaf(s))
	}
	for i := 0; i < dst.N; i++ {
		// The sizes of buffer and total cancel in w_i/w_max = (P(i)/P_min)^-beta.
		dst.Weight[i] = float32(math.Pow(p.tree.leaf(dst.Index[i])/least, -beta))
	}
	return nil
}

// Update sets the errors of the transitions of a sample: index is Batch.Index, delta the temporal-difference errors,
// whose sign does not matter. It must be called before the next Add, which may reuse the slots. If a slot occurs
// twice, its last error counts. An error (an empty slot, a NaN) changes nothing.
func (p *Prioritized) Update(index []int, delta []float32) error {
	if len(index) != len(delta) {
		return fmt.Errorf("replay: %d slots but %d errors", len(index), len(delta))
	}
	for k, s := range index {
		if s < 0 || s >= p.ring.size {
			return fmt.Errorf("replay: slot %d, want one below %d", s, p.ring.size)
		}
		if d := delta[k]; d-d != 0 {
			return fmt.Errorf("replay: error of slot %d is %v", s, d)
		}
	}
	for k, s := range index {
		v := math.Pow(math.Abs(float64(delta[k]))+p.pri.Eps, p.pri.Alpha)
		p.max = max(p.max, v)
		p.tree.set(s, v)
	}
	return nil
}

// WriteTo saves everything, as Uniform.WriteTo does.
func (p *Prioritized) WriteTo(w io.Writer) (int64, error) {
	e := newEncoder(w)
	e.header(kindPrioritized)
	e.f64(p.pri.Alpha)
	e.f64(p.pri.Eps)
	e.f64(p.max)
	p.ring.save(e)
	put(e, p.tree.node[p.tree.leaves:][:p.ring.size])
	return e.end()
}

// ReadFrom restores what WriteTo saved, as Uniform.ReadFrom does.
func (p *Prioritized) ReadFrom(r io.Reader) (int64, error) {
	d := newDecoder(r)
	d.header(kindPrioritized)
	d.same("alpha", d.f64(), p.pri.Alpha)
	d.same("eps", d.f64(), p.pri.Eps)
	top := d.f64()
	d.check(top > 0 && !math.IsInf(top, 1), "the largest priority is %v", top)
	fresh := p.ring.load(d)
	tree := newSumTree(p.ring.cfg.Capacity)
	if d.err == nil {
		finite(d, tree.node[tree.leaves:][:fresh.size])
		for s := 0; s < fresh.size; s++ {
			v := tree.leaf(s)
			d.check(v > 0 && v <= top, "priority of slot %d is %v", s, v)
		}
		for k := tree.leaves - 1; k >= 1; k-- {
			tree.node[k] = tree.node[2*k] + tree.node[2*k+1]
		}
	}
	if err := d.end(); err != nil {
		return d.n, err
	}
	p.ring, p.tree, p.max = fresh, tree, top
	return d.n, nil
}
