package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"clustergym/agents/ddqn"
	"clustergym/agents/improper"
	"clustergym/agents/ppo"
	"clustergym/agents/train"
	"clustergym/env/jobselect"
	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/lab/envs"
	"clustergym/lab/workload"
	"clustergym/simulator/policyname"
)

// wantEnv says in words what env.id can be.
func wantEnv(id string) string {
	if near := nearest.Name(id, envs.IDs()); near != "" {
		return "an environment as in gymctl envs; did you mean " + near + "?"
	}
	return "one of " + strings.Join(envs.IDs(), ", ")
}

// wantSettings says for which environment env holds settings.
func (c *Config) wantSettings() string {
	for _, id := range envs.IDs() {
		if d := envs.Find(id); d.HasSettings() && c.ownSettings(d) {
			return id + ", whose settings env holds"
		}
	}
	return "an environment without settings, as env holds none"
}

// Policies returns the policies to compare with. In another environment, JobSelect-v1's default list means the
// environment's own rivals, because configurations that older versions wrote contain that list. Under estimates: none
// the default list means those rivals that do not rank by run time.
func (c *Config) Policies() []string {
	list, d := c.AllPolicies(), c.Descriptor()
	if d == nil || !d.Simulated() || !c.ownSettings(d) || !slices.Equal(list, d.RivalsUnder(c.Env.Settings)) {
		return list
	}
	return c.Seeing(list)
}

// AllPolicies is Policies with those that estimates: none hides.
func (c *Config) AllPolicies() []string {
	if d := c.Descriptor(); d != nil && slices.Equal(c.Eval.Policies, For(jobselect.V1).Eval.Policies) {
		if c.ownSettings(d) {
			return d.RivalsUnder(c.Env.Settings)
		}
		return d.Rivals
	}
	return c.Eval.Policies
}

// Seeing returns the policies in list that can play with the estimates of c: all, or those that do not rank by run
// time.
func (c *Config) Seeing(list []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(name string) bool {
		_, err := ParseRival(name, c.Descriptor(), c.Env.Settings)
		return hides(err)
	})
}

// ownSettings reports whether the settings are of the type of the environment's.
func (c *Config) ownSettings(d *envs.Descriptor) bool {
	return c.Env.Settings != nil && d.HasSettings() && reflect.TypeOf(d.Settings()) == reflect.TypeOf(c.Env.Settings)
}

// validateEnv adds the faults of the workload, the cluster, the environment and the comparison. A key that the
// environment does not take must keep its default, because it would have no effect.
func (c *Config) validateEnv(d *envs.Descriptor, l *fault.List) {
	id, plain := d.ID, Default()
	foreign := func(key string, got, usual any, why string) {
		l.Add(reflect.DeepEqual(got, usual), key, got, "nothing: "+id+" "+why)
	}
	d.Foreign(c.Trace, c.Cluster, func(key string, v any, want string) { l.Add(false, key, v, want) })
	if d.Takes.Trace() != "" {
		l.Join("trace", c.Trace.Validate())
	}
	if d.Takes.Cluster {
		l.Add(c.Cluster != "", "cluster", c.Cluster, workload.ClusterForms)
	}
	var settings error
	if c.Env.Settings != nil {
		settings = c.Env.Settings.Validate()
		l.Join("env", settings)
	}
	if settings == nil {
		c.validateImitation(d, l)
	}
	l.Add(c.Eval.Choose == "" || c.Eval.Choose == ByReturn || c.Eval.Choose == ByMean, "eval.choose", c.Eval.Choose,
		`"", mean or return`)
	l.Add(c.Eval.Choose != ByMean || d.Metric.Of != nil, "eval.choose", c.Eval.Choose, `"": `+id+" counts returns")
	l.Join("eval.rollout", c.Eval.Rollout.Validate())
	l.Add(c.Eval.Seeds >= 1 && c.Eval.Seeds <= 1000, "eval.seeds", c.Eval.Seeds, "1 to 1000")
	l.Add(slices.Contains([]string{"", OnStreams, OnWindows}, c.Eval.Protocol), "eval.protocol", c.Eval.Protocol,
		"streams, windows, or nothing for what the environment's version says")
	l.Join("eval.streams", c.Eval.Streams.Validate())
	if !d.Simulated() {
		foreign("eval.protocol", c.Eval.Protocol, plain.Eval.Protocol, "has no simulator on which streams could be played")
		foreign("eval.streams", c.Eval.Streams, plain.Eval.Streams, "has no simulator on which streams could be played")
	}
	if d.Simulated() {
		l.Add(c.Eval.Windows >= 1 && c.Eval.Windows <= 1<<16, "eval.windows", c.Eval.Windows, "1 to 65536")
		foreign("eval.episodes", c.Eval.Episodes, plain.Eval.Episodes, "is judged on windows, see eval.windows")
	} else {
		l.Add(c.Eval.Episodes >= 1 && c.Eval.Episodes <= 1<<20, "eval.episodes", c.Eval.Episodes, "1 to 1048576")
		foreign("eval.windows", c.Eval.Windows, plain.Eval.Windows, "has no windows; see eval.episodes")
		if !d.Scheduling() {
			foreign("eval.seeds", c.Eval.Seeds, plain.Eval.Seeds, "is played once from each of eval.episodes seeds")
		}
		foreign("eval.rollout", c.Eval.Rollout, plain.Eval.Rollout, "has no simulator that could be looked ahead with")
		l.Add(!c.Eval.Whole, "eval.whole", c.Eval.Whole, "false: "+id+" has no workload that could be run as a whole")
	}
	// Heuristics take placement and estimates from env: a fault there would be reported again for each of them.
	inherited := slices.ContainsFunc(fault.All(settings),
		func(f *fault.Fault) bool { return f.Key == "placement" || f.Key == "estimates" })
	for i, p := range c.Policies() {
		if inherited {
			break
		}
		key := fmt.Sprintf("eval.policies[%d]", i)
		_, err := c.rival(p, d)
		if err != nil {
			l.Add(false, key, policyname.Excerpt(p), Names(d, c.Env.Settings).Wanted(p, err))
		}
		if !d.Simulated() {
			l.Add(!slices.Contains(c.Policies()[:i], p), key, p, "each policy once")
		}
	}
}

// plainConfig is the configuration of a run in an environment without a simulator as config.yaml and gymctl config show
// write it: without the keys that the environment does not take.
type plainConfig struct {
	Name    string      `yaml:"name"`
	Seed    uint64      `yaml:"seed"`
	Kernels string      `yaml:"kernels"`
	Trace   any         `yaml:"trace,omitempty"`
	Env     plainEnv    `yaml:"env"`
	Agent   string      `yaml:"agent"`
	PPO     ppo.Config  `yaml:"ppo"`
	DDQN    ddqn.Config `yaml:"ddqn"`
	MAML    MAML        `yaml:"maml"`

	Train train.Config `yaml:"train"`

	Improper improper.Config `yaml:"improper,omitempty"`
	Eval     struct {
		Episodes   int      `yaml:"episodes"`
		Validation int      `yaml:"validation"`
		Policies   []string `yaml:"policies"`
		Seeds      int      `yaml:"seeds,omitempty"`
		Seed       uint64   `yaml:"seed"`
		Choose     string   `yaml:"choose,omitempty"`
	} `yaml:"eval"`
}

type plainEnv struct {
	ID       string        `yaml:"id"`
	Args     []string      `yaml:"args,omitempty"`
	Settings envs.Settings `yaml:",inline"`
}

// MarshalYAML leaves out keys that the environment does not take. The result decodes to the same configuration.
func (c Config) MarshalYAML() (any, error) {
	type all Config // without this method
	if c.Descriptor() == nil || c.Simulated() || c.faulty() {
		return all(c), nil
	}
	p := plainConfig{Name: c.Name, Seed: c.Seed, Kernels: c.Kernels, Env: plainEnv(c.Env), Agent: c.Agent, PPO: c.PPO,
		DDQN: c.DDQN, MAML: c.MAML, Train: c.Train}
	p.Trace = c.Descriptor().TraceKeys(c.Trace)
	p.Improper = c.Improper
	p.Eval.Episodes, p.Eval.Validation, p.Eval.Policies, p.Eval.Seed, p.Eval.Choose = c.Eval.Episodes, c.Eval.Validation,
		c.Policies(), c.Eval.Seed, c.Eval.Choose
	if c.Eval.Seeds > 1 {
		p.Eval.Seeds = c.Eval.Seeds
	}
	return p, nil
}

// faulty returns whether a key that plainConfig leaves out has a wrong value, which the user should see.
func (c *Config) faulty() bool {
	var l fault.List
	c.validateEnv(c.Descriptor(), &l)
	return l.Err() != nil
}
