package arena

import (
	"bytes"
	"context"
	"fmt"
	"math"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/env/jobselect"
	"clustergym/env/vec"
	"clustergym/experiments/config"
	"clustergym/experiments/envs"
	"clustergym/experiments/report"
	"clustergym/experiments/rundir"
	"clustergym/experiments/statistic"
	"clustergym/internal/fault"
	"clustergym/internal/par"
	"clustergym/internal/plain"
	"clustergym/internal/rng"
	"clustergym/nets/kernel"
	"clustergym/traces"
)

// Problem is an environment in which policies are trained and judged through its actions only, without a simulator on which
// other schedulers could play. It is immutable and can be shared.
type Problem struct {
	About env.Spec
	world *World
}

// NewProblem loads the environment of cfg.
func NewProblem(cfg *config.Config) (*Problem, error) {
	w, err := NewWorld(cfg)
	if err != nil {
		return nil, err
	}
	return w.problem()
}

// problem returns the world as a Problem.
func (w *World) problem() (*Problem, error) {
	p := &Problem{world: w}
	e, err := p.Open()
	if err != nil {
		return nil, err
	}
	defer e.Close() //nolint:errcheck // it holds nothing
	p.About = e.Spec()
	return p, nil
}

// Open returns an environment over the training part.
func (p *Problem) Open() (env.Env, error) {
	return p.world.open(p.world.Settings, p.world.Source, traces.Training)
}

// splits returns whether episodes belong to a training, a validation or a test part.
func (p *Problem) splits() bool { return p.world.About.Simulated() || p.world.Recorded() }

// Spec implements Arena.
func (p *Problem) Spec(*config.Config) (env.Spec, error) { return p.About, nil }

// NewVec returns the environments that cfg trains in.
func (p *Problem) NewVec(cfg *config.Config, workers int) (*vec.Vec, error) {
	all := make([]env.Env, cfg.Train.Envs)
	for i := range all {
		e, err := p.Open()
		if err != nil {
			return nil, err
		}
		all[i] = e
	}
	return vec.New(vec.Config{Workers: max(1, min(workers, len(all)/worthwhile)), Autoreset: vec.SameStep}, all...)
}

// worthwhile is the smallest number of environments for which a goroutine of their own pays off: a step of a problem takes
// some hundred nanoseconds, and waking a goroutine takes some microseconds.
const worthwhile = 128

// Describe implements Arena.
func (p *Problem) Describe(cfg *config.Config, say func(format string, args ...any)) {
	if p.world.Recorded() {
		say("workload  %v", p.world.Trace)
		say("          %d to train on, %d for validation, %d to be judged on",
			p.world.Count(traces.Training), p.world.Count(traces.Validation), p.world.Count(traces.Test))
	}
	limit, solved := "", ""
	if p.About.MaxSteps > 0 {
		limit = fmt.Sprintf(", at most %d steps", p.About.MaxSteps)
	}
	if report.Number(p.About.Solved) != nil {
		solved = fmt.Sprintf(", solved at a mean return of %g", p.About.Solved)
	}
	say("env       %s%s%s", p.About.ID, limit, solved)
	say("          best checkpoint by %s, judged on %s; training uses neither",
		plain.Count(p.episodes(validationEpisodes, cfg.Eval.Validation), "validation episode", "validation episodes"), plain.Count(p.episodes(testEpisodes, cfg.Eval.Episodes), "test episode", "test episodes"))
}

// Origin implements Arena.
func (p *Problem) Origin() map[string]string {
	if p.world.Recorded() {
		return p.world.Origin()
	}
	return nil
}

// Same implements Arena.
func (p *Problem) Same(origin map[string]string, dir string) error {
	if p.world.Recorded() {
		return p.world.Same(origin, dir)
	}
	return nil
}

// The streams of seeds of validation and test episodes. Training uses another stream.
const (
	validationEpisodes = "validation episodes"
	testEpisodes       = "test episodes"
)

// episode returns episode i of the stream called name, whose first seed is first: a recorded window, or else a generated
// episode.
func (p *Problem) episode(name string, first uint64, i int) env.Episode {
	ep := env.Episode{Seed: env.EpisodeSeed(first, i), Window: -1}
	if !p.splits() {
		return ep
	}
	if ep.Split = env.SplitValidation; name == testEpisodes {
		ep.Split = env.SplitTest
	}
	if p.world.Recorded() {
		ep.Window = i
	}
	return ep
}

// episodes returns how many episodes of the stream called name to play, at most n.
func (p *Problem) episodes(name string, n int) int {
	part := traces.Validation
	if name == testEpisodes {
		part = traces.Test
	}
	if p.world.Recorded() {
		return min(n, p.world.Count(part))
	}
	return n
}

// games are the episodes of one policy: returns, lengths, and values of the environment's metric.
type games struct{ returns, lengths, scores []float64 }

// entrant is one policy in a comparison.
type entrant struct {
	name, kind string
	draws      bool
	knows      bool // what no agent sees
	policy     func(e env.Env) (agents.Policy, error)
	planner    *envs.Planner
}

// play plays n episodes of the stream called name on workers goroutines, for a policy that draws with the seed k of
// eval.seeds. Any goroutine calls tick when an episode ends.
func (p *Problem) play(ctx context.Context, workers, n int, seed uint64, name string, k int, who *entrant, tick func()) (games, error) {
	g := games{make([]float64, n), make([]float64, n), make([]float64, n)}
	first := rng.At(seed, rng.Hash(name))
	type hand struct {
		env    env.Env
		player *agents.Player
	}
	hands := make([]hand, max(1, workers))
	metric := p.world.About.Metric
	err := par.For(ctx, workers, n, func(worker, i int) error {
		h := &hands[worker]
		if h.env == nil {
			e, err := p.Open()
			if err != nil {
				return err
			}
			h.env = e
			if who.planner == nil {
				a, err := who.policy(e)
				if err != nil {
					return err
				}
				h.player = agents.NewPlayer(e, a)
			}
		}
		ep := p.episode(name, first, i)
		var err error
		if who.planner != nil {
			g.returns[i], g.lengths[i] = math.NaN(), math.NaN()
			g.scores[i], err = who.planner.Score(ctx, h.env, ep)
		} else {
			// The policy's random draws come from the episode's seed too.
			src, steps := ep.Seed, 0
			if k > 0 {
				src = rng.At(ep.Seed, uint64(k))
			}
			g.returns[i], steps, err = h.player.Play(ctx, ep, rng.Stream(src, "eval/act"))
			g.lengths[i] = float64(steps)
			if metric.Of != nil && err == nil && !p.world.About.Simulated() {
				g.scores[i] = metric.Of(nil, h.player.TimeStep().Info)
			}
		}
		if err != nil {
			return fmt.Errorf("%s, episode %d: %w", p.About.ID, i, err)
		}
		if tick != nil {
			tick()
		}
		return nil
	})
	return g, err
}

// Validate implements Arena.
func (p *Problem) Validate(cfg *config.Config, agent Trainee, workers int) (*rundir.Validation, error) {
	weights, err := weightsOf(agent)
	if err != nil {
		return nil, err
	}
	who := &entrant{policy: func(e env.Env) (agents.Policy, error) { return NewPolicy(cfg, e.Spec(), bytes.NewReader(weights)) }}
	n := p.episodes(validationEpisodes, cfg.Eval.Validation)
	g, err := p.play(context.Background(), workers, n, cfg.Eval.Seed, validationEpisodes, 0, who, nil)
	if err != nil {
		return nil, err
	}
	return p.validation(cfg, g), nil
}

// byScore returns whether validations of cfg go by the metric of the environment, not by the return.
func (p *Problem) byScore(cfg *config.Config) bool {
	return p.world.About.Metric.Of != nil && cfg.Eval.Choose != config.ByReturn && !p.world.About.Simulated()
}

// validation returns the validation of a policy that played every validation episode.
func (p *Problem) validation(cfg *config.Config, g games) *rundir.Validation {
	v := &rundir.Validation{Episodes: len(g.returns)}
	if p.byScore(cfg) {
		return scored(cfg, p.world.About.Metric, g.scores, v)
	}
	mean := statistic.Mean(g.returns)
	v.Return = &mean
	return v
}

// Judge plays every policy on the same test episodes.
func (p *Problem) Judge(ctx context.Context, cfg config.Config, opt EvalOptions) (Comparison, error) {
	if opt.External != nil {
		return nil, fault.Mistakef("--serve: %s has no windows that other programs could play too; want an environment on the simulator, such as %s", cfg.Env.ID, jobselect.ID)
	}
	r, err := p.compare(ctx, &cfg, &opt)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// entrants returns the checkpoints of opt and the policies of cfg.
func (p *Problem) entrants(ctx context.Context, cfg *config.Config, opt *EvalOptions) ([]entrant, error) {
	var all []entrant
	for _, dir := range opt.Checkpoints {
		c, err := OpenCheckpoint(dir, p.About)
		if err != nil {
			return nil, err
		}
		all = append(all, entrant{name: c.Name, kind: report.KindCheckpoint, policy: func(e env.Env) (agents.Policy, error) {
			return NewPolicy(&c.Cfg, e.Spec(), bytes.NewReader(c.Weights))
		}})
	}
	for i := range opt.Models {
		e, err := modelEntrant(ctx, &opt.Models[i], p.About)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	for _, name := range cfg.Policies() {
		r, err := config.ParseRival(name, p.world.About, cfg.Env.Settings)
		if err != nil {
			return nil, &fault.Mistake{Err: err}
		}
		all = append(all, p.entrant(r))
	}
	if len(all) == 0 {
		return nil, fault.Mistakef("nothing to evaluate: name checkpoints, or policies (%s)", config.FormsOf(p.world.About))
	}
	names := make([]contestant, len(all))
	for i := range all {
		names[i].name = all[i].name
	}
	if err := distinct(names, opt.Checkpoints); err != nil {
		return nil, err
	}
	for i := range all {
		all[i].name = names[i].name
	}
	return all, nil
}

// entrant returns a rival as an entrant. It is a rule or a planner.
func (p *Problem) entrant(r config.Rival) entrant {
	if r.Planner != nil {
		return entrant{name: r.Name, kind: "planner", draws: r.Planner.Draws, planner: r.Planner}
	}
	kind := "baseline"
	if p.world.About.Scheduling() {
		kind = "slots"
	}
	return entrant{name: r.Name, kind: kind, draws: r.Rule.Draws, knows: r.Rule.Knows, policy: r.Rule.Policy}
}

func (p *Problem) compare(ctx context.Context, cfg *config.Config, opt *EvalOptions) (*report.EpisodeReport, error) {
	all, err := p.entrants(ctx, cfg, opt)
	if err != nil {
		return nil, err
	}
	n, d := p.episodes(testEpisodes, cfg.Eval.Episodes), p.world.About
	seeds := func(e *entrant) int {
		if e.draws && d.Scheduling() && e.planner == nil {
			return cfg.Eval.Seeds
		}
		return 1
	}
	total := 0
	for i := range all {
		total += seeds(&all[i]) * n
	}
	tick := counted(total, opt.Game)
	r := newEpisodeReport(p.About, cfg, n)
	if p.world.Recorded() {
		r.File = p.world.Trace.File
	}
	scores := make([]statistic.Sample, len(all))
	for i := range all {
		var played games
		for k := range seeds(&all[i]) {
			g, err := p.play(ctx, opt.Workers, n, cfg.Eval.Seed, testEpisodes, k, &all[i], tick)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", all[i].name, err)
			}
			if k == 0 {
				played = g
			}
			scores[i] = append(scores[i], g.scores)
		}
		r.Add(all[i].name, all[i].kind, played.returns, played.lengths)
	}
	if d.Scheduling() {
		r.AddScores(d.Metric, scores)
	}
	return r, nil
}

// newEpisodeReport returns a report without policies.
func newEpisodeReport(s env.Spec, cfg *config.Config, episodes int) *report.EpisodeReport {
	return &report.EpisodeReport{Env: s.ID, Solved: report.Number(s.Solved), Episodes: episodes, Seed: cfg.Eval.Seed, Kernels: kernel.Set()}
}
