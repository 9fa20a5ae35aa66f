package start

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/options"
	"clustergym/internal/fault"
	"clustergym/internal/safefile"
	"clustergym/internal/statistic"
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/lab/rundir"
	"clustergym/lab/tune"
	"clustergym/simulator/policyname"
	weights "clustergym/simulator/schedulers/tuned"
)

// tuneOptions are the flags of tune, and what follows from them.
type tuneOptions struct {
	src   options.Source
	cfg   config.Config
	opt   tune.Options
	files options.PolicyFiles
}

func tuneVerb(a *cli.App) *cobra.Command {
	o := &tuneOptions{opt: tune.Options{Settings: tune.DefaultSettings()}}
	c := &cobra.Command{
		Use:   "tune",
		Short: "Fit the scheduler hold, or index, to a workload by simulation",
		Long: `tune looks for the weights of hold with which a workload has the least mean JCT on a cluster. hold starts short
jobs first, and holds jobs back that would block the cluster for shorter ones to come; 13 weights say when
(docs/guides/tune.md). tune draws weights, simulates the same jobs with all of them, and moves to those that do best (the
cross-entropy method). No network is trained: a thousand jobs take about a millisecond.

Where running jobs can be stopped (env.preempt: true), tune looks for the 13 weights of index instead, which ranks jobs that
run and wait together by a sum of traits, and stops jobs at the environment's price.

Workload, cluster and environment are those of a configuration (-c, default quickstart); --trace and --cluster replace them.
Each generation plays new draws of the workload's generator, or stretches of the recorded training part. Every few
generations the mean of the weights is rated; the best of these are the result, the weights at the beginning included.
tune then plays validation draws, four times eval.streams.draws, or the validation part, on which nothing was chosen, and
prints whether the result is ahead of the weights at the beginning. With eval.protocol windows, tune plays windows of the
training part, and the validation windows choose among the generations. The test part is not played.

--policy or --policy-file names an order that is written out with constants, which are fitted in place of weights, from their
values in its text (docs/guides/own-policy.md). The folder then holds order.expr.

The folder holds hold.yaml or index.yaml, the weights, and search.json, from which the same command continues after Ctrl-C or
with more --generations. gymctl eval --hold FOLDER/hold.yaml plays them, as does gymctl sim; likewise --index.`,
		Example: `  gymctl tune --dir runs/hold
  gymctl eval --policies sjf+skip,hold --hold runs/hold/hold.yaml
  gymctl tune -c quickstart-exact --generations 20 --dir runs/exact
  gymctl tune --trace jobs.csv --cluster mycluster.yaml --dir runs/mine
  gymctl tune -c jobselect-v2-preempt --dir runs/index
  gymctl eval -c jobselect-v2-preempt --policies gittins+skip,index+skip,index@slots --index runs/index/index.yaml`,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(a, c) },
	}
	f, opt := c.Flags(), &o.opt
	f.IntVar(&opt.Generations, "generations", opt.Generations, "`N` moves of the distribution of weights")
	f.IntVar(&opt.Population, "population", opt.Population, "`N` weights drawn in a generation")
	f.IntVar(&opt.Draws, "draws", opt.Draws, "`N` draws of the generator on which they are compared (0 = 16)")
	f.IntVar(&opt.Windows, "windows", opt.Windows, "`N` windows in which they are compared (eval.protocol windows)")
	f.IntVar(&opt.Every, "every", opt.Every, "`N` generations from one rating of their mean to the next")
	f.StringVar(&opt.Policy, "policy", "",
		"fit the constants of this written `ORDER`, as '$a: 1; key: estimate * gpus ** $a', in place of weights")
	o.files.Flag(c, "policy")
	f.StringSliceVar(&opt.Only, "only", nil, "move these weights alone, joined by commas: `WEIGHTS`, as width,spread")
	f.Uint64Var(&opt.Seed, "seed", opt.Seed, "seed of the draws")
	options.WorkersFlag(c, &opt.Workers)
	f.StringVarP(&opt.Dir, "dir", "o", "", "`DIR` of the result (default runs/hold-TIME, or runs/index-TIME)")
	cli.JSONFlag(c)
	o.src.Flags(c, "quickstart")
	o.src.Late = append(o.src.Late, func(c *cobra.Command, cfg *config.Config) {
		if c.Flags().Changed("seed") { // is the search's; folders that are there have a configuration with this one
			cfg.Seed = 0
		}
	})
	cli.CompleteDir(c, "dir")
	cli.CompleteList(c, "only", func(*cobra.Command, string) []string {
		names := append(weights.HoldNames(), weights.IndexNames()...)
		slices.Sort(names)
		return slices.Compact(names)
	})
	options.Sections(c)
	return c
}

// complete reads the configuration, and reports mistakes in it and in the flags.
func (o *tuneOptions) complete(a *cli.App, c *cobra.Command) (err error) {
	if err := o.opt.Validate(); err != nil {
		return cli.FlagFaults(c, err, nil)
	}
	if o.cfg, err = o.src.EvalConfig(c, nil, nil); err != nil {
		return err
	}
	if o.files.Given() {
		if o.opt.Policy, err = o.files.One(o.opt.Policy); err != nil {
			return err
		}
	}
	policy := cmp.Or(o.opt.Policy, tune.Fits(&o.cfg))
	if o.opt.Policy != "" && !policyname.IsWritten(policy) {
		return fault.Mistakef("--policy: got %q, want an order that is written out, with constants, as $a: 1; key: estimate * "+
			"gpus ** $a; without it, %s is tuned", policy, tune.Fits(&o.cfg))
	}
	if err := o.opt.Check(policy); err != nil {
		return cli.FlagFaults(c, err, nil)
	}
	o.cfg.Eval.Policies = nil
	if err := tune.Able(&o.cfg, policy); err != nil {
		return fault.Mistakef("tune: %w", err)
	}
	if o.cfg.Streamed() && c.Flags().Changed("windows") {
		return fault.Mistakef("--windows: weights are compared on streams here; use --draws, or --set eval.protocol=windows")
	}
	if !o.cfg.Streamed() && c.Flags().Changed("draws") {
		return fault.Mistakef("--draws: weights are compared on windows here; use --windows, or --set eval.protocol=streams")
	}
	if err := o.cfg.Validate(); err != nil {
		return cli.GivenFaults(c, err, map[string]string{"env.estimates": "estimates"})
	}
	o.opt.Dir = cmp.Or(o.opt.Dir, rundir.Default(folderOf(policy), a.Now()))
	if _, err := os.Stat(filepath.Join(o.opt.Dir, rundir.ConfigFile)); err == nil {
		return fault.Mistakef("--dir: %s holds a training run; want a folder of its own", o.opt.Dir)
	}
	return nil
}

// folderOf returns the beginning of the name of a search's folder.
func folderOf(policy string) string {
	if !policyname.IsWritten(policy) {
		return policy
	}
	if w, err := policyname.ReadWritten(policyname.Of(policy).Base); err == nil && w.Label != "" {
		return w.Label
	}
	return "order"
}

// run finds weights, and prints them.
func (o *tuneOptions) run(a *cli.App, c *cobra.Command) error {
	if err := o.complete(a, c); err != nil {
		return err
	}
	h, r, err := o.search(a, c)
	if err != nil {
		if c.Context().Err() != nil {
			a.Notef("stopped; the same command with --dir %s continues", o.opt.Dir)
		}
		return err
	}
	file, weights := filepath.Join(o.opt.Dir, h.File()), map[string]float64{}
	for i, x := range h.Values() {
		weights[h.Names()[i]] = *x
	}
	document := map[string]any{"file": file, policyname.Short(h.Policy): weights, "report": r}
	return a.Show(c, document, func(io.Writer) error {
		return tuned(a, file, c, &h, r)
	})
}

// search loads the workload and looks for weights in a folder of its own.
func (o *tuneOptions) search(a *cli.App, c *cobra.Command) (h tune.Weights, r *tune.Report, err error) {
	scenario, chosen, err := o.src.Fit(c, &o.cfg)
	if err != nil {
		return h, nil, err
	}
	a.Notes(chosen)
	if scenario == nil {
		if scenario, err = arena.NewScenarioContext(c.Context(), &o.cfg); err != nil {
			return h, nil, err
		}
	}
	if err := os.MkdirAll(o.opt.Dir, 0o755); err != nil {
		return h, nil, fault.Mistakef("--dir: %w", err)
	}
	unlock, err := safefile.Lock(o.opt.Dir)
	if errors.Is(err, safefile.ErrLocked) {
		return h, nil, fault.Mistakef("another process is tuning in %s", o.opt.Dir)
	} else if err != nil {
		return h, nil, fault.Mistakef("--dir: %w", err)
	}
	defer unlock()
	ui := options.NewProgress(a, 0)
	defer ui.Clear()
	o.opt.Scenario, o.opt.Tick = scenario, ui.Generation
	return tune.Run(c.Context(), o.cfg, o.opt)
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
	name := policyname.Short(w.Policy)
	row(name+", at the beginning", r.Start)
	row(fmt.Sprintf("%s, after generation %d", name, r.At), r.Best)
	head := []string{"policy", "mean JCT", "vs " + w.Reference()}
	if r.Check == nil {
		a.Printf("%d validation windows, which chose the weights (%.1f million jobs simulated):\n", r.Windows, r.Jobs)
	} else {
		head = append(head, "the result against it [95 %]", "verdict")
		for i := range r.Rivals {
			rows[i] = append(rows[i], tune.Change(&r.Rivals[i]), string(r.Rivals[i].Verdict))
		}
		k := len(rows) - 2
		rows[k] = append(rows[k], tune.Change(r.Check), string(r.Check.Verdict))
		rows[k+1] = append(rows[k+1], "", "")
		what := fmt.Sprintf("%d validation draws", r.Check.Units)
		if r.Log {
			what = fmt.Sprintf("The validation part, %d blocks", r.Check.Units)
		}
		a.Printf("%s, on which nothing was chosen (%.1f million jobs simulated):\n", what, r.Jobs)
	}
	if err := a.Table(1, head, rows); err != nil {
		return err
	}
	if r.Check != nil {
		a.Printf("%s\n", shown(w, r))
	}
	on := "windows"
	if r.Check != nil {
		on = "streams"
	}
	a.Printf("weights: %s\non test %s: gymctl eval %s\n", file, on,
		cli.ShellWords(append(workloadOf(c), w.Compared(file, r.Check != nil)...)...))
	return nil
}

// shown says in a sentence what the check shows of the weights.
func shown(w *tune.Weights, r *tune.Report) string {
	change := tune.Change(r.Check)
	switch {
	case r.At == 0:
		return "no weights were rated better than those at the beginning, which are the result"
	case r.Check.Verdict == statistic.Ahead:
		return fmt.Sprintf("the weights of generation %d are ahead of those at the beginning: %s", r.At, change)
	case r.Check.Verdict == statistic.Behind:
		return fmt.Sprintf("the weights of generation %d are behind those at the beginning: %s; keep the latter", r.At, change)
	case r.Check.Verdict == statistic.TooFew:
		return fmt.Sprintf("%d units are too few to say whether the weights of generation %d are ahead of those at the "+
			"beginning (%s); %d are needed", r.Check.Units, r.At, change, statistic.MinUnits)
	}
	more := ""
	if n := r.Check.UnitsFor; n > 0 {
		more = fmt.Sprintf(" (a difference of 3 %% needs about %d units)", n)
	}
	return fmt.Sprintf("the weights of generation %d are not shown to be ahead of those at the beginning: %s%s", r.At, change,
		more)
}

// workloadOf returns the arguments of c that say which workload, cluster and environment it is about.
func workloadOf(c *cobra.Command) (words []string) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		about := []string{"config", "env", "trace", "format", "columns", "limit", "sort", "accept-left-out",
			"cluster", "estimates", "set"}
		v, many := f.Value.(pflag.SliceValue)
		switch {
		case !f.Changed || !slices.Contains(about, f.Name):
		case many: // each of --set
			for _, s := range v.GetSlice() {
				words = append(words, "--"+f.Name, s)
			}
		case f.NoOptDefVal != "": // a switch
			words = append(words, "--"+f.Name+"="+f.Value.String())
		default:
			words = append(words, "--"+f.Name, f.Value.String())
		}
	})
	return words
}
