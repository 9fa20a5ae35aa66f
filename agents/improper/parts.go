package improper

import (
	"fmt"

	"clustergym/agents"
)

// state is the content of agent.json: everything beside theta and the rollout.
type state struct {
	Format  int       `json:"format"`
	Updates int64     `json:"updates"`
	Seed    uint64    `json:"seed"`
	Critic  []float64 `json:"critic,omitempty"` // of pg and nac
	Trial   *trial    `json:"trial,omitempty"`  // of spsa
}

// trial is what rows have earned under perturbed weights.
type trial struct {
	From     int64     `json:"from"`     // the first episode that counts, the same in every row
	Episode  []int64   `json:"episode"`  // [rows], number of the current episode
	Earned   []float64 `json:"earned"`   // [rows], in episodes that count and have ended
	Running  []float64 `json:"running"`  // [rows], in the current episode
	Discount []float64 `json:"discount"` // [rows], so far
}

const stateFormat = 1

// Parts returns what a checkpoint keeps: weights.safetensors, agent.json (counters, the critic, and what perturbed rows
// have earned) and, of pg and nac, rollout.bin.
func (a *Agent) Parts() []agents.Part {
	parts := []agents.Part{agents.NewPart("weights.safetensors", a.params),
		agents.NewJSONPart("agent.json", a.save, a.load)}
	if a.roll != nil {
		parts = append(parts, agents.NewPart("rollout.bin", a.roll))
	}
	return parts
}

func (a *Agent) save() (state, error) {
	s := state{Format: stateFormat, Updates: a.updates, Seed: a.seed}
	if t := a.trial; t != nil {
		s.Trial = &t.trial
		return s, nil
	}
	s.Critic = a.critic.w
	return s, nil
}

func (a *Agent) load(s state) error {
	if s.Format != stateFormat || s.Updates < 0 {
		return fmt.Errorf("improper: format %d with %d updates cannot be an agent's state", s.Format, s.Updates)
	}
	if (a.trial != nil) != (s.Trial != nil) || a.trial == nil && len(s.Critic) != a.critic.n {
		return fmt.Errorf("improper: the state is not one of method %s with %d observations", a.cfg.Method, a.obs)
	}
	if t := s.Trial; t != nil {
		if n := a.rows; len(t.Episode) != n || len(t.Earned) != n || len(t.Running) != n || len(t.Discount) != n ||
			t.From < 0 {
			return fmt.Errorf("improper: the state counts %d rows from episode %d on, want %d rows from 0 or later",
				len(t.Episode), t.From, n)
		}
		a.trial.trial, a.trial.stale = *t, true
	} else {
		copy(a.critic.w, s.Critic)
	}
	a.updates, a.seed = s.Updates, s.Seed
	return nil
}
