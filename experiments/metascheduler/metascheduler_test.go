package metascheduler

import (
	"cmp"
	"encoding/json"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"clustergym/experiments/study"
	"clustergym/internal/raced"
)

// settingsFor returns the settings of a form.
func settingsFor(t *testing.T, quick bool) settings {
	t.Helper()
	s, err := study.Settings[settings]("meta-scheduler", files, study.Plan{Quick: quick}, defaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSettingsAreInOrder(t *testing.T) {
	for _, quick := range []bool{false, true} {
		s := settingsFor(t, quick)
		if s.TraceSeed == 0 || s.FirstSeed == 1 {
			t.Errorf("quick %v: judged on workloads of seed %d, with learners from %d on: settings were chosen with those",
				quick, s.TraceSeed, s.FirstSeed)
		}
		for _, m := range s.Methods {
			if err := s.loop(m).Validate(); err != nil {
				t.Errorf("%s: %v", m, err)
			}
		}
		if !quick && (s.Seeds < 5 || !slices.Equal(s.Methods, methods())) {
			t.Errorf("the full form has %d learners of each of %v", s.Seeds, s.Methods)
		}
	}
	s := settingsFor(t, false)
	held := s.windows()
	s.TraceSeed = 0
	for _, w := range s.windows() {
		if slices.Contains(held, w) {
			t.Errorf("workload %d is one of both streams", w)
		}
	}
	s.Rounds, s.Noise, s.Poor.Crowding, s.Poor.Methods, s.Family.Methods = 0, 2, 5, nil, []string{"reptile"}
	s.Methods = []string{"mls", "mls"}
	s.PPO.LR, s.PPO.Epochs, s.PPO.Width = 0, 0, 5000
	err := s.Validate()
	for _, fault := range []string{
		"rounds: got 0, want a whole number from 1 to 10000", "noise: got 2, want a number from 0 to 1",
		"poor.crowding: got 5, want a number from 0 to 4",
		"poor.methods: got [], want one or more of mls, tailored", `methods[1]: got "mls", want each name once`,
		`family.methods[0]: got "reptile", want one of maml, joint`,
		"ppo.lr: got 0, want a number above 0, at most 1", "ppo.epochs: got 0, want a whole number from 1 to 1000",
		"ppo.width: got 5000, want a whole number from 0 to 4096",
	} {
		if err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("%v, want the fault %s", err, fault)
		}
	}
	if err != nil && strings.Contains(err.Error(), "poor.noise") {
		t.Errorf("poor.noise is no key: %v", err)
	}
}

// Every key of ppo changes the cells of that learner and no others. Cells do not say the keys if they are the recorded
// ones, so that folders from before there were keys stay valid.
func TestKeysOfPPO(t *testing.T) {
	inputs := func(set ...string) map[string]string {
		all, err := Study().Cells(study.Plan{Changes: study.Changes{Set: set}})
		if err != nil {
			t.Fatalf("%v: %v", set, err)
		}
		in := map[string]string{}
		for _, c := range all {
			b, err := json.Marshal(c.Input)
			if err != nil {
				t.Fatal(err)
			}
			in[c.Key] = string(b)
		}
		return in
	}
	recorded := inputs()
	for key, in := range recorded {
		if strings.Contains(in, `"PPO"`) || strings.Contains(in, `"Width":0`) {
			t.Errorf("%s: the input is %s", key, in)
		}
	}
	for key, same := range inputs("ppo.width=32") { // that of all
		if same != recorded[key] {
			t.Errorf("ppo.width as it is changes %s", key)
		}
	}
	keys := reflect.TypeFor[proximal]()
	for i := range keys.NumField() {
		name := keys.Field(i).Tag.Get("yaml")
		value := map[string]string{"gamma": "0.9", "lambda": "0.9", "clip": "0.1", "lr": "0.002"}[name]
		changed := inputs("ppo." + name + "=" + cmp.Or(value, "3"))
		for key, in := range changed {
			if is := in != recorded[key]; is != strings.HasPrefix(key, "learn/ppo/") {
				t.Errorf("ppo.%s: %s has changed: %v", name, key, is)
			}
		}
	}
}

// smallStudy returns a study of some seconds, with one learner of each of two methods.
func smallStudy(t *testing.T) study.Study {
	s := settingsFor(t, true)
	s.Seeds, s.Windows, s.Jobs, s.Rounds, s.AfterRounds, s.FreeRounds, s.FreeEpisodes, s.MetaSteps = 1, 5, 16, 1, 1, 2, 2,
		1
	s.Methods = []string{"mls", "ppo"}
	s.PPO.Width = 16
	s.Poor = poor{1, 2, 6, 4, 12, 3, 4, 1, 2, 2, 1, 1, 1, 1, []string{"mls", "no-meta"}}
	s.Family = family{1, 1, 2, 3, 1, 0.1, families()}
	small := Study()
	small.Expected = nil
	small.Cells = func(study.Plan) ([]study.Cell, error) { return s.cells(study.Plan{}) }
	return small
}

// A small study gives the same figures with one worker and with two after an interruption. The value of the learned
// speeds shows even here: the planner that uses them beats a rule that does not know them, and by more after the
// change.
func TestTheStudyInSmall(t *testing.T) {
	if testing.Short() || raced.On {
		t.Skip("it trains")
	}
	var want string
	for _, workers := range []int{1, 2} {
		dir, s := t.TempDir(), smallStudy(t)
		run := func(only string) *study.Report {
			r, err := study.Run(t.Context(), s,
				study.Options{Plan: study.Plan{Quick: true, Workers: workers}, Dir: dir, Only: only})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		if workers == 2 { // some of it first
			run("learn/mls")
			if len(keptCells(t, dir)) != 1 {
				t.Errorf("kept after the first part: %v", keptCells(t, dir))
			}
		}
		r := run("")
		if len(keptCells(t, dir)) != 8 {
			t.Errorf("kept at the end: %v", keptCells(t, dir))
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
			v, _, ok := r.Results.Find(table, map[string]string{"method": "planner"}, "vs least-interference, %")
			if !ok {
				t.Fatalf("no planner in table %s", table)
			}
			return v.Value
		}
		usual, changed := against("stationary"), against("changed")
		if !(usual < -3) || !(changed < -10) {
			t.Errorf(
				"the planner is at %.1f %% and after the change at %.1f %% of least interference, want less than -3 and -10", usual,
				changed)
		}
		var text strings.Builder
		if err := r.WriteTable(&text); err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(text.String(), "\n") {
			// of a table
			if n := utf8.RuneCountInString(line); n > 120 && strings.Contains(line, "   ") &&
				!strings.HasPrefix(line, "source") {
				t.Errorf("a line of %d columns: %s", n, line)
			}
		}
		for _, table := range []string{
			"stationary", "rivals", "changed", "changed-rivals", "tails", "adaptation", "samples", "again", "curve", "after",
			"poor", "poor-changed", "poor-adaptation", "grid", "poor-curve", "poor-after", "family",
		} {
			if len(r.Results.Lines(table)) == 0 {
				t.Errorf("table %s is empty", table)
			}
		}
	}
}

// keptCells returns the files of the cells that a study's folder keeps.
func keptCells(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(filepath.Join(dir, "cells"), func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".json" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Imitation reaches 2 hours. Learning ends at 1 hour, which it reaches after 14 episodes, and within 95 % after 10.
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
