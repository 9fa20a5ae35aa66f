package report

import (
	"fmt"
	"strings"
	"testing"

	"clustergym/simulator/sim"
)

func TestHeadersNameTheRung(t *testing.T) {
	if got := EstimatesHeader(sim.Estimates{}); got != "" {
		t.Errorf("of unset estimates: %q", got)
	}
	for estimates, want := range map[string]string{
		"history": "estimates: history (causal)\n", "trace": "estimates: trace (submit-time)\n", "none": "estimates: none\n",
		"exact":   "estimates: exact\n",
		"noisy:2": "estimates: noisy:2\n", "gbdt:m.bin": "estimates: gbdt:m.bin (causal)\n",
	} {
		if got := EstimatesHeader(sim.MustEstimates(estimates)); got != want {
			t.Errorf("%q: got %q, want %q", estimates, got, want)
		}
	}
}

func TestRowsThatKnowSomethingElse(t *testing.T) {
	rows := []Knowledge{
		{Name: "ppo@9", Trained: sim.MustEstimates("exact")}, {Name: "ddqn@9", Trained: sim.MustEstimates("history")},
		{Name: "fifo+skip", Nothing: true}, {Name: "sjf+skip"},
		{Name: "exact", Knows: true}, {Name: "las+skip", Nothing: true}, {Name: "smallest+skip", Nothing: true},
	}
	var shown []string
	for i := range rows {
		shown = append(shown, rows[i].Shown(sim.MustEstimates("history")))
	}
	if got, want := strings.Join(shown, ", "), "ppo@9 (trained on exact), ddqn@9, fifo+skip, sjf+skip, exact (exact), "+
		"las+skip, smallest+skip"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := Below(sim.MustEstimates("history"), rows), "fifo+skip, las+skip and smallest+skip ask nothing of "+
		"run times.\n"+
		"exact knows the workload beforehand.\nppo@9 was trained on estimates: exact.\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := rows[4].Shown(sim.MustEstimates("exact")); got != "exact" {
		t.Errorf("on the exact rung it is shown as %s", got)
	}
	if got, want := Below(sim.MustEstimates("none"), rows[:2]), "ppo@9 was trained on estimates: exact.\nddqn@9 was "+
		"trained on estimates: history (causal).\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Below(sim.MustEstimates("history"), rows[3:4]); got != "" {
		t.Errorf("sjf alone: %q", got)
	}
}

func TestLongSentencesAreWrapped(t *testing.T) {
	var rows []Knowledge
	for i := range 40 {
		rows = append(rows, Knowledge{Name: fmt.Sprintf("policy-%d+skip", i), Nothing: true})
	}
	lines := strings.Split(strings.TrimSuffix(Below(sim.MustEstimates("exact"), rows), "\n"), "\n")
	for _, l := range lines {
		if len(l) > 110 || strings.TrimSpace(l) != l {
			t.Errorf("line %q", l)
		}
	}
	if len(lines) < 5 {
		t.Errorf("%d lines", len(lines))
	}
}
