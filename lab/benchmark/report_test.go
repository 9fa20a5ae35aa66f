package benchmark

import (
	"math"
	"strings"
	"testing"
)

// A row that leaves tasks out stands below those that have them, however good it is on its own, and two rows are
// compared on the tasks that both have.
func TestRowsAreComparedOnTheTasksThatTheyHave(t *testing.T) {
	v := Numbered(1)
	tasks, err := v.Match("dagplace-*")
	if err != nil {
		t.Fatal(err)
	}
	a, b, c, d := tasks[0].Name, tasks[1].Name, tasks[2].Name, tasks[3].Name
	entries := []Entry{
		{Name: "picky", Kind: KindCheckpoint, Scores: map[string]Reached{a: {2, 2, 2, 2, 2}}},
		{Name: "worse", Kind: KindRule, Scores: map[string]Reached{a: {1}, b: {.2}, c: {.2}, d: {.2}}},
		{Name: "better", Kind: KindCheckpoint,
			Scores: map[string]Reached{a: {1.5, 1, .5, 0, 1}, b: {.3, .3, .3, .3, .3}, c: {.4, .4, .4, .4, .4},
				d: {.5, .5, .5, .5, .5}}},
		{Name: "elsewhere", Kind: KindRule, Scores: map[string]Reached{"workerplace-ps": {1}}},
	}
	r, err := v.NewReport(Development, tasks, entries)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range r.Rows {
		names = append(names, r.Rows[i].Name)
	}
	if got := strings.Join(names, " "); got != "better worse picky" {
		t.Errorf("rows stand as %s, want better worse picky", got)
	}
	// By hand. Better's 20 runs without the first and the last five: 0 .3×5 .4×5 .5×6 1×2 1.5, whose middle ten are .3
	// .4×5 .5×4.
	if got, want := r.Rows[0].IQM, (.3+5*.4+4*.5)/10; math.Abs(got-want) > 1e-12 {
		t.Errorf("IQM %v, want %v", got, want)
	}
	// On a: 1.5 and two ties of 1 against 1 is (1 + 2/2)/5; on the others better is always above.
	want := map[string]Improvement{
		"better worse": {Tasks: 4, Probability: (.4 + 3) / 4},
		"better picky": {Tasks: 1, Probability: 0},
		"worse picky":  {Tasks: 1, Probability: 0},
	}
	for _, p := range r.Pairs {
		w, ok := want[p.A+" "+p.B]
		if !ok || p.Tasks != w.Tasks || math.Abs(p.Probability-w.Probability) > 1e-12 || p.CI95[0] > p.Probability ||
			p.CI95[1] < p.Probability {
			t.Errorf("got %+v, want %+v", p, w)
		}
	}
	if len(r.Pairs) != len(want) {
		t.Errorf("%d pairs, want %d", len(r.Pairs), len(want))
	}
	if _, err := v.NewReport(Development, tasks, append(entries, entries[0])); err == nil ||
		!strings.Contains(err.Error(), "row picky is there twice") {
		t.Errorf("two rows of one name: %v", err)
	}
}
