package report

import (
	"encoding/json"
	"reflect"
	"testing"

	"clustergym/internal/statistic"
)

// The document of a comparison says of which kind it is.
func TestEveryComparisonIsReadAgain(t *testing.T) {
	score := statistic.Describe(1, statistic.Sample{{1, 2, 3}})
	for _, c := range []Comparison{
		onRung("", "", "exact", "exact", with(PolicyReport{Name: "ppo:a@9", Kind: KindCheckpoint}, 1, 2, 3)),
		&EpisodeReport{Env: "CartPole-v1", Episodes: 3,
			Policies: []EpisodePolicy{{Name: "random", Kind: "baseline", Return: Returns(1, []float64{1, 2, 3})}}},
		&AdaptReport{Env: "Nav2D-v1", Tasks: 3, Rows: []AdaptRow{{Name: "random"}}},
		&Ladder{Metric: "jct_s",
			Rungs: []*Report{onRung("", "", "exact", "exact", PolicyReport{Name: "a", Metrics: &PolicyMetrics{Score: &score}})}},
	} {
		b, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Read(b)
		if err != nil || reflect.TypeOf(got) != reflect.TypeOf(c) {
			t.Errorf("%T is read as %T: %v", c, got, err)
			continue
		}
		again, err := json.Marshal(got)
		if err != nil || string(again) != string(b) {
			t.Errorf("%T: %s (%v), want %s", c, again, err, b)
		}
	}
	if _, err := Read([]byte("{")); err == nil {
		t.Error("half a document is read")
	}
}

// A policy to which the metric does not apply has no score, and differences are those of the metric.
func TestResultsAreThoseOfTheMetric(t *testing.T) {
	blind := with(PolicyReport{Name: "sjf+skip"}, 1, 2, 3)
	blind.Metrics.Score = nil
	r := onRung("GPUPick-v1", "comm_cost", "exact", "exact",
		with(PolicyReport{Name: "ppo:a@9", Kind: KindCheckpoint}, 1, 2, 3), blind,
		PolicyReport{Name: "away", Missing: "left"})
	r.Paired = []statistic.Paired{{A: "ppo:a@9", B: "sjf+skip", Metric: "jct_s"},
		{A: "ppo:a@9", B: "x", Metric: r.Counts().Key}}
	metric, all, paired := Results(r)
	if metric != r.Counts().Key || len(all) != 3 || all[0].Score == nil || all[0].Score.Mean != 2 || all[1].Score != nil ||
		all[2].Score != nil {
		t.Errorf("%s: %+v", metric, all)
	}
	if len(paired) != 1 || paired[0].B != "x" {
		t.Errorf("differences %+v", paired)
	}
	e := &EpisodeReport{Policies: []EpisodePolicy{{Name: "random", Return: Returns(1, []float64{1, 3})}}}
	if metric, all, _ := Results(e); metric != Return || all[0].Return.Mean != 2 {
		t.Errorf("%s: %+v", metric, all)
	}
	if _, all, _ := Results(&AdaptReport{}); all != nil {
		t.Errorf("%+v", all)
	}
}
