package run

import (
	"fmt"
	"slices"
	"strings"

	"clustergym/agents/ddqn"
	"clustergym/agents/ppo"
	"clustergym/agents/train"
	"clustergym/configs"
	"clustergym/env/heuristic"
	"clustergym/env/jobselect"
	"clustergym/env/sched"
	"clustergym/experiments/envs"
	"clustergym/experiments/workload"
	"clustergym/internal/fault"
	"clustergym/nets/kernel"
)

// Config is a whole run: workload, cluster, environment, agent, training and evaluation. It is what a preset and
// a run directory's config.yaml hold.
type Config struct {
	Name    string               `yaml:"name"`    // of the run directory
	Seed    uint64               `yaml:"seed"`    // of everything that is drawn while training and evaluating
	Kernels string               `yaml:"kernels"` // set of float32 kernels: auto, or a name as in gymctl version; sets differ in last bits
	Trace   workload.TraceConfig `yaml:"trace"`
	Cluster string               `yaml:"cluster"` // see ClusterForms
	Env     EnvConfig            `yaml:"env"`
	Agent   string               `yaml:"agent"` // ppo, ddqn or maml
	PPO     ppo.Config           `yaml:"ppo"`
	DDQN    ddqn.Config          `yaml:"ddqn"`
	MAML    MAMLConfig           `yaml:"maml"`

	Train train.Config `yaml:"train"`
	Eval  EvalConfig   `yaml:"eval"`
}

// EnvConfig names the environment, one of EnvIDs, and configures it: JobSelect-v1 by the keys that stand here, the
// others by Args. Its gamma is what evaluations use; training takes the agent's.
type EnvConfig struct {
	ID               string   `yaml:"id"`
	Args             []string `yaml:"args"` // of environments other than JobSelect-v1: KEY=VALUE, as gymctl envs shows them
	jobselect.Config `yaml:",inline"`
}

// EvalConfig says how policies are compared: on windows of a workload, or on episodes where there is none.
type EvalConfig struct {
	Windows    int      `yaml:"windows"`    // test windows; fewer where the workload has fewer
	Episodes   int      `yaml:"episodes"`   // test episodes of environments without a workload
	Validation int      `yaml:"validation"` // validation windows (at most) or episodes, which choose the best checkpoint
	Policies   []string `yaml:"policies"`   // what the agent is compared with, see PolicyForms; without a workload random alone
	Seeds      int      `yaml:"seeds"`      // plays of each window by policies that draw at random
	Seed       uint64   `yaml:"seed"`       // of models and noise in the windows, of episodes and of bootstrap draws; apart from the run's, so that runs compare
	Whole      bool     `yaml:"whole"`      // after the windows, one run over the whole test part
}

// PolicyForms says in words how a policy can be named.
const PolicyForms = "ORDER, ORDER+ADMISSION (sjf+skip) or RULE@slots (sjf@slots)"

// DefaultConfig is PPO on JobSelect-v1 over a generated workload.
func DefaultConfig() Config {
	c := Config{
		Name: "run", Seed: 1, Kernels: kernel.Auto, Trace: workload.DefaultTraceConfig(), Cluster: workload.DefaultCluster,
		Env:   EnvConfig{ID: jobselect.ID, Config: jobselect.DefaultConfig()},
		Agent: "ppo", PPO: ppo.DefaultConfig(), DDQN: ddqn.DefaultConfig(), MAML: DefaultMAMLConfig(), Train: train.DefaultConfig(),
		Eval: EvalConfig{
			Windows: 32, Episodes: 100, Validation: 8, Seeds: 1, Seed: 1, Whole: true,
			Policies: []string{
				"fifo+strict", "fifo+skip", "smallest+skip", "sjf+skip", "area+skip", "las+skip", "srtf+skip",
				"random@slots", "random-start@slots", "fifo@slots", "sjf@slots", "area@slots",
			},
		},
	}
	return c
}

// Validate reports every fault. Whether files are there is not looked at.
func (c *Config) Validate() error {
	var l fault.List
	l.Add(c.Name != "" && !strings.ContainsAny(c.Name, `/\ `), "name", c.Name, "a word that can be part of a folder's name")
	l.Add(slices.Contains(KernelSets(), c.Kernels), "kernels", c.Kernels, "one of "+strings.Join(KernelSets(), ", "))
	l.Add(slices.Contains(envs.IDs(), c.Env.ID), "env.id", c.Env.ID, wantEnv(c.Env.ID))
	l.Add(slices.Contains(AgentNames(), c.Agent), "agent", c.Agent, "one of "+strings.Join(AgentNames(), ", "))
	l.Join("ppo", c.PPO.Validate())
	l.Join("ddqn", c.DDQN.Validate())
	l.Join("maml", c.MAML.Validate())
	if c.meta() {
		c.validateMeta(&l)
	}
	l.Join("train", c.Train.Validate())
	l.Add(c.Eval.Validation >= 1 && c.Eval.Validation <= 1<<16, "eval.validation", c.Eval.Validation, "1 to 65536")
	if c.plain() {
		c.validatePlain(&l)
	} else {
		c.validateScheduling(&l)
	}
	return l.Err()
}

// plain says whether the environment has neither workload nor cluster.
func (c *Config) plain() bool { return envs.IsPlain(c.Env.ID) }

// validateScheduling adds the faults of what only such environments have.
func (c *Config) validateScheduling(l *fault.List) {
	l.Join("trace", c.Trace.Validate())
	l.Add(c.Cluster != "", "cluster", c.Cluster, workload.ClusterForms)
	l.Add(len(c.Env.Args) == 0, "env.args", c.Env.Args, "nothing: the settings of "+c.Env.ID+" stand in env itself")
	envFaults := c.Env.Config.Validate()
	l.Join("env", envFaults)
	l.Add(c.Eval.Windows >= 1 && c.Eval.Windows <= 1<<16, "eval.windows", c.Eval.Windows, "1 to 65536")
	l.Add(c.Eval.Seeds >= 1 && c.Eval.Seeds <= 1000, "eval.seeds", c.Eval.Seeds, "1 to 1000")
	defaults := DefaultConfig()
	l.Add(c.Eval.Episodes == defaults.Eval.Episodes, "eval.episodes", c.Eval.Episodes, "nothing: "+c.Env.ID+" is judged on windows, see eval.windows")
	// Policies take placement and estimates from env: a fault there would be told again for each of them.
	inherited := slices.ContainsFunc(fault.All(envFaults), func(f *fault.Fault) bool { return f.Key == "placement" || f.Key == "estimates" })
	for i, p := range c.Eval.Policies {
		if inherited {
			break
		}
		if _, err := parsePolicy(p, &c.Env); err != nil {
			l.Add(false, fmt.Sprintf("eval.policies[%d]", i), p, PolicyForms+": "+err.Error())
		}
	}
}

// AgentNames are the values of Config.Agent.
func AgentNames() []string { return append(Agents(), MetaAgents()...) }

// Agents are the values of Config.Agent that learn in any environment.
func Agents() []string { return []string{"ppo", "ddqn"} }

// policyName is one policy to compare with.
type PolicyName struct {
	Name  string // with its admission
	Slots bool   // a rule inside the action space
	Rule  string
	sched heuristic.Config
}

// parsePolicy reads a name in one of PolicyForms. Heuristics get the environment's placement and estimates.
func parsePolicy(name string, e *EnvConfig) (PolicyName, error) {
	if rule, ok := strings.CutSuffix(name, "@slots"); ok {
		if !slices.Contains(sched.RuleNames(jobselect.Rules()), rule) {
			return PolicyName{}, fmt.Errorf("rule %q is unknown, want one of %s", rule, strings.Join(sched.RuleNames(jobselect.Rules()), ", "))
		}
		if e.Estimates == "none" && heuristic.Estimating(rule) {
			return PolicyName{}, heuristic.Hidden(rule)
		}
		return PolicyName{Name: name, Slots: true, Rule: rule}, nil
	}
	p := PolicyName{sched: heuristic.DefaultConfig()}
	var ok bool
	if p.sched.Order, p.sched.Admission, p.sched.Backfill, ok = heuristic.SplitName(name); !ok {
		return PolicyName{}, fmt.Errorf("%q: want an order, then +strict or +skip, then +easy or +conservative, where wanted", name)
	}
	p.sched.Placement = e.Placement
	if e.Estimates != "none" {
		p.sched.Estimates = e.Estimates
	}
	if err := p.sched.Validate(); err != nil {
		return PolicyName{}, err
	}
	if e.Estimates == "none" && p.sched.Estimating() {
		return PolicyName{}, heuristic.Hidden(p.sched.Order)
	}
	// Policies play in the environment's own simulator, from its warm start on.
	if p.sched.Clairvoyant() || p.sched.Admission == "commit" {
		return PolicyName{}, fmt.Errorf("%s can be played by gymctl sim only: it knows the whole workload beforehand, or has its own order of events", name)
	}
	p.Name = p.sched.Name()
	return p, nil
}

// preset is the embedded run called name.
func Preset(name string) (Config, error) {
	c := DefaultConfig()
	err := configs.Decode(configs.Presets, name+".yaml", &c)
	return c, err
}
