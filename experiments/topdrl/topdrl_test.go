package topdrl

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clustergym/configs"
	"clustergym/experiments/study"
	"clustergym/internal/fault"
	"clustergym/internal/raced"
	"clustergym/lab/arena"
	"clustergym/lab/config"
)

// smallSettings makes a study that takes half a minute.
func smallSettings(study.Plan) (settings, error) {
	s, err := settingsOf(study.Plan{Quick: true})
	if err != nil {
		return s, err
	}
	s.Set = append(s.Set, "ddqn.learning_starts=500", "env.window=128", "env.warm=128", "train.checkpoint_every=8192")
	s.Steps, s.Windows, s.Validation, s.Gap.States = 16384, 3, 2, 40
	s.Hindsight.Noisy = 8
	s.Tune.Generations, s.Tune.Population, s.Tune.Windows = 1, 4, 2
	s.Stages[0].Jobs, s.Stages[0].Agents = 9000, []string{"clone", "ppo", "dqn-deeprm"}
	s.Stages[1].Jobs = 9000
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
		cells, err := s.cells(study.Plan{})
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
	var input *fault.Mistake
	if !errors.As(err, &input) || !strings.Contains(err.Error(), "philly_jobs.csv.gz") {
		t.Errorf("a folder without the data: %v", err)
	}
}

// A small study with one worker and with three: the figures are the same, and the agent, though hardly trained, beats
// the weakest of the six by a wide margin.
func TestTheStudyInSmall(t *testing.T) {
	if testing.Short() || raced.On {
		t.Skip("it trains")
	}
	var want string
	for _, workers := range []int{1, 3} {
		dir := t.TempDir()
		r, err := study.Run(t.Context(), studyWith(smallSettings),
			study.Options{Plan: study.Plan{Quick: true, Workers: workers}, Dir: dir})
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
		v, _, ok := r.Results.Find("paper", map[string]string{"stage": "precursor-32", "policy": "fifo + random"},
			"ppo vs it (%)")
		if !ok || !(v.Value > 5) {
			t.Errorf("%d workers: throughput of the agent against fifo + random: %+v %%, want more than 5 (found: %v)", workers,
				v, ok)
		}
		for _, table := range []string{"throughput-precursor-32", "jct-precursor-32", "jct-stops-32"} {
			for _, l := range r.Results.Lines(table) {
				if v := l.Cells[2].Value; l.Labels["policy"] == best && !(math.Abs(v-100) < 1e-9) {
					t.Errorf("%s: the headroom itself is %v %% of the headroom", table, v)
				}
			}
		}
		for _, table := range []string{"throughput-precursor-32", "jct-precursor-32", "rest-precursor-32",
			"variants-precursor-32", "jct-stops-32", "gap", "pick"} {
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

// The figures of a window are plausible, gangs on closer GPUs cost less, and what is best in hindsight is no worse than
// SJF.
func TestAWindowIsMeasured(t *testing.T) {
	s, err := smallSettings(study.Plan{})
	if err != nil {
		t.Fatal(err)
	}
	st := &s.Stages[0]
	cfg, err := s.config(st, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	w, err := arena.NewScenario(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	b := &study.Bench{Workers: 2}
	rows, err := s.playRules(t.Context(), b, w, st)
	if err != nil {
		t.Fatal(err)
	}
	rival, err := cfg.Rival("hold")
	if err != nil {
		t.Fatal(err)
	}
	more, err := s.playHindsight(t.Context(), b, w, st, &rival.Sched)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]map[string]float64{}
	for _, r := range append(rows, more...) {
		if r.Labels["window"] != "0" {
			continue
		}
		p := r.Labels["policy"]
		if got[p] == nil {
			got[p] = map[string]float64{}
		}
		got[p][r.Metric] = r.Value
	}
	// The six, five that skip, three and two with forecasts, and two in hindsight.
	if len(got) != 18 {
		t.Errorf("%d schedules, want 18: %v", len(got), got)
	}
	for p, m := range got {
		if !(m["throughput_jobs_per_h"] > 0 && m["finished_work_share"] > 0 && m["finished_work_share"] < 1 &&
			m["jct_h"] > m["wait_h"] && m["jct_p99_h"] > m["jct_h"]) {
			t.Errorf("%s: %v", p, m)
		}
		if !(m["closeness"] >= 0 && m["closeness"] <= 1 && m["running_jobs"] > 0 && m["running_jobs"] <= 32) ||
			math.IsNaN(m["comm_cost"]) {
			t.Errorf("%s: %v", p, m)
		}
	}
	if a, b := got[stronger],
		got["sjf+skip + random"]; !(a["comm_cost"] < b["comm_cost"] && a["closeness"] > b["closeness"] &&
		a["jct_h"] < b["jct_h"]) {
		t.Errorf("closest GPUs %v, random ones %v", a, b)
	}
	for _, c := range [][2]string{{best, bestOrder}, {bestOrder, stronger}} {
		if a, b := got[c[0]],
			got[c[1]]; !(a["jct_h"] <= b["jct_h"] && a["throughput_jobs_per_h"] >= b["throughput_jobs_per_h"]) {
			t.Errorf("%s: %v, %s: %v", c[0], a, c[1], b)
		}
	}
}

func TestBadSettings(t *testing.T) {
	if raced.On {
		t.Skip("one goroutine beside those of decompression, in which no race can be; make unit runs this test")
	}
	for _, c := range []struct {
		change func(s *settings)
		want   string
	}{
		{func(s *settings) { s.Agents[0].Network = "precursr" },
			`agents[0].network: got "precursr", want one of mlp, precursor, shipped, tables; did you mean precursor?`},
		{func(s *settings) { s.Agents[0].Name = "rules" }, `agents[0].name: got "rules"`},
		{func(s *settings) { s.Agents[0].Imitate = "sjf@slots" },
			`agents[0].imitate: got "sjf@slots", want hold@slots, index@slots or nothing`},
		{func(s *settings) { s.Stages[0].Agents[0] = "nobody" },
			`stages[0].agents[0]: got "nobody", want the name of an agent, once`},
		{func(s *settings) { s.Hindsight.Noisy = 1 }, `hindsight.noisy: got 1, want 3 to`},
		{func(s *settings) { s.Stages[0].Agents[0] = "clone-stops" }, `stages[0].agents[0]`},
		{func(s *settings) { s.Stages[0].Cluster = "topdrl" },
			`stages[0].cluster: got "topdrl", want the name or the file of a cluster`},
		{func(s *settings) { s.Stages[1].Profile = "phily" }, `stages[1]: got "stops-32", want a workload on a cluster`},
		{func(s *settings) { s.Set = append(s.Set, "ppo.lrr=1") },
			`set[7]: got "ppo.lrr=1", want KEY=VALUE of a training (ppo.lrr: unknown key; did you mean`},
		{func(s *settings) { s.Set = append(s.Set, "train.steps=500") },
			`set.train.steps: got 500, want 400000: steps sets it`},
		{func(s *settings) { s.Agents[1].Set = []string{"trace.seed=5"} },
			`agents[1].set.trace.seed: got 5, want 2: stages[N] sets it`},
		{func(s *settings) { s.Agents[1].Set = []string{"env.load=0.5"} },
			`agents[1].set.env.load: got 0.5, want 1.1: the set of all agents sets it`},
		{func(s *settings) { s.Pick.Jobs = 600 }, `pick.windows: got 40, want 2 to the 4 windows`},
		{func(s *settings) { s.Agents[1].Set = []string{"ppo.network.hidden=[0]"} }, `ppo.network.hidden`},
		{func(s *settings) { s.Pick.Sets = []pickSet{{Agent: "gpupick"}} }, `pick.sets[0].agent: got "gpupick", want one of`},
		{func(s *settings) { s.Pick.Sets = []pickSet{{Agent: picker, Set: []string{"env.table=true"}}} },
			`pick.sets[0].set.env.table: got true`},
		{func(s *settings) { s.Pick.Sets = []pickSet{{Agent: picker, Set: []string{"ppo.lr=-1"}}} },
			`pick.agents[1]: got "gpupick-ppo", want an agent that can train (ppo.lr: got -1`},
	} {
		s, err := settingsOf(study.Plan{Quick: true})
		if err != nil {
			t.Fatal(err)
		}
		c.change(&s)
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// What sets change of an agent's network and learner is what it trains with, and everything else is as without them.
func TestSettingsOfNetworks(t *testing.T) {
	raced.Alone(t)
	s, err := settingsOf(study.Plan{Quick: true, Changes: study.Changes{Set: []string{
		"agents[4].set+=ppo.network.hidden=[64, 64]", "agents[4].set+=ppo.lr=0.0005", "agents[2].set+=train.imitate_epochs=3",
		"pick.sets+={agent: gpupick-ppo, set: ['ppo.network.hidden=[32]', ppo.lr=0.001]}",
	}}})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := settingsOf(study.Plan{Quick: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range plain.Stages[0].Agents {
		var cfg [2]config.Config
		for i, from := range []*settings{&plain, &s} {
			if cfg[i], err = from.config(&from.Stages[0], from.agent(name), 1); err != nil {
				t.Fatal(err)
			}
		}
		changes, err := configs.Diff(cfg[0], cfg[1])
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]int{"ppo-mlp": 2, "clone": 1}[name]
		if name == "ppo-mlp" && (!slices.Equal(cfg[1].PPO.Network.Hidden, []int{64, 64}) || cfg[1].PPO.LR != 5e-4) ||
			len(changes) < want || want == 0 && len(changes) > 0 {
			t.Errorf("%s: %v", name, changes)
		}
	}
	for _, name := range plain.Pick.Agents {
		cfg, err := s.pickConfig(name, 1)
		if err != nil {
			t.Fatal(err)
		}
		if changed := slices.Equal(cfg.PPO.Network.Hidden, []int{32}) && cfg.PPO.LR == 1e-3; changed != (name == picker) {
			t.Errorf("%s: %v", name, cfg.PPO)
		}
	}
	// Kept cells are found again: their input has no key that it did not have.
	text, err := json.Marshal(plain.Pick)
	if want := `{"Jobs":20000,"Seed":31,"Steps":120000,"Seeds":1,"Windows":40,"Agents":["gpupick-shared","gpupick-ppo"]}`; err != nil || string(text) != want {
		t.Errorf("the input of plays is %s, want %s", text, want)
	}
}
