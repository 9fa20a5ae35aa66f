package sweep

import (
	"strings"
	"testing"

	"clustergym/lab/config"
)

// The table of a sweep names the rung of its trials, and says that trials of several do not compare.
func TestSweepNamesTheRung(t *testing.T) {
	base := config.For("JobSelect-v1")
	if err := base.Set("env.estimates=history"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ space, header, estimates, rung string }{
		{"space: {ppo.epochs: [2, 4]}", "estimates: history (causal)\n\n", "history", "causal"},
		{"space: {env.estimates: [none, exact]}",
			"estimates: see env.estimates; only trials with the same can be compared\n\n", "", ""},
	} {
		cfg := sweepOf(t, c.space+"\ntrials: 6\n")
		s := &sweep{cfg: cfg, rungs: []int64{100}, lines: map[[2]int]TrialLine{}}
		var err error
		if s.trials, err = cfg.trials(base); err != nil {
			t.Fatal(err)
		}
		score := 2.5
		for i := range s.trials {
			s.lines[[2]int{i, 0}] = TrialLine{Trial: i, Set: s.trials[i].set, Metric: "validation/jct_s geometric mean",
				Score: &score}
		}
		r, err := s.report()
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := r.WriteTable(&b); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(b.String(), c.header+"trial ") || r.Estimates.String() != c.estimates || r.Rung != c.rung {
			t.Errorf("%s: estimates %q, rung %q, table\n%s", c.space, r.Estimates, r.Rung, b.String())
		}
	}
}
