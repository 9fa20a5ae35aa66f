package report

import (
	"strings"
	"testing"

	"clustergym/internal/statistic"
	"clustergym/simulator/sim"
)

// onRung is a comparison of the named policies by their values in three windows, with estimates.
func onRung(env, metric, estimates, rung string, policies ...PolicyReport) *Report {
	return &Report{Windows: make([]WindowInfo, 3), Policies: policies, Env: env, Metric: metric,
		Estimates: sim.MustEstimates(estimates), Rung: rung}
}

// with is a policy with these values of every metric.
func with(p PolicyReport, values ...float64) PolicyReport {
	s := statistic.Describe(1, statistic.Sample{values})
	p.Metrics = &PolicyMetrics{JCT: s, BoundedSlowdown: s, Score: &s}
	return p
}

func TestLadderSaysWhatIsLost(t *testing.T) {
	agent, fifo, sjf := PolicyReport{Name: "ppo:a@9", Kind: KindCheckpoint, Trained: sim.MustEstimates("history")},
		PolicyReport{Name: "fifo+skip", Nothing: true}, PolicyReport{Name: "sjf+skip"}
	l := &Ladder{Against: sim.MustEstimates("exact"), Rungs: []*Report{
		onRung("", "", "none", "none", with(agent, 30, 60, 90), with(fifo, 60, 60, 60)),
		onRung("", "", "history", "causal", with(agent, 20, 40, 60), with(fifo, 60, 60, 60), with(sjf, 30, 30, 30)),
		onRung("", "", "exact", "exact", with(agent, 20, 40, 60), with(fifo, 60, 60, 60), with(sjf, 20, 20, 20)),
	}}
	l.Fill(1, []string{"ppo:a@9", "fifo+skip", "sjf+skip"})
	var b strings.Builder
	if err := l.WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(b.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := []string{
		"estimates: none, history (causal), exact", "",
		"policy none history (causal) exact lost on none lost on history", got[3],
		"ppo@9 (trained on history) 60 [30, 90] s 40 [20, 60] s 40 [20, 60] s +50.0 % [+50.0, +50.0] +0.0 % [+0.0, +0.0]",
		"fifo+skip 60 [60, 60] s 60 [60, 60] s 60 [60, 60] s +0.0 % [+0.0, +0.0] +0.0 % [+0.0, +0.0]",
		"sjf+skip – 30 [30, 30] s 20 [20, 20] s – +50.0 % [+50.0, +50.0]", "",
		"3 windows of 0 jobs each, the same on every rung: mean over windows of mean JCT with its 95 % bootstrap interval.",
		"lost on: by how much the policy is worse than itself on exact, on the same windows, with the 95 % interval of",
		"the difference; negative = better.",
		"–: ranks by run times, and there are none: sjf+skip.", "fifo+skip asks nothing of run times.",
		"ppo@9 was trained on estimates: history (causal).",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A loss is positive where the policy is worse, also if higher values are better; it may be that to the last named
// rung, and a policy without the environment's metric has none.
func TestLossesHaveASignAndAReference(t *testing.T) {
	ordinary := PolicyReport{Name: "fifo+skip"}
	blind := with(ordinary, 1, 2, 3)
	blind.Metrics.Score = nil
	l := &Ladder{Against: sim.MustEstimates("noisy:1"), Rungs: []*Report{
		onRung("GPUPick-v1", "cost", "history", "causal", with(PolicyReport{Name: "ppo"}, 1, 1, 1), blind),
		onRung("GPUPick-v1", "cost", "noisy:1", "noisy", with(PolicyReport{Name: "ppo"}, 2, 2, 2), blind),
	}}
	l.Fill(1, []string{"ppo", "fifo+skip"})
	if c := l.Policies[0].Rungs[0]; *c.Loss != -50 || *c.LossCI95 != [2]float64{-50, -50} {
		t.Errorf("a policy with half the cost loses %v %% %v", *c.Loss, *c.LossCI95)
	}
	if c := l.Policies[1].Rungs[0]; c.Mean != nil || c.Absent != noMetric || c.Loss != nil {
		t.Errorf("without a metric: %+v", c)
	}
	if m := l.Rungs[0].Counts(); m.Higher {
		t.Fatal("the metric of GPUPick-v1 is a cost")
	}
}
