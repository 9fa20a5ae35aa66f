package plan

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"clustergym/internal/fault"
	"clustergym/simulator/dag"
	"clustergym/simulator/dag/dagjson"
	"clustergym/simulator/dag/synth"
)

func TestGenerateTexts(t *testing.T) {
	for text, want := range map[string][3]int{
		":1x1": {1, 1, 0}, ":100000x5000": {100_000, 5_000, 0}, ":30x4:0": {30, 4, 0}, ":30x4:1000000": {30, 4, 1_000_000},
	} {
		for _, f := range synth.Families() {
			family, tasks, gpus, draw, err := parseGenerate(f + text)
			if err != nil || family != f || [3]int{tasks, gpus, draw} != want {
				t.Errorf("%s: %s, %d, %d, %d, %v", f+text, family, tasks, gpus, draw, err)
			}
		}
	}
	for _, text := range []string{
		"", "degree-3", "degree-3:", "degree-3:x", "degree-3:20", "degree-3:20x", "degree-3:x4", "degree-3:0x4",
		"degree-3:20x0", "degree-3:100001x4",
		"degree-3:20x5001", "degree-3:+20x4", "degree-3:20x-4", "degree-3:2e1x4", "degree-3:20X4", "degree-3:20x4:",
		"degree-3:20x4:-1",
		"degree-3:20x4:+1", "degree-3:20x4:1000001", "degree-3:20x4:0:0", "degree-2:20x4", "Degree-3:20x4", ":20x4",
	} {
		_, _, _, _, err := parseGenerate(text)
		want := `generate: got "` + text +
			`", want FAMILY:TASKSxGPUS or FAMILY:TASKSxGPUS:DRAW, 1 to 100000 tasks, 1 to 5000 GPUs, FAMILY one of alibaba, degree-1,`
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// graphOf returns the one graph of a generated source, as dag-json.
func graphOf(t *testing.T, text string) string {
	t.Helper()
	s, err := generateGraph(text)
	if err != nil {
		t.Fatal(err)
	}
	g, own, at, err := s.next()
	if err != nil || at != text {
		t.Fatalf("%s: at %s, %v", text, at, err)
	}
	if _, _, _, err := s.next(); err != io.EOF {
		t.Fatalf("%s: a second graph, %v", text, err)
	}
	var b bytes.Buffer
	if err := dagjson.Write(&b, g, own); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestADrawNamesAGraph(t *testing.T) {
	for _, family := range synth.Families() {
		first := graphOf(t, family+":30x4")
		if graphOf(t, family+":30x4:0") != first {
			t.Errorf("%s: draw 0 is not the first", family)
		}
		if graphOf(t, family+":30x4:1") == first {
			t.Errorf("%s: draws 0 and 1 are the same", family)
		}
		q, err := synth.FamilyProblem(family, 30, 4, 1, true)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := dagjson.Write(&b, q.Graph, q.Platform); err != nil {
			t.Fatal(err)
		}
		if b.String() != graphOf(t, family+":30x4:1") {
			t.Errorf("%s: draw 1 is not problem 1 of the family", family)
		}
	}
}

func TestAGeneratedGraphReachesTheHookBeforeItsPlans(t *testing.T) {
	c := DefaultConfig()
	c.Generate, c.Policies = "training:30x4", []string{"heft", "cpop"}
	var order []string
	err := Run(context.Background(), c, Hooks{Now: clock(), Graph: func(q *dag.Problem) error {
		order = append(order, q.Graph.Name)
		return nil
	}}, func(r *Result) error {
		order = append(order, r.Document.Policy)
		return nil
	})
	if got := strings.Join(order, " "); err != nil || got != "training-30-4-0 heft cpop" {
		t.Errorf("%s, %v", got, err)
	}
	c.Generate = "training:30"
	var input *fault.Mistake
	if err := Run(context.Background(), c, Hooks{Now: clock()}, func(*Result) error { return nil }); !errors.As(err,
		&input) {
		t.Errorf("%v is not a mistake of the user's", err)
	}
}
