package main

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"clustergym/configs"
	"clustergym/experiments/arena"
	"clustergym/experiments/config"
	"clustergym/experiments/envs"
	"clustergym/experiments/models"
	"clustergym/experiments/rundir"
	"clustergym/experiments/workload"
	"clustergym/internal/fault"
	"clustergym/internal/nearest"
)

// configSource is the source of a run's configuration: a preset or a file, then flags, then --set.
type configSource struct {
	name    string
	env     string
	set     []string
	trace   string
	format  string
	columns map[string]string
	limit   time.Duration
	sort    bool
	cluster string
	known   string // env.estimates
	agent   string
	seed    uint64
	kernels string

	given   config.Given // keys of the user's own file, of --set and of flags
	changes config.Given // keys of --set
	sized   bool         // flags or --set name a trace or a cluster, which the sizes that are not given follow
	adapted []string     // what of training the preset has adapted to them, a sentence each
}

// flags adds the flags; without describes the default without -c.
func (s *configSource) flags(c *cobra.Command, without string) {
	f := c.Flags()
	f.StringVarP(&s.name, "config", "c", "", "preset or YAML `FILE` (default "+without+")")
	f.StringVar(&s.env, "env", "", "`ID` of an environment (gymctl envs) instead of -c: its own preset, or its defaults")
	f.StringArrayVar(&s.set, "set", nil, "change one key of the configuration: `KEY.PATH=VALUE` (repeatable)")
	f.StringVar(&s.trace, "trace", "", "trace `FILE` instead of the configuration's workload: jobs, or what the environment takes (gymctl envs ID)")
	f.StringVar(&s.format, "format", "auto", "`NAME` of the format of --trace as in gymctl trace formats; auto = by content")
	columnsFlag(c, &s.columns)
	limitFlag(c, &s.limit)
	f.BoolVar(&s.sort, "sort", false, "sort the jobs of --trace by submit time, instead of refusing an unsorted file")
	f.StringVar(&s.cluster, "cluster", "", clusterForms+", instead of the configuration's cluster")
	f.StringVar(&s.known, "estimates", "", "what observations and policies know of run times, instead of the configuration's env.estimates: none, trace, history, gbdt, gbdt:FILE, exact or noisy:SIGMA")
	completeBy(c, "estimates", estimateValues)
	if c.Name() == "train" {
		f.StringVar(&s.agent, "agent", "", strings.Join(config.AgentNames(), ", "))
		f.Uint64Var(&s.seed, "seed", 1, "seed of everything drawn during training")
		complete(c, "agent", config.AgentNames()...)
	}
	kernelsFlag(c, &s.kernels)
	complete(c, "format", workload.FormatNames()...)
	completeOrFile(c, "cluster", workload.ClusterPresets()...)
	completeOrFile(c, "config", configs.Runs()...)
	complete(c, "env", envs.IDs()...)
	completeSet(c, func(c *cobra.Command, _ []string) configs.Validator {
		own := *s
		own.set = nil
		cfg, err := own.config(c)
		if err != nil {
			cfg = config.Default()
		}
		return &cfg
	})
}

// changed returns the first of names that is given on the command line, "" if none is.
func (s *configSource) changed(c *cobra.Command, names ...string) string {
	i := slices.IndexFunc(names, func(n string) bool { f := c.Flags().Lookup(n); return f != nil && f.Changed })
	if i < 0 {
		return ""
	}
	return names[i]
}

// config returns the configuration for a new run.
func (s *configSource) config(c *cobra.Command) (config.Config, error) {
	name := s.name
	s.given = config.Given{}
	if s.changed(c, "env") != "" {
		d, err := envs.Lookup(s.env)
		switch {
		case err != nil:
			return config.Config{}, fault.Mistakef("--env: %w", err)
		case name != "":
			return config.Config{}, fault.Mistakef("--env does not go with -c: the configuration names its environment")
		case !slices.Contains(configs.Runs(), d.Preset):
			cfg := config.For(d.ID)
			return cfg, s.apply(c, &cfg)
		}
		name = d.Preset
	}
	if name == "" {
		name = "quickstart"
	}
	cfg, given, err := loadRun(name)
	if err != nil {
		return config.Config{}, err
	}
	s.given = given
	return cfg, s.apply(c, &cfg)
}

// loadRun reads the run called name, a file or a preset, and returns which keys the user has given: those of a file, none of
// a preset.
func loadRun(name string) (config.Config, config.Given, error) {
	file, data, err := readConfig(name)
	if err != nil {
		return config.Config{}, nil, err
	}
	return decodeRun(name, file, data)
}

// decodeRun is loadRun of data, which was found in file.
func decodeRun(name, file string, data []byte) (config.Config, config.Given, error) {
	cfg, given, err := config.DecodeGiven(name, data)
	if err != nil {
		return config.Config{}, nil, &fault.Mistake{Err: err}
	}
	if file != name { // a preset
		given = config.Given{}
	}
	return cfg, given, nil
}

// fit sets the sizes that follow from the trace and the cluster, if the user named one, and returns a sentence for each. The
// world is nil if there is nothing to follow.
func (s *configSource) fit(c *cobra.Command, cfg *config.Config) (*arena.World, []string, error) {
	if !s.sized {
		return nil, nil, nil
	}
	return arena.Fit(c.Context(), cfg, s.given)
}

// evalConfig returns the configuration for an evaluation: that of the first checkpoint's run, unless -c is given, or else the one
// that the first model brings along, unless -c or --env is given. Observations show what they did in training.
func (s *configSource) evalConfig(c *cobra.Command, ckpts []string, list []models.Model) (config.Config, error) {
	var (
		trained config.Config
		err     error
	)
	switch {
	case len(ckpts) > 0:
		if s.name == "" && s.changed(c, "env") != "" {
			return trained, fault.Mistakef("--env does not go with --checkpoint: its run's configuration names the environment")
		}
		var dir string
		if _, dir, err = rundir.CheckpointDir(ckpts[0]); err == nil {
			trained, err = rundir.ReadConfig(dir)
		}
	case len(list) > 0 && s.name == "" && s.changed(c, "env") == "" && list[0].Run() != "":
		trained, err = playedConfig(&list[0], s.named(c))
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
	if s.name != "" {
		cfg, err = s.config(c)
	} else {
		err = s.apply(c, &cfg)
		s.sized = false      // the policy keeps the sizes of its training
		cfg.Adapt(s.changes) // the run's teacher, from whom nothing is learned here, and its rivals may rank by run times that are hidden now
	}
	if err != nil || cfg.Env.ID != trained.Env.ID {
		return cfg, err
	}
	return cfg, cfg.ShowAs(&trained)
}

// named returns the keys of files that flags and --set name.
func (s *configSource) named(c *cobra.Command) config.Given {
	keys := config.Given{}
	for key, flag := range flagsOf {
		keys[key] = s.changed(c, strings.TrimPrefix(flag, "--")) != ""
	}
	for _, kv := range s.set {
		key, _, _ := strings.Cut(kv, "=")
		keys[strings.TrimSpace(key)] = true
	}
	return keys
}

// kernelsTo applies --kernels to cfg.
func (s *configSource) kernelsTo(c *cobra.Command, cfg *config.Config) error {
	if s.changed(c, "kernels") == "" {
		return nil
	}
	cfg.Kernels = s.kernels
	return useKernels(s.kernels)
}

// apply applies the flags and --set to cfg.
func (s *configSource) apply(c *cobra.Command, cfg *config.Config) error {
	if err := s.kernelsTo(c, cfg); err != nil {
		return err
	}
	if d := envs.Find(cfg.Env.ID); d != nil {
		if name := s.changed(c, "trace", "format", "columns", "limit", "sort"); name != "" && d.Takes.Trace() == "" {
			return fault.Mistakef("--%s: %s has no workload", name, d.ID)
		}
		if s.changed(c, "cluster") != "" && !d.Takes.Cluster {
			what := ""
			if d.Scheduling() {
				what = "; its settings say what runs where"
			}
			return fault.Mistakef("--cluster: %s has no cluster%s", d.ID, what)
		}
	}
	if s.changed(c, "trace") != "" {
		if s.trace == "" {
			return fault.Mistakef(`--trace: got "", want the path of a file`)
		}
		cfg.Trace.File, cfg.Trace.Format, cfg.Trace.Columns, cfg.Trace.Delimiter, cfg.Trace.Limit = s.trace, s.format, s.columns, "", 0
		s.sized = true
		if s.changed(c, "sort") != "" {
			cfg.Trace.Sort = s.sort
		}
	} else if s.changed(c, "format") != "" {
		return fault.Mistakef("--format goes with --trace")
	} else if s.changed(c, "columns") != "" {
		return fault.Mistakef("--columns goes with --trace; for the configuration's own trace it is --set trace.columns.NAME=COLUMN")
	} else if s.changed(c, "sort") != "" {
		return fault.Mistakef("--sort goes with --trace; for the configuration's own trace it is --set trace.sort=true")
	}
	if s.changed(c, "limit") != "" {
		cfg.Trace.Limit = s.limit
	}
	if s.changed(c, "cluster") != "" {
		cfg.Cluster, s.sized = s.cluster, true
	}
	if s.changed(c, "estimates") != "" {
		if d := cfg.Descriptor(); d != nil && !d.Simulated() {
			return fault.Mistakef("--estimates: %s has no run times to know", d.ID)
		}
		known := s.known
		if known == autoEstimates {
			known = traceEstimates
		} else if s.given != nil {
			s.given["env.estimates"] = true
		}
		if err := cfg.Set("env.estimates=" + known); err != nil {
			return flagFaults(c, err, map[string]string{"env.estimates": "estimates"})
		}
	}
	if s.changed(c, "agent") != "" {
		if !slices.Contains(config.AgentNames(), s.agent) {
			return fault.Mistakef("--agent: got %q, want %s", s.agent, nearest.OneOf(s.agent, config.AgentNames()))
		}
		cfg.Agent = s.agent
	}
	if s.changed(c, "seed") != "" {
		cfg.Seed = s.seed
	}
	return s.override(cfg)
}

// autoEstimates stands for the estimates of the trace, and for those of history where jobs of it have none: those of the trace that
// are not given, so that arena.Fit may choose others.
const (
	autoEstimates  = "auto"
	traceEstimates = "trace"
)

// override applies --set.
func (s *configSource) override(cfg *config.Config) error {
	set := config.Given{}
	for _, kv := range s.set {
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
	if s.given == nil { // nothing is chosen for it
		return nil
	}
	maps.Copy(s.given, set)
	s.adapted = cfg.Adapt(s.given)
	return nil
}
