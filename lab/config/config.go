package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"clustergym/agents"
	"clustergym/agents/ddqn"
	"clustergym/agents/improper"
	"clustergym/agents/ppo"
	"clustergym/agents/train"
	"clustergym/configs"
	"clustergym/env/jobselect"
	"clustergym/env/rollout"
	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/lab/envs"
	"clustergym/lab/stream"
	"clustergym/lab/workload"
	"clustergym/nets/kernel"
	"clustergym/simulator/schedulers/tuned"
)

// Config is a whole run: workload, cluster, environment, agent, training and evaluation. Presets and config.yaml of a
// run directory have this form. Copies share the environment's settings: change them by Edit or configs.Set.
type Config struct {
	Name string `yaml:"name"` // of the run directory
	Seed uint64 `yaml:"seed"` // of everything that is drawn while training and evaluating
	// set of float32 kernels: auto, or a name as in gymctl version; sets differ in last bits
	Kernels string               `yaml:"kernels"`
	Trace   workload.TraceConfig `yaml:"trace"`
	Cluster string               `yaml:"cluster"` // see ClusterForms
	Env     Env                  `yaml:"env"`
	Agent   string               `yaml:"agent"` // ppo, ddqn, improper or maml
	PPO     ppo.Config           `yaml:"ppo"`
	DDQN    ddqn.Config          `yaml:"ddqn"`
	MAML    MAML                 `yaml:"maml"`

	Improper improper.Config `yaml:"improper,omitempty"`

	Train train.Config `yaml:"train"`
	Eval  Eval         `yaml:"eval"`
}

// Env names the environment, one of envs.IDs, and configures it.
type Env struct {
	ID string `yaml:"id"`
	// Args are settings and keys of the workload and the cluster as KEY=VALUE, an older way to write them in YAML. Decode
	// and Set move them into the fields. Only a configuration that is a section of another file, as in a study, still has
	// them: see Fold.
	Args []string `yaml:"args"`
	// Settings are the environment's own keys; nil for an environment without. Their gamma is what evaluations use;
	// training takes the agent's.
	Settings envs.Settings `yaml:",inline"`
}

// Eval says how policies are compared: on windows of a workload, or on episodes where there is none.
type Eval struct {
	Windows    int      `yaml:"windows"`    // test windows; fewer where the workload has fewer
	Episodes   int      `yaml:"episodes"`   // test episodes of environments without a simulated workload
	Validation int      `yaml:"validation"` // validation windows (at most) or episodes, which choose the best checkpoint
	Policies   []string `yaml:"policies"`   // what the agent is compared with, see Names; without a workload random alone
	Seeds      int      `yaml:"seeds"`      // plays of each window by policies that draw at random
	// of models and noise in the windows, of episodes and of bootstrap draws; apart from the run's, so that runs compare
	Seed  uint64 `yaml:"seed"`
	Whole bool   `yaml:"whole"` // after the windows, one run over the whole test part
	// Choose says by what validations choose the best checkpoint: "" = by the geometric mean of what the comparison at the
	// end counts, "mean" = by its arithmetic mean, whose ratios are the differences of the comparison, or "return" = by
	// the mean return of episodes drawn from the validation part.
	Choose string `yaml:"choose,omitempty"`
	// Rollout says how policies of the form rollout:POLICY look ahead.
	Rollout rollout.Config `yaml:"rollout,omitempty"`
	// Protocol says what is played: streams of jobs on a cluster in operation, or windows of a workload that begin without
	// a queue and end empty. "" = streams, and windows in environments of version 1 on the simulator.
	Protocol string `yaml:"protocol,omitempty"`
	// Streams says how long streams are.
	Streams stream.Config `yaml:"streams,omitempty"`
	// Hold are the weights of hold, zero = its default ones.
	Hold tuned.Hold `yaml:"hold,omitempty"`
	// Index are the weights of index, zero = its default ones.
	Index tuned.Index `yaml:"index,omitempty"`
	// Greedy is the rule by which agents and ONNX models choose an action by its probability: "" or share = doing nothing
	// only if that is likelier than all other legal actions together, else the likeliest of these; argmax = the likeliest
	// of all; sample = drawn. Agents of values, as ddqn, always take the largest; improper draws unless a rule is named.
	Greedy agents.Rule `yaml:"greedy,omitempty"`
	// Hindsight is how many schedules hindsight:BASE tries for each window, 0 = DefaultHindsight.
	Hindsight int `yaml:"hindsight,omitempty"`
}

// DefaultHindsight is enough to find most of what thousands of tries more would find in windows of 256 jobs.
const DefaultHindsight = 2000

// NotRepeatable is the note on every result of a run with ppo.preempt_share.
const NotRepeatable = "cannot be repeated: ppo.preempt_share cuts replicas short by the clock"

// The values of Eval.Choose that are not the default.
const (
	ByReturn = "return"
	ByMean   = "mean"
)

// The values of Eval.Protocol.
const (
	OnStreams = "streams"
	OnWindows = "windows"
)

// Streamed reports whether evaluations play streams.
func (c *Config) Streamed() bool {
	d := c.Descriptor()
	if d == nil || !d.Simulated() {
		return false
	}
	if c.Eval.Protocol == "" {
		return d.Ongoing
	}
	return c.Eval.Protocol == OnStreams
}

// Default returns the configuration of PPO on JobSelect-v2 over a generated workload.
func Default() Config { return For(jobselect.ID) }

// For returns the default configuration of a run in the environment called id, which must exist.
func For(id string) Config {
	d := envs.Find(id)
	a := d.Args()
	return Config{
		Name: "run", Seed: 1, Kernels: kernel.Auto, Trace: a.Trace, Cluster: a.Cluster,
		Env:   Env{ID: id, Settings: a.Settings},
		Agent: "ppo", PPO: ppo.DefaultConfig(), DDQN: ddqn.DefaultConfig(), MAML: DefaultMAML(), Train: train.DefaultConfig(),
		Improper: improper.DefaultConfig(),
		Eval: Eval{
			Windows: 32, Episodes: 100, Validation: 8, Seeds: 1, Seed: 1, Whole: d.Whole, Policies: slices.Clone(d.Rivals),
			Rollout: rollout.DefaultConfig(),
		},
	}
}

// Decode reads a run's configuration from YAML; errors contain name. Keys that the document leaves out get the defaults
// of the environment that it names. What env.args says is in the fields.
func Decode(name string, data []byte) (Config, error) { return decode(name, data, Given{}) }

// decode is Decode that notes the keys of env.args in given.
func decode(name string, data []byte, given Given) (Config, error) {
	c, err := decodeOf(name, data, jobselect.ID)
	if err != nil {
		return c, err
	}
	given.args(&c)
	return c.Fold()
}

// DecodeSection is Decode for a run that is a section of a study's settings, where it keeps env.args: their text is
// part of what the study publishes. The study folds it where it trains and plays (Fold). A section that names no
// environment is of JobSelect-v1, the only one when such sections were written.
func DecodeSection(name string, data []byte) (Config, error) {
	return decodeOf(name, data, jobselect.V1)
}

// decodeOf decodes a document, which is of the environment usual if it names none.
func decodeOf(name string, data []byte, usual string) (Config, error) {
	id, err := configs.TextBytes(name, data, "env", "id")
	if err != nil {
		return Config{}, err
	}
	if envs.Find(id) == nil {
		id = usual // or an id that Validate refuses
	}
	c := For(id)
	err = configs.DecodeBytes(name, data, &c)
	return c, err
}

// Edit returns the settings, copied so that they belong to c alone. The copy is made at every call: keep what it
// returns.
func (c *Config) Edit() envs.Settings {
	if err := configs.Own(&c.Env.Settings); err != nil {
		panic(err) // settings are pointers to structs
	}
	return c.Env.Settings
}

// JobSelect returns the settings of JobSelect-v1, nil for another environment.
func (e *Env) JobSelect() *jobselect.Config {
	s, _ := e.Settings.(*jobselect.Config)
	return s
}

// SetEnv changes the environment to id, with its default settings. If the workload, the cluster or the policies are the
// defaults of the old environment, they become those of the new one; otherwise they stay.
func (c *Config) SetEnv(id string) error {
	if _, err := envs.Lookup(id); err != nil {
		return err
	}
	if id == c.Env.ID {
		return nil
	}
	was, now := For(c.Env.ID), For(id)
	if reflect.DeepEqual(c.Trace, was.Trace) {
		c.Trace = now.Trace
	}
	if c.Cluster == was.Cluster {
		c.Cluster = now.Cluster
	}
	if slices.Equal(c.Eval.Policies, was.Eval.Policies) {
		c.Eval.Policies = now.Eval.Policies
	}
	if c.Eval.Whole == was.Eval.Whole {
		c.Eval.Whole = now.Eval.Whole
	}
	c.Env = now.Env
	return nil
}

// Set changes one key, "key.path=value", as configs.Set does; env.id changes the whole environment, as SetEnv does. Set
// does not check the value: Validate does.
func (c *Config) Set(assignment string) error { return Given{}.Set(c, assignment) }

// Fold returns c with env.args moved into the environment's settings, trace and cluster. Decode and Set have done so.
func (c Config) Fold() (Config, error) {
	d := envs.Find(c.Env.ID)
	if d == nil || len(c.Env.Args) == 0 {
		return c, nil
	}
	if !d.HasSettings() {
		return c, fault.Mistakef("env.args: %s has no arguments, got %q", d.ID, c.Env.Args[0])
	}
	args := d.Args()
	args.Settings, args.Trace, args.Cluster = c.Env.Settings, c.Trace, c.Cluster
	for _, set := range c.Env.Args {
		key, _, _ := strings.Cut(set, "=")
		if key = strings.TrimSpace(key); key == "split" || key == "preset" {
			return c,
				fault.Mistakef(
					"env.args: %q: a run trains on split train, is validated on validation and judged on test; want no %s", set, key)
		}
		if err := configs.Set(args, set); err != nil {
			return c, fault.Mistakef("env.args: %q: %w", set, err)
		}
	}
	c.Env.Settings, c.Trace, c.Cluster, c.Env.Args = args.Settings, args.Trace, args.Cluster, nil
	return c, nil
}

// Validate reports every fault. It does not check whether files exist.
func (c *Config) Validate() error {
	var l fault.List
	l.Add(c.Name != "" && !strings.ContainsAny(c.Name, `/\ `), "name", c.Name,
		"a word that can be part of a folder's name")
	l.Add(slices.Contains(KernelSets(), c.Kernels), "kernels", c.Kernels, nearest.OneOf(c.Kernels, KernelSets()))
	l.Add(slices.Contains(envs.IDs(), c.Env.ID), "env.id", c.Env.ID, wantEnv(c.Env.ID))
	l.Add(slices.Contains(AgentNames(), c.Agent), "agent", c.Agent, nearest.OneOf(c.Agent, AgentNames()))
	l.Join("ppo", c.PPO.Validate())
	l.Join("ddqn", c.DDQN.Validate())
	l.Join("improper", c.Improper.Validate())
	l.Join("maml", c.MAML.Validate())
	if c.Meta() {
		c.validateMeta(&l)
	}
	l.Join("train", c.Train.Validate())
	l.Add(c.Agent != "ppo" || c.PPO.Baseline != ppo.ByGroup || c.Train.Group >= 2, "ppo.baseline", c.PPO.Baseline,
		`"", or group with train.group, the number of rows that play the same episodes`)
	l.Add(c.Train.Group == 0 || !c.Meta(), "train.group", c.Train.Group, "0 with agent "+c.Agent)
	l.Add(c.Eval.Greedy == "" || slices.Contains(agents.Rules(), c.Eval.Greedy), "eval.greedy", string(c.Eval.Greedy),
		"share, argmax or sample")
	l.Join("eval.hold", c.Eval.Hold.Validate())
	l.Join("eval.index", c.Eval.Index.Validate())
	l.Add(c.Eval.Hindsight >= 0 && c.Eval.Hindsight <= 1<<30, "eval.hindsight", c.Eval.Hindsight,
		"1 to 2^30 schedules for each window, 0 = 2000")
	l.Add(c.Eval.Validation >= 1 && c.Eval.Validation <= 1<<16, "eval.validation", c.Eval.Validation, "1 to 65536")
	d := c.Descriptor()
	if d == nil && c.Env.JobSelect() != nil {
		d = envs.Find(jobselect.ID) // so that the other faults are reported beside the id
	}
	if d == nil {
		return l.Err()
	}
	if d.HasSettings() != (c.Env.Settings != nil) || d.HasSettings() &&
		reflect.TypeOf(d.Settings()) != reflect.TypeOf(c.Env.Settings) {
		l.Add(false, "env.id", c.Env.ID, c.wantSettings())
		return l.Err()
	}
	folded, err := c.Fold()
	l.Join("", err)
	folded.validateEnv(d, &l)
	return l.Err()
}

// Descriptor returns the environment's descriptor, nil for an unknown environment.
func (c *Config) Descriptor() *envs.Descriptor { return envs.Find(c.Env.ID) }

// Simulated returns whether episodes are windows of a workload on the cluster simulator.
func (c *Config) Simulated() bool {
	d := c.Descriptor()
	return d != nil && d.Simulated()
}

// Gamma returns the discount that the agent learns with.
func (c *Config) Gamma() float64 {
	if c.Agent == "ddqn" {
		return c.DDQN.Gamma
	}
	if c.Meta() {
		return c.MAML.Gamma
	}
	if c.Agent == "improper" {
		return c.Improper.Gamma
	}
	return c.PPO.Gamma
}

// Note returns the warning that belongs to every result of the run, "" if there is none.
func (c *Config) Note() string {
	if c.Agent == "ppo" && c.PPO.Preempts() {
		return NotRepeatable
	}
	return ""
}

// AgentNames returns the values of Config.Agent.
func AgentNames() []string { return append(Agents(), MetaAgents()...) }

// Agents returns the values of Config.Agent that learn in any environment.
func Agents() []string { return []string{"ppo", "ddqn", "improper"} }

// Preset returns the embedded run called name.
func Preset(name string) (Config, error) {
	data, err := configs.Presets.ReadFile(name + ".yaml")
	if err != nil {
		return Config{}, fmt.Errorf("preset %s: %w", name, err)
	}
	return Decode(name+".yaml", data)
}
