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
	"clustergym/experiments/workload"
	"clustergym/internal/par"
	"clustergym/internal/rng"
)

// rivals plays the rules of cfg on the test tasks and adds them to r. random are the outcomes of random play.
func (f *Families) rivals(ctx context.Context, cfg *config.Config, workers int, random []maml.Outcome, r *report.AdaptReport) error {
	d := f.world.About
	if !d.Scheduling() {
		return nil
	}
	for _, name := range cfg.Policies() {
		p, err := config.ParseRival(name, d, cfg.Env.Settings)
		if err != nil {
			return &workload.InputError{Err: err}
		}
		if p.Rule == nil || p.Rule.Name == config.Random {
			continue
		}
		out, err := f.play(ctx, cfg, workers, p.Rule.Policy)
		if err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
		addOutcomes(r, p.Name, 0, 0, out, out)
	}
	base := outcomes(random, sampledOutcome)
	for i := range r.Rows {
		r.Rows[i].OverRandom = overRandom(r.Seed, r.Rows[i].Return.PerEpisode, base)
	}
	return nil
}

// play plays a policy on the test tasks.
func (f *Families) play(ctx context.Context, cfg *config.Config, workers int, policy func(env.Env) (agents.Policy, error)) ([]maml.Outcome, error) {
	family, err := maml.NewFamily(f.Open)
	if err != nil {
		return nil, err
	}
	tasks, err := family.Sample(rng.Stream(rng.At(cfg.Eval.Seed, rng.Hash(testEpisodes)), "maml/judge"), cfg.Eval.Episodes)
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
	d := make([]float64, len(returns))
	for i := range d {
		d[i] = returns[i] - random[i]
	}
	return &report.Difference{Mean: statistic.Mean(d), CI95: statistic.Bootstrap(seed, "over random", len(d), func(drawn []statistic.Draw) float64 {
		sum := 0.0
		for _, x := range drawn {
			sum += d[x.Unit]
		}
		return sum / float64(len(drawn))
	})}
}
