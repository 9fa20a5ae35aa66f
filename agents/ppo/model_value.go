package ppo

import (
	"context"
	"fmt"
	"math"

	"clustergym/nets/model"
	"clustergym/nets/op"
	"clustergym/replay"
)

// each calls visit for every transition of e with the network's output and the log-probabilities of all actions of
// its factors, at the current parameters. It computes no gradients; it is for losses of which only the value is
// needed.
func (m *Model) each(e *replay.Episodes, visit func(i int, head, logp []float32)) error {
	d, n := m.act.dist, e.Len()
	o, l, w := m.act.obsLen, d.Logits(), d.Head()
	if len(m.values) < modelRows*(w+l) {
		m.values = make([]float32, modelRows*(w+l))
	}
	heads, logps := m.values[:modelRows*w], m.values[modelRows*w:]
	op.Precisions(m.act.precision, m.act.logStd)
	for from := 0; from < n; from += modelRows {
		k := min(modelRows, n-from)
		if err := m.fwd.Run(context.Background(), e.Obs[from*o:(from+k)*o], k, heads[:k*w], nil); err != nil {
			return err
		}
		model.Legal(m.loss.mask[:k*l], e.Mask[from*l:])
		op.LogProbs(d, logps, heads, m.loss.mask, k)
		for i := range k {
			visit(from+i, heads[i*w:(i+1)*w], logps[i*l:(i+1)*l])
		}
	}
	return nil
}

// logProb returns the log-probability of the action of transition i from what each gives.
func (m *Model) logProb(e *replay.Episodes, i int, head, logp []float32) (sum float32) {
	d, at := m.act.dist, 0
	f, c := len(d.Sizes), d.Dims
	for j, size := range d.Sizes {
		sum += logp[at+int(e.Action.Disc[i*f+j])]
		at += size
	}
	if c > 0 {
		sum += op.NormalLogProb(e.Number[i*c:(i+1)*c], head[at:], m.act.logStd, m.act.precision)
	}
	return sum
}

func (m *Model) surrogateValue(e *replay.Episodes, clip, ent float64) (loss float64, err error) {
	d := m.act.dist
	l := d.Logits()
	err = m.each(e, func(i int, head, logp []float32) {
		now, entropy := m.logProb(e, i, head, logp), 0.0
		if ent != 0 {
			for k, x := range logp {
				if e.Mask[i*l+k] {
					entropy -= math.Exp(float64(x)) * float64(x)
				}
			}
		}
		if d.Dims > 0 {
			entropy += float64(op.NormalEntropy(m.act.logStd))
		}
		r, a := math.Exp(float64(now)-float64(e.LogProb[i])), float64(e.Advantage[i])
		loss -= min(r*a, min(max(r, 1-clip), 1+clip)*a) + ent*entropy
	})
	loss /= float64(e.Len())
	if err == nil && loss-loss != 0 {
		err = fmt.Errorf("ppo: the surrogate loss is %v", loss)
	}
	return loss, err
}

func (m *Model) divergenceValue(e *replay.Episodes) (kl float64, err error) {
	d := m.act.dist
	l, w := d.Logits(), d.Head()
	old, mask := make([]float32, l), make([]float32, l)
	err = m.each(e, func(i int, head, logp []float32) {
		was := e.Head[i*w : (i+1)*w]
		model.Legal(mask, e.Mask[i*l:])
		op.LogProbs(d, old, was, mask, 1)
		for k, q := range old {
			if mask[k] != 0 {
				kl += math.Exp(float64(q)) * (float64(q) - float64(logp[k]))
			}
		}
		for k := range d.Dims {
			s, o := float64(m.act.logStd[k]), float64(e.LogStd[k])
			move := float64(head[l+k]) - float64(was[l+k])
			kl += s - o + (math.Exp(2*(o-s))+move*move*math.Exp(-2*s))/2 - 0.5
		}
	})
	kl /= float64(e.Len())
	if err == nil && kl-kl != 0 {
		err = fmt.Errorf("ppo: the divergence is %v", kl)
	}
	return kl, err
}
