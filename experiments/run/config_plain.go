package run

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"clustergym/agents/ddqn"
	"clustergym/agents/ppo"
	"clustergym/agents/train"
	"clustergym/experiments/envs"
	"clustergym/internal/fault"
	"clustergym/internal/nearest"
)

// randomPolicy is uniform play, the one policy that any environment can be compared with.
const randomPolicy = "random"

// wantEnv says what env.id can be.
func wantEnv(id string) string {
	if near := nearest.Name(id, envs.IDs()); near != "" {
		return "an environment as in gymctl envs; did you mean " + near + "?"
	}
	return "one of " + strings.Join(envs.IDs(), ", ")
}

// policies are those to compare with. The default list is that of scheduling environments; elsewhere it stands for
// random play.
func (c *Config) policies() []string {
	if c.plain() && slices.Equal(c.Eval.Policies, DefaultConfig().Eval.Policies) {
		return []string{randomPolicy}
	}
	return c.Eval.Policies
}

// validatePlain adds the faults of an environment without a workload: what such a one does not have must not be
// asked for, lest somebody believes that it was heard. What stands at its default says nothing and is let pass.
func (c *Config) validatePlain(l *fault.List) {
	d := DefaultConfig()
	foreign := func(prefix string, got, plain any, why string) {
		differences(prefix, reflect.ValueOf(got), reflect.ValueOf(plain), func(key string, v any) {
			l.Add(false, key, v, "nothing: "+c.Env.ID+" "+why)
		})
	}
	workload, cluster, settings := "has no workload", "has no cluster", "has no settings"
	if envs.HasArguments(c.Env.ID) {
		settings = "has its settings in env.args"
	}
	if envs.HasCluster(c.Env.ID) {
		workload, cluster = "has its workload in env.args, as trace.synth.jobs=20000", "has its cluster in env.args, as cluster=4x8"
	}
	foreign("trace", c.Trace, d.Trace, workload)
	foreign("cluster", c.Cluster, d.Cluster, cluster)
	foreign("env", c.Env.Config, d.Env.Config, settings)
	foreign("eval.windows", c.Eval.Windows, d.Eval.Windows, "has no windows; see eval.episodes")
	foreign("eval.seeds", c.Eval.Seeds, d.Eval.Seeds, "is played once from each of eval.episodes seeds")
	foreign("eval.whole", c.Eval.Whole, d.Eval.Whole, "has no workload")
	l.Add(c.Eval.Episodes >= 1 && c.Eval.Episodes <= 1<<20, "eval.episodes", c.Eval.Episodes, "1 to 1048576")
	for i, p := range c.policies() {
		l.Add(p == randomPolicy, fmt.Sprintf("eval.policies[%d]", i), p, randomPolicy+": "+c.Env.ID+" has no heuristics")
		l.Add(!slices.Contains(c.policies()[:i], p), fmt.Sprintf("eval.policies[%d]", i), p, "each policy once")
	}
}

// differences calls found for every key, in order, whose value in got is not that in plain.
func differences(key string, got, plain reflect.Value, found func(key string, v any)) {
	if got.Kind() != reflect.Struct {
		if !reflect.DeepEqual(got.Interface(), plain.Interface()) {
			found(key, got.Interface())
		}
		return
	}
	for i := range got.NumField() {
		name, opts, _ := strings.Cut(got.Type().Field(i).Tag.Get("yaml"), ",")
		inner := key + "." + name
		if strings.Contains(opts, "inline") {
			inner = key
		}
		differences(inner, got.Field(i), plain.Field(i), found)
	}
}

// plainConfig is a configuration without what only scheduling environments have, as config.yaml and gymctl config show
// write it.
type plainConfig struct {
	Name    string `yaml:"name"`
	Seed    uint64 `yaml:"seed"`
	Kernels string `yaml:"kernels"`
	Env     struct {
		ID   string   `yaml:"id"`
		Args []string `yaml:"args,omitempty"`
	} `yaml:"env"`
	Agent string       `yaml:"agent"`
	PPO   ppo.Config   `yaml:"ppo"`
	DDQN  ddqn.Config  `yaml:"ddqn"`
	MAML  MAMLConfig   `yaml:"maml"`
	Train train.Config `yaml:"train"`
	Eval  struct {
		Episodes   int      `yaml:"episodes"`
		Validation int      `yaml:"validation"`
		Policies   []string `yaml:"policies"`
		Seed       uint64   `yaml:"seed"`
	} `yaml:"eval"`
}

// MarshalYAML leaves out what the environment does not have. It decodes to the same configuration again.
func (c Config) MarshalYAML() (any, error) {
	type all Config // without this method
	if !c.plain() || c.foreign() {
		return all(c), nil
	}
	p := plainConfig{Name: c.Name, Seed: c.Seed, Kernels: c.Kernels, Agent: c.Agent, PPO: c.PPO, DDQN: c.DDQN, MAML: c.MAML, Train: c.Train}
	p.Env.ID, p.Env.Args = c.Env.ID, c.Env.Args
	p.Eval.Episodes, p.Eval.Validation, p.Eval.Policies, p.Eval.Seed = c.Eval.Episodes, c.Eval.Validation, c.policies(), c.Eval.Seed
	return p, nil
}

// foreign says whether keys that plainConfig leaves out have a value that is a fault, and should be seen.
func (c *Config) foreign() bool {
	var l fault.List
	c.validatePlain(&l)
	return l.Err() != nil
}
