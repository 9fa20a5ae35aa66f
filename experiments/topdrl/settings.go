package topdrl

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"clustergym/configs"
	"clustergym/experiments/run"
	"clustergym/experiments/study"
	"clustergym/experiments/workload"
	"clustergym/internal/fault"
)

// settings are the keys of one section of experiment.yaml, quick or full.
type settings struct {
	Preset  string   `yaml:"preset"`  // the embedded run from which trainings start
	Set     []string `yaml:"set"`     // KEY=VALUE changes of it
	Seeds   int      `yaml:"seeds"`   // trainings of each agent
	Windows int      `yaml:"windows"` // test windows
	Draws   int      `yaml:"draws"`   // plays of policies that draw at random
	Stages  []stage  `yaml:"stages"`
	Gap     struct {
		States int `yaml:"states"` // random states for each cluster and size of gang
	} `yaml:"gap"`
	Pick pickSettings `yaml:"pick"`
}

// stage is a workload on a cluster, with the agents that train on it.
type stage struct {
	Name    string `yaml:"name"`
	Profile string `yaml:"profile"` // of the generator
	File    string `yaml:"file"`    // of a recorded workload, instead of Profile
	Jobs    int    `yaml:"jobs"`
	Seed    uint64 `yaml:"seed"` // of the workload
	Cluster string `yaml:"cluster"`
	PPO     int64  `yaml:"ppo"`   // training steps; 0 = no training
	DDQN    int64  `yaml:"ddqn"`  // training steps; 0 = no training
	Whole   bool   `yaml:"whole"` // compare with the whole grid of selectors and placements
}

// pickSettings are the keys of the part in GPUPick-v1.
type pickSettings struct {
	Jobs    int    `yaml:"jobs"`
	Seed    uint64 `yaml:"seed"` // of the workload
	Steps   int64  `yaml:"steps"`
	Seeds   int    `yaml:"seeds"`
	Windows int    `yaml:"windows"`
}

// Validate returns an error that names every fault of s, or nil.
func (s *settings) Validate() error {
	var l fault.List
	l.Add(slices.Contains(configs.Runs(), s.Preset), "preset", s.Preset, "an embedded run")
	l.Add(s.Seeds >= 1 && s.Seeds <= run.MaxSeeds, "seeds", s.Seeds, "1 to 1000")
	l.Add(s.Windows >= 2, "windows", s.Windows, "2 or more")
	l.Add(s.Draws >= 1, "draws", s.Draws, "1 or more")
	l.Add(len(s.Stages) > 0, "stages", len(s.Stages), "one or more")
	for i, st := range s.Stages {
		key := fmt.Sprintf("stages[%d]", i)
		l.Add(st.Name != "" && (st.Profile != "") != (st.File != ""), key, st.Name, "a name, and either a profile or a file")
		l.Add(st.PPO > 0 || st.DDQN > 0, key+".ppo", st.PPO, "steps of one agent at least")
	}
	l.Add(s.Gap.States >= 1, "gap.states", s.Gap.States, "1 or more")
	l.Add(s.Pick.Steps >= 1 && s.Pick.Seeds >= 1 && s.Pick.Windows >= 2, "pick.steps", s.Pick.Steps, "1 or more, with seeds and two windows or more")
	return l.Err()
}

// settingsOf returns the settings of p's form, with p's number of seeds and the recorded stage if p has a folder of data.
func settingsOf(p study.Plan) (*settings, error) {
	s, err := study.Settings("topdrl", settingsYAML, p, settings{})
	if err != nil {
		return nil, err
	}
	if p.Seeds > 0 {
		s.Seeds, s.Pick.Seeds = p.Seeds, p.Seeds
	}
	if p.Data != "" {
		file := filepath.Join(p.Data, "philly", "philly_jobs.csv.gz")
		st := stage{Name: "philly-recorded-32", File: file, Cluster: "topdrl-2x4x4", PPO: s.Stages[0].PPO}
		if _, _, err := traceOf(&st); err != nil {
			return nil, err
		}
		s.Stages = append(s.Stages, st)
	}
	return &s, nil
}

// traceOf returns the workload of a stage and its file's SHA-256, "" without a file. An unreadable file is the user's mistake.
func traceOf(st *stage) (t workload.TraceConfig, digest string, err error) {
	t = workload.DefaultTraceConfig()
	if st.File == "" {
		t.Synth.Profile, t.Synth.Jobs, t.Seed = st.Profile, st.Jobs, st.Seed
		return t, "", nil
	}
	b, err := os.ReadFile(st.File)
	if err != nil {
		return t, "", workload.Mistake("--data: %s: %v", st.File, workload.Reason(err))
	}
	t.File, t.Sort = st.File, true
	return t, fmt.Sprintf("%x", sha256.Sum256(b)), nil
}

// config returns the run that trains an agent on a stage.
func (s *settings) config(st *stage, agent string, seed uint64) (run.Config, error) {
	cfg, err := run.Preset(s.Preset)
	if err != nil {
		return cfg, err
	}
	for _, set := range s.Set {
		if err := configs.Set(&cfg, set); err != nil {
			return cfg, fmt.Errorf("topdrl: set %q: %w", set, err)
		}
	}
	if cfg.Trace, _, err = traceOf(st); err != nil {
		return cfg, err
	}
	cfg.Name, cfg.Agent, cfg.Seed, cfg.Cluster = "topdrl", agent, seed, st.Cluster
	cfg.Train.Steps = map[string]int64{"ppo": st.PPO, "ddqn": st.DDQN}[agent]
	cfg.Eval.Windows, cfg.Eval.Policies = s.Windows, nil
	return cfg, cfg.Validate()
}

// agents returns the names of the agents that the stage trains.
func (st *stage) agents() []string {
	var names []string
	for _, a := range []string{"ppo", "ddqn"} {
		if map[string]int64{"ppo": st.PPO, "ddqn": st.DDQN}[a] > 0 {
			names = append(names, a)
		}
	}
	return names
}
