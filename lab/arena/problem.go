package arena

import (
	"context"
	"fmt"

	"clustergym/env"
	"clustergym/env/vec"
	"clustergym/internal/plain"
	"clustergym/internal/statistic"
	"clustergym/lab/config"
	"clustergym/lab/report"
	"clustergym/nets/kernel"
	"clustergym/traces"
)

// Problem is a Scenario in which policies are trained and judged through actions only, without a simulator on which
// other schedulers could play. It is immutable and can be shared.
type Problem struct {
	*Scenario
	About env.Spec
}

// NewProblem loads the environment of cfg.
func NewProblem(cfg *config.Config) (*Problem, error) {
	w, err := NewScenario(cfg)
	if err != nil {
		return nil, err
	}
	return w.problem()
}

// problem returns the scenario as a Problem.
func (w *Scenario) problem() (*Problem, error) {
	e, err := w.Open()
	if err != nil {
		return nil, err
	}
	defer e.Close() //nolint:errcheck // it holds nothing
	return &Problem{w, e.Spec()}, nil
}

// Spec implements Arena.
func (p *Problem) Spec(*config.Config) (env.Spec, error) { return p.About, nil }

// NewVec returns the environments that cfg trains in.
func (p *Problem) NewVec(cfg *config.Config, workers int) (*vec.Vec, error) {
	return vec.Open(cfg.Train.Envs, max(1, min(workers, cfg.Train.Envs/worthwhile)), p.Open)
}

// worthwhile is the smallest number of environments for which a goroutine of their own pays off: a step of a problem
// takes some hundred nanoseconds, and waking a goroutine takes some microseconds.
const worthwhile = 128

// Describe implements Arena.
func (p *Problem) Describe(cfg *config.Config) (facts []Fact) {
	if p.Recorded() {
		facts = append(facts, Factf("workload", "%v", p.Trace),
			Factf("", "%d to train on, %d for validation, %d to be judged on",
				p.Count(traces.Training), p.Count(traces.Validation), p.Count(traces.Test)))
	}
	about := p.About.ID
	if p.About.MaxSteps > 0 {
		about += fmt.Sprintf(", at most %d steps", p.About.MaxSteps)
	}
	if report.Number(p.About.Solved) != nil {
		about += fmt.Sprintf(", solved at a mean return of %g", p.About.Solved)
	}
	return append(facts, Fact{"env", about}, Factf("", "best checkpoint by %s, judged on %s; training uses neither",
		plain.Count(p.through(cfg, traces.Validation, cfg.Eval.Validation, 1).episodes, "validation episode",
			"validation episodes"),
		plain.Count(p.through(cfg, traces.Test, cfg.Eval.Episodes, 1).episodes, "test episode", "test episodes")))
}

// The streams of seeds of validation and test episodes. Training uses another stream.
var seedStreams = map[traces.Part]string{traces.Validation: "validation episodes", traces.Test: "test episodes"}

// Judge plays every policy on the same test episodes.
func (p *Problem) Judge(ctx context.Context, cfg config.Config, opt EvalOptions) (Comparison, error) {
	r, err := p.testing(ctx, &cfg, &opt)
	if err != nil {
		return nil, err
	}
	r.tick = counted(r.counts(), opt.Game)
	played, _, err := r.results(ctx)
	if err != nil {
		return nil, err
	}
	out := &report.EpisodeReport{
		Env: p.About.ID, Solved: report.Number(p.About.Solved), Episodes: r.episodes, Seed: cfg.Eval.Seed,
		Kernels: kernel.Set(),
	}
	if p.Recorded() {
		out.File = p.Trace.File
	}
	scores := make([]statistic.Sample, len(played))
	for i, of := range played {
		out.Add(r.policies[i].name, r.policies[i].kind, each(of[0], returnOf), each(of[0], stepsOf))
		out.Policies[i].Greedy = string(r.policies[i].greedy)
		scores[i] = sample(of, scoreOf)
	}
	if d := p.Scenario.About; d.Scheduling() {
		out.AddScores(d.Metric, scores)
	}
	return out, nil
}
