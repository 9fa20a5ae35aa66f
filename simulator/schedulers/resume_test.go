package schedulers_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"clustergym/internal/raced"
	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
)

// newborn resets its policy before every decision, and shows it no events.
type newborn struct{ schedulers.Policy }

func (n newborn) Decide(v *sim.View, p *sim.Point, d *sim.Decision) error {
	n.Policy.Reset(v)
	return n.Policy.Decide(v, &sim.Point{Now: p.Now}, d)
}

// ofDraws returns how many of n runs there are at least with -short, for which rapid draws a fifth of the worlds.
func ofDraws(n int) int {
	if testing.Short() {
		return n / 5
	}
	return n
}

// A policy that remembers nothing decides alike when it is reset before every decision.
func TestWhatRemembersNothingCanBeResetAtAnyTime(t *testing.T) {
	played := 0
	forAllOrders(t, func(t *rapid.T, order string) {
		x := drawWorld(t, wants{order: order})
		owned := slices.ContainsFunc(x.spec.VCs, func(vc cluster.VCSpec) bool { return vc.Nodes > 0 })
		if x.policy.Forgets() != "" || owned && slices.Contains([]string{"wfp3", "unicep", "hold"}, order) {
			return // the clock moves these ranks, and a virtual cluster that owns nodes looks at it at its own events alone
		}
		played++
		want := x.played(t, history{})
		s, h := x.machine(t)
		if got := x.playOn(t, s, newborn{h}, new(history)); got != want {
			t.Fatalf("reset before every decision:\n%s\n%s", diff(got, want), x)
		}
	})
	if !raced.On && played < ofDraws(500) {
		t.Errorf("%d runs of policies that remember nothing", played)
	}
}

func TestBasesStopNoJobs(t *testing.T) {
	bases := schedulers.Bases()
	for _, name := range []string{"fifo", "sjf", "f1", "smallest", "area", "wfp3"} {
		if !slices.Contains(bases, name) {
			t.Errorf("%s is no base: %v", name, bases)
		}
	}
	for _, name := range bases {
		if schedulers.Preemptive(name) {
			t.Errorf("%s stops running jobs", name)
		}
	}
	for _, name := range []string{"las", "gandiva", "lpf", "exact", "dally"} {
		if slices.Contains(bases, name) {
			t.Errorf("%s remembers something", name)
		}
	}
	c := schedulers.DefaultConfig()
	c.Admission = "commit"
	if c.Forgets() == "" {
		t.Error("commit holds a job")
	}
}
