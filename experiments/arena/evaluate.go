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
	"clustergym/internal/fault"
	"clustergym/internal/par"
	"clustergym/internal/rng"
	"clustergym/traces"
)

// contestant is one policy in a comparison. Random ones are played once for each seed.
type contestant struct {
	name, kind string
	random     bool
	missing    string        // why it has no results
	trained    sim.Estimates // the estimates of a checkpoint's run
	// nothing is set for schedulers that do not ask for run times. Rules in the action space have them in any case, as
	// environments choose by them which jobs can be acted on.
	nothing bool
	knows   bool // it knows the whole window beforehand
	timed   bool // its choices depend on the clock
	// player makes an instance that plays on e; every worker has its own. It is nil for external policies.
	player func(e sched.Arena) (player, error)
}

// agent returns whether the comparison is about c.
func (c *contestant) agent() bool {
	return c.missing == "" && (c.kind == report.KindCheckpoint || c.kind == report.KindModel || c.kind == report.KindExternal)
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
	timed := p.Rollout != nil && p.Rollout.Budget.Time > 0
	if p.Rollout != nil && p.Rule == nil {
		c := w.looking(p)
		c.timed = timed
		return c
	}
	if p.Rule != nil {
		return contestant{name: p.Name, kind: "slots", timed: timed, random: p.Rule.Draws, player: func(e sched.Arena) (player, error) {
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

	elsewhere *elsewhere // who plays on other machines, nil = nobody
}

// count returns how many windows to play, at most n; if there is none, the error is the user's mistake.
func (w *World) count(part traces.Part, n int) (int, error) {
	have := w.Workload.Windows.Count(part)
	if have == 0 {
		_, _, _, err := w.Workload.Windows.At(part, 0, 0)
		return 0, w.About.WithFlags(&fault.Mistake{Err: fmt.Errorf("%s: %w", w.Trace.File, err)})
	}
	return min(n, have), nil
}

// TestEpisode returns test window i of cfg, or test episode i of one whose episodes are generated, as every policy is judged on it.
func TestEpisode(cfg *config.Config, i int) env.Episode {
	if cfg.Simulated() {
		return (&evaluation{cfg: &cfg.Eval}).episode(i)
	}
	return env.Episode{Seed: env.EpisodeSeed(rng.At(cfg.Eval.Seed, rng.Hash(testEpisodes)), i), Window: -1}
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
	games := v.list(cs)
	out := make([][][]result, len(cs))
	for c := range cs {
		if cs[c].player != nil {
			out[c] = make([][]result, v.seedsOf(&cs[c]))
			for s := range out[c] {
				out[c][s] = make([]result, v.windows)
			}
		}
	}
	err := v.each(ctx, cs, games, func(g game, r result) {
		out[g.contestant][g.seed][g.window] = r
		if tick != nil {
			tick()
		}
	})
	return out, err
}

// each plays games and hands the result of each to ended, which must not be shared by two games.
func (v *evaluation) each(ctx context.Context, cs []contestant, games []game, ended func(g game, r result)) error {
	if v.elsewhere != nil {
		return v.elsewhere.play(ctx, v, cs, games, ended)
	}
	hands := make([]hand, max(1, v.workers))
	return par.For(ctx, v.workers, len(games), func(worker, i int) error {
		r, err := v.game(ctx, cs, &hands[worker], games[i])
		if err == nil {
			ended(games[i], r)
		}
		return err
	})
}

// game names one episode of an evaluation. Window wholePart is the whole part.
type game struct{ contestant, seed, window int }

const wholePart = -1

// list returns the games of all contestants but the external ones.
func (v *evaluation) list(cs []contestant) (games []game) {
	for c := range cs {
		if cs[c].player == nil {
			continue
		}
		for s := range v.seedsOf(&cs[c]) {
			for w := range v.windows {
				games = append(games, game{c, s, w})
			}
		}
	}
	return games
}

// seedsOf returns how often c plays each window.
func (v *evaluation) seedsOf(c *contestant) int {
	if c.random {
		return max(1, v.seeds)
	}
	return 1
}

// hand is what one worker plays with.
type hand struct {
	env     sched.Arena
	players []player // of the contestants that it has played
	c       metrics.Collector
}

// game plays g with h.
func (v *evaluation) game(ctx context.Context, cs []contestant, h *hand, g game) (r result, err error) {
	if g.window == wholePart {
		r.Summary, err = v.wholly(ctx, &cs[g.contestant])
		return r, err
	}
	if h.env == nil {
		e, err := v.world.NewEnv(v.part, 1)
		if err != nil {
			return r, err
		}
		h.env, h.players = e, make([]player, len(cs))
		h.c.Keep = func(pos int) bool { return pos >= e.First() }
	}
	if h.players[g.contestant] == nil {
		p, err := cs[g.contestant].player(h.env)
		if err != nil {
			return r, err
		}
		h.players[g.contestant] = p
	}
	h.c.Reset()
	ep := v.episode(g.window)
	info, err := h.players[g.contestant](ctx, ep, rng.At(ep.Seed, uint64(g.seed)), &h.c)
	if err != nil {
		return r, fmt.Errorf("%s on window %d: %w", cs[g.contestant].name, g.window, err)
	}
	r.Summary = h.c.Summary(0, 0)
	r.score = v.world.About.Metric.Of(&r.Summary, info)
	return r, nil
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

// entire returns the whole part as a single window, and how many jobs at each end of it are not counted.
func (v *evaluation) entire() (all *whole, cut int, err error) {
	_, _, first, err := v.world.Workload.Windows.At(v.part, 0, 0)
	if err != nil {
		return nil, 0, err
	}
	warm := v.world.Workload.Windows.Warm()
	all = &whole{jobs: v.world.Workload.Windows.Jobs(v.part), warm: warm, first: first - warm}
	all.Foresight, _ = v.world.Source.Windows.(sched.Foresight)
	return all, (len(all.jobs) - warm) / 20, nil
}

// playWhole runs every contestant once over the whole part, but for the external ones and those that search windows.
func (v *evaluation) playWhole(ctx context.Context, cs []contestant, tick func()) (*report.WholeReport, error) {
	all, cut, err := v.entire()
	if err != nil {
		return nil, err
	}
	counted := len(all.jobs) - all.warm
	r := &report.WholeReport{FirstJob: all.first + all.warm, Jobs: counted, Counted: counted - 2*cut, Policies: []report.WholePolicy{}}
	var games []game
	place := make([]int, len(cs)) // of contestants in the report
	for c := range cs {
		if cs[c].whole() {
			place[c] = len(games)
			games = append(games, game{c, 0, wholePart})
			r.Policies = append(r.Policies, report.WholePolicy{Name: cs[c].name})
		}
	}
	err = v.each(ctx, cs, games, func(g game, got result) {
		r.Policies[place[g.contestant]].Metrics = got.Summary
		if tick != nil {
			tick()
		}
	})
	return r, err
}

// wholly plays c on the whole part, and returns the summary of the jobs that count.
func (v *evaluation) wholly(ctx context.Context, c *contestant) (metrics.Summary, error) {
	all, cut, err := v.entire()
	if err != nil {
		return metrics.Summary{}, err
	}
	src := *v.world.Source
	src.Windows = all
	made, err := v.world.open(v.world.judged(), &src, v.part)
	if err != nil {
		return metrics.Summary{}, err
	}
	p, err := c.player(made.(sched.Arena))
	if err != nil {
		return metrics.Summary{}, err
	}
	counted := len(all.jobs) - all.warm
	m := metrics.Collector{Keep: func(pos int) bool { return pos >= all.warm+cut && pos < all.warm+counted-cut }}
	ep := v.episode(0)
	if _, err := p(ctx, ep, ep.Seed, &m); err != nil {
		return metrics.Summary{}, fmt.Errorf("%s on the whole %v part: %w", c.name, v.part, err)
	}
	return m.Summary(0, 0), nil
}
