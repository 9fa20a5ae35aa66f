package report

import (
	"math"
	"testing"

	"clustergym/internal/statistic"
)

// Results of a comparison on draws have their values; of a recorded stream there is nothing but the mean.
func TestResultsOfStreams(t *testing.T) {
	values := []float64{3, 1, 2}
	s := StreamStatistic{Mean: 2, CI95: statistic.Interval{math.NaN(), math.NaN()}, Per: []statistic.Number{3, 1, 2}}
	r := &StreamReport{Protocol: "streams", Env: "JobSelect-v2", Metric: "jct_s", Streams: StreamsInfo{Units: 3, Seed: 1},
		Policies: []StreamPolicy{{Name: "a", Kind: KindCheckpoint, Metrics: &StreamMetrics{JCT: s}},
			{Name: "b", Metrics: &StreamMetrics{JCT: s}}, {Name: "x", Kind: KindExternal, Missing: "finished 0 of 3 streams"}},
		Paired: []statistic.Replicated{statistic.CompareReplications("a", "b", "jct_s", values, []float64{4, 4, 4}, false)}}
	metric, all, paired := Results(r)
	if metric != "jct_s" || len(all) != 3 || all[0].Stream.Mean != 2 || all[0].Score.Mean != 2 ||
		len(all[0].Score.PerWindow) != 3 || all[2].Stream != nil || all[2].Score != nil {
		t.Errorf("%s, %+v", metric, all)
	}
	if len(paired) != 1 || paired[0].Difference != -50 || !math.IsNaN(paired[0].CI95[0]) {
		t.Errorf("paired %+v", paired)
	}
	r.Streams.Blocks = &Blocks{Bins: 30, Length: 10}
	if _, all, _ = Results(r); all[0].Stream == nil || all[0].Score != nil {
		t.Errorf("a recorded stream: %+v", all[0])
	}
}
