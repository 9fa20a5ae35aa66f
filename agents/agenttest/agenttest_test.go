package agenttest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/env/vec"
	"clustergym/internal/raced"
)

// recorder is a test whose failures are kept instead of counted.
type recorder struct {
	testing.TB
	faults []string
}

func (r *recorder) Error(args ...any) { r.faults = append(r.faults, fmt.Sprint(args...)) }
func (r *recorder) Errorf(f string, args ...any) {
	r.faults = append(r.faults, fmt.Sprintf(f, args...))
}
func (r *recorder) Fatal(args ...any)            { r.Error(args...); runtime.Goexit() }
func (r *recorder) Fatalf(f string, args ...any) { r.Errorf(f, args...); runtime.Goexit() }

// faults are what check finds.
func faults(t *testing.T, check func(testing.TB)) []string {
	t.Helper()
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		check(r)
	}()
	<-done
	return r.faults
}

// suite is the contract of a pull agent with that fault.
func suite(t *testing.T, fault string) Suite[*pull] {
	t.Helper()
	page := filepath.Join(t.TempDir(), "metrics.md")
	text := "# Metrics\n\n## `agents/pull`\n\n| name | unit |\n|---|---|\n| `sum` | – |\n| `n_updates` | – |\n\n## `agents/push`\n\n| `loss` | – |\n"
	if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	policy := func(spec env.Spec, r io.Reader) (agents.Policy, error) {
		a, err := builder("")(spec, 1, 1, 99)
		if err == nil && fault != "weights are not read" {
			_, err = part{a, weights}.ReadFrom(r)
		}
		return a, err
	}
	s := Suite[*pull]{
		Name: "pull", New: builder(fault), Policy: policy, page: page,
		Other: func(spec env.Spec, r io.Reader) (agents.Policy, error) {
			if fault == "weights of any shape" {
				return policy(spec, r)
			}
			spec.Action.Sizes = []int{spec.Action.Sizes[0] + 1}
			return policy(spec, r)
		},
		Worth: func(a *pull) string {
			if a.sum == 0 && a.n[1] == 0 || fault == "stopped at nothing" {
				return "nothing to save"
			}
			return ""
		},
	}
	if fault == "no page" {
		s.Name = "pulley"
	}
	return s
}

// The suite finds no fault in an agent that keeps the contract, and finds each fault by the claims that concern it.
func TestEveryClaimFindsItsBreach(t *testing.T) {
	Run(t, suite(t, ""))
	if raced.On {
		t.Skip("the broken agents below use one goroutine, in which no race can be; make unit runs them")
	}
	for _, c := range []struct {
		fault string
		found []string
	}{
		{"", nil},
		{"workers count", []string{"workers change nothing", "resumed equals straight through"}},
		{"one seed for all", []string{"seeds differ"}},
		{"a sum is not saved", []string{"resumed equals straight through"}},
		{"the stream starts anew", []string{"resumed equals straight through"}},
		{"stopped at nothing", []string{"resumed equals straight through"}},
		{"greedy play of the past", []string{"a policy of the weights plays the same"}},
		{"weights are not read", []string{"a policy of the weights plays the same"}},
		{"weights of any shape", []string{"a policy of the weights plays the same"}},
		{"an update without a metric", []string{"metrics are documented"}},
		{"no page", []string{"metrics are documented"}},
		{"never learns", []string{"workers change nothing", "resumed equals straight through", "metrics are documented"}},
	} {
		var found []string
		for _, claim := range claims[*pull]() {
			if len(faults(t, func(tb testing.TB) { claim.check(suite(t, c.fault), tb) })) > 0 {
				found = append(found, claim.name)
			}
		}
		if !slices.Equal(found, c.found) {
			t.Errorf("%q: found by %q, want %q", c.fault, found, c.found)
		}
	}
}

func TestEveryCheckFindsItsBreach(t *testing.T) {
	set := Setting{Env: "ProbeAction-v1", Rows: 2, Workers: 1, Autoreset: vec.SameStep, Seed: 1, Total: 100}
	state := func(tb testing.TB, fault string) {
		RefusesState(tb, NewLoop(tb, builder(fault), set).Train().Agent, "agent.bin",
			map[string]string{"empty": "", "short": "abc"})
	}
	for _, c := range []struct {
		what  string
		check func(testing.TB)
		found string // "" = nothing
	}{
		{"state", func(tb testing.TB) { state(tb, "") }, ""},
		{"state that is taken", func(tb testing.TB) { state(tb, "broken state is taken") }, "empty: no error"},
		{"state that is spoilt", func(tb testing.TB) { state(tb, "broken state spoils") }, "agent.bin differs"},
		{"no such part", func(tb testing.TB) {
			RefusesState(tb, NewLoop(tb, builder(""), set).Agent, "agent.json", nil)
		}, "no part agent.json"},
		{"legal actions", func(tb testing.TB) {
			l := NewLoop(tb, builder(""), set)
			l.NeedsLegalActions(tb, map[string]agents.Policy{"agent": l.Agent})
		}, ""},
		{"illegal actions", func(tb testing.TB) {
			l := NewLoop(tb, builder("acts without legal actions"), set)
			l.NeedsLegalActions(tb, map[string]agents.Policy{"agent": l.Agent})
		}, "want an error that names row 1"},
		{"allocations", func(tb testing.TB) { NewLoop(tb, builder(""), set).AllocatesNothing(tb, func(*pull) {}) }, ""},
		{"garbage", func(tb testing.TB) {
			NewLoop(tb, builder("acting allocates"), set).AllocatesNothing(tb, func(*pull) {})
		}, "allocations a step"},
		{"specs", func(tb testing.TB) {
			RefusesSpecs(tb, "agent", func(s env.Spec) error { _, err := builder("")(s, 1, 1, 1); return err })
		}, ""},
		{"any spec", func(tb testing.TB) { RefusesSpecs(tb, "agent", func(env.Spec) error { return nil }) },
			"2 discrete factors"},
		{"a metric that is not there", func(tb testing.TB) { NewLoop(tb, builder(""), set).Train().Stat("loss") },
			`no statistic "loss"`},
		{"an unknown environment", func(tb testing.TB) { Envs(tb, "Nowhere-v1", 1, vec.SameStep, 1) }, "Nowhere-v1"},
	} {
		got := strings.Join(faults(t, c.check), "; ")
		if (got == "") != (c.found == "") || !strings.Contains(got, c.found) {
			t.Errorf("%s: found %q, want %q", c.what, got, c.found)
		}
	}
}

func TestStatesAreComparedByteForByte(t *testing.T) {
	want := map[string][]byte{"a": {1, 2}, "b": {3}}
	for _, c := range []struct {
		what  string
		got   map[string][]byte
		found int
	}{
		{"the same", map[string][]byte{"b": {3}, "a": {1, 2}}, 0},
		{"another byte", map[string][]byte{"a": {1, 3}, "b": {3}}, 1},
		{"a part less", map[string][]byte{"a": {1, 2}}, 2},
		{"a part more", map[string][]byte{"a": {1, 2}, "b": {3}, "c": {}}, 1},
	} {
		if got := faults(t, func(tb testing.TB) { SameState(tb, c.what, c.got, want) }); len(got) != c.found {
			t.Errorf("%s: %q, want %d faults", c.what, got, c.found)
		}
	}
	if got := faults(t, func(tb testing.TB) { SameState(tb, "nothing", nil, nil) }); len(got) != 1 {
		t.Errorf("nothing to compare: %q, want a fault", got)
	}
}

// The loop counts, scales and reports as documented.
func TestLoop(t *testing.T) {
	set := Setting{Env: "ProbeConstant-v1", Rows: 3, Workers: 1, Autoreset: vec.SameStep, Seed: 1, Total: 30}
	l := NewLoop(t, builder(""), set)
	l.Reward = 4
	if l.Train(); l.Steps != 30 || l.Agent.n != [2]int64{10, 2} {
		t.Errorf("%d steps, %v, want 30, 10 of the agent and 2 updates", l.Steps, l.Agent.n)
	}
	if got := l.Stat("sum"); got != 4*15 { // a reward of 1 in each of 15 steps
		t.Errorf("the agent saw rewards of %v, want 60", got)
	}
	if l.Update(); l.Agent.n != [2]int64{15, 3} {
		t.Errorf("after another update %v, want 15 and 3", l.Agent.n)
	}
	again := NewLoop(t, builder(""), set)
	again.Reward = 4
	again.Train().Update()
	for name, data := range State(t, again.Agent.Parts()) {
		if !bytes.Equal(data, State(t, l.Agent.Parts())[name]) {
			t.Errorf("the same setting gave other bytes of %s", name)
		}
	}
	if got := Evaluate(t, "ProbeConstant-v1", l.Agent, 25); got != 1 {
		t.Errorf("the mean return is %v, want 1", got)
	}
}
