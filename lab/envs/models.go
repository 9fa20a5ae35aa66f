package envs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"

	"clustergym/agents"
	"clustergym/agents/onnx"
	"clustergym/env"
	"clustergym/internal/fault"
	"clustergym/internal/ordinary"
	"clustergym/lab/workload"
	format "clustergym/nets/onnx"
)

// Model is an ONNX model that can play. It is immutable and can be shared.
type Model struct {
	Name, File string
	// Greedy is the rule by which its policies choose where the model gives logits or probabilities; "" = agents.ByShare.
	Greedy agents.Rule
	model  *format.Model
}

// ReadModel reads the ONNX file of a policy, of whatever program, to be called name; "" = as the file without its
// extension. Faults are *fault.Mistakes.
func ReadModel(file, name string) (Model, error) {
	path, err := workload.Located(file)
	if err != nil {
		return Model{}, err
	}
	m, err := format.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Model{}, fault.Mistakef("model %s: there is no such file", file)
	} else if err != nil {
		return Model{}, fault.Mistakef("model %s: %w", file, ordinary.Reason(err))
	}
	if name == "" {
		name = strings.TrimSuffix(filepath.Base(file), ".onnx")
	}
	return Model{Name: name, File: file, model: m}, nil
}

// Run returns the settings of the run that the model comes from, YAML with the keys of a configuration; "" if it has
// none.
func (m *Model) Run() string { return m.model.Meta(onnx.KeyRun) }

// Policy returns a policy of the model for environments of specification s; a model that does not fit is a
// *fault.Mistake. Policies share the model. Each has memory of its own, for weights in the order of the kernels and for
// intermediate results.
func (m *Model) Policy(s env.Spec) (*ModelPolicy, error) {
	return m.PolicyContext(context.Background(), s)
}

// PolicyContext is Policy with a context that ends what the model computes beforehand.
func (m *Model) PolicyContext(ctx context.Context, s env.Spec) (*ModelPolicy, error) {
	p, err := onnx.NewContext(ctx, m.model, s, m.Greedy)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fault.Mistakef("model %s: %w", m.File, err)
	}
	return &ModelPolicy{p, m.File}, nil
}

// ModelPolicy is an imported policy whose errors name its file.
type ModelPolicy struct {
	*onnx.Policy
	file string
}

var _ agents.Policy = (*ModelPolicy)(nil)

// Act implements agents.Policy.
func (p *ModelPolicy) Act(ctx context.Context, b *env.Batch, dst *env.Actions, src []*rand.Rand) error {
	if err := p.Policy.Act(ctx, b, dst, src); err != nil {
		return fmt.Errorf("model %s: %w", p.file, err)
	}
	return nil
}
