package expression_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"clustergym/simulator/schedulers/expression"
)

var update = flag.Bool("update", false, "write the tables of variables and functions into the page")

// The page of one's own policies lists every variable with its unit, and every function.
func TestThePageHasTheVariables(t *testing.T) {
	const file = "../../../docs/guides/own-policy.md"
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	begin, rest, ok := strings.Cut(string(b), "-update -->\n")
	_, end, closed := strings.Cut(rest, "<!-- end of the variables -->")
	if !ok || !closed {
		t.Fatalf("%s has no place for the variables", file)
	}
	var tables strings.Builder
	tables.WriteString("\n| variable | unit | what it is |\n| --- | --- | --- |\n")
	for _, v := range expression.Variables() {
		unit := v.Unit
		if k := v.Kind(); k != "number" {
			unit = k
		}
		fmt.Fprintf(&tables, "| `%s` | %s | %s |\n", v.Name, unit, v.About)
	}
	tables.WriteString("\n| function | what it gives |\n| --- | --- |\n")
	for _, f := range expression.Functions() {
		fmt.Fprintf(&tables, "| `%s` | %s |\n", f.Form, f.About)
	}
	want := begin + "-update -->\n" + tables.String() + "\n<!-- end of the variables -->" + end
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(b) {
		t.Errorf("%s has other variables; go test ./simulator/schedulers/expression -run TestThePageHasTheVariables -update "+
			"writes them", file)
	}
}
