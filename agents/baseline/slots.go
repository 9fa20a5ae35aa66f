package baseline

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/env/sched"
)

// rule scores a visible job that fits. The job with the lowest score starts; ties go to the lower slot. A rule never
// waits while a visible job fits.
type rule struct {
	name  string
	score func(s *sched.State, slot int) float64
}

var rules = []rule{
	{"fifo", func(s *sched.State, i int) float64 { return float64(s.View.Pos(s.Slots[i])) }},
	{"sjf", func(s *sched.State, i int) float64 { return float64(s.Known[s.Slots[i]].Estimate) }},
	{"smallest", func(s *sched.State, i int) float64 { return s.Known[s.Slots[i]].GPUs }},
	{"area", func(s *sched.State, i int) float64 { return s.Known[s.Slots[i]].Area }},
}

// Rules returns the names that NewSlots knows: orders of env/heuristic, random (over all legal actions, including
// Wait) and random-start (over the jobs that fit).
func Rules() []string {
	names := []string{"random", "random-start"}
	for _, r := range rules {
		names = append(names, r.name)
	}
	return names
}

// Slots plays one rule in the slots of a scheduling environment in which action i starts slot i.
type Slots struct {
	env  *sched.Env
	name string
	rule rule
}

var _ agents.Policy = (*Slots)(nil)

// NewSlots returns the rule called name, for e alone: batches must have one row, e's current time step.
func NewSlots(name string, e *sched.Env) (*Slots, error) {
	if !slices.Contains(Rules(), name) {
		return nil, fmt.Errorf("rule %q@slots is unknown, want one of %s", name, strings.Join(Rules(), ", "))
	}
	p := &Slots{env: e, name: name}
	if i := slices.IndexFunc(rules, func(r rule) bool { return r.name == name }); i >= 0 {
		p.rule = rules[i]
	}
	return p, nil
}

// Act implements agents.Policy.
func (p *Slots) Act(_ context.Context, b *env.Batch, dst *env.Actions, src []*rand.Rand) error {
	if b.N != 1 {
		return fmt.Errorf("baseline: a batch of %d rows for a rule of one environment", b.N)
	}
	s := p.env.State()
	wait := len(b.Mask) - 1
	if p.rule.score == nil {
		mask := b.Mask
		if p.name == "random-start" {
			mask = mask[:wait]
		}
		dst.Disc[0] = int32(uniform(mask, src[0]))
		return nil
	}
	best, score := wait, 0.0
	for i := range s.Slots {
		if !b.Mask[i] {
			continue
		}
		if v := p.rule.score(s, i); best == wait || v < score {
			best, score = i, v
		}
	}
	dst.Disc[0] = int32(best)
	return nil
}
