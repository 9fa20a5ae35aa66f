package tune_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"clustergym/configs"
	"clustergym/internal/statistic"
	"clustergym/lab/config"
	"clustergym/lab/tune"
	"clustergym/lab/workload"
	"clustergym/traces"
	"clustergym/traces/csv"
)

// streamed returns a configuration whose policies are measured on short streams.
func streamed(t *testing.T, sets ...string) config.Config {
	t.Helper()
	cfg, err := config.Preset("quickstart")
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range append([]string{"trace.seed=7", "trace.synth.jobs=8000", "trace.synth.profile=philly", "env.estimates=exact",
		"env.warm=64", "eval.streams.draws=10", "eval.streams.jobs=60", "eval.streams.warm=40"}, sets...) {
		if err := configs.Set(&cfg, set); err != nil {
			t.Fatal(err)
		}
	}
	cfg.Eval.Policies = nil
	if !cfg.Streamed() {
		t.Fatalf("%s plays no streams", cfg.Env.ID)
	}
	return cfg
}

// smallDraws are small settings for streams.
func smallDraws(generations int) tune.Settings {
	return tune.Settings{Generations: generations, Population: 8, Windows: 200, Draws: 3, Every: 2, Seed: 3}
}

// On streams the result follows from the seed, for any number of workers, and is checked on draws that chose nothing.
func TestStreamsFindTheSameWeights(t *testing.T) {
	cfg := streamed(t)
	want, about := search(t, cfg, tune.Options{Settings: smallDraws(4), Workers: 1})
	if got, again := search(t, cfg, tune.Options{Settings: smallDraws(4), Workers: 3}); got != want ||
		fmt.Sprint(again) != fmt.Sprint(about) && !reflect.DeepEqual(again, about) {
		t.Errorf("3 workers find %+v and 1 finds %+v", got, want)
	}
	c := about.Check
	if c == nil || c.Units != 40 || about.Windows != 0 || about.Log || about.Jobs <= 0 || about.Generations != 4 {
		t.Fatalf("%+v", about)
	}
	if d := 100 * (about.Best/about.Start - 1); math.Abs(d-float64(c.Difference)) > 1e-9 {
		t.Errorf("the check says %v %%, the means differ by %v %%", c.Difference, d)
	}
	if len(about.Rivals) != 3 || about.Rivals[2].B != "area+skip" || about.Rules["sjf+skip"] <= 0 {
		t.Errorf("%+v", about)
	}
	// Other validation draws follow from the seed of evaluations, and leave the search as it is.
	cfg.Eval.Seed++
	if got, other := search(t, cfg, tune.Options{Settings: smallDraws(4), Workers: 2}); got != want ||
		other.Best == about.Best {
		t.Errorf("with other validation draws %+v, %+v", got, other)
	}
}

// From weights that hold back nearly everything the search on streams finds ones that do not, and shows it.
func TestStreamsLeaveABadBeginning(t *testing.T) {
	cfg := streamed(t)
	cfg.Eval.Hold.Base = 0.5
	h, about := search(t, cfg, tune.Options{Settings: smallDraws(8), Workers: 2})
	if about.Check.Verdict != statistic.Ahead || h.Base >= 0.5 {
		t.Errorf("%+v: %+v", h, about.Check)
	}
	few := streamed(t, "eval.streams.draws=2")
	if _, about := search(t, few, tune.Options{Settings: smallDraws(1), Workers: 2}); about.Check.Verdict != statistic.TooFew {
		t.Errorf("8 draws: %+v", about.Check)
	}
}

// A search on streams that is interrupted goes on where it was.
func TestAnInterruptedSearchOnStreamsGoesOn(t *testing.T) {
	cfg := streamed(t)
	want, about := search(t, cfg, tune.Options{Settings: smallDraws(4), Workers: 2})
	dir := t.TempDir()
	stopped, cancel := context.WithCancel(ctx)
	_, _, err := tune.Run(stopped, cfg, tune.Options{Settings: smallDraws(4), Workers: 2, Dir: dir,
		Tick: func(done, _ int) {
			if done == 3 {
				cancel()
			}
		}})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	got, again := search(t, cfg, tune.Options{Settings: smallDraws(4), Workers: 1, Dir: dir})
	if again.Jobs = about.Jobs; got != want || again.Best != about.Best || again.At != about.At {
		t.Errorf("%+v, %+v after an interruption, want %+v, %+v", got, again, want, about)
	}
	b, err := os.ReadFile(filepath.Join(dir, tune.HoldFile))
	if err != nil || !strings.Contains(string(b), "# Mean JCT on 40 validation units against "+about.Check.B) {
		t.Errorf("hold.yaml is %s: %v", b, err)
	}
	other := smallDraws(4)
	other.Draws = 5
	if _, _, err := tune.Run(ctx, cfg, tune.Options{Settings: other, Dir: dir}); err == nil ||
		!strings.Contains(err.Error(), "population 8, draws 3, every 2, seed 3") {
		t.Error(err)
	}
}

// The weights of a recorded workload are compared on stretches of its training part, and checked on the blocks of the
// validation part, of which 300 jobs have too few.
func TestARecordedWorkloadIsCutIntoStretches(t *testing.T) {
	cfg := streamed(t)
	jobs, _, err := workload.LoadTrace(cfg.Trace)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "jobs.csv")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(write(f, jobs[:3000]), f.Close()); err != nil {
		t.Fatal(err)
	}
	cfg.Trace.File, cfg.Trace.Format, cfg.Trace.AcceptLeftOut = name, "csv", true
	_, about := search(t, cfg, tune.Options{Settings: smallDraws(2), Workers: 2})
	if !about.Log || about.Check.Verdict != statistic.TooFew || about.Rules["area+skip"] <= 0 {
		t.Errorf("%+v, %+v", about, about.Check)
	}
}

// write writes jobs as a CSV trace.
func write(w io.Writer, jobs []traces.Job) error {
	_, err := csv.Write(w, &traces.Slice{Jobs: jobs})
	return err
}
