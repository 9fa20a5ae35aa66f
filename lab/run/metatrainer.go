package run

import (
	"context"
	"fmt"
	"math"
	"slices"

	"clustergym/agents"
	"clustergym/agents/maml"
	"clustergym/agents/train"
	"clustergym/lab/config"
	"clustergym/nets/kernel"
)

// runner runs the training.
type runner interface {
	Step() int64
	Run(ctx context.Context, h train.Hooks) error
	Parts() []agents.Part
}

// metaTrainer runs a meta-learner for a number of steps. It implements runner.
type metaTrainer struct {
	cfg     train.Config
	learner *maml.Learner

	episodes int64
	perBatch int64
	last     float64 // return after adaptation in the last iteration
	length   float64
	learn    []agents.Stat // sums since the last record
	updates  int64         // number of updates in learn
}

func newMetaTrainer(cfg *config.Config, l *maml.Learner) *metaTrainer {
	c := &cfg.MAML
	inner := c.InnerSteps
	if c.Method == "joint" {
		inner = 0
	}
	return &metaTrainer{cfg: cfg.Train, learner: l, perBatch: int64(c.Tasks) * int64(inner*c.Before+c.After),
		last: math.NaN(), length: math.NaN()}
}

// Step implements runner.
func (t *metaTrainer) Step() int64 { return t.learner.Steps() }

// Run implements runner. It checks ctx between iterations.
func (t *metaTrainer) Run(ctx context.Context, h train.Hooks) error {
	for t.Step() < t.cfg.Steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		before := t.Step()
		stats, err := t.learner.Learn(context.Background())
		if err != nil {
			return err
		}
		t.note(stats)
		p := train.Progress{Step: t.Step(), Steps: t.cfg.Steps, Return: t.last}
		if err := h.After(&t.cfg, before, p, func() (train.Record, error) { return t.record(), nil }); err != nil {
			return err
		}
	}
	return nil
}

// note adds an iteration to the statistics.
func (t *metaTrainer) note(stats agents.Stats) {
	t.episodes += t.perBatch
	t.updates++
	for _, s := range stats {
		switch s.Name {
		case "return_after":
			t.last = s.Value
		case "length_after":
			t.length = s.Value
		}
		i := slices.IndexFunc(t.learn, func(l agents.Stat) bool { return l.Name == s.Name })
		if i < 0 {
			t.learn, i = append(t.learn, agents.Stat{Name: s.Name}), len(t.learn)
		}
		t.learn[i].Value += s.Value
	}
}

// record returns the statistics since the last record and resets them.
func (t *metaTrainer) record() train.Record {
	r := train.Record{Step: t.Step(), Episodes: t.episodes, Updates: t.learner.Iteration(), Return: t.last,
		Length: t.length}
	for _, s := range t.learn {
		r.Learn = append(r.Learn, agents.Stat{Name: s.Name, Value: s.Value / float64(t.updates)})
	}
	t.learn, t.updates = nil, 0
	return r
}

// metaState is trainer.json of a meta-learner. Floats are stored as bits because JSON has no NaN.
type metaState struct {
	Kernels  string          `json:"kernels,omitempty"`
	Step     int64           `json:"step"`
	Episodes int64           `json:"episodes"`
	Last     uint64          `json:"return_bits"`
	Length   uint64          `json:"length_bits"`
	Updates  int64           `json:"updates"` // since the last record
	Learn    []metaStatState `json:"learn"`
}

type metaStatState struct {
	Name string `json:"name"`
	Sum  uint64 `json:"sum_bits"`
}

// Parts implements runner.
func (t *metaTrainer) Parts() []agents.Part {
	return []agents.Part{agents.NewJSONPart("trainer.json", func() (metaState, error) {
		s := metaState{Kernels: kernel.Set(), Step: t.Step(), Episodes: t.episodes, Last: math.Float64bits(t.last),
			Length: math.Float64bits(t.length), Updates: t.updates}
		for _, l := range t.learn {
			s.Learn = append(s.Learn, metaStatState{l.Name, math.Float64bits(l.Value)})
		}
		return s, nil
	}, func(s metaState) error {
		if s.Episodes < 0 || s.Updates < 0 || s.Step < 0 {
			return fmt.Errorf("%d steps, %d episodes and %d updates cannot be", s.Step, s.Episodes, s.Updates)
		}
		t.episodes, t.last, t.length, t.updates, t.learn = s.Episodes, math.Float64frombits(s.Last),
			math.Float64frombits(s.Length), s.Updates, nil
		for _, l := range s.Learn {
			t.learn = append(t.learn, agents.Stat{Name: l.Name, Value: math.Float64frombits(l.Sum)})
		}
		return nil
	})}
}
