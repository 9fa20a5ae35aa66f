package arena

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"

	"clustergym/agents"
	"clustergym/agents/imported"
	"clustergym/env"
	"clustergym/env/sched"
	"clustergym/experiments/report"
	"clustergym/experiments/workload"
	"clustergym/nets/onnx"
)

// Model is an ONNX model that takes part in a comparison.
type Model struct {
	Name, File string
	model      *onnx.Model
}

// ReadModel reads the model in a file, to be called name; "" = as the file without its extension. Faults are *InputErrors.
func ReadModel(file, name string) (Model, error) {
	path, err := workload.Located(file)
	if err != nil {
		return Model{}, err
	}
	m, err := onnx.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Model{}, workload.Mistake("model %s: there is no such file", file)
	} else if err != nil {
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			err = p.Err
		}
		return Model{}, workload.Mistake("model %s: %w", file, err)
	}
	if name == "" {
		name = strings.TrimSuffix(filepath.Base(file), ".onnx")
	}
	return Model{name, file, m}, nil
}

// Env returns the identifier of the environment that the model names, "" if it names none.
func (m *Model) Env() string { return m.model.Meta(imported.KeyEnv) }

// Policy returns a policy of the model for environments of specification s. The models of one file share its numbers.
func (m *Model) Policy(s env.Spec) (agents.Policy, error) {
	p, err := imported.New(m.model, s)
	if err != nil {
		return nil, workload.Mistake("model %s: %w", m.File, err)
	}
	return p, nil
}

func (m *Model) contestant(probe sched.Arena) (contestant, error) {
	if _, err := m.Policy(probe.Spec()); err != nil {
		return contestant{}, err
	}
	return contestant{name: m.Name, kind: report.KindModel, player: func(e sched.Arena) (player, error) {
		p, err := m.Policy(e.Spec())
		if err != nil {
			return nil, err
		}
		return policyPlayer(e, m.named(p)), nil
	}}, nil
}

func (m *Model) entrant(s env.Spec) (entrant, error) {
	if _, err := m.Policy(s); err != nil {
		return entrant{}, err
	}
	return entrant{name: m.Name, kind: report.KindModel, policy: func(e env.Env) (agents.Policy, error) {
		p, err := m.Policy(e.Spec())
		if err != nil {
			return nil, err
		}
		return m.named(p), nil
	}}, nil
}

// named adds the model's file to errors of its policy.
func (m *Model) named(p agents.Policy) agents.Policy { return &namedPolicy{p, m.File} }

type namedPolicy struct {
	agents.Policy
	file string
}

// Act implements agents.Policy.
func (p *namedPolicy) Act(ctx context.Context, b *env.Batch, dst *env.Actions, src []*rand.Rand) error {
	if err := p.Policy.Act(ctx, b, dst, src); err != nil {
		return fmt.Errorf("model %s: %w", p.file, err)
	}
	return nil
}
