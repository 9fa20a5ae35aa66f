package run

import (
	"math"
	"path/filepath"
	"testing"

	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/lab/rundir"
)

// With eval.choose: mean, validations count what the report counts: the arithmetic mean of the windows' mean JCTs.
// Rivals are judged by the same mean.
func TestCheckpointsAreChosenByTheReportsMean(t *testing.T) {
	cfg, dir := tinyRun("ppo"), t.TempDir()
	cfg.Eval.Choose, cfg.Train.Steps, cfg.Eval.Windows, cfg.Eval.Whole = config.ByMean, 400, cfg.Eval.Validation, false
	trainTo(t, cfg, dir, TrainOptions{})
	best, ok, err := rundir.ReadBest(filepath.Join(dir, "tiny"))
	if err != nil || !ok || best.Metric != "validation/jct_s mean" || best.Value <= 0 {
		t.Fatalf("best.json has %+v, %v", best, err)
	}
	_, validations := progressOf(t, filepath.Join(dir, "tiny"))
	if v := validations[0].Eval; v.Score == nil || v.Metric != "jct_s" || v.Mean != "mean" ||
		v.Windows != cfg.Eval.Validation {
		t.Errorf("the validation is %+v", v)
	}
	w, err := arena.NewScenario(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	rivals, err := w.Baselines(t.Context(), &cfg, 1)
	if err != nil {
		t.Fatal(err)
	}
	usual := cfg
	usual.Eval.Choose = ""
	geometric, err := w.Baselines(t.Context(), &usual, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range rivals {
		if g := geometric[i].Validation; r.Validation.Score == nil || *r.Validation.Score < g.JCT*(1-1e-12) ||
			math.IsNaN(*r.Validation.Score) {
			t.Errorf("%s: the mean is %v, the geometric mean %v", r.Name, r.Validation.Score, g.JCT)
		}
	}
}
