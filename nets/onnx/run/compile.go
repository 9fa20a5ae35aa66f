package run

import (
	"context"
	"fmt"
	"slices"

	"clustergym/nets/onnx"
)

// What a model may take: far more than policies do.
const (
	mostNodes    = 20_000
	mostElements = 1 << 27 // of inputs and intermediate results together
)

// tensor is a value while a program is compiled, and its memory when it runs.
type tensor struct {
	typ   onnx.Type
	shape []int
	f     []float32
	i     []int64
	// fixed tensors are known when the program is compiled.
	fixed bool
	// root is the tensor whose memory this one shows in another shape, nil = it has its own.
	root *tensor

	weights     bool // a tensor of the model, whose memory stays where it is
	given       bool // the memory is not the arena's: an input
	first, last int  // steps that write and read it
	at          int  // in the arena
}

func (t *tensor) len() int    { return onnx.Len(t.shape) }
func (t *tensor) float() bool { return t.typ == onnx.Float32 }

func (t *tensor) owner() *tensor {
	for t.root != nil {
		t = t.root
	}
	return t
}

// fill sets all elements to the only one of v.
func (t *tensor) fill(v *tensor) {
	if t.float() {
		fill(t.f, v.f[0])
	} else {
		fill(t.i, v.i[0])
	}
}

// copy copies n elements of x, a tensor of the same type.
func (t *tensor) copy(to int, x *tensor, from, n int) {
	if t.float() {
		copy(t.f[to:to+n], x.f[from:])
	} else {
		copy(t.i[to:to+n], x.i[from:])
	}
}

func (t *tensor) allocate() {
	if t.float() {
		t.f = make([]float32, t.len())
	} else {
		t.i = make([]int64, t.len())
	}
}

// compiler turns nodes into steps.
type compiler struct {
	p       *Program
	inst    *Instance
	values  map[string]*tensor
	readers map[string]int // how many nodes and outputs read a value
	next    map[string]int // the last node that reads it
	done    map[int]bool   // nodes that an earlier step does too
	all     []*tensor      // with memory in the arena
	left    int            // elements that may still be taken
	rows    int
	folded  int // work that was done, see mostFolding
	work    int // of the steps, for all rows
	extra   int // multiplications of the next step
	ctx     context.Context

	at   int // number of the node
	node *onnx.Node
	in   []*tensor // its inputs, nil = left out
}

// refusal is what a compiler panics with at a node that it cannot compile.
type refusal struct{ err error }

func compile(ctx context.Context, p *Program, rows int) (inst *Instance, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case refusal:
			inst, err = nil, r.err
		default:
			panic(r)
		}
	}()
	c := &compiler{
		p: p, inst: &Instance{in: map[string]*tensor{}, out: map[string]*tensor{}}, values: map[string]*tensor{},
		readers: map[string]int{}, next: map[string]int{}, done: map[int]bool{}, left: mostElements, rows: rows, ctx: ctx,
	}
	c.inst.until(ctx)
	defer c.inst.finish()
	g := &p.model.Graph
	for k := range g.Tensors {
		t := &g.Tensors[k]
		c.values[t.Name] = constantOf(t)
	}
	for _, v := range p.inputs {
		shape := slices.Clone(v.Shape)
		shape[0] = rows
		t := &tensor{typ: v.Type, shape: shape, given: true}
		if n := t.len(); n < 0 || n > c.left {
			return nil, fmt.Errorf("input %.60q has the shape %s, which is too large", v.Name, onnx.ShapeString(v.Shape))
		}
		c.left -= t.len()
		t.allocate()
		c.values[v.Name], c.inst.in[v.Name] = t, t
	}
	for k, n := range p.nodes {
		for _, s := range n.Inputs {
			c.readers[s]++
			c.next[s] = k
		}
	}
	for _, s := range p.outputs {
		c.readers[s] += 2 // nothing may be merged into what comes after
	}
	for k, n := range p.nodes {
		if c.done[k] {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c.compile(k, n)
	}
	for _, s := range p.outputs {
		t := c.values[s]
		if t == nil {
			return nil, fmt.Errorf("nothing computes the output %.60q", s)
		}
		t.owner().last = len(c.inst.steps)
		c.inst.out[s] = t
	}
	c.layOut()
	return c.inst, nil
}

func constantOf(t *onnx.Tensor) *tensor {
	return &tensor{typ: t.Type, shape: t.Shape, f: t.Floats, i: t.Ints, fixed: true, weights: true}
}

func (c *compiler) compile(k int, n *onnx.Node) {
	c.at, c.node, c.in = k, n, c.in[:0]
	for _, s := range n.Inputs {
		if s == "" {
			c.in = append(c.in, nil)
			continue
		}
		t := c.values[s]
		if t == nil {
			c.refuse("its input %.60q is computed by nothing before it, want nodes in the order in which they are computed", s)
		}
		if !known(t.typ) {
			c.refuse("its input %.60q has the type %v, want %s", s, t.typ, typesWanted)
		}
		c.in = append(c.in, t)
	}
	for len(c.in) > 0 && c.in[len(c.in)-1] == nil {
		c.in = c.in[:len(c.in)-1]
	}
	if len(n.Outputs) == 0 || n.Outputs[0] == "" {
		c.refuse("it has no output")
	}
	o := operators[n.Op]
	if len(c.in) < o.min || len(c.in) > o.max {
		c.refuse("it has %d inputs, want %d to %d", len(c.in), o.min, o.max)
	}
	for i := range o.min {
		if c.in[i] == nil {
			c.refuse("its input %d is left out", i)
		}
	}
	for i := range n.Attributes {
		if a := &n.Attributes[i]; !slices.Contains(o.set, a.Name) {
			c.refuse("its setting %.40q is not known", a.Name)
		}
	}
	c.values[n.Outputs[0]] = o.add(c)
}

// refuse ends the compilation with an error about the present node.
func (c *compiler) refuse(format string, args ...any) { panic(refusal{c.wrong(format, args...)}) }

// wrong returns an error about the present node.
func (c *compiler) wrong(format string, args ...any) error {
	return fmt.Errorf("%s: %s", title(c.node), fmt.Sprintf(format, args...))
}

// has returns input i, nil if it is left out.
func (c *compiler) has(i int) *tensor {
	if i < len(c.in) {
		return c.in[i]
	}
	return nil
}

// floats refuses inputs that are not float32.
func (c *compiler) floats() {
	for i, t := range c.in {
		if t != nil && !t.float() {
			c.refuse("its input %d has the type %v, want float32", i, t.typ)
		}
	}
}

// new returns a tensor for a result or for work within a step.
func (c *compiler) new(typ onnx.Type, shape []int) *tensor {
	t := &tensor{typ: typ, shape: shape}
	n := t.len()
	if n < 0 || n > c.left {
		c.refuse("its result of shape %s is too large, or the model takes more than %d numbers",
			onnx.ShapeString(shape), mostElements)
	}
	c.left -= n
	return t
}

// step adds what the node does: run reads the tensors of from and writes those of to, which end with work that only
// run uses. If all that it reads is known, it runs at once.
func (c *compiler) step(run func(), from, to []*tensor) {
	now := true
	for _, t := range from {
		now = now && (t == nil || t.fixed)
	}
	cost := costOf(c.extra, from, to)
	c.extra = 0
	c.afford(cost, now)
	if now {
		for _, t := range to {
			t.fixed = true
			t.allocate()
		}
		run()
		if err := c.ctx.Err(); err != nil {
			panic(refusal{err})
		}
		return
	}
	at := len(c.inst.steps)
	for _, t := range from {
		if t != nil && !t.fixed {
			t.owner().last = max(t.owner().last, at)
		}
	}
	for _, t := range to {
		t.first, t.last = at, max(t.last, at)
		c.all = append(c.all, t)
	}
	c.inst.steps = append(c.inst.steps, step{run, cost})
}

// emit is step for one result, which it returns.
func (c *compiler) emit(y *tensor, run func(), from ...*tensor) *tensor {
	c.step(run, from, []*tensor{y})
	return y
}

// same returns x in another shape.
func (c *compiler) same(x *tensor, shape []int) *tensor {
	if onnx.Len(shape) != x.len() {
		c.refuse("a tensor of shape %s cannot have the shape %s", onnx.ShapeString(x.shape), onnx.ShapeString(shape))
	}
	return &tensor{typ: x.typ, shape: shape, f: x.f, i: x.i, fixed: x.fixed, root: x}
}

// follower returns the only node that reads the value called name, and its number; nil if there are several or the
// value is an output of the model.
func (c *compiler) follower(name string) (int, *onnx.Node) {
	if c.readers[name] != 1 {
		return 0, nil
	}
	k := c.next[name]
	return k, c.p.nodes[k]
}

// layOut gives every tensor its memory: the largest first, each at the lowest place that is free as long as it lives.
func (c *compiler) layOut() {
	for _, float := range []bool{true, false} {
		var list, placed []*tensor
		for _, t := range c.all {
			if t.float() == float {
				list = append(list, t)
			}
		}
		slices.SortStableFunc(list, func(a, b *tensor) int { return b.len() - a.len() })
		size := 0
		for _, t := range list {
			t.at = place(placed, t)
			at, _ := slices.BinarySearchFunc(placed, t, func(a, b *tensor) int { return a.at - b.at })
			placed = slices.Insert(placed, at, t)
			size = max(size, t.at+t.len())
		}
		if float {
			arena := make([]float32, size)
			for _, t := range list {
				t.f = arena[t.at:][:t.len():t.len()]
			}
			c.inst.bytes += 4 * size
		} else {
			arena := make([]int64, size)
			for _, t := range list {
				t.i = arena[t.at:][:t.len():t.len()]
			}
			c.inst.bytes += 8 * size
		}
	}
	for _, t := range c.values {
		c.show(t)
	}
	for _, t := range c.inst.out {
		c.show(t)
	}
}

// show gives a tensor that shares memory the slices of its owner.
func (c *compiler) show(t *tensor) {
	if t.root != nil {
		o := t.owner()
		t.f, t.i = o.f, o.i
	}
}

// place returns the lowest place for t beside those that live at the same time, which are sorted by place.
func place(placed []*tensor, t *tensor) int {
	at := 0
	for _, o := range placed {
		if o.last < t.first || t.last < o.first {
			continue
		}
		if at+t.len() <= o.at {
			break
		}
		at = max(at, o.at+o.len())
	}
	return at
}
