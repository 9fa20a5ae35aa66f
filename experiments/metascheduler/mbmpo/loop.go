package mbmpo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"clustergym/agents"
	"clustergym/agents/maml"
	"clustergym/env"
	"clustergym/env/workerplace"
	"clustergym/experiments/metascheduler/perfmodel"
	"clustergym/internal/par"
	"clustergym/internal/rng"
	"clustergym/nets/optim"
	"clustergym/replay"
)

// Model is a policy that a loop can train and whose probabilities it can read.
type Model interface {
	maml.Model
	// LogProbs returns the log-probabilities of all actions of the last Act, row after row.
	LogProbs() []float32
}

// Real is the world from which real jobs come.
type Real struct {
	Open   func() (*workerplace.Env, error)
	Values []float64 // task of its episodes, nil = the usual one
}

// Loop is the closed loop. It draws everything from its seed and the number of the round. Not safe for concurrent use.
type Loop struct {
	cfg     Config
	real    Real
	workers int
	seed    uint64

	world   *imagined
	models  *perfmodel.Ensemble
	learner *maml.Learner
	players []Model // one for each worker; the first places real jobs
	data    perfmodel.Data
	sub     *subspaces
	beta    float64

	rounds   int
	episodes int // real ones
	measured int
	last     [2]Report
}

// Report describes one round.
type Report struct {
	Round    int     // 0 = the data of the rule
	Episodes int     // real ones so far
	Measured int     // speeds measured so far
	JCT      float64 // mean completion time of this round's real jobs, in intervals
	Error    float64 // mean relative error of the models' predictions in this round, before they were fitted to it
	Held     float64 // root of the mean squared error of the logarithm after fitting, on what was kept from it
	Spaces   int     // subspaces that were seen so far
	Imagined float64 // return of the last meta-step after adaptation, in the models
}

// New returns a loop before its first data. model makes policies, which all begin alike.
func New(cfg Config, cluster Real, model func() (Model, error), workers int, seed uint64) (*Loop, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	for _, name := range cfg.Data {
		if _, err := workerplace.RuleOf(name); err != nil {
			return nil, err
		}
	}
	l := &Loop{cfg: cfg, real: cluster, workers: max(1, workers), seed: seed, sub: newSubspaces(&cfg), beta: cfg.Beta}
	var err error
	if l.models, err = perfmodel.New(cfg.Models, rng.At(seed, rng.Hash("models"))); err != nil {
		return nil, err
	}
	l.world = &imagined{open: cluster.Open, models: l.models}
	var world maml.Distribution = l.world
	if cfg.ModelFree {
		world = &free{&l.real}
	}
	if l.learner, err = maml.New(cfg.Maml, world, func() (maml.Model, error) { return model() }, workers,
		rng.At(seed, rng.Hash("meta"))); err != nil {
		return nil, err
	}
	for range l.workers {
		m, err := model()
		if err != nil {
			return nil, errors.Join(err, l.learner.Close())
		}
		l.players = append(l.players, m)
	}
	return l, nil
}

// Close closes all environments.
func (l *Loop) Close() error { return l.learner.Close() }

// Params returns the parameters before adaptation. They belong to the loop.
func (l *Loop) Params() []float32 { return l.learner.Params().Data }

// Parts returns what a checkpoint keeps of policy and models.
func (l *Loop) Parts() []agents.Part { return append(l.learner.Parts(), l.models.Parts()...) }

// Begin plays the rule in the real world, imitates it, and fits the models. It must be called once, before anything
// else.
func (l *Loop) Begin(ctx context.Context) (Report, error) {
	shown, err := replay.NewEpisodes(l.learner.Spec(), l.cfg.Maml.Gamma)
	if err != nil {
		return Report{}, err
	}
	r, err := l.gather(ctx, l.cfg.First, func(k int) (chooser, error) {
		rule, err := workerplace.RuleOf(l.rule(k))
		return func(_ context.Context, e *workerplace.Env, _ *env.TimeStep, src *rand.Rand) (int32, error) {
			return rule.Choose(e, src), nil
		}, err
	}, func(k int) *replay.Episodes {
		if l.rule(k) != l.cfg.Rule {
			return nil
		}
		return shown
	})
	if err != nil {
		return r, err
	}
	if err := l.imitate(ctx, shown, l.cfg.Imitation); err != nil {
		return r, err
	}
	return r, l.fit(ctx, &r)
}

// rule returns the rule that plays episode k of the first data.
func (l *Loop) rule(k int) string { return l.cfg.Data[k%len(l.cfg.Data)] }

// imitated is the number of episodes in a step of imitation.
const imitated = 2

// imitate makes the shown actions likelier: cross-entropy by Adam, some episodes at a time, in a new order in each
// pass.
func (l *Loop) imitate(ctx context.Context, shown *replay.Episodes, passes int) error {
	m := l.players[0]
	copy(m.Params().Data, l.Params())
	adam, g := optim.NewAdam(m.Params(), optim.DefaultAdamConfig()), m.Params().Like()
	var parts []*replay.Episodes
	for k := 0; k < shown.Episodes(); k += imitated {
		p := shown.Part(k, min(k+imitated, shown.Episodes()))
		p.Advantage = make([]float32, p.Len())
		for i := range p.Advantage {
			p.Advantage[i] = 1
		}
		parts = append(parts, p)
	}
	order := rng.Stream(rng.At(l.seed, uint64(l.rounds)), "mbmpo/imitate")
	for range passes {
		if err := ctx.Err(); err != nil {
			return err
		}
		order.Shuffle(len(parts), func(a, b int) { parts[a], parts[b] = parts[b], parts[a] })
		for _, p := range parts {
			// With ratios of 1 and advantages of 1 the surrogate's gradient is that of the mean −log π.
			if err := m.Score(p); err != nil {
				return err
			}
			if _, err := m.Surrogate(g, p, 0, 0); err != nil {
				return err
			}
			adam.Step(g, l.cfg.ImitateLR)
		}
	}
	copy(l.Params(), m.Params().Data)
	return nil
}

// fit fits the models to the measurements.
func (l *Loop) fit(ctx context.Context, r *Report) error {
	fits, err := l.models.Fit(ctx, l.data.Last(l.cfg.Memory), l.workers)
	if err != nil {
		return err
	}
	for _, f := range fits {
		r.Held += f.Validation / float64(len(fits))
	}
	l.last[0], l.last[1] = l.last[1], *r
	return nil
}

// Round takes the meta-steps, places real jobs with the adapted policies, and fits the models anew.
func (l *Loop) Round(ctx context.Context) (Report, error) {
	if l.episodes == 0 {
		return Report{}, errors.New("mbmpo: a round before Begin")
	}
	if l.cfg.ModelFree {
		return l.freeRound(ctx)
	}
	if l.rounds == 0 { // the models know little yet, and the policy only what the rule does
		if err := l.guide(ctx); err != nil {
			return Report{}, err
		}
	}
	imagined, err := l.Improve(ctx, l.cfg.MetaSteps)
	if err != nil {
		return Report{}, err
	}
	l.rounds++
	r, err := l.gather(ctx, l.cfg.Episodes, func(k int) (chooser, error) {
		x, err := l.deployed(ctx, k)
		if err != nil {
			return nil, err
		}
		copy(l.players[0].Params().Data, x)
		return l.explorer(), nil
	}, nobody)
	if err != nil {
		return r, err
	}
	r.Imagined = imagined
	l.beta *= l.cfg.Decay
	return r, l.fit(ctx, &r)
}

// freeRound learns from the real episodes themselves.
func (l *Loop) freeRound(ctx context.Context) (Report, error) {
	ret, err := l.Improve(ctx, 1)
	if err != nil {
		return Report{}, err
	}
	l.rounds++
	l.episodes += l.cfg.Maml.Tasks * l.cfg.Maml.After
	r := Report{Round: l.rounds, Episodes: l.episodes, JCT: -ret}
	l.last[0], l.last[1] = l.last[1], r
	return r, nil
}

// Improve takes n meta-steps in the models and returns the last one's return after adaptation.
func (l *Loop) Improve(ctx context.Context, n int) (ret float64, err error) {
	for range n {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		stats, err := l.learner.Learn(ctx)
		if err != nil {
			return 0, err
		}
		for _, s := range stats {
			if s.Name == "return_after" {
				ret = s.Value
			}
		}
	}
	return ret, nil
}

// deployed returns the parameters that place the jobs of real episode k of a round: adapted to the models in turn if
// exploration is tailored, otherwise to all of them together.
func (l *Loop) deployed(ctx context.Context, k int) ([]float32, error) {
	if l.cfg.Maml.Method == "joint" {
		return append([]float32(nil), l.Params()...), nil
	}
	variant := l.models.Members()
	if l.cfg.tailored() {
		variant = (l.rounds*l.cfg.Episodes + k) % l.models.Members()
	}
	w := l.world.seen[len(l.world.seen)-1-k%len(l.world.seen)]
	return l.learner.Adapt(ctx, l.Params(), l.world.task(variant, w), l.rounds<<8+k, l.cfg.Maml.InnerSteps)
}

// Adapted returns the parameters after the given number of inner steps in all models together, on the newest
// workload.
func (l *Loop) Adapted(ctx context.Context, steps int) ([]float32, error) {
	if len(l.world.seen) == 0 {
		return nil, errors.New("mbmpo: no workload was seen")
	}
	w := l.world.seen[len(l.world.seen)-1]
	return l.learner.Adapt(ctx, l.Params(), l.world.task(l.models.Members(), w), l.rounds<<8+255, steps)
}

// Change makes real jobs come from another world. Parameters and models are kept; workloads seen so far are
// forgotten.
func (l *Loop) Change(cluster Real) {
	l.real, l.world.seen, l.beta = cluster, nil, l.cfg.Beta
	l.world.open = cluster.Open
}

// Settled reports whether completion times and errors of the last two rounds differ by less than Config.Settled. The
// loop does not act on it: the caller decides whether to go on.
func (l *Loop) Settled() bool {
	a, b := &l.last[0], &l.last[1]
	near := func(x, y float64) bool { return math.Abs(x-y) <= l.cfg.Settled*math.Abs(x) }
	return l.cfg.Settled > 0 && a.Round > 0 && near(a.JCT, b.JCT) && near(a.Error, b.Error)
}

// chooser chooses an action in a real state.
type chooser func(ctx context.Context, e *workerplace.Env, ts *env.TimeStep, src *rand.Rand) (int32, error)

// nobody keeps no episode.
func nobody(int) *replay.Episodes { return nil }

// gather plays n real episodes, each with its own chooser, and records the measurements. Episodes for which show
// returns a place are kept there.
func (l *Loop) gather(ctx context.Context, n int, choose func(k int) (chooser, error),
	show func(k int) *replay.Episodes) (Report, error) {
	r := Report{Round: l.rounds}
	e, err := l.real.Open()
	if err != nil {
		return r, err
	}
	defer e.Close() //nolint:errcheck // it holds nothing
	view := l.models.View()
	predicted := []float64{}
	errs, count := 0.0, 0
	first := l.data.Len() == 0 // unfitted models predict nothing
	e.Record(func(p *workerplace.Placement, v []float64) error {
		for len(predicted) < len(v) {
			predicted = append(predicted, 0)
		}
		if first {
			l.data.Add(p, v)
			for j := range v {
				l.sub.note(p, j, 0)
				count++
			}
			return nil
		}
		if err := view.Speeds(predicted[:len(v)], p); err != nil {
			return err
		}
		for j, x := range v {
			if x > 0 {
				off := math.Abs(predicted[j]-x) / x
				errs += off
				count++
				l.sub.note(p, j, off)
			}
		}
		l.data.Add(p, v)
		return nil
	})
	ts := env.NewTimeStep(e.Spec())
	for k := range n {
		c, err := choose(k)
		if err != nil {
			return r, err
		}
		shown := show(k)
		w := workload{rng.At(l.seed, rng.Hash("real"), uint64(l.episodes)), l.real.Values}
		src := rng.Stream(w.seed, "mbmpo/act")
		_, _, err = env.Play(ctx, e, env.Episode{Seed: w.seed, Window: -1, Task: w.values}, ts,
			func(ts *env.TimeStep, a env.Action) (err error) {
				if a.Disc[0], err = c(ctx, e, ts, src); err == nil && shown != nil {
					shown.Act(ts, a, nil)
				}
				return err
			}, func(_ env.Action, ts *env.TimeStep) {
				if shown != nil {
					shown.After(ts)
				}
				r.JCT -= ts.Reward / float64(n)
			})
		if err != nil {
			return r, err
		}
		l.world.seen = append(l.world.seen, w)
		l.episodes++
	}
	l.measured += count
	r.Episodes, r.Measured, r.Error, r.Spaces = l.episodes, l.measured, errs/float64(max(count, 1)), l.sub.seen
	return r, nil
}

// Gather plays n real episodes with parameters x, exploring as configured, and then fits the models to them as well:
// the first step after a change of the world.
func (l *Loop) Gather(ctx context.Context, x []float32, n int) (Report, error) {
	l.rounds++
	r, err := l.gather(ctx, n, func(int) (chooser, error) {
		copy(l.players[0].Params().Data, x)
		return l.explorer(), nil
	}, nobody)
	if err != nil {
		return r, err
	}
	return r, l.fit(ctx, &r)
}

// Outcome describes how the jobs of one workload did, in intervals.
type Outcome struct {
	JCT      float64 // mean completion time
	Tail     float64 // the time within which 95 % of the jobs are complete
	Makespan float64
}

// OutcomeOf returns the outcome of an episode that has ended. Jobs that are unfinished when it is truncated count as
// complete at that moment.
func OutcomeOf(e *workerplace.Env, ret float64) Outcome {
	jct, unfinished := e.JCTs(nil)
	slices.Sort(jct)
	o := Outcome{JCT: -ret, Makespan: e.Makespan()}
	all := len(jct) + unfinished
	if at := int(math.Ceil(0.95*float64(all))) - 1; at < len(jct) {
		o.Tail = jct[max(at, 0)]
	} else {
		o.Tail = float64(e.Config().Limit)
	}
	if unfinished > 0 {
		o.Makespan = float64(e.Config().Limit)
	}
	return o
}

// Evaluate returns the outcome of each of the workloads of seeds in world, placed by the likeliest actions of
// parameters x. Nothing is learnt from them. Workloads are played side by side. The reward must be jct.
func (l *Loop) Evaluate(ctx context.Context, x []float32, world Real, seeds []uint64) ([]Outcome, error) {
	out := make([]Outcome, len(seeds))
	envs := make([]*workerplace.Env, l.workers)
	for i, m := range l.players {
		copy(m.Params().Data, x)
		e, err := world.Open()
		if err != nil {
			return nil, err
		}
		defer e.Close() //nolint:errcheck // it holds nothing
		envs[i] = e
	}
	err := par.For(ctx, l.workers, len(seeds), func(worker, i int) error {
		e, p := envs[worker], l.players[worker].Greedy()
		ret, _, err := agents.NewPlayer(e, p).Play(ctx, env.Episode{Seed: seeds[i], Window: -1, Task: world.Values}, nil)
		if err != nil {
			return err
		}
		out[i] = OutcomeOf(e, ret)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("mbmpo: %w", err)
	}
	return out, nil
}
