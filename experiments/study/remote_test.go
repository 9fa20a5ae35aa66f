package study

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"clustergym/distributed/workqueue"
	"clustergym/internal/testseed"
)

// many is a study of n cells, some of which read others, leave files, count towards a checkpoint, or measure time.
func many(n int, each time.Duration) Study {
	return Study{
		Name: "many", Title: "Many cells",
		Cells: func(p Plan) ([]Cell, error) {
			var all []Cell
			for i := range n {
				c := Cell{Key: fmt.Sprintf("cells/%d", i), Input: []any{i, p.SeedsOr(1), p.Quick}}
				if i%5 == 4 {
					c.After = []string{fmt.Sprintf("cells/%d", i-1), fmt.Sprintf("cells/%d", i-2)}
				}
				c.Run = func(ctx context.Context, b *Bench) ([]Row, error) {
					sum := float64(i) / 3
					for _, a := range c.After {
						for _, r := range b.Rows(a) {
							if r.Metric == "sum" {
								sum += r.Value
							}
						}
						if k, err := strconv.Atoi(strings.TrimPrefix(a, "cells/")); err != nil {
							return nil, err
						} else if k%3 == 0 { // it leaves a note
							note, err := os.ReadFile(filepath.Join(b.WorkOf(a), "left", "note"))
							if err != nil {
								return nil, err
							}
							sum += float64(len(note))
						}
					}
					// It counts to 10, and goes on from where it was saved.
					at := filepath.Join(b.Work(), "count")
					text, _ := os.ReadFile(at) // none at the beginning
					done, _ := strconv.Atoi(string(text))
					for ; done < 10; done++ {
						select {
						case <-ctx.Done():
							return nil, ctx.Err()
						case <-time.After(each / 10):
						}
						if err := os.WriteFile(at, []byte(strconv.Itoa(done+1)), 0o600); err != nil {
							return nil, err
						}
						if err := b.Saved(); err != nil {
							return nil, err
						}
						b.Progress(int64(done+1), 10)
					}
					if err := os.Remove(at); err != nil {
						return nil, err
					}
					if i%3 == 0 {
						if err := os.MkdirAll(filepath.Join(b.Work(), "left"), 0o755); err != nil {
							return nil, err
						}
						if err := os.WriteFile(filepath.Join(b.Work(), "left", "note"), []byte(strings.Repeat("x", i+1)), 0o600); err !=
							nil {
							return nil, err
						}
					}
					rows := []Row{
						{Table: "t", Labels: map[string]string{"i": strconv.Itoa(i)}, Metric: "sum", Value: sum},
						{Table: "t", Labels: map[string]string{"i": strconv.Itoa(i)}, Metric: "timing_s",
							Value: float64(time.Now().UnixNano())},
					}
					if i == 7 {
						rows = append(rows, Row{Table: "t", Labels: map[string]string{"i": "7"}, Metric: "nan", Value: math.NaN()})
					}
					return rows, nil
				}
				all = append(all, c)
			}
			all = append(all, Cell{Key: "alone", Alone: true, After: []string{"cells/0"},
				Run: func(context.Context, *Bench) ([]Row, error) {
					return []Row{{Table: "t", Labels: map[string]string{"i": "alone"}, Metric: "timing_pid",
						Value: float64(os.Getpid())}}, nil
				}})
			return all, nil
		},
		Tables: func(Plan) []Table {
			return []Table{{Name: "t", Title: "Sums", By: []string{"i"}, Columns: []Column{{Metric: "sum", Title: "sum"}}}}
		},
	}
}

// The variables that make the test's own binary a worker or a coordinator of many(100).
const (
	workerOf      = "STUDY_TEST_WORKER"      // URL
	coordinatorIn = "STUDY_TEST_COORDINATOR" // DIR ADDRESS
)

const (
	cellsOfMany = 100
	cellTime    = 60 * time.Millisecond
	testToken   = "a-token-for-tests"
)

func TestMain(m *testing.M) {
	var err error
	if url := os.Getenv(workerOf); url != "" {
		err = workAt(context.Background(), url, "")
	} else if at := os.Getenv(coordinatorIn); at != "" {
		dir, addr, _ := strings.Cut(at, " ")
		_, err = coordinate(context.Background(), many(cellsOfMany, cellTime), dir, addr, func(string) {})
	} else {
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// workAt is a worker for studies made by many.
func workAt(ctx context.Context, url, name string) error {
	return workqueue.Work(ctx, workqueue.WorkOptions{
		URL: url, Token: testToken, Name: name, Slots: 1, Workers: 1, Build: "test", Patience: time.Minute,
		Handlers: map[string]workqueue.Handler{CellKind: Handler(func(name string) (Study, error) {
			if name == "fails" {
				return failing(), nil
			}
			return many(cellsOfMany, cellTime), nil
		}, "")},
	})
}

// coordinate runs s in dir on workers alone.
func coordinate(ctx context.Context, s Study, dir, addr string, ready func(url string)) (*Report, error) {
	var q *workqueue.Coordinator
	r, err := Run(ctx, s, Options{Dir: dir, Queue: func(ctx context.Context) (_ *workqueue.Coordinator, err error) {
		if q, err = workqueue.Listen(ctx, workqueue.Options{
			Listen: addr, Dir: filepath.Join(dir, "queue"), Job: s.Name, Token: testToken, Build: "test",
			Workers: 1, Tries: 1000, AckWait: time.Second, SaveEvery: time.Millisecond,
		}); err == nil {
			ready(q.URL())
		}
		return q, err
	}})
	if err != nil {
		return nil, err
	}
	if d := q.Disputes(); len(d) > 0 {
		err = fmt.Errorf("%d results differ, the first of %s", len(d), d[0].Task.Name)
	}
	return r, err
}

// spawn starts the test's binary with a variable set.
func spawn(t *testing.T, variable, value string) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), variable+"="+value)
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// alone runs many(100) in one process, and returns what must be equal.
func alone(t *testing.T) map[string]string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "one")
	if _, err := Run(t.Context(), many(cellsOfMany, 0), Options{Dir: dir, Plan: Plan{Workers: 4}}); err != nil {
		t.Fatal(err)
	}
	return lasting(t, dir)
}

// lasting returns the files of an experiment that depend on nothing but its inputs: results, and the files of cells.
func lasting(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, _ := filepath.Rel(dir, path) // it is below dir
		name = filepath.ToSlash(name)
		// with times
		if strings.HasPrefix(name, "cells/") || name == "timing.csv" || name == "index.html" || name == "table.txt" {
			return nil
		}
		b, err := os.ReadFile(path)
		files[name] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// sameFiles reports the first difference.
func sameFiles(t *testing.T, got, want map[string]string) {
	t.Helper()
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s differs from that of one process:\n%.300s\nwant\n%.300s", name, got[name], want[name])
			return
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is there, and not in the folder of one process", name)
		}
	}
	if rows := strings.Count(got["rows.csv"], "\n"); rows < cellsOfMany {
		t.Errorf("rows.csv has %d lines", rows)
	}
}

func TestAHundredCellsOnWorkersThatDie(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts processes for some seconds")
	}
	seed := testseed.Or(1)
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	want := alone(t)
	dir := filepath.Join(t.TempDir(), "many")
	urls, over := make(chan string, 1), make(chan error, 1)
	go func() {
		_, err := coordinate(t.Context(), many(cellsOfMany, cellTime), dir, "127.0.0.1:0", func(url string) { urls <- url })
		over <- err
	}()
	var url string
	select {
	case url = <-urls:
	case err := <-over:
		t.Fatal(err)
	}
	workers := make([]*exec.Cmd, 4)
	for i := range workers {
		workers[i] = spawn(t, workerOf, url)
	}
	kill := func(c *exec.Cmd) {
		_ = c.Process.Kill() // it may have ended
		_ = c.Wait()         // killed
	}
	defer func() {
		for _, c := range workers {
			kill(c)
		}
	}()
	killed, stopped := 0, 0
	for tick := time.NewTicker(400 * time.Millisecond); ; {
		select {
		case err := <-over:
			tick.Stop()
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d workers were killed and %d stopped for a while", killed, stopped)
			if killed == 0 {
				t.Error("the cells ended before a worker died")
			}
			sameFiles(t, lasting(t, dir), want)
			return
		case <-tick.C:
			i := rng.IntN(len(workers))
			if rng.IntN(4) == 0 { // a machine that vanishes and comes back
				if p := workers[i].Process; p.Signal(pause) == nil {
					stopped++
					time.AfterFunc(1500*time.Millisecond, func() { _ = p.Signal(goOn) }) // it may have been killed
				}
				continue
			}
			kill(workers[i])
			killed++
			workers[i] = spawn(t, workerOf, url)
		}
	}
}

func TestACoordinatorThatDiesGoesOn(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts processes for some seconds")
	}
	want := alone(t)
	dir := filepath.Join(t.TempDir(), "many")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	var workers []*exec.Cmd
	for range 2 {
		workers = append(workers, spawn(t, workerOf, "nats://"+addr))
	}
	defer func() {
		for _, c := range workers {
			_ = c.Process.Kill() // it may have ended
			_ = c.Wait()         // killed, or ended as it should
		}
	}()
	kept := func() int {
		files, err := filepath.Glob(filepath.Join(dir, "cells", "cells", "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		return len(files)
	}
	for _, until := range []int{20, 50, 80} {
		c := spawn(t, coordinatorIn, dir+" "+addr)
		ended := make(chan error, 1)
		go func() { ended <- c.Wait() }()
		for kept() < until {
			select {
			case err := <-ended:
				t.Fatalf("the coordinator has ended with %d cells: %v", kept(), err)
			case <-time.After(5 * time.Millisecond):
			}
		}
		_ = c.Process.Kill() // it may have ended by itself
		if err := <-ended; err == nil {
			t.Log("a coordinator came to its end before it was killed")
		}
	}
	if n := kept(); n >= cellsOfMany {
		t.Errorf("%d cells are kept after the last death: it came too late", n)
	}
	c := spawn(t, coordinatorIn, dir+" "+addr)
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	sameFiles(t, lasting(t, dir), want)
	for i, w := range workers {
		if err := w.Wait(); err != nil {
			t.Errorf("worker %d: %v, want it to end when all is done", i, err)
		}
	}
}

// failing is a study with a cell that cannot be computed.
func failing() Study {
	return Study{
		Name: "fails", Title: "Fails",
		Cells: func(Plan) ([]Cell, error) {
			return []Cell{{Key: "cell", Input: 1,
				Run: func(context.Context, *Bench) ([]Row, error) { return nil, errors.New("the disk is on fire") }}}, nil
		},
		Tables: func(Plan) []Table { return nil },
	}
}

func TestACellThatFailsOnWorkersFailsTheExperiment(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	q, err := workqueue.Listen(ctx, workqueue.Options{
		Listen: "127.0.0.1:0", Dir: filepath.Join(t.TempDir(),
			"queue"), Job: "fails", Token: testToken, Build: "test", Workers: 1, Tries: 3,
	})
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() { over <- workAt(ctx, q.URL(), "w1") }()
	_, err = Run(ctx, failing(), Options{Dir: filepath.Join(t.TempDir(), "fails"), Queue: opened(q)})
	if err == nil || !strings.Contains(err.Error(), "cell cell: ") ||
		!strings.Contains(err.Error(), "the disk is on fire") || !strings.Contains(err.Error(), "w1") {
		t.Errorf("got %v, want the error of the cell and the worker's name", err)
	}
	stop()
	if err := <-over; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// opened returns what opens a queue that is open.
func opened(q *workqueue.Coordinator) workqueue.Opener {
	return func(context.Context) (*workqueue.Coordinator, error) { return q, nil }
}

func TestCellsThatMeasureTimeStayHere(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	q, err := workqueue.Listen(ctx, workqueue.Options{
		Listen: "127.0.0.1:0", Dir: filepath.Join(t.TempDir(),
			"queue"), Job: "many", Token: testToken, Build: "test", Workers: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	w := spawn(t, workerOf, q.URL())
	dir := filepath.Join(t.TempDir(), "many")
	if _, err = Run(ctx, many(cellsOfMany, 0), Options{Dir: dir, Queue: opened(q), Only: "alone"}); err != nil {
		t.Fatal(err)
	}
	if err := w.Wait(); err != nil {
		t.Error(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "cells", "alone.json"))
	if err != nil {
		t.Fatal(err)
	}
	var k kept
	if err := json.Unmarshal(b, &k); err != nil {
		t.Fatal(err)
	}
	rows, err := decodeRows(k.Rows)
	if err != nil || len(rows) != 1 || rows[0].Value != float64(os.Getpid()) {
		t.Errorf("got %v, %v, want a row with the number of this process, %d", rows, err, os.Getpid())
	}
}

// BenchmarkCellsOnWorkers computes cells of a millisecond on four workers, as a whole experiment: tasks, results, files
// of cells.
func BenchmarkCellsOnWorkers(b *testing.B) {
	s := Study{Name: "brief", Title: "Brief cells", Tables: func(Plan) []Table { return nil },
		Cells: func(Plan) (all []Cell, err error) {
			for i := range b.N {
				all = append(all, Cell{Key: fmt.Sprintf("cell/%d", i), Input: i, Run: func(context.Context, *Bench) ([]Row, error) {
					time.Sleep(time.Millisecond)
					return []Row{{Table: "t", Labels: map[string]string{"i": strconv.Itoa(i)}, Metric: "m", Value: float64(i)}}, nil
				}})
			}
			return all, nil
		}}
	q, err := workqueue.Listen(b.Context(),
		workqueue.Options{Listen: "127.0.0.1:0", Dir: filepath.Join(b.TempDir(), "queue"), Job: "brief", Token: testToken,
			Build: "test", Workers: 1})
	if err != nil {
		b.Fatal(err)
	}
	over := make(chan error, 1)
	go func() {
		over <- workqueue.Work(b.Context(), workqueue.WorkOptions{
			URL: q.URL(), Token: testToken, Name: "w", Slots: 4, Workers: 4, Build: "test",
			Handlers: map[string]workqueue.Handler{CellKind: Handler(func(string) (Study, error) { return s, nil }, "")},
		})
	}()
	for len(q.Status().Workers) == 0 {
		time.Sleep(time.Millisecond)
	}
	b.ResetTimer()
	if _, err := Run(b.Context(), s, Options{Dir: filepath.Join(b.TempDir(), "brief"), Queue: opened(q)}); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cells/s")
	b.StopTimer()
	if err := <-over; err != nil {
		b.Fatal(err)
	}
}
