package research

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/options"
	"clustergym/configs"
	"clustergym/env/rollout"
	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/internal/plain"
	"clustergym/lab/arena"
	"clustergym/lab/benchmark"
	"clustergym/lab/config"
	"clustergym/lab/envs"
	"clustergym/lab/run"
)

// Benchmark returns a version by its name. Tests have one whose secret they know.
var Benchmark = benchmark.Labelled

// versionFlag adds --version, and returns what reads the version that it names.
func versionFlag(c *cobra.Command) func() (*benchmark.Version, error) {
	labels := benchmark.Labels()
	name := labels[len(labels)-1]
	cli.Choice(c, &name, "version", "`VERSION` of the benchmark: "+strings.Join(labels, " or "), labels...)
	return func() (*benchmark.Version, error) { return Benchmark(name) }
}

func benchmarkVerb(a *cli.App) *cobra.Command {
	c := cli.Parent(&cobra.Command{
		Use:   "benchmark",
		Short: "Score policies on the tasks of ClusterGym-Bench",
		Long: `benchmark is ClusterGym-Bench: fixed scheduling tasks, on which a policy scores 0 if it is no better than random play and
1 if it is as good as the best rule that knows as much (docs/evidence/benchmark.md). Tasks of version 2, the default, are
played on streams: draws of a generator, or a public trace in blocks. --version v1 plays the windows of version 1.

list names the tasks, train trains their agents by the protocol, run plays a policy on the development draws, report
compares, and submit packs a row. The draws of the leaderboard come from a seed of which the version's file has the hash
alone until the version closes; open plays a row on them, and is for those who have the seed.`,
		Example: `  gymctl benchmark list
  gymctl benchmark run --policy hold -o runs/hold
  gymctl benchmark report runs/hold`,
	})
	c.AddCommand(
		benchmarkListVerb(a), benchmarkShowVerb(a), benchmarkTrainVerb(a), benchmarkRunVerb(a), benchmarkReportVerb(a),
		benchmarkSubmitVerb(a), benchmarkVerifyVerb(a),
		benchmarkOpenVerb(a), benchmarkSealVerb(a), benchmarkRulesVerb(a), benchmarkRecordVerb(a),
	)
	return c
}

// taskNames returns the names of the tasks of the version that c's flag names, the newest without one, for completions.
func taskNames(c *cobra.Command) []string {
	if f := c.Flag("version"); f != nil {
		if v, err := Benchmark(f.Value.String()); err == nil {
			return v.Names()
		}
	}
	return benchmark.Current().Names()
}

// completeTasks completes arguments that are tasks.
func completeTasks(c *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return taskNames(c), cobra.ShellCompDirectiveNoFileComp
}

// ListedTask is a task in the document of gymctl benchmark list --json.
type ListedTask struct {
	Name      string               `json:"name"`
	Hash      string               `json:"hash"`
	Env       string               `json:"env"`
	Rung      string               `json:"rung"`
	Workload  string               `json:"workload"`
	Cluster   string               `json:"cluster"`
	Split     string               `json:"split"`
	Metric    string               `json:"metric"`
	Track     string               `json:"track,omitempty"` // generated or recorded, of tasks that are played on streams
	Windows   int                  `json:"windows"`         // or draws, or blocks
	Steps     int64                `json:"steps"`           // of an agent's training
	Tests     string               `json:"tests"`
	Rules     []string             `json:"rules"`
	Reference *benchmark.Reference `json:"reference,omitempty"`
}

func benchmarkListVerb(a *cli.App) *cobra.Command {
	var version func() (*benchmark.Version, error)
	c := &cobra.Command{
		Use:   "list [TASK...]",
		Short: "List the tasks with their hashes",
		Long: `list names the tasks that TASK or patterns such as 'jobselect-*' choose, all without one: environment, what is known of run
times, draws (windows in version 1), and the metric of random play and of the best rule on the development draws, between which
scores are measured. The hash of a task covers the jobs that are played.`,
		Example: `  gymctl benchmark list
  gymctl benchmark list queuerank-easy-causal --json
  gymctl benchmark list --version v1 workerplace-pairs`,
		RunE: func(c *cobra.Command, patterns []string) error {
			v, err := version()
			if err != nil {
				return err
			}
			tasks, err := v.Match(patterns...)
			if err != nil {
				return err
			}
			var list []ListedTask
			var rows [][]string
			for _, t := range tasks {
				cfg, err := t.Config()
				if err != nil {
					return err
				}
				m := envs.Find(cfg.Env.ID).Metric
				l := ListedTask{
					Name: t.Name, Hash: t.Hash, Env: cfg.Env.ID, Rung: benchmark.Rung(&cfg), Split: benchmark.Development,
					Metric:  m.Key,
					Windows: t.Units(&cfg, benchmark.Development), Track: t.Track, Steps: cfg.Train.Steps,
					Tests: t.Tests, Rules: t.Rules,
					Workload: "generated by the environment",
				}
				if cfg.Simulated() {
					l.Workload, l.Cluster = cmp.Or(cfg.Trace.File, cfg.Trace.Synth.Profile), cfg.Cluster
				}
				row := []string{t.Name, t.Hash[:12], l.Env, l.Rung, fmt.Sprint(l.Windows), m.Key, "", "", ""}
				if r, ok := v.Reference(t); ok {
					l.Reference = &r
					row[6], row[7], row[8] = m.Cell(r.Random), m.Cell(r.Best), r.Rule
				}
				list, rows = append(list, l), append(rows, row)
			}
			units := "windows"
			if v.Version > 1 {
				units = "draws"
			}
			header := []string{"task", "hash", "environment", "run times", units, "metric", "random", "best", "best rule"}
			return a.ShowTable(c, list, 4, header, rows, "hash", "metric", units)
		},
		ValidArgsFunction: completeTasks,
	}
	version = versionFlag(c)
	cli.JSONFlag(c)
	return c
}

// ShownTask is the document of gymctl benchmark show --json.
type ShownTask struct {
	Name   string          `json:"name"`
	Hash   string          `json:"hash"`
	Tests  string          `json:"tests"`
	Env    string          `json:"env"`
	Kwargs map[string]any  `json:"kwargs"` // that make the environment over the bridge
	Steps  int64           `json:"steps"`  // of an agent's training
	Config json.RawMessage `json:"config"`
}

func benchmarkShowVerb(a *cli.App) *cobra.Command {
	var kwargs bool
	var version func() (*benchmark.Version, error)
	c := &cobra.Command{
		Use:   "show TASK",
		Short: "Print the configuration of a task",
		Long: `show prints the run that learns a task: a file for gymctl train -c and gymctl eval -c. Its workload, its cluster, its
environment and its windows are the task's; agent and training are where to begin.

--kwargs prints the arguments that make the task's environment over the bridge instead, as one JSON document: for clustergym.make
and for --kwargs of the examples in python/examples. --json has them too, beside the environment and the number of steps.`,
		Example: `  gymctl benchmark show preempt-users-64-causal
  gymctl benchmark show queuerank-easy-causal --json
  gymctl benchmark show queuerank-easy-causal --kwargs`,
		Args: cli.Args(1, 1, "one TASK"),
		RunE: func(c *cobra.Command, names []string) error {
			v, err := version()
			if err != nil {
				return err
			}
			t, err := v.Task(names[0])
			if err != nil {
				return err
			}
			cfg, err := t.Config()
			if err != nil {
				return err
			}
			if kwargs || cli.AsJSON(c) {
				k, err := t.Kwargs()
				if err != nil {
					return err
				}
				if kwargs {
					return a.JSON(k)
				}
				b, err := configs.JSON(&cfg)
				if err != nil {
					return err
				}
				return a.JSON(ShownTask{t.Name, t.Hash, t.Tests, cfg.Env.ID, k, cfg.Train.Steps, b})
			}
			b, err := configs.Encode(&cfg)
			if err != nil {
				return err
			}
			a.Printf("# %s, task %s, hash %s\n# %s\n%s", benchmark.Name, t.Name, t.Hash, t.Tests, b)
			return nil
		},
		ValidArgsFunction: completeTasks,
	}
	version = versionFlag(c)
	cli.JSONFlag(c)
	c.Flags().BoolVar(&kwargs, "kwargs", false, "print the arguments of the environment for clients of the bridge")
	return c
}

// trainOptions are the flags of benchmark train.
type trainOptions struct {
	version func() (*benchmark.Version, error)
	opt     run.TrainOptions
	dir     string
	seeds   int
	set     []string
}

func benchmarkTrainVerb(a *cli.App) *cobra.Command {
	o := &trainOptions{}
	c := &cobra.Command{
		Use:   "train [TASK...]",
		Short: "Train the agents of tasks by the protocol",
		Long: `train trains an agent for each of the tasks, five seeds each, within the task's number of steps, in DIR/TASK. The agent is that
of the task's preset; --set changes it, its training and the choice of its checkpoint, and nothing else. It sees the
training and the validation part of the development workload; the development windows themselves are for run.

Ctrl-C saves, and the same command continues.`,
		Example: `  gymctl benchmark train -o runs/ours
  gymctl benchmark train 'gpupick-*' -o runs/wide --set 'ppo.network.hidden=[512, 512]'`,
		RunE:              func(c *cobra.Command, patterns []string) error { return o.run(a, c, patterns) },
		ValidArgsFunction: completeTasks,
	}
	o.version = versionFlag(c)
	f := c.Flags()
	f.StringVarP(&o.dir, "out", "o", "", "`DIR` of the runs, a folder for each task")
	f.IntVar(&o.seeds, "seeds", benchmark.Seeds, "`N` seeds; a row has five")
	f.StringArrayVar(&o.set, "set", nil, "change a key of the agent or its training: `KEY.PATH=VALUE` (repeatable)")
	options.WorkersFlag(c, &o.opt.Workers)
	cli.JSONFlag(c)
	cli.Least(c, 1, "seeds")
	cli.One(c, "out")
	cli.CompleteDir(c, "out")
	return c
}

func (o *trainOptions) run(a *cli.App, c *cobra.Command, patterns []string) error {
	v, err := o.version()
	if err != nil {
		return err
	}
	tasks, err := v.Match(patterns...)
	if err != nil {
		return err
	}
	learners := make([]config.Config, len(tasks))
	for i, t := range tasks { // before the first of them has learned for hours
		if learners[i], err = t.Learner(o.set); err != nil {
			return err
		}
	}
	list, rows := []*benchmark.Trained{}, [][]string(nil)
	for i, t := range tasks {
		cfg, opt := learners[i], o.opt
		a.Say("task      %s", t.Name)
		ui := options.NewProgress(a, cfg.Train.Steps*int64(o.seeds))
		opt.Now, opt.Tags, opt.Say, opt.Tick = a.Now, "sb3", ui.Say, ui.Tick
		r, err := t.Train(c.Context(), cfg, o.dir, o.seeds, opt)
		ui.Clear()
		if err != nil {
			return err
		}
		list, rows = append(list, r), append(rows, []string{r.Task, fmt.Sprint(len(r.Report.Runs)), r.Dir})
	}
	return a.ShowTable(c, list, 1, []string{"task", "seeds", "runs"}, rows)
}

// policyFlags say what plays.
type policyFlags struct {
	policy   benchmark.Policy
	budget   rollout.Budget
	external arena.External
	door     *options.Door
}

func (p *policyFlags) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&p.policy.Name, "name", "", "`NAME` of the row (default that of the policy or folder)")
	f.StringArrayVar(&p.policy.Rules, "policy", nil,
		"what plays: `POLICY` as in gymctl eval --policies, best or random, for all tasks that have it; TASK=POLICY for "+
			"one or a pattern (repeatable)")
	f.StringArrayVar(&p.policy.Dirs, "checkpoint", nil,
		"`DIR` of runs with a folder for each task, as train makes it; TASK=DIR for the runs or the run of one (repeatable)")
	f.StringArrayVar(&p.policy.Models, "policy-onnx", nil,
		"ONNX models: `PATH` of a folder with one for each task, whose models are the runs; TASK=PATH for a model or a "+
			"folder of one task; of a single task, its models (repeatable)")
	f.StringArrayVar(&p.policy.Set, "set", nil,
		"how rules search or weigh: eval.rollout.`KEY=VALUE`, eval.hold. and eval.index. likewise (repeatable)")
	options.BudgetFlag(f, &p.budget)
	f.StringArrayVar(&p.external.Names, "external", nil,
		"wait for a program called `NAME` to play one task through --serve; several are the runs of one row (repeatable)")
	f.StringArrayVar(&p.policy.Files, "file", nil,
		"`FILE` that the program plays with, such as its model: the row has its hash (repeatable)")
	p.door = options.NewDoor("")
	p.door.Cfg.DrainTimeout = options.EvalDrain
	p.door.Flags(c)
	f.DurationVar(&p.external.Timeout, "external-timeout", 10*time.Minute,
		"give up on programs when none of them has finished a window for this long")
	options.ExternalRules(c)
	c.MarkFlagsMutuallyExclusive("policy", "checkpoint", "policy-onnx", "external")
	cli.Needs(c, []string{"policy"}, "set")
	cli.Needs(c, []string{"external"}, "file")
	cli.CompleteDir(c, "checkpoint")
	options.CompleteModel(c)
	cli.CompleteList(c, "policy", options.RivalNames)
}

// read returns the policy.
func (p *policyFlags) read(a *cli.App, c *cobra.Command) (*benchmark.Policy, error) {
	q := p.policy
	name := ""
	switch dirs := slices.Concat(q.Dirs, q.Models); {
	case len(q.Rules) > 0:
		q.Kind, name = benchmark.KindRule, benchmark.RowName(q.Rules[0])
	case len(dirs) > 0:
		if q.Kind = benchmark.KindCheckpoint; len(q.Models) > 0 {
			q.Kind = benchmark.KindModel
		}
		if name = dirs[0]; strings.Contains(name, "=") {
			_, name, _ = strings.Cut(name, "=")
		}
		name = strings.TrimSuffix(filepath.Base(filepath.Clean(name)), ".onnx")
	default:
		q.Kind, name = benchmark.KindExternal, p.external.Names[0]
	}
	q.Name = cmp.Or(q.Name, name)
	if c.Flags().Changed("budget") {
		q.Set = append(slices.Clone(q.Set), "eval.rollout.budget="+p.budget.String())
	}
	var opt arena.EvalOptions
	if err := options.Join(a, c, p.door, &p.external, &opt); err != nil {
		return nil, err
	}
	q.External = opt.External
	return &q, q.Validate()
}

// benchmarkPlay plays a policy and prints what comes out.
type benchmarkPlay struct {
	policyFlags
	version func() (*benchmark.Version, error)
	opt     benchmark.Options
	tasks   []string
}

func (p *benchmarkPlay) flags(c *cobra.Command) {
	p.policyFlags.flags(c)
	p.version = versionFlag(c)
	f := c.Flags()
	f.StringVarP(&p.opt.Dir, "out", "o", "", "`DIR` that keeps the results; what is there is not played again")
	tasksFlag(c, &p.tasks)
	options.WorkersFlag(c, &p.opt.Workers)
	f.StringVar(&p.opt.Kernels, "kernels", "auto", "`SET` of float32 kernels, as in gymctl version")
	cli.CompleteDir(c, "out")
}

// tasksFlag adds --tasks.
func tasksFlag(c *cobra.Command, tasks *[]string) {
	c.Flags().StringSliceVar(tasks, "tasks", nil,
		"`TASKS` or patterns such as jobselect-*, joined by commas (default all)")
	cli.CompleteList(c, "tasks", func(c *cobra.Command, _ string) []string { return taskNames(c) })
}

// splitFlag adds --split.
func splitFlag(c *cobra.Command, split *string) {
	*split = benchmark.Development
	cli.Choice(c, split, "split", "windows: development or sealed", benchmark.Development, benchmark.Sealed)
}

// play plays q.
func (p *benchmarkPlay) play(a *cli.App, c *cobra.Command, v *benchmark.Version,
	q *benchmark.Policy) (*benchmark.Results, error) {
	var err error
	if p.opt.Tasks, err = v.Match(p.tasks...); err != nil {
		return nil, err
	}
	line := cli.NewStatus(a, 0)
	opt := p.opt
	opt.Say = func(format string, args ...any) {
		line.Clear()
		a.Say(format, args...)
	}
	opt.Game = func(task string, done, all int) {
		line.Show(func(int) []string {
			return []string{fmt.Sprintf("%s: %d of %s", task, done, plain.Count(all, "game", "games"))}
		})
	}
	r, err := v.Play(c.Context(), q, opt)
	line.Clear()
	return r, err
}

// runOptions are the flags of benchmark run.
type runOptions struct {
	benchmarkPlay
	secret, split string
}

func benchmarkRunVerb(a *cli.App) *cobra.Command {
	o := &runOptions{}
	c := &cobra.Command{
		Use:   "run",
		Short: "Play a policy on the development windows of tasks",
		Long: `run plays one policy on the development windows of the tasks that --tasks chooses, and prints its scores: 0 = random play, 1 =
the best rule. A policy is a rule (--policy, by the names of gymctl eval, rollout:POLICY too), agents of this program
(--checkpoint), ONNX models that any program has trained (--policy-onnx, docs/reference/onnx.md), or a program of
yours over the bridge
(--serve with --external, one task at a time; it plays each window once, and leaving one ends the run).

Results are kept in -o DIR, run by run of each task. Ctrl-C ends with exit code 130, and the same command goes on, to the same
bytes. The same folder takes further tasks.

--split sealed plays the windows of the leaderboard: with the secret seed (--secret), or once the version is closed.`,
		Example: `  gymctl benchmark run --policy best -o runs/best
  gymctl benchmark run --policy rollout:hold --budget 32 --tasks 'jobselect-*' -o runs/search
  gymctl benchmark run --checkpoint runs/ours -o runs/ours-played
  gymctl benchmark run --policy-onnx runs/sb3 -o runs/sb3-played
  gymctl benchmark run --serve 127.0.0.1:8765 --external sb3 --file sb3.zip --tasks queuerank-easy-causal -o runs/sb3`,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(a, c) },
	}
	o.flags(c)
	cli.One(c, "out")
	cli.One(c, "policy", "checkpoint", "policy-onnx", "external")
	splitFlag(c, &o.split)
	c.Flags().StringVar(&o.secret, "secret", "", "`FILE` of the secret seed, with --split sealed")
	c.Flags().Bool("json", false, "print one JSON document: what results.json has")
	options.Sections(c)
	return c
}

func (o *runOptions) run(a *cli.App, c *cobra.Command) error {
	v, err := o.version()
	if err != nil {
		return err
	}
	q, err := o.read(a, c)
	if err != nil {
		return err
	}
	if o.opt.Secret, err = secretOf(v, o.split, o.secret); err != nil {
		return err
	}
	r, err := o.play(a, c, v, q)
	if err != nil {
		return err
	}
	if cli.AsJSON(c) {
		return a.JSON(r)
	}
	if o.split == benchmark.Sealed {
		return sealedMeans(a, r)
	}
	e, err := v.Entry(r)
	if err != nil {
		a.Notef("no scores: %v", err)
		return sealedMeans(a, r)
	}
	e.Numbers = benchmark.PlayedNow
	// On which there are results, those of earlier calls too.
	played := slices.DeleteFunc(slices.Clone(o.opt.Tasks), func(t *benchmark.Task) bool { return r.Task(t.Name) == nil })
	return benchmarkReport(a, c, v, benchmark.Development, played, []benchmark.Entry{e}, "")
}

// secretOf returns the secret that a split needs, nil if it needs none; file names its file.
func secretOf(v *benchmark.Version, split, file string) (*benchmark.Secret, error) {
	if split == benchmark.Sealed {
		s, err := v.Sealed(file)
		return &s, err
	}
	if file != "" {
		return nil, fault.Mistakef("--secret goes with --split %s", benchmark.Sealed)
	}
	return nil, nil
}

// sealedMeans prints the means of results whose references are not recorded.
func sealedMeans(a *cli.App, r *benchmark.Results) error {
	var rows [][]string
	for i := range r.Tasks {
		t := &r.Tasks[i]
		var cells []string
		for _, m := range t.Means() {
			cells = append(cells, fmt.Sprintf("%.6g", m))
		}
		rows = append(rows, []string{t.Task, t.Policy, strings.Join(cells, " ")})
	}
	return a.Table(3, []string{"task", "policy", "means of the runs"}, rows)
}

// benchmarkReport prints a comparison, and writes its page if there is a name for it.
func benchmarkReport(a *cli.App, c *cobra.Command, v *benchmark.Version, split string, tasks []*benchmark.Task,
	entries []benchmark.Entry, html string) error {
	r, err := v.NewReport(split, tasks, entries)
	if err != nil {
		return err
	}
	if html != "" {
		if err := a.WriteFile(html, nil, r.Page().Write); err != nil {
			return err
		}
		a.Notef("the page is %s", html)
	}
	return a.Show(c, r, r.WriteTable)
}

// reportOptions are the flags of benchmark report.
type reportOptions struct {
	version     func() (*benchmark.Version, error)
	tasks, rows []string
	split, html string
	board       bool
}

func benchmarkReportVerb(a *cli.App) *cobra.Command {
	o := &reportOptions{}
	c := &cobra.Command{
		Use:   "report [DIR | ROW]...",
		Short: "Compare results, rows and the leaderboard",
		Long: `report compares folders of run and files of submit with each other, and with --board with the recorded leaderboard, which it
prints alone without arguments: interquartile means with 95 % intervals by the stratified bootstrap, over other runs and over
other tasks too, probabilities of improvement, and scores by task. --html writes a page with performance profiles.

Sealed scores are those of the leaderboard alone.`,
		Example: `  gymctl benchmark report
  gymctl benchmark report --split sealed --tasks 'jobselect-*'
  gymctl benchmark report runs/ours-played runs/best --board --html report.html`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, from []string) error { return o.run(a, c, from) },
	}
	f := c.Flags()
	o.version = versionFlag(c)
	tasksFlag(c, &o.tasks)
	f.StringSliceVar(&o.rows, "rows", nil, "rows of the leaderboard by their `NAMES`, joined by commas (default all)")
	splitFlag(c, &o.split)
	f.BoolVar(&o.board, "board", false, "compare with the leaderboard too")
	f.StringVar(&o.html, "html", "", "write a page with profiles to `FILE`, for any browser and without a network")
	cli.JSONFlag(c)
	return c
}

func (o *reportOptions) run(a *cli.App, c *cobra.Command, from []string) error {
	v, err := o.version()
	if err != nil {
		return err
	}
	tasks, err := v.Match(o.tasks...)
	if err != nil {
		return err
	}
	if o.split == benchmark.Sealed && len(from) > 0 {
		return fault.Mistakef("--split %s: folders and rows have development windows; gymctl benchmark open plays the others",
			o.split)
	}
	if err := options.CheckPage(o.html, ""); err != nil {
		return err
	}
	var entries []benchmark.Entry
	for _, name := range from {
		e, err := entryOf(v, name)
		if err != nil {
			return err
		}
		entries = append(entries, e)
	}
	if o.board || len(from) == 0 {
		some, err := o.ofBoard(v)
		if err != nil {
			return err
		}
		entries = append(entries, some...)
	}
	return benchmarkReport(a, c, v, o.split, tasks, entries, o.html)
}

// ofBoard returns the rows of the leaderboard that --rows names, all without it.
func (o *reportOptions) ofBoard(v *benchmark.Version) ([]benchmark.Entry, error) {
	b, err := v.Leaderboard()
	if err != nil {
		return nil, err
	}
	known := cli.NamesOf(b.Rows, func(r benchmark.BoardRow) string { return r.Name })
	for _, name := range o.rows {
		if !slices.Contains(known, name) {
			return nil, fault.Mistakef("--rows: the leaderboard has no row %q, want %s", name, nearest.OneOf(name, known))
		}
	}
	return slices.DeleteFunc(b.Entries(o.split), func(e benchmark.Entry) bool {
		return len(o.rows) > 0 && !slices.Contains(o.rows, e.Name)
	}), nil
}

// entryOf reads a folder of results, or a row.
func entryOf(v *benchmark.Version, name string) (benchmark.Entry, error) {
	if i, err := os.Stat(name); err == nil && i.IsDir() {
		r, err := v.ReadResults(name)
		if err != nil {
			return benchmark.Entry{}, err
		}
		return v.Entry(r)
	}
	r, err := v.ReadRow(name)
	if err != nil {
		return benchmark.Entry{}, err
	}
	return v.Entry(&r.Results)
}

func benchmarkSubmitVerb(a *cli.App) *cobra.Command {
	var (
		out, author, text string
		commands          []string
		version           func() (*benchmark.Version, error)
	)
	c := &cobra.Command{
		Use:   "submit DIR",
		Short: "Pack results into a row for the leaderboard",
		Long: `submit packs the results of run on the development windows into one file: every value, the hashes of the tasks and of what
plays, the commands that repeat it, and the program's version. The file has a hash of itself; verify and open refuse one that
was changed afterwards. Policies that know the windows beforehand are refused.`,
		Example: `  gymctl benchmark submit runs/ours-played -o ours.json --author "A. Person" \
    --command 'gymctl benchmark train -o runs/ours' --command 'gymctl benchmark run --checkpoint runs/ours -o runs/ours-played'`,
		Args: cli.Args(1, 1, "one DIR of gymctl benchmark run"),
		RunE: func(c *cobra.Command, dirs []string) error {
			v, err := version()
			if err != nil {
				return err
			}
			r, err := v.ReadResults(dirs[0])
			if err != nil {
				return err
			}
			b := cli.About()
			with := benchmark.Program{Version: b.Version, Commit: b.Commit, Go: b.Go, Platform: b.Platform}
			row, err := v.NewRow(r, author, text, commands, with)
			if err != nil {
				return err
			}
			if err := row.Write(out); err != nil {
				return err
			}
			if cli.AsJSON(c) {
				return a.JSON(row)
			}
			a.Printf("%s: row %s, %s, hash %s\n", out, row.Policy.Name, plain.Count(len(row.Tasks), "task", "tasks"), row.Digest)
			return nil
		},
	}
	version = versionFlag(c)
	f := c.Flags()
	f.StringVarP(&out, "out", "o", "", "`FILE` of the row")
	f.StringVar(&author, "author", "", "`NAME` of who made it")
	f.StringVar(&text, "about", "", "a `SENTENCE` on the policy")
	f.StringArrayVar(&commands, "command", nil, "`COMMAND` that repeats it, training first (repeatable)")
	cli.JSONFlag(c)
	cli.One(c, "out")
	cli.CompleteDir(c, "out")
	return c
}
