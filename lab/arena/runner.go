package arena

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"clustergym/env"
	"clustergym/env/sched"
	"clustergym/internal/par"
	"clustergym/internal/rng"
	"clustergym/internal/statistic"
	"clustergym/lab/config"
	"clustergym/simulator/metrics"
	"clustergym/traces"
)

// runner plays policies on the same episodes of a part: windows on the simulator, or episodes through actions alone. It
// plays on goroutines of this process, on workers of other machines too where there is a queue (remote), and leaves
// external policies to their programs (externals). Its results do not depend on who plays what.
type runner struct {
	scenario *Scenario
	cfg      *config.Config
	part     traces.Part
	policies []policy
	windows  bool // episodes are windows on the simulator, whose jobs are measured
	entire   bool // policies also play the whole part, those that can
	episodes int
	seeds    int // of policies that draw
	workers  int
	episode  func(i int) env.Episode
	open     func() (env.Env, error)
	tick     func() // called by any worker when a game ends; nil = nobody counts
	remote   *remote
	streams  *streams // what is played in place of windows; nil = windows are

	local par.Local[*worker]
}

// game is one policy on one episode; a policy that draws plays an episode several times. Episode wholePart is the whole
// part.
type game struct{ policy, seed, episode int }

const wholePart = -1

// result is the result of a game.
type result struct {
	metrics.Summary // of the jobs of a window
	outcome
	stream *streamResult // of a stream
}

// worker is what one goroutine plays with: an environment, and the players of the policies that it has played.
type worker struct {
	env     env.Env
	players []player
	seen    metrics.Collector
	stream  *watching // in place of seen where streams are played
}

// runner returns a runner of windows of a part on the simulator, at most n. A part without windows is the user's
// mistake.
func (w *Scenario) runner(cfg *config.Config, part traces.Part, n, workers int) (*runner, error) {
	n, err := w.count(part, n)
	if err != nil {
		return nil, err
	}
	r := &runner{scenario: w, cfg: cfg, part: part, windows: true, episodes: n, seeds: cfg.Eval.Seeds, workers: workers}
	r.episode = func(i int) env.Episode { return windowOf(&cfg.Eval, i) }
	r.open = func() (env.Env, error) { return w.NewEnv(part, 1) }
	r.local.Make = r.worker
	return r, nil
}

// windowOf returns window i of any part; its seed decides models and noise equally for all policies.
func windowOf(cfg *config.Eval, i int) env.Episode {
	return env.Episode{Seed: env.EpisodeSeed(rng.At(cfg.Seed, rng.Hash("eval windows")), i), Window: i}
}

// through returns a runner of episodes of a part through actions alone, as many as there are up to n.
func (w *Scenario) through(cfg *config.Config, part traces.Part, n, workers int) *runner {
	r := &runner{scenario: w, cfg: cfg, part: part, episodes: n, seeds: cfg.Eval.Seeds, workers: workers, open: w.Open}
	if w.Recorded() {
		r.episodes = min(n, w.Count(part))
	}
	first := rng.At(cfg.Eval.Seed, rng.Hash(seedStreams[part]))
	r.episode = func(i int) env.Episode { return w.episode(part, first, i) }
	r.local.Make = r.worker
	return r
}

// episode returns episode i of a part, whose first seed is first: a recorded window, or else a generated episode.
func (w *Scenario) episode(part traces.Part, first uint64, i int) env.Episode {
	ep := env.Episode{Seed: env.EpisodeSeed(first, i), Window: -1}
	if !w.About.Simulated() && !w.Recorded() { // episodes of all parts differ in their seeds alone
		return ep
	}
	if ep.Split = env.SplitValidation; part == traces.Test {
		ep.Split = env.SplitTest
	}
	if w.Recorded() {
		ep.Window = i
	}
	return ep
}

// worker makes what a worker plays with.
func (r *runner) worker() (*worker, error) {
	e, err := r.open()
	if err != nil {
		return nil, err
	}
	s := &worker{env: e, players: make([]player, len(r.policies))}
	switch {
	case r.streams != nil:
		s.stream = r.measure(e.(sched.Arena))
	case r.windows:
		s.seen.Keep = func(pos int) bool { return pos >= e.(sched.Arena).First() }
	}
	return s, nil
}

// results returns the results of games: [seed][episode] of each policy, none of external ones, and of each policy that
// played it the summary of the whole part.
func (r *runner) results(ctx context.Context) (of [][][]result, whole []metrics.Summary, err error) {
	of, whole = make([][][]result, len(r.policies)), make([]metrics.Summary, len(r.policies))
	for p := range r.policies {
		if r.policies[p].player != nil {
			of[p] = make([][]result, r.plays(&r.policies[p]))
			for s := range of[p] {
				of[p][s] = make([]result, r.episodes)
			}
		}
	}
	err = r.run(ctx, r.games(), func(g game, got result) {
		if g.episode == wholePart {
			whole[g.policy] = got.Summary
		} else {
			of[g.policy][g.seed][g.episode] = got
		}
		if r.tick != nil {
			r.tick()
		}
	})
	return of, whole, err
}

// games returns the games of all policies but the external ones, in the order in which they begin. Any order gives the
// same results.
func (r *runner) games() (games []game) {
	for p := range r.policies {
		if r.policies[p].player == nil {
			continue
		}
		for s := range r.plays(&r.policies[p]) {
			for i := range r.episodes {
				games = append(games, game{p, s, i})
			}
		}
	}
	if r.streams != nil { // draw by draw, so that few draws are in memory at a time
		slices.SortStableFunc(games, func(a, b game) int { return a.episode - b.episode })
	}
	for p := range r.policies {
		if r.entire && r.policies[p].whole() {
			games = append(games, game{p, 0, wholePart})
		}
	}
	return games
}

// plays returns how often p plays each episode.
func (r *runner) plays(p *policy) int {
	if p.draws {
		return max(1, r.seeds)
	}
	return 1
}

// counts returns how many games there are, those of external policies included.
func (r *runner) counts() int {
	n := len(r.games())
	for p := range r.policies {
		if r.policies[p].player == nil {
			n += r.episodes
		}
	}
	return n
}

// counted returns a function that any worker calls when a game ends; it passes the number of ended games to fn.
func counted(all int, fn func(done, all int)) func() {
	if fn == nil {
		return func() {}
	}
	var mu sync.Mutex
	played := 0
	return func() {
		mu.Lock()
		defer mu.Unlock()
		played++
		fn(played, all)
	}
}

// run plays games and hands the result of each to ended, which must not be shared by two games.
func (r *runner) run(ctx context.Context, games []game, ended func(g game, got result)) error {
	if r.remote != nil {
		return r.remote.run(ctx, r, games, ended)
	}
	return r.here(ctx, games, ended)
}

// here is run on goroutines of this process alone.
func (r *runner) here(ctx context.Context, games []game, ended func(g game, got result)) error {
	return par.For(ctx, r.workers, len(games), func(_, i int) error {
		got, err := r.play(ctx, games[i])
		if err == nil {
			ended(games[i], got)
		}
		return err
	})
}

// play plays a game.
func (r *runner) play(ctx context.Context, g game) (got result, err error) {
	p := &r.policies[g.policy]
	if g.episode == wholePart {
		got.Summary, err = r.wholly(ctx, p)
		return got, err
	}
	err = r.local.Do(func(s *worker) error {
		if s.players[g.policy] == nil {
			var err error
			if s.players[g.policy], err = p.player(s.env); err != nil {
				return err
			}
		}
		got, err = r.playAt(ctx, s, g)
		if err != nil {
			return fmt.Errorf("%s on %s %d: %w", p.name, r.unit(), g.episode, err)
		}
		return nil
	})
	return got, err
}

// playAt plays a game with a worker that has its player.
func (r *runner) playAt(ctx context.Context, s *worker, g game) (got result, err error) {
	ep, play, metric := r.episode(g.episode), s.players[g.policy], r.scenario.About.Metric
	seed := rng.At(ep.Seed, uint64(g.seed))
	switch {
	case r.streams != nil:
		s.stream.Reset()
		if got.outcome, err = play(ctx, ep, seed, s.stream); err == nil {
			got.stream = r.streamed(s.stream).stream
			got.score = got.stream.mean(summed(metric.Key))
		}
	case r.windows:
		s.seen.Reset()
		if got.outcome, err = play(ctx, ep, seed, &s.seen); err == nil {
			got.Summary = s.seen.Summary(0, 0)
			got.score = metric.Of(&got.Summary, got.info)
		}
	default:
		if g.seed == 0 {
			seed = ep.Seed
		}
		got.outcome, err = play(ctx, ep, seed, nil)
		if err == nil && got.info != nil && metric.Of != nil && !r.scenario.About.Simulated() {
			got.score = metric.Of(nil, got.info)
		}
	}
	got.info = nil // the player's
	return got, err
}

// unit is what an episode is called.
func (r *runner) unit() string {
	switch {
	case r.streams != nil:
		return "stream"
	case r.windows:
		return "window"
	}
	return "episode"
}

// each returns a value of every result.
func each(row []result, value func(r *result) float64) []float64 {
	v := make([]float64, len(row))
	for i := range row {
		v[i] = value(&row[i])
	}
	return v
}

// sample is each for all plays of a policy.
func sample(played [][]result, value func(r *result) float64) statistic.Sample {
	s := make(statistic.Sample, len(played))
	for k, row := range played {
		s[k] = each(row, value)
	}
	return s
}

// The values of results that comparisons use.
func scoreOf(r *result) float64  { return r.score }
func returnOf(r *result) float64 { return r.ret }
func stepsOf(r *result) float64  { return r.steps }
