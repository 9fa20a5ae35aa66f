package maml

import (
	"fmt"
	"io"

	"clustergym/agents"
	"clustergym/nets"
)

// state is the content of agent.json: everything beside parameters and moments.
type state struct {
	Format    int    `json:"format"`
	Iteration int64  `json:"iteration"`
	Steps     int64  `json:"steps"`
	Seed      uint64 `json:"seed"`
}

const stateFormat = 1

// Parts returns what a checkpoint keeps: weights.safetensors, optimizer.safetensors and agent.json.
func (l *Learner) Parts() []agents.Part {
	return []agents.Part{
		agents.NewPart("weights.safetensors", weights{l.theta}),
		agents.NewPart("optimizer.safetensors", l.adam),
		agents.NewJSONPart("agent.json", func() (state, error) {
			return state{stateFormat, l.iteration, l.steps, l.seed}, nil
		}, func(s state) error {
			if s.Format != stateFormat || s.Iteration < 0 || s.Steps < 0 {
				return fmt.Errorf("maml: format %d with %d iterations and %d steps cannot be the state of a learner", s.Format,
					s.Iteration, s.Steps)
			}
			l.iteration, l.steps, l.seed = s.Iteration, s.Steps, s.Seed
			return nil
		}),
	}
}

type weights struct{ p *nets.Params }

func (w weights) WriteTo(dst io.Writer) (int64, error) { return nets.WriteTensors(dst, nil, w.p.Views) }

func (w weights) ReadFrom(src io.Reader) (int64, error) {
	_, n, err := nets.ReadTensors(src, w.p.Views)
	return n, err
}
