package topdrl

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"clustergym/configs"
	"clustergym/env/gpupick"
	"clustergym/experiments/study"
	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/internal/ordinary"
	"clustergym/lab/config"
	"clustergym/lab/run"
	"clustergym/lab/tune"
	"clustergym/lab/workload"
	"clustergym/simulator/policyname"
)

// settings are the keys of one section of experiment.yaml, quick or full.
type settings struct {
	Preset     string   `yaml:"preset"` // the embedded run from which trainings start
	Set        []string `yaml:"set"`    // KEY=VALUE changes of it, for all agents
	Steps      int64    `yaml:"steps"`  // of every training, imitation included
	Seeds      int      `yaml:"seeds"`  // trainings of each agent
	Windows    int      `yaml:"windows"`
	Validation int      `yaml:"validation"` // windows that choose checkpoints
	Draws      int      `yaml:"draws"`      // plays of policies that draw at random
	Hindsight  struct {
		Noisy int `yaml:"noisy"` // noisy schedules of a window
	} `yaml:"hindsight"`
	Tune   tune.Settings `yaml:"tune"` // of the rules hold and index, and of their controls
	Agents []agent       `yaml:"agents"`
	Stages []stage       `yaml:"stages"`
	Gap    struct {
		States int `yaml:"states"` // random states for each cluster and size of gang
	} `yaml:"gap"`
	Pick pickSettings `yaml:"pick"`
}

// agent is a training.
type agent struct {
	Name    string   `yaml:"name"`
	Learner string   `yaml:"learner"` // ppo or ddqn
	Network string   `yaml:"network"` // one of networks, which Set can change further
	Set     []string `yaml:"set"`     // KEY=VALUE changes
	// Imitate names the rule that the agent learns from in the first half of its steps, with the weights tuned on the
	// stage's training part; "" = none.
	Imitate string `yaml:"imitate"`
	Seeds   int    `yaml:"seeds"` // trainings, if fewer than of the others; 0 = as many
}

// stage is a workload on a cluster, with the agents that train on it.
type stage struct {
	Name    string   `yaml:"name"`
	Profile string   `yaml:"profile"` // of the generator
	File    string   `yaml:"file"`    // of a recorded workload, instead of Profile
	Jobs    int      `yaml:"jobs"`
	Seed    uint64   `yaml:"seed"` // of the workload
	Cluster string   `yaml:"cluster"`
	Agents  []string `yaml:"agents"`  // the first is the one that the tables compare with every other policy
	Placed  bool     `yaml:"placed"`  // agents of GPUPick-v1 place the jobs of rules
	Preempt bool     `yaml:"preempt"` // running jobs can be stopped, at a cost
}

// pickSettings are the keys of the part in GPUPick-v1.
type pickSettings struct {
	Jobs    int      `yaml:"jobs"`
	Seed    uint64   `yaml:"seed"`  // of the workload
	Steps   int64    `yaml:"steps"` // of each training
	Seeds   int      `yaml:"seeds"`
	Windows int      `yaml:"windows"`
	Agents  []string `yaml:"agents"` // some of pickers
	// Sets are changes of agents' trainings. Without any, the input of cells is as before they were a setting.
	Sets []pickSet `yaml:"sets,omitempty" json:",omitempty"`
}

// pickSet changes the training of an agent of GPUPick-v1.
type pickSet struct {
	Agent string   `yaml:"agent"` // one of pickers
	Set   []string `yaml:"set"`   // KEY=VALUE changes
}

// word matches names that can be a word of a cell's key.
var word = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)

// Validate returns an error that names every fault of s, or nil.
func (s *settings) Validate() error {
	var l fault.List
	l.Add(slices.Contains(configs.Runs(), s.Preset), "preset", s.Preset, nearest.OneOf(s.Preset, configs.Runs()))
	l.Add(s.Steps >= 2 && s.Steps <= 1<<40, "steps", s.Steps, "2 or more")
	l.Add(s.Seeds >= 1 && s.Seeds <= run.MaxSeeds, "seeds", s.Seeds, fmt.Sprintf("1 to %d", run.MaxSeeds))
	l.Add(s.Windows >= 2, "windows", s.Windows, "2 or more")
	l.Add(s.Validation >= 1, "validation", s.Validation, "1 or more")
	l.Add(s.Draws >= 1, "draws", s.Draws, "1 or more")
	l.Add(s.Hindsight.Noisy >= 3 && s.Hindsight.Noisy <= 1<<20, "hindsight.noisy", s.Hindsight.Noisy,
		"3 to 1048576 schedules: the first three are without noise")
	t := s.tuning()
	l.Join("tune", t.Validate())
	s.checkAgents(&l)
	s.checkStages(&l)
	l.Add(s.Gap.States >= 1, "gap.states", s.Gap.States, "1 or more")
	s.checkPick(&l)
	return l.Err()
}

// checkAgents adds the faults of the agents and of what changes them.
func (s *settings) checkAgents(l *fault.List) {
	base, err := config.Preset(s.Preset)
	preset := err == nil // else Validate says so of preset
	if preset {
		checkSets(l, "set", s.Set, base, setElsewhere)
	}
	names := map[string]bool{}
	for i, a := range s.Agents {
		key := fmt.Sprintf("agents[%d]", i)
		l.Add(word.MatchString(a.Name) && !names[a.Name] && !slices.Contains(reserved, a.Name), key+".name", a.Name,
			"small letters, digits and hyphens that no other agent has, and none of "+strings.Join(reserved, ", "))
		names[a.Name] = true
		l.Add(a.Learner == "ppo" || a.Learner == "ddqn", key+".learner", a.Learner, "ppo or ddqn")
		l.Add(networks[a.Network] != nil, key+".network", a.Network,
			nearest.OneOf(a.Network, slices.Sorted(maps.Keys(networks))))
		l.Add(a.Seeds >= 0, key+".seeds", a.Seeds, "a number of trainings, or 0 for as many as of the others")
		l.Add(a.Imitate == "" || slices.Contains(policyname.Rules("hold", "index"), a.Imitate), key+".imitate", a.Imitate,
			policyname.Slots("hold")+", "+policyname.Slots("index")+" or nothing")
		if preset {
			checkSets(l, key+".set", a.Set, base, agentElsewhere())
		}
	}
}

// checkStages adds the faults of the stages.
func (s *settings) checkStages(l *fault.List) {
	l.Add(len(s.Stages) > 0, "stages", len(s.Stages), "one or more")
	stages := map[string]bool{}
	for i := range s.Stages {
		st := &s.Stages[i]
		key := fmt.Sprintf("stages[%d]", i)
		l.Add(word.MatchString(st.Name) && !stages[st.Name], key+".name", st.Name,
			"small letters, digits and hyphens that no other stage has")
		stages[st.Name] = true
		l.Add((st.Profile != "") != (st.File != ""), key+".profile", st.Profile, "either a profile or a file")
		l.Add(len(st.Agents) > 0, key+".agents", len(st.Agents), "one or more")
		l.Add(!st.Placed || !st.Preempt, key+".placed", st.Placed, "false, as its jobs can be stopped")
		_, err := workload.ClusterSpec(st.Cluster)
		l.Add(err == nil, key+".cluster", st.Cluster, fmt.Sprintf("the name or the file of a cluster (%v)", err))
		if l.Err() == nil {
			cfg, err := s.config(st, nil, 1)
			if err == nil {
				err = cfg.Validate()
			}
			l.Add(err == nil, key, st.Name, fmt.Sprintf("a workload on a cluster that can be played (%v)", err))
		}
		for k, name := range st.Agents {
			key := fmt.Sprintf("%s.agents[%d]", key, k)
			known := slices.ContainsFunc(s.Agents, func(a agent) bool { return a.Name == name })
			l.Add(known && slices.Index(st.Agents, name) == k, key, name, "the name of an agent, once")
			if l.Err() != nil {
				continue
			}
			_, err := s.config(st, s.agent(name), 1)
			l.Add(err == nil, key, name, fmt.Sprintf("an agent that can train here (%v)", err))
		}
	}
}

// checkPick adds the faults of the part in GPUPick-v1.
func (s *settings) checkPick(l *fault.List) {
	l.Add(slices.Contains(s.Pick.Agents, sharing) && slices.Contains(s.Pick.Agents, picker), "pick.agents", s.Pick.Agents,
		sharing+" and "+picker+", and perhaps "+distances)
	for i, a := range s.Pick.Agents {
		l.Add(slices.Contains(pickers, a) && slices.Index(s.Pick.Agents, a) == i, fmt.Sprintf("pick.agents[%d]", i), a,
			"once one of "+strings.Join(pickers, ", "))
	}
	l.Add(s.Pick.Jobs >= 1, "pick.jobs", s.Pick.Jobs, "1 or more")
	l.Add(s.Pick.Steps >= 4 && s.Pick.Steps <= 1<<40, "pick.steps", s.Pick.Steps, "4 or more")
	l.Add(s.Pick.Seeds >= 1 && s.Pick.Seeds <= run.MaxSeeds, "pick.seeds", s.Pick.Seeds,
		fmt.Sprintf("1 to %d", run.MaxSeeds))
	most := s.Pick.Jobs / 5 / gpupick.DefaultConfig().Window
	l.Add(s.Pick.Windows >= 2 && s.Pick.Windows <= most, "pick.windows", s.Pick.Windows,
		fmt.Sprintf("2 to the %d windows that the last fifth of pick.jobs has", most))
	for i, c := range s.Pick.Sets {
		key := fmt.Sprintf("pick.sets[%d]", i)
		known := slices.Contains(pickers, c.Agent)
		l.Add(known, key+".agent", c.Agent, nearest.OneOf(c.Agent, pickers))
		if !known {
			continue
		}
		base, err := s.pickBase(c.Agent, 1)
		l.Join(key, err)
		checkSets(l, key+".set", c.Set, base, pickedElsewhere)
	}
	if l.Err() != nil {
		return
	}
	for i, name := range s.Pick.Agents {
		_, err := s.pickConfig(name, 1)
		l.Add(err == nil, fmt.Sprintf("pick.agents[%d]", i), name, fmt.Sprintf("an agent that can train (%v)", err))
	}
}

// setElsewhere has for keys of a training that the study sets itself what sets them.
var setElsewhere = map[string]string{
	"name": byStudy, "env.id": byStudy, "seed": "seeds", "agent": "agents[N].learner", "cluster": "stages[N].cluster",
	"trace":       "stages[N]",
	"env.preempt": "stages[N].preempt", "train.steps": "steps", "train.imitate": "agents[N].imitate",
	"train.imitate_steps": "steps", "train.eval_every": byStudy, "train.keep": byStudy,
	"eval.windows": "windows", "eval.validation": "validation", "eval.policies": byStudy,
}

// byStudy in setElsewhere is the study.
const byStudy = "the experiment"

// agentElsewhere is setElsewhere for the changes of one agent: what makes the windows that agents and rules are
// compared on is the same for all.
func agentElsewhere() map[string]string {
	all := maps.Clone(setElsewhere)
	for _, key := range []string{"env.window", "env.warm", "env.load", "env.horizon", "env.comm"} {
		all[key] = "the set of all agents"
	}
	return all
}

// checkSets adds a fault for each of sets, the settings' key, that is no change of base or changes a key of fixed,
// which has what sets that key.
func checkSets(l *fault.List, key string, sets []string, base config.Config, fixed map[string]string) {
	changed, touches := base, false
	for i, set := range sets {
		given, err := configs.SetKeys(&changed, set)
		l.Add(err == nil, fmt.Sprintf("%s[%d]", key, i), set, fmt.Sprintf("KEY=VALUE of a training (%v)", err))
		for _, g := range given {
			for f := range fixed {
				touches = touches || g == f || strings.HasPrefix(g, f+".") || strings.HasPrefix(f, g+".")
			}
		}
	}
	if touches { // asked first because a comparison of whole configurations takes long
		study.SetElsewhere(l, key, base, changed, fixed)
	}
}

// reserved are the words that cells have where others have the name of an agent.
var reserved = []string{"rules", "hindsight", "tuned", "placed"}

// agent returns the agent called name.
func (s *settings) agent(name string) *agent {
	return &s.Agents[slices.IndexFunc(s.Agents, func(a agent) bool { return a.Name == name })]
}

// tuning returns how weights are looked for.
func (s *settings) tuning() tune.Settings {
	t := s.Tune
	if t.Every == 0 {
		t.Every = max(1, t.Generations/3)
	}
	if t.Seed == 0 {
		t.Seed = 1
	}
	return t
}

// settingsOf returns the settings of p's form, with p's number of seeds and the recorded stage if p has a folder of
// data.
func settingsOf(p study.Plan) (settings, error) {
	s, err := study.Settings("topdrl", files, p, settings{})
	if err != nil {
		return s, err
	}
	if p.Seeds > 0 {
		s.Seeds, s.Pick.Seeds = p.Seeds, p.Seeds
	}
	if p.Data != "" {
		file := filepath.Join(p.Data, "philly", "philly_jobs.csv.gz")
		st := stage{Name: "philly-recorded-32", File: file, Cluster: "topdrl-2x4x4",
			Agents: s.Stages[0].Agents[:min(3, len(s.Stages[0].Agents))], Placed: true}
		if _, _, err := traceOf(&st); err != nil {
			return s, err
		}
		s.Stages = append(s.Stages, st)
	}
	return s, nil
}

// traceOf returns the workload of a stage and its file's SHA-256, "" without a file. An unreadable file is the user's
// mistake.
func traceOf(st *stage) (t workload.TraceConfig, digest string, err error) {
	t = workload.DefaultTraceConfig()
	if st.File == "" {
		t.Synth.Profile, t.Synth.Jobs, t.Seed = st.Profile, st.Jobs, st.Seed
		return t, "", nil
	}
	b, err := ordinary.Read(st.File, 16<<30)
	if err != nil {
		return t, "", fault.Mistakef("%s: %s: %v", fault.Key("data"), st.File, ordinary.Reason(err))
	}
	t.File, t.Sort = st.File, true
	return t, fmt.Sprintf("%x", sha256.Sum256(b)), nil
}

// stopping are the changes of a stage in which running jobs can be stopped: those of the preset jobselect-preempt, but
// with known run times.
var stopping = []string{
	"env.preempt=true", "env.running=16", "env.min_run=5m", "env.checkpoint=10s", "env.restart=20s", "env.images=false",
	"ppo.lambda=0.99", "ppo.target_kl=0.01",
}

// config returns the run that trains an agent on a stage; nil = what all policies of the stage play in.
func (s *settings) config(st *stage, a *agent, seed uint64) (config.Config, error) {
	cfg, err := config.Preset(s.Preset)
	if err != nil {
		return cfg, err
	}
	sets := slices.Clone(s.Set)
	if st.Preempt {
		sets = append(sets, stopping...)
	}
	if a != nil { // before the changes, which can change these too
		sets = append(sets, a.Set...)
		cfg.PPO.Network, cfg.DDQN.Network = networks[a.Network](), networks[a.Network]()
		if a.Imitate != "" {
			cfg.Train.ImitateRounds, cfg.Train.ImitateEpochs = 2, 6
		}
	}
	for _, set := range sets {
		if err := configs.Set(&cfg, set); err != nil {
			return cfg, fmt.Errorf("topdrl: set %q: %w", set, err)
		}
	}
	if cfg.Trace, _, err = traceOf(st); err != nil {
		return cfg, err
	}
	cfg.Name, cfg.Agent, cfg.Seed, cfg.Cluster = "topdrl", "ppo", seed, st.Cluster
	cfg.Train.Steps = s.Steps
	cfg.Train.EvalEvery, cfg.Train.Keep = 0, 0 // all checkpoints are kept, and chosen among afterwards
	cfg.Eval.Windows, cfg.Eval.Validation, cfg.Eval.Policies = s.Windows, s.Validation, nil
	if a == nil {
		return cfg, nil
	}
	cfg.Agent = a.Learner
	if a.Imitate != "" {
		cfg.Train.Imitate = a.Imitate
		cfg.Train.ImitateSteps = s.Steps / 2
		cfg.Train.Steps = s.Steps - s.Steps/2
	}
	return cfg, cfg.Validate()
}
