// Package options holds the flags that several verbs share, and what they stand for: the source of a configuration, a
// trace, models, weights, a task queue, pages, a server.
package options

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/configs"
	"clustergym/internal/fault"
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/lab/envs"
	"clustergym/lab/run"
	"clustergym/lab/rundir"
	"clustergym/lab/workload"
)

// Source is the source of a run's configuration: a preset or a file, then flags, then --set.
type Source struct {
	Name    string
	env     string
	Set     []string
	Trace   string
	Format  string
	columns map[string]string
	Cluster string
	known   string // env.estimates
	kernels string
	Late    Late // before --set

	Given   config.Given // keys of the user's own file, of --set and of flags
	changes config.Given // keys of --set
	sized   bool         // flags or --set name a trace or a cluster, which the sizes that are not given follow
	Adapted []string     // what of training the preset has adapted to them, a sentence each
}

// Flags adds the flags; without describes the default without -c.
func (s *Source) Flags(c *cobra.Command, without string) {
	f := c.Flags()
	f.StringVarP(&s.Name, "config", "c", "", "preset or YAML `FILE` (default "+without+")")
	f.StringVar(&s.env, "env", "", "`ID` of an environment (gymctl envs) instead of -c: its own preset, or its defaults")
	f.StringArrayVar(&s.Set, "set", nil, "change one key of the configuration: `KEY.PATH=VALUE` (repeatable)")
	f.StringVar(&s.Trace, "trace", "",
		"trace `FILE` instead of the configuration's workload: jobs, or what the environment takes (gymctl envs ID)")
	f.StringVar(&s.Format, "format", "auto",
		"`NAME` of the format of --trace as in gymctl trace formats; auto = by content")
	columnsFlag(c, &s.columns)
	LateFlag(&s.Late, f.DurationVar, "limit", 0, LimitHelp,
		func(cfg *config.Config) *time.Duration { return &cfg.Trace.Limit })
	LateFlag(&s.Late, f.BoolVar, "sort", false,
		"sort the jobs of --trace by submit time, instead of refusing an unsorted file",
		func(cfg *config.Config) *bool { return &cfg.Trace.Sort })
	LateFlag(&s.Late, f.BoolVar, "accept-left-out", false, AcceptHelp,
		func(cfg *config.Config) *bool { return &cfg.Trace.AcceptLeftOut })
	f.StringVar(&s.Cluster, "cluster", "", ClusterForms+", instead of the configuration's cluster")
	f.StringVar(&s.known, "estimates", "",
		"what observations and policies know of run times, instead of the configuration's env.estimates: none, trace, "+
			"history, gbdt, gbdt:FILE, exact or noisy:SIGMA")
	cli.CompleteBy(c, "estimates", EstimateValues)
	cli.Filled(c, "trace")
	cli.Needs(c, []string{"trace"}, "format", "columns", "sort")
	c.MarkFlagsMutuallyExclusive("config", "env")
	KernelsFlag(c, &s.kernels)
	cli.Complete(c, "format", workload.FormatNames()...)
	cli.CompleteOrFile(c, "cluster", workload.ClusterPresets()...)
	cli.CompleteOrFile(c, "config", configs.Runs()...)
	cli.Complete(c, "env", envs.IDs()...)
	CompleteSet(c, func(c *cobra.Command, _ []string) configs.Validator {
		own := *s
		own.Set = nil
		cfg, err := own.config(c)
		if err != nil {
			cfg = config.Default()
		}
		return &cfg
	})
}

// Late are flags that change a configuration once it is read.
type Late []func(c *cobra.Command, cfg *config.Config)

// LateFlag adds a flag to late, by bind. of returns what it changes, if it is given.
func LateFlag[T any](late *Late, bind func(p *T, name string, value T, usage string), name string, value T,
	usage string, of func(cfg *config.Config) *T) {
	given := value
	bind(&given, name, value, usage)
	*late = append(*late, func(c *cobra.Command, cfg *config.Config) {
		if c.Flags().Changed(name) {
			*of(cfg) = given
		}
	})
}

// Apply changes cfg.
func (l Late) Apply(c *cobra.Command, cfg *config.Config) {
	for _, change := range l {
		change(c, cfg)
	}
}

// Changed returns the first of names that is given on the command line, "" if none is.
func Changed(c *cobra.Command, names ...string) string {
	for _, n := range names {
		if c.Flags().Changed(n) {
			return n
		}
	}
	return ""
}

// config returns the configuration for a new run.
func (s *Source) config(c *cobra.Command) (config.Config, error) {
	name := s.Name
	s.Given = config.Given{}
	if c.Flags().Changed("env") {
		d, err := envs.Lookup(s.env)
		switch {
		case err != nil:
			return config.Config{}, fault.Mistakef("--env: %w", err)
		case !slices.Contains(configs.Runs(), d.Preset):
			cfg := config.For(d.ID)
			return cfg, s.Apply(c, &cfg)
		}
		name = d.Preset
	}
	if name == "" {
		name = "quickstart"
	}
	cfg, given, err := LoadRun(name)
	if err != nil {
		return config.Config{}, err
	}
	s.Given = given
	return cfg, s.Apply(c, &cfg)
}

// LoadRun reads the run called name, a file or a preset, and returns which keys the user has given: those of a file,
// none of a preset.
func LoadRun(name string) (config.Config, config.Given, error) {
	file, data, err := ReadConfig(name)
	if err != nil {
		return config.Config{}, nil, err
	}
	cfg, given, err := config.DecodeGiven(name, data)
	if err != nil {
		return config.Config{}, nil, &fault.Mistake{Err: err}
	}
	if file != name { // a preset
		given = config.Given{}
	}
	return cfg, given, nil
}

// Fit sets the sizes that follow from the trace and the cluster, if the user named one, and returns a sentence for
// each. The scenario is nil if there is nothing to follow.
func (s *Source) Fit(c *cobra.Command, cfg *config.Config) (*arena.Scenario, []string, error) {
	if !s.sized {
		return nil, nil, nil
	}
	return arena.Fit(c.Context(), cfg, s.Given)
}

// EvalConfig returns the configuration for an evaluation: that of the first checkpoint's run, unless -c is given, or
// else the one that the first model brings along, unless -c or --env is given. Observations show what they did in
// training.
func (s *Source) EvalConfig(c *cobra.Command, ckpts []string, list []envs.Model) (config.Config, error) {
	var (
		trained config.Config
		err     error
	)
	switch {
	case len(ckpts) > 0:
		var dir string
		if _, dir, err = rundir.CheckpointDir(ckpts[0]); err == nil {
			trained, err = rundir.ReadConfig(dir)
		}
	case len(list) > 0 && s.Name == "" && !c.Flags().Changed("env") && list[0].Run() != "":
		trained, err = PlayedConfig(&list[0], s.named(c))
	default:
		return s.config(c)
	}
	if err != nil {
		return trained, err
	}
	cfg := trained
	if cfg.Env.Settings != nil {
		cfg.Edit()
	}
	if s.Name != "" {
		cfg, err = s.config(c)
	} else {
		err = s.Apply(c, &cfg)
		s.sized = false // the policy keeps the sizes of its training
		// the run's teacher, from whom nothing is learned here, and its rivals may rank by run times that are hidden now
		cfg.Adapt(s.changes)
	}
	if err != nil || cfg.Env.ID != trained.Env.ID {
		return cfg, err
	}
	return cfg, cfg.ShowAs(&trained)
}

// named returns the keys of files that flags and --set name.
func (s *Source) named(c *cobra.Command) config.Given {
	keys := config.Given{}
	for key, flag := range flagsOf {
		keys[key] = c.Flags().Changed(strings.TrimPrefix(flag, "--"))
	}
	for _, kv := range s.Set {
		key, _, _ := strings.Cut(kv, "=")
		keys[strings.TrimSpace(key)] = true
	}
	return keys
}

// kernelsTo applies --kernels to cfg.
func (s *Source) kernelsTo(c *cobra.Command, cfg *config.Config) error {
	if !c.Flags().Changed("kernels") {
		return nil
	}
	cfg.Kernels = s.kernels
	return UseKernels(s.kernels)
}

// Apply applies the flags and --set to cfg.
func (s *Source) Apply(c *cobra.Command, cfg *config.Config) error {
	if err := s.kernelsTo(c, cfg); err != nil {
		return err
	}
	if d := envs.Find(cfg.Env.ID); d != nil {
		if name := Changed(c, "trace", "format", "columns", "limit", "sort",
			"accept-left-out"); name != "" && d.Takes.Trace() == "" {
			return fault.Mistakef("--%s: %s has no workload", name, d.ID)
		}
		if c.Flags().Changed("cluster") && !d.Takes.Cluster {
			what := ""
			if d.Scheduling() {
				what = "; its settings say what runs where"
			}
			return fault.Mistakef("--cluster: %s has no cluster%s", d.ID, what)
		}
	}
	if c.Flags().Changed("trace") {
		cfg.Trace.File, cfg.Trace.Format, cfg.Trace.Columns, cfg.Trace.Delimiter, cfg.Trace.Limit = s.Trace, s.Format,
			s.columns, "", 0
	}
	if c.Flags().Changed("cluster") {
		cfg.Cluster = s.Cluster
	}
	s.sized = s.sized || Changed(c, "trace", "cluster") != ""
	if c.Flags().Changed("estimates") {
		if d := cfg.Descriptor(); d != nil && !d.Simulated() {
			return fault.Mistakef("--estimates: %s has no run times to know", d.ID)
		}
		known := s.known
		if known == autoEstimates {
			known = traceEstimates
		} else if s.Given != nil {
			s.Given["env.estimates"] = true
		}
		if err := cfg.Set("env.estimates=" + known); err != nil {
			return cli.FlagFaults(c, err, map[string]string{"env.estimates": "estimates"})
		}
	}
	s.Late.Apply(c, cfg)
	return s.override(cfg)
}

// autoEstimates stands for the estimates of the trace, and for those of history where jobs of it have none: those of
// the trace that are not given, so that arena.Fit may choose others.
const (
	autoEstimates  = "auto"
	traceEstimates = "trace"
)

// override applies --set.
func (s *Source) override(cfg *config.Config) error {
	set := config.Given{}
	for _, kv := range s.Set {
		change := set.Set
		if kv == "env.estimates="+autoEstimates {
			kv, change = "env.estimates="+traceEstimates, func(cfg *config.Config, kv string) error { return cfg.Set(kv) }
		}
		if err := change(cfg, kv); err != nil {
			return fault.Mistakef("--set %s: %w", kv, err)
		}
	}
	s.sized = s.sized || set["trace.file"] || set["cluster"]
	s.changes = set
	if s.Given == nil { // nothing is chosen for it
		return nil
	}
	maps.Copy(s.Given, set)
	s.Adapted = cfg.Adapt(s.Given)
	return nil
}

// TrainConfig returns the configuration of a new run, or of the one to resume, and sets its directory in opt.
func (s *Source) TrainConfig(c *cobra.Command, resume string, opt *run.TrainOptions) (config.Config, error) {
	if !c.Flags().Changed("resume") {
		cfg, err := s.config(c)
		if err == nil && opt.RunDir == "" {
			opt.RunDir = rundir.Default(cfg.Name, opt.Now())
		}
		return cfg, err
	}
	opt.Resume, opt.RunDir = true, resume
	cfg, err := rundir.ReadConfig(resume)
	if err == nil {
		err = s.kernelsTo(c, &cfg)
	}
	if err == nil {
		err = s.override(&cfg)
	}
	return cfg, err
}
