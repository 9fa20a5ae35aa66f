package metascheduler

import (
	"context"
	_ "embed" // the study's settings and what its figures were
	"fmt"
	"slices"
	"strings"

	"clustergym/agents/mbmpo"
	"clustergym/agents/ppo"
	"clustergym/env/workerplace"
	"clustergym/experiments/study"
	"clustergym/internal/fault"
	"clustergym/internal/rng"
	"clustergym/nets/model"
)

//go:embed experiment.yaml
var metaSettingsFile []byte

//go:embed expected.csv
var metaExpected []byte

// MetaSettings are those of the study meta-scheduler.
type MetaSettings struct {
	Seeds       int      `yaml:"seeds"`        // learners of each method
	Windows     int      `yaml:"windows"`      // workloads that all are judged on, which nobody learns from
	Jobs        int      `yaml:"jobs"`         // of a workload
	Slots       int      `yaml:"slots"`        // waiting jobs that policies see
	Width       int      `yaml:"width"`        // of policies' layers
	Noise       float64  `yaml:"noise"`        // of measured speeds
	Rounds      int      `yaml:"rounds"`       // of the closed loop
	AfterRounds int      `yaml:"after_rounds"` // after the change
	FreeRounds  int      `yaml:"free_rounds"`  // of learning without models, in place of both
	Episodes    int      `yaml:"episodes"`     // real ones of a round
	Adapting    int      `yaml:"adapting"`     // real ones after the change, before the inner steps
	MetaSteps   int      `yaml:"meta_steps"`   // of a round
	Guide       int      `yaml:"guide"`        // passes of imitation of the models' planners
	Stream      string   `yaml:"stream"`       // held-out, or development: other workloads, to try settings on
	Methods     []string `yaml:"methods,flow"`
}

func defaultMetaSettings() MetaSettings {
	return MetaSettings{
		Seeds: 5, Windows: 32, Jobs: 40, Slots: 5, Width: 32, Noise: 0.02, Rounds: 8, AfterRounds: 2, FreeRounds: 40, Episodes: 4,
		Adapting: 2, MetaSteps: 10, Guide: 100, Stream: "held-out", Methods: metaMethods(),
	}
}

// Validate implements configs.Validator.
func (s *MetaSettings) Validate() error {
	var l fault.List
	for _, v := range []struct {
		key   string
		value int
	}{
		{"seeds", s.Seeds}, {"windows", s.Windows}, {"jobs", s.Jobs}, {"slots", s.Slots}, {"width", s.Width}, {"rounds", s.Rounds},
		{"after_rounds", s.AfterRounds}, {"free_rounds", s.FreeRounds}, {"episodes", s.Episodes}, {"adapting", s.Adapting}, {"meta_steps", s.MetaSteps},
	} {
		l.Add(v.value >= 1 && v.value <= 10_000, v.key, v.value, "a whole number from 1 to 10000")
	}
	l.Add(s.Guide >= 0, "guide", s.Guide, "a whole number, 0 or more")
	l.Add(s.Stream == "held-out" || s.Stream == "development", "stream", s.Stream, "held-out or development")
	l.Add(s.Noise >= 0 && s.Noise <= 1, "noise", s.Noise, "a number in [0, 1]")
	for i, m := range s.Methods {
		l.Add(slices.Contains(metaMethods(), m), fmt.Sprintf("methods[%d]", i), m, "one of "+strings.Join(metaMethods(), ", "))
	}
	return l.Err()
}

// metaBegins is the rule that all learners begin by imitating: one that waits, so that they know that they may.
const metaBegins = "sjf-waits"

// metaMethods are the learners, in the order of tables: the whole, what it is without one of its parts, with a guide of ours, and
// others.
func metaMethods() []string {
	return []string{"mls", "random-exploration", "no-meta", "single-model", "mls-guided", "harmony-like", "ppo"}
}

// loop is the configuration of a method.
func (s *MetaSettings) loop(method string) mbmpo.Config {
	c := mbmpo.DefaultConfig()
	c.Episodes, c.MetaSteps, c.Guide = s.Episodes, s.MetaSteps, 0
	c.Data, c.Rule = []string{metaBegins, "load-balance", "tetris"}, metaBegins
	switch method {
	case "random-exploration":
		c.Explore = "random"
	case "no-meta":
		// The same real episodes, models and exploration; as many imagined episodes, all of them to learn from.
		c.Maml.Method, c.Maml.After = "joint", c.Maml.Before+c.Maml.After
		c.Explore = "subspace"
	case "single-model":
		c.Models.Members = 1
	case "mls-guided":
		c.Guide = s.Guide
	case "harmony-like":
		c.Models.Members, c.Explore = 1, "none"
		c.Maml.Method, c.Maml.After = "joint", c.Maml.Before+c.Maml.After
	case "ppo":
		c.ModelFree, c.Explore = true, "none"
		c.Maml.Method, c.Maml.Outer, c.Maml.Tasks, c.Maml.After = "joint", "ppo", s.Episodes, 1
		c.Maml.Epochs, c.Maml.LR, c.Maml.EntCoef = 6, 1e-3, 0.001
	}
	return c
}

// worlds are where jobs come from: as usual, and after the change: a quarter more jobs an interval, of which most are of three
// types, five of six servers, and a quarter more interference.
func (s *MetaSettings) worlds() map[string]mbmpo.Real {
	c := workerplace.DefaultConfig()
	c.Obs, c.Slots, c.Jobs, c.Noise = "pairs", s.Slots, s.Jobs, s.Noise
	open := func() (*workerplace.Env, error) { return workerplace.New(c) }
	return map[string]mbmpo.Real{
		"stationary": {Open: open},
		"changed":    {Open: open, Values: []float64{1.25, 1, 5.0 / 6, 1.25, 0, 0.1, 1, 0.1, 1, 0.1, 0.1, 0.1, 1}},
	}
}

// windows are the seeds of the workloads that all are judged on.
func (s *MetaSettings) windows() []uint64 {
	out := make([]uint64, s.Windows)
	for i := range out {
		out[i] = rng.At(rng.Hash("meta-scheduler/"+s.Stream), uint64(i))
	}
	return out
}

// policy makes policies that score every pair of a waiting job and a server with the same small network.
func (s *MetaSettings) policy(r mbmpo.Real, seed uint64) (func() (mbmpo.Model, error), error) {
	e, err := r.Open()
	if err != nil {
		return nil, err
	}
	spec := e.Spec()
	if err := e.Close(); err != nil {
		return nil, err
	}
	c := ppo.ModelConfig{Network: model.Config{
		Kind: "cnn", Hidden: []int{s.Width}, Activation: "tanh", Head: "slots", SlotHidden: s.Width,
		Branches: []model.Branch{{Field: "pairs", Dense: []int{s.Width}, Slots: true}},
	}}
	return func() (mbmpo.Model, error) { return ppo.NewModel(c, spec, seed) }, nil
}

func Study() study.Study {
	return study.Study{
		Name:  "meta-scheduler",
		Title: "A meta-learning scheduler that places workers (reconstruction)",
		Cite:  "Yang, Bao, Liu, Yang and Wu, On a Meta Learning-Based Scheduler for Deep Learning Clusters, IEEE Trans. Cloud Computing 11(4), 2023, 10.1109/TCC.2023.3308161",
		Takes: "quick about a minute on two free cores, full 27 minutes seen with one worker on a busy machine",
		Cells: metaCells, Tables: metaTables, Figures: metaFigures, Claims: metaClaims, Notes: metaNotes, Expected: metaExpected,
	}
}

// metaVersion changes when what cells compute does.
const metaVersion = 2

func metaCells(p study.Plan) ([]study.Cell, error) {
	s, err := study.Settings[MetaSettings]("meta-scheduler", metaSettingsFile, p, defaultMetaSettings())
	if err != nil {
		return nil, err
	}
	s.Seeds = p.SeedsOr(s.Seeds)
	return s.cells(), nil
}

// cells are the rules, and each learner by itself.
func (s *MetaSettings) cells() []study.Cell {
	// What a cell depends on: not how many others there are.
	own := *s
	own.Seeds, own.Methods = 0, nil
	type input struct {
		Version  int
		Settings MetaSettings
		What     string
		Loop     *mbmpo.Config `json:",omitempty"`
		Seed     int
	}
	cells := []study.Cell{{
		Key: "rules", Input: input{Version: metaVersion, Settings: own, What: "rules"},
		Run: func(ctx context.Context, _ *study.Bench) ([]study.Row, error) { return s.rules(ctx) },
	}}
	for _, m := range s.Methods {
		cfg := s.loop(m)
		for seed := 1; seed <= s.Seeds; seed++ {
			cells = append(cells, study.Cell{
				Key:   fmt.Sprintf("learn/%s/seed=%d", m, seed),
				Input: input{metaVersion, own, m, &cfg, seed},
				Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
					return s.learn(ctx, b, m, cfg, seed)
				},
			})
		}
	}
	return cells
}
