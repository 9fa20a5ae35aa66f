package mbmpo

import (
	"math"
	"slices"

	"clustergym/nets/kernel"
	"clustergym/replay"
)

// scorerStates is the number of states that losses work on at a time.
const scorerStates = 256

// packed is what a Scorer reads of some states: the rows of legal actions, one behind the other. It does not depend on
// parameters.
type packed struct {
	at    []int     // those of state i are [at[i], at[i+1])
	pair  []int32   // of each row, its number in its state
	x     []float32 // [rows, wide]
	seen  []float32 // [states, seen], what the trunk sees of the observation
	waits []bool    // of each state, whether waiting is legal
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

// forward computes the scores of n states that were loaded, and the logarithms of the probabilities of their legal
// actions.
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

// normalise turns the scores of state i's legal actions into the logarithms of their probabilities: logp of the rows
// and wait.
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

// sized returns s with n elements, whatever they are.
func sized(s []float32, n int) []float32 { return slices.Grow(s[:0], n)[:n] }
