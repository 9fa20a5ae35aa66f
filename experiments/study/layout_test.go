package study

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

const reportYAML = `
values:
  rivals: [a, b]
  nobody: []
tables:
  - each: [kind]
    tables:
      - name: t-{kind}
        title: "{kind}, of {kind}s"
        by: [policy]
        order: {policy: "policies of {kind}"}
        show: {keep: {policy: ["{policies of {kind}}"]}, drop: {policy: [b]}}
        columns:
          - {title: s, metric: s, format: "%.0f", scale: 100, paper: {"*": "3"}}
          - {each: [rivals], title: "vs {rivals}", metric: s, versus: {policy: "{rivals}"}}
        notes: ["of {rivals}", "of {nobody}"]
  - {each: [nobody], name: none, by: [policy]}
figures:
  - {name: curve, table: t-x, column: s, over: n, prefix: "N = "}
claims:
  - {each: [rivals, kind], what: "{rivals} in {kind}", table: "t-{kind}", line: {policy: "{rivals}"}, column: s}
notes: ["{rivals}, {why}"]
`

// Parts of a report are repeated for every value, names are replaced, also within names, and a note without values is
// left out.
func TestTheReportIsData(t *testing.T) {
	s := Of(Study{Name: "laid-out"}, fstest.MapFS{"report.yaml": {Data: []byte(reportYAML)}},
		func(Plan) (int, error) { return 0, nil },
		Parts[int]{Values: func(*int, Plan) map[string][]string {
			return map[string][]string{"kind": {"x", "y"}, "policies of x": {"c", "b", "a"}, "policies of y": nil}
		}})
	all := s.Tables(Plan{})
	if len(all) != 2 || all[0].Name != "t-x" || all[1].Title != "y, of ys" {
		t.Fatalf("the tables are %+v", all)
	}
	table := &all[0]
	if got := fmt.Sprint(table.Order, table.Notes); got != "map[policy:[c b a]] [of a, b]" {
		t.Error(got)
	}
	for policy, want := range map[string]bool{"a": true, "b": false, "c": true, "d": false} {
		if table.Keep(map[string]string{"policy": policy}) != want {
			t.Errorf("line %s: want %v", policy, want)
		}
	}
	column, against := &table.Columns[0], &table.Columns[2]
	if column.Format(.5) != "50" || column.Paper(map[string]string{"policy": "a"}) != "3" {
		t.Errorf("%s, %s", column.Format(.5), column.Paper(nil))
	}
	if against.Title != "vs b" || against.Stat != Percent || against.Versus["policy"] != "b" {
		t.Errorf("%+v", against)
	}
	var what []string
	for _, c := range s.Claims(Plan{}) {
		what = append(what, c.What+" "+c.Table+" "+c.Paper)
	}
	if got := strings.Join(what, "; "); got != "a in x t-x –; a in y t-y –; b in x t-x –; b in y t-y –" {
		t.Error(got)
	}
	if f := s.Figures(Plan{}); len(f) != 1 || f[0].Kind != Lines {
		t.Errorf("%+v", f)
	}
	if got := fmt.Sprint(s.Notes(Plan{Data: "d"})); got != "[a, b, d does not have them]" {
		t.Error(got)
	}
}

// A name without a meaning is an error of the program.
func TestAReportNamesWhatThereIs(t *testing.T) {
	for _, text := range []string{"notes: [\"{unknown}\"]\n", "notes: {}\n", "tabels: []\n"} {
		s := Of(Study{Name: "wrong"}, fstest.MapFS{"report.yaml": {Data: []byte(text)}},
			func(Plan) (int, error) { return 0, nil }, Parts[int]{})
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q was taken", text)
				}
			}()
			s.Notes(Plan{})
		}()
	}
}
