package lookahead

import (
	"path/filepath"
	"strings"
	"testing"

	"clustergym/experiments/study"
	"clustergym/experiments/study/studytest"
	"clustergym/internal/raced"
)

// smallSettings makes a study that takes some seconds.
func smallSettings(p study.Plan) (settings, error) {
	s, err := settingsOf(study.Plan{Quick: true, Seeds: 1})
	for i := range s.Scenarios {
		c := &s.Scenarios[i]
		c.Windows = 3
		c.Set = append(c.Set, "trace.synth.jobs=4000", "env.window=64", "env.warm=64", "eval.hindsight=40",
			"eval.rollout.budget=16")
		for k := range c.Tuned {
			c.Tuned[k].Tune.Generations, c.Tuned[k].Tune.Population, c.Tuned[k].Tune.Windows = 2, 4, 4
		}
		for k := range c.Agents {
			c.Agents[k].Set = append(c.Agents[k].Set, "train.imitate_steps=600", "train.steps=256", "ppo.steps=8",
				"eval.validation=2")
		}
	}
	return s, err
}

func TestSettingsAreInOrder(t *testing.T) {
	if raced.On {
		t.Skip("one goroutine beside those of decompression, in which no race can be; make unit runs this test")
	}
	for _, quick := range []bool{false, true} {
		s, err := settingsOf(study.Plan{Quick: quick})
		if err != nil {
			t.Fatal(err)
		}
		recorded := 0
		for _, c := range s.Scenarios {
			if c.File != "" {
				recorded++
			}
		}
		if want := map[bool]int{false: 2, true: 0}[quick]; recorded != want || len(s.Scenarios) != 4+recorded {
			t.Errorf("quick %v: %d scenarios, %d of them recorded", quick, len(s.Scenarios), recorded)
		}
	}
	for want, bad := range map[string]func(s *settings){
		"seeds":                func(s *settings) { s.Seeds = 0 },
		"scenarios[1].name":    func(s *settings) { s.Scenarios[1].Name = s.Scenarios[0].Name },
		"scenarios[0].preset":  func(s *settings) { s.Scenarios[0].Preset = "quikstart" },
		"scenarios[0].windows": func(s *settings) { s.Scenarios[0].Windows = 1 },
		"scenarios[0].policies": func(s *settings) {
			s.Scenarios[0].Policies, s.Scenarios[0].Versus = nil,
				nil
		},
		"scenarios[0].versus": func(s *settings) { s.Scenarios[0].Versus = []string{"sjf"} },
		"scenarios[0].tuned": func(s *settings) {
			s.Scenarios[0].Agents, s.Scenarios[0].Tuned[0].Name = nil,
				"a b"
		},
		`scenarios[1].tuned.only: got "widht"`:                  func(s *settings) { s.Scenarios[1].Tuned[0].Tune.Only = []string{"widht"} },
		`scenarios[2].tuned.only: got "base", want one of left`: func(s *settings) { s.Scenarios[2].Tuned[0].Tune.Only = []string{"base"} },
		"scenarios[2].tuned.searches: got true, want false":     func(s *settings) { s.Scenarios[2].Tuned[0].Searches = true },
		"scenarios[0].agents":                                   func(s *settings) { s.Scenarios[0].Agents[0].Name = "a b" },
		`scenarios[0].agents: got "hodl"`:                       func(s *settings) { s.Scenarios[0].Agents[0].Weights = "hodl" },
		"scenario generated-exact, set env.estimats=exact": func(s *settings) {
			s.Scenarios[0].Set = []string{
				"env.estimats=exact"}
		},
		"scenario generated-causal, set eval.rollout.budget=0": func(s *settings) {
			s.Scenarios[1].Set = append(
				s.Scenarios[1].Set, "eval.rollout.budget=0")
		},
		"scenarios[0].set.train.imitate_steps": func(s *settings) {
			s.Scenarios[0].Agents[0].Set = append(s.Scenarios[0].Agents[0].Set, "train.imitate_steps=-1")
		},
	} {
		s, err := settingsOf(study.Plan{})
		if err != nil {
			t.Fatal(err)
		}
		bad(&s)
		if err := s.Validate(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// The figures do not depend on the number of workers, and hindsight is at least as good as its base.
func TestTheStudyInSmall(t *testing.T) {
	if testing.Short() || raced.On {
		t.Skip("some seconds")
	}
	r, want := studytest.Small(t, studyWith(smallSettings), "gain-generated-causal")
	for _, text := range []string{"generated causal; estimates: history (causal)", "imitation", ">rollout:sjf+skip<",
		` font-weight="700">imitation<`} {
		if !strings.Contains(want, text) {
			t.Errorf("nothing says %q", text)
		}
	}
	for _, scenario := range []string{"generated-exact", "generated-causal"} {
		at := func(policy string) float64 {
			v, _, ok := r.Results.Find(scenario, map[string]string{"policy": policy}, "mean JCT (h)")
			if !ok || !(v.Value > 0) {
				t.Fatalf("no %s in %s", policy, scenario)
			}
			return v.Value
		}
		if best, base := at("hindsight:sjf+skip"), at("sjf+skip"); best > base {
			t.Errorf("%s: hindsight %v h, sjf+skip %v h", scenario, best, base)
		}
		_, _ = at("imitation"), at("rollout:sjf+skip")
	}
}

func TestScenariosWithoutTheirFileAreLeftOut(t *testing.T) {
	s, err := settingsOf(study.Plan{})
	if err != nil {
		t.Fatal(err)
	}
	if all, absent, err := s.given(study.Plan{}); err != nil || len(all) != 4 ||
		strings.Join(absent, " ") != "Philly-exact Philly-causal" {
		t.Errorf("%d scenarios, without %v: %v", len(all), absent, err)
	}
	dir := t.TempDir()
	if _, _, err := s.given(study.Plan{Data: dir}); err == nil ||
		!strings.Contains(err.Error(), filepath.FromSlash("philly/philly_jobs.csv.gz")) {
		t.Errorf("an empty data folder: %v", err)
	}
}
