package topdrl

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/env/heuristic"
	"clustergym/env/jobselect"
	"clustergym/env/sched"
	"clustergym/experiments/arena"
	"clustergym/experiments/study"
	"clustergym/internal/par"
	"clustergym/internal/rng"
	"clustergym/traces"
)

// testEpisode returns the episode of test window i. Its seed draws the jobs' models, so they are the same for all policies.
func testEpisode(i int) env.Episode {
	return env.Episode{Seed: env.EpisodeSeed(rng.Hash("topdrl/windows"), i), Window: i}
}

// playAgent plays a trained agent greedily on the test windows. In a whole stage it plays them with every placement of
// variants.
func (s *settings) playAgent(ctx context.Context, b *study.Bench, w *arena.World, st *stage, agent string, seed uint64, work string) ([]study.Row, error) {
	n := min(s.Windows, w.Count(traces.Test))
	tried := []string{"closest-b"}
	if st.Whole {
		tried = variants
	}
	type game struct {
		placement string
		window    int
	}
	var games []game
	for _, p := range tried {
		for i := range n {
			games = append(games, game{p, i})
		}
	}
	out := make([][]study.Row, len(games))
	err := par.For(ctx, b.Workers, len(games), func(_, i int) error {
		g := games[i]
		own, cfg := *w, *w.Settings.(*jobselect.Config)
		cfg.Placement, own.Settings = g.placement, &cfg
		e, err := own.JobSelect(traces.Test, 1)
		if err != nil {
			return err
		}
		c, err := arena.OpenCheckpoint(filepath.Join(work, "run"), e.Spec())
		if err != nil {
			return err
		}
		p, err := arena.NewPolicy(&c.Cfg, e.Spec(), bytes.NewReader(c.Weights))
		if err != nil {
			return err
		}
		var m measure
		m.begin(e)
		e.Watch(&m)
		ep := testEpisode(g.window)
		if _, _, err := agents.NewPlayer(e, p).Play(ctx, ep, rng.Stream(ep.Seed, "eval/act")); err != nil {
			return fmt.Errorf("window %d: %w", g.window, err)
		}
		name := "topdrl-" + agent
		if g.placement != "closest-b" {
			name += " + " + g.placement
		}
		out[i] = m.rows(map[string]string{"stage": st.Name, "policy": name, "window": fmt.Sprint(g.window), "seed": fmt.Sprint(seed)})
		b.Progress(int64(i), int64(len(games)))
		return nil
	})
	return slices.Concat(out...), err
}

// playRules plays the rules of a stage on the test windows.
func (s *settings) playRules(ctx context.Context, b *study.Bench, w *arena.World, st *stage) ([]study.Row, error) {
	n := min(s.Windows, w.Count(traces.Test))
	type game struct {
		rule         rule
		draw, window int
	}
	var games []game
	for _, r := range st.rules() {
		draws := 1
		if r.random() {
			draws = s.Draws
		}
		for d := range draws {
			for i := range n {
				games = append(games, game{r, d, i})
			}
		}
	}
	type bench struct { // a worker's
		env      *sched.Env
		policies map[string]heuristic.Policy
	}
	benches := make([]bench, b.Workers)
	out := make([][]study.Row, len(games))
	err := par.For(ctx, b.Workers, len(games), func(worker, i int) error {
		h, g := &benches[worker], games[i]
		if h.env == nil {
			e, err := w.JobSelect(traces.Test, 1)
			if err != nil {
				return err
			}
			h.env, h.policies = e, map[string]heuristic.Policy{}
		}
		p := h.policies[g.rule.name]
		if p == nil {
			c := heuristic.DefaultConfig()
			c.Order, c.Admission, c.Placement, c.Estimates = g.rule.order, g.rule.admission, g.rule.placement, w.Settings.(*jobselect.Config).Estimates
			var err error
			if p, err = heuristic.New(c); err != nil {
				return err
			}
			h.policies[g.rule.name] = p
		}
		ep := testEpisode(g.window)
		p.Reseed(rng.At(ep.Seed, uint64(g.draw)))
		var m measure
		m.begin(h.env)
		if err := h.env.Simulate(ctx, ep, p, &m); err != nil {
			return fmt.Errorf("%s on window %d: %w", g.rule.name, g.window, err)
		}
		labels := map[string]string{"stage": st.Name, "policy": g.rule.name, "window": fmt.Sprint(g.window)}
		if g.rule.random() {
			labels["seed"] = fmt.Sprint(g.draw + 1)
		}
		out[i] = m.rows(labels)
		b.Progress(int64(i), int64(len(games)))
		return nil
	})
	return slices.Concat(out...), err
}
