//go:build unix

package workqueue

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// roleVar makes the test's program a worker or a coordinator, in a process that a test can kill.
const roleVar = "CLUSTERGYM_TEST_WORKQUEUE"

// role is what such a process does.
type role struct {
	Worker      *workerRole
	Coordinator *coordinatorRole
}

type workerRole struct {
	URL, Token, TLSCA, Job, Name, Dir string
	Slots, Count                      int // Count workers in one process, 0 = 1
	Patience                          time.Duration
}

type coordinatorRole struct {
	Listen, Queue, Dir, Job, Out string
	AckWait                      time.Duration
	Tries, Here                  int
	Tasks                        []Task
}

func TestMain(m *testing.M) {
	text := os.Getenv(roleVar)
	if text == "" {
		flag.Parse()
		// The tests wait for each other's timeouts rather than for the processor.
		if err := flag.Set("test.parallel", "8"); err != nil {
			panic(err)
		}
		os.Exit(m.Run())
	}
	var r role
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		panic(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := r.play(ctx)
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (r *role) play(ctx context.Context) error {
	say := func(format string, args ...any) { fmt.Printf(format+"\n", args...) }
	if w := r.Worker; w != nil {
		opt := WorkOptions{URL: w.URL, Token: cmp.Or(w.Token, testToken), TLSCA: w.TLSCA, Job: w.Job, Name: w.Name,
			Slots: w.Slots, Patience: w.Patience, Dir: w.Dir, Handlers: handlers(), Say: say}
		errs := make([]error, max(1, w.Count))
		var wg sync.WaitGroup
		for i := range errs {
			opt := opt
			if w.Count > 0 {
				opt.Name = fmt.Sprint(w.Name, "-", i)
			}
			wg.Add(1)
			go func() {
				defer wg.Done()
				errs[i] = Work(ctx, opt)
			}()
		}
		wg.Wait()
		return errors.Join(errs...)
	}
	k := r.Coordinator
	c, err := Listen(ctx,
		Options{Token: testToken, Listen: k.Listen, Queue: k.Queue, Dir: k.Dir, Job: k.Job, AckWait: k.AckWait,
			Tries: k.Tries, Here: k.Here, Say: say, SaveEvery: time.Millisecond})
	if err != nil {
		return err
	}
	say("url %s", c.URL())
	go func() {
		for sleep(ctx, 20*time.Second) == nil { // shows why a test hangs
			work, _ := c.work.Info(ctx)
			hands, _ := c.hands.Info(ctx)
			done, _ := c.done.Info(ctx)
			say("after 20 s: %s\nwork %s\nhands %s\ndone %s", encode(c.Status()), encode(work), encode(hands), encode(done))
		}
	}()
	err = doAll(ctx, c, k.Tasks, k.Out)
	return errors.Join(err, c.Close())
}

// doAll has tasks done, and writes their values into files of a folder, as a command does. Those that are there are not
// done again.
func doAll(ctx context.Context, c *Coordinator, tasks []Task, out string) error {
	errs := make([]error, len(tasks))
	var wg sync.WaitGroup
	for i, t := range tasks {
		path := filepath.Join(out, t.Name)
		if _, err := os.Stat(path); err == nil {
			continue
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			errs[i] = c.Do(ctx, t, here(t, path), func(r *Result) error {
				if r.Files != "" {
					if err := c.Unpack(ctx, r.Files, path+".files"); err != nil {
						return err
					}
				}
				if err := os.WriteFile(path+".new", r.Value, 0o600); err != nil {
					return err
				}
				return os.Rename(path+".new", path)
			})
		}()
	}
	wg.Wait()
	return errors.Join(errs...)
}

// here does a task of doAll without a queue.
func here(t Task, path string) func(ctx context.Context, workers int) error {
	return func(ctx context.Context, workers int) error {
		value, err := alone(ctx, t, workers)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path+".new", value, 0o600); err != nil {
			return err
		}
		return os.Rename(path+".new", path)
	}
}

// alone does a task of the kinds whose handlers need no worker.
func alone(ctx context.Context, t Task, workers int) ([]byte, error) {
	out, err := handlers()[t.Kind](ctx, &Job{Task: t, Workers: workers})
	if err != nil {
		return nil, err
	}
	return json.Marshal(out.Value)
}

// gated is the input of a task that waits for a file.
type gated struct {
	Gate   string // the file
	Begun  string // a file to which every try adds a line
	Number int
}

// steps is the input of a task that goes on from what it saved.
type steps struct {
	Steps int
	Each  time.Duration
	Stop  string // at step Steps/2 it waits for this file, "" = it does not
}

func init() {
	moreHandlers["gate"] = func(ctx context.Context, j *Job) (Outcome, error) {
		var g gated
		if err := json.Unmarshal(j.Task.Input, &g); err != nil {
			return Outcome{}, err
		}
		if g.Begun != "" {
			f, err := os.OpenFile(g.Begun, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return Outcome{}, err
			}
			if _, err := fmt.Fprintln(f, j.Task.Name); err != nil {
				return Outcome{}, err
			}
			if err := f.Close(); err != nil {
				return Outcome{}, err
			}
		}
		for {
			if _, err := os.Stat(g.Gate); err == nil {
				return Outcome{Value: g.Number * 7}, nil
			}
			if err := sleep(ctx, 5*time.Millisecond); err != nil {
				return Outcome{}, err
			}
		}
	}
	moreHandlers["slow"] = func(ctx context.Context, j *Job) (Outcome, error) {
		var d time.Duration
		if err := json.Unmarshal(j.Task.Input, &d); err != nil {
			return Outcome{}, err
		}
		sum := sha256.Sum256([]byte(j.Task.Name))
		return Outcome{Value: sum[:]}, sleep(ctx, d)
	}
	moreHandlers["exit"] = func(context.Context, *Job) (Outcome, error) {
		os.Exit(3)
		return Outcome{}, nil
	}
	moreHandlers["named"] = func(_ context.Context, j *Job) (Outcome, error) {
		return Outcome{Value: j.crew.opt.Name},
			nil
	}
	moreHandlers["steps"] = func(ctx context.Context, j *Job) (Outcome, error) {
		var in steps
		if err := json.Unmarshal(j.Task.Input, &in); err != nil {
			return Outcome{}, err
		}
		at, x := 0, uint64(1)
		state := filepath.Join(j.Dir, "deep", "state")
		switch data, err := os.ReadFile(state); {
		case err == nil:
			at, x = int(binary.LittleEndian.Uint64(data)), binary.LittleEndian.Uint64(data[8:])
			j.Log("goes on from step %d", at)
		case !errors.Is(err, os.ErrNotExist):
			return Outcome{}, err
		}
		save := func() error {
			data := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(at)), x)
			if err := errors.Join(os.MkdirAll(filepath.Dir(state), 0o700), os.WriteFile(state, data, 0o600)); err != nil {
				return err
			}
			return j.Save()
		}
		j.Progress(int64(at), int64(in.Steps))
		for at < in.Steps {
			if in.Stop != "" && at == in.Steps/2 {
				for {
					if _, err := os.Stat(in.Stop); err == nil {
						break
					}
					if err := errors.Join(save(), sleep(ctx, 5*time.Millisecond)); err != nil {
						return Outcome{}, errors.Join(save(), err)
					}
				}
				in.Each = 0
			}
			x = x*6364136223846793005 + uint64(at)
			at++
			j.Progress(int64(at), int64(in.Steps))
			if at%10 == 0 {
				if err := save(); err != nil {
					return Outcome{}, err
				}
			}
			if err := sleep(ctx, in.Each); err != nil {
				return Outcome{}, errors.Join(save(), err)
			}
		}
		return Outcome{Value: x, Keep: true}, nil
	}
}

// process is such a process.
type process struct {
	*exec.Cmd
	mu   sync.Mutex
	out  bytes.Buffer
	name string
	done chan struct{}
	err  error
}

// Write implements io.Writer.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if testing.Verbose() {
		for l := range strings.Lines(string(b)) {
			fmt.Fprintf(os.Stderr, "%s %s: %s", time.Now().Format("05.000"), p.name, l)
		}
	}
	return p.out.Write(b)
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// spawn starts a process, by way of other programs if there are any.
func spawn(t testing.TB, name string, r role, by ...string) *process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{name: name, done: make(chan struct{})}
	args := append(by, exe)
	p.Cmd = exec.Command(args[0], args[1:]...)
	p.Env = append(os.Environ(), roleVar+"="+string(encode(r)))
	p.Stdout, p.Stderr = p, p
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.err = p.Wait(); close(p.done) }()
	t.Cleanup(func() {
		_ = p.Process.Kill() // it may have ended
		<-p.done
	})
	return p
}

// worker starts a worker in a process.
func spawnWorker(t testing.TB, w workerRole) *process {
	t.Helper()
	if w.Dir == "" {
		w.Dir = t.TempDir()
	}
	return spawn(t, "process "+w.Name, role{Worker: &w})
}

func (p *process) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := p.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// kill kills a process as kill -9 does, and waits until it is gone.
func (p *process) kill(t testing.TB) {
	t.Helper()
	p.signal(t, syscall.SIGKILL)
	<-p.done
}

// ends waits for the end of a process that ends by itself.
func (p *process) ends(t testing.TB) error {
	t.Helper()
	select {
	case <-p.done:
		return p.err
	case <-time.After(time.Minute):
		t.Fatalf("%s does not end:\n%s", p.name, p.text())
		return nil
	}
}

// url waits for the address that a coordinator prints.
func (p *process) url(t testing.TB) string {
	t.Helper()
	url := ""
	until(t, "an address of "+p.name, func() bool {
		s := bufio.NewScanner(strings.NewReader(p.text()))
		for s.Scan() {
			if u, ok := strings.CutPrefix(s.Text(), "url "); ok {
				url = u
			}
		}
		return url != ""
	})
	return url
}

// newTask makes a task of a test.
func newTask(kind, name string, input any) Task {
	return needing(kind, name, input, nil)
}

// needing makes a task that needs something.
func needing(kind, name string, input any, needs map[string]string) Task {
	t, err := NewTask(kind, name, input, needs)
	if err != nil {
		panic(err)
	}
	return t
}

// doing returns the names of the tasks that a worker does.
func doing(c *Coordinator, worker string) string {
	var names []string
	for _, w := range c.Status().Workers {
		if w.Name == worker {
			for _, t := range w.Tasks {
				names = append(names, t.Name)
			}
		}
	}
	return strings.Join(names, " ")
}

// background calls Do, and returns what it will come to.
func background(t testing.TB, c *Coordinator, task Task) <-chan outcome {
	end := make(chan outcome, 1)
	go func() {
		var o outcome
		o.err = c.Do(t.Context(), task, nil, func(r *Result) error { o.r = *r; return nil })
		end <- o
	}()
	return end
}

type outcome struct {
	r   Result
	err error
}

// within waits for an outcome, far longer than it can take.
func within(t testing.TB, end <-chan outcome) outcome {
	t.Helper()
	select {
	case o := <-end:
		return o
	case <-time.After(time.Minute):
		t.Fatal("no result after a minute")
		return outcome{}
	}
}

// same compares two folders of files byte by byte.
func sameFolders(t testing.TB, a, b string, names []string) {
	t.Helper()
	for _, n := range names {
		x, err := os.ReadFile(filepath.Join(a, n))
		if err != nil {
			t.Fatal(err)
		}
		y, err := os.ReadFile(filepath.Join(b, n))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(x, y) {
			t.Errorf("%s: %q and %q", n, x, y)
		}
	}
}

func touch(t testing.TB, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// nextPort is where fixed looks for a port. The system gives these to nobody who does not ask for them.
var nextPort = struct {
	sync.Mutex
	n int
}{n: os.Getpid() * 16}

// fixed returns an address at which a test can listen again and again.
func fixed(t testing.TB) string {
	t.Helper()
	nextPort.Lock()
	defer nextPort.Unlock()
	for range 10000 {
		nextPort.n++
		address := fmt.Sprintf("127.0.0.1:%d", 20000+nextPort.n%10000)
		if l, err := net.Listen("tcp", address); err == nil {
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			return address
		}
	}
	t.Fatal("no port is free")
	return ""
}
