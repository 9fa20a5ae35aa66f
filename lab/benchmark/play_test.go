package benchmark

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clustergym/env"
	"clustergym/env/envtest"
	"clustergym/internal/fault"
	"clustergym/internal/raced"
	"clustergym/internal/statistic"
	"clustergym/lab/arena"
	"clustergym/traces"
)

// contents returns the files below dir by name.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		all[rel] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// cheap are tasks that are played in a moment.
func cheap(t *testing.T, v *Version) []*Task {
	t.Helper()
	tasks, err := v.Match("queuerank-users-causal", "dagplace-fork-join", "workerplace-pairs")
	if err != nil {
		t.Fatal(err)
	}
	return tasks
}

func rule(name, what string) *Policy {
	return &Policy{Name: name, Kind: KindRule, Rules: []string{what}}
}

// The scale is made of these two: on the windows on which references were recorded, random play has a score of exactly
// 0, and the best rule one of exactly 1.
func TestRandomScoresZeroAndTheBestRuleOne(t *testing.T) {
	v := Numbered(1)
	for _, c := range []struct {
		policy string
		want   float64
	}{{"random", 0}, {"best", 1}} {
		r, err := v.Play(t.Context(), rule(c.policy, c.policy), Options{Dir: t.TempDir(), Tasks: cheap(t, v), Workers: 2})
		if err != nil {
			t.Fatal(err)
		}
		for i := range r.Tasks {
			task, _ := v.Task(r.Tasks[i].Task)
			ref, ok := v.Reference(task)
			if !ok {
				t.Fatalf("%s: no reference is recorded", task.Name)
			}
			if got := ref.Score(statistic.Mean(r.Tasks[i].Means())); !(got-c.want <= 1e-9 && c.want-got <= 1e-9) {
				t.Errorf("%s: %s scores %v, want %v", task.Name, c.policy, got, c.want)
			}
			if ref.Score(ref.Random) != 0 || ref.Score(ref.Best) != 1 {
				t.Errorf("%s: the ends of the scale are %v and %v", task.Name, ref.Score(ref.Random), ref.Score(ref.Best))
			}
		}
		e, err := v.Entry(r)
		if err != nil {
			t.Fatal(err)
		}
		for name, s := range e.Scores {
			if len(s) != 1 || s[0] != c.want {
				t.Errorf("%s: %s has the scores %v, want %v", name, c.policy, s, c.want)
			}
		}
	}
}

// Every task has references of its own hash, and its best rule is one of its rules.
func TestReferencesAreRecorded(t *testing.T) {
	v := Numbered(1)
	for i := range v.Tasks {
		task := &v.Tasks[i]
		ref, ok := v.Reference(task)
		if !ok || !slices.Contains(task.Rules, ref.Rule) || ref.Random <= ref.Best {
			t.Errorf("%s: reference %+v (recorded %v)", task.Name, ref, ok)
		}
	}
}

// A call that is interrupted again and again ends with the same bytes as one that is not, with any number of workers.
func TestInterruptedRunsContinueToTheSameBytes(t *testing.T) {
	v := Numbered(1)
	tasks := cheap(t, v)[1:] // without the workload, which is generated at every call
	whole := t.TempDir()
	if _, err := v.Play(t.Context(), rule("random", "random"), Options{Dir: whole, Tasks: tasks, Workers: 1}); err != nil {
		t.Fatal(err)
	}
	want := contents(t, whole)
	dir := t.TempDir()
	interrupted := 0
	for i := range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		games := 0
		_, err := v.Play(ctx, rule("random", "random"), Options{Dir: dir, Tasks: tasks, Workers: 3, Game: func(_ string, done, _ int) {
			if games = max(games, done); games > 150*i {
				cancel()
			}
		}})
		cancel()
		if err == nil {
			break
		}
		if !errors.Is(err, fault.ErrInterrupted) {
			t.Fatal(err)
		}
		interrupted++
		if _, err := v.ReadResults(dir); err == nil {
			t.Fatal("an unfinished folder has results")
		}
	}
	if interrupted == 0 {
		t.Error("nothing was interrupted")
	}
	got := contents(t, dir)
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s differs after %d interruptions", name, interrupted)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d files, want %d", len(got), len(want))
	}
	// What is there is not played again, and a folder takes further tasks but no other policy.
	if _, err := v.Play(t.Context(), rule("random", "random"),
		Options{Dir: dir, Tasks: tasks[:1], Game: func(string, int, int) { t.Error("played again") }}); err != nil {
		t.Error(err)
	}
	if again := contents(t, dir); again[resultsFile] != want[resultsFile] {
		t.Error("fewer tasks forget the others")
	}
	if _, err := v.Play(t.Context(), rule("best", "best"), Options{Dir: dir, Tasks: tasks}); err == nil ||
		!strings.Contains(err.Error(), "name another folder") {
		t.Errorf("another policy in the same folder: %v", err)
	}
}

func TestPoliciesAreChosenByTask(t *testing.T) {
	v := Numbered(1)
	tasks, err := v.Match("gpupick-*", "jobselect-users-none", "dagplace-erdos")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		rules []string
		want  string
		fault string
	}{
		{[]string{"random"}, "random@slots random@slots random@slots random@slots random@slots", ""},
		{[]string{"sjf+skip"}, "- - - - -", ""}, // not without run times, and not where it would replace the agent
		{[]string{"fifo+skip"}, "fifo+skip - - - -", ""},
		{[]string{"heft"}, "- - - - heft", ""},
		{[]string{"tetris@slots", "gpupick-helios-*=rack@slots"}, "- tetris@slots tetris@slots rack@slots -", ""},
		{[]string{"jobselect-*=sjf@slots"}, "", "which estimates: none hides"},
	} {
		var got []string
		p := &Policy{Rules: c.rules}
		for _, task := range tasks {
			cfg, err := task.Config()
			if err != nil {
				t.Fatal(err)
			}
			name, err := p.rule(v, task, &cfg)
			if c.fault != "" {
				if err == nil || !strings.Contains(err.Error(), c.fault) {
					t.Errorf("%v: %v, want %q", c.rules, err, c.fault)
				}
				break
			}
			if err != nil {
				t.Errorf("%v: %v", c.rules, err)
			}
			if name == "" {
				name = "-"
			}
			got = append(got, name)
		}
		if c.fault == "" && strings.Join(got, " ") != c.want {
			t.Errorf("%v: got %s, want %s", c.rules, strings.Join(got, " "), c.want)
		}
	}
}

func TestPoliciesThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		p    Policy
		want string
	}{
		{Policy{Kind: KindRule, Rules: []string{"best"}}, "printable characters"},
		{Policy{Name: "a", Kind: KindRule}, "name a policy"},
		{Policy{Name: "a", Kind: KindCheckpoint}, "want the folder"},
		{Policy{Name: "a", Kind: KindModel}, "want the file of a model"},
		{Policy{Name: "a", Kind: KindExternal}, "want a program"},
		{Policy{Name: "a", Kind: "other"}, `got "other"`},
		{Policy{Name: "a", Kind: KindRule, Rules: []string{"best"}, Set: []string{"env.load=0.1"}},
			"not what it is judged on"},
		{Policy{Name: "a", Kind: KindRule, Rules: []string{"best"}, Set: []string{"eval.windows=1"}},
			"not what it is judged on"},
	} {
		if err := c.p.Validate(); err == nil || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v, want %q", c.p, err, c.want)
		}
	}
	v := Numbered(1)
	if _, err := v.Task("jobselect-user-causal"); err == nil ||
		!strings.Contains(err.Error(), "did you mean jobselect-users-causal?") {
		t.Errorf("a misspelt task: %v", err)
	}
	if _, err := v.Match("nothing-*"); err == nil || !strings.Contains(err.Error(), "chooses none") {
		t.Errorf("a pattern without tasks: %v", err)
	}
}

// The environments of tasks keep the contract of environments: of each environment the tasks whose episodes are short,
// since every environment's own tests check the contract with all its settings. With -short one task of each is
// checked.
func TestEnvironmentsKeepTheContract(t *testing.T) {
	if raced.On {
		t.Skip("the race detector sees the same environments in lab/envs; make unit runs this test")
	}
	v := Numbered(1)
	seen := map[string]bool{}
	tasks, err := v.Match("jobselect-users-exact", "preempt-users-exact", "queuerank-gangs-exact", "gpupick-*",
		"delayoffer-gangs-exact", "dagplace-*", "workerplace-*")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		cfg, err := task.Config()
		if err != nil {
			t.Fatal(err)
		}
		if testing.Short() && seen[cfg.Env.ID] {
			continue
		}
		seen[cfg.Env.ID] = true
		t.Run(task.Name, func(t *testing.T) {
			open := func() (env.Env, error) { return nil, nil }
			w, err := arena.NewScenario(&cfg)
			if err != nil {
				t.Fatal(err)
			}
			if cfg.Simulated() {
				open = func() (env.Env, error) { return w.NewEnv(traces.Test, 1) }
			} else {
				p, err := arena.NewProblem(&cfg)
				if err != nil {
					t.Fatal(err)
				}
				open = p.Open
			}
			envtest.Run(t, func() env.Env {
				e, err := open()
				if err != nil {
					t.Fatal(err)
				}
				return e
			}, envtest.Cap(1_000_000), envtest.Episodes(1))
		})
	}
	for i := range v.Tasks {
		cfg, err := v.Tasks[i].Config()
		if err != nil {
			t.Fatal(err)
		}
		if !seen[cfg.Env.ID] {
			t.Errorf("no task with %s was checked", cfg.Env.ID)
		}
	}
}

// Models are chosen as runs are: a folder for each task, a folder or a file of one task, or files of the only task.
func TestModelsAreChosenByTask(t *testing.T) {
	v := Numbered(1)
	task, err := v.Task("dagplace-erdos")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for _, name := range []string{"all/dagplace-erdos/seed-1.onnx", "all/dagplace-erdos/seed-2.onnx",
		"all/dagplace-erdos/notes.txt", "flat/a.onnx", "b.onnx", "empty/x"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		models []string
		only   bool
		want   string // the models, or the error
	}{
		{[]string{"all"}, false, "all/dagplace-erdos/seed-1.onnx all/dagplace-erdos/seed-2.onnx"},
		{[]string{"all", "dagplace-*=b.onnx"}, false, "b.onnx"},
		{[]string{"dagplace-erdos=flat", "dagplace-erdos=b.onnx"}, false, "flat/a.onnx b.onnx"},
		{[]string{"workerplace-*=flat"}, false, ""},
		{[]string{"flat"}, false, ""},
		{[]string{"flat"}, true, "flat/a.onnx"},
		{[]string{"flat/a.onnx", "b.onnx"}, true, "flat/a.onnx b.onnx"},
		{[]string{"b.onnx"}, false, "model b.onnx: say which task it plays, as TASK=b.onnx"},
		{[]string{"dagplace-erdos=empty"}, false, "empty holds no models: want *.onnx"},
		{[]string{"absent"}, true, "model absent: no such file or directory"},
	} {
		p := &Policy{Name: "m", Kind: KindModel, Models: c.models}
		files, err := p.files(task, c.only)
		got := filepath.ToSlash(strings.Join(files, " "))
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%v, only task %v: %q, want %q", c.models, c.only, got, c.want)
		}
	}
}
