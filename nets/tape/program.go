package tape

import (
	"slices"

	"clustergym/nets"
	"clustergym/nets/kernel"
)

// Program computes a loss, its gradients and some outputs, as often as needed. It is for one goroutine. Programs that
// share parameters may run at the same time while the parameters do not change. The same inputs and parameters give
// the same bits.
type Program struct {
	m32    machine[float32] // empty in a float64 program
	m64    machine[float64] // and the other way round
	double bool
	grad   *nets.Params
}

// Input returns the memory of a float32 program's input, row-major, which the caller fills before Run; nil if there
// is no such input.
func (p *Program) Input(name string) []float32 { return p.m32.inputs[name] }

// Bind makes a float32 program read an input from data, which must have at least the input's size, instead of from
// its own memory. Each run reads the content at that time. Bind reports whether it succeeded; it cannot bind an input
// that one of Gorgonia's own operations reads or that is itself an output.
func (p *Program) Bind(name string, data []float32) bool {
	own, ok := p.m32.inputs[name]
	if !ok || len(data) < len(own) || slices.Contains(p.m32.fixed, name) {
		return false
	}
	data = data[:len(own)]
	for _, at := range p.m32.reads[name] {
		*at = data
	}
	return true
}

// InputF64 is Input for a float64 program.
func (p *Program) InputF64(name string) []float64 { return p.m64.inputs[name] }

// ParamF64 returns a float64 program's copy of a parameter, which the caller may change between runs; nil if there is
// no such parameter.
func (p *Program) ParamF64(name string) []float64 { return p.m64.params[name] }

// Run computes everything from the current inputs and parameters. It allocates nothing, unless the graph has
// operations of Gorgonia's own. An error means that an operation failed, for example because an action index is out
// of range; results are then undefined until the next Run. Numbers that are not finite are not an error: check Loss.
func (p *Program) Run() (err error) {
	defer caught("run", &err)
	if !p.double {
		return p.m32.run()
	}
	if err := p.m64.run(); err != nil {
		return err
	}
	for i, g := range p.m64.grads {
		d := p.grad.Views[i].Data
		for j, x := range g {
			d[j] = float32(x)
		}
	}
	return nil
}

// Loss returns the loss of the last run, 0 in a program without one.
func (p *Program) Loss() float64 {
	switch {
	case p.m32.loss != nil:
		return float64(p.m32.loss[0])
	case p.m64.loss != nil:
		return p.m64.loss[0]
	}
	return 0
}

// Output returns the i-th output of a float32 program, row-major. The next run overwrites it; the caller must not
// change it.
func (p *Program) Output(i int) []float32 { return p.m32.outputs[i] }

// OutputF64 is Output for a float64 program.
func (p *Program) OutputF64(i int) []float64 { return p.m64.outputs[i] }

// Grad returns the gradient of the loss: one view for each parameter, in the order and with the names and shapes in
// which they were first given to Builder.Param. It has its own memory, which each run overwrites. Between runs the
// caller may change it, as clipping does. A float64 program rounds its gradients into it.
func (p *Program) Grad() *nets.Params { return p.grad }

// GradF64 returns a float64 program's gradient with respect to one parameter, nil if there is no such parameter.
func (p *Program) GradF64(name string) []float64 {
	for i := range p.grad.Views {
		if p.grad.Views[i].Name == name && i < len(p.m64.grads) {
			return p.m64.grads[i]
		}
	}
	return nil
}

// Memory returns the number of elements that inputs and values take, without parameters and gradients. Values that
// neither a step nor the caller reads any more are reused.
func (p *Program) Memory() int { return p.m32.size + p.m64.size }

// machine is a program for one type.
type machine[T kernel.Float] struct {
	steps   []step[T]
	scratch []T
	need    int // elements of scratch
	size    int // elements of inputs and values
	inputs  map[string][]T
	reads   map[string][]*[]T // by input: the references of the steps that read it
	fixed   []string          // inputs that foreign steps or the caller read
	params  map[string][]T
	loss    []T
	outputs [][]T
	grads   [][]T // by parameter; for float32 this is grad's memory
}

type step[T kernel.Float] struct {
	run     func(out []T, in [][]T, scratch []T)
	foreign *foreign[T] // instead of run
	out     []T
	in      [][]T
}

func (m *machine[T]) run() error {
	for i := range m.steps {
		s := &m.steps[i]
		if s.foreign != nil {
			if err := s.foreign.run(); err != nil {
				return err
			}
			continue
		}
		s.run(s.out, s.in, m.scratch)
	}
	return nil
}

func addTwo[T kernel.Float](out []T, in [][]T, _ []T) { kernel.Add(out, in[0], in[1]) }

func copyFirst[T kernel.Float](out []T, in [][]T, _ []T) { copy(out, in[0]) }
