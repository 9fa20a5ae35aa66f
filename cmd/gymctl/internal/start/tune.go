package start

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/options"
	"clustergym/internal/fault"
	"clustergym/internal/safefile"
	"clustergym/lab/arena"
	"clustergym/lab/rundir"
	"clustergym/lab/tune"
	weights "clustergym/simulator/schedulers/tuned"
)

func tuneVerb(a *cli.App) *cobra.Command {
	var (
		src    options.Source
		opt    = tune.Options{Settings: tune.DefaultSettings(), Workers: runtime.GOMAXPROCS(0)}
		asJSON bool
	)
	c := &cobra.Command{
		Use:   "tune",
		Short: "Fit the scheduler hold, or index, to a workload by simulation",
		Long: `tune looks for the weights of hold with which a workload has the least mean JCT on a cluster. hold starts short
jobs first, and holds jobs back that would block the cluster for shorter ones to come; 13 weights say when
(docs/guides/tune.md). tune draws weights, simulates windows of the training part with all of them, and moves to those that do
best (the cross-entropy method). No network is trained: a window takes less than a millisecond.

Where running jobs can be stopped (env.preempt: true), tune looks for the 13 weights of index instead, which ranks jobs that
run and wait together by a sum of traits, and stops jobs at the environment's price. A window takes some milliseconds.

Workload, cluster and environment are those of a configuration (-c, default quickstart); --trace and --cluster replace them.
Every few generations the weights play the validation windows; the best of these are the result, the weights at the
beginning included. Test windows are not played.

The folder holds hold.yaml or index.yaml, the weights, and search.json, from which the same command continues after Ctrl-C or
with more --generations. gymctl eval --hold FOLDER/hold.yaml plays them, as does gymctl sim; likewise --index.`,
		Example: `  gymctl tune --dir runs/hold
  gymctl eval --policies sjf+skip,hold,rollout:hold --hold runs/hold/hold.yaml --no-whole
  gymctl tune -c quickstart-exact --set trace.synth.jobs=60000 --generations 20 --dir runs/exact
  gymctl tune --trace jobs.csv --cluster mycluster.yaml --dir runs/mine
  gymctl tune -c jobselect-preempt --dir runs/index
  gymctl eval -c jobselect-preempt --policies gittins+skip,index+skip,index@slots --index runs/index/index.yaml --no-whole`,
		Args: cli.Args(0, 0, "flags only"),
		RunE: func(c *cobra.Command, _ []string) error {
			if opt.Workers < 1 {
				return fault.Mistakef("--workers: got %d, want 1 or more", opt.Workers)
			}
			if err := opt.Validate(); err != nil {
				return cli.FlagFaults(c, err, nil)
			}
			cfg, err := src.EvalConfig(c, nil, nil)
			if err != nil {
				return err
			}
			policy := tune.Fits(&cfg)
			if err := opt.Check(policy); err != nil {
				return cli.FlagFaults(c, err, nil)
			}
			cfg.Eval.Policies = nil
			if err := tune.Able(&cfg); err != nil {
				return fault.Mistakef("tune: %w", err)
			}
			if err := cfg.Validate(); err != nil {
				return options.EvalFaults(c, err, map[string]string{"env.estimates": "estimates"})
			}
			if opt.Dir == "" {
				opt.Dir = rundir.Default(policy, a.Now())
			}
			if _, err := os.Stat(filepath.Join(opt.Dir, rundir.ConfigFile)); err == nil {
				return fault.Mistakef("--dir: %s holds a training run; want a folder of its own", opt.Dir)
			}
			stopped := func(err error) error {
				if c.Context().Err() != nil {
					a.Notef("stopped; the same command with --dir %s continues", opt.Dir)
				}
				return err
			}
			world, chosen, err := src.Fit(c, &cfg)
			if err != nil {
				return stopped(err)
			}
			for _, line := range chosen {
				a.Notef("%s", line)
			}
			if world == nil {
				if world, err = arena.NewWorldContext(c.Context(), &cfg); err != nil {
					return stopped(err)
				}
			}
			if err := os.MkdirAll(opt.Dir, 0o755); err != nil {
				return fault.Mistakef("--dir: %w", err)
			}
			unlock, err := safefile.Lock(opt.Dir)
			if errors.Is(err, safefile.ErrLocked) {
				return fault.Mistakef("another process is tuning in %s", opt.Dir)
			} else if err != nil {
				return fault.Mistakef("--dir: %w", err)
			}
			defer unlock()
			opt.World = world
			ui := options.NewProgress(a, 0)
			opt.Tick = ui.Generation
			h, r, err := tune.Run(c.Context(), cfg, opt)
			ui.Close()
			if err != nil {
				return stopped(err)
			}
			file := filepath.Join(opt.Dir, h.File())
			if asJSON {
				return a.JSON(map[string]any{"file": file, h.Policy: weightsOf(&h), "report": r})
			}
			return tuned(a, file, c, &h, r)
		},
	}
	f := c.Flags()
	f.IntVar(&opt.Generations, "generations", opt.Generations, "`N` moves of the distribution of weights")
	f.IntVar(&opt.Population, "population", opt.Population, "`N` weights drawn in a generation")
	f.IntVar(&opt.Windows, "windows", opt.Windows, "`N` windows in which they are compared")
	f.IntVar(&opt.Every, "every", opt.Every, "`N` generations from one validation to the next")
	f.StringSliceVar(&opt.Only, "only", nil, "move these weights alone, joined by commas: `WEIGHTS`, as width,spread")
	f.Uint64Var(&opt.Seed, "seed", opt.Seed, "seed of the draws")
	f.IntVar(&opt.Workers, "workers", opt.Workers, "`N` goroutines; affects only speed")
	f.StringVarP(&opt.Dir, "dir", "o", "", "`DIR` of the result (default runs/hold-TIME, or runs/index-TIME)")
	f.BoolVar(&asJSON, "json", false, "print one JSON document")
	src.Flags(c, "quickstart")
	cli.CompleteDir(c, "dir")
	cli.CompleteList(c, "only", func(*cobra.Command, string) []string {
		names := append(weights.HoldNames(), weights.IndexNames()...)
		slices.Sort(names)
		return slices.Compact(names)
	})
	options.Sections(c)
	return c
}

func weightsOf(w *tune.Weights) map[string]float64 {
	all := map[string]float64{}
	for i, x := range w.Values() {
		all[w.Names()[i]] = *x
	}
	return all
}

// tuned prints what was found.
func tuned(a *cli.App, file string, c *cobra.Command, w *tune.Weights, r *tune.Report) error {
	ref := r.Rules[w.Reference()]
	rows := [][]string{}
	row := func(name string, jct float64) {
		rows = append(rows, []string{name, fmt.Sprintf("%.2f h", jct/3600), fmt.Sprintf("%+.1f %%", 100*(jct/ref-1))})
	}
	for _, name := range w.Baselines() {
		row(name, r.Rules[name])
	}
	row(w.Policy+", at the beginning", r.Start)
	row(fmt.Sprintf("%s, after generation %d", w.Policy, r.At), r.Best)
	a.Printf("%d validation windows, which chose the weights (%.1f million jobs simulated):\n", r.Windows, r.Jobs)
	if err := a.Table(1, []string{"policy", "mean JCT", "vs " + w.Reference()}, rows); err != nil {
		return err
	}
	a.Printf("weights: %s\non test windows: gymctl eval %s\n", file, shellWords(append(workloadOf(c), w.Compared(file)...)))
	return nil
}

// workloadOf returns the arguments of c that say which workload, cluster and environment it is about.
func workloadOf(c *cobra.Command) (words []string) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Changed || !slices.Contains([]string{"config", "env", "trace", "format", "columns", "limit", "sort", "cluster", "estimates", "set"}, f.Name) {
			return
		}
		if v, ok := f.Value.(pflag.SliceValue); ok { // each of --set
			for _, s := range v.GetSlice() {
				words = append(words, "--"+f.Name, s)
			}
			return
		}
		if f.NoOptDefVal != "" { // a switch
			words = append(words, "--"+f.Name+"="+f.Value.String())
			return
		}
		words = append(words, "--"+f.Name, f.Value.String())
	})
	return words
}

// shellWords returns words as a shell reads them.
func shellWords(words []string) string {
	q := make([]string, len(words))
	for i, s := range words {
		if q[i] = s; s == "" || strings.ContainsFunc(s, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./,:=+@%", r)
		}) {
			q[i] = "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
		}
	}
	return strings.Join(q, " ")
}
