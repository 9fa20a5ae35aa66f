package predictors

import (
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"clustergym/internal/raced"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
	"clustergym/traces/philly"
	"clustergym/traces/synth"
)

// fromHistory measures the forecasts from history for the second half of jobs by time, all of which start when they are
// submitted.
func fromHistory(t *testing.T, jobs []traces.Job) Quality {
	t.Helper()
	half := (jobs[0].Submit + jobs[len(jobs)-1].Submit) / 2
	est := sim.Estimates{Mode: sim.EstimateHistory}
	by, err := Maker(est, nil)
	if err != nil {
		t.Fatal(err)
	}
	all, err := collect(t.Context(), jobs, est, by, cluster.Spec{}, half, nil)
	if err != nil {
		t.Fatal(err)
	}
	return Measure(all)
}

// without returns jobs without their names, or without users too.
func without(jobs []traces.Job, users bool) []traces.Job {
	jobs = slices.Clone(jobs)
	for i := range jobs {
		jobs[i].Name = ""
		if users {
			jobs[i].User = ""
		}
	}
	return jobs
}

func generated(t *testing.T, profile string, jobs int, seed uint64) []traces.Job {
	t.Helper()
	c := synth.DefaultConfig()
	c.Profile, c.Jobs = profile, jobs
	all, err := synth.Generate(c, seed)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The figures of the recorded Philly table, which has virtual clusters but neither users nor names.
const (
	phillySpearman = 0.720
	phillyLogError = 1.043
)

// Generated jobs are as predictable as recorded ones, with the columns that both have. What users and names add lies
// between what they add in logs that have them (docs/reference/traces.md).
func TestGeneratedJobsArePredictableLikePhillys(t *testing.T) {
	raced.Alone(t)
	const seeds = 4
	var cluster, user, name, logError, plain float64
	for seed := range uint64(seeds) {
		jobs := generated(t, "philly-users", 72_000, seed)
		q := fromHistory(t, without(jobs, true))
		t.Logf("seed %d: %+v", seed, q)
		cluster += q.Spearman / seeds
		logError += q.LogError / seeds
		user += fromHistory(t, without(jobs, false)).Spearman / seeds
		name += fromHistory(t, jobs).Spearman / seeds
		plain += fromHistory(t, without(generated(t, "philly", 72_000, seed), true)).Spearman / seeds
	}
	t.Logf("rank correlation with virtual clusters %.3f, users %.3f, names %.3f; profile philly %.3f; log error %.3f",
		cluster, user, name, plain, logError)
	if math.Abs(cluster-phillySpearman) > 0.05 {
		t.Errorf("rank correlation from virtual clusters and GPUs: %.3f, want %.3f within 0.05", cluster, phillySpearman)
	}
	if math.Abs(logError-phillyLogError) > 0.1 {
		t.Errorf("mean |log error| from virtual clusters and GPUs: %.3f, want %.3f within 0.1", logError, phillyLogError)
	}
	if more := user - cluster; more < 0 || more > 0.14 {
		t.Errorf("users add %.3f to the rank correlation, want 0 to 0.14", more)
	}
	if more := name - user; more < 0 || more > 0.05 {
		t.Errorf("names add %.3f to the rank correlation, want 0 to 0.05", more)
	}
	if plain > cluster-0.05 {
		t.Errorf(
			"profile philly, whose bursts have nothing to do with those before, has a rank correlation of %.3f, with habits %.3f", plain, cluster)
	}
}

func TestTheRecordedTableHasTheFiguresThatGeneratedJobsFollow(t *testing.T) {
	f, err := traces.OpenFile(filepath.Join("..", "..", "..", "shared", "traces", "philly", "philly_jobs.csv.gz"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("real Philly trace not at hand: looked for in ../shared, beside this repository, of which it is no part")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d, err := philly.NewReader(f, "philly_jobs.csv.gz")
	if err != nil {
		t.Fatal(err)
	}
	if q := fromHistory(t, d.Jobs()); math.Abs(q.Spearman-phillySpearman) > 0.002 ||
		math.Abs(q.LogError-phillyLogError) > 0.002 {
		t.Errorf("rank correlation %.4f, log error %.4f, want %g and %g", q.Spearman, q.LogError, phillySpearman,
			phillyLogError)
	}
}
