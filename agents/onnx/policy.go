package onnx

import (
	"context"
	"fmt"
	"math/rand/v2"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/nets/onnx"
	"clustergym/nets/onnx/run"
)

// pieceRows is the number of rows that a model sees at a time, at most.
const pieceRows = 64

// Policy acts as a model says, by a rule where the model gives what it weighs. It takes batches of any size and is not
// safe for concurrent use; policies of one model may act side by side. From the second batch of a size on, it allocates
// nothing.
type Policy struct {
	spec env.Spec
	prog *run.Program
	in   []feed
	mask string // the input that says what is legal, "" = none does
	out  result
	noop int // of agents.NoOp
	rule agents.Rule
}

var _ agents.Policy = (*Policy)(nil)

// feed is an input with the elements [from, to) of an observation.
type feed struct {
	name     string
	from, to int
}

// result is the output that decides.
type result struct {
	name string
	kind agents.ScoreKind // of numbers for all discrete actions; "" = it is the action itself
}

// NewContext returns the policy of a model for environments of spec s, which chooses by rule r where the model gives
// logits or probabilities; "" is agents.ByShare. Of values it takes the largest, and a model that gives nothing but
// actions is taken as it is. It keeps m and does not change it. ctx ends what the model computes beforehand.
func NewContext(ctx context.Context, m *onnx.Model, s env.Spec, r agents.Rule) (*Policy, error) {
	if id := m.Meta(KeyEnv); id != "" && id != s.ID {
		return nil, fmt.Errorf("the model is for %s, and this is %s", onnx.Plain(id), s.ID)
	}
	if hash := m.Meta(KeySpec); hash != "" && hash != SpecHash(s) {
		return nil, fmt.Errorf("the model is for %s", difference(m, s))
	}
	outs, err := choose(m, s, r)
	if err != nil {
		return nil, err
	}
	for i, out := range outs {
		var p *Policy
		// A model may give logits of something else next to its actions.
		if p, err = deciding(ctx, m, s, out, r); err == nil || ctx.Err() != nil || i == len(outs)-1 {
			return p, err
		}
	}
	panic("unreachable")
}

// deciding returns the policy in which out decides.
func deciding(ctx context.Context, m *onnx.Model, s env.Spec, out result, r agents.Rule) (p *Policy, err error) {
	p = &Policy{spec: s, out: out, noop: agents.NoOp(s), rule: agents.AsGiven}
	if out.kind != "" {
		if p.rule = r.For(out.kind); r == agents.AsGiven {
			p.rule = agents.ByArgMax
		}
	}
	if p.prog, err = run.NewContext(ctx, m, out.name); err != nil { // the model's other outputs are not needed
		return nil, err
	}
	if err := p.connect(); err != nil {
		return nil, err
	}
	if err := p.checkResult(); err != nil {
		return nil, err
	}
	return p, nil
}

// Rule returns the rule by which the policy chooses: agents.AsGiven if the model gives nothing but actions.
func (p *Policy) Rule() agents.Rule { return p.rule }

// Act chooses one legal action for every row of b. Only agents.BySample draws; for the other rules src may be nil.
func (p *Policy) Act(ctx context.Context, b *env.Batch, dst *env.Actions, src []*rand.Rand) error {
	n := b.N
	if p.rule == agents.BySample && len(src) < n {
		return fmt.Errorf("imported: %d rows that draw from %d streams, want as many", n, len(src))
	}
	if dst.N != n || len(b.Obs) < n*p.spec.ObsLen() || len(b.Mask) < n*p.spec.MaskLen() || len(b.Kind) < n {
		return fmt.Errorf("imported: a batch of %d rows with %d observations and %d mask bits does not fit %s", n, len(b.Obs),
			len(b.Mask), p.spec.ID)
	}
	for from := 0; from < n; {
		if err := ctx.Err(); err != nil {
			return err
		}
		rows := p.prog.Rows()
		if rows == 0 {
			rows = min(pieceRows, n-from)
		}
		i, err := p.prog.ForContext(ctx, rows)
		if err != nil {
			return err
		}
		to := min(from+rows, n)
		p.fill(i, b, from, to)
		if err := i.RunContext(ctx); err != nil {
			return err
		}
		out, _ := i.Output(p.out.name)
		for k := from; k < to; k++ {
			var own *rand.Rand
			if p.rule == agents.BySample {
				own = src[k]
			}
			if err := p.take(b, k, &out, k-from, dst, own); err != nil {
				return err
			}
		}
		from = to
	}
	return nil
}

// Bytes returns about how much memory the policy has of its own for one row at a time.
func (p *Policy) Bytes() int {
	i, err := p.prog.For(max(1, p.prog.Rows()))
	if err != nil {
		return 0 // NewContext made it
	}
	return i.Bytes() + p.prog.Bytes()
}

// fill writes the rows [from, to) of b into the inputs. A model that was made for more rows computes the others from
// what is there.
func (p *Policy) fill(i *run.Instance, b *env.Batch, from, to int) {
	width := p.spec.ObsLen()
	for k := range p.in {
		f := &p.in[k]
		t, _ := i.Input(f.name)
		w := f.to - f.from
		for r := from; r < to; r++ {
			copy(t.Floats[(r-from)*w:], b.Obs[r*width+f.from:r*width+f.to])
		}
	}
	if p.mask == "" {
		return
	}
	t, _ := i.Input(p.mask)
	for k, legal := range b.Mask[from*p.spec.MaskLen() : to*p.spec.MaskLen()] {
		v := int64(0)
		if legal {
			v = 1
		}
		if t.Type == onnx.Float32 {
			t.Floats[k] = float32(v)
		} else {
			t.Ints[k] = v
		}
	}
}

// take turns row r of the output into the action of row i.
func (p *Policy) take(b *env.Batch, i int, out *run.Tensor, r int, dst *env.Actions, src *rand.Rand) error {
	a := &p.spec.Action
	if len(a.Sizes) == 0 {
		d := len(a.Low)
		for k, x := range out.Floats[r*d : (r+1)*d] {
			if x-x != 0 {
				return fmt.Errorf("row %d: number %d of the action is %v", i, k, x)
			}
			dst.Cont[i*d+k] = min(max(x, a.Low[k]), a.High[k])
		}
		return nil
	}
	f, at := len(a.Sizes), 0
	mask := b.Mask[i*p.spec.MaskLen() : (i+1)*p.spec.MaskLen()]
	for k, size := range a.Sizes {
		legal := mask[at : at+size]
		j := 0
		if p.out.kind != "" {
			x := out.Floats[r*len(mask)+at:][:size]
			if j = agents.Choose(p.rule, p.out.kind, x, legal, p.noop, src); j == agents.NotSane {
				return fmt.Errorf("row %d: a number of the output %q is %s", i, p.out.name, p.fault(x, legal))
			}
		} else {
			x := out.Ints[r*f+k]
			if x < 0 || x >= int64(size) {
				return fmt.Errorf("row %d: the output %q chooses action %d of %d", i, p.out.name, x, size)
			}
			if j = int(x); !legal[j] {
				j = p.instead(legal)
			}
		}
		if j < 0 {
			if !b.Kind[i].Last() {
				return fmt.Errorf("row %d has no legal action in factor %d", i, k)
			}
			j = 0 // an ended row, whose action is ignored
		}
		dst.Disc[i*f+k] = int32(j)
		at += size
	}
	return nil
}

// fault says what is wrong with numbers of the output.
func (p *Policy) fault(x []float32, legal []bool) string {
	switch {
	case agents.Best(x, legal) == agents.NotSane:
		return "NaN"
	case p.out.kind == agents.Probabilities:
		return "no probability"
	}
	return "infinite"
}

// instead returns what is done in place of an illegal action: nothing, or else the first legal one.
func (p *Policy) instead(legal []bool) int {
	if k := p.spec.NoOp; len(p.spec.Action.Sizes) == 1 && k >= 0 && k < len(legal) && legal[k] {
		return k
	}
	for k, ok := range legal {
		if ok {
			return k
		}
	}
	return agents.NoneLegal
}
