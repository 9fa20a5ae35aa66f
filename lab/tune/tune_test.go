package tune_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"clustergym/configs"
	"clustergym/lab/config"
	"clustergym/lab/tune"
	"clustergym/simulator/schedulers/tuned"
	"clustergym/simulator/sim"
)

var ctx = context.Background()

// run returns a configuration over few jobs, with windows of 48, crowded.
func run(t *testing.T, sets ...string) config.Config {
	t.Helper()
	cfg, err := config.Preset("quickstart-exact")
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range append([]string{"trace.seed=7", "trace.synth.jobs=4000", "env.window=48", "env.warm=16", "env.load=2"}, sets...) {
		if err := configs.Set(&cfg, set); err != nil {
			t.Fatal(err)
		}
	}
	cfg.Eval.Policies = nil
	return cfg
}

// small settings.
func small(generations int) tune.Settings {
	return tune.Settings{Generations: generations, Population: 8, Windows: 12, Every: 2, Seed: 3}
}

func search(t *testing.T, cfg config.Config, opt tune.Options) (tuned.Hold, *tune.Report) {
	t.Helper()
	h, r, err := tune.Run(ctx, cfg, opt)
	if err != nil {
		t.Fatal(err)
	}
	return h.Hold, r
}

// The result follows from the seed, for any number of workers, and is never worse on validation than the weights at the
// beginning.
func TestTheSameSeedFindsTheSameWeights(t *testing.T) {
	for _, estimates := range []string{"exact", "history"} {
		cfg := run(t, "env.estimates="+estimates)
		want, about := search(t, cfg, tune.Options{Settings: small(6), Workers: 1})
		if got, again := search(t, cfg, tune.Options{Settings: small(6), Workers: 3}); got != want ||
			!reflect.DeepEqual(again, about) {
			t.Errorf("%s: 3 workers find %+v and 1 finds %+v", estimates, got, want)
		}
		if about.Best > about.Start || about.Windows == 0 || about.Jobs <= 0 || about.Generations != 6 {
			t.Errorf("%s: %+v", estimates, about)
		}
		other := small(6)
		other.Seed++
		if got, about := search(t, cfg, tune.Options{Settings: other, Workers: 2}); got == want && about.At > 0 {
			t.Errorf("%s: two seeds find %+v", estimates, got)
		}
	}
}

// From weights that hold back nearly everything the search finds ones that do not.
func TestASearchLeavesABadBeginning(t *testing.T) {
	cfg := run(t)
	cfg.Eval.Hold = tuned.DefaultHold(sim.Estimates{Mode: sim.EstimateExact})
	cfg.Eval.Hold.Base = 0.5
	h, about := search(t, cfg, tune.Options{Settings: small(14), Workers: 2})
	if about.Best > 0.95*about.Start || h.Base >= 0.5 {
		t.Errorf("%+v: %+v", h, about)
	}
}

// A weight that begins at its bound stays within it.
func TestWeightsStayWithinTheirBounds(t *testing.T) {
	for _, base := range []float64{-tuned.HeaviestHold, tuned.HeaviestHold} {
		cfg := run(t)
		cfg.Eval.Hold = tuned.Hold{Base: base}
		h, _ := search(t, cfg, tune.Options{Settings: small(4), Workers: 2})
		if err := h.Validate(); err != nil {
			t.Errorf("from base %v: %v", base, err)
		}
	}
	cfg := run(t)
	cfg.Eval.Hold = tuned.Hold{Width: 1}.Unheld()
	base := cfg.Eval.Hold.Base
	if h, _ := search(t, cfg, tune.Options{Settings: small(4), Workers: 2}); h.Base != base {
		t.Errorf("a base of %v, which holds nothing back, has become %v", base, h.Base)
	}
}

// Environments without a simulator are refused in one sentence.
func TestWhatThereIsNothingToTuneFor(t *testing.T) {
	for preset, want := range map[string]string{
		"cartpole-ppo":     "CartPole-v1 has no simulator to play hold on; want a scheduling environment such as JobSelect-v1",
		"workerplace-maml": "WorkerPlace-v1 has no simulator to play hold on; want a scheduling environment such as JobSelect-v1",
	} {
		cfg, err := config.Preset(preset)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := tune.Run(ctx, cfg, tune.Options{Settings: small(2)}); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %q", preset, err, want)
		}
	}
}

// Arguments of the environment count as its settings do.
func TestArgumentsOfTheEnvironmentCount(t *testing.T) {
	want, _ := search(t, run(t, "env.window=32"), tune.Options{Settings: small(4), Workers: 2})
	cfg := run(t)
	if err := cfg.Set("env.args=[window=32]"); err != nil {
		t.Fatal(err)
	}
	if got, _ := search(t, cfg, tune.Options{Settings: small(4), Workers: 2}); got != want {
		t.Errorf("env.args finds %+v, want %+v", got, want)
	}
}

// Weights that are not to move stay.
func TestOnlySomeWeightsMove(t *testing.T) {
	cfg := run(t)
	begin := tuned.DefaultHold(sim.Estimates{Mode: sim.EstimateExact})
	begin.Base = 0.5
	cfg.Eval.Hold = begin
	s := small(6)
	s.Only = []string{"base"}
	h, about := search(t, cfg, tune.Options{Settings: s, Workers: 2})
	if about.At == 0 || h.Base >= 0.5 {
		t.Errorf("nothing has moved: %+v, %+v", h, about)
	}
	if h.Base = 0.5; h != begin {
		t.Errorf("others have moved too: %+v", h)
	}
}

// A search that is interrupted goes on where it was.
func TestAnInterruptedSearchGoesOn(t *testing.T) {
	cfg := run(t)
	want, about := search(t, cfg, tune.Options{Settings: small(5), Workers: 2})
	dir := t.TempDir()
	stopped, cancel := context.WithCancel(ctx)
	_, _, err := tune.Run(stopped, cfg, tune.Options{Settings: small(5), Workers: 2, Dir: dir, Tick: func(done, _ int) {
		if done == 3 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	first := -1
	got, again := search(t, cfg, tune.Options{Settings: small(5), Workers: 1, Dir: dir, Tick: func(done, _ int) {
		if first < 0 {
			first = done
		}
	}})
	if first != 3 {
		t.Errorf("it goes on from generation %d, want 3", first)
	}
	again.Jobs = about.Jobs // those before the interruption are not counted
	if got != want || !reflect.DeepEqual(again, about) {
		t.Errorf("%+v, %+v after an interruption, want %+v, %+v", got, again, want, about)
	}
	file := filepath.Join(dir, tune.HoldFile)
	if read, err := tune.Read("hold", file); err != nil || read.Hold != want {
		t.Errorf("%s has %+v, want %+v: %v", file, read.Hold, want, err)
	}

	// Further generations; another configuration, and others settings.
	if _, more := search(t, cfg, tune.Options{Settings: small(6), Workers: 1, Dir: dir}); more.Generations != 6 {
		t.Errorf("%+v", more)
	}
	refused := func(cfg config.Config, s tune.Settings, want string) {
		t.Helper()
		if _, _, err := tune.Run(ctx, cfg, tune.Options{Settings: s, Dir: dir}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	refused(run(t, "trace.seed=8"), small(6), "another configuration")
	s := small(6)
	s.Seed = 9
	refused(cfg, s, "population 8, windows 12, every 2, seed 3")
	refused(cfg, small(2), "has had 6 generations; want generations 6 or more")
	if err := os.WriteFile(filepath.Join(dir, "search.json"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	refused(cfg, small(6), "search.json: it is damaged")
}

func TestBadSettingsAndFiles(t *testing.T) {
	for want, change := range map[string]func(*tune.Settings){
		"generations: got 0":                           func(s *tune.Settings) { s.Generations = 0 },
		"population: got 3, want 4 to 10000":           func(s *tune.Settings) { s.Population = 3 },
		"windows: got 0":                               func(s *tune.Settings) { s.Windows = 0 },
		"every: got 0, want 1 or more":                 func(s *tune.Settings) { s.Every = 0 },
		`only: got "widht", want one of width, spread`: func(s *tune.Settings) { s.Only = []string{"widht"} },
	} {
		s := small(2)
		change(&s)
		if _, _, err := tune.Run(ctx, run(t), tune.Options{Settings: s}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, _, err := tune.Run(ctx, run(t, "env.estimates=none"), tune.Options{Settings: small(2)}); err == nil ||
		!strings.Contains(err.Error(), "hold ranks by run time, which estimates: none hides") {
		t.Error(err)
	}
	for text, want := range map[string]string{
		"width: wide\n":         "hold.yaml:1: width: ",
		"base: 1\nwidht: 2\n":   "hold.yaml:2: widht: ",
		"base: .nan\n":          "hold.yaml:1: base: ",
		"later: 1e9\n":          "want a number from -1e6 to 1e6",
		"# nothing\n":           "it has no weights; want some of [width",
		"width: 0\nspread: 0\n": "it has no weights",
	} {
		name := filepath.Join(t.TempDir(), "hold.yaml")
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := tune.Read("hold", name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := tune.Read("hold", filepath.Join(t.TempDir(), "none.yaml")); err == nil ||
		!strings.Contains(err.Error(), "none.yaml: no such file") {
		t.Error(err)
	}
}

// Where jobs can be stopped, the weights of index are looked for, at the price of the environment, and are written to a
// file of their own. The result follows from the seed, and goes on after an interruption.
func TestIndexIsTunedWhereJobsCanBeStopped(t *testing.T) {
	preempt := func(more ...string) config.Config {
		return run(t,
			append([]string{"env.preempt=true", "env.running=8", "env.min_run=5m", "env.checkpoint=10s", "env.restart=20s"},
				more...)...)
	}
	cfg := preempt()
	search := func(cfg config.Config, opt tune.Options) (tune.Weights, *tune.Report) {
		t.Helper()
		w, r, err := tune.Run(ctx, cfg, opt)
		if err != nil {
			t.Fatal(err)
		}
		return w, r
	}
	want, about := search(cfg, tune.Options{Settings: small(4), Workers: 1})
	if want.Policy != "index" || want.File() != "index.yaml" || about.Best > about.Start ||
		about.Rules["srsf+skip"] == 0 || about.Rules["gittins+skip"] == 0 {
		t.Errorf("%+v, %+v", want, about)
	}
	begin := tuned.DefaultIndex(sim.Estimates{Mode: sim.EstimateExact})
	if want.Index == begin && about.At > 0 || want.Index != begin && about.At == 0 {
		t.Errorf("%+v of generation %d", want.Index, about.At)
	}
	dir := t.TempDir()
	search(cfg, tune.Options{Settings: small(2), Workers: 2, Dir: dir})
	if got, _ := search(cfg, tune.Options{Settings: small(4), Workers: 3, Dir: dir}); got != want {
		t.Errorf("%+v in two goes, want %+v", got, want)
	}
	if read, err := tune.Read("index", filepath.Join(dir, tune.IndexFile)); err != nil || read.Index != want.Index {
		t.Errorf("index.yaml has %+v, want %+v: %v", read, want.Index, err)
	}
	if _, dear := search(preempt("env.restart=1h"), tune.Options{Settings: small(2), Workers: 2}); dear.Start <=
		about.Start {
		t.Errorf("stops that cost an hour change the mean JCT from %v to %v", about.Start, dear.Start)
	}
	arg := run(t)
	if err := arg.Set("env.args=[preempt=true, running=8, min_run=5m, checkpoint=10s, restart=20s]"); err != nil {
		t.Fatal(err)
	}
	if got, _ := search(arg, tune.Options{Settings: small(4), Workers: 2}); got != want {
		t.Errorf("env.args finds %+v, want %+v", got, want)
	}
	s := small(2)
	s.Only = []string{"base"}
	if _, _, err := tune.Run(ctx, cfg, tune.Options{Settings: s}); err == nil ||
		!strings.Contains(err.Error(), `only: got "base", want one of left`) {
		t.Error(err)
	}
	if _, err := tune.Read("index", filepath.Join(dir, "search.json")); err == nil ||
		!strings.Contains(err.Error(), "search.json") {
		t.Error(err)
	}
}
