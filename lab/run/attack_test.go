package run

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clustergym/configs"
	"clustergym/distributed/workqueue"
	"clustergym/internal/raced"
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/lab/envs"
)

// secret is the first line of a file of the worker's machine.
const secret = "root:x:0:0:s3cret-of-the-worker"

// victim makes a folder with a file that no task may open and one that no task may write into.
func victim(t *testing.T) (file, folder string) {
	t.Helper()
	dir := t.TempDir()
	file, folder = filepath.Join(dir, "passwd"), filepath.Join(dir, "ssh")
	if err := os.WriteFile(file, []byte(secret+"\n"+strings.Repeat("more\n", 9)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	return file, folder
}

// job returns a task in the hands of a handler, as a worker makes it.
func job(t *testing.T, kind string, input any, needs map[string]string) *workqueue.Job {
	t.Helper()
	text, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	return &workqueue.Job{Task: workqueue.Task{Kind: kind, Input: text}, Dir: t.TempDir(), Needs: needs, Workers: 1}
}

// refusedTask runs a handler and expects an error with a text that tells nothing of the worker's files.
func refusedTask(t *testing.T, h workqueue.Handler, j *workqueue.Job, what, want string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	_, err := h(ctx, j)
	switch {
	case err == nil:
		t.Errorf("%s: the task was done", what)
	case strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "root:"):
		t.Errorf("%s: the error quotes the worker's file: %v", what, err)
	case !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n"):
		t.Errorf("%s: got %v, expected one sentence with %q", what, err, want)
	}
}

// encoded returns a configuration as a task carries it.
func encoded(t *testing.T, cfg *config.Config) string {
	t.Helper()
	b, err := configs.Encode(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A task brings its files by keys and names. Both come from the task, and a key was a folder's name on the worker.
func TestATaskPlacesNoFileElsewhere(t *testing.T) {
	file, folder := victim(t)
	cfg := tinyRun("ppo")
	text := encoded(t, &cfg)
	traced := cfg
	traced.Trace.File = "jobs.csv"
	tracedText := encoded(t, &traced)
	up := strings.Repeat("../", 20) + strings.TrimPrefix(folder, "/")
	for _, c := range []struct{ what, config, key, name, want string }{
		{"a key that leads out", text, up, "authorized_keys", "files are for"},
		{"an absolute key", text, folder, "authorized_keys", "files are for"},
		{"a key that begins well", text, "trace.file/" + up, "authorized_keys", "files are for"},
		{"an unknown key", text, "trace", "authorized_keys", "files are for"},
		{"an empty key", text, "", "authorized_keys", "files are for"},
		{"a key with escapes", text, "\x1b]0;x\x07", "a", "files are for"},
		{"a file that the configuration does not name", text, "trace.file", "jobs.csv", "its configuration names none"},
		{"a name that leads out", tracedText, "trace.file", up + "/authorized_keys", "no name of a file"},
		{"an absolute name", tracedText, "trace.file", filepath.Join(folder, "a"), "no name of a file"},
		{"a name for Windows", tracedText, "trace.file", `..\..\a`, "no name of a file"},
		{"the folder", tracedText, "trace.file", ".", "no name of a file"},
		{"its parent", tracedText, "trace.file", "..", "no name of a file"},
		{"no name", tracedText, "trace.file", "", "no name of a file"},
	} {
		names, needs := map[string]string{c.key: c.name}, map[string]string{c.key: file}
		refusedTask(t, TrainHandler(),
			job(t, TrainKind, trainTask{Format: trainFormat, Run: "run", Config: c.config, Files: names}, needs), c.what, c.want)
		games := map[string]any{"format": 1, "base": c.config, "on": c.config, "files": names, "windows": 1}
		refusedTask(t, arena.GamesHandler(), job(t, arena.GamesKind, games, needs), c.what+" of games", c.want)
	}
	refusedTask(t, TrainHandler(),
		job(t, TrainKind,
			trainTask{Format: trainFormat, Run: "run", Config: tracedText, Files: map[string]string{"trace.file": "jobs.csv"}},
			nil),
		"a file that is named and not brought", "has not brought it")
	for _, run := range []string{"", ".", "..", "a/b", `a\b`, "/tmp/a", up} {
		refusedTask(t, TrainHandler(), job(t, TrainKind, trainTask{Format: trainFormat, Run: run, Config: text}, nil),
			"run "+run, "the task calls the run directory")
	}
	if err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if path != folder {
			t.Errorf("%s was made", path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// A configuration can name files in many ways. On a worker each of them would be a file of the worker.
func TestATaskReadsNoFileOfTheWorker(t *testing.T) {
	file, _ := victim(t)
	cfg := tinyRun("ppo")
	for _, set := range []string{
		"trace.file=" + file, "trace.file=get:philly", "trace.profiles=" + file, "cluster=" + file, "cluster=get:philly",
		"env.estimates=gbdt:" + file, "train.imitate_from=" + filepath.Dir(file),
		"env.args=[trace.file=" + file + "]", "env.args=[cluster=" + file + "]", "env.args=[trace.profiles=" + file + "]",
		`env.args=["estimates=gbdt:` + file + `"]`,
		"trace={file: " + file + "}",
	} {
		c := cfg
		c.Edit()
		if strings.HasPrefix(set, "train.imitate_from") {
			c.Train.Imitate, c.Train.ImitateSteps = "sjf@slots", 400
		}
		if err := c.Set(set); err != nil {
			t.Fatal(set, err)
		}
		text := encoded(t, &c)
		refusedTask(t, TrainHandler(), job(t, TrainKind, trainTask{Format: trainFormat, Run: "run", Config: text}, nil), set,
			"has not brought it")
		if c.Train.ImitateFrom != "" {
			continue
		}
		refusedTask(t, arena.GamesHandler(),
			job(t, arena.GamesKind, map[string]any{"format": 1, "base": text, "on": text, "windows": 1}, nil), set+" of games",
			"has not brought it")
	}
	// The comparison's own estimates.
	on := cfg
	on.Edit()
	if err := on.Set("env.estimates=gbdt:" + file); err != nil {
		t.Fatal(err)
	}
	games := map[string]any{"format": 1, "base": encoded(t, &cfg), "on": encoded(t, &on), "windows": 1,
		"games": []map[string]int{{"Contestant": 0}}}
	refusedTask(t, arena.GamesHandler(), job(t, arena.GamesKind, games, nil), "estimates of a comparison",
		"has not brought it")
	games = map[string]any{"format": 1, "base": encoded(t, &cfg), "on": encoded(t, &cfg), "windows": 1,
		"checkpoints": 1 << 60}
	refusedTask(t, arena.GamesHandler(), job(t, arena.GamesKind, games, nil), "checkpoints without end",
		"has not brought the one with number 0")
}

// Whatever key of whatever environment holds a path: a scenario is loaded without it, or refused.
func TestNoKeyOfAConfigurationOpensAFileOfTheWorker(t *testing.T) {
	if raced.On {
		t.Skip("one request at a time; the race detector sees workers in TestGamesOnWorkersGiveTheSameDocument; make unit runs this test")
	}
	file, _ := victim(t)
	tried := 0
	for _, id := range envs.IDs() {
		usual := config.For(id)
		usual.Trace.Synth.Jobs = 3000
		for _, key := range configs.AllKeys(&usual) {
			for _, value := range []string{file, "gbdt:" + file, "[" + file + "]", "[trace.file=" + file + "]"} {
				c := usual
				if c.Env.Settings != nil {
					c.Edit()
				}
				if c.Set(key+"="+value) != nil || c.Validate() != nil || c.Name != usual.Name {
					continue
				}
				tried++
				_, err := arena.NewScenarioOf(t.Context(), &c, job(t, TrainKind, nil, nil), nil)
				if err != nil && (strings.Contains(err.Error(), "s3cret") ||
					!strings.Contains(err.Error(), "has not brought it") && !strings.Contains(err.Error(), "brought")) {
					t.Errorf("%s, %s=%s: got %v", id, key, value, err)
				}
			}
		}
	}
	if tried < 20 {
		t.Errorf("%d keys were tried", tried)
	}
}

// A run that a worker sends back keeps the configuration that was asked for: later commands open the files that it
// names.
func TestARunFromAWorkerKeepsItsConfiguration(t *testing.T) {
	cfg := tinyRun("ppo")
	for name, c := range map[string]struct {
		text string
		ok   bool
	}{
		"as asked":   {encoded(t, &cfg), true},
		"a file":     {strings.Replace(encoded(t, &cfg), "file: \"\"", "file: /etc/passwd", 1), false},
		"one more":   {encoded(t, &cfg) + "# x\n", false},
		"nothing":    {"", false},
		"not at all": {"-", false},
	} {
		dir := t.TempDir()
		if c.text != "-" {
			if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := asAsked(dir, &cfg); (err == nil) != c.ok {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
