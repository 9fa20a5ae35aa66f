package model

import "clustergym/nets"

// Description is a network as a list of layers, for code that writes it down in another form. Layer k computes value
// k+1; value 0 is the observation. A value has Width elements for each observation. It is a view of the network: its
// slices and parameters must not be changed.
type Description struct {
	Width  []int // by value
	Layers []Layer
	Out    []int // the results: logits and value of an ActorCritic, action values of a QNet
	params *nets.Params
}

// View returns a parameter of a layer, nil for -1.
func (d *Description) View(i int) *nets.View {
	if i < 0 {
		return nil
	}
	return &d.params.Views[i]
}

// Describe returns the network's layers. Out is the logits, or logits and means, and the value.
func (m *ActorCritic) Describe() Description { return m.p.description() }

// Describe returns the network's layers. Out is the action values.
func (m *QNet) Describe() Description { return m.p.description() }

func (p *plan) description() Description { return Description{p.width, p.layers, p.out, p.params} }
