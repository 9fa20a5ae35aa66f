package plan

import (
	"regexp"
	"strings"
	"testing"
)

func TestTheTableComparesThePlansOfAGraph(t *testing.T) {
	c := DefaultConfig()
	c.Graph, c.Policies = write(t, "g.json", diamond), []string{"random", "heft", "optimum"}
	all, err := runAll(c)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := WriteTable(&b, all); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`(?m)^graph +policy +tasks +edges +GPUs +used +makespan s +× best +planning$`,
		`(?m)^diamond +heft +4 +4 +2 +1 +4\.5 +1 +1\.0 s$`,
		`(?m)^diamond +optimum +optimal +4 +4 +2 +1 +4\.5 +1 +1\.0 s$`,
	} {
		if !regexp.MustCompile(want).MatchString(b.String()) {
			t.Errorf("%s is not in\n%s", want, &b)
		}
	}
	if strings.Contains(b.String(), "finish s") {
		t.Errorf("several plans, and placements:\n%s", &b)
	}
}

func TestASmallPlanAloneIsListed(t *testing.T) {
	c := DefaultConfig()
	c.Generate = "degree-1:40x4"
	small, err := runAll(c)
	if err != nil {
		t.Fatal(err)
	}
	c.Generate = "degree-1:41x4"
	large, err := runAll(c)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := WriteTable(&b, small); err != nil {
		t.Fatal(err)
	}
	// A header of two lines and a row, an empty line, a header of two lines and 40 rows.
	if lines := strings.Count(b.String(), "\n"); lines != 46 || !strings.Contains(b.String(), "finish s") {
		t.Errorf("%d lines, want 46:\n%s", lines, &b)
	}
	b.Reset()
	if err := WriteTable(&b, large); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(b.String(), "\n"); lines != 3 {
		t.Errorf("%d lines, want 3:\n%s", lines, &b)
	}
}
