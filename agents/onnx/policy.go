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

// Policy acts as a model says. It draws nothing. It takes batches of any size and is not safe for concurrent use;
// policies of one model may act side by side. From the second batch of a size on, it allocates nothing.
type Policy struct {
	spec env.Spec
	prog *run.Program
	in   []feed
	mask string // the input that says what is legal, "" = none does
	out  result
}

var _ agents.Policy = (*Policy)(nil)

// feed is an input with the elements [from, to) of an observation.
type feed struct {
	name     string
	from, to int
}

// result is the output that decides.
type result struct {
	name   string
	scores bool // numbers of all discrete actions, not the action itself
}

// NewContext returns the policy of a model for environments of spec s. It keeps m and does not change it. ctx ends
// what the model computes beforehand.
func NewContext(ctx context.Context, m *onnx.Model, s env.Spec) (*Policy, error) {
	if id := m.Meta(KeyEnv); id != "" && id != s.ID {
		return nil, fmt.Errorf("the model is for %s, and this is %s", onnx.Plain(id), s.ID)
	}
	if hash := m.Meta(KeySpec); hash != "" && hash != SpecHash(s) {
		return nil, fmt.Errorf("the model is for %s", difference(m, s))
	}
	out, err := choose(m, s)
	if err != nil {
		return nil, err
	}
	p := &Policy{spec: s, out: out}
	if p.prog, err = run.NewContext(ctx, m, out.name); err != nil { // the model's other outputs are not needed
		return nil, err
	}
	if err := p.connect(); err != nil {
		return nil, err
	}
	return p, p.checkResult()
}

// Act chooses one legal action for every row of b. src may be nil.
func (p *Policy) Act(ctx context.Context, b *env.Batch, dst *env.Actions, _ []*rand.Rand) error {
	n := b.N
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
			if err := p.take(b, k, &out, k-from, dst); err != nil {
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
func (p *Policy) take(b *env.Batch, i int, out *run.Tensor, r int, dst *env.Actions) error {
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
		if p.out.scores {
			if j = agents.Best(out.Floats[r*len(mask)+at:][:size], legal); j == agents.NotSane {
				return fmt.Errorf("row %d: a number of the output %q is NaN", i, p.out.name)
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
