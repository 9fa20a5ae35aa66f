package research

import (
	"cmp"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/options"
	"clustergym/configs"
	"clustergym/experiments/papers"
	"clustergym/experiments/study"
	"clustergym/internal/fault"
	"clustergym/internal/ordinary"
	"clustergym/internal/texttable"
	"clustergym/pages"
)

func experimentVerb(a *cli.App) *cobra.Command {
	c := cli.Parent(&cobra.Command{
		Use:   "experiment",
		Short: "Reproduce papers: our tables beside their figures",
		Long: `experiment reproduces the papers that this program was made for, each with one command: it generates the
workloads, trains the agents, runs every baseline on the same workloads and seeds, and compares them. Parts that a
paper does not publish are rebuilt; the README of each experiment says which parts these are.

Two reproduce no paper: estimates measures what schedulers lose by not knowing run times, lookahead what search and
learning gain over the best rules. rlscheduler, rltune and lwf play on machines that are equal to their authors'.`,
		Example: `  gymctl experiment list`,
	})
	c.AddCommand(ExperimentListVerb(a), experimentShowVerb(a), experimentRunVerb(a))
	return c
}

// ListWidth is how many characters a line of a list of sentences has where no terminal says so.
const ListWidth = 120

// ExperimentListVerb is gymctl experiment list.
func ExperimentListVerb(a *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use:     "list",
		Short:   "List the experiments",
		Long:    `list names the experiments, what they reproduce, and how long that takes.`,
		Example: `  gymctl experiment list --json`,
		RunE: func(c *cobra.Command, _ []string) error {
			type entry struct {
				Name    string `json:"name"`
				Title   string `json:"title"`
				Source  string `json:"source"`
				Takes   string `json:"takes"`
				Command string `json:"command"`
			}
			list, rows := []entry{}, [][]string{}
			for _, s := range papers.All() {
				list = append(list, entry{s.Name, s.Title, s.Cite, s.Takes, "gymctl experiment run " + s.Name})
				rows = append(rows, []string{s.Name, s.Title, s.Takes, s.Cite})
			}
			return a.Show(c, list, func(w io.Writer) error {
				header := []string{"name", "experiment", "takes", "source"}
				return texttable.Write(texttable.AtMost(w, ListWidth), header, rows, 4, "source")
			})
		},
	}
	cli.JSONFlag(c)
	return c
}

// settingsFlags are the flags that change an experiment's settings.
type settingsFlags struct {
	file string
	sets []string
}

func (s *settingsFlags) flags(c *cobra.Command, quick *bool) {
	f := c.Flags()
	f.StringArrayVar(&s.sets, "set", nil,
		"change a setting: `KEY.PATH=VALUE`, KEY.PATH+=VALUE adds to a list (repeatable)")
	f.StringVar(&s.file, "settings", "", "change the settings that a YAML `FILE` gives, before --set")
	cli.Filled(c, "settings")
	options.CompleteSet(c, func(_ *cobra.Command, names []string) configs.Validator {
		if len(names) == 0 {
			return nil
		}
		shown, err := papers.Settings(names[0], study.Plan{Quick: *quick})
		if err != nil {
			return nil
		}
		return shown.Settings
	})
}

// changes reads the file.
func (s *settingsFlags) changes(c *cobra.Command) (ch study.Changes, err error) {
	ch.Set = s.sets
	if !c.Flags().Changed("settings") {
		return ch, nil
	}
	b, err := ordinary.Read(s.file, ordinary.Settings)
	if err != nil {
		return ch, fault.Mistakef("--settings %s: %v", s.file, ordinary.Reason(err))
	}
	ch.File, ch.Text = s.file, string(b)
	return ch, nil
}

func experimentShowVerb(a *cli.App) *cobra.Command {
	var (
		plan    study.Plan
		changed settingsFlags
	)
	c := &cobra.Command{
		Use:   "show NAME",
		Short: "Print the settings of an experiment",
		Long: `show prints the settings of an experiment with their comments, those of the full form or with --quick those of the
quick one, after the changes of --settings and --set. What it prints is a file for gymctl experiment run --settings.`,
		Example: `  gymctl experiment show lwf
  gymctl experiment show dally --quick --set leases=[5m,1h]
  gymctl experiment show rltune --json`,
		Args: cli.Args(1, 1, "one NAME"),
		RunE: func(c *cobra.Command, names []string) (err error) {
			if plan.Changes, err = changed.changes(c); err != nil {
				return err
			}
			shown, err := papers.Settings(names[0], plan)
			if err != nil {
				return err
			}
			if cli.AsJSON(c) {
				return a.JSON(shown)
			}
			_, err = a.Stdout.Write(shown.YAML())
			return err
		},
		ValidArgs: PaperNames(),
	}
	f := c.Flags()
	f.BoolVar(&plan.Quick, "quick", false, "the settings of the short version")
	changed.flags(c, &plan.Quick)
	cli.JSONFlag(c)
	return c
}

// runExperiment are the flags of experiment run.
type runExperiment struct {
	opt     study.Options
	agents  []string
	kernels string
	queue   options.QueueFlags
	changed settingsFlags
	web     options.UIFlags
}

func experimentRunVerb(a *cli.App) *cobra.Command {
	o := &runExperiment{}
	c := &cobra.Command{
		Use:   "run NAME",
		Short: "Run an experiment, or continue it",
		Long: `run trains the agents of an experiment, runs every baseline on the same workloads and seeds, and prints our table
beside the paper's figures. Finished parts are kept in the experiment's folder: Ctrl-C ends with exit code 130, and
the same command continues. If a setting changes, everything that depends on it is computed again.

The folder holds table.txt, index.html with the figures and the columns that have no room in 120 characters, results.csv
with every result and its interval, rows.csv with every single number, and figures/*.svg.

--set and --settings change the settings of the form that is run: lease, cluster, sizes, budget, network (gymctl experiment
show NAME prints them). The report names what is changed, and does not compare it with the recorded figures. A folder may
change its settings: what depends on them is computed again.

--agent lets a trained agent of yours play beside the others. rlscheduler takes runs and checkpoints of RLScheduler-v1,
one for each log (generated, Lublin-1, Lublin-2); their rows are called network (best action) and network-drawn (actions
drawn from the softmax), and are no part of the recorded figures.

--listen lets workers on other machines compute cells (gymctl worker; docs/guides/many-machines.md); cells that
measure time stay here.
Results are the same bytes for any number of workers, whichever of them die.`,
		Example: `  gymctl experiment run topdrl --quick
  gymctl experiment run worl-rtgs --out runs/worl --workers 8
  gymctl experiment run dally --data ../traces --json
  gymctl experiment run lwf --quick --set draws=30 --set 'spans=[6, 24]'
  gymctl experiment run rlscheduler --data ../traces --agent Lublin-1=runs/mine --only network
  gymctl experiment run topdrl --listen 0.0.0.0:7777 --token-file token`,
		Args:      cli.Args(1, 1, "one NAME"),
		RunE:      func(c *cobra.Command, names []string) error { return o.run(a, c, names[0]) },
		ValidArgs: PaperNames(),
	}
	o.flags(c)
	return c
}

func (o *runExperiment) flags(c *cobra.Command) {
	f, plan := c.Flags(), &o.opt.Plan
	f.BoolVar(&plan.Quick, "quick", false, "the short version, within two minutes on two cores: shows only the tendency")
	f.StringVar(&o.opt.Dir, "out", "", "`DIR` of the experiment (default runs/NAME, with --quick runs/NAME-quick)")
	o.changed.flags(c, &plan.Quick)
	f.StringVar(&plan.Data, "data", "", "`DIR` of recorded workloads, used in addition to the generated ones")
	f.IntVar(&plan.Seeds, "seeds", 0, "`N` seeds instead of the experiment's own number")
	options.KernelsFlag(c, &o.kernels)
	o.queue.Flags(c)
	f.StringVar(&o.opt.Only, "only", "",
		"compute only the cells whose names begin with `PREFIX`, and the cells that they need")
	f.StringArrayVar(&o.agents, "agent", nil,
		"a trained agent that plays too: `LOG=DIR` of a run or checkpoint (repeatable)")
	cli.JSONFlag(c)
	o.web.Flags(c)
	cli.Least(c, 1, "seeds")
	cli.Filled(c, "data", "out", "only")
	cli.CompleteDir(c, "out", "data")
	options.Sections(c)
}

// complete reads files, and reports mistakes in flags.
func (o *runExperiment) complete(c *cobra.Command) (err error) {
	if err := o.queue.Check(c); err != nil {
		return err
	}
	if o.opt.Plan.Changes, err = o.changed.changes(c); err != nil {
		return err
	}
	o.opt.Plan.Workers, o.queue.Data = o.queue.Workers, o.opt.Plan.Data
	for _, text := range o.agents {
		where, dir, _ := strings.Cut(text, "=")
		if where == "" || dir == "" {
			return fault.Mistakef("--agent: got %q, want %s", text, cli.WantOf(c.Flag("agent")))
		}
		o.opt.Plan.Agents = append(o.opt.Plan.Agents, study.Agent{Where: where, Dir: dir})
	}
	return options.UseKernels(o.kernels)
}

func (o *runExperiment) run(a *cli.App, c *cobra.Command, name string) error {
	if err := o.complete(c); err != nil {
		return err
	}
	ui, opt := options.NewQueueProgress(a), &o.opt
	opt.Commit, opt.Now, opt.Say = cli.About().Commit, a.Now, ui.Say
	opt.Dir = cmp.Or(opt.Dir, papers.Dir(name, opt.Plan.Quick))
	closePages, err := o.web.Show(c.Context(), a, c, pages.Options{Paths: []string{opt.Dir}, Queue: o.queue.Status})
	if err != nil {
		return err
	}
	defer closePages()
	opt.Queue = o.queue.Opener(ui, name, opt.Dir)
	r, err := papers.Run(c.Context(), name, *opt)
	if err = o.queue.Disputed(err); err != nil {
		return err
	}
	return studied(a, c, r)
}

// studied prints the results of an experiment.
func studied(a *cli.App, c *cobra.Command, r *study.Report) error {
	if err := a.Show(c, r, r.WriteTable); err != nil || cli.AsJSON(c) {
		return err
	}
	page := filepath.Join(r.Dir, "index.html")
	if _, err := os.Stat(page); err == nil {
		a.Notef("the same with figures: %s", page)
	}
	return nil
}

// PaperNames returns the names of all experiments.
func PaperNames() []string {
	return cli.NamesOf(papers.All(), func(s study.Study) string { return s.Name })
}
