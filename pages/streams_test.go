package pages

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clustergym/internal/statistic"
	"clustergym/lab/report"
	"clustergym/lab/rundir"
)

// A run whose policies were compared on streams shows means with their intervals, and differences with verdicts.
func TestARunShowsItsComparisonOnStreams(t *testing.T) {
	dir := t.TempDir()
	a, b := make([]float64, 12), make([]float64, 12)
	for i := range a {
		a[i], b[i] = 100+float64(i), 140+float64(i*i%7)
	}
	row := func(name, kind string, values []float64) report.StreamPolicy {
		mean, ci := statistic.Mean95(values)
		s := report.StreamStatistic{Mean: statistic.Number(mean), CI95: ci}
		return report.StreamPolicy{Name: name, Kind: kind, Metrics: &report.StreamMetrics{JCT: s, KeepsUp: true}}
	}
	r := report.StreamReport{Protocol: "streams", Env: "JobSelect-v2", Metric: "jct_s",
		Streams:  report.StreamsInfo{Units: 12, Warm: 50, Counted: 100},
		Policies: []report.StreamPolicy{row("ppo:a@9", "checkpoint", a), row("sjf+skip", "heuristic", b)},
		Paired:   []statistic.Replicated{statistic.CompareReplications("ppo:a@9", "sjf+skip", "jct_s", a, b, false)}}
	text, err := json.Marshal(&r)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, filepath.FromSlash(rundir.EvalFile))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(readTest(dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"streams":"12 draws"`, `"seconds":true`,
		`"name":"ppo:a@9","kind":"checkpoint","mean":105.5`, `"b":"sjf+skip"`, `"verdict":"ahead"`} {
		if !strings.Contains(string(got), part) {
			t.Errorf("%s is missing in %s", part, got)
		}
	}
}
