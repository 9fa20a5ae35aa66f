package topdrl

import (
	"crypto/sha256"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"clustergym/configs"
	"clustergym/experiments/config"
	"clustergym/experiments/run"
	"clustergym/experiments/study"
	"clustergym/experiments/workload"
	"clustergym/internal/fault"
)

//go:embed experiment.yaml expected.csv
var topdrlFiles embed.FS

// topdrlMethod is a version of all that settings do not say; a change of what cells compute makes a new one.
const topdrlMethod = 1

// topdrlSettings are a section of topdrl/experiment.yaml.
type topdrlSettings struct {
	Preset  string        `yaml:"preset"`  // the run that trainings begin with
	Set     []string      `yaml:"set"`     // changes of it
	Seeds   int           `yaml:"seeds"`   // trainings of each agent
	Windows int           `yaml:"windows"` // test windows
	Draws   int           `yaml:"draws"`   // plays of policies that draw at random
	Stages  []topdrlStage `yaml:"stages"`
	Gap     struct {
		States int `yaml:"states"` // random states for each cluster and size of gang
	} `yaml:"gap"`
	Pick topdrlPick `yaml:"pick"`
}

// topdrlStage is a workload on a cluster.
type topdrlStage struct {
	Name    string `yaml:"name"`
	Profile string `yaml:"profile"` // of the generator
	File    string `yaml:"file"`    // a recorded workload instead
	Jobs    int    `yaml:"jobs"`
	Seed    uint64 `yaml:"seed"` // of the workload
	Cluster string `yaml:"cluster"`
	PPO     int64  `yaml:"ppo"`   // steps of training; 0 = none
	DDQN    int64  `yaml:"ddqn"`  // steps of training; 0 = none
	Whole   bool   `yaml:"whole"` // with the whole grid of selectors and placements
}

// topdrlPick is what concerns GPUPick-v1.
type topdrlPick struct {
	Jobs    int    `yaml:"jobs"`
	Seed    uint64 `yaml:"seed"` // of the workload
	Steps   int64  `yaml:"steps"`
	Seeds   int    `yaml:"seeds"`
	Windows int    `yaml:"windows"`
}

// Validate reports every fault.
func (s *topdrlSettings) Validate() error {
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

// topdrlStudy reproduces TopDRL as far as it is published.
func Study() study.Study { return topdrlWith(topdrlPlanned) }

// topdrlWith is topdrlStudy with settings from elsewhere.
func topdrlWith(planned func(study.Plan) (*topdrlSettings, error)) study.Study {
	// What Cells says of bad settings need not be said again.
	settings := func(p study.Plan) *topdrlSettings {
		if s, err := planned(p); err == nil {
			return s
		}
		return new(topdrlSettings)
	}
	return study.Study{
		Name:  "topdrl",
		Title: "TopDRL-like: a network picks the job, a heuristic the closest GPUs",
		Cite:  "Ayadi et al., TopDRL, JPDC 204, 105138 (2025), doi 10.1016/j.jpdc.2025.105138; a reconstruction",
		Takes: "quick 2 min, full 30 min on two cores",
		Cells: func(p study.Plan) ([]study.Cell, error) {
			s, err := planned(p)
			if err != nil {
				return nil, err
			}
			return s.cells()
		},
		Tables:   func(p study.Plan) []study.Table { return settings(p).tables() },
		Claims:   func(p study.Plan) []study.Claim { return settings(p).claims() },
		Figures:  func(p study.Plan) []study.Figure { return settings(p).figures() },
		Notes:    topdrlNotes,
		Expected: topdrlFile("expected.csv"),
	}
}

func topdrlFile(name string) []byte {
	b, err := topdrlFiles.ReadFile(name)
	if err != nil {
		panic("experiments: " + err.Error()) // embedded
	}
	return b
}

// topdrlPlanned are the settings of a plan.
func topdrlPlanned(p study.Plan) (*topdrlSettings, error) {
	s, err := study.Settings("topdrl", topdrlFile("experiment.yaml"), p, topdrlSettings{})
	if err != nil {
		return nil, err
	}
	if p.Seeds > 0 {
		s.Seeds, s.Pick.Seeds = p.Seeds, p.Seeds
	}
	if p.Data != "" {
		file := filepath.Join(p.Data, "philly", "philly_jobs.csv.gz")
		st := topdrlStage{Name: "philly-recorded-32", File: file, Cluster: "topdrl-2x4x4", PPO: s.Stages[0].PPO}
		if _, _, err := topdrlTrace(&st); err != nil {
			return nil, err
		}
		s.Stages = append(s.Stages, st)
	}
	return &s, nil
}

// topdrlTrace is the workload of a stage, and the digest of its file; one that is not there is the user's mistake.
func topdrlTrace(st *topdrlStage) (t workload.TraceConfig, digest string, err error) {
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

// config is the run of an agent on a stage.
func (s *topdrlSettings) config(st *topdrlStage, agent string, seed uint64) (config.Config, error) {
	cfg, err := config.Preset(s.Preset)
	if err != nil {
		return cfg, err
	}
	for _, set := range s.Set {
		if err := configs.Set(&cfg, set); err != nil {
			return cfg, fmt.Errorf("topdrl: set %q: %w", set, err)
		}
	}
	if cfg.Trace, _, err = topdrlTrace(st); err != nil {
		return cfg, err
	}
	cfg.Name, cfg.Agent, cfg.Seed, cfg.Cluster = "topdrl", agent, seed, st.Cluster
	cfg.Train.Steps = map[string]int64{"ppo": st.PPO, "ddqn": st.DDQN}[agent]
	cfg.Eval.Windows, cfg.Eval.Policies = s.Windows, nil
	return cfg, cfg.Validate()
}

// agents are those that a stage trains.
func (st *topdrlStage) agents() []string {
	var names []string
	for _, a := range []string{"ppo", "ddqn"} {
		if map[string]int64{"ppo": st.PPO, "ddqn": st.DDQN}[a] > 0 {
			names = append(names, a)
		}
	}
	return names
}
