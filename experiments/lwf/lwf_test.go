package lwf

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clustergym/experiments/study"
	"clustergym/internal/fault"
	"clustergym/internal/raced"
	peer "clustergym/peer/lwf"
)

// small returns settings whose cells take a moment.
func small(p study.Plan) (settings, error) {
	s, err := settingsOf(p)
	s.PaperDraws, s.Draws, s.SpanDraws, s.FluidDraws, s.Spans, s.FluidSpans = 0, 2, 2, 2, []int64{12}, []int64{192}
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
		for _, c := range Study().Claims(study.Plan{}) {
			if strings.HasPrefix(c.Table, "paper") {
				continue // such a workload takes ten seconds
			}
			if v, _, ok := r.Results.Find(c.Table, c.Line, c.Column); !ok || math.IsNaN(v.Value) {
				t.Errorf("%s: there is no figure in column %s of table %s, line %v", c.What, c.Column, c.Table, c.Line)
			}
		}
	}
}

// A workload of the paper's scale has a figure for each of its claims.
func TestThePapersScale(t *testing.T) {
	if testing.Short() || raced.On {
		t.Skip("ten seconds")
	}
	s := study.Study{Name: "lwf", Title: "small", Tables: Study().Tables, Cells: func(study.Plan) ([]study.Cell, error) {
		return []study.Cell{{Key: "paper/0", Run: func(ctx context.Context, _ *study.Bench) ([]study.Row, error) {
			scale := peer.Paper
			scale.Span, scale.Least, scale.Most = scale.Span/10, scale.Least/10, scale.Most/10
			return playPaper(ctx, scale, 0)
		}}}, nil
	}}
	r, err := study.Run(t.Context(), s, study.Options{Plan: study.Plan{Quick: true, Workers: 1}, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, c := range Study().Claims(study.Plan{}) {
		if !strings.HasPrefix(c.Table, "paper") {
			continue
		}
		seen++
		if v, _, ok := r.Results.Find(c.Table, c.Line, c.Column); !ok || math.IsNaN(v.Value) {
			t.Errorf("%s: there is no figure in column %s of table %s, line %v", c.What, c.Column, c.Table, c.Line)
		}
	}
	if seen != 6 {
		t.Errorf("%d claims of the paper's scale, want 6", seen)
	}
}

// A job on its own takes as long here as on the authors' machine, which rounds every transfer up to a millisecond.
func TestAJobAloneTakesAsLongOnBothMachines(t *testing.T) {
	for _, m := range peer.Models() {
		for _, workers := range []int{1, 2, 4, 6, 8, 32} {
			for _, placement := range placesOfFluid() {
				j := m
				j.Workers, j.Iterations, j.Arrival = workers, 50, 700
				here, err := playHere(t.Context(), []peer.Job{j}, fluidPlaces[placement])
				if err != nil {
					t.Fatal(err)
				}
				r, err := player{}.play(t.Context(), []peer.Job{j}, own, placement, srsf1, 0)
				if err != nil {
					t.Fatal(err)
				}
				there := float64(r.Jobs[0].Finish-j.Arrival) / 1000
				if here[0] > there+1e-6 || here[0] < there-0.050-1e-6 {
					t.Errorf("%s on %d GPUs, %s: %v s here, %v s there", j.Model, workers, placement, here[0], there)
				}
			}
		}
	}
}

// Own GPUs: no two jobs are on one GPU at the same time.
func TestOwnGPUsHaveOneJobAtATime(t *testing.T) {
	raced.Alone(t)
	jobs := peer.Generate(peer.Program, 7)
	r, err := player{}.play(t.Context(), jobs, own, lwf1, srsf2, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range jobs {
		for k := range i {
			a, b := r.Jobs[i], r.Jobs[k]
			if a.Placed >= b.Finish || b.Placed >= a.Finish {
				continue
			}
			for _, g := range a.GPUs {
				for _, h := range b.GPUs {
					if g == h {
						t.Fatalf("jobs %d and %d are on GPU %d, from %d to %d and from %d to %d", i, k, g, a.Placed, a.Finish, b.Placed,
							b.Finish)
					}
				}
			}
		}
	}
}

func TestTheFolderOfData(t *testing.T) {
	s, err := small(study.Plan{Quick: true})
	if err != nil {
		t.Fatal(err)
	}
	var input *fault.Mistake
	if _, err := s.cells(study.Plan{Data: filepath.Join(t.TempDir(), "data")}); !errors.As(err, &input) ||
		!strings.Contains(err.Error(), "it has none of the recorded workloads of this experiment, as lwf/ms160_s1.csv") {
		t.Errorf("an empty folder: %v", err)
	}
	data := filepath.Join(t.TempDir(), "data")
	dir := filepath.Join(data, "lwf")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const header, results = "job,arrival_ms,workers,model,iters,size_mb,fw_ms,bw_ms,mem_mb\n",
		"algo,variant,job,placed_ms,first_task_ms,finish_ms,jct_ms,nodes,gpus_in_worker_order\n"
	write("f20_queue.csv", header+"a,5,2,m,3,10,4,6,100\n")
	const name = "f20_queue_expected.csv.gz" // plain text in spite of its name: content decides
	for _, c := range []struct{ results, want string }{
		{results + "ssf-bp-srsf-1-true,pure,a,5,5,35,30,1,0.0 0.1\nssf-random-srsf-1-true,orig,a,5,5,36,30,1,0.1 0.0\n",
			"2 jobs, 1 equal"},
		{results + "ssf-bp-srsf-1-true,pure,b,5,5,35,30,1,0.0 0.1\n", `job "b" is not in`},
		{results + "ssf-bp-srsf-1-true,pure,a,5,5,35,30,1,0.0 0.2\n", `job a: got GPUs "0.0 0.2", want 2 as NODE.GPU`},
		{results + "ssf-bp-srsf-1-true,pure,a,5,5,35,30,1,0.0\n", `job a: got GPUs "0.0", want 2 as NODE.GPU`},
		{results + "ssf-bp-srsf-1,pure,a,5,5,35,30,1,0.0 0.1\n", "want ORDER-PLACE-TASKS-THRESHOLD-ADAPTIVE"},
		{"algo,variant\n", "no column job"},
		{"", "EOF"},
	} {
		write(name, c.results)
		found, err := findRecorded(data)
		if err != nil || len(found) != 1 {
			t.Fatal(found, err)
		}
		rows, err := found[0].compare(t.Context())
		got := ""
		if err == nil {
			got = fmt.Sprintf("%v jobs, %v equal", rows[1].Value, rows[2].Value)
		} else if !errors.As(err, &input) {
			t.Errorf("%v is no mistake of the user's", err)
		} else {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%q: %s, want %s", c.results, got, c.want)
		}
	}
	write("f20_queue.csv", header+"a,5,2,m,3,10,4,6,100\nc,5,1,m,3,10,4,6,100\n")
	write(name, results+"ssf-random-srsf-1-true,pure,a,5,5,35,30,1,0.0 0.1\n")
	found, err := findRecorded(data)
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	if _, err := found[0].compare(t.Context()); !errors.As(err, &input) ||
		!strings.Contains(err.Error(), `the run ssf-random-srsf-1-true pure has no job "c"`) {
		t.Errorf("a run without one of its jobs: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
	if _, err := findRecorded(data); err == nil {
		t.Error("a workload without its results is no recorded run")
	}
}

// Every recorded job of the authors' program is equal.
func TestEveryRecordedJobIsEqual(t *testing.T) {
	raced.Alone(t)
	data := filepath.Join("..", "..", "..", "shared", "traces")
	found, err := findRecorded(data)
	if err != nil || len(found) < len(sets) {
		t.Skip("the recorded runs are not at hand: looked for in ../shared, beside this repository, of which they are no part")
	}
	for i := range found {
		rows, err := found[i].compare(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			if r.Metric == "differ" && r.Value != 0 || r.Metric == "jobs" && r.Value < 50 {
				t.Errorf("%s: %s %v", found[i].name, r.Metric, r.Value)
			}
		}
	}
}

func TestBadSettingsAreNamed(t *testing.T) {
	s := settings{Draws: 0, SpanDraws: 1, FluidDraws: 1, Spans: []int64{0, 12, 12}, PaperDraws: -1,
		FluidPaperDraws: 100001}
	err := s.Validate()
	for _, want := range []string{"draws: got 0", "spans: got 0", "spans: got 12", "fluid_spans: got []",
		"paper_draws: got -1", "fluid_paper_draws: got 100001"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
