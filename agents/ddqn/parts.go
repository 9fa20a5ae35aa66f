package ddqn

import (
	"fmt"

	"clustergym/agents"
	"clustergym/nets"
	"clustergym/replay"
)

// ReplayPart is the name of the part with the replay, by far the largest. Only resuming needs it.
const ReplayPart = "replay.bin"

// state is the content of agent.json: everything beside weights, moments and replay.
type state struct {
	Format    int                `json:"format"`
	Steps     int64              `json:"steps"`
	Intervals int64              `json:"intervals"`
	Targets   int64              `json:"targets"`
	Updates   int64              `json:"updates"`
	Progress  float64            `json:"progress"`
	Draws     []byte             `json:"draws"` // state of the stream that draws batches
	Scale     replay.ReturnScale `json:"scale"`
	Replay    bool               `json:"replay"` // the checkpoint has replay.bin; without it a resume is approximate
	Refill    bool               `json:"refill"` // a former resume without the replay has not filled it again yet
}

const stateFormat = 1

// Parts returns what a checkpoint keeps: weights.safetensors, target.safetensors, optimizer.safetensors, agent.json
// (counters, the stream that draws batches, the reward's scale) and, with save_replay, replay.bin. With it a resumed
// run continues bit for bit. Without it checkpoints are small, and a resumed run continues to play but learns only
// once the replay holds learning_starts steps again: see ExactResume.
func (a *Agent) Parts() []agents.Part {
	parts := []agents.Part{
		agents.NewPart("weights.safetensors", a.net.Params()),
		agents.NewPart("target.safetensors", a.target.Params()),
		agents.NewPart("optimizer.safetensors", a.opt),
		agents.NewJSONPart("agent.json", a.save, a.load),
	}
	if a.cfg.SaveReplay {
		parts = append(parts, agents.NewPart(ReplayPart, a.buffer))
	}
	return parts
}

// ExactResume reports whether a run resumed from Parts continues bit for bit. If it does not, the caller should tell
// the user.
func (a *Agent) ExactResume() bool { return a.cfg.SaveReplay }

func (a *Agent) save() (state, error) {
	draws, err := a.drawsPCG.MarshalBinary()
	if err != nil {
		return state{}, err
	}
	return state{
		Format: stateFormat, Steps: a.steps, Intervals: a.intervals, Targets: a.targets, Updates: a.updates,
		Progress: a.progress, Draws: draws, Scale: *a.scale, Replay: a.cfg.SaveReplay, Refill: a.refill,
	}, nil
}

func (a *Agent) load(s state) error {
	if s.Format != stateFormat {
		return fmt.Errorf("ddqn: its format is %d, want %d", s.Format, stateFormat)
	}
	if s.Steps < 0 || s.Intervals < 0 || s.Targets < 0 || s.Updates < 0 || !(s.Progress >= 0 && s.Progress <= 1) {
		return fmt.Errorf("ddqn: %d steps, %d and %d intervals, %d updates and progress %v cannot be an agent's state",
			s.Steps, s.Intervals, s.Targets, s.Updates, s.Progress)
	}
	if s.Replay != a.cfg.SaveReplay {
		return fmt.Errorf("ddqn: it was saved with save_replay %v, this run has %v", s.Replay, a.cfg.SaveReplay)
	}
	if err := s.Scale.Check(a.rows); err != nil {
		return err
	}
	if err := a.drawsPCG.UnmarshalBinary(s.Draws); err != nil { // an error changes nothing
		return fmt.Errorf("ddqn: the stream of batches: %w", err)
	}
	a.steps, a.intervals, a.targets, a.updates = s.Steps, s.Intervals, s.Targets, s.Updates
	a.progress = s.Progress
	*a.scale = s.Scale
	a.refill = s.Refill || !s.Replay
	return nil
}

// Network returns a fingerprint of the names and shapes of the network's parameters, for checkpoint.Meta.
func (a *Agent) Network() string { return nets.Fingerprint(a.net.Params().Views) }
