package predictors

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"clustergym/internal/fault"
	"clustergym/internal/rng"
	"clustergym/internal/snap"
	"clustergym/simulator/predict"
	"clustergym/simulator/predict/boost"
	"clustergym/simulator/predict/gbdt"
	"clustergym/traces"
)

// users makes jobs of users with habits of their own.
func users(t *testing.T, n int) []traces.Job {
	t.Helper()
	src := rng.Stream(4, "forecast/users")
	var jobs []traces.Job
	for i := range n {
		u := src.IntN(6)
		j := traces.Job{ID: fmt.Sprint("j", i), User: fmt.Sprint("u", u), Submit: time.Duration(i) * time.Minute,
			GPUs: 1 + src.IntN(4), GPUMilli: 1000}
		j.Work = time.Duration(math.Exp(4+float64(u)+src.NormFloat64()) * float64(time.Second))
		jobs = append(jobs, j)
	}
	return jobs
}

func fitted(t *testing.T, jobs []traces.Job, until time.Duration) *gbdt.Fitted {
	t.Helper()
	f, err := gbdt.Fit(t.Context(), "jobs.csv", jobs, until, 2)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func save(t *testing.T, name string, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAModelComesBackFromItsFile(t *testing.T) {
	jobs := users(t, 1500)
	until := jobs[1000].Submit
	f := fitted(t, jobs, until)
	b := f.AppendBinary(nil)
	m, err := ReadModel(t.Context(), nil, save(t, "m.bin", b), "m.bin")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(m.AppendBinary(nil), b) || m.Trace != "jobs.csv" || m.Until != until || m.File != "m.bin" ||
		m.Bytes != int64(len(b)) {
		t.Errorf("got %+v", m)
	}
	ended := 0
	for i := range jobs {
		j := &jobs[i]
		was := j.Submit+j.Work < until
		if m.Knows(j) != was {
			t.Errorf("job %s, which ended at %v: known %v", j.ID, j.Submit+j.Work, !was)
		}
		if was {
			ended++
		}
	}
	if m.Jobs() != ended || ended < 600 {
		t.Errorf("fitted to %d jobs, %d had ended", m.Jobs(), ended)
	}
	// What comes later changes nothing.
	for i := 1000; i < len(jobs); i++ {
		jobs[i].Work, jobs[i].User = time.Hour, "late"
	}
	if !bytes.Equal(fitted(t, jobs, until).AppendBinary(nil), b) {
		t.Error("jobs submitted later have changed the model")
	}
}

func TestFilesThatAreNoModelsAreRefusedInASentence(t *testing.T) {
	whole := fitted(t, users(t, 900), traces.MaxTime).AppendBinary(nil)
	other := func(names []string, levels []float64) []byte {
		rows, target := make([]float32, 40*len(names)), make([]float64, 40)
		for i := range target {
			rows[i*len(names)], target[i] = float32(i), float64(i)
		}
		b, err := boost.Fit(context.Background(), names, rows, target, levels, boost.DefaultOptions(), 1)
		if err != nil {
			t.Fatal(err)
		}
		file := snap.Begin(nil, "clustergym gbdt 1\n")
		file = snap.Int(snap.Int(snap.String(file, "x"), 0), 0)
		return snap.Seal(snap.Bytes(file, b.AppendBinary(nil)), 0)
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 4
	for _, c := range []struct {
		name string
		b    []byte
		want string
	}{
		{"empty", nil, "the file is empty; want one of gymctl predict fit"},
		{"trace", []byte("submit_time,duration,num_gpu\n0,1,1\n"), "it is no model of gymctl predict fit"},
		{"short", whole[:12], "it is damaged or cut short; fit it again, or copy it again"},
		{"c", whole[:1], "it is damaged or cut short; fit it again, or copy it again"},
		{"header", whole[:18], "it is damaged or cut short; fit it again, or copy it again"},
		{"half", whole[:len(whole)/2], "it is damaged or cut short; fit it again, or copy it again"},
		{"flipped", flipped, "it is damaged or cut short; fit it again, or copy it again"},
		{"later", append([]byte("clustergym gbdt 2\n"), whole[18:]...),
			"it comes from another version of gymctl; fit it again"},
		{"features", other([]string{"gpus", "moon"}, predict.Levels[:]),
			"its features or quantiles are not those of this gymctl; fit it again"},
		{"levels", other(gbdt.Features(), []float64{0.5}),
			"its features or quantiles are not those of this gymctl; fit it again"},
	} {
		_, err := ReadModel(t.Context(), nil, save(t, c.name, c.b), c.name)
		_, mistake := errors.AsType[*fault.Mistake](err)
		if want := "model " + c.name + ": " + c.want; !mistake || err.Error() != want {
			t.Errorf("%s: got %q, want %q", c.name, err, want)
		}
	}
	for i := range len(whole) {
		if _, err := gbdt.Parse(whole[:i]); err == nil {
			t.Fatalf("the first %d bytes are a model", i)
		}
	}
	dir := t.TempDir()
	for path, want := range map[string]string{
		dir:                           "model NAME: this is a folder; want a file of gymctl predict fit",
		filepath.Join(dir, "nowhere"): "model NAME: there is no such file",
	} {
		if _, err := ReadModel(t.Context(), nil, path, "NAME"); err == nil || err.Error() != want {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	huge := filepath.Join(dir, "huge")
	f, err := os.Create(huge)
	if err := errors.Join(err, f.Truncate(1<<40), f.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadModel(t.Context(), nil, huge, "huge"); err == nil ||
		!strings.Contains(err.Error(), "more than 256 MiB") {
		t.Errorf("a terabyte: %v", err)
	}
}

func TestAModelIsNotMeasuredOnWhatItHasSeen(t *testing.T) {
	jobs := users(t, 2000)
	until := jobs[1200].Submit
	m := &Model{Fitted: fitted(t, jobs, until), File: "m.bin"}
	if err := m.Unseen(jobs, until); err != nil {
		t.Errorf("measured on later jobs: %v", err)
	}
	// The same trace, cut: its clock begins anew, and its jobs are the same.
	cut := slices.Clone(jobs[800:])
	for i := range cut {
		cut[i].Submit -= jobs[800].Submit
	}
	for name, err := range map[string]error{"earlier": m.Unseen(jobs, jobs[1100].Submit),
		"from the first job on": m.Unseen(jobs, 0), "cut": m.Unseen(cut, 0)} {
		if _, mistake := errors.AsType[*fault.Mistake](err); !mistake ||
			!strings.Contains(err.Error(), "model m.bin has been fitted to") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	other := users(t, 2000)
	for i := range other {
		other[i].User = "other" + other[i].User
	}
	if err := m.Unseen(other, 0); err != nil {
		t.Errorf("measured on another trace: %v", err)
	}
}

func TestFeaturesAreWrittenAsTheyAreFitted(t *testing.T) {
	jobs := users(t, 800)
	jobs[3].Estimate = 2 * time.Hour
	m := &Model{Fitted: fitted(t, jobs, traces.MaxTime)}
	var b bytes.Buffer
	n, err := WriteFeatures(t.Context(), &b, jobs, m, func(int) {})
	if err != nil || n != len(jobs) {
		t.Fatalf("%d rows, %v", n, err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil || len(rows) != len(jobs)+1 || !slices.Equal(rows[0], FeatureColumns(true)) {
		t.Fatalf("%d rows, header %v, %v", len(rows), rows[0], err)
	}
	at := func(row []string, name string) float64 {
		cell := row[slices.Index(rows[0], name)]
		if cell == "" {
			return math.NaN()
		}
		x, err := strconv.ParseFloat(cell, 64)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return x
	}
	last := -1.0
	for _, row := range rows[1:] {
		if end := at(row, "end_time"); end < last {
			t.Fatalf("job %s ends at %v, after one that ends at %v", row[0], end, last)
		} else {
			last = end
		}
		i, _ := strconv.Atoi(row[0][1:])
		unit := 1e-9
		if i == 3 {
			unit = 7200
		}
		if got, want := at(row, "target"), math.Log(jobs[i].Work.Seconds()/unit); at(row, "unit") != unit ||
			math.Abs(got-want) > 1e-9 || at(row, "gpus") != float64(jobs[i].GPUs) {
			t.Errorf("job %s: target %v, want %v; unit %v", row[0], got, want, at(row, "unit"))
		}
		if got := at(row, "requested_time"); i == 3 && math.Abs(got-math.Log(7200)) > 1e-6 || i != 3 && !math.IsNaN(got) {
			t.Errorf("job %s: requested time %v", row[0], got)
		}
		if !(at(row, "q10") <= at(row, "q50") && at(row, "q50") <= at(row, "q90")) {
			t.Errorf("job %s: quantiles %v", row[0], row[len(row)-5:])
		}
	}
	// Statistics of the user's jobs that had ended when the last job was submitted.
	final := rows[slices.IndexFunc(rows, func(r []string) bool { return r[0] == "j799" })]
	newest, count := time.Duration(-1), 0
	var work time.Duration
	for i := range 799 {
		j := &jobs[i]
		if end := j.Submit + j.Work; j.User == jobs[799].User && i != 3 && end <= jobs[799].Submit {
			count++
			if end > newest {
				newest, work = end, j.Work
			}
		}
	}
	if got, want := at(final, "user_last"), math.Log(float64(work)); math.Abs(got-want) > 1e-5 ||
		at(final, "user_count") != float64(min(count, 20)) {
		t.Errorf("the last job of user %s ran for ln %v, want %v; %v jobs, want %d", jobs[799].User, got, want,
			at(final, "user_count"), count)
	}
}

// A requested time that a reader has assumed is the run time: no predictor may see it.
func TestAssumedRequestsTellPredictorsNothing(t *testing.T) {
	jobs := users(t, 700)
	assumed := slices.Clone(jobs)
	for i := range assumed {
		assumed[i].Estimate, assumed[i].Assumed = assumed[i].Work, true
	}
	var a, b bytes.Buffer
	for out, jobs := range map[*bytes.Buffer][]traces.Job{&a: jobs, &b: assumed} {
		if _, err := WriteFeatures(t.Context(), out, jobs, nil, func(int) {}); err != nil {
			t.Fatal(err)
		}
	}
	if a.String() != b.String() {
		t.Error("the features differ")
	}
	if x, y := fitted(t, jobs, traces.MaxTime),
		fitted(t, assumed, traces.MaxTime); !bytes.Equal(x.AppendBinary(nil), y.AppendBinary(nil)) {
		t.Error("the models differ")
	}
}

func TestAnInterruptedFitEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := gbdt.Fit(ctx, "x", users(t, 900), traces.MaxTime, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := gbdt.Fit(t.Context(), "x", users(t, gbdt.First-1), traces.MaxTime, 1); !errors.Is(err, gbdt.ErrTooFew) {
		t.Errorf("got %v, want %v", err, gbdt.ErrTooFew)
	}
}

func TestPoints(t *testing.T) {
	jobs := users(t, 100)
	for text, want := range map[string]time.Duration{"0": 0, "0.5": 50 * time.Minute, "1": 99*time.Minute + 1,
		"0.999": 99 * time.Minute, "36h": 36 * time.Hour, "0s": 0} {
		if got, err := Point(jobs, "from", text); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "-1", "1.5", "-1h", "soon", "NaN"} {
		if _, err := Point(jobs, "from", text); err == nil || !strings.Contains(err.Error(), "from: got") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
