package arena

import (
	"context"
	"fmt"

	"clustergym/env"
	"clustergym/env/vec"
	"clustergym/experiments/config"
	"clustergym/experiments/report"
	"clustergym/experiments/statistic"
	"clustergym/internal/plain"
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
func (p *Problem) Describe(cfg *config.Config) (facts []Fact) {
	if p.world.Recorded() {
		facts = append(facts, Factf("workload", "%v", p.world.Trace), Factf("", "%d to train on, %d for validation, %d to be judged on",
			p.world.Count(traces.Training), p.world.Count(traces.Validation), p.world.Count(traces.Test)))
	}
	about := p.About.ID
	if p.About.MaxSteps > 0 {
		about += fmt.Sprintf(", at most %d steps", p.About.MaxSteps)
	}
	if report.Number(p.About.Solved) != nil {
		about += fmt.Sprintf(", solved at a mean return of %g", p.About.Solved)
	}
	return append(facts, Fact{"env", about}, Factf("", "best checkpoint by %s, judged on %s; training uses neither",
		plain.Count(p.runner(cfg, traces.Validation, cfg.Eval.Validation, 1).episodes, "validation episode", "validation episodes"),
		plain.Count(p.runner(cfg, traces.Test, cfg.Eval.Episodes, 1).episodes, "test episode", "test episodes")))
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
var streams = map[traces.Part]string{traces.Validation: "validation episodes", traces.Test: "test episodes"}

// episode returns episode i of a part, whose first seed is first: a recorded window, or else a generated episode.
func (p *Problem) episode(part traces.Part, first uint64, i int) env.Episode {
	ep := env.Episode{Seed: env.EpisodeSeed(first, i), Window: -1}
	if !p.world.About.Simulated() && !p.world.Recorded() { // episodes of all parts differ in their seeds alone
		return ep
	}
	if ep.Split = env.SplitValidation; part == traces.Test {
		ep.Split = env.SplitTest
	}
	if p.world.Recorded() {
		ep.Window = i
	}
	return ep
}

// Judge plays every policy on the same test episodes.
func (p *Problem) Judge(ctx context.Context, cfg config.Config, opt EvalOptions) (Comparison, error) {
	r, err := p.world.testing(ctx, &cfg, &opt)
	if err != nil {
		return nil, err
	}
	r.tick = counted(r.counts(), opt.Game)
	played, _, err := r.results(ctx)
	if err != nil {
		return nil, err
	}
	out := newEpisodeReport(p.About, &cfg, r.episodes)
	if p.world.Recorded() {
		out.File = p.world.Trace.File
	}
	scores := make([]statistic.Sample, len(played))
	for i, of := range played {
		out.Add(r.policies[i].name, r.policies[i].kind, each(of[0], returnOf), each(of[0], stepsOf))
		scores[i] = sample(of, scoreOf)
	}
	if d := p.world.About; d.Scheduling() {
		out.AddScores(d.Metric, scores)
	}
	return out, nil
}

// newEpisodeReport returns a report without policies.
func newEpisodeReport(s env.Spec, cfg *config.Config, episodes int) *report.EpisodeReport {
	return &report.EpisodeReport{Env: s.ID, Solved: report.Number(s.Solved), Episodes: episodes, Seed: cfg.Eval.Seed, Kernels: kernel.Set()}
}
