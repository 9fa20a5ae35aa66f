package arena

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"clustergym/agents"
	"clustergym/agents/checkpoint"
	"clustergym/env"
	"clustergym/internal/fault"
	"clustergym/lab/config"
	"clustergym/lab/envs"
	"clustergym/lab/rundir"
	"clustergym/nets"
	"clustergym/nets/model"
	"clustergym/traces"
)

// Opened is a checkpoint that can play.
type Opened struct {
	Name    string          // agent, run and step, as in tables
	Run     string          // the folder of its run
	Meta    checkpoint.Meta // what it belongs to
	Cfg     config.Config   // of its run
	Weights []byte
}

// Under returns the checkpoint with policies that choose by a rule, in place of eval.greedy of its own run.
func (c *Opened) Under(r agents.Rule) *Opened {
	own := *c
	own.Cfg.Eval.Greedy = r
	return &own
}

// greedy returns the rule of a policy of the checkpoint for documents: "" if it is the agent's default, as it always
// was before there was a choice, and no other rule was asked for.
func (c *Opened) greedy(spec env.Spec) (agents.Rule, error) {
	p, err := newPolicy(&c.Cfg, spec, bytes.NewReader(c.Weights))
	if err != nil {
		return "", err
	}
	asked := c.Cfg.Eval.Greedy
	chooser, ok := p.(agents.Chooser)
	if !ok {
		return agents.AsGiven, nil
	}
	if usual, now := chooser.By(""), chooser.By(asked); now != usual || asked != "" && now != asked {
		return now, nil
	}
	return "", nil
}

// In returns the greedy policy of the checkpoint for an environment.
func (c *Opened) In(e env.Env) (agents.Policy, error) { return c.Policy(e.Spec()) }

// Policy returns the greedy policy of the checkpoint for environments with specification spec.
func (c *Opened) Policy(spec env.Spec) (agents.Policy, error) {
	return NewPolicy(&c.Cfg, spec, bytes.NewReader(c.Weights))
}

// OpenCheckpoint reads a checkpoint, or the checkpoint of a run, for environments with specification spec. A checkpoint
// of another environment or network is a *fault.Mistake.
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
	name := fmt.Sprintf("%s:%s@%d", cfg.Agent, filepath.Base(run), meta.Step)
	c := &Opened{name, run, meta, cfg, weights}
	if _, err := c.Policy(spec); err != nil {
		return nil, &fault.Mistake{Err: fmt.Errorf("%s does not fit this environment%s: %w", ckpt, misfit(&cfg, err), err)}
	}
	return c, nil
}

// OpenPolicy opens a checkpoint, or the checkpoint of a run, with the kernels of its run, to act where no environment
// of the run is open. It chooses as it was judged, but draws nothing: by agents.ByShare where the run's eval.greedy is
// sample. spec is what the environment has in which the agent was judged. Faults are *fault.Mistakes.
func OpenPolicy(dir string) (c *Opened, p agents.Policy, spec env.Spec, err error) {
	return openPolicy(dir, true)
}

// openPolicy is OpenPolicy, with the kernels of the run only if they are asked for.
func openPolicy(dir string, kernels bool) (c *Opened, p agents.Policy, spec env.Spec, err error) {
	ckpt, run, err := rundir.CheckpointDir(dir)
	if err != nil {
		return nil, nil, spec, err
	}
	cfg, err := rundir.ReadConfig(run)
	if err != nil {
		return nil, nil, spec, err
	}
	if kernels {
		err = config.UseKernels(cfg.Kernels)
	}
	if err == nil {
		spec, err = JudgedSpec(&cfg)
	}
	if err == nil {
		c, err = OpenCheckpoint(ckpt, spec)
	}
	if err != nil {
		return nil, nil, spec, err
	}
	c.Run = run
	p, err = c.Under(c.Cfg.Eval.Greedy.Certain()).Policy(spec)
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
	return ", where its network has weights of other shapes (agents of the preset quickstart, with env.images=false, fit " +
		"every cluster; networks of kind attention fit every number of slots, too)"
}

// JudgedSpec returns the specification of the environment in which the agent of a run is judged. It does not read the
// run's workload unless the shapes depend on it.
func JudgedSpec(cfg *config.Config) (env.Spec, error) {
	d := cfg.Descriptor()
	if !d.Simulated() && cfg.Trace.File != "" { // recorded graphs or workers decide the shapes
		w, err := NewScenario(cfg)
		if err != nil {
			return env.Spec{}, err
		}
		e, err := w.open(w.judged(), w.Source, traces.Test)
		if err != nil {
			return env.Spec{}, err
		}
		defer e.Close() //nolint:errcheck // it holds nothing
		return e.Spec(), nil
	}
	info, err := envs.Describe(d.ID, func(a *envs.Args) error {
		a.Settings, a.Trace = cfg.Env.Settings, cfg.Trace
		if d.Judged != nil {
			a.Settings = d.Judged(a.Settings)
		}
		if d.Takes.Cluster {
			a.Cluster = cfg.Cluster
		}
		return nil
	})
	if err != nil {
		return env.Spec{}, err
	}
	return info.Spec, nil
}
