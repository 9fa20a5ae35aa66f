package speed

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/env/jobselect"
	"clustergym/env/vec"
	"clustergym/internal/par"
	"clustergym/internal/plain"
	"clustergym/internal/rng"
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/nets/model"
)

// training measures PPO and double DQN on JobSelect-v1: updates alone in samples per second, and whole trainings in
// environment steps per second. One network is that of the preset quickstart-exact, the other has two dense layers of
// 64.
func (b *bench) training(ctx context.Context) error {
	for _, agent := range []string{"ppo", "ddqn"} {
		for _, net := range []string{"cnn", "mlp"} {
			cfg, err := b.quickstart()
			if err != nil {
				return err
			}
			cfg.Agent = agent
			if net == "mlp" {
				cfg.PPO.Network = model.DefaultConfig()
				cfg.DDQN.Network = model.DefaultConfig()
				cfg.DDQN.Network.Separate = false
			}
			cfg.Edit().(*jobselect.Config).Relative = "" // otherwise every episode is played twice
			cfg.DDQN.Buffer, cfg.DDQN.LearningStarts = 20_000, 1_000
			if b.cfg.Quick {
				cfg.Train.Envs, cfg.PPO.Steps, cfg.DDQN.LearningStarts = 8, 16, 256
			}
			for _, all := range []bool{false, true} {
				if err := b.trained(ctx, cfg, net, all); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// trained measures one agent with one network: its updates, or if all is true the whole training.
func (b *bench) trained(ctx context.Context, cfg *config.Config, net string, all bool) error {
	if cfg.Agent == "ddqn" && !all {
		cfg.DDQN.TrainEvery = 1 // several gradient steps in each update
	} else {
		cfg.DDQN.TrainEvery = 10
	}
	par.Linger(true) // as run.Train does
	defer par.Linger(false)
	p, err := newPractice(cfg, b.report.Machine.Processors)
	if err != nil {
		return err
	}
	row := Row{
		Group: "training", What: fmt.Sprintf("%s, %s, updates alone", jobselect.ID, net), Cluster: cfg.Cluster,
		Policy: fmt.Sprintf("%s, %s", cfg.Agent,
			plain.Count(b.report.Machine.Processors, "worker", "workers")), Unit: "samples/s",
	}
	if !all {
		return b.measureAfter(ctx, row, func(ctx context.Context) error { return p.collect(ctx) },
			func(ctx context.Context) (int, error) {
				return p.learn(ctx)
			})
	}
	row.What, row.Unit = fmt.Sprintf("%s, %s, training in all", jobselect.ID, net), "steps/s"
	return b.measure(ctx, row, func(ctx context.Context) (int, error) {
		before := p.steps
		if err := p.collect(ctx); err != nil {
			return 0, err
		}
		if _, err := p.learn(ctx); err != nil && !errors.Is(err, agents.ErrNotReady) {
			return 0, err
		}
		return p.steps - before, nil
	})
}

// practice is a training in two parts: collecting experience and learning from it.
type practice struct {
	cfg       *config.Config
	agent     arena.Learner
	vec       *vec.Vec
	cur, next *env.Batch
	actions   *env.Actions
	src       []*rand.Rand
	steps     int     // of environments, in all
	updates   float64 // gradient steps, in all
}

func newPractice(cfg *config.Config, workers int) (*practice, error) {
	w, err := arena.NewScenario(cfg)
	if err != nil {
		return nil, err
	}
	v, err := w.NewVec(cfg, workers)
	if err != nil {
		return nil, err
	}
	p := &practice{
		cfg: cfg, vec: v, cur: env.NewBatch(v.Spec(),
			v.Len()), next: env.NewBatch(v.Spec(), v.Len()), actions: env.NewActions(v.Spec(), v.Len()),
	}
	for i := range v.Len() {
		p.src = append(p.src, rng.Stream(cfg.Seed, fmt.Sprintf("bench/act/%d", i)))
	}
	if p.agent, err = arena.NewAgent(cfg, v.Spec(), workers); err != nil {
		return nil, err
	}
	return p, v.Reset(context.Background(), nil, nil, p.cur)
}

// collect takes the steps that an update needs: a rollout, or for double DQN one step of every environment.
func (p *practice) collect(ctx context.Context) error {
	until := p.steps + p.cfg.PPO.Steps*p.vec.Len()
	if p.cfg.Agent == "ddqn" {
		until = max(p.steps+p.vec.Len(), p.cfg.DDQN.LearningStarts)
	}
	for p.steps < until {
		if err := p.agent.Act(ctx, p.cur, p.actions, p.src); err != nil {
			return err
		}
		if err := p.vec.Step(ctx, nil, p.actions, p.next); err != nil {
			return err
		}
		if err := p.agent.Observe(p.cur, p.actions, p.next); err != nil {
			return err
		}
		p.cur, p.next = p.next, p.cur
		p.steps += p.vec.Len()
	}
	return nil
}

// learn makes the updates that are due. It returns the number of samples, counting a sample once for each gradient
// step.
func (p *practice) learn(ctx context.Context) (samples int, err error) {
	stats, err := p.agent.Learn(ctx)
	if err != nil {
		return 0, err
	}
	batch := p.cfg.PPO.Steps * p.vec.Len() / p.cfg.PPO.Minibatches
	if p.cfg.Agent == "ddqn" {
		batch = p.cfg.DDQN.Batch
	}
	done := stat(stats, "n_updates")
	samples = int(done-p.updates) * batch
	p.updates = done
	return samples, nil
}

// stat returns the statistic called name of an update, 0 if there is none.
func stat(stats agents.Stats, name string) float64 {
	for _, s := range stats {
		if s.Name == name {
			return s.Value
		}
	}
	return 0
}
