package topdrl

import (
	"context"
	"fmt"
	"path/filepath"

	"clustergym/agents"
	"clustergym/configs"
	"clustergym/env"
	"clustergym/env/gpupick"
	"clustergym/experiments/study"
	"clustergym/internal/rng"
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/lab/workload"
	"clustergym/simulator/cluster"
)

// The agents of GPUPick-v1. picker is the precursor's: its network sees a number of every GPU, and must find out which
// of them are neighbours. sharing scores every GPU with the same weights, from numbers that say how far it is from
// those picked. distances is in between: the precursor's network, which sees these numbers.
const (
	picker    = "gpupick-ppo"
	distances = "gpupick-distances"
	sharing   = "gpupick-shared"
)

var pickers = []string{sharing, distances, picker}

// pickConfig returns the run that learns GPUPick-v1. picker and distances have the precursor's network and settings of
// PPO, but three hundred times its learning rate for a thousandth of its steps; sharing those of the preset
// gpupick-table.
func (s *settings) pickConfig(name string, seed uint64) (config.Config, error) {
	c, err := s.pickBase(name, seed)
	if err != nil {
		return c, err
	}
	for _, own := range s.Pick.Sets {
		if own.Agent != name {
			continue
		}
		for _, set := range own.Set {
			if err := configs.Set(&c, set); err != nil {
				return c, fmt.Errorf("topdrl: pick: set %q: %w", set, err)
			}
		}
	}
	return c, c.Validate()
}

// pickBase returns the run of pickConfig without the changes of the settings.
func (s *settings) pickBase(name string, seed uint64) (config.Config, error) {
	c := config.For(gpupick.V1)
	switch name {
	case sharing:
		var err error
		if c, err = config.Preset("gpupick-table"); err != nil {
			return c, err
		}
	default:
		c.PPO.Steps, c.PPO.Epochs, c.PPO.Minibatches, c.PPO.Gamma, c.PPO.EntCoef, c.PPO.LR = 64, 10, 4, .99, .005, 3e-4
		c.PPO.Network.Hidden = []int{128, 256, 256}
		c.Train.Envs = 128
		c.Edit().(*gpupick.Config).Table = name == distances
	}
	c.Name, c.Agent, c.Seed = "gpupick", "ppo", seed
	c.Trace = workload.DefaultTraceConfig()
	c.Trace.Synth.Profile, c.Trace.Synth.Jobs, c.Trace.Seed = "proximity", s.Pick.Jobs, s.Pick.Seed
	every := s.Pick.Steps / 4
	c.Train.Steps, c.Train.LogEvery, c.Train.EvalEvery, c.Train.CheckpointEvery = s.Pick.Steps, every, every, every
	c.Eval.Validation, c.Eval.Choose = 30, "mean" // of communication costs, which the table reports
	return c, nil
}

// pickedElsewhere has for keys of a training in GPUPick-v1 that the study sets itself what sets them. All agents and
// placements play the same episodes, picks outside the environment know exact run times (placer), and the name of an
// agent says whether it sees the table.
var pickedElsewhere = map[string]string{
	"name": byStudy, "seed": "pick.seeds", "agent": byStudy, "cluster": byStudy, "trace": "pick", "env.id": byStudy,
	"env.table": "pick.sets[N].agent", "env.estimates": byStudy,
	"env.window": byStudy, "env.load": byStudy, "env.max_gpus": byStudy, "env.comm": byStudy, "env.idle": byStudy,
	"env.max_steps": byStudy,
	"train.steps":   "pick.steps", "train.log_every": "pick.steps", "train.eval_every": "pick.steps",
	"train.checkpoint_every": "pick.steps", "train.imitate": byStudy,
	"eval.choose": byStudy, "eval.policies": byStudy,
}

// player plays an episode of GPUPick-v1 to its end and returns the last info.
type player func(ctx context.Context, ep env.Episode) (info []float64, err error)

// pickCells returns the cells that train in GPUPick-v1 and compare the agents with placements.
func (s *settings) pickCells() ([]study.Cell, error) {
	var all []study.Cell
	play := map[string]any{"method": method, "pick": s.Pick}
	for _, agent := range s.Pick.Agents {
		for k := range s.Pick.Seeds {
			cfg, err := s.pickConfig(agent, uint64(k+1))
			if err != nil {
				return nil, err
			}
			text, err := encode(cfg, true)
			if err != nil {
				return nil, err
			}
			train := pickTraining(agent, k+1)
			all = append(all, study.Cell{Key: train, Input: map[string]any{"method": method, "config": text},
				Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
					return trainIn(ctx, b, cfg, nil)
				}})
			key := fmt.Sprintf("play/pick/%s/seed-%d", agent, k+1)
			all = append(all, study.Cell{Key: key, Input: play, After: []string{train},
				Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
					return s.playPick(ctx, cfg, fmt.Sprint(k+1), agent, func(e *gpupick.Env) (player, error) {
						p, err := arena.Trained(filepath.Join(b.WorkOf(train), "run"), e.Spec())
						if err != nil {
							return nil, err
						}
						agent := agents.NewPlayer(e, p)
						return func(ctx context.Context, ep env.Episode) ([]float64, error) {
							_, _, err := agent.Play(ctx, ep, rng.Stream(ep.Seed, "eval/act"))
							return agent.TimeStep().Info, err
						}, nil
					})
				}})
		}
	}
	all = append(all, study.Cell{Key: "play/pick/rules", Input: play,
		Run: func(ctx context.Context, _ *study.Bench) ([]study.Row, error) {
			var rows []study.Row
			cfg, err := s.pickConfig(picker, 1)
			if err != nil {
				return nil, err
			}
			for _, name := range append([]string{"optimal", "rack"}, gapPlacements...) {
				own, err := s.playPick(ctx, cfg, "", name, func(e *gpupick.Env) (player, error) {
					rule, err := cluster.NewPlacement(name)
					if err != nil {
						return nil, err
					}
					ts := env.NewTimeStep(e.Spec())
					return func(ctx context.Context, ep env.Episode) ([]float64, error) {
						_, _, err := env.Play(ctx, e, ep, ts, func(_ *env.TimeStep, a env.Action) error {
							g, err := e.Pick(rule)
							a.Disc[0] = int32(g)
							return err
						})
						return ts.Info, err
					}, nil
				})
				if err != nil {
					return nil, err
				}
				rows = append(rows, own...)
			}
			return rows, nil
		}})
	return all, nil
}

// pickTraining returns the key of the cell that trains an agent of GPUPick-v1.
func pickTraining(agent string, seed int) string {
	return fmt.Sprintf("train/pick/%s/seed-%d", agent, seed)
}

// playPick plays the test windows of GPUPick-v1 with the player that policy makes. seed labels the rows; "" = no label.
func (s *settings) playPick(ctx context.Context, cfg config.Config, seed, name string,
	policy func(e *gpupick.Env) (player, error)) ([]study.Row, error) {
	problem, err := arena.NewProblem(&cfg)
	if err != nil {
		return nil, err
	}
	made, err := problem.Open()
	if err != nil {
		return nil, err
	}
	e := made.(*gpupick.Env)
	defer e.Close() //nolint:errcheck // the environment holds no resources
	play, err := policy(e)
	if err != nil {
		return nil, err
	}
	var rows []study.Row
	for i := range s.Pick.Windows {
		ep := testEpisode(i)
		ep.Split = env.SplitTest
		info, err := play(ctx, ep)
		if err != nil {
			return nil, fmt.Errorf("%s on window %d: %w", name, i, err)
		}
		labels := map[string]string{"policy": name, "window": fmt.Sprint(i)}
		if seed != "" {
			labels["seed"] = seed
		}
		row := study.RowOf("pick", labels)
		rows = append(rows, row("closeness", info[gpupick.InfoCloseness]), row("comm_cost", info[gpupick.InfoCost]),
			row("jct_h", info[gpupick.InfoJCT]/3600), row("makespan_h", info[gpupick.InfoMakespan]/3600))
	}
	return rows, nil
}
