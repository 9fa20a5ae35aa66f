package operate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"clustergym/agents/train"
	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/configs"
	"clustergym/env/jobselect"
	"clustergym/env/sched"
	"clustergym/internal/fault"
	"clustergym/internal/plain"
	"clustergym/internal/safefile"
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/lab/run"
	"clustergym/lab/rundir"
	"clustergym/lab/workload"
	"clustergym/ops/assess"
)

// mostGang is the largest gang that agents start.
const mostGang = 1024

// trainer returns what trains the agent of --agent, in its folder. What was interrupted there goes on, and an agent
// that is complete is only played.
func (g *assessFlags) trainer(a *cli.App) assess.Trainer {
	return func(ctx context.Context, cut *assess.Cut) (string, error) {
		opt := run.TrainOptions{RunDir: g.agent, Workers: g.opt.Workers, NoEval: true, Now: a.Now}
		begun, err := run.Begun(g.agent, 0)
		if err != nil {
			return "", err
		}
		var cfg config.Config
		if begun {
			if len(g.set) > 0 {
				return "", fault.Mistakef("--set: the training in %s has begun, and its settings stay; name a new folder, or "+
					"change it by gymctl train --resume %s --set …", g.agent, g.agent)
			}
			opt.Resume = true
			if cfg, err = rundir.ReadConfig(g.agent); err == nil {
				err = g.sameRecord(&cfg)
			}
		} else {
			cfg, opt.Scenario, err = g.agentConfig(ctx, cut)
		}
		if err != nil {
			return "", err
		}
		opt.Tick = func(p train.Progress) {
			g.opt.Progress(fmt.Sprintf("training an agent on the first half: %d of %s", p.Step,
				plain.Count(int(cfg.Train.Steps), "step", "steps")))
		}
		if _, err := run.Train(ctx, cfg, opt); err != nil {
			return "", err
		}
		return g.agent, nil
	}
}

// sameRecord refuses a run that has learned from something else than the first half of the record.
func (g *assessFlags) sameRecord(cfg *config.Config) error {
	if cfg.Trace.File != g.trace.File || cfg.Trace.Jobs == 0 {
		return fault.Mistakef("--agent %s: this run has learned from %s and not from the first half of %s alone; name a new "+
			"folder, or judge it by gymctl eval --checkpoint %s", g.agent, plain.Clip(workloadOf(cfg), 200), g.trace.File,
			g.agent)
	}
	return nil
}

func workloadOf(cfg *config.Config) string {
	if cfg.Trace.File == "" {
		return "generated jobs"
	}
	return cfg.Trace.File
}

// agentConfig returns the training of the agent: the preset quickstart on the jobs before the cut, with gangs as large
// as those of the record, and with the fitted weights of its teacher.
func (g *assessFlags) agentConfig(ctx context.Context, cut *assess.Cut) (config.Config, *arena.Scenario, error) {
	cfg, err := config.Preset("quickstart")
	if err != nil {
		return cfg, nil, err
	}
	if err := g.writeCluster(cut); err != nil {
		return cfg, nil, err
	}
	synth := cfg.Trace.Synth
	cfg.Trace, cfg.Cluster = g.trace, filepath.Join(g.agent, clusterFile)
	cfg.Trace.Synth, cfg.Trace.Unended, cfg.Trace.Runs, cfg.Trace.AcceptLeftOut = synth, false, false, true
	if cfg.Trace.Jobs, err = jobsBefore(ctx, cfg.Trace, cut); err != nil {
		return cfg, nil, err
	}
	given := config.Given{"env.max_gpus": true}
	s, ok := cfg.Edit().(*jobselect.Config)
	if !ok {
		return cfg, nil, fmt.Errorf("preset quickstart is of %s", cfg.Env.ID)
	}
	s.MaxGPUs = min(mostGang, cut.Largest)
	if slices.Contains(sched.Placements(), cut.Placement) { // else as the preset has it
		s.Placement = cut.Placement
	}
	if cut.Hold != nil {
		cfg.Eval.Hold = *cut.Hold
	}
	for _, kv := range g.set {
		if err := given.Set(&cfg, kv); err != nil {
			return cfg, nil, fault.Mistakef("--set %s: %w", kv, err)
		}
	}
	cfg.Adapt(given)
	scenario, _, err := arena.Fit(ctx, &cfg, given)
	return cfg, scenario, err
}

// clusterFile has the machines on which the agent learns, in the folder of its run.
const clusterFile = "cluster.yaml"

func (g *assessFlags) writeCluster(cut *assess.Cut) error {
	text, err := configs.Encode(&cut.Spec)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(g.agent, 0o755); err != nil {
		return &fault.Mistake{Err: err}
	}
	return safefile.Write(filepath.Join(g.agent, clusterFile), text)
}

// jobsBefore counts the jobs of the file that were submitted before the cut, as a training reads it.
func jobsBefore(ctx context.Context, t workload.TraceConfig, cut *assess.Cut) (n int, err error) {
	jobs, _, err := workload.LoadTraceContext(ctx, t)
	if err != nil {
		return 0, err
	}
	for i := range jobs {
		if jobs[i].Submit < cut.Half {
			n++
		}
	}
	if n == 0 {
		return 0, errors.New("no job was submitted in the first half")
	}
	return n, nil
}
