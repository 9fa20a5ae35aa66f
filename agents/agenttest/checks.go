package agenttest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"clustergym/agents"
	"clustergym/env"
)

// NeedsLegalActions checks that each of the policies returns an error that names the row for a step without any legal
// action, unless the row has ended and nothing is decided. The loop must have two rows of "ProbeAction-v1".
func (l *Loop[A]) NeedsLegalActions(t testing.TB, policies map[string]agents.Policy) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(policies)) {
		p := policies[name]
		copy(l.Batch.Mask, []bool{true, true, false, false})
		l.Batch.Kind[1] = env.Mid
		if err := p.Act(context.Background(), l.Batch, l.Actions, l.Streams); err == nil ||
			!strings.Contains(err.Error(), "row 1") {
			t.Errorf("%s: got %v, want an error that names row 1", name, err)
		}
		l.Batch.Kind[1] = env.Terminated
		if err := p.Act(context.Background(), l.Batch, l.Actions, l.Streams); err != nil {
			t.Errorf("%s: an ended row: %v", name, err)
		}
	}
}

// AllocatesNothing checks that neither acting, greedily or not, nor observing allocates, in 300 steps. before is
// called ahead of each step; it makes room for the step where otherwise an update would.
func (l *Loop[A]) AllocatesNothing(t testing.TB, before func(A)) {
	t.Helper()
	p := l.Agent.Greedy()
	run := func() {
		before(l.Agent)
		if err := p.Act(context.Background(), l.Batch, l.Actions, nil); err != nil {
			l.t.Fatal(err)
		}
		l.Play()
	}
	run()
	if got := testing.AllocsPerRun(300, run); got != 0 {
		t.Errorf("%v allocations a step, want 0", got)
	}
}

// RefusesSpecs checks that build, which makes an agent or a policy, refuses what an agent of one discrete action over
// observations cannot do: several actions at once, continuous actions, and no observation. The errors must say so.
func RefusesSpecs(t testing.TB, what string, build func(env.Spec) error) {
	t.Helper()
	several, box, blind := Plain(), Plain(), Plain()
	several.Action = env.ActionSpec{Sizes: []int{3, 4}}
	box.Action = env.ActionSpec{Low: []float32{0}, High: []float32{1}}
	blind.Obs = nil
	for _, c := range []struct {
		want string
		spec env.Spec
	}{{"2 discrete factors", several}, {"1 continuous", box}, {"no observation", blind}} {
		if err := build(c.spec); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", what, err, c.want)
		}
	}
}

// Plain returns a specification that every agent accepts: two numbers to see, three actions.
func Plain() env.Spec {
	return env.Spec{ID: "X-v1", Obs: []env.Field{{Name: "x", Shape: []int{2}}}, Action: env.ActionSpec{Sizes: []int{3}}}
}

// BenchmarkSteps measures steps with their share of learning.
func (l *Loop[A]) BenchmarkSteps(b *testing.B) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		l.Step()
	}
	b.ReportMetric(float64(l.Steps)/b.Elapsed().Seconds(), "steps/s")
}

// BenchmarkAct measures one choice of actions for all rows.
func (l *Loop[A]) BenchmarkAct(b *testing.B) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		if err := l.Agent.Act(context.Background(), l.Batch, l.Actions, l.Streams); err != nil {
			b.Fatal(err)
		}
	}
}
