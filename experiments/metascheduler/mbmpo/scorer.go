package mbmpo

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"clustergym/agents"
	"clustergym/agents/maml"
	"clustergym/env"
	"clustergym/internal/rng"
	"clustergym/nets"
	"clustergym/nets/layer"
)

// Scorer is a policy for observations with one row of features for each action (workerplace.Config.Obs pairs). The same
// small network scores every row. The last action, to wait, is scored by the trunk. The trunk sees the other numbers of
// the observation, the mean of all rows of features, and the mean and the maximum over the legal actions of their first
// layer. Rows of illegal actions go through no layer, forwards or backwards: of 24 pairs of a waiting job and a server
// few are legal. Not safe for concurrent use.
type Scorer struct {
	spec  env.Spec
	sizes scorerSizes
	p     *nets.Params
	v     [scorerParams][]float32 // p's views
	best  bool                    // acts by the likeliest actions

	own   *packed   // of Act
	acted []float32 // [N, MaskLen], logarithms of the probabilities of the last Act

	// The states that load has chosen, as in packed, and what forward computes of them.
	at             []int
	pair           []int32
	x              []float32
	waits          []bool
	h1, s          []float32 // [rows, h], the two layers of each row
	logit, logp    []float32 // [rows], score and logarithm of the probability
	in, trunk, ctx []float32 // [states, seen + 2·h] and twice [states, h]
	wait           []float32 // [states], score of waiting, then the logarithm of its probability

	// Slopes of a loss by these, and scratch.
	dlogit, dwait []float32
	d1, d2        []float32 // of h1 and s
	dc, dt, di    []float32 // of ctx, trunk and in
	part, scratch []float32

	greedy *Scorer
}

// scorerSizes are the sizes of the layers.
type scorerSizes struct {
	global, rows, wide int // numbers beside the pairs; pairs; numbers of a pair
	seen               int // what the trunk sees of the observation: global and the mean of the pairs
	h                  int // width of all layers
}

// The parameters of a Scorer, in the order of its Params.
const (
	pairW    = iota // [wide, h], of a row
	pairB           // [h]
	trunkW          // [seen + 2·h, h]
	trunkB          // [h]
	contextW        // [h, h], what the trunk adds to every row's second layer
	contextB        // [h]
	slotW           // [h, h], of a row's second layer
	eachW           // [h, 1], of its score
	eachB           // [1]
	waitW           // [h, 1], of the score of waiting
	waitB           // [1]
	scorerParams
)

// gains are those of the initial weights, 0 = all zero. A row's first layer and the context add up to its second: with
// gain 1 each the sum has the variance of gain sqrt 2.
var gains = [scorerParams]float64{
	pairW: layer.GainHidden, trunkW: layer.GainHidden, contextW: 1, slotW: 1, eachW: layer.GainPolicy,
	waitW: layer.GainPolicy,
}

var (
	_ Model       = (*Scorer)(nil)
	_ maml.Teller = (*Scorer)(nil)
	_ maml.Valuer = (*Scorer)(nil)
)

// NewScorer returns a policy with layers of the given width for environments of spec s, with weights that follow from
// seed.
func NewScorer(s env.Spec, width int, seed uint64) (*Scorer, error) {
	if width < 1 || width > 4096 {
		return nil, fmt.Errorf("mbmpo: width: got %d, want a whole number from 1 to 4096", width)
	}
	n := len(s.Obs)
	if n == 0 || len(s.Obs[n-1].Shape) != 2 || len(s.Action.Sizes) != 1 || len(s.Action.Low) > 0 ||
		s.Action.Sizes[0] != s.Obs[n-1].Shape[0]+1 {
		return nil,
			fmt.Errorf("mbmpo: observations of %s are not rows of features, one for each action but the last: want obs pairs",
				s.ID)
	}
	last := &s.Obs[n-1]
	z := scorerSizes{rows: last.Shape[0], wide: last.Shape[1], h: width}
	z.global = s.ObsLen() - last.Len()
	z.seen = z.global + z.wide
	m := &Scorer{spec: s, sizes: z}
	m.p = nets.NewParams([]nets.View{
		{Name: "pair.weight", Shape: []int{z.wide, z.h}}, {Name: "pair.bias", Shape: []int{z.h}},
		{Name: "trunk.weight", Shape: []int{z.seen + 2*z.h, z.h}}, {Name: "trunk.bias", Shape: []int{z.h}},
		{Name: "context.weight", Shape: []int{z.h, z.h}}, {Name: "context.bias", Shape: []int{z.h}},
		{Name: "slot.weight", Shape: []int{z.h, z.h}},
		{Name: "each.weight", Shape: []int{z.h, 1}}, {Name: "each.bias", Shape: []int{1}},
		{Name: "wait.weight", Shape: []int{z.h, 1}}, {Name: "wait.bias", Shape: []int{1}},
	})
	for i := range m.p.Views {
		m.v[i] = m.p.Views[i].Data
	}
	src := rng.Stream(seed, "mbmpo/scorer")
	for i, gain := range gains {
		if gain > 0 {
			layer.Orthogonal(&m.p.Views[i], gain, src)
		}
	}
	return m, nil
}

// Params implements maml.Model.
func (m *Scorer) Params() *nets.Params { return m.p }

// Numbers implements maml.Model: there are none.
func (m *Scorer) Numbers() []float32 { return nil }

// LogProbs implements Model.
func (m *Scorer) LogProbs() []float32 { return m.acted }

// Greedy implements maml.Model. To wait must be likelier than all other actions together: whether to place a worker is
// decided first, then where.
func (m *Scorer) Greedy() agents.Policy {
	if m.greedy == nil {
		m.greedy = &Scorer{spec: m.spec, sizes: m.sizes, p: m.p, v: m.v, best: true}
	}
	return m.greedy
}

// Act implements agents.Policy.
func (m *Scorer) Act(_ context.Context, b *env.Batch, dst *env.Actions, src []*rand.Rand) error {
	l := m.sizes.rows + 1
	m.acted = sized(m.acted, b.N*l)
	if m.own == nil {
		m.own = &packed{}
	}
	m.pack(m.own, b.Obs, b.Mask, b.N)
	m.load(m.own, 0, b.N)
	m.forward(b.N)
	for i := range b.N {
		all := m.acted[i*l : (i+1)*l]
		m.spread(all, i)
		var chosen int
		if m.best {
			chosen = m.likeliest(i)
		} else {
			chosen = m.drawn(i, src[i])
		}
		if chosen < 0 {
			return fmt.Errorf("mbmpo: row %d has no legal action", i)
		}
		if x := all[chosen]; x-x != 0 {
			return fmt.Errorf("mbmpo: row %d: the logarithm of a probability is %v", i, x)
		}
		dst.Disc[i] = int32(chosen)
	}
	return nil
}

// likeliest returns the action of Greedy in state i, -1 if none is legal.
func (m *Scorer) likeliest(i int) int {
	if m.waits[i] && m.wait[i] > -math.Ln2 {
		return m.sizes.rows
	}
	best, most := -1, float32(0)
	for r := m.at[i]; r < m.at[i+1]; r++ {
		if best < 0 || m.logp[r] > most {
			best, most = int(m.pair[r]), m.logp[r]
		}
	}
	if best < 0 && m.waits[i] {
		return m.sizes.rows
	}
	return best
}

// drawn draws an action in state i, -1 if none is legal.
func (m *Scorer) drawn(i int, src *rand.Rand) int {
	u, chosen := src.Float64(), -1
	for r := m.at[i]; r < m.at[i+1]; r++ {
		chosen = int(m.pair[r])
		if u -= math.Exp(float64(m.logp[r])); u < 0 {
			return chosen
		}
	}
	if m.waits[i] {
		return m.sizes.rows
	}
	return chosen // probabilities add up to a little less than 1
}

// Told implements maml.Teller.
func (m *Scorer) Told(i int, a env.Action) (logProb float32, head []float32) {
	l := m.sizes.rows + 1
	head = m.acted[i*l : (i+1)*l]
	return head[a.Disc[0]], head
}
