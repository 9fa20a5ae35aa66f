//go:build unix

package workqueue

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestTasksRunHereToo(t *testing.T) {
	t.Parallel()
	c, _ := listen(t, Options{Here: 2, Workers: 5})
	var now, most, workers atomic.Int64
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := c.Do(t.Context(), square(i), func(_ context.Context, n int) error {
				workers.Add(int64(n))
				if at := now.Add(1); at > most.Load() {
					most.Store(at)
				}
				defer now.Add(-1)
				return nil
			}, func(*Result) error { return errors.New("kept") }); err != nil {
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	if most.Load() > 2 || workers.Load() < 40 || workers.Load() > 60 {
		t.Errorf("%d at once, %d goroutines", most.Load(), workers.Load())
	}
	if s := c.Status(); s.Done != 20 || s.Working != 0 || s.Waiting != 0 {
		t.Errorf("got %+v", s)
	}
	wrong := errors.New("wrong")
	if err := c.Do(t.Context(), square(50), func(context.Context, int) error { return wrong }, nil); !errors.Is(err,
		wrong) {
		t.Errorf("got %v", err)
	}
}

func TestHereAndWorkersShareTheTasks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	gate := filepath.Join(dir, "gate")
	c, _ := listen(t, Options{Here: 1, Workers: 1})
	start(t, WorkOptions{URL: c.URL(), Name: "a"})
	ends := make(chan string, 2)
	for i := range 2 {
		k := newTask("gate", fmt.Sprint("task-", i), gated{Gate: gate, Number: 6})
		go func() {
			who := "a"
			err := c.Do(t.Context(), k, func(ctx context.Context, n int) error {
				who = "here"
				_, err := alone(ctx, k, n)
				return err
			}, nil)
			if err != nil {
				who = err.Error()
			}
			ends <- who
		}()
	}
	until(t, "both in work", func() bool {
		s := c.Status()
		return s.Here == 1 && s.Working == 2 && len(s.Own) == 1 && strings.HasPrefix(s.Own[0].Name, "task-")
	})
	touch(t, gate)
	if got := <-ends + " " + <-ends; got != "a here" && got != "here a" {
		t.Errorf("got %s", got)
	}
}

func TestPauseWaitsUntilNothingRunsHere(t *testing.T) {
	t.Parallel()
	c, _ := listen(t, Options{Here: 2, Workers: 2})
	var running atomic.Int64
	release := make(chan struct{})
	var wg sync.WaitGroup
	do := func(i int, wait bool) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := c.Do(t.Context(), square(i), func(context.Context, int) error {
				running.Add(1)
				defer running.Add(-1)
				if wait {
					<-release
				}
				return nil
			}, nil); err != nil {
				t.Error(err)
			}
		}()
	}
	do(1, true)
	until(t, "running", func() bool { return running.Load() == 1 })
	impatient, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := c.Pause(impatient); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	paused := make(chan func())
	go func() {
		resume, err := c.Pause(t.Context())
		if err != nil {
			t.Error(err)
		}
		paused <- resume
	}()
	until(t, "pausing", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.paused == 1 })
	do(2, false)
	until(t, "waiting", func() bool { return c.Status().Waiting == 1 })
	close(release)
	resume := <-paused
	if n := running.Load(); n != 0 {
		t.Errorf("%d run during the pause", n)
	}
	if s := c.Status(); s.Waiting != 1 || s.Here != 0 {
		t.Errorf("got %+v", s)
	}
	resume()
	wg.Wait()
}

func TestNeedsAndFilesTravel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := filepath.Join(dir, "in")
	if err := errors.Join(os.MkdirAll(filepath.Join(in, "empty"), 0o700),
		os.MkdirAll(filepath.Join(in, "deep", "er"), 0o700),
		os.WriteFile(filepath.Join(in, "deep", "er", "x"), []byte("hello"),
			0o600), os.WriteFile(filepath.Join(in, "big"), make([]byte, 3<<20), 0o600)); err != nil {
		t.Fatal(err)
	}
	c, _ := listen(t, Options{})
	folder, err := c.Put(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	// Equal content has an equal digest, wherever it is and whenever it was written.
	again := filepath.Join(dir, "again")
	if err := os.CopyFS(again, os.DirFS(in)); err != nil {
		t.Fatal(err)
	}
	if other, err := c.Put(t.Context(), again); err != nil || other != folder {
		t.Errorf("%v: %s and %s", err, folder, other)
	}
	file, err := c.Put(t.Context(), filepath.Join(in, "deep", "er", "x"))
	if err != nil || file == folder {
		t.Fatal(err)
	}
	if _, err := c.Put(t.Context(), filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	large := strings.Repeat("0123456789", 100_000) // more than a message takes
	_, _,
		end := start(t, WorkOptions{URL: c.URL(), Name: "a",
		Handlers: map[string]Handler{"copy": func(_ context.Context, j *Job) (Outcome, error) {
			data, err := os.ReadFile(j.Needs["file"])
			if err != nil {
				return Outcome{}, err
			}
			if err := os.CopyFS(j.Dir, os.DirFS(j.Needs["folder"])); err != nil {
				return Outcome{}, err
			}
			return Outcome{Value: string(data) + string(j.Task.Input), Keep: true, Proof: []byte("p")}, nil
		}}})
	k := needing("copy", "copy", large, map[string]string{"file": file, "folder": folder})
	out := filepath.Join(dir, "out")
	var got Result
	if err := c.Do(t.Context(), k, nil,
		func(r *Result) error { got = *r; return c.Unpack(t.Context(), r.Files, out) }); err != nil {
		t.Fatal(err)
	}
	if want := string(encode("hello" + string(encode(large)))); string(got.Value) != want {
		t.Errorf("got a value of %d bytes, want %d", len(got.Value), len(want))
	}
	if back, err := c.Put(t.Context(), out); err != nil || back != folder {
		t.Errorf("%v: the folder came back as %s, want %s", err, back, folder)
	}
	// What a task needs and is not there is an error of the task.
	k = needing("copy", "lost", nil, map[string]string{"file": digest("nothing")})
	if o := within(t, background(t, c, k)); o.err == nil ||
		!strings.Contains(o.err.Error(), "what it needs as file is not there") {
		t.Errorf("got %v", o.err)
	}
	// A result that cannot be kept stays in the queue, and comes again.
	broken := errors.New("the disc is full")
	k = needing("copy", "kept", nil, map[string]string{"file": file, "folder": folder})
	if err := c.Do(t.Context(), k, nil, func(*Result) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if err := c.Do(t.Context(), k, nil,
		func(r *Result) error { return c.Unpack(t.Context(), r.Files, filepath.Join(dir, "kept")) }); err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-end; err != nil {
		t.Error(err)
	}
}

func TestTheCacheOfNeedsIsBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c, _ := listen(t, Options{})
	needs := newCache(filepath.Join(dir, "needs"), 2500)
	var digests []string
	for i := range 4 {
		path := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(path, fmt.Appendf(nil, "%01000d", i), 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := c.Put(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, d)
	}
	get := func(i int) func() {
		path, release, err := needs.get(t.Context(), digests[i], c.store)
		if err != nil || !exists(path) {
			t.Fatal(err)
		}
		return release
	}
	have := func() string {
		s := ""
		for i, d := range digests {
			if exists(filepath.Join(dir, "needs", d)) {
				s += fmt.Sprint(i)
			}
		}
		return s
	}
	hold := get(0)
	get(1)()
	get(2)()
	if got := have(); got != "02" {
		t.Errorf("has %s, want what is used and what was used last", got)
	}
	get(3)()
	if got := have(); got != "03" {
		t.Errorf("has %s", got)
	}
	hold()
	get(1)()
	if got := have(); got != "13" {
		t.Errorf("has %s", got)
	}
}

func TestAStayingWorkerTakesTheNextJob(t *testing.T) {
	t.Parallel()
	said, _, end := (*lines)(nil), context.CancelFunc(nil), (<-chan error)(nil)
	address := fixed(t)
	for i := range 3 {
		c, _ := listen(t, Options{Listen: address, Job: fmt.Sprint("job-", i)})
		if i == 0 {
			said, _, end = start(t, WorkOptions{URL: c.URL(), Name: "a", Stay: true})
		}
		if o := within(t, background(t, c, square(i))); o.err != nil || o.r.Worker != "a" {
			t.Errorf("got %+v", o)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	until(t, "waiting", func() bool { return strings.Count(said.text(), "waiting for the next coordinator") == 3 })
	select {
	case err := <-end:
		t.Errorf("ended with %v", err)
	default:
	}
}

func TestWhatKilledWorkersLeaveIsRemoved(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	c, _ := listen(t, Options{})
	a := spawnWorker(t, workerRole{URL: c.URL(), Name: "a", Dir: base})
	until(t, "there", func() bool { return len(c.Status().Workers) == 1 })
	b := spawnWorker(t, workerRole{URL: c.URL(), Name: "b", Dir: base})
	until(t, "there", func() bool { return len(c.Status().Workers) == 2 })
	a.kill(t)
	d := spawnWorker(t, workerRole{URL: c.URL(), Name: "d", Dir: base})
	until(t, "there", func() bool { return strings.Contains(d.text(), "works for job") })
	if exists(filepath.Join(base, "gymctl-worker-a")) || !exists(filepath.Join(base, "gymctl-worker-b")) {
		t.Error("want the folder of b and not that of a")
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	for _, p := range []*process{b, d} {
		if err := p.ends(t); err != nil {
			t.Errorf("%v: %s", err, p.text())
		}
	}
	if list, err := os.ReadDir(base); err != nil || len(list) != 0 {
		t.Errorf("%v: %v is left", err, list)
	}
}
