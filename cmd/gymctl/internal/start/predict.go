package start

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/options"
	"clustergym/internal/fault"
	"clustergym/internal/plain"
	"clustergym/internal/texttable"
	"clustergym/lab/predictors"
	"clustergym/lab/workload"
	"clustergym/simulator/predict"
	"clustergym/simulator/predict/gbdt"
	"clustergym/traces"
)

func predictVerb(a *cli.App) *cobra.Command {
	c := cli.Parent(&cobra.Command{
		Use:   "predict",
		Short: "Measure and fit predictors of run times",
		Long: `predict works on what --estimates history and gbdt say of run times: it measures predictors on a trace, writes their
features for other programs, and fits models that --estimates gbdt:FILE uses. docs/guides/predict.md has the method.

Each verb reads a trace, FILE or --trace FILE, or generates jobs whose users repeat them (profile philly-users of trace
synth).`,
		Example: `  gymctl predict eval --jobs 3000
  gymctl trace synth --jobs 3000 -o jobs.csv.gz
  gymctl predict fit jobs.csv.gz --until 0.5 -o model.bin`,
	})
	c.AddCommand(predictEval(a), predictFeatures(a), predictFit(a), predictShow(a))
	return c
}

// predictOptions are the flags of the verbs of predict that read a trace.
type predictOptions struct {
	trace      workload.TraceConfig
	seed       uint64
	out, model string
	until      string
	workers    int
}

// newPredictOptions returns the options with the workload of verbs without a trace: one in which there is something
// to learn about users.
func newPredictOptions() *predictOptions {
	o := &predictOptions{trace: workload.DefaultTraceConfig()}
	o.trace.Synth.Profile = "philly-users"
	return o
}

// flags adds the argument and the flags that name the trace.
func (o *predictOptions) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.trace.File, "trace", o.trace.File, "trace `FILE`; without it, jobs are generated")
	options.TraceFlags(c, &o.trace)
	cli.Filled(c, "trace")
	f.Uint64Var(&o.seed, "seed", 1, "seed of generated jobs, of a mix of models and of noisy estimates")
	c.Args, c.ValidArgsFunction = cli.Args(0, 1, "one FILE, or none"), cli.OneFile
}

// complete completes the trace from the arguments, and checks it.
func (o *predictOptions) complete(c *cobra.Command, files []string) error {
	if err := traceOf(c, files, &o.trace); err != nil {
		return err
	}
	o.trace.Seed = o.seed
	return cli.FlagFaults(c, o.trace.Validate(), nil)
}

// load reads the trace. line shows how many jobs have been read.
func (o *predictOptions) load(c *cobra.Command, line *cli.Status) ([]traces.Job, workload.Info, error) {
	return workload.LoadTraceContext(options.WithReading(c.Context(), line, o.trace.File), o.trace)
}

func predictEval(a *cli.App) *cobra.Command {
	o, cfg := newPredictOptions(), predictors.EvalConfig{From: "0.5"}
	c := &cobra.Command{
		Use:   "eval [FILE]",
		Short: "Measure how well predictors forecast the run times of a trace",
		Long: `eval shows a trace to predictors from its first job on. Each gives its forecast for a job when the job is submitted, and
learns from those that have ended by then, so no split leaks. The jobs submitted from --from on are measured:

  rank correlation  Spearman's, of forecast medians and run times
  pairs in order    share of the pairs of jobs that the forecasts put in the right order; 50 % says nothing
  mean |ln error|   of the quotient of median and run time; 0.69 is a factor of 2
  below q10 … q90   share of the run times that do not exceed a quantile of the forecast
  q90 / q10         how wide the forecasts are

Without --cluster, a job starts when it is submitted; with it, when FIFO that skips starts it there, and a predictor learns
of its end later. The default --estimates are trace if all jobs have requested times, history and gbdt. gbdt:FILE uses a
model of predict fit; it is refused if it has been fitted to jobs that are measured.`,
		Example: `  gymctl predict eval --jobs 3000
  gymctl trace synth --jobs 3000 -o jobs.csv.gz
  gymctl predict eval jobs.csv.gz --estimates history,noisy:1 --from 0.75 --json
  gymctl predict fit jobs.csv.gz --until 0.5 -o model.bin
  gymctl predict eval jobs.csv.gz --estimates history,gbdt:model.bin`,
		RunE: func(c *cobra.Command, files []string) error {
			if err := o.complete(c, files); err != nil {
				return err
			}
			cfg.Trace, cfg.Seed = o.trace, o.seed
			line := cli.NewStatus(a, cli.Unnoticed)
			defer line.Clear()
			r, err := predictors.Eval(options.WithReading(c.Context(), line, o.trace.File), cfg, predictors.EvalHooks{
				Now: a.Now,
				Done: func(name string, seconds float64) {
					line.Clear()
					a.Notef("%s: %.1f s", name, seconds)
				},
				Progress: func(name string, jobs, of int) {
					line.Show(func(int) []string { return []string{name, fmt.Sprintf("%d/%d jobs submitted", jobs, of)} })
				},
			})
			line.Clear()
			if err != nil {
				return err
			}
			return a.Show(c, r, r.WriteTable)
		},
	}
	o.flags(c)
	f := c.Flags()
	f.StringSliceVar(&cfg.Estimates, "estimates", nil,
		"predictors, joined by commas: history, gbdt, gbdt:FILE, trace, exact, noisy:SIGMA (default by the trace)")
	f.StringVar(&cfg.From, "from", cfg.From,
		"measure the jobs submitted from `POINT` on: a share of the jobs, or a time on the trace's clock such as 36h")
	f.StringVar(&cfg.Cluster, "cluster", "",
		"preset, `FILE`, pool:N, swf-N or NxG; without it, every job starts when it is submitted")
	cli.JSONFlag(c)
	cli.Filled(c, "estimates", "cluster")
	cli.CompleteList(c, "estimates", func(*cobra.Command, string) []string { return options.EstimateNames()[1:] })
	cli.CompleteOrFile(c, "cluster", workload.ClusterPresets()...)
	return c
}

func predictFeatures(a *cli.App) *cobra.Command {
	o := newPredictOptions()
	c := &cobra.Command{
		Use:   "features [FILE] -o FILE",
		Short: "Write the features and run times of a trace as CSV",
		Long: `features writes what boosted trees are fitted to: a row for each job, in the order of their ends, with its features as
of its submit. Jobs are taken to have started when they were submitted. Times are in seconds; what is not known is empty.
target is ln(run_time / unit), and unit the requested time, or 1e-9 s for a job without one. docs/guides/predict.md explains
every column.

--model adds what the trees of a file of predict fit say: the quantiles q10, q25, q50, q75 and q90 of the run time.

Columns: ` + options.Wrapped(predictors.FeatureColumns(false)) + `.`,
		Example: `  gymctl trace synth --jobs 3000 -o jobs.csv.gz
  gymctl predict features jobs.csv.gz -o features.csv
  gymctl predict fit jobs.csv.gz --until 0.5 -o model.bin
  gymctl predict features jobs.csv.gz --model model.bin -o forecasts.csv.gz`,
		RunE: func(c *cobra.Command, files []string) error {
			if err := o.complete(c, files); err != nil {
				return err
			}
			var m *predictors.Model
			if c.Flags().Changed("model") {
				var err error
				if m, err = predictors.ReadModel(c.Context(), nil, o.model, o.model); err != nil {
					return err
				}
			}
			line := cli.NewStatus(a, cli.Unnoticed)
			defer line.Clear()
			jobs, _, err := o.load(c, line)
			if err != nil {
				return err
			}
			return a.WriteFile(o.out, []string{o.trace.File, o.model}, func(w io.Writer) error {
				_, err := predictors.WriteFeatures(c.Context(), w, jobs, m, func(rows int) {
					line.Show(func(int) []string { return []string{"writing features", fmt.Sprintf("%d/%d jobs", rows, len(jobs))} })
				})
				return err
			})
		},
	}
	o.flags(c)
	c.Flags().StringVarP(&o.out, "output", "o", "",
		"write to `FILE` instead of standard output, packed if it ends in .gz or .zst")
	c.Flags().StringVar(&o.model, "model", "", "add the forecasts of the trees in this `FILE`")
	return c
}

func predictFit(a *cli.App) *cobra.Command {
	o := newPredictOptions()
	c := &cobra.Command{
		Use:   "fit [FILE] -o FILE",
		Short: "Fit boosted trees to the run times of a trace",
		Long: `fit fits boosted trees to the jobs of a trace and writes the model that --estimates gbdt:FILE uses. --until takes only
the jobs that had ended before a point: a share of the jobs (0.5: those that had ended when the middle one was submitted)
or a time on the trace's clock. Fit to the past of what you measure: a model that has seen the jobs knows what no cluster
could know. The file says which jobs it has seen, so that this is noticed.

--estimates gbdt without a file needs no model: it fits trees during the run, and again as more jobs end.`,
		Example: `  gymctl trace synth --jobs 3000 -o jobs.csv.gz
  gymctl predict fit jobs.csv.gz --until 0.5 -o model.bin
  gymctl predict show model.bin
  gymctl sim jobs.csv.gz --skip 1500 --cluster pool:64 --policy sjf+skip --estimates gbdt:model.bin`,
		RunE: func(c *cobra.Command, files []string) error {
			if err := o.complete(c, files); err != nil {
				return err
			}
			switch out := o.out; {
			case out == "" || out == "-":
				return fault.Mistakef("--output: got %q, want the path of a file for the model", out)
			case strings.HasSuffix(out, ".gz") || strings.HasSuffix(out, ".zst"):
				return fault.Mistakef("--output: got %q, want a name without .gz and .zst: models are not packed", out)
			}
			return o.fit(a, c)
		},
	}
	o.flags(c)
	f := c.Flags()
	f.StringVar(&o.until, "until", "1",
		"fit to the jobs that had ended before `POINT`: a share of the jobs, or a time on the trace's clock such as 36h")
	f.StringVarP(&o.out, "output", "o", "", "write the model to `FILE`")
	options.WorkersFlag(c, &o.workers)
	return c
}

// fit fits trees and writes them.
func (o *predictOptions) fit(a *cli.App, c *cobra.Command) error {
	line := cli.NewStatus(a, 0)
	defer line.Clear()
	jobs, info, err := o.load(c, line)
	if err != nil {
		return err
	}
	end, err := predictors.Point(jobs, "until", o.until)
	if err != nil {
		return err
	}
	if o.until == "1" {
		end = traces.MaxTime // whatever ends
	}
	count := plain.Count(len(jobs), "job", "jobs")
	return a.WriteFile(o.out, []string{o.trace.File}, func(w io.Writer) error {
		line.Show(func(int) []string { return []string{"fitting trees", count} })
		begin := a.Now()
		m, err := gbdt.Fit(c.Context(), filepath.Base(info.File), jobs, end, o.workers)
		if errors.Is(err, gbdt.ErrTooFew) {
			return fault.Mistakef("trace %s: fewer than %d of %s had ended by then; want more jobs, or a later --until",
				info.File, gbdt.First, count)
		}
		if err != nil {
			return err
		}
		line.Clear()
		a.Notef("fitted to %s in %.1f s", plain.Count(m.Jobs(), "job", "jobs"), a.Now().Sub(begin).Seconds())
		_, err = w.Write(m.AppendBinary(nil))
		return err
	})
}

func predictShow(a *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "show FILE",
		Short: "Describe a model of predict fit",
		Long: `show prints what a model was fitted to, and for each feature its share of the loss that splits on it have removed.
Features without a share are not used.`,
		Example: `  gymctl predict fit --jobs 2000 -o model.bin
  gymctl predict show model.bin`,
		Args:              cli.Args(1, 1, "one FILE"),
		ValidArgsFunction: cli.OneFile,
		RunE: func(c *cobra.Command, files []string) error {
			m, err := predictors.ReadModel(c.Context(), nil, files[0], files[0])
			if err != nil {
				return err
			}
			d := describeModel(m)
			if cli.AsJSON(c) {
				return a.JSON(d)
			}
			until := "the whole trace"
			if d.UntilS > 0 {
				until = "jobs that had ended by " + texttable.Hours(d.UntilS)
			}
			a.Printf("model     %s, %d bytes, sha256 %.12s…\nfitted    to %s of %s: %s\n\n", d.File, d.Bytes, d.SHA256,
				plain.Count(d.Jobs, "job", "jobs"), d.Trace, until)
			var rows [][]string
			for _, f := range d.Features {
				if f.Share > 0 {
					rows = append(rows, []string{f.Name, cli.Percent(f.Share, 1)})
				}
			}
			return a.Table(1, []string{"feature", "share of the gain"}, rows)
		},
	}
	cli.JSONFlag(c)
	return c
}

// ModelDocument is the JSON document of predict show.
type ModelDocument struct {
	File     string         `json:"file"`
	SHA256   string         `json:"sha256"`
	Bytes    int64          `json:"bytes"`
	Trace    string         `json:"trace"`
	Jobs     int            `json:"jobs"`
	UntilS   float64        `json:"until_s"` // 0 = the whole trace
	Levels   []float64      `json:"levels"`
	Features []featureShare `json:"features"` // the greatest share first
}

type featureShare struct {
	Name  string  `json:"name"`
	Share float64 `json:"share"`
}

func describeModel(m *predictors.Model) ModelDocument {
	d := ModelDocument{File: m.File, SHA256: m.SHA256, Bytes: m.Bytes, Trace: m.Trace, Jobs: m.Jobs(),
		Levels: predict.Levels[:]}
	if m.Until < traces.MaxTime {
		d.UntilS = m.Until.Seconds()
	}
	total := 0.0
	for _, g := range m.Gains() {
		total += g
	}
	for i, name := range gbdt.Features() {
		f := featureShare{Name: name}
		if total > 0 {
			f.Share = m.Gains()[i] / total
		}
		d.Features = append(d.Features, f)
	}
	slices.SortStableFunc(d.Features, func(a, b featureShare) int { return cmp.Compare(b.Share, a.Share) })
	return d
}
