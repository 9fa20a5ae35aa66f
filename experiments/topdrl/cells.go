package topdrl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"clustergym/agents/train"
	"clustergym/configs"
	"clustergym/experiments/arena"
	"clustergym/experiments/config"
	"clustergym/experiments/run"
	"clustergym/experiments/rundir"
	"clustergym/experiments/study"
)

// cells returns the study's units of work: for each stage the trainings and the plays of its test windows, then the gaps of
// placements and GPUPick-v1.
func (s *settings) cells() ([]study.Cell, error) {
	var all []study.Cell
	for i := range s.Stages {
		st := &s.Stages[i]
		_, digest, err := traceOf(st)
		if err != nil {
			return nil, err
		}
		world := sync.OnceValues(func() (*arena.World, error) {
			cfg, err := s.config(st, st.agents()[0], 1)
			if err != nil {
				return nil, err
			}
			return arena.NewWorld(&cfg)
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
				input := map[string]any{"method": method, "config": string(text), "digest": digest}
				all = append(all, study.Cell{Key: train, Input: input, Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
					w, err := world()
					if err != nil {
						return nil, err
					}
					return trainIn(ctx, b, cfg, w)
				}})
				input = map[string]any{"method": method, "windows": s.Windows, "variants": variants}
				all = append(all, study.Cell{Key: "play/" + name, Input: input, After: []string{train}, Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
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
		cfg.Train.Steps = 1 // only trainings use the steps; a fixed value keeps the input the same
		text, err := configs.Encode(&cfg)
		if err != nil {
			return nil, err
		}
		input := map[string]any{"method": method, "config": string(text), "digest": digest, "draws": s.Draws, "rules": fmt.Sprint(st.rules())}
		all = append(all, study.Cell{Key: "play/" + st.Name + "/rules", Input: input, Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
			w, err := world()
			if err != nil {
				return nil, err
			}
			return s.playRules(ctx, b, w, st)
		}})
	}
	for _, name := range []string{"topdrl-2x4x4", "topdrl-4x8x4"} {
		input := map[string]any{"method": method, "states": s.Gap.States, "placements": gapPlacements}
		all = append(all, study.Cell{Key: "gap/" + name, Input: input, Run: func(context.Context, *study.Bench) ([]study.Row, error) { return measureGap(name, s.Gap.States) }})
	}
	picks, err := s.pickCells()
	return append(all, picks...), err
}

// trainIn trains cfg in the cell's folder. A training that was interrupted there continues. w may be nil.
func trainIn(ctx context.Context, b *study.Bench, cfg config.Config, w *arena.World) ([]study.Row, error) {
	dir := filepath.Join(b.Work(), "run")
	_, err := os.Stat(filepath.Join(dir, rundir.ConfigFile))
	opt := run.TrainOptions{RunDir: dir, Resume: err == nil, Workers: b.Workers, World: w, NoEval: true, Tags: "sb3",
		Tick: func(p train.Progress) { b.Progress(p.Step, cfg.Train.Steps) }, Saved: b.Saved}
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
