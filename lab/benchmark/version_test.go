package benchmark

import (
	"encoding/json"
	"flag"
	"os"
	"testing"

	"clustergym/internal/raced"
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/lab/envs"
	"clustergym/lab/report"
	"clustergym/lab/workload"
)

// hashesTo is for a new version alone.
var hashesTo = flag.String("hashes", "", "write the hashes of all tasks to this file, in place of comparing them")

// The hash of a task covers its jobs, so that neither a change of a preset nor one of a generator goes unnoticed. With
// -short one task of each environment is checked.
func TestTasksAreThoseOfTheVersion(t *testing.T) {
	if raced.On {
		t.Skip("the race detector sees tasks opened in TestRandomScoresZeroAndTheBestRuleOne, which takes less time; make unit runs this test")
	}
	v := Numbered(1)
	if len(v.Tasks) < 24 || len(v.Tasks)%4 != 0 {
		t.Errorf("%d tasks, want 24 or more, and a multiple of four so that a quarter of the scores is a whole number",
			len(v.Tasks))
	}
	checkHashes(t, v, func(task *Task, cfg *config.Config, w *arena.Scenario) {
		if cfg.Simulated() {
			if have := w.Count(2); have < cfg.Eval.Windows {
				t.Errorf("%s: %d test windows, want %d", task.Name, have, cfg.Eval.Windows)
			}
		}
	})
}

// The hashes of version 2, of each of which one draw is generated. With -short one task of each environment is checked.
// Recorded tasks are checked where their traces have been fetched.
func TestTasksOfVersion2AreThose(t *testing.T) {
	if raced.On {
		t.Skip("the race detector sees streams in lab/stream; make unit runs this test")
	}
	checkHashes(t, Numbered(2), func(*Task, *config.Config, *arena.Scenario) {})
}

// checkHashes checks the hashes of v's tasks, and calls also for each of these.
func checkHashes(t *testing.T, v *Version, also func(task *Task, cfg *config.Config, w *arena.Scenario)) {
	t.Helper()
	seen, hashes := map[string]bool{}, map[string]string{}
	for i := range v.Tasks {
		task := &v.Tasks[i]
		cfg, err := task.Config()
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if _, err := workload.Located(cfg.Trace.File); err != nil {
			t.Logf("%s is not checked: %v", task.Name, err)
			continue
		}
		if testing.Short() && seen[cfg.Env.ID] {
			continue
		}
		seen[cfg.Env.ID] = true
		w, err := arena.NewScenario(&cfg)
		if err == nil {
			hashes[task.Name], err = task.Digest(w, &cfg)
		}
		if err != nil {
			t.Errorf("%s: %v", task.Name, err)
			continue
		}
		if got := hashes[task.Name]; *hashesTo == "" && got != task.Hash {
			t.Errorf("%s: hash %s, want %s", task.Name, got, task.Hash)
		}
		also(task, &cfg, w)
	}
	writeHashes(t, hashes)
}

// writeHashes writes hashes to the file of -hashes, if there is one.
func writeHashes(t *testing.T, hashes map[string]string) {
	t.Helper()
	if *hashesTo == "" {
		return
	}
	b, err := json.Marshal(hashes)
	if err == nil {
		err = os.WriteFile(*hashesTo, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestTasksCoverEnvironmentsAndRungs(t *testing.T) {
	v := Numbered(1)
	rungs := map[string]map[string]bool{}
	for i := range v.Tasks {
		task := &v.Tasks[i]
		cfg, err := task.Config()
		if err != nil {
			t.Fatal(err)
		}
		kind := cfg.Env.ID
		if d := cfg.Descriptor(); d.Stops(cfg.Env.Settings) {
			kind += " preemptive"
		}
		if rungs[kind] == nil {
			rungs[kind] = map[string]bool{}
		}
		rungs[kind][report.RungOf(cfg.Estimates())] = true
		if cfg.Trace.File != "" {
			t.Errorf("%s has recorded jobs", task.Name)
		}
		for _, name := range append([]string{Random}, task.Rules...) {
			p, err := cfg.Rival(name)
			if err != nil {
				t.Errorf("%s: %v", task.Name, err)
			}
			if p.Hindsight {
				t.Errorf("%s: %s knows the windows", task.Name, name)
			}
		}
	}
	for _, kind := range []string{"JobSelect-v1", "JobSelect-v1 preemptive", "QueueRank-v1", "GPUPick-v1",
		"DelayOffer-v1"} {
		if !rungs[kind]["causal"] || !rungs[kind]["exact"] {
			t.Errorf("%s has the rungs %v, want causal and exact", kind, rungs[kind])
		}
	}
	for _, id := range []string{"DAGPlace-v1", "WorkerPlace-v1"} {
		if rungs[id] == nil || envs.Find(id) == nil {
			t.Errorf("no task has %s", id)
		}
	}
}
