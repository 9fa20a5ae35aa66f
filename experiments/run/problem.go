package run

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"

	"clustergym/agents"
	"clustergym/agents/baseline"
	"clustergym/env"
	"clustergym/env/jobselect"
	"clustergym/env/vec"
	"clustergym/experiments/envs"
	"clustergym/experiments/statistic"
	"clustergym/experiments/workload"
	"clustergym/internal/par"
	"clustergym/internal/rng"
)

// problem is an environment that is trained and judged by its returns alone. It is immutable and can be shared.
type problem struct {
	About  env.Spec
	make   func() (env.Env, error)
	splits bool // it has parts to train on, to choose by and to judge by
}

// newProblem is the environment called id, with arguments as gymctl envs --set takes them.
func NewProblem(id string, args []string) (*problem, error) {
	p := &problem{splits: envs.Staged(id) != nil}
	var err error
	if p.make, err = envs.PlainMaker(id, args); err != nil {
		return nil, err
	}
	e, err := p.make()
	if err != nil {
		return nil, &workload.InputError{Err: err}
	}
	defer e.Close() //nolint:errcheck // it holds nothing
	p.About = e.Spec()
	return p, nil
}

func (p *problem) Open() (env.Env, error) { return p.make() }

func (p *problem) spec(*Config) (env.Spec, error) { return p.About, nil }

func (p *problem) NewVec(cfg *Config, workers int) (*vec.Vec, error) {
	envs := make([]env.Env, cfg.Train.Envs)
	for i := range envs {
		e, err := p.Open()
		if err != nil {
			return nil, err
		}
		envs[i] = e
	}
	return vec.New(vec.Config{Workers: max(1, min(workers, len(envs)/worthwhile)), Autoreset: vec.SameStep}, envs...)
}

// worthwhile is the number of environments from which on a goroutine of their own pays: a step of a problem takes some
// hundred nanoseconds, and to wake a goroutine for it some microseconds.
const worthwhile = 128

func (p *problem) describe(cfg *Config, say func(format string, args ...any)) {
	limit, solved := "", ""
	if p.About.MaxSteps > 0 {
		limit = fmt.Sprintf(", at most %d steps", p.About.MaxSteps)
	}
	if number(p.About.Solved) != nil {
		solved = fmt.Sprintf(", solved at a mean return of %g", p.About.Solved)
	}
	say("env       %s%s%s", p.About.ID, limit, solved)
	say("          best of validations on %s, then %s, on seeds apart from the training's",
		workload.Plural(cfg.Eval.Validation, "episode", "episodes"), workload.Plural(cfg.Eval.Episodes, "test episode", "test episodes"))
}

func (p *problem) origin() map[string]string { return nil }

func (p *problem) same(map[string]string, string) error { return nil }

// The streams of seeds from which episodes are drawn when agents are judged; training's come from another one.
const (
	validationEpisodes = "validation episodes"
	testEpisodes       = "test episodes"
)

// split is the part of the workload that the episodes called name are of, where there is one.
func (p *problem) split(name string) string {
	switch {
	case !p.splits:
		return ""
	case name == testEpisodes:
		return env.SplitTest
	}
	return env.SplitValidation
}

// games are the episodes of one policy.
type games struct{ returns, lengths []float64 }

// play plays n episodes on seeds of the stream called name, on workers goroutines. make is called by each of them. tick
// is called, by any of them, as episodes end.
func (p *problem) play(ctx context.Context, workers, n int, seed uint64, name string, policy func(s env.Spec) (agents.Policy, error), tick func()) (games, error) {
	g := games{make([]float64, n), make([]float64, n)}
	first := rng.At(seed, rng.Hash(name))
	hands := make([]*hand, max(1, workers))
	err := par.For(ctx, workers, n, func(worker, i int) error {
		if hands[worker] == nil {
			e, err := p.Open()
			if err != nil {
				return err
			}
			a, err := policy(p.About)
			if err != nil {
				return err
			}
			hands[worker] = NewHand(e, a)
		}
		var err error
		if g.returns[i], g.lengths[i], err = hands[worker].play(ctx, env.EpisodeSeed(first, i), p.split(name)); err != nil {
			return fmt.Errorf("%s, episode %d: %w", p.About.ID, i, err)
		}
		if tick != nil {
			tick()
		}
		return nil
	})
	return g, err
}

// hand plays one policy in one environment.
type hand struct {
	Env    env.Env
	policy agents.Policy
	Batch  *env.Batch
	Action *env.Actions
	Ts     *env.TimeStep // views of batch
}

func NewHand(e env.Env, p agents.Policy) *hand {
	b := env.NewBatch(e.Spec(), 1)
	return &hand{e, p, b, env.NewActions(e.Spec(), 1), &env.TimeStep{Obs: b.Obs, Mask: b.Mask, Info: b.Info}}
}

// play plays the episode called seed to its end. What the policy draws comes from seed too.
func (h *hand) play(ctx context.Context, seed uint64, split string) (ret, length float64, err error) {
	src := []*rand.Rand{rng.Stream(seed, "eval/act")}
	if err := h.Env.Reset(ctx, env.Episode{Seed: seed, Window: -1, Split: split}, h.Ts); err != nil {
		return 0, 0, err
	}
	for !h.Ts.Kind.Last() {
		h.Batch.Kind[0] = h.Ts.Kind
		if err := h.policy.Act(ctx, h.Batch, h.Action, src); err != nil {
			return 0, 0, err
		}
		if err := h.Env.Step(ctx, h.Action.Row(0), h.Ts); err != nil {
			return 0, 0, err
		}
		ret += h.Ts.Reward
		length++
	}
	return ret, length, nil
}

func (p *problem) validate(t *training) (*validation, error) {
	weights, err := t.weights()
	if err != nil {
		return nil, err
	}
	g, err := p.play(context.Background(), t.opt.Workers, t.cfg.Eval.Validation, t.cfg.Eval.Seed, validationEpisodes, func(s env.Spec) (agents.Policy, error) {
		return NewPolicy(t.cfg, s, bytes.NewReader(weights))
	}, nil)
	if err != nil {
		return nil, err
	}
	mean := statistic.Mean(g.returns)
	return &validation{Episodes: len(g.returns), Return: &mean}, nil
}

// judge plays every policy on the same test episodes.
func (p *problem) judge(ctx context.Context, cfg Config, opt EvalOptions) (Comparison, error) {
	if opt.External != nil {
		return nil, workload.Mistake("--serve: %s has no windows that other programs could play too; want %s", cfg.Env.ID, jobselect.ID)
	}
	r, err := p.episodes(ctx, &cfg, &opt)
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (p *problem) episodes(ctx context.Context, cfg *Config, opt *EvalOptions) (*EpisodeReport, error) {
	type entrant struct {
		name, kind string
		make       func(s env.Spec) (agents.Policy, error)
	}
	var all []entrant
	for _, dir := range opt.Checkpoints {
		c, err := OpenCheckpoint(dir, p.About)
		if err != nil {
			return nil, err
		}
		all = append(all, entrant{c.name, "checkpoint", func(s env.Spec) (agents.Policy, error) { return NewPolicy(&c.Cfg, s, bytes.NewReader(c.Weights)) }})
	}
	for _, name := range cfg.policies() { // random, or nothing
		all = append(all, entrant{name, "baseline", func(s env.Spec) (agents.Policy, error) { return baseline.NewRandom(s), nil }})
	}
	if len(all) == 0 {
		return nil, workload.Mistake("nothing to evaluate: name checkpoints, or the policy %s", randomPolicy)
	}
	names := make([]contestant, len(all))
	for i := range all {
		names[i].name = all[i].name
	}
	if err := distinct(names, opt.Checkpoints); err != nil {
		return nil, err
	}
	n := cfg.Eval.Episodes
	var mu sync.Mutex
	played := 0
	r := newEpisodeReport(p.About, cfg)
	for i, e := range all {
		g, err := p.play(ctx, opt.Workers, n, cfg.Eval.Seed, testEpisodes, e.make, func() {
			mu.Lock()
			defer mu.Unlock()
			played++
			if opt.Game != nil {
				opt.Game(played, n*len(all))
			}
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", names[i].name, err)
		}
		r.add(names[i].name, e.kind, g)
	}
	return r, nil
}
