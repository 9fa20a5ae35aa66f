package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"clustergym/agents/checkpoint"
	"clustergym/agents/ddqn"
	"clustergym/agents/train"
	"clustergym/experiments/arena"
	"clustergym/experiments/config"
	"clustergym/experiments/rundir"
	"clustergym/experiments/study"
	"clustergym/experiments/workqueue"
	"clustergym/internal/fault"
	"clustergym/internal/ordinary"
)

// PaperOptions are the arguments of gymctl experiment run besides the study's name.
type PaperOptions struct {
	Plan   study.Plan
	Dir    string // "" = runs/NAME, or runs/NAME-quick
	Only   string
	Commit string
	Now    rundir.Clock
	Say    func(format string, args ...any)
	Queue  workqueue.Opener // lets other machines compute cells; nil = none
}

// RunStudy runs a study of a paper.
func RunStudy(ctx context.Context, s study.Study, opt PaperOptions) (*study.Report, error) {
	if opt.Plan.Workers < 1 && opt.Queue == nil {
		return nil, fault.Mistakef("workers: got %d, want 1 or more", opt.Plan.Workers)
	}
	if opt.Plan.Seeds < 0 || opt.Plan.Seeds > MaxSeeds {
		return nil, fault.Mistakef("seeds: got %d, want 1 to %d, or 0 for the study's own number", opt.Plan.Seeds, MaxSeeds)
	}
	if d := opt.Plan.Data; d != "" {
		if i, err := os.Stat(d); err != nil {
			return nil, fault.Mistakef("data folder %s: %v", d, ordinary.Reason(err))
		} else if !i.IsDir() {
			return nil, fault.Mistakef("data folder %s: it is a file", d)
		}
	}
	if len(opt.Plan.Agents) > 0 && !s.PlaysAgents {
		return nil, fault.Mistakef("--agent %s=%s: experiment %s plays no agents but its own", opt.Plan.Agents[0].Where, opt.Plan.Agents[0].Dir, s.Name)
	}
	if opt.Dir == "" {
		opt.Dir = PaperDir(s.Name, opt.Plan.Quick)
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	return study.Run(ctx, s, study.Options{Dir: opt.Dir, Plan: opt.Plan, Only: opt.Only, Commit: opt.Commit, Now: opt.Now, Say: opt.Say, Queue: opt.Queue})
}

// PaperDir returns the default folder of an experiment. It is always the same, so that the same command continues it.
func PaperDir(name string, quick bool) string {
	if quick {
		name += "-quick"
	}
	return filepath.Join("runs", name)
}

// TrainCell trains cfg in the folder run of a study's cell, in world, or in one of its own if world is nil. A training that was
// interrupted there continues. Of one that has ended, only the last checkpoint keeps what resuming needs and acting does not, which
// may be hundreds of megabytes.
func TrainCell(ctx context.Context, b *study.Bench, cfg config.Config, world *arena.World) (*TrainResult, error) {
	dir := filepath.Join(b.Work(), "run")
	_, err := os.Stat(filepath.Join(dir, rundir.ConfigFile))
	r, err := Train(ctx, cfg, TrainOptions{
		RunDir: dir, Resume: err == nil, Workers: b.Workers, World: world, NoEval: true, Tags: "sb3",
		Tick:  func(p train.Progress) { b.Progress(p.Step, cfg.Train.Steps) },
		Saved: b.Saved,
	})
	if errors.Is(err, fault.ErrInterrupted) && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	return r, thin(filepath.Join(dir, "checkpoints"))
}

// thin drops the replays of all checkpoints in root but the last.
func thin(root string) error {
	steps, err := checkpoint.List(root)
	if err != nil {
		return err
	}
	for _, step := range steps[:max(0, len(steps)-1)] {
		if err := checkpoint.Drop(checkpoint.Dir(root, step), ddqn.ReplayPart); err != nil {
			return err
		}
	}
	return nil
}
