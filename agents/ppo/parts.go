package ppo

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/nets"
	"clustergym/replay"
)

// state is the content of agent.json: everything beside weights, moments and rollout.
type state struct {
	Format   int                `json:"format"`
	Updates  int64              `json:"updates"`
	Progress float64            `json:"progress"`
	Begun    float64            `json:"begun"` // progress when the rollout began
	Order    []byte             `json:"order"` // state of the stream that shuffles minibatches
	Scale    replay.ReturnScale `json:"scale"`
	Last     []float32          `json:"last"` // values after the last step of a full rollout
	// Obs is set with Config.NormObs.
	Obs *replay.ObsScaleState `json:"obs,omitempty"`
	// Popart is set with value_norm popart, Groups with baseline group.
	Popart *popart      `json:"popart,omitempty"`
	Groups *groupsState `json:"groups,omitempty"`
	// Taught is set after imitation.
	Taught *taught `json:"taught,omitempty"`
	// Warm is the number of updates done of critic_warmup; Anchored says that the anchor is the policy that learning began
	// with.
	Warm     int  `json:"warm,omitempty"`
	Anchored bool `json:"anchored,omitempty"`
	// Average is set with Config.Average once a rollout has been learnt from.
	Average *average `json:"average,omitempty"`
}

// groupsState is where the rows of groups are, now and at the rollout's first step.
type groupsState struct {
	Clock       []float64 `json:"clock"`   // [rows], simulated time in the running episode, in seconds
	Episode     []int64   `json:"episode"` // [rows], number of the running episode
	ClockThen   []float64 `json:"clock_then"`
	EpisodeThen []int64   `json:"episode_then"`
}

func (s *groupsState) fits(rows int) bool {
	return len(s.Clock) == rows && len(s.Episode) == rows && len(s.ClockThen) == rows && len(s.EpisodeThen) == rows
}

const stateFormat = 1

// Parts returns what a checkpoint keeps so that a resumed run continues bit for bit: weights.safetensors,
// optimizer.safetensors, agent.json (counters, the shuffling stream, the reward's scale), rollout.bin (steps not
// yet learnt from), with anchor anchor.safetensors (the weights to stay near) and with Config.CriticEpochs
// critic-optimizer.safetensors. Save after Observe or Learn, not between Act and Observe.
func (a *Agent) Parts() []agents.Part {
	parts := []agents.Part{
		agents.NewPart("weights.safetensors", &weightsPart{a.net.Params(), a.act.scale}),
		agents.NewPart("optimizer.safetensors", a.opt),
		agents.NewJSONPart(statePart, a.save, a.load),
		agents.NewPart(rolloutPart, a.roll),
	}
	if a.anchor != nil {
		parts = append(parts, agents.NewPart("anchor.safetensors", &weightsPart{a.anchor.net.Params(), nil}))
	}
	if a.critic != nil {
		parts = append(parts, agents.NewPart(criticPart, a.critic.opt))
	}
	return parts
}

// Parts that are named in several places: the state, the rollout, and the critic's optimiser.
const (
	statePart   = "agent.json"
	rolloutPart = "rollout.bin"
	criticPart  = "critic-optimizer.safetensors"
)

func (a *Agent) save() (state, error) {
	order, err := a.orderPCG.MarshalBinary()
	if err != nil {
		return state{}, err
	}
	s := state{
		Format: stateFormat, Updates: a.updates, Progress: a.progress, Begun: a.begun,
		Order: order, Scale: *a.scale, Last: a.last,
	}
	if a.act.scale != nil {
		s.Obs = a.act.scale.State()
	}
	if a.popart != nil {
		kept := *a.popart
		s.Popart = &kept
	}
	if g := a.groups; g != nil {
		s.Groups = &g.groupsState
	}
	if a.taught != (taught{}) {
		kept := a.taught
		s.Taught = &kept
	}
	s.Warm, s.Anchored = a.warm, a.anchor != nil && a.anchor.set
	if a.average.Known {
		kept := a.average
		s.Average = &kept
	}
	return s, nil
}

func (a *Agent) load(s state) error {
	if s.Format != stateFormat {
		return fmt.Errorf("ppo: its format is %d, want %d", s.Format, stateFormat)
	}
	if s.Updates < 0 || !(s.Progress >= 0 && s.Progress <= 1) || !(s.Begun >= 0 && s.Begun <= 1) || len(s.Last) != a.rows {
		return fmt.Errorf("ppo: %d updates, progress %v and %v and %d values cannot be the state of an agent of %d rows",
			s.Updates, s.Progress, s.Begun, len(s.Last), a.rows)
	}
	if err := s.Scale.Check(len(a.scale.Sum)); err != nil {
		return err
	}
	if (s.Obs != nil) != (a.act.scale != nil) {
		return fmt.Errorf("ppo: it has a scale of observations: %v, want %v (norm_obs)", s.Obs != nil, a.act.scale != nil)
	}
	if s.Obs != nil {
		if err := a.act.scale.Check(s.Obs); err != nil {
			return err
		}
	}
	if (s.Popart != nil) != (a.popart != nil) || s.Popart != nil && !(s.Popart.Sigma >= leastSigma) {
		return fmt.Errorf("ppo: its values are normalised: %v, want %v (value_norm)", s.Popart, a.popart)
	}
	if g := s.Groups; (g != nil) != (a.groups != nil) || g != nil && !g.fits(a.rows) {
		return errors.New("ppo: its groups of rows are others (baseline, train.group)")
	}
	if t := s.Taught; t != nil && (t.N < 0 || !(t.Squares >= 0) || !(t.Unit >= 0)) {
		return fmt.Errorf("ppo: %d returns of sum of squares %v in units of %v cannot be", t.N, t.Squares, t.Unit)
	}
	if s.Warm < 0 || s.Warm > a.cfg.CriticWarmup || s.Anchored && a.anchor == nil {
		return fmt.Errorf("ppo: %d updates of its critic's warm-up and an anchor %v cannot be (critic_warmup %d, anchor %v)",
			s.Warm, s.Anchored, a.cfg.CriticWarmup, a.cfg.Anchor)
	}
	if v := s.Average; v != nil && (a.cfg.Average == 0 || !v.sane()) {
		return fmt.Errorf("ppo: an average reward of %v cannot be (average %v)", v.PerSecond, a.cfg.Average)
	}
	if err := a.orderPCG.UnmarshalBinary(s.Order); err != nil { // an error changes nothing
		return fmt.Errorf("ppo: the shuffling stream: %w", err)
	}
	if s.Popart != nil {
		*a.popart = *s.Popart
	}
	if s.Groups != nil {
		a.groups.groupsState = *s.Groups
	}
	a.taught = taught{}
	if s.Taught != nil {
		a.taught = *s.Taught
	}
	a.warm = s.Warm
	a.average = average{}
	if s.Average != nil {
		a.average = *s.Average
	}
	if a.anchor != nil {
		a.anchor.set = s.Anchored
	}
	a.updates, a.progress, a.begun = s.Updates, s.Progress, s.Begun
	*a.scale = s.Scale
	if s.Obs != nil {
		a.act.scale.Restore(s.Obs)
	}
	copy(a.last, s.Last)
	a.acted = false
	return nil
}

// weightsPart is everything a policy needs: the network's parameters and, beside them, the scale of observations.
type weightsPart struct {
	params *nets.Params
	scale  *replay.ObsScale // nil = none
}

func (w *weightsPart) views() []nets.View {
	if w.scale == nil {
		return w.params.Views
	}
	mean, factor := w.scale.Numbers()
	return append(slices.Clone(w.params.Views),
		nets.View{Name: "observation.mean", Shape: []int{len(mean)}, Data: mean},
		nets.View{Name: "observation.factor", Shape: []int{len(factor)}, Data: factor})
}

func (w *weightsPart) WriteTo(dst io.Writer) (int64, error) {
	return nets.WriteTensors(dst, nil, w.views())
}

func (w *weightsPart) ReadFrom(src io.Reader) (int64, error) {
	_, n, err := nets.ReadTensors(src, w.views())
	return n, err
}

// newObsScale returns the scale of observations that cfg asks for, nil if none.
func newObsScale(cfg Config, s env.Spec) *replay.ObsScale {
	if !cfg.NormObs {
		return nil
	}
	return replay.NewObsScale(s.ObsLen(), cfg.ClipObs)
}

// Network returns a fingerprint of the names and shapes of the weights, for checkpoint.Meta.
func (a *Agent) Network() string {
	return nets.Fingerprint((&weightsPart{a.net.Params(), a.act.scale}).views())
}
