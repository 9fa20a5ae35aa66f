//go:build unix

package workqueue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"clustergym/internal/fault"
	"clustergym/internal/testseed"
)

func TestATaskIsInTheQueueOnce(t *testing.T) {
	t.Parallel()
	gate := filepath.Join(t.TempDir(), "gate")
	c, _ := listen(t, Options{})
	k := newTask("gate", "once", gated{Gate: gate, Number: 6})
	first := background(t, c, k)
	until(t, "in the queue", func() bool {
		info, err := c.work.Info(t.Context())
		return err == nil && info.State.Msgs == 1
	})
	// Another Do of the digest is refused, and another message of it changes nothing.
	if err := c.Do(t.Context(), k, nil, nil); err == nil || !strings.Contains(err.Error(), "have one digest") {
		t.Errorf("a second Do: %v", err)
	}
	c.mu.Lock()
	p := c.tasks[k.Digest]
	c.mu.Unlock()
	for range 3 {
		c.publish(t.Context(), p)
	}
	if info, err := c.work.Info(t.Context()); err != nil || info.State.Msgs != 1 {
		t.Errorf("%v: %d messages, want 1", err, info.State.Msgs)
	}
	start(t, WorkOptions{URL: c.URL(), Name: "a"})
	touch(t, gate)
	if o := within(t, first); o.err != nil || string(o.r.Value) != "42" || o.r.Worker != "a" {
		t.Errorf("got %+v", o)
	}
	// When it is done it can be done again, as after a file was deleted.
	if o := within(t, background(t, c, k)); o.err != nil || string(o.r.Value) != "42" {
		t.Errorf("again: got %+v", o)
	}
	if s := c.Status(); s.Done != 2 || s.Equal != 1 || s.Differ != 0 {
		t.Errorf("got %+v, want a second result that is equal to the first", s)
	}
}

func TestAKilledWorkersTaskGoesToAnother(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	gate, begun := filepath.Join(dir, "gate"), filepath.Join(dir, "begun")
	c, said := listen(t, Options{AckWait: time.Minute}) // what brings the task back is the closed connection
	a := spawnWorker(t, workerRole{URL: c.URL(), Name: "a"})
	end := background(t, c, newTask("gate", "task", gated{gate, begun, 6}))
	until(t, "begun by a", func() bool { return doing(c, "a") == "task" && exists(begun) })
	start(t, WorkOptions{URL: c.URL(), Name: "b"})
	a.kill(t)
	until(t, "begun by b", func() bool { return doing(c, "b") == "task" })
	touch(t, gate)
	if o := within(t, end); o.err != nil || o.r.Worker != "b" || string(o.r.Value) != "42" {
		t.Errorf("got %+v", o)
	}
	until(t, "said so", func() bool { return said.has("worker a is lost, it went away; 1 task of it goes to others") })
	if l := c.Status().Lost; len(l) != 1 || l[0].Name != "a" || l[0].Why != "it went away" ||
		fmt.Sprint(l[0].Tasks) != "[task]" || l[0].Ago <= 0 {
		t.Errorf("lost: %+v", l)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestAStoppedWorkerFallsSilentAndItsResultIsCompared(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	gate, begun := filepath.Join(dir, "gate"), filepath.Join(dir, "begun")
	c, _ := listen(t, Options{AckWait: time.Second, Tries: 1000})
	a := spawnWorker(t, workerRole{URL: c.URL(), Name: "a"})
	end := background(t, c, newTask("gate", "task", gated{gate, begun, 6}))
	until(t, "begun by a", func() bool { return doing(c, "a") == "task" && exists(begun) })
	a.signal(t, syscall.SIGSTOP)
	start(t, WorkOptions{URL: c.URL(), Name: "b"})
	until(t, "begun by b", func() bool { return doing(c, "b") == "task" })
	touch(t, gate)
	if o := within(t, end); o.err != nil || o.r.Worker != "b" {
		t.Errorf("got %+v", o)
	}
	a.signal(t, syscall.SIGCONT)
	until(t, "compared", func() bool { return c.Status().Equal >= 1 })
	if len(c.Disputes()) != 0 {
		t.Errorf("got %+v", c.Disputes())
	}
	until(t, "back", func() bool { return len(c.Status().Workers) == 2 })
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := a.ends(t); err != nil {
		t.Errorf("%v:\n%s", err, a.text())
	}
}

func TestResultsThatDifferAreReported(t *testing.T) {
	t.Parallel()
	c, said := listen(t, Options{})
	_, leave, end := start(t, WorkOptions{URL: c.URL(), Name: "a"})
	k := newTask("named", "cell-7", nil)
	if o := within(t, background(t, c, k)); o.err != nil || o.r.Worker != "a" {
		t.Fatalf("got %+v", o)
	}
	leave()
	if err := <-end; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	start(t, WorkOptions{URL: c.URL(), Name: "b"})
	if o := within(t, background(t, c, k)); o.err != nil || o.r.Worker != "b" {
		t.Fatalf("got %+v", o)
	}
	d := c.Disputes()
	if len(d) != 1 || d[0].Task.Name != "cell-7" || d[0].First.Worker != "a" || d[0].Second.Worker != "b" ||
		c.Status().Differ != 1 {
		t.Errorf("got %+v", d)
	}
	until(t, "said", func() bool {
		return said.has("RESULTS DIFFER: cell-7") && said.has("from worker a and") &&
			said.has("from worker b; the first is kept")
	})
}

func TestATaskFailsAfterItsTries(t *testing.T) {
	t.Parallel()
	c, said := listen(t, Options{Tries: 3})
	start(t, WorkOptions{URL: c.URL(), Name: "a"})
	o := within(t, background(t, c, newTask("fail", "cell-1", nil)))
	e, ok := errors.AsType[*TaskError](o.err)
	if !ok || e.Tries != 3 || e.Worker != "a" || e.Task != "cell-1" ||
		e.Error() != "cell-1 failed 3 times: worker a: the disc is full" {
		t.Errorf("got %v", o.err)
	}
	until(t, "said", func() bool { return said.has("cell-1 failed on worker a, try 2 of 3: the disc is full") })
	o = within(t, background(t, c, newTask("panic", "cell-2", nil)))
	if o.err == nil || !strings.Contains(o.err.Error(), "panic: index out of range") {
		t.Errorf("got %v", o.err)
	}
	o = within(t, background(t, c, newTask("none", "cell-3", nil)))
	if o.err == nil || !strings.Contains(o.err.Error(), `this program does no tasks of kind "none"`) {
		t.Errorf("got %v", o.err)
	}
	// A mistake of the user is not tried again.
	o = within(t, background(t, c, newTask("mistake", "cell-4", nil)))
	m, ok := errors.AsType[*fault.Mistake](o.err)
	if e, _ := errors.AsType[*TaskError](o.err); !ok || e == nil || e.Tries != 1 ||
		m.Error() != "cell-4 on worker a: ppo.lr: got -1, want more than 0" {
		t.Errorf("got %v", o.err)
	}
	// The worker is well.
	if o := within(t, background(t, c, square(4))); o.err != nil || string(o.r.Value) != "16" {
		t.Errorf("got %+v", o)
	}
}

func TestAFailedTaskGoesToAWorkerThatHasNotFailed(t *testing.T) {
	t.Parallel()
	c, _ := listen(t, Options{Tries: 1 << 30})
	bad := handlers()
	bad["square"] = bad["fail"]
	start(t, WorkOptions{URL: c.URL(), Name: "bad", Handlers: bad})
	start(t, WorkOptions{URL: c.URL(), Name: "good"})
	until(t, "two workers", func() bool { return len(c.Status().Workers) == 2 })
	for i := range 6 {
		if o := within(t, background(t, c, square(i))); o.err != nil || o.r.Worker != "good" {
			t.Fatalf("got %+v", o)
		}
	}
}

func TestATaskWhoseWorkersDieFails(t *testing.T) {
	t.Parallel()
	c, _ := listen(t, Options{Tries: 3})
	end := background(t, c, newTask("exit", "deadly", nil))
	for _, name := range []string{"a", "b", "c"} {
		p := spawnWorker(t, workerRole{URL: c.URL(), Name: name})
		if err := p.ends(t); err == nil {
			t.Error("the worker lived")
		}
		until(t, "missed", func() bool { return len(c.Status().Workers) == 0 })
	}
	o := within(t, end)
	if o.err == nil || o.err.Error() !=
		"deadly was begun 3 times and its workers went away or fell silent each time: a, b, c" {
		t.Errorf("got %v", o.err)
	}
}

func TestAWorkerThatLeavesHandsItsTaskOn(t *testing.T) {
	t.Parallel()
	for _, saves := range []time.Duration{time.Hour, time.Millisecond} {
		dir := t.TempDir()
		gate := filepath.Join(dir, "gate")
		in := steps{Steps: 200, Stop: gate}
		c, _ := listen(t, Options{Tries: 1, SaveEvery: saves}) // leaving spends no try
		a := spawnWorker(t, workerRole{URL: c.URL(), Name: "a"})
		k := newTask("steps", "training", in)
		end := background(t, c, k)
		until(t, "half done", func() bool {
			s := c.Status()
			return len(s.Workers) == 1 && len(s.Workers[0].Tasks) == 1 && s.Workers[0].Tasks[0].Done == 100 &&
				s.Workers[0].Tasks[0].All == 200
		})
		a.signal(t, syscall.SIGINT)
		if err := a.ends(t); err == nil || !strings.Contains(a.text(), "error: context canceled") {
			t.Errorf("%v: %s", err, a.text())
		}
		until(t, "left", func() bool { return len(c.Status().Workers) == 0 })
		if l := c.Status().Lost; len(l) != 0 {
			t.Errorf("a worker that leaves is lost: %+v", l)
		}
		said, _, _ := start(t, WorkOptions{URL: c.URL(), Name: "b"})
		touch(t, gate)
		o := within(t, end)
		if o.err != nil || o.r.Worker != "b" {
			t.Fatalf("got %+v", o)
		}
		if !said.has("training: goes on from step 100") {
			t.Errorf("b said %s", said.text())
		}
		out := filepath.Join(dir, "out")
		// The folder is gone from the queue with the result, so that it is unpacked while it is kept; here it was not.
		if err := c.Unpack(t.Context(), o.r.Files, out); !errors.Is(err, errGone) {
			t.Errorf("got %v", err)
		}
		sameAsAlone(t, k, in, o.r)
	}
}

// sameAsAlone checks a result against that of one worker that was never interrupted.
func sameAsAlone(t *testing.T, k Task, in steps, got Result) {
	t.Helper()
	c, _ := listen(t, Options{SaveEvery: -1})
	start(t, WorkOptions{URL: c.URL(), Name: "alone"})
	touch(t, in.Stop)
	var want Result
	if err := c.Do(t.Context(), k, nil, func(r *Result) error { want = *r; return nil }); err != nil {
		t.Fatal(err)
	}
	if string(got.Value) != string(want.Value) || got.Proof != want.Proof || got.Files != want.Files {
		t.Errorf("got %+v, want %+v: bit for bit", got, want)
	}
}

func TestAKilledTrainingGoesOnFromWhatItSaved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	gate := filepath.Join(dir, "gate")
	in := steps{Steps: 400, Each: 5 * time.Millisecond, Stop: gate}
	// Each worker advances and is killed: more often than there are tries.
	c, _ := listen(t, Options{Tries: 2, SaveEvery: time.Millisecond})
	k := newTask("steps", "training", in)
	end := background(t, c, k)
	for i := range 3 {
		name := fmt.Sprint("w", i)
		p := spawnWorker(t, workerRole{URL: c.URL(), Name: name})
		before := int64(i * 25)
		until(t, "further", func() bool {
			s := c.Status()
			return len(s.Workers) == 1 && len(s.Workers[0].Tasks) == 1 && s.Workers[0].Tasks[0].Done > before && saved(c, k)
		})
		p.kill(t)
		until(t, "missed", func() bool { return len(c.Status().Workers) == 0 })
	}
	said, _, _ := start(t, WorkOptions{URL: c.URL(), Name: "last"})
	touch(t, gate)
	o := within(t, end)
	if o.err != nil || !said.has("goes on from step") {
		t.Fatalf("got %+v: %s", o, said.text())
	}
	sameAsAlone(t, k, in, o.r)
}

// saved reports whether a task was saved since it was last begun.
func saved(c *Coordinator, k Task) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.tasks[k.Digest]
	return w != nil && w.tries == 1 && len(w.causes) == 0
}

func TestAKilledCoordinatorGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	if err := os.Mkdir(out, 0o700); err != nil {
		t.Fatal(err)
	}
	r := coordinatorRole{Listen: fixed(t), Dir: filepath.Join(dir, "queue"), Out: out, Tries: 1000,
		AckWait: 5 * time.Second}
	var names []string
	gate := filepath.Join(dir, "gate")
	for i := range 30 {
		k := newTask("slow", fmt.Sprint("cell-", i), 5*time.Millisecond)
		if i >= 27 { // fewer than there are slots
			k = newTask("gate", fmt.Sprint("cell-", i), gated{Gate: gate, Number: i})
		}
		r.Tasks = append(r.Tasks, k)
		names = append(names, k.Name)
	}
	first := spawn(t, "coordinator 1", role{Coordinator: &r})
	url := first.url(t)
	workers := []*process{spawnWorker(t, workerRole{URL: url, Name: "a", Slots: 2}),
		spawnWorker(t, workerRole{URL: url, Name: "b", Slots: 2})}
	until(t, "some results", func() bool { list, _ := filepath.Glob(filepath.Join(out, "cell-*")); return len(list) >= 5 })
	first.kill(t)
	touch(t, gate) // workers finish what they have, and hold its results
	second := spawn(t, "coordinator 2", role{Coordinator: &r})
	if err := second.ends(t); err != nil {
		t.Fatalf("%v: %s", err, second.text())
	}
	for _, w := range workers {
		if err := w.ends(t); err != nil {
			t.Errorf("%v: %s", err, w.text())
		}
	}
	checkAlone(t, r.Tasks, out, names)
	if exists(r.Dir) {
		t.Error("the queue is left")
	}
}

// checkAlone compares a folder of results with those of one process without a queue.
func checkAlone(t *testing.T, tasks []Task, out string, names []string) {
	t.Helper()
	want := t.TempDir()
	for _, k := range tasks {
		if err := here(k, filepath.Join(want, k.Name))(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
	}
	sameFolders(t, want, out, names)
	list, err := os.ReadDir(out)
	if err != nil || len(list) != len(names) {
		t.Errorf("%v: %d files, want %d", err, len(list), len(names))
	}
}

func TestWorkersWaitForACoordinatorToComeBack(t *testing.T) {
	t.Parallel()
	// A result that is ready while the coordinator is away arrives afterwards, without being computed again.
	dir := t.TempDir()
	gate, begun, out := filepath.Join(dir, "gate"), filepath.Join(dir, "begun"), filepath.Join(dir, "out")
	if err := os.Mkdir(out, 0o700); err != nil {
		t.Fatal(err)
	}
	r := coordinatorRole{Listen: fixed(t), Dir: filepath.Join(dir, "queue"), Out: out, Tries: 1000,
		Tasks: []Task{newTask("gate", "task", gated{gate, begun, 6})}}
	first := spawn(t, "coordinator 1", role{Coordinator: &r})
	url := first.url(t)
	said, _, end := start(t, WorkOptions{URL: url, Name: "a"})
	until(t, "begun", func() bool { return exists(begun) })
	first.kill(t)
	touch(t, gate)
	until(t, "held", func() bool { return said.has("the result of task does not get through yet") })
	second := spawn(t, "coordinator 2", role{Coordinator: &r})
	if err := second.ends(t); err != nil {
		t.Fatalf("%v: %s", err, second.text())
	}
	if err := <-end; err != nil {
		t.Error(err)
	}
	checkAlone(t, r.Tasks, out, []string{"task"})
}

func TestPatienceEnds(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_, _, end := start(t, WorkOptions{URL: nobody, Patience: 50 * time.Millisecond})
	if err := <-end; err == nil ||
		!strings.HasPrefix(err.Error(), "no coordinator within 50ms: nats://"+nobody+" cannot be reached") {
		t.Errorf("got %v", err)
	}
	c, _ := listen(t, Options{})
	said, _, end := start(t, WorkOptions{URL: c.URL(), Name: "a", Patience: 500 * time.Millisecond})
	until(t, "there", func() bool { return said.has("works for job") })
	c.mu.Lock()
	c.stopped = true // as after Ctrl-C: no bye
	c.mu.Unlock()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-end; err == nil || !strings.Contains(err.Error(), "has not answered for 500ms") {
		t.Errorf("got %v", err)
	}
}

// TestWorkersDieAllTheTime kills workers at random moments while a hundred tasks are done: all results once, and the
// bytes of a single process.
func TestWorkersDieAllTheTime(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	seed := testseed.Or(7)
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	dir := t.TempDir()
	c, _ := listen(t, Options{Tries: 1 << 30, AckWait: 2 * time.Second})
	var tasks []Task
	var names []string
	for i := range 100 {
		k := newTask("slow", fmt.Sprintf("cell-%d", i), time.Duration(20+rng.IntN(31))*time.Millisecond)
		tasks, names = append(tasks, k), append(names, k.Name)
	}
	var mu sync.Mutex
	kept := map[string]int{}
	done := make(chan error, 1)
	go func() {
		var wg sync.WaitGroup
		errs := make([]error, len(tasks))
		for i, k := range tasks {
			wg.Add(1)
			go func() {
				defer wg.Done()
				errs[i] = c.Do(t.Context(), k, nil, func(r *Result) error {
					mu.Lock()
					kept[k.Name]++
					mu.Unlock()
					return os.WriteFile(filepath.Join(dir, k.Name), r.Value, 0o600)
				})
			}()
		}
		wg.Wait()
		done <- errors.Join(errs...)
	}()
	workers := make([]*process, 4)
	deaths := 0
	fresh := func(i int) {
		workers[i] = spawnWorker(t, workerRole{URL: c.URL(), Name: fmt.Sprintf("w%d-%d", i, deaths)})
	}
	for i := range workers {
		fresh(i)
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for over := false; !over; {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			over = true
		case <-tick.C:
			if deaths >= 20 { // a slow machine must come to an end, too
				continue
			}
			i := rng.IntN(len(workers))
			workers[i].kill(t)
			deaths++
			fresh(i)
		}
	}
	t.Logf("%d deaths, %d results came again", deaths, c.Status().Equal)
	for _, n := range names {
		if kept[n] != 1 {
			t.Errorf("%s was kept %d times", n, kept[n])
		}
	}
	if len(c.Disputes()) != 0 {
		t.Errorf("got %+v", c.Disputes())
	}
	checkAlone(t, tasks, dir, names)
}
