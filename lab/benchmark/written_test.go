package benchmark

import "testing"

// The signs = of a written order name no task, and a row has a name without / .
func TestRulesThatAreWrittenOut(t *testing.T) {
	for entry, want := range map[string]struct {
		rule string
		own  bool
		name string
	}{
		"sjf+skip":                             {"sjf+skip", false, "sjf+skip"},
		"jobs-*=sjf+skip":                      {"sjf+skip", true, "sjf+skip"},
		"key: user == 'a' ? 0 : gpus":          {"key: user == 'a' ? 0 : gpus", false, "key: user == 'a' ? 0 : gpus"},
		"mine = key: wait / gpus+skip":         {"mine = key: wait / gpus+skip", false, "mine+skip"},
		"jobs-*=mine = key: wait == 1 ? 0 : 1": {"mine = key: wait == 1 ? 0 : 1", true, "mine"},
		"key: wait / gpus":                     {"key: wait / gpus", false, "expr-25a86bdf"},
	} {
		rule, own := chosen([]string{entry}, "jobs-1")
		if name := RowName(entry); rule != want.rule || own != want.own || name != want.name {
			t.Errorf("%s plays %s (own: %v) as %s, want %+v", entry, rule, own, name, want)
		}
	}
}
