package workload

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A trace whose jobs differ in priority is noted, once, whatever the priorities are; others are not.
func TestPrioritiesAreNoted(t *testing.T) {
	for name, x := range map[string]struct {
		priorities []string
		noted      bool
	}{
		"none": {[]string{"", "", ""}, false}, "alike": {[]string{"7", "7", "7"}, false},
		"two":  {[]string{"0", "1", "2"}, true},
		"some": {[]string{"", "", "5"}, true}, "below 0": {[]string{"-3", "", ""}, true},
		"a single job": {[]string{"5"}, false},
	} {
		file := filepath.Join(t.TempDir(), "jobs.csv")
		text := "job_id,submit_time,duration,num_gpu,priority\n"
		for i, p := range x.priorities {
			text += strings.Join([]string{string(rune('a' + i)), "0", "10", "1", p}, ",") + "\n"
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg := DefaultTraceConfig()
		cfg.File = file
		var notes []string
		ctx := Playing(WithNotes(context.Background(), func(text string) { notes = append(notes, text) }))
		if _, _, err := LoadTraceContext(ctx, cfg); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if x.noted != (len(notes) == 1) || x.noted && !strings.Contains(notes[0], "priority") {
			t.Errorf("%s: noted %q", name, notes)
		}
	}
}
