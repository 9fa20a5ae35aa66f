package model

import (
	"clustergym/nets"
	"clustergym/nets/kernel"
)

// Size is the memory that a network needs, in numbers of float32, computed before it is built. It is counted in
// float64 because a configuration can ask for more than an int holds.
type Size struct {
	Params  float64 // all parameters
	Largest float64 // the largest single parameter
	Row     float64 // all values of one observation in a Forward, without the observation itself
	Graph   float64 // about what a program with gradients keeps for one observation, without the observation itself
	Scratch float64 // patches of convolutions, weights of attention; once for each Forward
}

// ActorCriticSize returns the size of the network that NewActorCritic makes from the same arguments, without
// allocating it.
func ActorCriticSize(cfg Config, in Input, actions int) (Size, error) {
	b, err := planActorCritic(cfg, in, actions)
	if err != nil {
		return Size{}, err
	}
	return b.size(), nil
}

// QNetSize returns the size of the network that NewQNet makes from the same arguments, without allocating it.
func QNetSize(cfg Config, in Input, actions int, duelling bool) (Size, error) {
	b, err := planQNet(cfg, in, actions, duelling)
	if err != nil {
		return Size{}, err
	}
	return b.size(), nil
}

// Roughly how many numbers a graph keeps for each value of a network: the values before and after the activation, and
// the gradients of both; for layers of attention the values alone and some gradients.
const (
	graphValues = 4
	graphLive   = 1.5
)

func (p *plan) size() Size {
	var s Size
	for i := range p.shapes {
		n := elements(&p.shapes[i])
		s.Params += n
		s.Largest = max(s.Largest, n)
	}
	for i, w := range p.width[1:] {
		if _, shared := p.home[i+1]; !shared {
			s.Row += float64(w)
		}
		s.Graph += graphValues * float64(w)
	}
	for i, l := range p.layers {
		if once(l) {
			s.Graph -= (graphValues - graphLive) * float64(p.width[i+1])
		}
	}
	s.Scratch = float64(p.scratch())
	return s
}

// scratch returns the number of elements that the layers use for themselves, one at a time.
func (p *plan) scratch() int {
	need := 0
	for _, l := range p.layers {
		switch l := l.(type) {
		case *Convolution:
			need = max(need, l.Geometry.Scratch(l.Filters))
		case *Attend:
			need = max(need, kernel.AttendScratch(l.Rows, l.Width, l.Heads))
		}
	}
	return need
}

// Work returns about how many multiplications a forward pass over one observation takes.
func (m *ActorCritic) Work() int { return m.p.work() }

// Work returns about how many multiplications a forward pass over one observation takes.
func (m *QNet) Work() int { return m.p.work() }

func (p *plan) work() int {
	n := 0
	for _, l := range p.layers {
		switch l := l.(type) {
		case *Dense:
			n += l.Rows * p.shapes[l.Weight].Size()
		case *Attend:
			n += 2 * l.Rows * l.Rows * l.Width
		case *Convolution:
			n += l.Geometry.OutH() * l.Geometry.OutW() * l.Geometry.Patch() * l.Filters
		}
	}
	return n
}

func elements(v *nets.View) float64 {
	n := 1.0
	for _, d := range v.Shape {
		n *= float64(d)
	}
	return n
}
