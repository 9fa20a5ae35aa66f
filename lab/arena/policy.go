package arena

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/env/sched"
	"clustergym/internal/fault"
	"clustergym/internal/rng"
	"clustergym/lab/config"
	"clustergym/lab/report"
	"clustergym/simulator/cluster"
	"clustergym/simulator/hindsight"
	"clustergym/simulator/metrics"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
)

// policy is one policy of a comparison.
type policy struct {
	name, kind string
	draws      bool          // at random: it plays each episode once for each of eval.seeds
	missing    string        // why it has no results
	trained    sim.Estimates // the estimates of a checkpoint's run
	greedy     agents.Rule   // by which an agent chooses its actions; "" = its kind's usual one, or it is no such agent
	// nothing is set for schedulers that do not ask for run times. Rules in the action space have them in any case, as
	// environments choose by them which jobs can be acted on.
	nothing bool
	knows   bool // it knows the whole window beforehand, or what no agent sees
	timed   bool // its choices depend on the clock
	// player makes a player for one environment; every worker has its own. It is nil for external policies.
	player func(e env.Env) (player, error)
}

// player plays one episode of its policy to the end. seed is that of the policy's random draws. seen sees every point
// of the episode on the simulator; it is nil without one.
type player func(ctx context.Context, ep env.Episode, seed uint64, seen audience) (outcome, error)

// outcome is what a policy reaches in one episode through its environment.
type outcome struct {
	ret, steps float64   // the sum of rewards and the number of steps, NaN for a policy that does not act step by step
	info       []float64 // of the last time step, until the next episode; nil for a policy that does not act step by step
	score      float64   // the environment's metric, of a planner
}

// unacted is the outcome of a policy that does not act through the environment.
var unacted = outcome{ret: math.NaN(), steps: math.NaN()}

// audience sees every point of an episode. End is called if the episode was truncated before the last job had finished.
type audience interface {
	sim.Observer
	End(v *sim.View)
}

var _ audience = (*metrics.Collector)(nil)

// agent returns whether the comparison is about p.
func (p *policy) agent() bool {
	return p.missing == "" && (p.kind == report.KindCheckpoint || p.kind == report.KindModel ||
		p.kind == report.KindExternal)
}

// whole returns whether p can play a whole part. A search in hindsight would have to play it thousands of times.
func (p *policy) whole() bool { return p.player != nil && !p.knows }

// policies returns the checkpoints, models and external policies of opt and the baselines of cfg, by different names.
// spec is that of the environments in which they play. ctx ends what models compute beforehand.
func (w *Scenario) policies(ctx context.Context, cfg *config.Config, opt *EvalOptions,
	spec env.Spec) ([]policy, error) {
	var all []policy
	for _, dir := range opt.Checkpoints {
		c, err := OpenCheckpoint(dir, spec)
		if err != nil {
			return nil, err
		}
		c = c.Under(cfg.Eval.Greedy)
		rule, err := c.greedy(spec)
		if err != nil {
			return nil, err
		}
		all = append(all, policy{name: c.Name, kind: report.KindCheckpoint, greedy: rule, draws: rule == agents.BySample,
			trained: c.Cfg.Estimates(), player: acting(c.In)})
	}
	for i := range opt.Models {
		m := opt.Models[i]
		if m.Greedy == "" {
			m.Greedy = cfg.Eval.Greedy
		}
		p, err := m.PolicyContext(ctx, spec)
		if err != nil {
			return nil, err
		}
		rule := p.Rule()
		all = append(all, policy{name: m.Name, kind: report.KindModel, greedy: rule, draws: rule == agents.BySample,
			player: acting(func(e env.Env) (agents.Policy, error) { return m.Policy(e.Spec()) })})
	}
	if opt.External != nil {
		if !w.About.Simulated() {
			return nil, w.unserved()
		}
		if err := opt.External.Validate(); err != nil {
			return nil, &fault.Mistake{Err: err}
		}
		for _, name := range opt.External.Names {
			all = append(all, policy{name: name, kind: report.KindExternal})
		}
	}
	baselines, err := w.baselines(cfg)
	if err != nil {
		return nil, err
	}
	all = append(all, baselines...)
	if len(all) == 0 {
		return nil, fault.Mistakef("nothing to evaluate: name checkpoints or policies (%s)", config.FormsOf(w.About))
	}
	return all, distinct(all, opt.Checkpoints)
}

// unserved is the mistake of external policies in an environment that has no windows.
func (w *Scenario) unserved() error {
	return fault.Mistakef("%s: %s has no windows that other programs could play too; use an environment on the simulator",
		fault.Key("serve"), w.About.ID)
}

// distinct makes the names of policies unique: checkpoints of runs whose folders have the same name are named by their
// full paths, and remaining duplicates are refused. dirs are the paths of the first policies.
func distinct(all []policy, dirs []string) error {
	count := map[string]int{}
	for _, p := range all {
		count[p.name]++
	}
	for i, dir := range dirs {
		if p := &all[i]; count[p.name] > 1 {
			agent, rest, _ := strings.Cut(p.name, ":")
			p.name = agent + ":" + filepath.ToSlash(filepath.Clean(dir)) + rest[strings.LastIndexByte(rest, '@'):]
		}
	}
	seen := map[string]bool{}
	for _, p := range all {
		if seen[p.name] {
			return fault.Mistakef("policy %s is named twice", p.name)
		}
		seen[p.name] = true
	}
	return nil
}

// baselines returns the policies of cfg.
func (w *Scenario) baselines(cfg *config.Config) ([]policy, error) {
	var all []policy
	for _, name := range cfg.Policies() {
		r, err := cfg.Rival(name)
		if err != nil {
			return nil, &fault.Mistake{Err: err}
		}
		all = append(all, w.baseline(cfg, r))
	}
	return all, nil
}

// baseline returns a rule through the action space, a planner, a heuristic directly on the simulator, one that looks
// ahead, or the schedule found in hindsight.
func (w *Scenario) baseline(cfg *config.Config, r config.Rival) policy {
	p := policy{name: r.Name, kind: "heuristic", timed: r.Rollout != nil && r.Rollout.Budget.Time > 0}
	switch {
	case r.Hindsight:
		p.kind, p.knows, p.player = "hindsight", true, w.hindsight(cfg, r)
	case r.Planner != nil:
		p.kind, p.player = "planner", planning(r)
	case r.Rule != nil:
		p.kind, p.draws, p.knows, p.player = "baseline", r.Rule.Draws && w.About.Scheduling(), r.Rule.Knows,
			acting(r.Rule.Policy)
		if w.About.Scheduling() {
			p.kind = "slots"
		}
	case r.Rollout != nil:
		p.player = w.looking(r)
	default:
		p.draws, p.nothing = r.Sched.Order == "random", !r.Sched.Estimating()
		p.player = scheduling(r)
	}
	return p
}

// acting makes players of a policy that acts through its environment.
func acting(of func(e env.Env) (agents.Policy, error)) func(env.Env) (player, error) {
	return func(e env.Env) (player, error) {
		p, err := of(e)
		if err != nil {
			return nil, err
		}
		play := agents.NewPlayer(e, p)
		return func(ctx context.Context, ep env.Episode, seed uint64, seen audience) (outcome, error) {
			on, _ := e.(sched.Arena)
			if seen != nil {
				on.Watch(seen)
				defer on.Watch(nil)
			}
			ret, steps, err := play.Play(ctx, ep, rng.Stream(seed, "eval/act"))
			// it has seen the window, which has the same result for every policy
			if seen != nil && errors.Is(err, sched.ErrUndecided) {
				return unacted, nil
			}
			ts := play.TimeStep()
			// otherwise it has seen the end itself
			if err == nil && seen != nil && ts.Kind == env.Truncated && !on.View().Over() {
				seen.End(on.View())
			}
			return outcome{ret: ret, steps: float64(steps), info: ts.Info}, err
		}, nil
	}
}

// planning makes players of a planner of whole task graphs.
func planning(r config.Rival) func(env.Env) (player, error) {
	return func(e env.Env) (player, error) {
		return func(ctx context.Context, ep env.Episode, _ uint64, _ audience) (outcome, error) {
			out := unacted
			var err error
			out.score, err = r.Planner.Score(ctx, e, ep)
			return out, err
		}, nil
	}
}

// scheduling makes players of a heuristic that takes the agent's place on the simulator.
func scheduling(r config.Rival) func(env.Env) (player, error) {
	return func(e env.Env) (player, error) {
		h, err := schedulers.New(r.Sched)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, ep env.Episode, seed uint64, seen audience) (outcome, error) {
			// Every policy sees the same estimates of an episode; only a random order draws from the seed.
			h.Reseed(ep.Seed)
			if r.Sched.Order == "random" {
				h.Reseed(seed)
			}
			return unacted, e.(sched.Arena).Simulate(ctx, ep, h, seen)
		}, nil
	}
}

// hindsight makes players that search each window for a good schedule with all its jobs known, and play it.
func (w *Scenario) hindsight(cfg *config.Config, r config.Rival) func(env.Env) (player, error) {
	search := hindsight.Config{Tries: cfg.Eval.Hindsight}
	if search.Tries == 0 {
		search.Tries = config.DefaultHindsight
	}
	if w.About.Metric.Key == "bounded_slowdown" {
		search.Objective = hindsight.BoundedSlowdown
	}
	return func(e env.Env) (player, error) {
		base, err := schedulers.New(r.Sched)
		if err != nil {
			return nil, err
		}
		place, err := cluster.NewPlacement(r.Sched.Placement)
		if err != nil {
			return nil, err
		}
		s := hindsight.New(search, place)
		return func(ctx context.Context, ep env.Episode, _ uint64, seen audience) (outcome, error) {
			base.Reseed(ep.Seed)
			_, err := s.Play(ctx, ep.Seed, base, func(ctx context.Context, sch sim.Scheduler, o sim.Observer) error {
				return e.(sched.Arena).Simulate(ctx, ep, sch, o)
			}, seen)
			return unacted, err
		}, nil
	}
}
