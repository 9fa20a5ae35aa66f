package arena

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"clustergym/agents"
	"clustergym/agents/checkpoint"
	"clustergym/env"
	"clustergym/env/sched"
	"clustergym/experiments/config"
	"clustergym/experiments/models"
	"clustergym/experiments/report"
	"clustergym/experiments/rundir"
	"clustergym/experiments/workqueue"
	"clustergym/internal/fault"
	"clustergym/nets"
	"clustergym/nets/model"
	"clustergym/traces"
)

// EvalOptions are the arguments of an evaluation that its configuration does not contain.
type EvalOptions struct {
	Checkpoints []string       // checkpoints or run directories; each is played as its own run's configuration says
	Models      []models.Model // ONNX models
	Workers     int
	World       *World // nil = made from the configuration
	External    *External
	Game        func(done, all int)
	// Queue starts a coordinator that keeps its files in dir, so that other machines play games too; nil = none do. External
	// policies, and those whose choices depend on the clock, play here.
	Queue func(ctx context.Context, dir string) (*workqueue.Coordinator, error)
}

// Evaluate plays checkpoints and the policies of cfg.Eval on the same test windows of cfg's workload, and compares them. A
// checkpoint of another environment or network is a *fault.Mistake.
func Evaluate(ctx context.Context, cfg config.Config, opt EvalOptions) (r *report.Report, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	if !cfg.Simulated() {
		return nil, fault.Mistakef("env.id: %s has no windows of a workload to evaluate on", cfg.Env.ID)
	}
	world := opt.World
	if world == nil {
		if world, err = NewWorld(&cfg); err != nil {
			return nil, err
		}
	}
	n, err := world.count(traces.Test, cfg.Eval.Windows)
	if err != nil {
		return nil, err
	}
	cs, err := world.contestantsContext(ctx, &cfg, &opt)
	if err != nil {
		return nil, err
	}
	v := &evaluation{world: world, cfg: &cfg.Eval, part: traces.Test, windows: n, seeds: cfg.Eval.Seeds, workers: opt.Workers}
	others, err := newSharing(ctx, &cfg, &opt)
	if err != nil {
		return nil, err
	}
	if others != nil {
		defer func() { err = others.close(ctx, err) }()
		if v.elsewhere, err = newElsewhere(ctx, others, &cfg, &cfg, &opt, n); err != nil {
			return nil, err
		}
	}
	tick := counted(v.games(cs), opt.Game)
	var wholly *report.WholeReport
	games, err := v.beside(ctx, cs, opt.External, tick, func(ctx context.Context) ([][][]result, error) {
		games, err := v.play(ctx, cs, tick)
		if err == nil && cfg.Eval.Whole {
			wholly, err = v.playWhole(ctx, cs, tick)
		}
		return games, err
	})
	if err != nil {
		return nil, err
	}
	if r, err = v.report(cs, games); err != nil {
		return nil, err
	}
	r.Whole = wholly
	if l := world.Workload.Left; l.Jobs() > 0 {
		r.LeftOut = &l
	}
	return r, nil
}

// contestants is contestantsContext without a context, for options without models.
func (w *World) contestants(cfg *config.Config, opt *EvalOptions) ([]contestant, error) {
	return w.contestantsContext(context.Background(), cfg, opt)
}

// contestantsContext returns the checkpoints, models and external policies of opt and the policies of cfg, by different names. ctx
// ends what models compute beforehand.
func (w *World) contestantsContext(ctx context.Context, cfg *config.Config, opt *EvalOptions) ([]contestant, error) {
	probe, err := w.NewEnv(traces.Test, 1)
	if err != nil {
		return nil, err
	}
	var cs []contestant
	for _, dir := range opt.Checkpoints {
		c, err := checkpointContestant(dir, probe)
		if err != nil {
			return nil, err
		}
		cs = append(cs, c)
	}
	for i := range opt.Models {
		c, err := modelContestant(ctx, &opt.Models[i], probe)
		if err != nil {
			return nil, err
		}
		cs = append(cs, c)
	}
	if opt.External != nil {
		if err := opt.External.Validate(); err != nil {
			return nil, &fault.Mistake{Err: err}
		}
		for _, name := range opt.External.Names {
			cs = append(cs, contestant{name: name, kind: report.KindExternal})
		}
	}
	rivals, err := w.heuristics(cfg)
	if err != nil {
		return nil, err
	}
	cs = append(cs, rivals...)
	if err := distinct(cs, opt.Checkpoints); err != nil {
		return nil, err
	}
	if len(cs) == 0 {
		return nil, fault.Mistakef("nothing to evaluate: name checkpoints or policies (%s)", config.PolicyForms)
	}
	return cs, nil
}

// games returns how many games cs play in total.
func (v *evaluation) games(cs []contestant) int {
	all := 0
	for _, c := range cs {
		if c.random {
			all += v.windows * v.seeds
		} else {
			all += v.windows
		}
		if v.cfg.Whole && c.whole() {
			all++
		}
	}
	return all
}

// counted returns a function that any worker calls when a game ends; it passes the number of ended games to fn.
func counted(all int, fn func(done, all int)) func() {
	var mu sync.Mutex
	played := 0
	return func() {
		mu.Lock()
		defer mu.Unlock()
		played++
		if fn != nil {
			fn(played, all)
		}
	}
}

// distinct makes the names of contestants unique: checkpoints of runs whose folders have the same name are named by their
// full paths, and remaining duplicates are refused. dirs are the paths of the first contestants.
func distinct(cs []contestant, dirs []string) error {
	count := map[string]int{}
	for _, c := range cs {
		count[c.name]++
	}
	for i, dir := range dirs {
		if count[cs[i].name] > 1 {
			agent, rest, _ := strings.Cut(cs[i].name, ":")
			cs[i].name = agent + ":" + filepath.ToSlash(filepath.Clean(dir)) + rest[strings.LastIndexByte(rest, '@'):]
		}
	}
	seen := map[string]bool{}
	for _, c := range cs {
		if seen[c.name] {
			return fault.Mistakef("policy %s is named twice", c.name)
		}
		seen[c.name] = true
	}
	return nil
}

// Opened is a checkpoint that can play.
type Opened struct {
	Name    string          // agent, run and step, as in tables
	Meta    checkpoint.Meta // what it belongs to
	Cfg     config.Config   // of its run
	Weights []byte
}

// OpenCheckpoint reads a checkpoint, or the checkpoint of a run, for environments with specification spec. A checkpoint of
// another environment or network is a *fault.Mistake.
func OpenCheckpoint(dir string, spec env.Spec) (*Opened, error) {
	ckpt, run, err := rundir.CheckpointDir(dir)
	if err != nil {
		return nil, err
	}
	cfg, err := rundir.ReadConfig(run)
	if err != nil {
		return nil, err
	}
	f, meta, err := checkpoint.Open(ckpt, weightsFile)
	if err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	weights, err := io.ReadAll(f)
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return nil, err
	}
	if err := meta.Match(checkpoint.Meta{Env: spec.ID, Agent: cfg.Agent}); err != nil {
		return nil, &fault.Mistake{Err: fmt.Errorf("%s: %w", ckpt, err)}
	}
	if _, err := NewPolicy(&cfg, spec, bytes.NewReader(weights)); err != nil {
		return nil, &fault.Mistake{Err: fmt.Errorf("%s does not fit this environment%s: %w", ckpt, misfit(&cfg, err), err)}
	}
	return &Opened{checkpointName(cfg.Agent, run, meta.Step), meta, cfg, weights}, nil
}

// OpenPolicy opens a checkpoint, or the checkpoint of a run, with the kernels of its run, to act where no environment of the run is
// open. spec is what the environment has in which the agent was judged. Faults are *fault.Mistakes.
func OpenPolicy(dir string) (c *Opened, p agents.Policy, spec env.Spec, err error) {
	_, run, err := rundir.CheckpointDir(dir)
	if err != nil {
		return nil, nil, spec, err
	}
	cfg, err := rundir.ReadConfig(run)
	if err != nil {
		return nil, nil, spec, err
	}
	if err := config.UseKernels(cfg.Kernels); err != nil {
		return nil, nil, spec, err
	}
	if spec, err = JudgedSpec(&cfg); err != nil {
		return nil, nil, spec, err
	}
	if c, err = OpenCheckpoint(dir, spec); err != nil {
		return nil, nil, spec, err
	}
	p, err = NewPolicy(&c.Cfg, spec, bytes.NewReader(c.Weights))
	return c, p, spec, err
}

// misfit explains weights of other shapes in half a sentence.
func misfit(cfg *config.Config, err error) string {
	net := &cfg.PPO.Network
	if cfg.Agent == "ddqn" {
		net = &cfg.DDQN.Network
	}
	switch {
	case !errors.Is(err, nets.ErrShape) || cfg.Meta():
		return ""
	case net.Kind == model.KindAttention:
		return ", whose fields have other columns than those of its training"
	}
	return ", where its network has weights of other shapes (those of kind attention fit every cluster and number of slots)"
}

// checkpointContestant returns a contestant that plays a checkpoint greedily, with the agent of its own run.
func checkpointContestant(dir string, probe sched.Arena) (contestant, error) {
	c, err := OpenCheckpoint(dir, probe.Spec())
	if err != nil {
		return contestant{}, err
	}
	return contestant{name: c.Name, kind: report.KindCheckpoint, trained: c.Cfg.Estimates(), player: func(e sched.Arena) (player, error) {
		p, err := NewPolicy(&c.Cfg, e.Spec(), bytes.NewReader(c.Weights))
		if err != nil {
			return nil, err
		}
		return policyPlayer(e, p), nil
	}}, nil
}

// checkpointName returns the name of a checkpoint in tables: agent, run and step.
func checkpointName(agent, run string, step int64) string {
	return agent + ":" + filepath.Base(run) + "@" + strconv.FormatInt(step, 10)
}
