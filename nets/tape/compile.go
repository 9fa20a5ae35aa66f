package tape

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"clustergym/nets"
	"clustergym/nets/kernel"
	"clustergym/nets/op"
)

// Compile differentiates the scalar loss with respect to every parameter of b and returns a program that computes
// loss, outputs and gradients. A parameter that the loss does not depend on has gradient 0. With a nil loss the
// program computes only the outputs. The builder must not be used afterwards.
func (b *Builder) Compile(loss *gorgonia.Node, outputs ...*gorgonia.Node) (p *Program, err error) {
	defer caught("compile", &err)
	if loss == nil && len(outputs) == 0 {
		return nil, errors.New("tape: compile: neither loss nor outputs")
	}
	for i, n := range append([]*gorgonia.Node{loss}, outputs...) {
		if n != nil && (n.Graph() != b.g || n.Dtype() != b.dt) || n == nil && i > 0 {
			return nil, fmt.Errorf("tape: compile: output %d (0 = loss) is not of this graph", i)
		}
	}
	var grads []*gorgonia.Node // by parameter, nil = none
	if loss != nil {
		if grads, err = b.differentiate(loss); err != nil {
			return nil, err
		}
	}
	order, err := b.schedule(append(append([]*gorgonia.Node{loss}, outputs...), grads...))
	if err != nil {
		return nil, err
	}
	var shapes []nets.View
	for _, p := range b.params {
		shapes = append(shapes, p.view)
	}
	p = &Program{double: b.dt == tensor.Float64, grad: nets.NewParams(shapes)}
	if p.double {
		err = p.m64.assemble(b, order, loss, outputs, grads, p.grad)
	} else {
		err = p.m32.assemble(b, order, loss, outputs, grads, p.grad)
	}
	if err != nil {
		return nil, fmt.Errorf("tape: compile: %w", err)
	}
	return p, nil
}

// differentiate returns the gradient node of each parameter, nil for one that cannot change the loss. Gorgonia treats
// such parameters as an error, so they are left out.
func (b *Builder) differentiate(loss *gorgonia.Node) ([]*gorgonia.Node, error) {
	if !loss.IsScalar() {
		return nil, fmt.Errorf("tape: compile: loss has shape %v, want a scalar", loss.Shape())
	}
	reach := map[int64]bool{}
	todo := []*gorgonia.Node{loss}
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if reach[n.ID()] {
			continue
		}
		reach[n.ID()] = true
		d, ok := n.Op().(gorgonia.SDOp)
		if n.Op() == nil || !ok {
			continue
		}
		in := op.Inputs(n)
		for i, diff := range d.DiffWRT(len(in)) {
			if diff {
				todo = append(todo, in[i])
			}
		}
	}
	var wrt []*gorgonia.Node
	var at []int
	for i, q := range b.params {
		if reach[q.node.ID()] {
			wrt = append(wrt, q.node)
			at = append(at, i)
		}
	}
	grads := make([]*gorgonia.Node, len(b.params))
	if len(wrt) == 0 {
		return grads, nil
	}
	adding.Lock()
	defer adding.Unlock() // even if an operation's derivative panics
	nodes, err := gorgonia.Grad(loss, wrt...)
	if err != nil {
		return nil, fmt.Errorf("tape: compile: %w", err)
	}
	for k, i := range at {
		grads[i] = nodes[k]
	}
	return grads, nil
}

// schedule returns the nodes that roots need, each after its inputs. The order is that of a walk from the roots and
// depends only on the graph. Nodes that are not needed are left out.
func (b *Builder) schedule(roots []*gorgonia.Node) ([]*gorgonia.Node, error) {
	var order []*gorgonia.Node
	done := map[int64]int{} // 1 = begun, 2 = finished
	var visit func(n *gorgonia.Node) error
	visit = func(n *gorgonia.Node) error {
		switch done[n.ID()] {
		case 1:
			return fmt.Errorf("tape: compile: node %v needs itself", n)
		case 2:
			return nil
		}
		done[n.ID()] = 1
		for _, c := range op.Inputs(n) {
			if err := visit(c); err != nil {
				return err
			}
		}
		done[n.ID()] = 2
		order = append(order, n)
		return nil
	}
	for _, n := range roots {
		if n != nil {
			if err := visit(n); err != nil {
				return nil, err
			}
		}
	}
	return order, nil
}

// assemble allocates the values and lists the steps. Gradients go to grad, which is for float32.
func (m *machine[T]) assemble(b *Builder, order []*gorgonia.Node, loss *gorgonia.Node, outputs, grads []*gorgonia.Node,
	grad *nets.Params) error {
	m.inputs, m.params = map[string][]T{}, map[string][]T{}
	mem := map[int64][]T{} // by node
	free := newValueMemory[T](order, append(append([]*gorgonia.Node{loss}, outputs...), grads...))
	for _, p := range b.params {
		d, shared := any(p.view.Data).([]T)
		if !shared {
			d = make([]T, len(p.view.Data))
			for j, x := range p.view.Data {
				d[j] = T(x)
			}
		}
		mem[p.node.ID()] = d
		m.params[p.view.Name] = d
	}
	for _, n := range b.inputs { // including unused ones: the caller fills them all
		d := make([]T, elements(n))
		mem[n.ID()] = d
		m.inputs[n.Name()] = d
	}
	// A gradient is computed directly in grad if its node serves only one parameter and is computed by a step.
	m.grads = make([][]T, len(grads))
	place := map[int64][]T{}
	for i, n := range grads {
		v := &grad.Views[i]
		d, same := any(v.Data).([]T)
		if !same {
			d = make([]T, len(v.Data))
		}
		m.grads[i] = d
		if n == nil {
			continue
		}
		root := base(n)
		if _, taken := place[root.ID()]; !taken && root.Op() != nil && root.Value() == nil {
			place[root.ID()] = d
		}
	}
	for i, n := range order {
		if err := m.add(n, mem, place, free, i); err != nil {
			return err
		}
		free.after(i)
	}
	for i, n := range grads {
		if n == nil {
			continue
		}
		if d, from := m.grads[i], mem[n.ID()]; &d[0] != &from[0] {
			m.steps = append(m.steps, step[T]{run: copyFirst[T], out: d, in: [][]T{from}})
		}
	}
	if loss != nil {
		m.loss = mem[loss.ID()]
	}
	for _, n := range outputs {
		m.outputs = append(m.outputs, mem[n.ID()])
	}
	m.scratch = make([]T, m.need)
	m.size = free.size
	for _, d := range m.inputs {
		m.size += len(d)
	}
	m.find()
	return nil
}

// find fills reads and fixed.
func (m *machine[T]) find() {
	m.reads = map[string][]*[]T{}
	for name, own := range m.inputs {
		for i := range m.steps {
			s := &m.steps[i]
			for k := range s.in {
				if len(s.in[k]) == 0 || len(own) == 0 || &s.in[k][0] != &own[0] {
					continue
				}
				if s.foreign != nil {
					m.fixed = append(m.fixed, name)
				}
				m.reads[name] = append(m.reads[name], &s.in[k])
			}
		}
		for _, out := range append(slices.Clone(m.outputs), m.loss) {
			if len(out) > 0 && len(own) > 0 && &out[0] == &own[0] {
				m.fixed = append(m.fixed, name)
			}
		}
	}
}

func elements(n *gorgonia.Node) int {
	k := 1
	for _, d := range n.Shape() {
		k *= d
	}
	return k
}

// base returns the node whose memory n shares.
func base(n *gorgonia.Node) *gorgonia.Node {
	for {
		o, ok := n.Op().(*op.Op)
		if !ok || !o.View() {
			return n
		}
		n = op.Inputs(n)[0]
	}
}

// add allocates n's value and appends the step that computes it. i is n's place in the schedule.
func (m *machine[T]) add(n *gorgonia.Node, mem, place map[int64][]T, free *valueMemory[T], i int) error {
	if _, ok := mem[n.ID()]; ok {
		return nil // input or parameter
	}
	if n.Op() == nil {
		return fmt.Errorf("variable %q was not made by this builder", n.Name())
	}
	children := op.Inputs(n)
	in := make([][]T, len(children))
	for i, c := range children {
		in[i] = mem[c.ID()]
	}
	o, ours := n.Op().(*op.Op)
	if ours && o.View() {
		mem[n.ID()] = in[0]
		return nil
	}
	out := place[n.ID()]
	switch {
	case len(children) == 0: // a constant
		if n.Value() == nil {
			return fmt.Errorf("node %v has neither inputs nor a value", n)
		}
		out = make([]T, elements(n))
		mem[n.ID()] = out
		return fill(out, n.Value())
	case out == nil && ours && o.Over() >= 0:
		out = free.over(n, children[o.Over()], i)
	case out == nil && !ours && isSum(n, children):
		out = free.over(n, children[0], i)
	case out == nil:
		out = free.take(n)
	}
	mem[n.ID()] = out
	s := step[T]{out: out, in: in}
	switch {
	case ours:
		s.run = runOf[T](o)
		m.need = max(m.need, o.Scratch())
	case isSum(n, children):
		s.run = addTwo[T]
	default:
		f, err := newForeign(n, children, in, out)
		if err != nil {
			return err
		}
		s.foreign = f
	}
	m.steps = append(m.steps, s)
	return nil
}

// isSum reports whether n is the addition that Gorgonia inserts where several gradients of one node meet.
func isSum(n *gorgonia.Node, in []*gorgonia.Node) bool {
	if b, ok := n.Op().(gorgonia.BinaryOp); !ok || !b.IsBinary() || !strings.HasPrefix(n.Op().String(), "+") {
		return false
	}
	return len(in) == 2 && elements(in[0]) == elements(n) && elements(in[1]) == elements(n)
}

// runOf returns the operation's function for T.
func runOf[T kernel.Float](o *op.Op) func(out []T, in [][]T, scratch []T) {
	if f, ok := any(o.Run32).(func([]float32, [][]float32, []float32)); ok {
		if g, ok := any(f).(func([]T, [][]T, []T)); ok {
			return g
		}
	}
	return any(o.Run64).(func([]T, [][]T, []T))
}
