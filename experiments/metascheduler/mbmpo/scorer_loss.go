package mbmpo

import (
	"errors"
	"fmt"
	"math"

	"clustergym/nets"
	"clustergym/replay"
)

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

// Values implements maml.Valuer.
func (m *Scorer) Values(e *replay.Episodes, clip, ent float64) (loss, kl float64, err error) {
	return m.losses(nil, e, clip, ent, true)
}

// Surrogate implements maml.Model.
func (m *Scorer) Surrogate(g *nets.Params, e *replay.Episodes, clip, ent float64) (loss float64, err error) {
	loss, _, err = m.losses(g, e, clip, ent, false)
	return loss, err
}

// losses returns the surrogate loss and, with both, the divergence. g, if not nil, becomes the gradient of the former.
func (m *Scorer) losses(g *nets.Params, e *replay.Episodes, clip, ent float64,
	both bool) (loss, kl float64, err error) {
	all := e.Len()
	if all == 0 || len(e.Advantage) != all || len(e.LogProb) != all {
		return 0, 0,
			fmt.Errorf(
				"mbmpo: %d transitions with %d advantages and %d log-probabilities, want as many of each and at least one", all,
				len(e.Advantage), len(e.LogProb))
	}
	if both && len(e.Head) != all*(m.sizes.rows+1) {
		return 0, 0, m.headless(e)
	}
	if clip == 0 {
		clip = 1e30 // no ratio is cut
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
			if g != nil {
				m.slopes(i, a, slope, ent, entropy, float64(all))
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

// slopes sets dlogit and dwait of state i: those of the mean over all transitions, where slope is that by the logarithm
// of the probability of action a and ent the weight of the entropy.
func (m *Scorer) slopes(i, a int, slope, ent, entropy, all float64) {
	at := func(logp float32, acts bool) float32 {
		p := math.Exp(float64(logp))
		d := -slope * p
		if acts {
			d += slope
		}
		if ent != 0 {
			d += ent * p * (float64(logp) + entropy)
		}
		return float32(d / all)
	}
	for r := m.at[i]; r < m.at[i+1]; r++ {
		m.dlogit[r] = at(m.logp[r], int(m.pair[r]) == a)
	}
	m.dwait[i] = 0
	if m.waits[i] {
		m.dwait[i] = at(m.wait[i], a == m.sizes.rows)
	}
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
		return 0, m.headless(e)
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

// headless is the error for episodes that were not scored.
func (m *Scorer) headless(e *replay.Episodes) error {
	return fmt.Errorf(
		"mbmpo: %d transitions with %d outputs of the policy that acted, want %d, and one transition or more", e.Len(),
		len(e.Head), e.Len()*(m.sizes.rows+1))
}

// apart returns the divergence of state i from the policy that acted in transition at. The slopes of all transitions'
// mean are those of dlogit and dwait then, unless all is 0.
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
