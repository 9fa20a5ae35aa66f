package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"clustergym/agents/train"
	"clustergym/internal/fault"
	"clustergym/internal/statistic"
	"clustergym/lab/config"
	"clustergym/lab/report"
)

func trainSeeds(t *testing.T, cfg config.Config, n int, opt TrainOptions) *SeedsReport {
	t.Helper()
	r, err := TrainSeeds(t.Context(), cfg, n, opt)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// In parallel or one after the other, interrupted or not, every seed has the run that it has alone.
func TestSeedsSideBySideAreTheRunsThatTheyAreAlone(t *testing.T) {
	cfg := tinyProblem("ppo")
	cfg.Seed = 3
	together := filepath.Join(t.TempDir(), "all")
	r := trainSeeds(t, cfg, 3, TrainOptions{RunDir: together, Workers: 4})
	if len(r.Runs) != 3 || r.Env != "CartPole-v1" || r.Metric != "return" || *r.Solved != 475 || *r.SolvedRuns != 0 {
		t.Fatalf("the report is %+v", r)
	}
	var all []float64
	for i, run := range r.Runs {
		alone := cfg
		alone.Seed += uint64(i)
		dir := filepath.Join(t.TempDir(), fmt.Sprintf("seed-%d", alone.Seed)) // equal runs are called equal names
		single, err := Train(t.Context(), alone, TrainOptions{RunDir: dir, Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		sameFiles(t, fmt.Sprint("seed ", alone.Seed), contents(t, SeedDir(together, alone.Seed)), contents(t, dir), false)
		if run.Seed != alone.Seed || !reflect.DeepEqual(run.Eval, single.Eval) {
			t.Errorf("seed %d ended with %+v, want %+v", run.Seed, run.Eval, single.Eval)
		}
		all = append(all, single.Eval.(*report.EpisodeReport).Policies[0].Return.PerEpisode...)
	}
	if *r.IQM != statistic.IQM(all) || *r.Mean != statistic.Mean(all) || !(r.CI95[0] <= *r.IQM && *r.IQM <= r.CI95[1]) {
		t.Errorf("IQM %v %v, mean %v; want %v and %v", *r.IQM, *r.CI95, *r.Mean, statistic.IQM(all), statistic.Mean(all))
	}
	runs, err := RunsOf(together)
	if err != nil || len(runs) != 3 || runs[2] != SeedDir(together, 5) {
		t.Errorf("the runs are %v (%v)", runs, err)
	}

	cut := filepath.Join(t.TempDir(), "all")
	for i, at := range []int64{400, 1200} {
		ctx, cancel := cancelled(t)
		_, err := TrainSeeds(ctx, cfg, 3, TrainOptions{RunDir: cut, Workers: 1 + i, Resume: i > 0, Tick: func(p train.Progress) {
			if p.Steps != 3*cfg.Train.Steps {
				t.Errorf("%d steps in all", p.Steps)
			}
			if p.Step >= at {
				cancel()
			}
		}})
		if !errors.Is(err, fault.ErrInterrupted) || !strings.Contains(err.Error(), "resume "+cut) {
			t.Fatalf("got %v, want fault.ErrInterrupted with what to do", err)
		}
	}
	again := trainSeeds(t, cfg, 3, TrainOptions{RunDir: cut, Workers: 2, Resume: true})
	for i := range r.Runs {
		seed := cfg.Seed + uint64(i)
		sameFiles(t, fmt.Sprint("resumed, seed ", seed), contents(t, SeedDir(cut, seed)),
			contents(t, SeedDir(together, seed)), true)
	}
	if *again.IQM != *r.IQM || *again.CI95 != *r.CI95 {
		t.Errorf("resumed, the IQM is %v %v, want %v %v", *again.IQM, *again.CI95, *r.IQM, *r.CI95)
	}

	// What is done is not done again.
	ticks := 0
	third := trainSeeds(t, cfg, 3,
		TrainOptions{RunDir: cut, Workers: 1, Resume: true, Tick: func(train.Progress) { ticks++ }})
	a, _ := json.Marshal(again)
	b, _ := json.Marshal(third)
	if ticks != 0 || string(a) != string(b) {
		t.Errorf("%d iterations of finished runs; the report is\n%s, want\n%s", ticks, b, a)
	}
	var text strings.Builder
	if err := third.WriteTable(&text); err != nil || !strings.Contains(text.String(), "0 of 3") ||
		!strings.Contains(text.String(), "\nall ") {
		t.Errorf("the table is\n%s(%v)", text.String(), err)
	}
}

func TestSeedsOfAClusterAreComparedByJCT(t *testing.T) {
	cfg := tinyRun("ppo")
	cfg.Train.Steps, cfg.Eval.Whole = 200, false
	r := trainSeeds(t, cfg, 2, TrainOptions{RunDir: filepath.Join(t.TempDir(), "all"), Workers: 2})
	var all []float64
	for _, run := range r.Runs {
		all = append(all, run.Eval.(*report.Report).Policies[0].Metrics.JCT.PerWindow...)
	}
	if r.Metric != "jct_s" || *r.IQM != statistic.IQM(all) || r.Solved != nil || r.SolvedRuns != nil {
		t.Errorf("the report is %+v, want an IQM of %v", r, statistic.IQM(all))
	}
	first := r.Runs[0].Eval.(*report.Report)
	if len(r.Paired) != len(first.Policies)-1 {
		t.Fatalf("%d rivals are compared with, want %d", len(r.Paired), len(first.Policies)-1)
	}
	for i, p := range r.Paired {
		rival, ahead := first.Policies[i+1].Metrics.JCT, 0
		for _, run := range r.Runs {
			if run.Eval.(*report.Report).Policies[0].Metrics.JCT.Mean < rival.Mean {
				ahead++
			}
		}
		if want := 100 * (statistic.Mean(all) - rival.Mean) / rival.Mean; p.B != first.Policies[i+1].Name ||
			math.Abs(p.Difference-want) > 1e-9 ||
			p.CI95[0] > p.Difference || p.CI95[1] < p.Difference || p.Ahead != ahead {
			t.Errorf("the comparison with %s is %+v, want %v and %d seeds ahead", p.B, p, want, ahead)
		}
	}
	var text strings.Builder
	if err := r.WriteTable(&text); err != nil || !strings.Contains(text.String(), "sjf+skip") ||
		!strings.Contains(text.String(), "agents vs it [95 %]") || !strings.Contains(text.String(), "ppo:seed-2@") {
		t.Errorf("the table is\n%s(%v)", text.String(), err)
	}
}

func TestSeedsWithoutEvaluationsHaveNoAggregate(t *testing.T) {
	cfg := tinyProblem("ddqn")
	cfg.Train.Steps = 100
	r := trainSeeds(t, cfg, 2, TrainOptions{RunDir: filepath.Join(t.TempDir(), "all"), Workers: 2, NoEval: true})
	var text strings.Builder
	if err := r.WriteTable(&text); err != nil || r.IQM != nil || r.CI95 != nil ||
		!strings.Contains(text.String(), "return in training") {
		t.Errorf("the report is %+v, the table\n%s(%v)", r, text.String(), err)
	}
}

func TestFoldersOfSeedsAreToldFromRuns(t *testing.T) {
	cfg, dir := tinyProblem("ppo"), t.TempDir()
	cfg.Train.Steps = 100
	all, single := filepath.Join(dir, "all"), filepath.Join(dir, "tiny")
	trainTo(t, cfg, dir, TrainOptions{NoEval: true})
	trainSeeds(t, cfg, 2, TrainOptions{RunDir: all, Workers: 1, NoEval: true})
	for what, c := range map[string]struct {
		n    int
		opt  TrainOptions
		want string
	}{
		"a folder that is taken": {2, TrainOptions{RunDir: all}, "holds a run already"},
		"another number":         {3, TrainOptions{RunDir: all, Resume: true}, "seeds: got 3, want the 2"},
		"a run":                  {2, TrainOptions{RunDir: single, Resume: true}, "not a folder of several seeds"},
		"none":                   {0, TrainOptions{RunDir: filepath.Join(dir, "new")}, "seeds: got 0"},
	} {
		_, err := TrainSeeds(t.Context(), cfg, c.n, c.opt)
		refused(t, what, err, c.want)
	}
	cfg.PPO.LR /= 2
	_, err := TrainSeeds(t.Context(), cfg, 2, TrainOptions{RunDir: all, Resume: true})
	refused(t, "other settings", err, "ppo: ")
	if n, err := SeedsOf(single); n != 0 || err != nil {
		t.Errorf("a run holds %d seeds (%v)", n, err)
	}
	if err := os.WriteFile(filepath.Join(all, seedsFile), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = SeedsOf(all)
	refused(t, "a broken list", err, seedsFile)
}

// Two seeds with certain but different results: resamples contain one, the other or both, so the interval includes both
// results. An interval over episodes alone would not.
func TestIntervalOverSeedsTellsTheirDifference(t *testing.T) {
	ones, threes := make([]float64, 20), make([]float64, 20)
	for i := range ones {
		ones[i], threes[i] = 1, 3
	}
	if ci := bootstrapSeeds(1, [][]float64{ones, threes}); ci != [2]float64{1, 3} {
		t.Errorf("the interval is %v, want [1 3]", ci)
	}
	if ci := bootstrapSeeds(1, [][]float64{ones}); ci != [2]float64{1, 1} || math.IsNaN(ci[0]) {
		t.Errorf("one seed, without spread: %v", ci)
	}
}
