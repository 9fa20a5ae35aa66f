package ppo

import (
	"fmt"
	"hash/fnv"

	"clustergym/agents"
	"clustergym/nets"
	"clustergym/replay"
)

// state is what agent.json holds beside weights, moments and rollout.
type state struct {
	Format   int                `json:"format"`
	Updates  int64              `json:"updates"`
	Progress float64            `json:"progress"`
	Begun    float64            `json:"begun"` // progress when the rollout began
	Order    []byte             `json:"order"` // state of the stream that shuffles minibatches
	Scale    replay.ReturnScale `json:"scale"`
	Last     []float32          `json:"last"` // values after the last step of a full rollout
}

const stateFormat = 1

// Parts is what a checkpoint keeps, so that a resumed run continues bit for bit: weights.safetensors,
// optimizer.safetensors, agent.json (counters, the shuffling stream, the reward's scale) and rollout.bin (steps
// not yet learnt from). Save after Observe or Learn, not between Act and Observe.
func (a *Agent) Parts() []agents.Part {
	return []agents.Part{
		agents.NewPart("weights.safetensors", a.net.Params()),
		agents.NewPart("optimizer.safetensors", a.opt),
		agents.NewJSONPart("agent.json", a.save, a.load),
		agents.NewPart("rollout.bin", a.roll),
	}
}

func (a *Agent) save() (state, error) {
	order, err := a.orderPCG.MarshalBinary()
	if err != nil {
		return state{}, err
	}
	return state{
		Format: stateFormat, Updates: a.updates, Progress: a.progress, Begun: a.begun,
		Order: order, Scale: *a.scale, Last: a.last,
	}, nil
}

func (a *Agent) load(s state) error {
	if s.Format != stateFormat {
		return fmt.Errorf("ppo: its format is %d, want %d", s.Format, stateFormat)
	}
	if s.Updates < 0 || !(s.Progress >= 0 && s.Progress <= 1) || !(s.Begun >= 0 && s.Begun <= 1) || len(s.Last) != a.rows {
		return fmt.Errorf("ppo: %d updates, progress %v and %v and %d values cannot be the state of an agent of %d rows",
			s.Updates, s.Progress, s.Begun, len(s.Last), a.rows)
	}
	if err := s.Scale.Check(a.rows); err != nil {
		return err
	}
	if err := a.orderPCG.UnmarshalBinary(s.Order); err != nil { // an error changes nothing
		return fmt.Errorf("ppo: the shuffling stream: %w", err)
	}
	a.updates, a.progress, a.begun = s.Updates, s.Progress, s.Begun
	*a.scale = s.Scale
	copy(a.last, s.Last)
	a.acted = false
	return nil
}

// Network is a fingerprint of the names and shapes of the network's parameters, for checkpoint.Meta.
func (a *Agent) Network() string { return fingerprint(a.net.Params()) }

func fingerprint(p *nets.Params) string {
	h := fnv.New64a()
	for _, v := range p.Views {
		_, _ = fmt.Fprintf(h, "%s%v\n", v.Name, v.Shape) // a hash takes everything
	}
	return fmt.Sprintf("%016x", h.Sum64())
}
