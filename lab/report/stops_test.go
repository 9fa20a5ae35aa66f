package report

import (
	"strings"
	"testing"

	"clustergym/internal/statistic"
)

// Orders and rules that stop running jobs are marked, with or without a search on top; others are not.
func TestPoliciesThatStopJobsAreKnownByName(t *testing.T) {
	for _, c := range []struct {
		kind, name string
		want       bool
	}{
		{"heuristic", "las+skip", true}, {"heuristic", "srtf", true}, {"heuristic", "rollout:las+skip", true},
		{"heuristic", "sjf+skip+easy", false}, {"heuristic", "hold", false}, {"slots", "las@slots", true},
		{"slots", "rollout:srtf@slots", true}, {"slots", "sjf@slots", false}, {KindCheckpoint, "las", false},
		{"heuristic", "unknown", false},
	} {
		if got := StopsJobs("JobSelect-v2", c.kind, c.name); got != c.want {
			t.Errorf("%s %s stops jobs: %v, want %v", c.kind, c.name, got, c.want)
		}
	}
}

// What a stop costs stands above the tables, and the policies that stop jobs are marked in their rows.
func TestTablesSayThatStopsAreFree(t *testing.T) {
	s := StreamStatistic{Mean: 2, Per: []statistic.Number{3, 1}}
	streams := &StreamReport{Env: "JobSelect-v2", Metric: "jct_s", Streams: StreamsInfo{Units: 2},
		Assumptions: Assumptions{Placement: "closest-b", Communication: "tree", Stops: FreeStops},
		Policies: []StreamPolicy{{Name: "sjf+skip", Kind: "heuristic", Metrics: &StreamMetrics{JCT: s, KeepsUp: true}},
			{Name: "srtf+skip", Kind: "heuristic", Metrics: &StreamMetrics{JCT: s, KeepsUp: true}}}}
	windows := &Report{Windows: []WindowInfo{{Jobs: 9}}, Stops: FreeStops, Policies: []PolicyReport{
		{Name: "sjf+skip", Kind: "heuristic", Metrics: &PolicyMetrics{}},
		{Name: "srtf+skip", Kind: "heuristic", Metrics: &PolicyMetrics{}}}}
	for want, sheet := range map[string]struct{ above, first, second string }{
		"assumed: placement closest-b; communication tree; stops are free; use and load simulated\n": {
			streams.Sheets()[0].Above, streams.Sheets()[0].Rows[0][0], streams.Sheets()[0].Rows[1][0]},
		"assumed: stops are free\n": {
			windows.Sheets()[0].Above, windows.Sheets()[0].Rows[0][0], windows.Sheets()[0].Rows[1][0]},
	} {
		if !strings.HasSuffix(sheet.above, want) || sheet.first != "sjf+skip" || sheet.second != "srtf+skip (stops jobs)" {
			t.Errorf("above the table stands %q, with rows %q and %q; want %q", sheet.above, sheet.first, sheet.second, want)
		}
	}
}
