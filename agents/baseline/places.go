package baseline

import (
	"context"
	"fmt"
	"math/rand/v2"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/env/dagplace"
	"clustergym/env/workerplace"
)

// Own plays a rule that an environment's own package defines, in one environment of it. Batches must have one row, that
// environment's current time step.
type Own struct {
	choose func(src *rand.Rand) int32
}

var _ agents.Policy = (*Own)(nil)

// NewDAGPlace returns the rule of dagplace.Rules called name, for e alone.
func NewDAGPlace(name string, e *dagplace.Env) (*Own, error) {
	r, err := dagplace.RuleOf(name)
	if err != nil {
		return nil, err
	}
	return &Own{func(src *rand.Rand) int32 { return r.Choose(e, src) }}, nil
}

// NewWorkerPlace returns the rule of workerplace.Rules called name, for e alone.
func NewWorkerPlace(name string, e *workerplace.Env) (*Own, error) {
	r, err := workerplace.RuleOf(name)
	if err != nil {
		return nil, err
	}
	return &Own{func(src *rand.Rand) int32 { return r.Choose(e, src) }}, nil
}

// Act implements agents.Policy.
func (p *Own) Act(_ context.Context, b *env.Batch, dst *env.Actions, src []*rand.Rand) error {
	if b.N != 1 {
		return fmt.Errorf("baseline: a batch of %d rows for a rule of one environment", b.N)
	}
	dst.Disc[0] = p.choose(src[0])
	return nil
}
