package operate_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
	"clustergym/cmd/gymctl/internal/operate"
	"clustergym/cmd/gymctl/internal/options"
	"clustergym/cmd/gymctl/internal/research"
	"clustergym/distributed/workqueue"
	"clustergym/internal/fault"
	"clustergym/nets/kernel"
)

// taskOf returns a task without input.
func taskOf(t *testing.T, kind, name string) workqueue.Task {
	t.Helper()
	task, err := workqueue.NewTask(kind, name, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

func TestWorkerDoesTasksAndShowsThem(t *testing.T) {
	t.Chdir(t.TempDir())
	release := make(chan struct{})
	defer func(was func(string) map[string]workqueue.Handler) { operate.TaskKinds = was }(operate.TaskKinds)
	operate.TaskKinds = func(data string) map[string]workqueue.Handler {
		return map[string]workqueue.Handler{"data": func(_ context.Context, j *workqueue.Job) (workqueue.Outcome, error) {
			if j.Task.Name == "wrong" {
				return workqueue.Outcome{}, fault.Mistakef("--data: there is no such folder")
			}
			j.Progress(3, 10)
			<-release
			return workqueue.Outcome{Value: data}, nil
		}}
	}
	clitest.Write(t, "token", "correct-horse-battery\n")
	token, err := workqueue.ReadToken("token")
	if err != nil {
		t.Fatal(err)
	}
	c, err := workqueue.Listen(t.Context(),
		workqueue.Options{Listen: "127.0.0.1:0", Dir: "queue", Job: "topdrl", Token: token, Build: options.BuildIdentity(),
			Kernels: kernel.Set()})
	if err != nil {
		t.Fatal(err)
	}
	clitest.Wrong(t, []string{"worker", c.URL()}, "refuses the token: want --token-file")
	clitest.Wrong(t, []string{"worker", c.URL(), "--token-file", "token", "--job", "dally"},
		"does the job topdrl and not dally")
	clitest.Wrong(t, []string{"worker", c.URL(), "--token-file", "none"}, "token file: open none")
	clitest.Wrong(t, []string{"worker", c.URL(), "--slots", "0"}, "--slots: got 0, want 1 or more")
	clitest.Wrong(t, []string{"worker", c.URL(), "--workers", "0"}, "--workers: got 0, want 1 or more")
	clitest.Wrong(t, []string{"worker", c.URL(), "--json"}, "--json goes with --status")
	clitest.Wrong(t, []string{"worker"}, "want one URL")
	clitest.Wrong(t, []string{"worker", "http://x:1"}, `address: got "http://x:1"`)

	worked := make(chan int, 1)
	go func() {
		code, _, said := clitest.Run(t, "worker", c.URL(), "--token-file", "token", "--data", "there", "--dir", ".")
		if !strings.Contains(said, "works for job topdrl") || !strings.Contains(said, "all is done") {
			t.Errorf("the worker said %q", said)
		}
		worked <- code
	}()
	value := make(chan string, 1)
	go func() {
		if err := c.Do(t.Context(), taskOf(t, "data", "cell-7"), nil,
			func(r *workqueue.Result) error { value <- string(r.Value); return nil }); err != nil {
			t.Error(err)
		}
	}()
	status := []string{"worker", c.URL(), "--token-file", "token", "--status"}
	out := ""
	for end := time.Now().Add(time.Minute); !strings.Contains(out, "30 %") &&
		time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		out = clitest.Must(t, status...)
	}
	if !strings.HasPrefix(out,
		"job topdrl: 0 done, 1 in work (0 on the command's machine), 0 waiting, 0 failed, 0 differ\n") ||
		!strings.Contains(out, "cell-7") || !strings.Contains(out, "30 %") {
		t.Errorf("got %s", out)
	}
	var d struct {
		Jobs []workqueue.Status `json:"jobs"`
	}
	clitest.Strict(t, clitest.Must(t, append(status, "--json")...), &d)
	if len(d.Jobs) != 1 || d.Jobs[0].Working != 1 || len(d.Jobs[0].Workers) != 1 ||
		d.Jobs[0].Workers[0].Tasks[0].Done != 3 {
		t.Errorf("got %+v", d)
	}
	close(release)
	if v := <-value; v != `"there"` {
		t.Errorf("got %s", v)
	}
	err = c.Do(t.Context(), taskOf(t, "data", "wrong"), nil, nil)
	if !cli.IsMistake(err) || !strings.HasSuffix(err.Error(), ": --data: there is no such folder") {
		t.Errorf("got %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if code := <-worked; code != cli.ExitDone {
		t.Errorf("exit code %d", code)
	}
	if list, err := filepath.Glob("gymctl-worker-*"); err != nil || len(list) > 0 {
		t.Errorf("%v: %v is left", err, list)
	}
	if code, _, said := clitest.Run(t, status...); code != cli.ExitFailed || !strings.Contains(said, "cannot be reached") {
		t.Errorf("exit code %d, said %q", code, said)
	}
}

func TestQueueFlags(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct {
		args string
		want string // "" = right
	}{
		{"--workers=1", ""}, {"--workers=0", "--workers: got 0, want 1 or more, or 0 with --listen or --queue"},
		{"--workers=0 --listen 127.0.0.1:0 --token-file token", ""},
		{"--workers=0 --listen 127.0.0.1:0", "use token-file FILE with a secret"},
		{"--workers=-1 --listen 127.0.0.1:0", "--workers: got -1, want 0 or more"},
	} {
		var q options.QueueFlags
		verb := research.ExperimentListVerb(&cli.App{Stdout: &cli.Output{}})
		q.Flags(verb)
		if err := verb.ParseFlags(strings.Fields(c.args)); err != nil {
			t.Fatal(err)
		}
		if err := q.Check(verb); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.args, err, c.want)
		}
	}
	for _, c := range []struct{ args, want string }{ // rules among flags are cobra's
		{"--listen=", "--listen: got \"\", want HOST:PORT"},
		{"--listen a:1 --queue b:1", "--queue does not go with --listen"},
		{"--tries 4", "--tries goes with --listen or --queue"}, {"--token-file x", "--token-file goes with"},
	} {
		code, _, said := clitest.Run(t, append([]string{"experiment", "run", "topdrl"}, strings.Fields(c.args)...)...)
		if code != cli.ExitMistake || !strings.Contains(said, c.want) {
			t.Errorf("%s: exit code %d, said %q, want %q", c.args, code, said, c.want)
		}
	}
	a := &cli.App{Stdout: &cli.Output{}, Stderr: &cli.Locked{W: &strings.Builder{}}, Now: time.Now}
	q := options.QueueFlags{}
	if c, err := q.Open(t.Context(), options.NewQueueProgress(a), "x", "."); c != nil || err != nil {
		t.Errorf("without flags: got %v, %v", c, err)
	}
	clitest.Write(t, "token", "correct-horse-battery\n")
	q = options.QueueFlags{Listen: "127.0.0.1:0", TokenFile: "token", Tries: 3, AckWait: time.Minute, Saves: time.Minute,
		Workers: 2}
	c, err := q.Open(t.Context(), options.NewQueueProgress(a), "my run", ".")
	if err != nil {
		t.Fatal(err)
	}
	if s := c.Status(); s.Job != "my-run" {
		t.Errorf("got job %s", s.Job)
	}
	if err := c.Do(t.Context(), taskOf(t, "x", ""), func(context.Context, int) error { return nil }, nil); err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat("queue"); err == nil {
		t.Error("the queue's folder is left")
	}
}

func TestTheLineOfAQueue(t *testing.T) {
	s := workqueue.Status{Done: 12, Working: 3, Here: 1, Waiting: 5, Failed: 1, Differ: 1,
		Workers: []workqueue.WorkerStatus{
			{Name: "a", Tasks: []workqueue.TaskStatus{{Name: "cell-1", Done: 1, All: 4}, {Name: "cell-2"}}},
			{Name: "b", Silent: time.Minute},
		}}
	if got, want := strings.Join(options.QueueParts(s), " | "),
		"12 of 21 tasks | 3 in work, 1 here | 1 failed | 1 DIFFER | 2 workers, 1 silent | a: cell-1 25 % | a: cell-2"; got !=
		want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
