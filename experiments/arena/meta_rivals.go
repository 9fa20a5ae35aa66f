package arena

import (
	"context"
	"fmt"

	"clustergym/agents"
	"clustergym/agents/maml"
	"clustergym/env"
	"clustergym/experiments/config"
	"clustergym/experiments/report"
	"clustergym/experiments/statistic"
	"clustergym/internal/fault"
	"clustergym/internal/par"
	"clustergym/internal/rng"
)

// rivals plays the rules of cfg on the test tasks and adds them to r. random are the outcomes of random play.
func (f *Families) rivals(ctx context.Context, cfg *config.Config, workers int, random []maml.Outcome, r *report.AdaptReport) error {
	if !f.world.About.Scheduling() {
		return nil
	}
	err := f.rules(ctx, cfg, workers, testTasks(cfg), func(name string, out []maml.Outcome) { addOutcomes(r, name, 0, 0, out, out) })
	if err != nil {
		return err
	}
	base := outcomes(random, sampledOutcome)
	for i := range r.Rows {
		r.Rows[i].OverRandom = overRandom(r.Seed, r.Rows[i].Return.PerEpisode, base)
	}
	return nil
}

// Rivals implements Arena. They do not adapt.
func (f *Families) Rivals(ctx context.Context, cfg *config.Config, workers int) ([]Rival, error) {
	on := validationTasks(cfg)
	random, err := f.random(ctx, cfg, &cfg.MAML, on)
	if err != nil {
		return nil, err
	}
	all := []Rival{{config.Random, validationOf(random)}}
	if !f.world.About.Scheduling() {
		return all, nil
	}
	return all, f.rules(ctx, cfg, workers, on, func(name string, out []maml.Outcome) { all = append(all, Rival{name, validationOf(out)}) })
}

// rules plays the rules of cfg on tasks and passes each one's outcomes to take.
func (f *Families) rules(ctx context.Context, cfg *config.Config, workers int, on taskSet, take func(name string, out []maml.Outcome)) error {
	for _, name := range cfg.Policies() {
		p, err := config.ParseRival(name, f.world.About, cfg.Env.Settings)
		if err != nil {
			return &fault.Mistake{Err: err}
		}
		if p.Rule == nil || p.Rule.Name == config.Random {
			continue
		}
		out, err := f.play(ctx, cfg, workers, on, p.Rule.Policy)
		if err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
		take(p.Name, out)
	}
	return nil
}

// play plays a policy on tasks.
func (f *Families) play(ctx context.Context, cfg *config.Config, workers int, on taskSet, policy func(env.Env) (agents.Policy, error)) ([]maml.Outcome, error) {
	family, err := maml.NewFamily(f.Open)
	if err != nil {
		return nil, err
	}
	tasks, err := family.Sample(rng.Stream(on.seed, "maml/judge"), on.n)
	if err != nil {
		return nil, err
	}
	out, players := make([]maml.Outcome, len(tasks)), make([]*agents.Player, max(1, workers))
	episodes := cfg.MAML.JudgeEpisodes
	err = par.For(ctx, workers, len(tasks), func(worker, i int) error {
		if players[worker] == nil {
			e, err := f.Open()
			if err != nil {
				return err
			}
			p, err := policy(e)
			if err != nil {
				return err
			}
			players[worker] = agents.NewPlayer(e, p)
		}
		for k := range episodes {
			seed := rng.At(tasks[i].Seed, uint64(k))
			ret, steps, err := players[worker].Play(ctx, env.Episode{Seed: seed, Window: -1, Task: tasks[i].Values}, rng.Stream(seed, "eval/act"))
			if err != nil {
				return err
			}
			out[i].Sampled += ret / float64(episodes)
			out[i].Length += float64(steps) / float64(episodes)
		}
		out[i].Greedy = out[i].Sampled
		return nil
	})
	return out, err
}

// overRandom compares returns with those of random play on the same tasks.
func overRandom(seed uint64, returns, random []float64) *report.Difference {
	mean, ci := statistic.Difference(seed, "over random", returns, random)
	return &report.Difference{Mean: mean, CI95: ci}
}
