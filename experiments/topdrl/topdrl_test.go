package topdrl

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clustergym/experiments/arena"
	"clustergym/experiments/run"
	"clustergym/experiments/study"
	"clustergym/experiments/workload"
)

// smallSettings makes a study that takes half a minute.
func smallSettings(p study.Plan) (*settings, error) {
	s, err := settingsOf(study.Plan{Quick: true})
	if err != nil {
		return nil, err
	}
	st := &s.Stages[0]
	st.Jobs, st.PPO, st.DDQN = 9000, 12288, 1000
	s.Windows, s.Gap.States = 3, 40
	s.Set = append(s.Set, "train.eval_every=12288", "eval.validation=2", "ddqn.learning_starts=500", "env.window=128", "env.warm=128")
	s.Pick.Jobs, s.Pick.Steps, s.Pick.Windows = 2000, 8192, 3
	return s, nil
}

func TestSettingsAreInOrder(t *testing.T) {
	for _, quick := range []bool{false, true} {
		s, err := settingsOf(study.Plan{Quick: quick})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(); err != nil {
			t.Error(err)
		}
		cells, err := s.cells()
		if err != nil {
			t.Fatal(err)
		}
		agents := 0
		for _, c := range cells {
			if strings.HasPrefix(c.Key, "train/") {
				agents++
			}
		}
		if agents < 3 {
			t.Errorf("quick %v: %d trainings", quick, agents)
		}
	}
	_, err := settingsOf(study.Plan{Data: t.TempDir()})
	var input *workload.InputError
	if !errors.As(err, &input) || !strings.Contains(err.Error(), "philly_jobs.csv.gz") {
		t.Errorf("a folder without the data: %v", err)
	}
}

// A small study with one worker and with three: the figures are the same, and the agent, though hardly trained, beats the
// weakest of the six by a wide margin.
func TestTheStudyInSmall(t *testing.T) {
	if testing.Short() || raced {
		t.Skip("it trains")
	}
	var want string
	for _, workers := range []int{1, 3} {
		dir := t.TempDir()
		r, err := run.RunStudy(t.Context(), studyWith(smallSettings), run.PaperOptions{Plan: study.Plan{Quick: true, Workers: workers}, Dir: dir})
		if err != nil {
			t.Fatal(err)
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
		v, _, ok := r.Results.Find("throughput", map[string]string{"stage": "precursor-32", "policy": "fifo + random"}, "ppo vs it, throughput")
		if !ok || !(v.Value > 5) {
			t.Errorf("%d workers: throughput of the agent against fifo + random: %+v %%, want more than 5 (found: %v)", workers, v, ok)
		}
		for _, table := range []string{"throughput", "finish", "variants", "gap", "pick"} {
			if len(r.Results.Lines(table)) == 0 {
				t.Errorf("table %s is empty", table)
			}
		}
		for _, l := range r.Results.Lines("gap") {
			if l.Cells[0].Value < 0 {
				t.Errorf("placement %v is better than the best by %v %%", l.Labels, -l.Cells[0].Value)
			}
		}
	}
}

// The figures of a window are plausible, and gangs on closer GPUs cost less.
func TestAWindowIsMeasured(t *testing.T) {
	s, err := smallSettings(study.Plan{})
	if err != nil {
		t.Fatal(err)
	}
	st := &s.Stages[0]
	cfg, err := s.config(st, "ppo", 1)
	if err != nil {
		t.Fatal(err)
	}
	w, err := arena.NewWorld(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := s.playRules(t.Context(), &study.Bench{Workers: 2}, w, &stage{Name: st.Name, Cluster: st.Cluster, PPO: 1})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]map[string]float64{}
	for _, r := range rows {
		if r.Labels["window"] != "0" {
			continue
		}
		p := r.Labels["policy"]
		if got[p] == nil {
			got[p] = map[string]float64{}
		}
		got[p][r.Metric] = r.Value
	}
	// The six with two admissions each, and closest-b with skip for two selectors.
	if len(got) != 14 {
		t.Errorf("%d schedules, want 14: %v", len(got), got)
	}
	for p, m := range got {
		if !(m["throughput_jobs_per_h"] > 0 && m["finished_work_share"] > 0 && m["finished_work_share"] < 1 && m["jct_h"] > m["wait_h"]) {
			t.Errorf("%s: %v", p, m)
		}
		if !(m["closeness"] >= 0 && m["closeness"] <= 1 && m["running_jobs"] > 0 && m["running_jobs"] <= 32) || math.IsNaN(m["comm_cost"]) {
			t.Errorf("%s: %v", p, m)
		}
	}
	// Gangs on closer GPUs cost less.
	if a, b := got["sjf+skip + closest-b"], got["sjf+skip + random"]; !(a["comm_cost"] < b["comm_cost"] && a["closeness"] > b["closeness"] && a["jct_h"] < b["jct_h"]) {
		t.Errorf("closest GPUs %v, random ones %v", a, b)
	}
}
