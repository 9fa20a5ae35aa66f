package arena

import (
	"context"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/env/sched"
	"clustergym/experiments/models"
	"clustergym/experiments/report"
)

// modelContestant returns a contestant that plays an ONNX model as it says.
func modelContestant(ctx context.Context, m *models.Model, probe sched.Arena) (contestant, error) {
	if _, err := m.PolicyContext(ctx, probe.Spec()); err != nil {
		return contestant{}, err
	}
	return contestant{name: m.Name, kind: report.KindModel, player: func(e sched.Arena) (player, error) {
		p, err := m.Policy(e.Spec())
		if err != nil {
			return nil, err
		}
		return policyPlayer(e, p), nil
	}}, nil
}

// modelEntrant is modelContestant for episodes.
func modelEntrant(ctx context.Context, m *models.Model, s env.Spec) (entrant, error) {
	if _, err := m.PolicyContext(ctx, s); err != nil {
		return entrant{}, err
	}
	return entrant{name: m.Name, kind: report.KindModel, policy: func(e env.Env) (agents.Policy, error) { return m.Policy(e.Spec()) }}, nil
}
