package steer

import (
	"context"
	"math/rand/v2"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/lab/config"
	"clustergym/lab/decisionlog"
	"clustergym/lab/decisionlog/record"
	"clustergym/simulator/policyname"
	"clustergym/simulator/sim"
)

// weigher says how a policy that acts through an environment weighs its options.
type weigher struct {
	scorer agents.Scorer // nil = it gives no scores
	kind   agents.ScoreKind
	scores []float32
	rival  agents.Policy // nil = there is none
	name   string        // of the rival
	other  *env.Actions
	lines  []DecisionLine
}

// mostDecisions is how many decisions of one look are told.
const mostDecisions = 64

// rivalRule is the rule whose choice stands beside the policy's.
var rivalRule = policyname.Slots("sjf")

// acting returns p as a policy that acts through the environment, and tells how it decides: next to a rule that acts in
// its place, where there is one.
func (p *Policy) acting(cfg *config.Config, a agents.Policy) (*Policy, error) {
	p.act(a)
	s := p.Env.Spec()
	if x, ok := a.(agents.Scorer); ok && len(s.Action.Sizes) == 1 && len(s.Action.Low) == 0 {
		p.weighs.scorer, p.weighs.scores = x, make([]float32, s.MaskLen())
	}
	x, err := cfg.Rival(rivalRule)
	if err != nil || x.Rule == nil || p.Name == rivalRule {
		return p, nil //nolint:nilerr // the environment has no such rule
	}
	if p.weighs.rival, err = x.Rule.Policy(p.Env); err != nil {
		return nil, err
	}
	p.weighs.name, p.weighs.other = x.Name, env.NewActions(s, 1)
	return p, nil
}

// Decisions returns how the policy has weighed its options in the last Starts, what scores are, and whose choices stand
// beside its own; nil if it has not been asked to tell, or does not act through an environment.
func (p *Policy) Decisions() (lines []DecisionLine, scores, rival string) {
	return p.weighs.lines, string(p.weighs.kind), p.weighs.name
}

// decided notes a decision, before it is imagined.
func (p *Policy) decided(ctx context.Context, b *env.Batch, a *env.Actions, src []*rand.Rand) (err error) {
	w := &p.weighs
	if !p.tells || len(p.Env.Spec().Action.Sizes) != 1 || len(w.lines) >= mostDecisions {
		return nil
	}
	if w.scorer != nil {
		if w.kind, err = w.scorer.Scores(ctx, b, w.scores); err != nil {
			return err
		}
	}
	rival := -1
	if w.rival != nil {
		if err := w.rival.Act(ctx, b, w.other, src); err != nil {
			return err
		}
		rival = int(w.other.Disc[0])
	}
	d := DecisionLine{Chosen: -1}
	record.Options(p.Env, b.Mask, func(action int, _ sim.Job, o decisionlog.Option) {
		if o.Job == "" && o.Illegal {
			return
		}
		if action == int(a.Disc[0]) {
			d.Chosen = len(d.Options)
		}
		if action == rival {
			at := len(d.Options)
			d.Rival = &at
		}
		if w.scorer != nil && !o.Illegal {
			score := float64(w.scores[action])
			o.Score = &score
		}
		d.Options = append(d.Options, o)
	})
	if d.Chosen >= 0 {
		w.lines = append(w.lines, d)
	}
	return nil
}
