package benchmark

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"clustergym/internal/fault"
	"clustergym/lab/config"
	"clustergym/lab/run"
)

// Trained is the training of one task's agent.
type Trained struct {
	Task   string           `json:"task"`
	Dir    string           `json:"dir"`
	Report *run.SeedsReport `json:"report"`
}

// fixed are the keys of a run that belong to the task: an agent that learned with others could not be judged on it.
func fixed(a, b *config.Config) bool {
	x, y := *a, *b
	blank := config.For(x.Env.ID)
	for _, c := range []*config.Config{&x, &y} {
		c.Agent, c.PPO, c.DDQN, c.MAML, c.Improper, c.Train, c.Seed, c.Kernels, c.Name = blank.Agent, blank.PPO, blank.DDQN,
			blank.MAML, blank.Improper, blank.Train, 0, "", ""
		c.Eval.Choose, c.Eval.Validation = "", 1
	}
	return hashJSON(text(&x)) == hashJSON(text(&y))
}

// Learner returns the run that learns the task, with keys of the agent and its training changed by set, as --set does.
// Those of the task are fixed.
func (t *Task) Learner(set []string) (config.Config, error) {
	cfg, err := t.Config()
	if err != nil {
		return cfg, err
	}
	plain, err := t.Config()
	if err != nil {
		return cfg, err
	}
	for _, s := range set {
		if err := cfg.Set(s); err != nil {
			return cfg, fault.Mistakef("%s %s: %w", fault.Key("set"), s, err)
		}
	}
	if !fixed(&cfg, &plain) {
		return cfg, fault.Mistakef("%s: the workload, the cluster, the environment and the windows are the task's; want "+
			"keys of the agent (ppo, ddqn, agent), of train, eval.choose or eval.validation", fault.Key("set"))
	}
	if err := cfg.Validate(); err != nil {
		return cfg, &fault.Mistake{Err: err}
	}
	return cfg, nil
}

// Train trains a learner of t with several seeds, or goes on with what is in dir/TASK. The protocol has Seeds of them.
func (t *Task) Train(ctx context.Context, cfg config.Config, dir string, seeds int,
	opt run.TrainOptions) (*Trained, error) {
	opt.RunDir = filepath.Join(dir, t.Name)
	opt.NoEval = true
	_, err := os.Stat(filepath.Join(opt.RunDir, "config.yaml"))
	opt.Resume = err == nil
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, &fault.Mistake{Err: err}
	}
	r, err := run.TrainSeeds(ctx, cfg, seeds, opt)
	if err != nil {
		return nil, err
	}
	return &Trained{t.Name, opt.RunDir, r}, nil
}
