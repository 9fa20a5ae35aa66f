package topdrl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"clustergym/agents"
	"clustergym/agents/train"
	"clustergym/configs"
	"clustergym/env"
	"clustergym/env/cluster"
	"clustergym/env/gpupick"
	"clustergym/env/heuristic"
	"clustergym/env/jobselect"
	"clustergym/env/sched"
	"clustergym/experiments/run"
	"clustergym/experiments/study"
	"clustergym/experiments/workload"
	"clustergym/internal/par"
	"clustergym/internal/rng"
	"clustergym/traces"
)

// What schedules are made of: how the next job is chosen, and which GPUs it gets. drf is the precursor's name for the
// smallest request first.
var (
	topdrlSelectors  = []struct{ name, order string }{{"fifo", "fifo"}, {"sjf", "sjf"}, {"drf", "smallest"}, {"random", "random"}}
	topdrlPlacements = []string{"first-available", "random", "load-balance", "closest-b"}
	topdrlVariants   = []string{"closest-a", "closest-b", "closest-c", "optimal", "first-available"}
)

// topdrlRule is a selector with an admission and a placement.
type topdrlRule struct {
	name      string
	order     string
	admission string
	placement string
}

func (r *topdrlRule) random() bool { return r.order == "random" || r.placement == "random" }

// topdrlSix are the baselines of the precursor that stand for the paper's six: it names none.
func topdrlSix(admission string) []topdrlRule {
	var rules []topdrlRule
	for _, sel := range topdrlSelectors[:2] {
		for _, pl := range topdrlPlacements[:3] {
			rules = append(rules, newTopdrlRule(sel.name, sel.order, admission, pl))
		}
	}
	return rules
}

func newTopdrlRule(selector, order, admission, placement string) topdrlRule {
	name := selector + " + " + placement
	if admission == "skip" {
		name = selector + "+skip + " + placement
	}
	return topdrlRule{name, order, admission, placement}
}

// rules are the schedules that a stage compares with: the six with either admission, and closest GPUs; or the whole
// grid.
func (st *topdrlStage) rules() []topdrlRule {
	var rules []topdrlRule
	for _, admission := range []string{"strict", "skip"} {
		for i, sel := range topdrlSelectors {
			for k, pl := range topdrlPlacements {
				if st.Whole || i < 2 && (k < 3 || admission == "skip") {
					rules = append(rules, newTopdrlRule(sel.name, sel.order, admission, pl))
				}
			}
		}
	}
	return rules
}

// cells are all pieces of the experiment.
func (s *topdrlSettings) cells() ([]study.Cell, error) {
	var cells []study.Cell
	for i := range s.Stages {
		st := &s.Stages[i]
		_, digest, err := topdrlTrace(st)
		if err != nil {
			return nil, err
		}
		world := sync.OnceValues(func() (*run.World, error) {
			cfg, err := s.config(st, st.agents()[0], 1)
			if err != nil {
				return nil, err
			}
			return run.NewWorld(&cfg)
		})
		for _, agent := range st.agents() {
			for k := range s.Seeds {
				seed := uint64(k + 1)
				cfg, err := s.config(st, agent, seed)
				if err != nil {
					return nil, err
				}
				text, err := configs.Encode(&cfg)
				if err != nil {
					return nil, err
				}
				name := fmt.Sprintf("%s/%s/seed-%d", st.Name, agent, seed)
				train := "train/" + name
				input := map[string]any{"method": topdrlMethod, "config": string(text), "digest": digest}
				cells = append(cells, study.Cell{Key: train, Input: input, Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
					w, err := world()
					if err != nil {
						return nil, err
					}
					return trainIn(ctx, b, cfg, w)
				}})
				input = map[string]any{"method": topdrlMethod, "windows": s.Windows, "variants": topdrlVariants}
				cells = append(cells, study.Cell{Key: "play/" + name, Input: input, After: []string{train}, Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
					w, err := world()
					if err != nil {
						return nil, err
					}
					return s.playAgent(ctx, b, w, st, agent, seed, b.WorkOf(train))
				}})
			}
		}
		cfg, err := s.config(st, st.agents()[0], 1)
		if err != nil {
			return nil, err
		}
		cfg.Train.Steps = 1 // it does not matter here
		text, err := configs.Encode(&cfg)
		if err != nil {
			return nil, err
		}
		input := map[string]any{"method": topdrlMethod, "config": string(text), "digest": digest, "draws": s.Draws, "rules": fmt.Sprint(st.rules())}
		cells = append(cells, study.Cell{Key: "play/" + st.Name + "/rules", Input: input, Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
			w, err := world()
			if err != nil {
				return nil, err
			}
			return s.playRules(ctx, b, w, st)
		}})
	}
	for _, name := range []string{"topdrl-2x4x4", "topdrl-4x8x4"} {
		input := map[string]any{"method": topdrlMethod, "states": s.Gap.States, "placements": topdrlGapPlacements}
		cells = append(cells, study.Cell{Key: "gap/" + name, Input: input, Run: func(context.Context, *study.Bench) ([]study.Row, error) { return topdrlGap(name, s.Gap.States) }})
	}
	picks, err := s.pickCells()
	return append(cells, picks...), err
}

// trainIn trains cfg in the cell's folder, or goes on with it.
func trainIn(ctx context.Context, b *study.Bench, cfg run.Config, w *run.World) ([]study.Row, error) {
	dir := filepath.Join(b.Work(), "run")
	_, err := os.Stat(filepath.Join(dir, run.ConfigFile))
	opt := run.TrainOptions{RunDir: dir, Resume: err == nil, Workers: b.Workers, World: w, NoEval: true, Tags: "sb3",
		Tick: func(p train.Progress) { b.Progress(p.Step, cfg.Train.Steps) }}
	r, err := run.Train(ctx, cfg, opt)
	if errors.Is(err, run.ErrInterrupted) && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	labels := map[string]string{"agent": cfg.Agent, "seed": fmt.Sprint(cfg.Seed), "cell": cfg.Env.ID}
	rows := []study.Row{{Table: "train", Labels: labels, Metric: "steps", Value: float64(r.Step)}}
	if r.PerSecond != nil {
		rows = append(rows, study.Row{Table: "train", Labels: labels, Metric: "timing_steps_per_s", Value: *r.PerSecond})
	}
	return rows, nil
}

// topdrlEpisode is test window i; its seed decides models, for all alike.
func topdrlEpisode(i int) env.Episode {
	return env.Episode{Seed: env.EpisodeSeed(rng.Hash("topdrl/windows"), i), Window: i}
}

// playAgent plays a trained agent greedily on the test windows; the first one of a whole stage with other placements,
// too.
func (s *topdrlSettings) playAgent(ctx context.Context, b *study.Bench, w *run.World, st *topdrlStage, agent string, seed uint64, work string) ([]study.Row, error) {
	n := min(s.Windows, w.Count(traces.Test))
	placements := []string{"closest-b"}
	if st.Whole {
		placements = topdrlVariants
	}
	type game struct {
		placement string
		window    int
	}
	var games []game
	for _, p := range placements {
		for i := range n {
			games = append(games, game{p, i})
		}
	}
	out := make([][]study.Row, len(games))
	err := par.For(ctx, b.Workers, len(games), func(_, i int) error {
		g := games[i]
		own, settings := *w, *w.Settings.(*jobselect.Config)
		settings.Placement, own.Settings = g.placement, &settings
		e, err := own.JobSelect(traces.Test, 1)
		if err != nil {
			return err
		}
		c, err := run.OpenCheckpoint(filepath.Join(work, "run"), e.Spec())
		if err != nil {
			return err
		}
		p, err := run.NewPolicy(&c.Cfg, e.Spec(), bytes.NewReader(c.Weights))
		if err != nil {
			return err
		}
		var m topdrlMeasure
		m.begin(e)
		e.Watch(&m)
		if err := playOut(ctx, e, p, topdrlEpisode(g.window)); err != nil {
			return fmt.Errorf("window %d: %w", g.window, err)
		}
		name := "topdrl-" + agent
		if g.placement != "closest-b" {
			name += " + " + g.placement
		}
		out[i] = m.rows(map[string]string{"stage": st.Name, "policy": name, "window": fmt.Sprint(g.window), "seed": fmt.Sprint(seed)})
		b.Progress(int64(i), int64(len(games)))
		return nil
	})
	return flatRows(out), err
}

func flatRows(parts [][]study.Row) []study.Row {
	var rows []study.Row
	for _, p := range parts {
		rows = append(rows, p...)
	}
	return rows
}

// playOut plays an episode greedily.
func playOut(ctx context.Context, e env.Env, p agents.Policy, ep env.Episode) error {
	_, _, err := agents.NewPlayer(e, p).Play(ctx, ep, rng.Stream(ep.Seed, "eval/act"))
	return err
}

// playRules plays the schedules of a stage on the test windows.
func (s *topdrlSettings) playRules(ctx context.Context, b *study.Bench, w *run.World, st *topdrlStage) ([]study.Row, error) {
	n := min(s.Windows, w.Count(traces.Test))
	type game struct {
		rule         topdrlRule
		draw, window int
	}
	var games []game
	for _, r := range st.rules() {
		draws := 1
		if r.random() {
			draws = s.Draws
		}
		for d := range draws {
			for i := range n {
				games = append(games, game{r, d, i})
			}
		}
	}
	type hand struct {
		env      *sched.Env
		policies map[string]heuristic.Policy
	}
	hands := make([]hand, b.Workers)
	out := make([][]study.Row, len(games))
	err := par.For(ctx, b.Workers, len(games), func(worker, i int) error {
		h, g := &hands[worker], games[i]
		if h.env == nil {
			e, err := w.JobSelect(traces.Test, 1)
			if err != nil {
				return err
			}
			h.env, h.policies = e, map[string]heuristic.Policy{}
		}
		p := h.policies[g.rule.name]
		if p == nil {
			c := heuristic.DefaultConfig()
			c.Order, c.Admission, c.Placement, c.Estimates = g.rule.order, g.rule.admission, g.rule.placement, w.Settings.(*jobselect.Config).Estimates
			var err error
			if p, err = heuristic.New(c); err != nil {
				return err
			}
			h.policies[g.rule.name] = p
		}
		ep := topdrlEpisode(g.window)
		p.Reseed(rng.At(ep.Seed, uint64(g.draw)))
		var m topdrlMeasure
		m.begin(h.env)
		if err := h.env.Simulate(ctx, ep, p, &m); err != nil {
			return fmt.Errorf("%s on window %d: %w", g.rule.name, g.window, err)
		}
		labels := map[string]string{"stage": st.Name, "policy": g.rule.name, "window": fmt.Sprint(g.window)}
		if g.rule.random() {
			labels["seed"] = fmt.Sprint(g.draw + 1)
		}
		out[i] = m.rows(labels)
		b.Progress(int64(i), int64(len(games)))
		return nil
	})
	return flatRows(out), err
}

// topdrlGapPlacements are those that are held against the best placement.
var topdrlGapPlacements = []string{"closest-a", "closest-b", "closest-c", "load-balance", "first-available", "random"}

// topdrlGap compares placements with the cheapest one by exhaustion, in random states of a cluster: each GPU is taken
// with a probability that is drawn for the state, and a gang of 2 to 8 GPUs comes that fits.
func topdrlGap(name string, states int) ([]study.Row, error) {
	spec, err := workload.ClusterSpec(name)
	if err != nil {
		return nil, err
	}
	r := rng.Stream(1, "topdrl/gap")
	var rules []cluster.Placement
	for _, p := range append([]string{"optimal"}, topdrlGapPlacements...) {
		rule, err := cluster.NewPlacement(p)
		if err != nil {
			return nil, err
		}
		rules = append(rules, rule)
	}
	var rows []study.Row
	for state := 0; state < states; {
		c, err := cluster.New(spec)
		if err != nil {
			return nil, err
		}
		busy := r.Float64()
		var taken []cluster.GPU
		for g := range c.GPUs() {
			if r.Float64() < busy {
				taken = append(taken, cluster.GPU(g))
			}
		}
		n := 2 + r.IntN(7)
		if c.GPUs()-len(taken) < n {
			continue
		}
		if len(taken) > 0 {
			if err := c.Allocate(&cluster.Request{GPUs: len(taken), Milli: 1000}, taken); err != nil {
				return nil, err
			}
		}
		req := cluster.Request{GPUs: n, Milli: 1000}
		best := 0.0
		for k, rule := range rules {
			gpus, ok := rule.Place(c, &req, nil)
			if !ok {
				return nil, fmt.Errorf("placement %s finds no place for %d GPUs", rule.Name(), n)
			}
			cost := c.Cost(gpus)
			if k == 0 {
				best = cost
				continue
			}
			labels := map[string]string{"cluster": name, "placement": rule.Name(), "state": fmt.Sprint(state)}
			rows = append(rows, study.Row{Table: "gap", Labels: labels, Metric: "excess_percent", Value: 100 * (cost - best) / best},
				study.Row{Table: "gap", Labels: labels, Metric: "optimal_share", Value: map[bool]float64{true: 1}[cost <= best+1e-9]})
		}
		state++
	}
	return rows, nil
}

// pickConfig is how GPUPick-v1 is learnt: the precursor's network and setting of PPO, but for the learning rate, which
// is three hundred times its own, for a thousandth of its steps.
func (s *topdrlSettings) pickConfig(seed uint64) run.Config {
	c := run.ConfigFor(gpupick.ID)
	c.Name, c.Agent, c.Seed = "gpupick", "ppo", seed
	c.Env.Args = []string{"trace.synth.profile=proximity", fmt.Sprintf("trace.synth.jobs=%d", s.Pick.Jobs), fmt.Sprintf("trace.seed=%d", s.Pick.Seed)}
	c.PPO.Steps, c.PPO.Epochs, c.PPO.Minibatches, c.PPO.Gamma, c.PPO.EntCoef, c.PPO.LR = 64, 10, 4, .99, .005, 3e-4
	c.PPO.Network.Hidden = []int{128, 256, 256}
	c.Train.Envs, c.Train.Steps, c.Train.LogEvery, c.Train.EvalEvery, c.Train.CheckpointEvery = 128, s.Pick.Steps, s.Pick.Steps/4, s.Pick.Steps/4, s.Pick.Steps/4
	c.Eval.Validation, c.Eval.Choose = 30, "return"
	return c
}

// pickCells train and compare in GPUPick-v1.
func (s *topdrlSettings) pickCells() ([]study.Cell, error) {
	var cells []study.Cell
	play := map[string]any{"method": topdrlMethod, "pick": s.Pick}
	for k := range s.Pick.Seeds {
		cfg := s.pickConfig(uint64(k + 1))
		if err := cfg.Validate(); err != nil {
			return nil, err
		}
		text, err := configs.Encode(&cfg)
		if err != nil {
			return nil, err
		}
		name := fmt.Sprintf("pick/seed-%d", k+1)
		train := "train/" + name
		cells = append(cells, study.Cell{Key: train, Input: map[string]any{"method": topdrlMethod, "config": string(text)}, Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
			return trainIn(ctx, b, cfg, nil)
		}})
		cells = append(cells, study.Cell{Key: "play/" + name, Input: play, After: []string{train}, Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
			return s.playPick(ctx, cfg, fmt.Sprint(k+1), "gpupick-ppo", func(e *gpupick.Env) (func(ctx context.Context, ep env.Episode, ts *env.TimeStep) error, error) {
				c, err := run.OpenCheckpoint(filepath.Join(b.WorkOf(train), "run"), e.Spec())
				if err != nil {
					return nil, err
				}
				p, err := run.NewPolicy(&c.Cfg, e.Spec(), bytes.NewReader(c.Weights))
				if err != nil {
					return nil, err
				}
				return func(ctx context.Context, ep env.Episode, ts *env.TimeStep) error {
					player := agents.NewPlayer(e, p)
					_, _, err := player.Play(ctx, ep, rng.Stream(ep.Seed, "eval/act"))
					copy(ts.Info, player.TimeStep().Info)
					return err
				}, nil
			})
		}})
	}
	cells = append(cells, study.Cell{Key: "play/pick/rules", Input: play, Run: func(ctx context.Context, _ *study.Bench) ([]study.Row, error) {
		var rows []study.Row
		for _, name := range append([]string{"optimal"}, topdrlGapPlacements...) {
			own, err := s.playPick(ctx, s.pickConfig(1), "", name, func(e *gpupick.Env) (func(ctx context.Context, ep env.Episode, ts *env.TimeStep) error, error) {
				rule, err := cluster.NewPlacement(name)
				if err != nil {
					return nil, err
				}
				return func(ctx context.Context, ep env.Episode, ts *env.TimeStep) error {
					if err := e.Reset(ctx, ep, ts); err != nil {
						return err
					}
					for !ts.Kind.Last() {
						g, err := e.Pick(rule)
						if err != nil {
							return err
						}
						if err := e.Step(ctx, env.Action{Disc: []int32{int32(g)}}, ts); err != nil {
							return err
						}
					}
					return nil
				}, nil
			})
			if err != nil {
				return nil, err
			}
			rows = append(rows, own...)
		}
		return rows, nil
	}})
	return cells, nil
}

// playPick plays the test windows of GPUPick-v1 with a policy; seed is "" for one that has none.
func (s *topdrlSettings) playPick(ctx context.Context, cfg run.Config, seed, name string, policy func(e *gpupick.Env) (func(ctx context.Context, ep env.Episode, ts *env.TimeStep) error, error)) ([]study.Row, error) {
	problem, err := run.NewProblem(&cfg)
	if err != nil {
		return nil, err
	}
	made, err := problem.Open()
	if err != nil {
		return nil, err
	}
	e := made.(*gpupick.Env)
	defer e.Close() //nolint:errcheck // it holds nothing
	play, err := policy(e)
	if err != nil {
		return nil, err
	}
	ts := env.NewTimeStep(e.Spec())
	var rows []study.Row
	for i := range s.Pick.Windows {
		ep := topdrlEpisode(i)
		ep.Split = env.SplitTest
		if err := play(ctx, ep, ts); err != nil {
			return nil, fmt.Errorf("%s on window %d: %w", name, i, err)
		}
		labels := map[string]string{"policy": name, "window": fmt.Sprint(i)}
		if seed != "" {
			labels["seed"] = seed
		}
		for _, x := range []struct {
			metric string
			value  float64
		}{
			{"closeness", ts.Info[gpupick.InfoCloseness]}, {"comm_cost", ts.Info[gpupick.InfoCost]},
			{"jct_h", ts.Info[gpupick.InfoJCT] / 3600}, {"makespan_h", ts.Info[gpupick.InfoMakespan] / 3600},
		} {
			rows = append(rows, study.Row{Table: "pick", Labels: labels, Metric: x.metric, Value: x.value})
		}
	}
	return rows, nil
}
