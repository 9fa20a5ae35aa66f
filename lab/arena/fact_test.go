package arena

import (
	"fmt"
	"strings"
	"testing"
)

func TestFactsStandInColumns(t *testing.T) {
	var b strings.Builder
	Say(func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) },
		Fact{"workload", "a.csv"}, Factf("", "%d jobs", 3), Fact{"env", "100 %d of it"})
	if got, want := b.String(), "workload  a.csv\n          3 jobs\nenv       100 %d of it\n"; got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}
