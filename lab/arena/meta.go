package arena

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"clustergym/agents/maml"
	"clustergym/env"
	"clustergym/internal/fault"
	"clustergym/internal/plain"
	"clustergym/internal/rng"
	"clustergym/internal/statistic"
	"clustergym/lab/config"
	"clustergym/lab/report"
	"clustergym/lab/rundir"
	"clustergym/nets/kernel"
	"clustergym/traces"
)

// Families is the arena of meta-learners: environments without a simulator that draw tasks.
type Families struct{ *Problem }

var _ Arena = (*Families)(nil)

// Describe implements Arena.
func (f *Families) Describe(cfg *config.Config) []Fact {
	c := &cfg.MAML
	return []Fact{
		Factf("env", "%s, a family of tasks", f.About.ID),
		Factf("", "%s of %d tasks, %s before and %d after %s of adaptation", c.Method, c.Tasks,
			plain.Count(c.Before, "episode", "episodes"), c.After,
			plain.Count(c.InnerSteps, "step", "steps")),
		Factf("", "best checkpoint by %s, judged on %s; training uses neither",
			plain.Count(cfg.Eval.Validation, "validation task",
				"validation tasks"), plain.Count(cfg.Eval.Episodes, "test task", "test tasks")),
	}
}

// Validate implements Arena.
func (f *Families) Validate(cfg *config.Config, agent Trainee, _ int) (*rundir.Validation, error) {
	c, on := &cfg.MAML, tasksOf(cfg, traces.Validation, cfg.Eval.Validation)
	l := agent.(*maml.Learner)
	out, err := l.Judge(context.Background(), l.Params().Data, on.seed, on.n, c.Judge, c.JudgeEpisodes, nil)
	if err != nil {
		return nil, err
	}
	return validationOf(out[c.Chosen()]), nil
}

// validationOf returns the validation of a policy with these outcomes.
func validationOf(out []maml.Outcome) *rundir.Validation {
	mean := statistic.Mean(outcomes(out, sampledOutcome))
	return &rundir.Validation{Tasks: len(out), Return: &mean}
}

// taskSet is n tasks that are drawn from a seed.
type taskSet struct {
	seed uint64
	n    int
}

func tasksOf(cfg *config.Config, part traces.Part, n int) taskSet {
	return taskSet{rng.At(cfg.Eval.Seed, rng.Hash(seedStreams[part])), n}
}

func sampledOutcome(o maml.Outcome) float64 { return o.Sampled }

func outcomes(of []maml.Outcome, value func(o maml.Outcome) float64) []float64 {
	v := make([]float64, len(of))
	for i, o := range of {
		v[i] = value(o)
	}
	return v
}

// Judge adapts every checkpoint, and the initial weights, to the same test tasks.
func (f *Families) Judge(ctx context.Context, cfg config.Config, opt EvalOptions) (Comparison, error) {
	if opt.External != nil {
		return nil, f.unserved()
	}
	if len(opt.Models) > 0 && len(opt.Checkpoints) > 0 {
		return nil,
			fault.Mistakef(
				"%s does not go with %s of agent %s: models do not adapt to tasks; compare them on episodes, without %s",
				fault.Key("policy-onnx"), fault.Key("checkpoint"), config.MetaAgent, fault.Key("checkpoint"))
	}
	// rules and models do not adapt: they are compared on episodes
	if len(opt.Checkpoints) == 0 && (f.Scenario.About.Scheduling() || len(opt.Models) > 0) {
		return f.Problem.Judge(ctx, cfg, opt)
	}
	if len(opt.Checkpoints) == 0 {
		return nil, fault.Mistakef("nothing to evaluate: name checkpoints of agent %s", cfg.Agent)
	}
	var all []*Opened
	for _, dir := range opt.Checkpoints {
		c, err := OpenCheckpoint(dir, f.About)
		if err != nil {
			return nil, err
		}
		if !c.Cfg.Meta() {
			return nil, fault.Mistakef("%s is of agent %s, which does not adapt: compare it in a configuration of its own", dir,
				c.Cfg.Agent)
		}
		all = append(all, c.Under(cfg.Eval.Greedy))
	}
	all = append(all, &Opened{Name: "before training", Cfg: all[0].Cfg}) // with the initial weights
	r := &report.AdaptReport{Env: f.About.ID, Solved: report.Number(f.About.Solved), Tasks: cfg.Eval.Episodes,
		Seed: cfg.Eval.Seed, Kernels: kernel.Set()}
	on := tasksOf(&cfg, traces.Test, cfg.Eval.Episodes)
	tick := counted(len(all)*on.n, opt.Game)
	for _, e := range all {
		c := &e.Cfg.MAML
		l, err := NewLearner(&e.Cfg, f.Open, opt.Workers)
		if err != nil {
			return nil, err
		}
		theta := l.Params()
		if e.Weights != nil {
			if _, err := theta.ReadFrom(bytes.NewReader(e.Weights)); err != nil {
				return nil, errors.Join(&fault.Mistake{Err: fmt.Errorf("%s: %w", e.Name, err)}, l.Close())
			}
		}
		out, err := l.Judge(ctx, theta.Data, on.seed, on.n, c.Judge, c.JudgeEpisodes, tick)
		if err := errors.Join(err, l.Close()); err != nil {
			return nil, err
		}
		for k, s := range c.Judge {
			addOutcomes(r, e.Name, s, s*c.Before, out[k], out[0])
		}
	}
	random, err := f.random(ctx, &cfg, &all[0].Cfg.MAML, on)
	if err != nil {
		return nil, err
	}
	addOutcomes(r, config.Random, 0, 0, random, random)
	return r, f.compare(ctx, &cfg, opt.Workers, random, r)
}

// tasks draws tasks as maml.Learner.Judge does.
func (f *Families) tasks(on taskSet) ([]maml.Task, error) {
	family, err := maml.NewFamily(f.Open)
	if err != nil {
		return nil, err
	}
	return family.Sample(rng.Stream(on.seed, "maml/judge"), on.n)
}

// random plays uniformly at random on tasks.
func (f *Families) random(ctx context.Context, cfg *config.Config, c *config.MAML, on taskSet) ([]maml.Outcome, error) {
	tasks, err := f.tasks(on)
	if err != nil {
		return nil, err
	}
	out := make([]maml.Outcome, len(tasks))
	e, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer e.Close() //nolint:errcheck // it holds nothing
	ts, src := env.NewTimeStep(f.About), rng.Stream(cfg.Eval.Seed, "eval/random")
	act := env.NewActions(f.About, 1).Row(0)
	for i, t := range tasks {
		steps := 0
		for k := range c.JudgeEpisodes {
			if err := e.Reset(ctx, env.Episode{Seed: rng.At(t.Seed, uint64(k)), Window: -1, Task: t.Values}, ts); err != nil {
				return nil, err
			}
			for !ts.Kind.Last() {
				uniform(f.About, ts, act, src)
				if err := e.Step(ctx, act, ts); err != nil {
					return nil, err
				}
				out[i].Sampled += ts.Reward / float64(c.JudgeEpisodes)
				steps++
			}
		}
		out[i].Greedy, out[i].Length = out[i].Sampled, float64(steps)/float64(c.JudgeEpisodes)
	}
	return out, nil
}

// uniform sets a to a random legal action.
func uniform(s env.Spec, ts *env.TimeStep, a env.Action, src *rand.Rand) {
	at := 0
	for i, n := range s.Action.Sizes {
		legal := 0
		for k := range n {
			if ts.Mask[at+k] {
				legal++
				if src.IntN(legal) == 0 {
					a.Disc[i] = int32(k)
				}
			}
		}
		at += n
	}
	for i, low := range s.Action.Low {
		a.Cont[i] = min(max(low+float32(src.Float64())*(s.Action.High[i]-low), low), s.Action.High[i])
	}
}

// addOutcomes adds the row of one policy to r. without are its outcomes before adaptation.
func addOutcomes(r *report.AdaptReport, name string, steps, seen int, out, without []maml.Outcome) {
	returns := report.Returns(r.Seed, outcomes(out, sampledOutcome))
	greedy := statistic.Mean(outcomes(out, func(o maml.Outcome) float64 { return o.Greedy }))
	row := report.AdaptRow{
		Name: name, Steps: steps, Episodes: seen, Greedy: greedy, Gain: returns.Mean - statistic.Mean(outcomes(without,
			sampledOutcome)),
		PerStep: greedy / statistic.Mean(outcomes(out, func(o maml.Outcome) float64 { return o.Length })),
		Return:  *returns,
	}
	if r.Solved != nil {
		solved := returns.Mean >= *r.Solved
		row.Solved = &solved
	}
	r.Rows = append(r.Rows, row)
}
