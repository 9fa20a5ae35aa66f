package metascheduler

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"clustergym/experiments/run"
	"clustergym/experiments/study"
)

func metaForm(t *testing.T, quick bool) MetaSettings {
	t.Helper()
	s, err := study.Settings[MetaSettings]("meta-scheduler", metaSettingsFile, study.Plan{Quick: quick}, defaultMetaSettings())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMetaSettingsAreInOrder(t *testing.T) {
	for _, quick := range []bool{false, true} {
		s := metaForm(t, quick)
		if s.Stream != "held-out" {
			t.Errorf("quick %v: judged on workloads of stream %s", quick, s.Stream)
		}
		for _, m := range s.Methods {
			if err := s.loop(m).Validate(); err != nil {
				t.Errorf("%s: %v", m, err)
			}
		}
		if !quick && (s.Seeds < 5 || !slices.Equal(s.Methods, metaMethods())) {
			t.Errorf("the full form has %d learners of each of %v", s.Seeds, s.Methods)
		}
	}
	s := metaForm(t, false)
	held := s.windows()
	s.Stream = "development"
	for _, w := range s.windows() {
		if slices.Contains(held, w) {
			t.Errorf("workload %d is one of both streams", w)
		}
	}
	s.Stream, s.Rounds = "test", 0
	if err := s.Validate(); err == nil {
		t.Error("a stream that there is not, and no round")
	}
}

// smallMeta is the study in some seconds, of one learner of each of some methods.
func smallMeta(t *testing.T) study.Study {
	s := metaForm(t, true)
	s.Seeds, s.Windows, s.Jobs, s.Rounds, s.AfterRounds, s.FreeRounds, s.MetaSteps, s.Guide = 1, 5, 16, 1, 1, 2, 1, 10
	s.Methods = []string{"mls", "ppo"}
	small := Study()
	small.Expected = nil
	small.Cells = func(study.Plan) ([]study.Cell, error) { return s.cells(), nil }
	return small
}

// A run in small, by one worker, and by two after an interruption: the same figures. What the learned speeds are worth shows even
// here: the planner by them is ahead of a rule that does not know them, and more so after the change.
func TestMetaInSmall(t *testing.T) {
	if testing.Short() || raced {
		t.Skip("it trains")
	}
	var want string
	for _, workers := range []int{1, 2} {
		dir, s := t.TempDir(), smallMeta(t)
		run := func(only string) *study.Report {
			r, err := run.RunStudy(t.Context(), s, run.PaperOptions{Plan: study.Plan{Quick: true, Workers: workers}, Dir: dir, Only: only})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		if workers == 2 { // some of it first
			run("learn/mls")
			if len(metaKept(t, dir)) != 1 {
				t.Errorf("kept after the first part: %v", metaKept(t, dir))
			}
		}
		r := run("")
		if len(metaKept(t, dir)) != 3 {
			t.Errorf("kept at the end: %v", metaKept(t, dir))
		}
		b, err := os.ReadFile(filepath.Join(dir, "rows.csv"))
		if err != nil {
			t.Fatal(err)
		}
		if want == "" {
			want = string(b)
		}
		if string(b) != want {
			t.Errorf("%d workers make other rows than one", workers)
		}
		against := func(table string) float64 {
			v, _, ok := r.Results.Find(table, map[string]string{"method": "planner"}, vsFewest)
			if !ok {
				t.Fatalf("no planner in table %s", table)
			}
			return v.Value
		}
		usual, changed := against("stationary"), against("changed")
		if !(usual < -3) || !(changed < -10) {
			t.Errorf("the planner is at %.1f %% and after the change at %.1f %% of least interference, want less than -3 and -10", usual, changed)
		}
		for _, table := range []string{"stationary", "changed", "adaptation", "samples", "again", "curve", "after"} {
			if len(r.Results.Lines(table)) == 0 {
				t.Errorf("table %s is empty", table)
			}
		}
	}
}

// metaKept are the cells that lie in a study's folder.
func metaKept(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "cells", "*", "*", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob(filepath.Join(dir, "cells", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	return append(files, more...)
}

// Imitation gave 2 hours; learning ends at 1, which is reached after 14 episodes and nearly so after 10.
func TestSamplesUntilLearnt(t *testing.T) {
	got := map[string]float64{}
	of := func(curve []mark, reference float64) {
		clear(got)
		for _, r := range samples("samples", nil, curve, reference) {
			got[r.Metric] = r.Value
		}
	}
	of([]mark{{6, 2}, {10, 1.052}, {14, 1}, {18, 1}}, 1.5)
	want := map[string]float64{"final95": 10, "own95": 14, "gained": 1, "target": 10, "hit": 1, "end_jct_h": 1}
	for k, v := range want {
		if math.Abs(got[k]-v) > 1e-12 {
			t.Errorf("%s: %v, want %v", k, got[k], v)
		}
	}
	of([]mark{{6, 1}, {10, 1.2}, {14, 1.1}}, 1)
	if _, ok := got["own95"]; ok || got["gained"] != 0 || got["hit"] != 0 || got["final95"] != 6 {
		t.Errorf("a learner that lost: %v", got)
	}
}
