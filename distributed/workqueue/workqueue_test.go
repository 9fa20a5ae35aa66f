//go:build unix

package workqueue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"clustergym/internal/fault"
	"clustergym/internal/shortage"
)

// digest returns the digest of a task of a test.
func digest(name string) string {
	h := sha256.Sum256([]byte(name))
	return hex.EncodeToString(h[:])
}

// lines collects what is said.
type lines struct {
	mu   sync.Mutex
	all  []string
	t    testing.TB
	whom string
}

func (l *lines) say(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, fmt.Sprintf(format, args...))
	if testing.Verbose() {
		fmt.Fprintf(os.Stderr, "%s %s: %s\n", time.Now().Format("05.000"), l.whom, l.all[len(l.all)-1])
	}
}

func (l *lines) has(part string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(strings.Join(l.all, "\n"), part)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.all, "\n")
}

// until waits until a condition holds, far longer than that can take.
func until(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if cond() {
			return
		}
	}
	t.Fatalf("after a minute: not yet %s", what)
}

// testToken is that of the coordinators and workers of tests that name none; noToken is that of a worker that has none.
const (
	testToken = "a-token-of-tests"
	noToken   = "-"
)

// listen starts a coordinator on this machine.
func listen(t testing.TB, opt Options) (*Coordinator, *lines) {
	t.Helper()
	l := &lines{t: t, whom: "coordinator"}
	opt.Say = l.say
	if opt.Queue == "" && opt.Listen == "" {
		opt.Listen = "127.0.0.1:0"
	}
	if opt.Token == "" && opt.Queue == "" {
		opt.Token = testToken
	}
	if opt.Dir == "" && opt.Queue == "" {
		opt.Dir = filepath.Join(t.TempDir(), "queue")
	}
	c, err := Listen(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c, l
}

// start starts a worker in this process. Its end is waited for, and must be the error want, "" = none.
func start(t testing.TB, opt WorkOptions) (*lines, context.CancelFunc, <-chan error) {
	t.Helper()
	l := &lines{t: t, whom: "worker"}
	opt.Say = l.say
	opt.Dir = t.TempDir()
	switch opt.Token {
	case "":
		opt.Token = testToken
	case noToken:
		opt.Token = ""
	}
	if opt.Handlers == nil {
		opt.Handlers = handlers()
	}
	ctx, cancel := context.WithCancel(context.Background())
	end := make(chan error, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		end <- Work(ctx, opt)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return l, cancel, end
}

// moreHandlers are those of process_test.go.
var moreHandlers = map[string]Handler{}

func handlers() map[string]Handler {
	all := map[string]Handler{
		"square": func(_ context.Context, j *Job) (Outcome, error) {
			var n int
			if err := json.Unmarshal(j.Task.Input, &n); err != nil {
				return Outcome{}, err
			}
			return Outcome{Value: n * n}, nil
		},
		"fail": func(context.Context, *Job) (Outcome, error) { return Outcome{}, fmt.Errorf("the disc is full") },
		"mistake": func(context.Context, *Job) (Outcome, error) {
			return Outcome{}, fault.Mistakef("ppo.lr: got -1, want more than 0")
		},
		"panic": func(context.Context, *Job) (Outcome, error) { panic("index out of range") },
	}
	maps.Copy(all, moreHandlers)
	return all
}

func square(n int) Task {
	return newTask("square", fmt.Sprintf("square-%d", n), n)
}

func TestWorkersDoTheTasks(t *testing.T) {
	t.Parallel()
	c, _ := listen(t, Options{})
	_, _, a := start(t, WorkOptions{URL: c.URL(), Name: "a", Slots: 2})
	_, _, b := start(t, WorkOptions{URL: c.URL(), Name: "b"})
	var wg sync.WaitGroup
	got := make([]string, 50)
	for i := range got {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := c.Do(t.Context(), square(i), nil, func(r *Result) error { got[i] = string(r.Value); return nil }); err !=
				nil {
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	for i, g := range got {
		if g != fmt.Sprint(i*i) {
			t.Errorf("square %d: got %q", i, g)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	for _, end := range []<-chan error{a, b} {
		if err := <-end; err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(c.opt.Dir); err == nil {
		t.Error("the queue's folder is still there")
	}
}

// The connections of workers and strangers leave half of the descriptors to the process.
func TestConnectionsFollowFromTheLimitOfFiles(t *testing.T) {
	t.Parallel()
	for files, want := range map[int]int{0: 16, 512: 256, 1024: 512, 20_000: maxConns, shortage.Unlimited: maxConns} {
		if got := mostConns(files); got != want {
			t.Errorf("%d files: %d connections, want %d", files, got, want)
		}
	}
}
