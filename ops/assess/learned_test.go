package assess

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/ops/incumbent"
)

// Weights are fitted to the first half: the second half can be anything without a change of them, and on the first
// half they cost no more than the usual ones. What is printed of them is of the second half alone, for any number of
// workers.
func TestWeightsAreFittedToTheFirstHalf(t *testing.T) {
	was := fitting
	defer func() { fitting = was }()
	fitting.Generations, fitting.Population = 2, 6
	on := spec(t, "4x8")
	jobs := history(t, on, 32, 700, .85, "fifo+strict+easy", 7)
	told := func(workers int, all Options) *Assessment {
		t.Helper()
		all.File, all.Spec, all.Cluster, all.Workers, all.Tune = "f", on, "4x8", workers, true
		a, err := Assess(t.Context(), all)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	a := told(1, Options{Jobs: jobs})
	l := a.Learned
	if l.Fit.Best > l.Fit.Start || l.Fit.Plays != 13 || l.Hold == nil || l.Hold.Validate() != nil {
		t.Errorf("%+v, weights %+v", l.Fit, l.Hold)
	}
	var roles []string
	for _, p := range l.Policies {
		roles = append(roles, p.Role)
	}
	if !slices.Equal(roles, []string{"recorded", "incumbent", "rival", "default", "tuned"}) {
		t.Error(roles)
	}
	past, _, err := incumbent.New(on, jobs, incumbent.Reading{Placement: "consolidate-best"})
	if err != nil {
		t.Fatal(err)
	}
	h := past.Halves()
	sum := 0.
	for _, i := range h.Second {
		sum += jobs[i].Waited.Seconds()
	}
	if mean := sum / float64(len(h.Second)); l.After != len(h.Second) || !near(l.Policies[0].Mean, mean, 1e-9) {
		t.Errorf("%d jobs waited %v s, want %d and %v", l.After, l.Policies[0].Mean, len(h.Second), mean)
	}
	one, _ := json.Marshal(l)
	if two, _ := json.Marshal(told(3, Options{Jobs: jobs}).Learned); string(one) != string(two) {
		t.Errorf("with three workers\n%s\nwith one\n%s", two, one)
	}
	other := slices.Clone(jobs)
	for i := range other {
		if end := jobs[i].Submit + jobs[i].Waited + jobs[i].Work; jobs[i].Submit >= h.Half && end < past.End {
			other[i].Work = max(time.Minute, other[i].Work/2)
		}
	}
	if b := told(2, Options{Jobs: other}).Learned; *b.Hold != *l.Hold || b.Fit.Best != l.Fit.Best {
		t.Errorf("other jobs in the second half gave weights %+v, want %+v", *b.Hold, *l.Hold)
	}
	var text strings.Builder
	if err := a.Text(&text); err != nil || !strings.Contains(text.String(), "Learned from the first half of the record") ||
		!strings.Contains(text.String(), "weights fitted") {
		t.Errorf("%v:\n%s", err, text.String())
	}
}

// Short records teach nothing, and what an agent's training says ends the assessment.
func TestNothingIsLearnedFromLittle(t *testing.T) {
	on := spec(t, "2x4")
	_, err := Assess(t.Context(), Options{File: "f", Jobs: fifty(), Spec: on, Cluster: "2x4", Tune: true})
	if err == nil || !strings.Contains(err.Error(), "takes 100 in each") {
		t.Error(err)
	}
	full := errors.New("the disk is full")
	_, err = Assess(t.Context(), Options{File: "f", Jobs: history(t, on, 8, 700, .85, "fifo+strict+easy", 7), Spec: on,
		Cluster: "2x4", Agent: func(_ context.Context, c *Cut) (string, error) {
			if c.Largest != 4 || c.Hold != nil || c.Half <= 0 {
				t.Errorf("%+v", c)
			}
			return "", full
		}})
	if !errors.Is(err, full) {
		t.Error(err)
	}
}
