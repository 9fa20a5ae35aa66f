package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"clustergym/distributed/workqueue"
	"clustergym/lab/arena"
	"clustergym/lab/config"
)

// testToken is the token of queues of tests.
const testToken = "a-token-of-tests"

// hired opens a queue with n workers in this process. If leave is not 0, a worker leaves in good order that long after
// it begins, and another comes; every second one stays twice as long, because on a busy machine none would get anything
// done in a fixed time. check ends the test's workers and reports what went wrong with them.
func hired(t *testing.T, n int,
	leave time.Duration) (open func(ctx context.Context, dir string) (*workqueue.Coordinator, error), check func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var q *workqueue.Coordinator
	work := func(name, url string) {
		defer wg.Done()
		for k := 0; ctx.Err() == nil; k++ {
			ctx, cancel := ctx, context.CancelFunc(func() {})
			if leave > 0 {
				ctx, cancel = context.WithTimeout(ctx, leave<<min(k/2, 10))
			}
			err := workqueue.Work(ctx, workqueue.WorkOptions{
				URL: url, Token: testToken, Name: fmt.Sprintf("%s-%d", name, k), Workers: 1, Build: "test", Dir: t.TempDir(),
				Handlers: map[string]workqueue.Handler{TrainKind: TrainHandler(), arena.GamesKind: arena.GamesHandler()},
			})
			cancel()
			if err == nil { // all is done
				return
			}
			if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("worker %s: %v", name, err)
				return
			}
		}
	}
	open = func(ctx context.Context, dir string) (_ *workqueue.Coordinator, err error) {
		if q, err = workqueue.Listen(ctx, workqueue.Options{
			Listen: "127.0.0.1:0", Dir: filepath.Join(dir,
				"queue"), Job: "test", Token: testToken, Build: "test", Workers: 1, SaveEvery: time.Nanosecond,
		}); err != nil {
			return nil, err
		}
		for i := range n {
			wg.Add(1)
			go work(fmt.Sprintf("w%d", i), q.URL())
		}
		return q, nil
	}
	return open, func() {
		t.Helper()
		stop()
		wg.Wait()
		if q == nil {
			t.Fatal("no queue was opened")
		}
		if d := q.Disputes(); len(d) > 0 {
			t.Errorf("%d tasks gave different results, the first %s", len(d), d[0].Task.Name)
		}
	}
}

// Seeds that workers train, which leave in the middle and hand their runs over, have the runs that they have on one
// machine.
func TestSeedsOnWorkersAreTheRunsThatTheyAreHere(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "jobs.csv")
	var b strings.Builder
	b.WriteString("submit_time,duration,num_gpu\n")
	for i := range 900 {
		fmt.Fprintf(&b, "%d,%d,%d\n", 40*i, 300+i*977%9000, 1<<(i%4))
	}
	if err := os.WriteFile(trace, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	jobs := tinyRun("ppo")
	jobs.Trace.File = trace
	jobs.Eval.Whole = false
	for _, c := range []struct {
		what  string
		cfg   config.Config
		leave time.Duration
	}{
		{"CartPole", tinyProblem("ppo"), 0},
		{"a trace, imitation and workers that leave", func() config.Config {
			c := jobs
			c.Train.Imitate, c.Train.ImitateSteps, c.Train.ImitateEpochs = "sjf@slots", 400, 2
			return c
		}(), 700 * time.Millisecond},
		{"DDQN with a replay and workers that leave", func() config.Config {
			c := jobs
			c.Agent = "ddqn"
			return c
		}(), 700 * time.Millisecond},
	} {
		here, away := filepath.Join(t.TempDir(), "all"), filepath.Join(t.TempDir(), "all")
		want := trainSeeds(t, c.cfg, 2, TrainOptions{RunDir: here, Workers: 2})
		open, check := hired(t, 2, c.leave)
		got := trainSeeds(t, c.cfg, 2,
			TrainOptions{RunDir: away, Queue: func(ctx context.Context) (*workqueue.Coordinator,
				error) {
				return open(ctx, away)
			}})
		check()
		for _, r := range want.Runs {
			sameFiles(t, fmt.Sprintf("%s, seed %d", c.what, r.Seed), contents(t, SeedDir(away, r.Seed)),
				contents(t, SeedDir(here, r.Seed)), c.leave > 0)
		}
		if g, w := documentOf(t, got), documentOf(t, want); g != w {
			t.Errorf("%s: the report is\n%.600s\nwant\n%.600s", c.what, g, w)
		}
		if _, err := os.Stat(filepath.Join(away, "queue")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the queue's folder is left: %v", c.what, err)
		}
	}
}

// documentOf returns a report without folders and times.
func documentOf(t *testing.T, r *SeedsReport) string {
	t.Helper()
	c := *r
	c.Dir = ""
	c.Runs = append(c.Runs[:0:0], c.Runs...)
	for i := range c.Runs {
		c.Runs[i].PerSecond, c.Runs[i].Interval = nil, nil
		c.Runs[i].Checkpoint = filepath.Base(c.Runs[i].Checkpoint)
	}
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Games that workers play give the document of one machine, to the last digit, with checkpoints, random policies,
// searches in hindsight, a search ahead, the whole part, and on several rungs.
func TestGamesOnWorkersGiveTheSameDocument(t *testing.T) {
	t.Chdir(t.TempDir()) // results of games are kept in runs/
	cfg := tinyRun("ppo")
	run := trained(t, tinyRun("ppo"), 300)
	cfg.Eval.Policies = append(cfg.Eval.Policies, "hindsight:sjf+skip", "rollout:sjf+skip")
	cfg.Eval.Hindsight, cfg.Eval.Rollout.Budget.Rollouts = 20, 8
	_, want := evaluate(t, cfg, arena.EvalOptions{Checkpoints: []string{run}, Workers: 2})
	open, check := hired(t, 3, 0)
	games := 0
	_, got := evaluate(t, cfg, arena.EvalOptions{Checkpoints: []string{run}, Queue: open, Game: func(done, all int) { games = done*1000 + all }})
	check()
	if got != want {
		t.Errorf("workers give another document:\n%.900s\nwant\n%.900s", got, want)
	}
	if games != (4*8+6)*1001 {
		t.Errorf("the last call of Game was %d of %d", games/1000, games%1000)
	}
	if left, err := filepath.Glob("runs/*"); err != nil || len(left) > 0 {
		t.Errorf("%v is left (%v)", left, err)
	}

	rungs, err := arena.ParseRungs([]string{"none", "history", "exact"})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Eval.Policies = []string{"fifo+skip", "sjf+skip"}
	own := jobSelect(&cfg)
	own.Forecast = "off"
	run = trained(t, cfg, 300)
	base, err := rungs.Base(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ladder := func(opt arena.EvalOptions) string {
		l, err := arena.CompareRungs(t.Context(), base, rungs, opt)
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	want = ladder(arena.EvalOptions{Checkpoints: []string{run}, Workers: 2})
	open, check = hired(t, 2, 0)
	got = ladder(arena.EvalOptions{Checkpoints: []string{run}, Queue: open})
	check()
	if got != want {
		t.Errorf("workers give another ladder:\n%.900s\nwant\n%.900s", got, want)
	}
}

// An evaluation that is interrupted keeps the games that were played, and goes on.
func TestAnInterruptedComparisonGoesOn(t *testing.T) {
	t.Chdir(t.TempDir())
	cfg := tinyRun("ppo")
	_, want := evaluate(t, cfg, arena.EvalOptions{Workers: 2})
	ctx, cancel := context.WithCancel(t.Context())
	open, check := hired(t, 1, 0)
	opt := arena.EvalOptions{Workers: 1, Queue: open, Game: func(done, _ int) {
		if done == 9 {
			cancel()
		}
	}}
	_, err := arena.Evaluate(ctx, cfg, opt)
	check()
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "the same command goes on") {
		t.Fatalf("got %v", err)
	}
	kept, err := filepath.Glob("runs/eval-*/games/*")
	if err != nil || len(kept) < 9 {
		t.Fatalf("%d games are kept (%v), want 9 or more", len(kept), err)
	}
	open, check = hired(t, 2, 0)
	opt = arena.EvalOptions{Workers: 1, Queue: open}
	_, got := evaluate(t, cfg, opt)
	check()
	if got != want {
		t.Errorf("it goes on to another document:\n%.900s\nwant\n%.900s", got, want)
	}
}
