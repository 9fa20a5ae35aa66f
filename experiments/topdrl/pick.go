package topdrl

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"

	"clustergym/agents"
	"clustergym/configs"
	"clustergym/env"
	"clustergym/env/cluster"
	"clustergym/env/gpupick"
	"clustergym/experiments/arena"
	"clustergym/experiments/config"
	"clustergym/experiments/study"
	"clustergym/internal/rng"
)

// pickConfig returns the run that learns GPUPick-v1: the precursor's network and settings of PPO, but three hundred times its
// learning rate for a thousandth of its steps.
func (s *settings) pickConfig(seed uint64) config.Config {
	c := config.For(gpupick.ID)
	c.Name, c.Agent, c.Seed = "gpupick", "ppo", seed
	c.Env.Args = []string{"trace.synth.profile=proximity", fmt.Sprintf("trace.synth.jobs=%d", s.Pick.Jobs), fmt.Sprintf("trace.seed=%d", s.Pick.Seed)}
	c.PPO.Steps, c.PPO.Epochs, c.PPO.Minibatches, c.PPO.Gamma, c.PPO.EntCoef, c.PPO.LR = 64, 10, 4, .99, .005, 3e-4
	c.PPO.Network.Hidden = []int{128, 256, 256}
	c.Train.Envs, c.Train.Steps, c.Train.LogEvery, c.Train.EvalEvery, c.Train.CheckpointEvery = 128, s.Pick.Steps, s.Pick.Steps/4, s.Pick.Steps/4, s.Pick.Steps/4
	c.Eval.Validation, c.Eval.Choose = 30, "return"
	return c
}

// player plays an episode of GPUPick-v1 to its end and returns the last info.
type player func(ctx context.Context, ep env.Episode) (info []float64, err error)

// pickCells returns the cells that train in GPUPick-v1 and compare the agents with placements.
func (s *settings) pickCells() ([]study.Cell, error) {
	var all []study.Cell
	play := map[string]any{"method": method, "pick": s.Pick}
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
		all = append(all, study.Cell{Key: train, Input: map[string]any{"method": method, "config": string(text)}, Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
			return trainIn(ctx, b, cfg, nil)
		}})
		all = append(all, study.Cell{Key: "play/" + name, Input: play, After: []string{train}, Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
			return s.playPick(ctx, cfg, fmt.Sprint(k+1), "gpupick-ppo", func(e *gpupick.Env) (player, error) {
				c, err := arena.OpenCheckpoint(filepath.Join(b.WorkOf(train), "run"), e.Spec())
				if err != nil {
					return nil, err
				}
				p, err := arena.NewPolicy(&c.Cfg, e.Spec(), bytes.NewReader(c.Weights))
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
	all = append(all, study.Cell{Key: "play/pick/rules", Input: play, Run: func(ctx context.Context, _ *study.Bench) ([]study.Row, error) {
		var rows []study.Row
		for _, name := range append([]string{"optimal"}, gapPlacements...) {
			own, err := s.playPick(ctx, s.pickConfig(1), "", name, func(e *gpupick.Env) (player, error) {
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

// playPick plays the test windows of GPUPick-v1 with the player that policy makes. seed labels the rows; "" = no label.
func (s *settings) playPick(ctx context.Context, cfg config.Config, seed, name string, policy func(e *gpupick.Env) (player, error)) ([]study.Row, error) {
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
		for _, x := range []struct {
			metric string
			value  float64
		}{
			{"closeness", info[gpupick.InfoCloseness]}, {"comm_cost", info[gpupick.InfoCost]},
			{"jct_h", info[gpupick.InfoJCT] / 3600}, {"makespan_h", info[gpupick.InfoMakespan] / 3600},
		} {
			rows = append(rows, study.Row{Table: "pick", Labels: labels, Metric: x.metric, Value: x.value})
		}
	}
	return rows, nil
}
