package simulate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The page has the terminal's table and names of runs, and its curves show the jobs that count.
func TestSchedulePageTellsWhatTheTableTells(t *testing.T) {
	cfg := oracleConfig()
	cfg.Trace.Synth.Jobs, cfg.Trace.Synth.MaxGPUs, cfg.Cluster = 200, 8, "2x8"
	cfg.Policies = []string{"fifo", "fifo+strict+easy", "srtf"}
	cfg.Warmup, cfg.Tail = 10, 20
	page := NewSchedulePage(cfg)
	report, err := Run(t.Context(), cfg, Hooks{Observe: page.Observe})
	if err != nil {
		t.Fatal(err)
	}
	var b, table bytes.Buffer
	if err := page.Write(&b, report); err != nil {
		t.Fatal(err)
	}
	if err := report.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(b.String(), `id="data">`)
	block, _, _ := strings.Cut(rest, "</script>")
	var d struct {
		Title  string
		Facts  [][2]string
		Notes  []string
		Tables []struct {
			Header []string
			Rows   [][]string
		}
		Runs []struct {
			Name   string
			JCT    struct{ Jobs int }
			Stints struct{ Job []int }
		}
	}
	if err := json.Unmarshal([]byte(block), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Tables) != 1 || len(d.Tables[0].Rows) != len(report.Runs) {
		t.Fatalf("tables %v", d.Tables)
	}
	shown := &d.Tables[0]
	tables := strings.Split(strings.TrimSpace(table.String()), "\n\n")
	lines := strings.Split(tables[1], "\n")[2:]
	if below := strings.Join(d.Notes, "\n"); tables[2] != "fifo+strict asks nothing of run times." ||
		!strings.HasSuffix(below, tables[2]) {
		t.Errorf("below the page's table stands %q, the terminal says %q", below, tables[2])
	}
	if !slices.Contains(d.Facts, [2]string{"estimates", "exact, an oracle: no cluster knows run times"}) {
		t.Errorf("facts %v", d.Facts)
	}
	for i, row := range shown.Rows {
		if got, want := strings.Join(row, " "), strings.Join(strings.Fields(lines[i]), " "); got != want {
			t.Errorf("row %d is\n%s, the terminal says\n%s", i, got, want)
		}
		r := &report.Runs[i]
		if d.Runs[i].Name != r.Name() || row[0] != r.Name() {
			t.Errorf("run %s is called %s in its row and %s in its schedule", r.Name(), row[0], d.Runs[i].Name)
		}
		if d.Runs[i].JCT.Jobs != r.Metrics.Finished || r.Metrics.Finished != 170 {
			t.Errorf("%s: the curve is of %d jobs, the metrics of %d, want 170", r.Name(), d.Runs[i].JCT.Jobs,
				r.Metrics.Finished)
		}
		if n := len(d.Runs[i].Stints.Job); n != 200+r.Metrics.Preemptions && r.Metrics.Preemptions == 0 || n < 200 {
			t.Errorf("%s: %d stints of 200 jobs", r.Name(), n)
		}
	}
	if d.Title != "Schedules of synth:philly on 2x8" || !strings.Contains(fmt.Sprint(d.Facts), "2 nodes, 16 GPUs") ||
		len(shown.Header) != len(shown.Rows[0]) {
		t.Errorf("%q, %v, %v", d.Title, d.Facts, shown.Header)
	}
	var empty bytes.Buffer
	if err := NewSchedulePage(cfg).Write(&empty, &Report{}); err != nil || empty.Len() != 0 {
		t.Errorf("without runs: %v, %d bytes", err, empty.Len())
	}
}
