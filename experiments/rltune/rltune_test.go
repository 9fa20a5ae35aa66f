package rltune

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/experiments/study"
	"clustergym/experiments/study/studytest"
	"clustergym/internal/raced"
	"clustergym/lab/workload"
	"clustergym/simulator/cluster"
)

// smallSettings makes a study that takes some seconds.
func smallSettings(study.Plan) (settings, error) {
	s, err := settingsOf(study.Plan{Quick: true, Seeds: 1})
	s.Workloads = s.Workloads[1:]
	for i := range s.Workloads {
		s.Workloads[i].Jobs, s.Workloads[i].Window = 1600, 64
	}
	s.Agents, s.Steps = []string{"fcfs", "sjf"}, 4096
	return s, err
}

func TestSettingsAreInOrder(t *testing.T) {
	raced.Alone(t)
	for _, quick := range []bool{false, true} {
		s, err := settingsOf(study.Plan{Quick: quick})
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]int{false: 4, true: 3}[quick]; len(s.Workloads) != want {
			t.Errorf("quick %v: %d workloads, want %d", quick, len(s.Workloads), want)
		}
	}
	for want, bad := range map[string]func(s *settings){
		"workloads: got \"a b\"":          func(s *settings) { s.Workloads[0].Name = "a b" },
		"workloads: got \"philly-liked\"": func(s *settings) { s.Workloads[0].Name = "philly-liked" },
		"jobs":                            func(s *settings) { s.Workloads[0].Jobs = 100 },
		"window":                          func(s *settings) { s.Workloads[3].Window = 1 },
		"load":                            func(s *settings) { s.Workloads[0].Load = 0 },
		"agents: got \"sfj\"":             func(s *settings) { s.Agents[0] = "sfj" },
		"agents: got \"fcfs\"":            func(s *settings) { s.Agents[1] = "fcfs" },
		"seeds":                           func(s *settings) { s.Seeds = 0 },
		"steps":                           func(s *settings) { s.Steps = 1 },
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

// Generated workloads depend on their number of jobs alone, run on their clusters, and users have run times of their
// own.
func TestGeneratedWorkloads(t *testing.T) {
	if got := slices.Sorted(maps.Keys(generators)); !slices.Equal(got, slices.Sorted(slices.Values(generated()))) {
		t.Errorf("generators %v", got)
	}
	s, err := settingsOf(study.Plan{Quick: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.Workloads {
		w := &s.Workloads[i]
		w.Jobs = 3000
		jobs, err := w.jobs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		again, err := w.jobs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		spec, err := workload.ClusterSpec(w.Cluster)
		if err != nil {
			t.Fatal(err)
		}
		c, err := cluster.New(spec)
		if err != nil {
			t.Fatal(err)
		}
		last := time.Duration(0)
		users := map[string]bool{}
		for k := range jobs {
			j := &jobs[k]
			if _, ok := c.Request(j); !ok || j.Submit < last || j.Work < time.Second || j.GPUs > widest ||
				fmt.Sprint(*j) != fmt.Sprint(again[k]) {
				t.Fatalf("%s: job %d is %+v, and then %+v", w.Name, k, *j, again[k])
			}
			last = j.Submit
			users[j.User] = true
		}
		if len(jobs) != w.Jobs || len(users) < 5 {
			t.Errorf("%s: %d jobs of %d users", w.Name, len(jobs), len(users))
		}
	}
}

// The figures do not depend on the number of workers; the base is as good as itself.
func TestTheStudyInSmall(t *testing.T) {
	if testing.Short() || raced.On {
		t.Skip("some seconds")
	}
	r, _ := studytest.Small(t, studyWith(smallSettings), "delay-exact-helios-like")
	for _, rung := range rungs {
		for _, base := range []string{"fcfs", "sjf"} {
			v, _, ok := r.Results.Find("delay-"+rung, map[string]string{"workload": "pai-like", "base": base, "policy": itself},
				"wait (h)")
			o, _, also := r.Results.Find("bases-"+rung, map[string]string{"workload": "pai-like", "policy": base}, "wait (h)")
			if !ok || !also || v.Value != o.Value {
				t.Errorf("%s, %s: the base waits %v h, and %v h among the bases", rung, base, v.Value, o.Value)
			}
			for _, policy := range append([]string{learned, unplaced, filled, best}, handmade...) {
				if v, _,
					ok := r.Results.Find("jct-"+rung, map[string]string{"workload": "pai-like", "base": base, "policy": policy},
					"JCT (h)"); !ok || !(v.Value > 0) {
					t.Errorf("%s, %s: no %s", rung, base, policy)
				}
			}
		}
	}
}

func TestWorkloadsWithoutTheirFileAreLeftOut(t *testing.T) {
	s, err := settingsOf(study.Plan{})
	if err != nil {
		t.Fatal(err)
	}
	if all, absent, err := s.given(study.Plan{}); err != nil || len(all) != 3 ||
		!slices.Equal(absent, []string{"Philly"}) {
		t.Errorf("%d workloads, without %v, %v", len(all), absent, err)
	}
	if _, _, err := s.given(study.Plan{Data: t.TempDir()}); err == nil ||
		!strings.Contains(err.Error(), "it has none of "+filepath.Join("philly", "philly_jobs.csv.gz")) {
		t.Errorf("an empty folder: %v", err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "philly", "philly_jobs.csv.gz")
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path,
		[]byte("timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66.0,2,132.0,11cb48\n"), 0o600); err !=
		nil {
		t.Fatal(err)
	}
	all, _, err := s.given(study.Plan{Data: dir})
	if err != nil || len(all) != 4 {
		t.Fatalf("%d workloads, %v", len(all), err)
	}
	if _, err := all[3].jobs(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "1 of its jobs ask for 2 to 160 GPUs, want 2560 or more") {
		t.Errorf("a short file: %v", err)
	}
}

// The network and budget of the agents are settings. What does not depend on them is not computed again.
func TestTheAgentIsASetting(t *testing.T) {
	inputs := func(set ...string) map[string]string {
		t.Helper()
		cells, err := Study().Cells(study.Plan{Quick: true, Changes: study.Changes{Set: set}})
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for _, c := range cells {
			b, err := json.Marshal(c.Input)
			if err != nil {
				t.Fatal(err)
			}
			kind, _, _ := strings.Cut(c.Key, "/")
			all[kind] += string(b)
		}
		return all
	}
	plain := inputs()
	for set, want := range map[string]string{
		"agent.ppo.lr=0.002": "train", "agent.ppo.network.hidden=[64, 64]": "train", "steps=32768": "train",
		"agent.env.args+=visible=32": "bases play train",
	} {
		var changed []string
		now := inputs(set)
		for _, kind := range slices.Sorted(maps.Keys(plain)) {
			if now[kind] != plain[kind] {
				changed = append(changed, kind)
			}
		}
		if got := strings.Join(changed, " "); got != want {
			t.Errorf("--set %s: the inputs of %s change, want those of %s", set, got, want)
		}
	}
}
