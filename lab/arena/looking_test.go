package arena

import (
	"encoding/json"
	"strings"
	"testing"

	"clustergym/lab/config"
	"clustergym/lab/report"
)

// Policies that look ahead play every window with the same results for any number of workers, on the rung
// of the estimates; on the rung without run times they are absent.
func TestPoliciesThatLookAheadAreCompared(t *testing.T) {
	cfg := config.For("JobSelect-v1")
	for _, set := range []string{
		"trace.synth.jobs=3600", "env.window=64", "env.warm=64", "env.estimates=exact", "eval.windows=2", "env.load=4",
		"eval.whole=false", "eval.protocol=windows", "eval.rollout.budget=48", "eval.rollout.ahead=12",
		"eval.policies=[fifo+skip, rollout:fifo+skip, rollout:sjf@slots]",
	} {
		if err := cfg.Set(set); err != nil {
			t.Fatal(err)
		}
	}
	var docs []string
	for _, workers := range []int{1, 3} {
		r, err := Compare(t.Context(), cfg, EvalOptions{Workers: workers})
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, string(b))
		all := r.(*report.Report)
		if len(all.Policies) != 3 || all.Rung != "exact" {
			t.Fatalf("%d policies on rung %s", len(all.Policies), all.Rung)
		}
		for _, p := range all.Policies {
			if looks := strings.HasPrefix(p.Name, "rollout:"); looks == p.Nothing || p.Metrics.Unfinished > 0 {
				t.Errorf("%s asks nothing: %v, %d jobs unfinished", p.Name, p.Nothing, p.Metrics.Unfinished)
			}
		}
		if a, b := all.Policies[0].Metrics, all.Policies[1].Metrics; a.JCT.Mean == b.JCT.Mean && a.Wait.Mean == b.Wait.Mean {
			t.Errorf("looking ahead changes nothing: %v s", a.JCT.Mean)
		}
	}
	if docs[0] != docs[1] {
		t.Error("three workers give other results than one")
	}
	rungs, err := ParseRungs([]string{"none", "history"})
	if err != nil {
		t.Fatal(err)
	}
	on, err := rungs.Base(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c, err := CompareRungs(t.Context(), on, rungs, EvalOptions{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	l := c.(*report.Ladder)
	if n, m := len(l.Rungs[0].Policies), len(l.Rungs[1].Policies); n != 1 || m != 3 {
		t.Errorf("%d policies without run times and %d with, want 1 and 3", n, m)
	}
}
