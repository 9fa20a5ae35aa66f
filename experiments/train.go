package experiments

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"clustergym/agents"
	"clustergym/agents/checkpoint"
	"clustergym/agents/train"
	"clustergym/configs"
	"clustergym/env"
	"clustergym/env/metrics"
	"clustergym/env/sched"
	"clustergym/internal/tfevents"
	"clustergym/nets"
	"clustergym/nets/kernel"
	"clustergym/traces"
)

// ErrInterrupted is returned by Train when its context was cancelled: everything up to then is saved.
var ErrInterrupted = errors.New("interrupted")

// TrainOptions are what does not belong to a configuration, because it changes nothing but speed and looks.
type TrainOptions struct {
	RunDir  string
	Resume  bool   // continue the run in RunDir
	Workers int    // goroutines
	Tags    string // names in TensorBoard: sb3 or cleanrl
	NoEval  bool   // leave out the evaluation at the end
	Now     Clock  // nil = the machine's

	Say  func(format string, args ...any)             // one line for people; nil = silent
	Tick func(p train.Progress)                       // after every iteration
	Log  func(r train.Record, perSecond float64)      // at every line of progress.jsonl
	Best func(step int64, meanJCT float64, best bool) // after every validation
	Game func(done, all int)                          // as games of the final evaluation end
}

// TrainResult is what a run ends with: the document of gymctl train --json.
type TrainResult struct {
	Step       int64    `json:"step"`
	Episodes   int64    `json:"episodes"`
	Return     *float64 `json:"return_mean"`
	PerSecond  *float64 `json:"steps_per_s"`
	Checkpoint string   `json:"checkpoint"` // the one evaluated: the best on the validation windows
	Eval       *Report  `json:"eval,omitempty"`
}

// line is one record of progress.jsonl, or the line of a validation, which has Step and Eval alone. What measures
// the machine stands under Timing: everything else is the same for the same seed, whatever the machine does and
// however many workers there are.
type line struct {
	Step     int64              `json:"step"`
	Episodes int64              `json:"episodes"`
	Updates  int64              `json:"updates"`
	Return   *float64           `json:"return_mean"`
	Length   *float64           `json:"length_mean"`
	Info     map[string]float64 `json:"info,omitempty"`
	Learn    map[string]float64 `json:"train,omitempty"`
	Eval     *validation        `json:"eval,omitempty"`
	Timing   *timing            `json:"timing,omitempty"`
}

// result is what a run that ends with l ends with.
func (l *line) result() TrainResult {
	r := TrainResult{Step: l.Step, Episodes: l.Episodes, Return: l.Return}
	if l.Timing != nil {
		r.PerSecond = &l.Timing.PerSecond
	}
	return r
}

// evalLine is the line of a validation.
type evalLine struct {
	Step int64       `json:"step"`
	Eval *validation `json:"eval"`
}

type validation struct {
	Windows int     `json:"windows"`
	JCT     float64 `json:"jct_s"`
	Best    bool    `json:"best"`
}

type timing struct {
	PerSecond float64 `json:"steps_per_s"`
	Wall      float64 `json:"wall_s"`
}

// training is one run under way.
type training struct {
	cfg     *Config
	opt     *TrainOptions
	world   *World
	agent   learner
	trainer *train.Trainer
	dir     *runDir
	spec    env.Spec
	best    best
	hasBest bool

	begun    time.Time
	lastTime time.Time
	lastStep int64
	result   TrainResult
}

// Train trains an agent as cfg says and evaluates it. A cancelled ctx ends it between two updates with
// ErrInterrupted, after a checkpoint.
func Train(ctx context.Context, cfg Config, opt TrainOptions) (*TrainResult, error) {
	if err := cfg.Validate(); err != nil {
		return nil, &InputError{err}
	}
	t := &training{cfg: &cfg, opt: &opt}
	if opt.Say == nil {
		opt.Say = func(string, ...any) {}
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Resume {
		if err := sameRun(opt.RunDir, &cfg); err != nil {
			return nil, err
		}
	}
	var err error
	if t.world, err = NewWorld(&cfg); err != nil {
		return nil, err
	}
	if _, err := t.world.count(traces.Validation, 1); err != nil {
		return nil, err
	}
	if _, err := t.world.count(traces.Test, 1); err != nil {
		return nil, err
	}
	probe, err := t.world.NewEnv(traces.Training, cfg.gamma())
	if err != nil {
		return nil, err
	}
	if err := checkMemory(&cfg, probe.Spec()); err != nil {
		return nil, err
	}
	v, err := t.world.newVec(&cfg, opt.Workers)
	if err != nil {
		return nil, err
	}
	defer func() { _ = v.Close() }() // memory only
	t.spec = v.Spec()
	if t.agent, err = newAgent(&cfg, t.spec, opt.Workers); err != nil {
		return nil, &InputError{err}
	}
	if t.trainer, err = train.New(cfg.Train, v, t.agent, cfg.Seed); err != nil {
		return nil, err
	}
	unlock, from, err := t.enter()
	if err != nil {
		return nil, err
	}
	defer unlock()
	t.describe(from)
	if t.dir, err = openRun(opt.RunDir, t.trainer.Step(), opt.Resume, opt.Tags, opt.Now); err != nil {
		return nil, err
	}
	t.result = t.dir.last.result()
	if t.best, t.hasBest, err = readBest(opt.RunDir); err == nil && opt.Resume {
		err = t.dir.prune(cfg.Train.Keep) // a crash can come between a checkpoint and the removal of an old one
	}
	if err != nil {
		return nil, errors.Join(err, t.dir.Close())
	}
	t.begun = opt.Now()
	t.lastTime, t.lastStep = t.begun, t.trainer.Step()
	err = t.trainer.Run(ctx, train.Hooks{Tick: t.tick, Log: t.log, Evaluate: t.validate, Checkpoint: t.checkpoint})
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		if e := t.checkpoint(t.trainer.Step()); e != nil {
			return nil, errors.Join(e, t.dir.Close())
		}
		return nil, errors.Join(fmt.Errorf("%w at step %d; saved, continue with --resume %s", ErrInterrupted, t.trainer.Step(), opt.RunDir), t.dir.Close())
	}
	if err != nil {
		return nil, errors.Join(err, t.dir.Close())
	}
	if err := t.dir.Close(); err != nil {
		return nil, err
	}
	return t.finish(ctx)
}

// enter makes and locks the run directory, or locks one that is there and loads its newest checkpoint, which from
// describes. Nothing is written before everything was found to fit.
func (t *training) enter() (unlock func(), from string, err error) {
	dir := t.opt.RunDir
	if !t.opt.Resume {
		unlock, err = createRun(dir, t.cfg)
		return unlock, "", err
	}
	if unlock, err = lockRun(dir); err != nil {
		return nil, "", err
	}
	if from, err = t.resume(); err == nil {
		err = writeConfig(dir, t.cfg) // what of it may change may have changed
	}
	if err != nil {
		unlock()
		return nil, "", err
	}
	return unlock, from, nil
}

// sameRun says why a run cannot go on under cfg: what its checkpoints are made of has changed.
func sameRun(dir string, cfg *Config) error {
	old, err := ReadRunConfig(dir)
	if err != nil {
		return err
	}
	was, err := configs.Encode(&old)
	if err != nil {
		return err
	}
	for _, s := range []struct {
		key  string
		take func(c *Config)
	}{
		{"seed", func(c *Config) { c.Seed = cfg.Seed }},
		{"trace", func(c *Config) { c.Trace = cfg.Trace }},
		{"cluster", func(c *Config) { c.Cluster = cfg.Cluster }},
		{"env", func(c *Config) { c.Env = cfg.Env }},
		{"agent", func(c *Config) { c.Agent = cfg.Agent }},
		{"ppo", func(c *Config) { c.PPO = cfg.PPO }},
		{"ddqn", func(c *Config) { c.DDQN = cfg.DDQN }},
		{"train.envs", func(c *Config) { c.Train.Envs = cfg.Train.Envs }},
	} {
		c := old
		s.take(&c)
		is, err := configs.Encode(&c)
		if err != nil {
			return err
		}
		if !bytes.Equal(was, is) {
			return mistake("%s: the run in %s goes on with the one it began with; begin another run to change it", s.key, dir)
		}
	}
	return nil
}

// describe says what is being trained on.
func (t *training) describe(from string) {
	t.opt.Say("run       %s", t.opt.RunDir)
	w := t.world.Workload
	t.opt.Say("workload  %v", t.world.Trace)
	if w.Large > 0 || w.Workless > 0 {
		t.opt.Say("          left out: %s above %d GPUs, %d without work", plural(w.Large, "job", "jobs"), t.cfg.Env.MaxGPUs, w.Workless)
	}
	n := w.Windows
	t.opt.Say("          %d jobs to train on, %d validation windows, %d test windows of %d jobs",
		len(n.Jobs(traces.Training)), n.Count(traces.Validation), n.Count(traces.Test), n.Length())
	t.opt.Say("cluster   %s", t.world.Cluster.Name)
	t.opt.Say("env       %s: reward %s, load %g, estimates %s, placement %s, comm %s", t.cfg.Env.ID, t.cfg.Env.Reward, t.cfg.Env.Load, t.cfg.Env.Estimates, t.cfg.Env.Placement, t.cfg.Env.Comm)
	t.opt.Say("agent     %s, seed %d, %d environments, kernels %s", t.cfg.Agent, t.cfg.Seed, t.cfg.Train.Envs, kernel.Set())
	if from != "" {
		t.opt.Say("resume    %s", from)
	}
}

func (t *training) parts() []agents.Part { return append(t.agent.Parts(), t.trainer.Parts()...) }

// meta says what a checkpoint belongs to.
func (t *training) meta(step int64) checkpoint.Meta {
	return checkpoint.Meta{
		Step: step, Env: t.spec.ID, Agent: t.cfg.Agent, Network: fingerprint(t.agent.Params()), Kernels: kernel.Set(), Seed: t.cfg.Seed,
		Extra: map[string]string{"workload": t.world.Trace.String(), "cluster": t.world.Cluster.Name, extraSHA256: t.world.Trace.SHA256},
	}
}

// extraSHA256 is the key of the trace's hash in what a checkpoint says of itself.
const extraSHA256 = "trace_sha256"

// fingerprint tells networks of other names or shapes apart.
func fingerprint(p *nets.Params) string {
	h := sha256.New()
	for _, v := range p.Views {
		fmt.Fprintln(h, v.Name, v.Shape)
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// resume loads the newest checkpoint of the run directory and says what it loaded.
func (t *training) resume() (from string, err error) {
	if err := wholeCheckpoints(filepath.Join(t.opt.RunDir, checkpoints)); err != nil {
		return "", err
	}
	dir, err := checkpoint.Latest(filepath.Join(t.opt.RunDir, checkpoints))
	if errors.Is(err, checkpoint.ErrNone) {
		return fmt.Sprintf("no checkpoint yet in %s: from the beginning", t.opt.RunDir), nil
	}
	if err != nil {
		return "", err
	}
	m, err := checkpoint.Verify(dir)
	if err != nil {
		return "", &InputError{err}
	}
	if err := m.Meta.Match(t.meta(0)); err != nil {
		return "", &InputError{fmt.Errorf("%s: %w", dir, err)}
	}
	if t.cfg.Train.Steps < m.Meta.Step {
		return "", mistake("train.steps: got %d, want at least the %d that the run in %s has taken", t.cfg.Train.Steps, m.Meta.Step, t.opt.RunDir)
	}
	if err := reported(t.opt.RunDir, m.Meta.Step); err != nil {
		return "", err
	}
	if had, has := m.Meta.Extra[extraSHA256], t.world.Trace.SHA256; had != has {
		return "", mistake("trace %s has changed since the run in %s began (sha256 %.12s…, then %.12s…)", t.world.Trace.File, t.opt.RunDir, has, had)
	}
	if _, err := checkpoint.Load(dir, t.parts()...); err != nil {
		return "", &InputError{fmt.Errorf("%s: %w", dir, err)}
	}
	from = fmt.Sprintf("%s, step %d of %d", dir, t.trainer.Step(), t.cfg.Train.Steps)
	if m.Meta.Kernels != kernel.Set() {
		from += fmt.Sprintf("; it was made with kernels %s: the last bits of what follows will differ", m.Meta.Kernels)
	}
	if a, ok := t.agent.(interface{ ExactResume() bool }); ok && !a.ExactResume() {
		from += "; it holds no replay: what follows will differ from a run that was not interrupted"
	}
	return from, nil
}

func (t *training) tick(p train.Progress) error {
	if t.opt.Tick != nil {
		t.opt.Tick(p)
	}
	return nil
}

func (t *training) log(r train.Record) error {
	now := t.opt.Now()
	rate := 0.0
	if dt := now.Sub(t.lastTime).Seconds(); dt > 0 {
		rate = float64(r.Step-t.lastStep) / dt
	}
	t.lastTime, t.lastStep = now, r.Step
	l := line{
		Step: r.Step, Episodes: r.Episodes, Updates: r.Updates, Return: number(r.Return), Length: number(r.Length),
		Info: stats(r.Info), Learn: stats(r.Learn), Timing: &timing{rate, now.Sub(t.begun).Seconds()},
	}
	t.result = l.result()
	if err := t.dir.line(l); err != nil {
		return err
	}
	var s []tfevents.Scalar
	add := func(group, name string, v float64) {
		if !math.IsNaN(v) {
			s = append(s, tfevents.Scalar{Tag: tag(t.dir.tags, group, name), Value: v})
		}
	}
	add("rollout", "ep_rew_mean", r.Return)
	add("rollout", "ep_len_mean", r.Length)
	add("time", "fps", rate)
	add("time", "iterations", float64(r.Updates))
	add("time", "time_elapsed", now.Sub(t.begun).Seconds())
	add("time", "total_timesteps", float64(r.Step))
	for _, i := range r.Info {
		add("rollout", i.Name, i.Value)
	}
	for _, i := range r.Learn {
		add("train", i.Name, i.Value)
	}
	if err := t.dir.scalars(r.Step, s); err != nil {
		return err
	}
	if t.opt.Log != nil {
		t.opt.Log(r, rate)
	}
	return nil
}

func stats(list []agents.Stat) map[string]float64 {
	m := map[string]float64{}
	for _, s := range list {
		if number(s.Value) != nil {
			m[s.Name] = s.Value
		}
	}
	return m
}

// greedy is the agent as it stands, for evaluations that run beside each other.
func (t *training) greedy() contestant {
	weights := t.agent.Params()
	return contestant{name: "agent", kind: "checkpoint", player: func(e *sched.Env) (player, error) {
		p, err := newPolicy(t.cfg, e.Spec(), paramsReader(weights))
		if err != nil {
			return nil, err
		}
		return policyPlayer(e, p), nil
	}}
}

// validate plays the validation windows greedily and keeps the checkpoint if it is the best so far.
func (t *training) validate(step int64) error {
	n, err := t.world.count(traces.Validation, t.cfg.Eval.Validation)
	if err != nil {
		return err
	}
	v := &evaluation{world: t.world, cfg: &t.cfg.Eval, part: traces.Validation, windows: n, seeds: 1, workers: t.opt.Workers}
	played, err := v.play(context.Background(), []contestant{t.greedy()}, nil)
	if err != nil {
		return err
	}
	jct := GeometricMean(column(played[0][0], func(s *metrics.Summary) float64 { return s.JCT.Mean }))
	better := !t.hasBest || jct < t.best.Value
	if err := t.dir.line(evalLine{step, &validation{n, jct, better}}); err != nil {
		return err
	}
	if err := t.dir.scalars(step, []tfevents.Scalar{{Tag: "eval/jct_s", Value: jct}}); err != nil {
		return err
	}
	if t.opt.Best != nil {
		t.opt.Best(step, jct, better)
	}
	if !better {
		return nil
	}
	// First the checkpoint, then the file that names it.
	if err := t.dir.saveCheckpoint(t.meta(step), t.parts()); err != nil {
		return err
	}
	t.best, t.hasBest = best{step, bestMetric, jct}, true
	return writeBest(t.opt.RunDir, t.best)
}

func column(s []metrics.Summary, f func(*metrics.Summary) float64) []float64 {
	out := make([]float64, len(s))
	for i := range s {
		out[i] = f(&s[i])
	}
	return out
}

func (t *training) checkpoint(step int64) error {
	if err := t.dir.saveCheckpoint(t.meta(step), t.parts()); err != nil {
		return err
	}
	return t.dir.prune(t.cfg.Train.Keep)
}

// finish evaluates the best checkpoint on the test windows.
func (t *training) finish(ctx context.Context) (*TrainResult, error) {
	dir, _, err := CheckpointDir(t.opt.RunDir)
	if err != nil {
		return nil, err
	}
	t.result.Step, t.result.Checkpoint = t.trainer.Step(), dir
	if t.opt.NoEval {
		return &t.result, nil
	}
	r, err := Evaluate(ctx, *t.cfg, EvalOptions{
		Checkpoints: []string{dir}, Workers: t.opt.Workers, World: t.world, Game: t.opt.Game,
	})
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%w during the evaluation; the training is saved, --resume %s evaluates again", ErrInterrupted, t.opt.RunDir)
		}
		return nil, err
	}
	t.result.Eval = r
	b, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return nil, err
	}
	name := filepath.Join(t.opt.RunDir, filepath.FromSlash(evalFile))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return nil, err
	}
	return &t.result, writeAside(name, append(b, '\n'))
}

// checkpointName is how a table calls a checkpoint: agent, run and step.
func checkpointName(agent, run string, step int64) string {
	return agent + ":" + filepath.Base(run) + "@" + strconv.FormatInt(step, 10)
}
