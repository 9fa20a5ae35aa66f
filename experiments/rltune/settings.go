package rltune

import (
	"slices"
	"strings"

	"clustergym/experiments/study"
	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/lab/config"
)

// settings are the keys of experiment.yaml.
type settings struct {
	Workloads []workloadSpec `yaml:"workloads"`
	Agents    []string       `yaml:"agents"` // bases whose queues agents are trained on
	Seeds     int            `yaml:"seeds"`  // agents of each
	Steps     int64          `yaml:"steps"`  // of each training
	// Agent is the run that trains an agent, agent.yaml with a user's changes. Workload, cluster, seed and length are
	// those of the study.
	Agent config.Config `yaml:"agent"`
}

// workloadSpec is a workload on a cluster.
type workloadSpec struct {
	Name    string  `yaml:"name"`
	Cluster string  `yaml:"cluster"`
	Jobs    int     `yaml:"jobs"`   // of a generated workload
	File    string  `yaml:"file"`   // in the folder of --data; "" = generated
	Window  int     `yaml:"window"` // jobs of an episode
	Load    float64 `yaml:"load"`   // to which the submits of a window are stretched
}

// base is a base policy: the order in which it sorts the queue.
type base struct {
	name, order string
	asks        bool // it ranks by run times
}

// bases are the base policies in the order of tables. Some of them raise an error in RLTune's program; here they are
// what their names say.
var bases = []base{
	{"fcfs", "fifo", false}, {"lcfs", "lcfs", false}, {"sjf", "sjf", true}, {"lpf", "ljf", true},
	{"multifactor", "multifactor", false},
	{"f1", "f1", true}, {"wfp3", "wfp3", true}, {"wfp3-coded", "wfp3-rlscheduler", true}, {"unicep", "unicep", true},
	{"smallest", "smallest", false}, {"saf", "area", true},
}

func baseNames() []string {
	var names []string
	for _, b := range bases {
		names = append(names, b.name)
	}
	return names
}

func baseOf(name string) base {
	return bases[slices.IndexFunc(bases, func(b base) bool { return b.name == name })]
}

// rungs are what is known of run times: everything, as in RLTune's program, or what a predictor makes of the jobs that
// have ended.
var rungs = []string{"exact", "history"}

// Validate returns an error that names every fault of s, or nil.
func (s *settings) Validate() error {
	var l fault.List
	l.Add(len(s.Workloads) > 0, "workloads", "[]", "one or more")
	seen := map[string]bool{}
	for i := range s.Workloads {
		w := &s.Workloads[i]
		l.Add(study.Word(w.Name) && !seen[w.Name], "workloads", w.Name, "names of letters, digits and hyphens, each once")
		seen[w.Name] = true
		if w.File == "" {
			_, ok := generators[w.Name]
			l.Add(ok, "workloads", w.Name, "one of "+strings.Join(generated(), ", ")+", or a workload with a file")
			l.Add(w.Jobs >= 20*w.Window && w.Jobs <= 1_000_000, "jobs", w.Jobs, "20 windows to 1000000")
		}
		l.Add(w.Window >= 8 && w.Window <= 4096, "window", w.Window, "8 to 4096 jobs")
		l.Add(w.Load >= 0.01 && w.Load <= 100, "load", w.Load, "0.01 to 100")
	}
	for i, a := range s.Agents {
		l.Add(slices.Contains(baseNames(), a) && !slices.Contains(s.Agents[:i], a), "agents", a,
			"each once: "+nearest.OneOf(a, baseNames()))
	}
	l.Add(s.Seeds >= 1 && s.Seeds <= 100, "seeds", s.Seeds, "1 to 100")
	l.Add(s.Steps >= 4096, "steps", s.Steps, "4096 or more, which are 16 windows of 256 jobs")
	l.Join("agent", s.Agent.Validate())
	if base, err := agentRun(); err == nil {
		const own = "the experiment"
		study.SetElsewhere(&l, "agent", base, s.Agent, map[string]string{
			"cluster": "workloads[N].cluster", "trace.file": "workloads[N].file", "trace.format": own, "seed": own,
			"train.steps":     "steps",
			"train.log_every": "steps", "train.eval_every": "steps", "train.checkpoint_every": "steps", "eval.policies": own,
			"env.window": "workloads[N].window", "env.load": "workloads[N].load", "env.base": "agents", "env.estimates": own,
			"trace.synth": own, "trace.seed": own,
			"env.rltune": "agent.env.args", "env.metric": "agent.env.args", "env.max_gpus": "agent.env.args",
		})
	}
	return l.Err()
}

// agentRun returns the run of agent.yaml.
func agentRun() (config.Config, error) { return config.DecodeSection("agent.yaml", agentYAML) }

// settingsOf returns the settings of p's form, quick or full.
func settingsOf(p study.Plan) (settings, error) {
	agent, err := agentRun()
	if err != nil {
		return settings{}, err
	}
	s, err := study.Settings("rltune", files, p, settings{Agent: agent}, study.Part{Key: "agent", File: agentYAML})
	s.Seeds = p.SeedsOr(s.Seeds)
	return s, err
}
