package mbmpo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"clustergym/agents"
	"clustergym/agents/maml"
	"clustergym/env"
	"clustergym/internal/rng"
	"clustergym/nets"
	"clustergym/nets/kernel"
	"clustergym/nets/layer"
	"clustergym/replay"
)

// Scorer is a policy for observations with one row of features for each action (workerplace.Config.Obs pairs). The same small
// network scores every row; the last action, to wait, is scored by the trunk, which sees the other numbers, the mean of all rows
// as they are, and the mean and the maximum of the first layer of legal actions' rows. Only these rows are computed, in the forward
// and in the backward pass: of 24 pairs of a waiting job and a server few are legal. Not safe for concurrent use.
type Scorer struct {
	spec  env.Spec
	sizes scorerSizes
	p     *nets.Params
	v     [scorerParams][]float32 // p's views
	best  bool                    // acts by the likeliest actions

	own            *packed // of Act
	at             []int   // of the states that are computed: those of state i are rows [at[i], at[i+1])
	pair           []int32
	x              []float32
	waits          []bool
	h1, s          []float32
	logit, logp    []float32 // of each row
	in, trunk, ctx []float32 // of each state
	wait           []float32
	acted          []float32 // [N, MaskLen], logarithms of the probabilities of the last Act
	dlogit, dwait  []float32 // slopes of a loss
	d1, d2         []float32 // [rows, h]
	dc, dt, di     []float32 // of each state: context, trunk, what the trunk sees
	part, scratch  []float32
	greedy         *Scorer
}

// packed is what a Scorer reads of some states: the rows of legal actions, one behind the other. It does not depend on parameters.
type packed struct {
	at    []int     // those of state i are [at[i], at[i+1])
	pair  []int32   // of each row, its number in its state
	x     []float32 // [rows, wide]
	seen  []float32 // [states, seen], what the trunk sees of the observation
	waits []bool    // of each state, whether waiting is legal
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

// gains are those of the initial weights, 0 = all zero. A row's first layer and the context add up to its second: with gain 1
// each the sum has the variance of gain sqrt 2.
var gains = [scorerParams]float64{
	pairW: layer.GainHidden, trunkW: layer.GainHidden, contextW: 1, slotW: 1, eachW: layer.GainPolicy, waitW: layer.GainPolicy,
}

// scorerStates is the number of states that losses work on at a time.
const scorerStates = 256

var (
	_ Model       = (*Scorer)(nil)
	_ maml.Teller = (*Scorer)(nil)
	_ maml.Valuer = (*Scorer)(nil)
)

// NewScorer returns a policy with layers of the given width for environments of spec s, with weights that follow from seed.
func NewScorer(s env.Spec, width int, seed uint64) (*Scorer, error) {
	if width < 1 || width > 4096 {
		return nil, fmt.Errorf("mbmpo: width: got %d, want a whole number from 1 to 4096", width)
	}
	n := len(s.Obs)
	if n == 0 || len(s.Obs[n-1].Shape) != 2 || len(s.Action.Sizes) != 1 || len(s.Action.Low) > 0 || s.Action.Sizes[0] != s.Obs[n-1].Shape[0]+1 {
		return nil, fmt.Errorf("mbmpo: observations of %s are not rows of features, one for each action but the last: want obs pairs", s.ID)
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

// Greedy implements maml.Model. To wait must be likelier than all other actions together: whether to place a worker is decided
// first, then where.
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
		wait := all[l-1]
		if m.waits[i] && m.best && wait > -math.Ln2 {
			dst.Disc[i] = int32(l - 1)
			continue
		}
		chosen, u := -1, 0.0
		if !m.best {
			u = src[i].Float64()
		}
		for r := m.at[i]; r < m.at[i+1]; r++ {
			k := int(m.pair[r])
			if m.best {
				if chosen < 0 || all[k] > all[chosen] {
					chosen = k
				}
				continue
			}
			chosen = k
			if u -= math.Exp(float64(all[k])); u < 0 {
				break
			}
		}
		if !m.best && u >= 0 && m.waits[i] {
			chosen = l - 1
		}
		if chosen < 0 {
			if !m.waits[i] {
				return fmt.Errorf("mbmpo: row %d has no legal action", i)
			}
			chosen = l - 1
		}
		if x := all[chosen]; x-x != 0 {
			return fmt.Errorf("mbmpo: row %d: the logarithm of a probability is %v", i, x)
		}
		dst.Disc[i] = int32(chosen)
	}
	return nil
}

// pack fills p with n states.
func (m *Scorer) pack(p *packed, obs []float32, mask []bool, n int) {
	z := &m.sizes
	l, o := z.rows+1, z.global+z.rows*z.wide
	p.at, p.pair, p.x, p.waits = append(p.at[:0], 0), p.pair[:0], p.x[:0], p.waits[:0]
	p.seen = sized(p.seen, n*z.seen)
	for i := range n {
		see, legal := obs[i*o:(i+1)*o], mask[i*l:(i+1)*l]
		seen := p.seen[i*z.seen : (i+1)*z.seen]
		copy(seen, see[:z.global])
		kernel.SumRows(seen[z.global:], see[z.global:], 1, z.rows, z.wide, float32(z.rows))
		for k, ok := range legal[:z.rows] {
			if ok {
				p.pair = append(p.pair, int32(k))
				p.x = append(p.x, see[z.global+k*z.wide:z.global+(k+1)*z.wide]...)
			}
		}
		p.at, p.waits = append(p.at, len(p.pair)), append(p.waits, legal[z.rows])
	}
}

// load makes n states of p from state from on those that are computed.
func (m *Scorer) load(p *packed, from, n int) {
	z := &m.sizes
	a, b := p.at[from], p.at[from+n]
	m.at = m.at[:0]
	for _, k := range p.at[from : from+n+1] {
		m.at = append(m.at, k-a)
	}
	m.pair, m.x, m.waits = p.pair[a:b], p.x[a*z.wide:b*z.wide], p.waits[from:from+n]
	in := z.seen + 2*z.h
	m.in = sized(m.in, n*in)
	for i := range n {
		copy(m.in[i*in:], p.seen[(from+i)*z.seen:(from+i+1)*z.seen])
	}
}

// forward computes the scores of n states that were loaded, and the logarithms of the probabilities of their legal actions.
func (m *Scorer) forward(n int) {
	z := &m.sizes
	r, h, in := len(m.pair), z.h, z.seen+2*z.h
	m.h1, m.s = sized(m.h1, r*h), sized(m.s, r*h)
	m.logit, m.logp = sized(m.logit, r), sized(m.logp, r)
	m.trunk, m.ctx, m.wait = sized(m.trunk, n*h), sized(m.ctx, n*h), sized(m.wait, n)
	if r > 0 {
		kernel.MatMul(m.h1, m.x, m.v[pairW], m.v[pairB], r, h, z.wide, kernel.Tanh)
	}
	for i := range n {
		mean, top := m.in[i*in+z.seen:i*in+z.seen+h], m.in[i*in+z.seen+h:(i+1)*in]
		from, k := m.at[i], m.at[i+1]-m.at[i]
		if k == 0 {
			clear(mean)
			clear(top)
			continue
		}
		kernel.SumRows(mean, m.h1[from*h:(from+k)*h], 1, k, h, float32(k))
		kernel.MaxRows(top, m.h1[from*h:(from+k)*h], 1, k, h)
	}
	kernel.MatMul(m.trunk, m.in, m.v[trunkW], m.v[trunkB], n, h, in, kernel.Tanh)
	kernel.MatMul(m.ctx, m.trunk, m.v[contextW], m.v[contextB], n, h, h, kernel.Identity)
	kernel.MatMul(m.wait, m.trunk, m.v[waitW], m.v[waitB], n, 1, h, kernel.Identity)
	if r > 0 {
		kernel.MatMul(m.s, m.h1, m.v[slotW], nil, r, h, h, kernel.Identity)
		for i := range n {
			if from, to := m.at[i], m.at[i+1]; to > from {
				kernel.AddRows(m.s[from*h:to*h], m.s[from*h:to*h], m.ctx[i*h:(i+1)*h], 1, to-from, h, kernel.Identity)
			}
		}
		kernel.Activate(m.s[:r*h], m.s[:r*h], kernel.Tanh)
		kernel.MatMul(m.logit, m.s, m.v[eachW], m.v[eachB], r, 1, h, kernel.Identity)
	}
	for i := range n {
		m.normalise(i)
	}
}

// normalise turns the scores of state i's legal actions into the logarithms of their probabilities: logp of the rows and wait.
func (m *Scorer) normalise(i int) {
	rows := m.logit[m.at[i]:m.at[i+1]]
	most := float32(math.Inf(-1))
	for _, x := range rows {
		most = max(most, x)
	}
	if m.waits[i] {
		most = max(most, m.wait[i])
	}
	sum := 0.0
	for _, x := range rows {
		sum += math.Exp(float64(x - most))
	}
	if m.waits[i] {
		sum += math.Exp(float64(m.wait[i] - most))
	}
	log := most + float32(math.Log(sum))
	for r, x := range rows {
		m.logp[m.at[i]+r] = x - log
	}
	m.wait[i] -= log
}

// spread writes the logarithms of the probabilities of all of state i's actions, very negative for illegal ones.
func (m *Scorer) spread(dst []float32, i int) {
	for k := range dst {
		dst[k] = kernel.MaskedLogit
	}
	for r := m.at[i]; r < m.at[i+1]; r++ {
		dst[m.pair[r]] = m.logp[r]
	}
	if m.waits[i] {
		dst[len(dst)-1] = m.wait[i]
	}
}

// of returns the logarithm of the probability of action a in state i.
func (m *Scorer) of(i, a int) float32 {
	if a == m.sizes.rows {
		return m.wait[i]
	}
	for r := m.at[i]; r < m.at[i+1]; r++ {
		if int(m.pair[r]) == a {
			return m.logp[r]
		}
	}
	return kernel.MaskedLogit
}

// each calls visit for all transitions of e, some at a time, after their forward pass. e keeps what it packs of them.
func (m *Scorer) each(e *replay.Episodes, visit func(from, n int) error) error {
	p, ok := e.Packed.(*packed)
	if !ok {
		p = &packed{}
	}
	if !ok || e.PackedLen != e.Len() {
		m.pack(p, e.Obs, e.Mask, e.Len())
		e.Packed, e.PackedLen = p, e.Len()
	}
	for from := 0; from < e.Len(); from += scorerStates {
		n := min(scorerStates, e.Len()-from)
		m.load(p, from, n)
		m.forward(n)
		if err := visit(from, n); err != nil {
			return err
		}
	}
	return nil
}

// Score implements maml.Model: Head becomes the logarithms of the probabilities.
func (m *Scorer) Score(e *replay.Episodes) error {
	l := m.sizes.rows + 1
	e.LogProb, e.Head, e.LogStd = sized(e.LogProb, e.Len()), sized(e.Head, e.Len()*l), e.LogStd[:0]
	return m.each(e, func(from, n int) error {
		for i := range n {
			m.spread(e.Head[(from+i)*l:(from+i+1)*l], i)
			e.LogProb[from+i] = e.Head[(from+i)*l+int(e.Action.Disc[from+i])]
		}
		return nil
	})
}

// Told implements maml.Teller.
func (m *Scorer) Told(i int, a env.Action) (logProb float32, head []float32) {
	l := m.sizes.rows + 1
	head = m.acted[i*l : (i+1)*l]
	return head[a.Disc[0]], head
}

// Values implements maml.Valuer.
func (m *Scorer) Values(e *replay.Episodes, clip, ent float64) (loss, kl float64, err error) {
	return m.losses(nil, e, clip, ent, true)
}

// Surrogate implements maml.Model.
func (m *Scorer) Surrogate(g *nets.Params, e *replay.Episodes, clip, ent float64) (loss float64, err error) {
	loss, _, err = m.losses(g, e, clip, ent, false)
	return loss, err
}

// losses returns the surrogate loss and, if it is wanted, the divergence.
func (m *Scorer) losses(g *nets.Params, e *replay.Episodes, clip, ent float64, both bool) (loss, kl float64, err error) {
	all := e.Len()
	if all == 0 || len(e.Advantage) != all || len(e.LogProb) != all {
		return 0, 0, fmt.Errorf("mbmpo: %d transitions with %d advantages and %d log-probabilities, want as many of each and at least one", all, len(e.Advantage), len(e.LogProb))
	}
	if clip == 0 {
		clip = 1e30
	}
	if g != nil {
		clear(g.Data)
	}
	err = m.each(e, func(from, n int) error {
		m.dlogit, m.dwait = sized(m.dlogit, len(m.pair)), sized(m.dwait, n)
		for i := range n {
			if both {
				kl += m.apart(i, e, from+i, 0)
			}
			a, adv := int(e.Action.Disc[from+i]), float64(e.Advantage[from+i])
			ratio := math.Exp(float64(m.of(i, a)) - float64(e.LogProb[from+i]))
			part, cut := ratio*adv, min(max(ratio, 1-clip), 1+clip)*adv
			loss -= min(part, cut)
			slope := 0.0 // of the loss by the logarithm of the action's probability
			if part <= cut {
				slope = -part
			}
			entropy := 0.0
			if ent != 0 {
				entropy = m.entropy(i)
				loss -= ent * entropy
			}
			if g == nil {
				continue
			}
			slopeAt := func(lp float32, acts bool) float32 {
				p := math.Exp(float64(lp))
				d := -slope * p
				if acts {
					d += slope
				}
				if ent != 0 {
					d += ent * p * (float64(lp) + entropy)
				}
				return float32(d / float64(all))
			}
			for r := m.at[i]; r < m.at[i+1]; r++ {
				m.dlogit[r] = slopeAt(m.logp[r], int(m.pair[r]) == a)
			}
			m.dwait[i] = 0
			if m.waits[i] {
				m.dwait[i] = slopeAt(m.wait[i], a == m.sizes.rows)
			}
		}
		if g != nil {
			m.backward(g, n)
		}
		return nil
	})
	loss /= float64(all)
	kl /= float64(all)
	if err == nil && loss-loss+kl-kl != 0 {
		err = fmt.Errorf("mbmpo: the surrogate loss is %v, the divergence %v", loss, kl)
	}
	return loss, kl, err
}

// entropy returns that of state i's distribution.
func (m *Scorer) entropy(i int) float64 {
	sum := 0.0
	for _, x := range m.logp[m.at[i]:m.at[i+1]] {
		sum -= math.Exp(float64(x)) * float64(x)
	}
	if m.waits[i] {
		sum -= math.Exp(float64(m.wait[i])) * float64(m.wait[i])
	}
	return sum
}

// Divergence implements maml.Model.
func (m *Scorer) Divergence(g *nets.Params, e *replay.Episodes) (kl float64, err error) {
	l, all := m.sizes.rows+1, e.Len()
	if all == 0 || len(e.Head) != all*l {
		return 0, fmt.Errorf("mbmpo: %d transitions with %d outputs of the policy that acted, want %d", all, len(e.Head), all*l)
	}
	if g != nil {
		clear(g.Data)
	}
	err = m.each(e, func(from, n int) error {
		m.dlogit, m.dwait = sized(m.dlogit, len(m.pair)), sized(m.dwait, n)
		for i := range n {
			kl += m.apart(i, e, from+i, float64(all))
		}
		if g != nil {
			m.backward(g, n)
		}
		return nil
	})
	kl /= float64(all)
	if err == nil && kl-kl != 0 {
		err = errors.New("mbmpo: the divergence is no number")
	}
	return kl, err
}

// apart returns the divergence of state i from the policy that acted in transition at. The slopes of all transitions' mean are
// those of dlogit and dwait then, unless all is 0.
func (m *Scorer) apart(i int, e *replay.Episodes, at int, all float64) (kl float64) {
	l := m.sizes.rows + 1
	was := e.Head[at*l : (at+1)*l]
	for r := m.at[i]; r < m.at[i+1]; r++ {
		old := float64(was[m.pair[r]])
		p := math.Exp(old)
		kl += p * (old - float64(m.logp[r]))
		if all > 0 {
			m.dlogit[r] = float32((math.Exp(float64(m.logp[r])) - p) / all)
		}
	}
	if all > 0 {
		m.dwait[i] = 0
	}
	if m.waits[i] {
		old := float64(was[l-1])
		p := math.Exp(old)
		kl += p * (old - float64(m.wait[i]))
		if all > 0 {
			m.dwait[i] = float32((math.Exp(float64(m.wait[i])) - p) / all)
		}
	}
	return kl
}

// backward adds to g the gradient that dlogit and dwait of n states lead to.
func (m *Scorer) backward(g *nets.Params, n int) {
	z := &m.sizes
	r, h, in := len(m.pair), z.h, z.seen+2*z.h
	var to [scorerParams][]float32
	for i := range g.Views {
		to[i] = g.Views[i].Data
	}
	m.part = sized(m.part, max(z.wide, in)*h)
	m.scratch = sized(m.scratch, max(z.wide, in)*h)
	m.d1, m.d2 = sized(m.d1, r*h), sized(m.d2, r*h)
	m.dt, m.di, m.dc = sized(m.dt, n*h), sized(m.di, n*in), sized(m.dc, n*h)
	weight := func(dst, a, d []float32, rows, wide, k int) {
		kernel.MatMulTN(m.part[:k*wide], a[:rows*k], d[:rows*wide], rows, wide, k)
		kernel.Add(dst, dst, m.part[:k*wide])
	}
	bias := func(dst, d []float32, rows, wide int) {
		kernel.ColSums(m.part[:wide], d[:rows*wide], rows, wide)
		kernel.Add(dst, dst, m.part[:wide])
	}
	if r > 0 {
		weight(to[eachW], m.s, m.dlogit, r, 1, h)
		bias(to[eachB], m.dlogit, r, 1)
		// Each row's second layer.
		for i, d := range m.dlogit[:r] {
			row := m.d2[i*h : (i+1)*h]
			for q, w := range m.v[eachW] {
				row[q] = d * w
			}
		}
		kernel.ActGrad(m.d2[:r*h], m.s[:r*h], m.d2[:r*h], kernel.Tanh)
		weight(to[slotW], m.h1, m.d2, r, h, h)
		kernel.MatMulNT(m.d1, m.d2, m.v[slotW], r, h, h, m.scratch)
	}
	for i := range n {
		from, k := m.at[i], m.at[i+1]-m.at[i]
		if k == 0 {
			clear(m.dc[i*h : (i+1)*h])
			continue
		}
		kernel.SumRows(m.dc[i*h:(i+1)*h], m.d2[from*h:(from+k)*h], 1, k, h, 1)
	}
	weight(to[contextW], m.trunk, m.dc, n, h, h)
	bias(to[contextB], m.dc, n, h)
	weight(to[waitW], m.trunk, m.dwait, n, 1, h)
	bias(to[waitB], m.dwait, n, 1)
	kernel.MatMulNT(m.dt, m.dc, m.v[contextW], n, h, h, m.scratch)
	for i, d := range m.dwait[:n] {
		row := m.dt[i*h : (i+1)*h]
		for q, w := range m.v[waitW] {
			row[q] += d * w
		}
	}
	kernel.ActGrad(m.dt[:n*h], m.trunk[:n*h], m.dt[:n*h], kernel.Tanh)
	weight(to[trunkW], m.in, m.dt, n, h, in)
	bias(to[trunkB], m.dt, n, h)
	if r == 0 {
		return
	}
	kernel.MatMulNT(m.di, m.dt, m.v[trunkW], n, in, h, m.scratch)
	// The trunk sees the mean and the maximum of the rows.
	for i := range n {
		from, k := m.at[i], m.at[i+1]-m.at[i]
		if k == 0 {
			continue
		}
		d, top := m.di[i*in+z.seen:(i+1)*in], m.in[i*in+z.seen+h:(i+1)*in]
		mean, most := d[:h], d[h:]
		rows := m.d2[from*h : (from+k)*h] // free by now
		kernel.MaxRowsGrad(rows, m.h1[from*h:(from+k)*h], top, most, 1, k, h)
		for q := range mean {
			mean[q] /= float32(k)
		}
		kernel.AddRows(rows, rows, mean, 1, k, h, kernel.Identity)
	}
	kernel.Add(m.d1[:r*h], m.d1[:r*h], m.d2[:r*h])
	kernel.ActGrad(m.d1[:r*h], m.h1[:r*h], m.d1[:r*h], kernel.Tanh)
	weight(to[pairW], m.x, m.d1, r, h, z.wide)
	bias(to[pairB], m.d1, r, h)
}

// sized returns s with n elements, whatever they are.
func sized(s []float32, n int) []float32 {
	if cap(s) < n {
		return make([]float32, n, n+n/4)
	}
	return s[:n]
}
