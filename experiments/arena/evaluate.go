package arena

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/env/heuristic"
	"clustergym/env/jobselect"
	"clustergym/env/metrics"
	"clustergym/env/sched"
	"clustergym/env/sim"
	"clustergym/experiments/config"
	"clustergym/experiments/ladder"
	"clustergym/experiments/report"
	"clustergym/experiments/statistic"
	"clustergym/experiments/workload"
	"clustergym/internal/par"
	"clustergym/internal/rng"
	"clustergym/traces"
)

// contestant is one policy in a comparison. Random ones are played once for each seed.
type contestant struct {
	name, kind string
	random     bool
	missing    string // why it has no results
	trained    string // the estimates of a checkpoint's run
	// nothing is set for schedulers that do not ask for run times. Rules in the action space have them in any case, as
	// environments choose by them which jobs can be acted on.
	nothing bool
	knows   bool // it knows the whole window beforehand
	// player makes an instance that plays on e; every worker has its own. It is nil for external policies.
	player func(e sched.Arena) (player, error)
}

// agent returns whether the comparison is about c.
func (c *contestant) agent() bool {
	return c.missing == "" && (c.kind == report.KindCheckpoint || c.kind == report.KindExternal)
}

// whole returns whether c can play a whole part. A search in hindsight would have to play it thousands of times.
func (c *contestant) whole() bool { return c.player != nil && !c.knows }

// player plays one episode to its end before an audience. info is that of the last time step, nil for a scheduler that
// replaces the agent; it is valid until the next episode.
type player func(ctx context.Context, ep env.Episode, seed uint64, c audience) (info []float64, err error)

// audience sees every point of an episode. End is called if the episode was truncated before the last job had finished.
type audience interface {
	sim.Observer
	End(v *sim.View)
}

var _ audience = (*metrics.Collector)(nil)

// newContestant returns a contestant that plays a rival of cfg: a rule through the action space, a heuristic directly on the
// simulator, one that looks ahead, or the schedule found in hindsight.
func (w *World) newContestant(cfg *config.Config, p config.Rival) contestant {
	if p.Hindsight {
		return w.hindsight(cfg, p)
	}
	if p.Rollout != nil && p.Rule == nil {
		return w.looking(p)
	}
	if p.Rule != nil {
		return contestant{name: p.Name, kind: "slots", random: p.Rule.Draws, player: func(e sched.Arena) (player, error) {
			rule, err := p.Rule.Policy(e)
			if err != nil {
				return nil, err
			}
			return policyPlayer(e, rule), nil
		}}
	}
	return contestant{name: p.Name, kind: "heuristic", random: p.Sched.Order == "random", nothing: !p.Sched.Estimating(), player: func(e sched.Arena) (player, error) {
		h, err := heuristic.New(p.Sched)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, ep env.Episode, seed uint64, c audience) ([]float64, error) {
			// Every policy sees the same estimates of an episode; only a random order draws from the seed.
			h.Reseed(ep.Seed)
			if p.Sched.Order == "random" {
				h.Reseed(seed)
			}
			return nil, e.Simulate(ctx, ep, h, c)
		}, nil
	}}
}

// policyPlayer returns a player of a policy that acts through its environment.
func policyPlayer(e sched.Arena, p agents.Policy) player {
	play := agents.NewPlayer(e, p)
	return func(ctx context.Context, ep env.Episode, seed uint64, c audience) ([]float64, error) {
		e.Watch(c)
		defer e.Watch(nil)
		switch _, _, err := play.Play(ctx, ep, rng.Stream(seed, "eval/act")); {
		case errors.Is(err, sched.ErrUndecided): // c has collected the window, which has the same result for every policy
			return nil, nil
		case err != nil:
			return nil, err
		}
		ts := play.TimeStep()
		if view := e.View(); ts.Kind == env.Truncated && !view.Over() { // otherwise c has seen the end itself
			c.End(view)
		}
		return ts.Info, nil
	}
}

// evaluation plays contestants on one part of a world.
type evaluation struct {
	world   *World
	cfg     *config.Eval
	part    traces.Part
	windows int
	seeds   int // for random contestants
	workers int
}

// count returns how many windows to play, at most n; if there is none, the error is the user's mistake.
func (w *World) count(part traces.Part, n int) (int, error) {
	have := w.Workload.Windows.Count(part)
	if have == 0 {
		_, _, _, err := w.Workload.Windows.At(part, 0, 0)
		return 0, w.About.WithFlags(&workload.InputError{Err: fmt.Errorf("%s: %w", w.Trace.File, err)})
	}
	return min(n, have), nil
}

// episode returns window i of the part; its seed decides models and noise equally for all policies.
func (v *evaluation) episode(i int) env.Episode {
	return env.Episode{Seed: env.EpisodeSeed(rng.At(v.cfg.Seed, rng.Hash("eval windows")), i), Window: i}
}

// result is the result of one policy on one window: the summary of its jobs and the environment's metric.
type result struct {
	metrics.Summary
	score float64
}

// play returns the results [seed][window] of each contestant; external ones have none. Any worker calls tick when a game
// ends.
func (v *evaluation) play(ctx context.Context, cs []contestant, tick func()) ([][][]result, error) {
	type game struct{ contestant, seed, window int }
	var games []game
	out := make([][][]result, len(cs))
	for c := range cs {
		if cs[c].player == nil {
			continue
		}
		seeds := 1
		if cs[c].random {
			seeds = max(1, v.seeds)
		}
		out[c] = make([][]result, seeds)
		for s := range seeds {
			out[c][s] = make([]result, v.windows)
			for w := range v.windows {
				games = append(games, game{c, s, w})
			}
		}
	}
	type hand struct {
		env     sched.Arena
		players []player
		c       metrics.Collector
	}
	hands, metric := make([]hand, max(1, v.workers)), v.world.About.Metric
	err := par.For(ctx, v.workers, len(games), func(worker, i int) error {
		h, g := &hands[worker], games[i]
		if h.env == nil {
			e, err := v.world.NewEnv(v.part, 1)
			if err != nil {
				return err
			}
			h.env, h.players = e, make([]player, len(cs))
			h.c.Keep = func(pos int) bool { return pos >= e.First() }
		}
		if h.players[g.contestant] == nil {
			p, err := cs[g.contestant].player(h.env)
			if err != nil {
				return err
			}
			h.players[g.contestant] = p
		}
		h.c.Reset()
		ep := v.episode(g.window)
		info, err := h.players[g.contestant](ctx, ep, rng.At(ep.Seed, uint64(g.seed)), &h.c)
		if err != nil {
			return fmt.Errorf("%s on window %d: %w", cs[g.contestant].name, g.window, err)
		}
		r := result{Summary: h.c.Summary(0, 0)}
		r.score = metric.Of(&r.Summary, info)
		out[g.contestant][g.seed][g.window] = r
		if tick != nil {
			tick()
		}
		return nil
	})
	return out, err
}

// report computes statistics of the results. Agents are compared with every other policy.
func (v *evaluation) report(cs []contestant, played [][][]result) (*report.Report, error) {
	est := v.world.About.Cut(v.world.Settings).Estimates
	r := &report.Report{Estimates: est, Rung: ladder.Rung(est)}
	if v.world.About.ID != jobselect.ID {
		r.Env, r.Metric = v.world.About.ID, v.world.About.Metric.Key
	}
	for i := range v.windows {
		_, counted, first, err := v.world.Workload.Windows.At(v.part, 0, i)
		if err != nil {
			return nil, err
		}
		r.Windows = append(r.Windows, report.WindowInfo{Seed: v.episode(i).Seed, FirstJob: first, Jobs: len(counted)})
	}
	pick := func(c int, f func(*result) float64) statistic.Sample {
		s := make(statistic.Sample, len(played[c]))
		for k, row := range played[c] {
			for i := range row {
				s[k] = append(s[k], f(&row[i]))
			}
		}
		return s
	}
	jct := func(s *result) float64 { return s.JCT.Mean }
	bounded := func(s *result) float64 { return s.BoundedSlowdown.Mean }
	score := func(s *result) float64 { return s.score }
	// scored returns whether contestant c has a metric that is not one of the simulator's.
	scored := func(c int) bool { return r.HasScores() && !math.IsNaN(played[c][0][0].score) }
	for c := range cs {
		if cs[c].missing != "" {
			r.Policies = append(r.Policies, report.PolicyReport{Name: cs[c].name, Kind: cs[c].kind, Missing: cs[c].missing})
			continue
		}
		stat := func(f func(*result) float64) statistic.Statistic {
			return statistic.Describe(v.cfg.Seed, pick(c, f))
		}
		p := report.PolicyReport{Name: cs[c].name, Kind: cs[c].kind, Trained: cs[c].trained, Nothing: cs[c].nothing, Knows: cs[c].knows, Metrics: &report.PolicyMetrics{
			JCT:             stat(jct),
			Wait:            stat(func(s *result) float64 { return s.Wait.Mean }),
			FirstWait:       stat(func(s *result) float64 { return s.FirstWait.Mean }),
			Slowdown:        stat(func(s *result) float64 { return s.Slowdown.Mean }),
			BoundedSlowdown: stat(bounded),
			JCT99:           stat(func(s *result) float64 { return s.JCT.P99 }),
			Makespan:        stat(func(s *result) float64 { return s.Makespan }),
			Utilization:     stat(func(s *result) float64 { return s.Utilization }),
			Effective:       stat(func(s *result) float64 { return s.Effective }),
		}}
		for _, row := range played[c] {
			for i := range row {
				p.Metrics.Unfinished += row[i].Unfinished
			}
		}
		if scored(c) {
			s := stat(score)
			p.Metrics.Score = &s
		}
		r.Policies = append(r.Policies, p)
	}
	agents := slices.ContainsFunc(cs, func(c contestant) bool { return c.agent() })
	for a := range cs {
		if cs[a].missing != "" || agents && !cs[a].agent() {
			continue
		}
		for b := range cs {
			if a == b || cs[b].missing != "" || !agents && b < a {
				continue
			}
			r.Paired = append(r.Paired,
				statistic.Compare(v.cfg.Seed, cs[a].name, cs[b].name, "jct_s", pick(a, jct), pick(b, jct), false),
				statistic.Compare(v.cfg.Seed, cs[a].name, cs[b].name, "bounded_slowdown", pick(a, bounded), pick(b, bounded), false))
			if scored(a) && scored(b) {
				r.Paired = append(r.Paired, statistic.Compare(v.cfg.Seed, cs[a].name, cs[b].name, r.Metric, pick(a, score), pick(b, score), r.Counts().Higher))
			}
		}
	}
	return r, nil
}

// whole is a whole part as a single window.
type whole struct {
	jobs            []traces.Job
	warm            int
	first           int
	sched.Foresight // of the workload
}

// At implements sched.Windows.
func (w *whole) At(traces.Part, uint64, int) (warm, counted []traces.Job, first int, err error) {
	return w.jobs[:w.warm], w.jobs[w.warm:], w.first + w.warm, nil
}

// Jobs implements envs.Windows.
func (w *whole) Jobs(traces.Part) []traces.Job { return w.jobs }

// playWhole runs every contestant once over the whole part, but for the external ones and those that search windows.
func (v *evaluation) playWhole(ctx context.Context, cs []contestant, tick func()) (*report.WholeReport, error) {
	cs = slices.DeleteFunc(slices.Clone(cs), func(c contestant) bool { return !c.whole() })
	jobs := v.world.Workload.Windows.Jobs(v.part)
	_, _, first, err := v.world.Workload.Windows.At(v.part, 0, 0)
	if err != nil {
		return nil, err
	}
	warm := v.world.Workload.Windows.Warm()
	all := &whole{jobs: jobs, warm: warm, first: first - warm}
	all.Foresight, _ = v.world.Source.Windows.(sched.Foresight)
	counted := len(jobs) - warm
	cut := counted / 20
	r := &report.WholeReport{FirstJob: all.first + warm, Jobs: counted, Counted: counted - 2*cut, Policies: make([]report.WholePolicy, len(cs))}
	err = par.For(ctx, v.workers, len(cs), func(_, i int) error {
		src := *v.world.Source
		src.Windows = all
		made, err := v.world.open(v.world.judged(), &src, v.part)
		if err != nil {
			return err
		}
		e := made.(sched.Arena)
		p, err := cs[i].player(e)
		if err != nil {
			return err
		}
		c := metrics.Collector{Keep: func(pos int) bool { return pos >= warm+cut && pos < warm+counted-cut }}
		ep := v.episode(0)
		if _, err := p(ctx, ep, ep.Seed, &c); err != nil {
			return fmt.Errorf("%s on the whole %v part: %w", cs[i].name, v.part, err)
		}
		r.Policies[i] = report.WholePolicy{Name: cs[i].name, Metrics: c.Summary(0, 0)}
		if tick != nil {
			tick()
		}
		return nil
	})
	return r, err
}
