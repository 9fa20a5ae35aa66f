package rlscheduler

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/env"
	program "clustergym/env/queuerank/rlscheduler"
	"clustergym/experiments/study"
	"clustergym/internal/fault"
	"clustergym/internal/raced"
	"clustergym/internal/rng"
	peer "clustergym/peer/rlscheduler"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// small returns settings whose cells take a moment.
func small(p study.Plan) (settings, error) {
	s, err := settingsOf(p)
	s.Fresh = 2
	s.Tune = peer.TuneConfig{Starts: 2, Generations: 2, Population: 4, Windows: 1, Length: 100}
	s.State = s.Tune
	s.Search = peer.SearchConfig{Candidates: 1, Futures: 4, Horizon: 5, Confidence: 2}
	return s, err
}

func TestTheReportIsTheSameForAnyNumberOfWorkers(t *testing.T) {
	if testing.Short() || raced.On {
		t.Skip("some seconds")
	}
	var first []byte
	for _, workers := range []int{1, 3} {
		dir := t.TempDir()
		r, err := study.Run(t.Context(), studyWith(small),
			study.Options{Plan: study.Plan{Quick: true, Workers: workers}, Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dir, "rows.csv"))
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = b
		} else if string(b) != string(first) {
			t.Error("rows.csv depends on the number of workers")
		}
		for _, mode := range modes {
			for _, policy := range []string{tuned, state, search, "f1", "smallest-area"} {
				v, _, ok := r.Results.Find("fresh", map[string]string{"log": "generated", "back-filling": mode, "policy": policy},
					"bounded slowdown")
				if !ok || v.Value < 1 || v.Units != 2 {
					t.Errorf("fresh logs, back-filling %s, %s: %+v", mode, policy, v)
				}
			}
		}
		var text strings.Builder
		if err := r.WriteTable(&text); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text.String(), "Left out: Lublin-1, Lublin-2, as there is no --data.") {
			t.Error(text.String())
		}
	}
}

// The ten windows that do not overlap, and the pools of futures, which are apart from the window and from the jobs for
// tests.
func TestWindowsAndPools(t *testing.T) {
	if got, want := apart(), []int{1981, 3316, 5228, 7085, 8850}; !slices.Equal(got, want) {
		t.Errorf("windows that do not overlap: %v, want %v", got, want)
	}
	s, err := settingsOf(study.Plan{Quick: true})
	if err != nil {
		t.Fatal(err)
	}
	var jobs []peer.Job
	for i := range held {
		jobs = append(jobs, peer.Job{ID: fmt.Sprint(i), Submit: int64(i)})
	}
	o := &logSettings{Name: "log", File: "log.swf"}
	for set, n := range map[string]int{published: 10, heldOut: 2} {
		windows, err := s.windows(t.Context(), o, jobs, set, nil)
		if err != nil || len(windows) != n {
			t.Fatalf("%s: %d windows, %v", set, len(windows), err)
		}
		for _, w := range windows {
			in := map[string]bool{}
			for _, j := range w.jobs {
				in[j.ID] = true
			}
			if len(w.jobs) != length || len(in) != length {
				t.Fatalf("%s %s: %d jobs", set, w.name, len(w.jobs))
			}
			pooled := 0
			for _, part := range w.pool {
				for _, j := range part {
					pooled++
					if in[j.ID] || j.Submit >= training {
						t.Fatalf("%s %s: job %s is in the pool", set, w.name, j.ID)
					}
				}
			}
			if pooled < training-length {
				t.Errorf("%s %s: a pool of %d jobs", set, w.name, pooled)
			}
		}
	}
}

func TestTheFolderOfData(t *testing.T) {
	s, err := settingsOf(study.Plan{Quick: true})
	if err != nil {
		t.Fatal(err)
	}
	var input *fault.Mistake
	if _, err := s.cells(study.Plan{Data: t.TempDir()}); !errors.As(err, &input) ||
		!strings.Contains(err.Error(), "it has none of swf") {
		t.Errorf("an empty folder: %v", err)
	}
	// A log that is too short is the user's mistake.
	data := t.TempDir()
	if err := os.MkdirAll(filepath.Join(data, "swf", "fresh"), 0o750); err != nil {
		t.Fatal(err)
	}
	text := func(n int) []byte {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "%d %d -1 100 %d -1 -1 -1 -1 -1 1 -1 -1 -1 0 -1 -1 -1\n", i+1, 100*i, 1+i%256)
		}
		return []byte(b.String())
	}
	file := filepath.Join(data, "swf", "lublin_256.swf.gz") // plain text in spite of its name: content decides
	if err := os.WriteFile(file, text(50), 0o600); err != nil {
		t.Fatal(err)
	}
	o := logSettings{Name: "Lublin-1", File: file}
	if _, err := o.load(t.Context()); !errors.As(err, &input) ||
		!strings.Contains(err.Error(), "log Lublin-1: 50 of its jobs fit 256 processors, want 10000 or more") {
		t.Errorf("a short log: %v", err)
	}
	// Files of fresh logs are cut into windows that do not overlap.
	if err := os.WriteFile(filepath.Join(data, "swf", "fresh", "a.swf"), text(2*length+5), 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := freshFiles(study.Plan{Data: data})
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	windows, err := s.windows(t.Context(), &o, make([]peer.Job, held), fresh, files)
	if err != nil || len(windows) != 2 || windows[1].jobs[0].ID != fmt.Sprint(length+1) {
		t.Errorf("%d windows, %v", len(windows), err)
	}
}

// With the logs of the paper, every rule of its table has the figures that its program prints, to the last digit.
func TestTheTableOfThePaper(t *testing.T) {
	raced.Alone(t)
	data := filepath.Join("..", "..", "..", "shared", "traces")
	if _, err := os.Stat(filepath.Join(data, "swf", "lublin_256_new2.swf.gz")); err != nil {
		t.Skip("the logs of the paper are not at hand: looked for in ../shared, beside this repository, of which they are no part")
	}
	s, err := small(study.Plan{Quick: true})
	if err != nil {
		t.Fatal(err)
	}
	logs, absent, err := s.given(study.Plan{Data: data})
	if err != nil || len(absent) > 0 {
		t.Fatal(absent, err)
	}
	printed := Study().Tables(study.Plan{})[0].Columns[0].Paper
	seen := 0
	for i := range logs {
		o := &logs[i]
		if o.File == "" {
			continue
		}
		jobs, err := o.load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, mode := range modes {
			windows, err := s.windows(t.Context(), o, jobs, published, nil)
			if err != nil {
				t.Fatal(err)
			}
			f := &field{settings: &s, o: o, mode: mode}
			rows, err := f.playRules(t.Context(), nil, published, windows, nil)
			if err != nil {
				t.Fatal(err)
			}
			sums := map[string]float64{}
			for _, r := range rows {
				sums[r.Labels["policy"]] += r.Value / 10
			}
			for policy, sum := range sums {
				if want := printed(map[string]string{"log": o.Name, "back-filling": mode, "policy": policy}); want != "" {
					seen++
					if got := fmt.Sprintf("%.2f", sum); got != want {
						t.Errorf("%s, back-filling %s, %s: %s, the paper's program prints %s", o.Name, mode, policy, got, want)
					}
				}
			}
		}
	}
	if seen != 20 {
		t.Errorf("%d of 20 figures", seen)
	}
}

// jobsOf is one window of jobs for QueueRank-v1.
type jobsOf []traces.Job

func (w jobsOf) At(traces.Part, uint64, int) (traces.Window, error) {
	return traces.Window{Jobs: w, Counted: len(w)}, nil
}

// The small machine and QueueRank-v1 with peer agree on every decision, observation and score of random play, on
// generated jobs of which many are submitted in one second.
func TestTheMachineIsQueueRank(t *testing.T) {
	for seed := range uint64(6) {
		r := rng.Stream(seed, "test/rlscheduler")
		var log []traces.Job
		at := 0
		for i := range 400 {
			at += r.IntN(3) * r.IntN(40)
			run := 1 + r.IntN(1+r.IntN(3000))
			log = append(log,
				traces.Job{ID: fmt.Sprint(i), Submit: time.Duration(at) * time.Second, Work: time.Duration(run) * time.Second,
					Estimate: time.Duration(run) * time.Second, GPUs: 1 + r.IntN(64), GPUMilli: 1000})
		}
		jobs := peer.Jobs(log, procs)
		for _, backfill := range []string{"none", "easy"} {
			cfg := program.DefaultConfig()
			cfg.Window, cfg.Backfill, cfg.Estimates, cfg.Reward = len(log), backfill, sim.MustEstimates("exact"), "minus"
			e, err := program.New(program.ID, cfg, cluster.Spec{Pool: procs}, jobsOf(log), log, traces.Training)
			if err != nil {
				t.Fatal(err)
			}
			ts := env.NewTimeStep(e.Spec())
			if err := e.Reset(t.Context(), env.Episode{Seed: 1}, ts); err != nil {
				t.Fatal(err)
			}
			m := peer.NewMachine(procs, backfill == "easy")
			m.Reset(jobs)
			o := peer.Observer{}
			for i := range jobs {
				o.Longest = max(o.Longest, jobs[i].Run)
			}
			row := make([]float32, peer.Features)
			for step := 0; !m.Done(); step++ {
				slots := o.Look(m)
				if len(slots) != len(e.Slots()) || m.Waiting() != e.Waiting() {
					t.Fatalf("seed %d, step %d: %d of %d jobs are visible, QueueRank has %d of %d", seed, step, len(slots),
						m.Waiting(), len(e.Slots()), e.Waiting())
				}
				for k, place := range slots {
					if o.Row(m, m.Job(place), row); !slices.Equal(row, ts.Obs[8*k:8*k+8]) {
						t.Fatalf("seed %d, step %d, slot %d: %v, QueueRank has %v", seed, step, k, row, ts.Obs[8*k:8*k+8])
					}
				}
				k := r.IntN(len(slots))
				m.Commit(slots[k])
				if err := e.Step(t.Context(), env.Action{Disc: []int32{int32(k)}}, ts); err != nil {
					t.Fatal(err)
				}
			}
			if d := ts.Reward + m.Mean(); ts.Kind != env.Terminated || d > 1e-9*m.Mean() || d < -1e-9*m.Mean() {
				t.Errorf("seed %d: bounded slowdown %v, QueueRank has %v", seed, m.Mean(), -ts.Reward)
			}
		}
	}
}
