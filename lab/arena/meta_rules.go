package arena

import (
	"context"
	"slices"

	"clustergym/agents/maml"
	"clustergym/env"
	"clustergym/internal/rng"
	"clustergym/internal/statistic"
	"clustergym/lab/config"
	"clustergym/lab/report"
	"clustergym/simulator/policyname"
	"clustergym/traces"
)

// compare plays the rules of cfg on the test tasks and adds them to r. random are the outcomes of random play.
func (f *Families) compare(ctx context.Context, cfg *config.Config, workers int, random []maml.Outcome,
	r *report.AdaptReport) error {
	if !f.Scenario.About.Scheduling() {
		return nil
	}
	err := f.rules(ctx, cfg, workers, tasksOf(cfg, traces.Test, cfg.Eval.Episodes), func(name string,
		out []maml.Outcome) {
		addOutcomes(r, name, 0, 0, out, out)
	})
	if err != nil {
		return err
	}
	base := outcomes(random, sampledOutcome)
	for i := range r.Rows {
		mean, ci := statistic.Difference(r.Seed, "over random", r.Rows[i].Return.PerEpisode, base)
		r.Rows[i].OverRandom = &report.Difference{Mean: mean, CI95: ci}
	}
	return nil
}

// Baselines implements Arena. They do not adapt.
func (f *Families) Baselines(ctx context.Context, cfg *config.Config, workers int) ([]Baseline, error) {
	on := tasksOf(cfg, traces.Validation, cfg.Eval.Validation)
	random, err := f.random(ctx, cfg, &cfg.MAML, on)
	if err != nil {
		return nil, err
	}
	all := []Baseline{{config.Random, validationOf(random)}}
	if !f.Scenario.About.Scheduling() {
		return all, nil
	}
	return all,
		f.rules(ctx, cfg, workers, on,
			func(name string, out []maml.Outcome) { all = append(all, Baseline{name, validationOf(out)}) })
}

// rules plays the rules of cfg on tasks and passes each one's outcomes to take.
func (f *Families) rules(ctx context.Context, cfg *config.Config, workers int, on taskSet,
	take func(name string, out []maml.Outcome)) error {
	tasks, err := f.tasks(on)
	if err != nil {
		return err
	}
	all, err := f.baselines(cfg)
	if err != nil {
		return err
	}
	episodes := cfg.MAML.JudgeEpisodes // of each task
	r := f.through(cfg, traces.Test, 0, workers)
	r.episodes, r.seeds = episodes*len(tasks), 1
	r.episode = func(i int) env.Episode {
		t := tasks[i/episodes]
		return env.Episode{Seed: rng.At(t.Seed, uint64(i%episodes)), Window: -1, Task: t.Values}
	}
	r.policies = slices.DeleteFunc(all,
		func(p policy) bool { return p.kind == "planner" || p.name == policyname.Slots(config.Random) })
	played, _, err := r.results(ctx)
	if err != nil {
		return err
	}
	for p := range r.policies {
		out := make([]maml.Outcome, len(tasks))
		for i, got := range played[p][0] {
			o := &out[i/episodes]
			o.Sampled += got.ret / float64(episodes)
			o.Length += got.steps / float64(episodes)
			o.Greedy = o.Sampled
		}
		take(r.policies[p].name, out)
	}
	return nil
}
