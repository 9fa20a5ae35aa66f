package run

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
	"strings"
	"time"

	"clustergym/agents"
	"clustergym/agents/checkpoint"
	"clustergym/agents/imitate"
	"clustergym/agents/train"
	"clustergym/configs"
	"clustergym/distributed/ranks"
	"clustergym/distributed/workqueue"
	"clustergym/env"
	"clustergym/env/vec"
	"clustergym/internal/fault"
	"clustergym/internal/plain"
	"clustergym/internal/shortage"
	"clustergym/internal/tfevents"
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/lab/report"
	"clustergym/lab/rundir"
	"clustergym/nets"
	"clustergym/nets/kernel"
	"clustergym/simulator/policyname"
)

// TrainOptions are the arguments of a training that do not affect its results.
type TrainOptions struct {
	RunDir string
	Resume bool // continue the run in RunDir
	// Continue lets ranks other than 0 do what rank 0 does: begin or resume. Train itself does not look for a run (Begun).
	Continue bool
	Workers  int             // goroutines
	Scenario *arena.Scenario // of a scheduling environment; nil = made from the configuration
	Chosen   []string        // sentences on sizes that follow from the workload (arena.Fit), to be said
	Tags     string          // names in TensorBoard: sb3 or cleanrl
	NoEval   bool            // leave out the evaluation at the end
	// If Until is not 0, the run pauses at the first step from Until on and can be resumed: it is validated and saved
	// there and not evaluated. Schedules still refer to Config.Train.Steps.
	Until int64
	Now   rundir.Clock // nil = the machine's

	// Ranks, if set, is the group of processes that train together, a replica each. Only rank 0 has the run directory and
	// says anything. Train ends this rank's part of the group. Changes are the keys that a resumed run changes (--set),
	// which the ranks compare; the others get the rest of its configuration from rank 0.
	Ranks   *ranks.Group
	Changes []string

	Say  func(format string, args ...any)          // one line for people; nil = silent
	Tick func(p train.Progress)                    // after every iteration
	Log  func(r train.Record, perSecond float64)   // at every line of progress.jsonl
	Best func(step int64, score string, best bool) // after every validation; score in words
	Game func(done, all int)                       // as games of the final evaluation end
	// Saved is called after every checkpoint, when RunDir is complete and nothing is written to it. An error ends the
	// training.
	Saved func() error
	// Lent are copies of files of train.imitate_from, for a machine that does not have that run; nil = it has.
	Lent *Lent
	// Queue lets other machines train the seeds of TrainSeeds; nil = none.
	Queue workqueue.Opener
}

// Lent are copies of files of another run.
type Lent struct{ Config, Recording string }

// TrainResult is the result of a training: the document of gymctl train --json.
type TrainResult struct {
	Step       int64            `json:"step"`
	Episodes   int64            `json:"episodes"`
	Return     *float64         `json:"return_mean"`
	PerSecond  *float64         `json:"steps_per_s"`          // of the training, without evaluations
	Interval   *float64         `json:"interval_steps_per_s"` // of the last interval that holds a whole update
	Kernels    string           `json:"kernels"`              // set of float32 kernels that computed it
	Checkpoint string           `json:"checkpoint"`           // the one evaluated: the best of the validations
	Eval       arena.Comparison `json:"eval,omitempty"`       // a *Report or, without a workload, an *EpisodeReport

	Best rundir.BestCheckpoint `json:"-"` // set if Until is: the best validation so far
}

// resultOf returns the result of a run whose last record is l.
func resultOf(l *rundir.Line) TrainResult {
	r := TrainResult{Step: l.Step, Episodes: l.Episodes, Return: l.Return, Kernels: l.Kernels}
	if l.Timing != nil {
		r.PerSecond, r.Interval = &l.Timing.PerSecond, l.Timing.Interval
	}
	return r
}

// training is a running training.
type training struct {
	cfg       *config.Config
	opt       *TrainOptions
	arena     arena.Arena
	agent     arena.Trainee
	trainer   runner
	dir       *rundir.Dir
	spec      env.Spec
	wait      *shortage.Wait // for space on the disk
	best      rundir.BestCheckpoint
	hasBest   bool
	validated int64          // step of the last validation, -1 = none
	lessons   *imitate.Phase // nil = the run does not imitate
	borrowed  []byte         // what another run has recorded

	pause  context.CancelFunc // ends the run at opt.Until
	ranked                    // with TrainOptions.Ranks

	begun  time.Time
	pace   pace
	result TrainResult
}

// Train trains an agent as cfg says and evaluates it. If ctx is cancelled, Train stops between two updates, saves a
// checkpoint and returns fault.ErrInterrupted.
func Train(ctx context.Context, cfg config.Config, opt TrainOptions) (*TrainResult, error) {
	t := &training{cfg: &cfg, opt: &opt}
	r, err := t.train(ctx, cfg)
	if ctx.Err() != nil && shortage.OfSpace(err) {
		err = fault.Errorf("%w while the disk is full: what came after the last checkpoint is not saved; make space and "+
			"continue with %s %s (%w)", fault.ErrInterrupted, fault.Key("resume"), opt.RunDir, err)
	}
	if opt.Ranks != nil {
		err = t.leave(err)
	}
	return r, err
}

func (t *training) train(ctx context.Context, cfg config.Config) (*TrainResult, error) {
	opt := t.opt
	if opt.Ranks != nil {
		if err := t.plan(&cfg); err != nil {
			return nil, err
		}
	}
	t.cfg = &cfg
	choices, err := t.prepare(ctx)
	if err != nil {
		return nil, err
	}
	release, err := t.make()
	if err != nil {
		return nil, err
	}
	defer release()
	if opt.Ranks != nil {
		if err := t.agree(); err != nil {
			return nil, err
		}
	}
	if t.follows() {
		return t.follow(ctx)
	}
	t.wait = shortage.Patient(ctx, opt.Say)
	unlock, from, err := t.enter()
	if err != nil {
		return nil, err
	}
	defer unlock()
	arena.Say(opt.Say, append(t.describe(from), choices...)...)
	if err := t.open(); err != nil {
		return nil, err
	}
	t.begun = opt.Now()
	t.pace.begin(t.begun, t.trainer.Step(), unknownUpdates)
	running, pause := context.WithCancel(ctx)
	defer pause()
	if t.pause = pause; opt.Until > 0 && t.trainer.Step() >= opt.Until {
		pause()
	}
	err = t.trainer.Run(running, train.Hooks{Tick: t.tick, Log: t.log, Evaluate: t.validate, Checkpoint: t.checkpoint})
	if opt.Until > 0 && ctx.Err() == nil && (err == nil || errors.Is(err, context.Canceled)) {
		return t.paused()
	}
	return t.ended(ctx, err)
}

// prepare checks the configuration, and loads its scenario and takes its kernels into use. It returns what is to be
// said of the choices that training windows have.
func (t *training) prepare(ctx context.Context) (choices []arena.Fact, err error) {
	cfg, opt := t.cfg, t.opt
	if err := cfg.Validate(); err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	heard := opt.Say != nil
	if !heard {
		opt.Say = func(string, ...any) {}
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Resume && !t.follows() {
		if err := sameRun(opt.RunDir, cfg); err != nil {
			return nil, err
		}
	}
	if err = config.UseKernels(cfg.Kernels); err != nil {
		return nil, err
	}
	if t.arena, err = arena.New(cfg, opt.Scenario); err != nil {
		return nil, err
	}
	if t.spec, err = t.arena.Spec(cfg); err != nil {
		return nil, err
	}
	if err := config.CheckMemory(cfg, t.spec); err != nil {
		return nil, err
	}
	if w, ok := t.arena.(*arena.Scenario); ok && !opt.Resume && heard && !t.follows() {
		return w.DescribeChoices(ctx, cfg)
	}
	return nil, nil
}

// open opens the run directory for what the training writes.
func (t *training) open() (err error) {
	opt, reported := t.opt, t.trainer.Step()
	if t.lessons != nil {
		if err := t.recall(); err != nil {
			return err
		}
		if !t.lessons.Done() {
			reported = -1 // step 0 is reported once the lessons are over
		}
	}
	if t.dir, err = rundir.Open(opt.RunDir, reported, opt.Resume, opt.Tags, opt.Now, t.wait); err != nil {
		return err
	}
	t.result, t.validated = resultOf(&t.dir.Last), t.dir.Validated
	if t.best, t.hasBest, err = rundir.ReadBest(opt.RunDir); err == nil && opt.Resume {
		err = t.dir.Prune(t.cfg.Train.Keep) // a crash can happen between writing a checkpoint and removing an old one
	}
	if err == nil {
		err = t.dir.Params(t.cfg)
	}
	if err != nil {
		return errors.Join(err, t.dir.Close())
	}
	return nil
}

// ended saves a training that was interrupted and evaluates one that has come to its end. err is that of its last step.
func (t *training) ended(ctx context.Context, err error) (r *TrainResult, _ error) {
	interrupted := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	if interrupted {
		err = t.checkpoint(t.trainer.Step())
	}
	if err == nil {
		err = t.disband()
	}
	switch {
	case err != nil:
	case interrupted:
		err = fault.Errorf("%w at step %d; saved, continue with %s %s", fault.ErrInterrupted, t.trainer.Step(),
			fault.Key("resume"), t.opt.RunDir)
	default:
		r, err = t.finish(ctx)
	}
	if err = errors.Join(err, t.dir.Close()); err != nil {
		return nil, err
	}
	return r, nil
}

// make makes the agent, its environments and its trainer. release frees their memory.
func (t *training) make() (release func(), err error) {
	if f, ok := t.arena.(*arena.Families); ok {
		l, err := arena.NewLearner(t.cfg, f.Open, t.opt.Workers)
		if err != nil {
			return nil, &fault.Mistake{Err: err}
		}
		t.agent, t.trainer = l, newMetaTrainer(t.cfg, l)
		return func() { _ = l.Close() }, nil // memory only
	}
	own, fill := *t.cfg, t.makeAgent
	if g := t.opt.Ranks; g != nil { // of this rank
		own.Train.Envs /= g.World()
		fill = t.makeRank
	}
	v, err := t.arena.NewVec(&own, t.opt.Workers)
	if err != nil {
		return nil, err
	}
	if err := fill(v); err != nil {
		_ = v.Close()
		return nil, err
	}
	return func() { _ = v.Close() }, nil // memory only
}

// wrongAgent returns the error of the agent's constructor with the keys of its section.
func (t *training) wrongAgent(err error) error {
	var l fault.List
	l.Join(t.cfg.Agent, err)
	return &fault.Mistake{Err: l.Err()}
}

// makeAgent makes the agent and the trainer, whose environments are v.
func (t *training) makeAgent(v *vec.Vec) error {
	a, err := arena.NewAgent(t.cfg, t.spec, t.opt.Workers)
	if err != nil {
		return t.wrongAgent(err)
	}
	trainer, err := train.New(loopOf(t.cfg), v, a, t.cfg.Seed)
	if err != nil {
		return err
	}
	trainer.Kernels = kernel.Set()
	if t.cfg.Train.Imitate != "" {
		if trainer.Lessons, err = arena.NewLessons(t.cfg, t.arena, t.spec, t.opt.Workers); err != nil {
			return &fault.Mistake{Err: err}
		}
		t.lessons = trainer.Lessons
		if _, err := os.Stat(filepath.Join(t.opt.RunDir, rundir.RecordingFile)); err != nil {
			if err := t.borrow(); err != nil {
				return err
			}
		}
	}
	t.agent, t.trainer = a, trainer
	return nil
}

// paused validates and saves the run at its current step.
func (t *training) paused() (*TrainResult, error) {
	step := t.trainer.Step()
	var err error
	if t.validated != step {
		err = t.validate(step)
	}
	if err == nil {
		err = t.checkpoint(step)
	}
	if err = errors.Join(err, t.dir.Close()); err != nil {
		return nil, err
	}
	t.result.Step, t.result.Kernels, t.result.Best = step, kernel.Set(), t.best
	t.result.Checkpoint, _, err = rundir.CheckpointDir(t.opt.RunDir)
	return &t.result, err
}

// enter makes and locks the run directory, or locks an existing one and loads its newest checkpoint, which from
// describes. It writes nothing until everything fits.
func (t *training) enter() (unlock func(), from string, err error) {
	dir := t.opt.RunDir
	if !t.opt.Resume {
		unlock, err = rundir.Create(dir, t.cfg)
		return unlock, "", err
	}
	if unlock, err = rundir.Lock(dir); err != nil {
		return nil, "", err
	}
	if from, err = t.resume(); err == nil {
		err = rundir.WriteConfig(dir, t.cfg) // some keys may have changed
	}
	if err != nil {
		unlock()
		return nil, "", err
	}
	return unlock, from, nil
}

// sameRun returns an error if a run cannot continue under cfg because a key that its checkpoints depend on has changed.
func sameRun(dir string, cfg *config.Config) error {
	old, err := rundir.ReadConfig(dir)
	if err != nil {
		return err
	}
	was, err := configs.Encode(&old)
	if err != nil {
		return err
	}
	teacher := policyname.Of(cfg.Train.Imitate)
	for _, s := range []struct {
		key  string
		take func(c *config.Config)
	}{
		{"seed", func(c *config.Config) { c.Seed = cfg.Seed }},
		{"trace", func(c *config.Config) { c.Trace = cfg.Trace }},
		{"cluster", func(c *config.Config) { c.Cluster = cfg.Cluster }},
		{"env", func(c *config.Config) { c.Env = cfg.Env }},
		{"agent", func(c *config.Config) { c.Agent = cfg.Agent }},
		{"ppo", func(c *config.Config) { c.PPO = cfg.PPO }},
		{"ddqn", func(c *config.Config) { c.DDQN = cfg.DDQN }},
		{"maml", func(c *config.Config) { c.MAML = cfg.MAML }},
		{"improper", func(c *config.Config) { c.Improper = cfg.Improper }},
		{"train.envs", func(c *config.Config) { c.Train.Envs = cfg.Train.Envs }},
		{"eval.rollout", func(c *config.Config) {
			if teacher.Ahead == policyname.Rollout { // the teacher's
				c.Eval.Rollout = cfg.Eval.Rollout
			}
		}},
		{"eval.hold", func(c *config.Config) {
			if teacher.Plain() == policyname.AtSlots("hold") { // the teacher's
				c.Eval.Hold = cfg.Eval.Hold
			}
		}},
		{"eval.index", func(c *config.Config) {
			if teacher == policyname.AtSlots("index") { // the teacher's
				c.Eval.Index = cfg.Eval.Index
			}
		}},
		{"train.group", func(c *config.Config) { c.Train.Group = cfg.Train.Group }},
		{"train.imitate", func(c *config.Config) {
			c.Train.Imitate, c.Train.ImitateSteps = cfg.Train.Imitate, cfg.Train.ImitateSteps
			c.Train.ImitateEpochs, c.Train.ImitateRounds = cfg.Train.ImitateEpochs, cfg.Train.ImitateRounds
			c.Train.ImitateFrom, c.Train.ImitateLR = cfg.Train.ImitateFrom, cfg.Train.ImitateLR
		}},
	} {
		c := old
		s.take(&c)
		is, err := configs.Encode(&c)
		if err != nil {
			return err
		}
		if !bytes.Equal(was, is) {
			return fault.Mistakef("%s: the run in %s goes on with the one it began with; begin another run to change it", s.key,
				dir)
		}
	}
	return nil
}

// describe says what the run trains on.
func (t *training) describe(from string) []arena.Fact {
	facts := append([]arena.Fact{{Key: "run", Value: t.opt.RunDir}}, t.arena.Describe(t.cfg)...)
	for _, line := range t.opt.Chosen {
		facts = append(facts, arena.Fact{Key: "chosen", Value: line})
	}
	envs := ""
	if !t.cfg.Meta() {
		envs = ", " + plain.Count(t.cfg.Train.Envs, "environment", "environments")
	}
	facts = append(facts, arena.Factf("agent", "%s, seed %d%s, kernels %s", t.cfg.Agent, t.cfg.Seed, envs, kernel.Set()))
	if t.lessons != nil {
		steps, epochs, rounds := t.cfg.Train.Imitation()
		facts = append(facts,
			arena.Factf("imitates", "%s: %s in %s, %s each", t.cfg.Train.Imitate, plain.Count(int(steps), "step", "steps"),
				plain.Count(rounds, "round", "rounds"), plain.Count(epochs, "epoch", "epochs")))
	}
	if note := t.cfg.Note(); note != "" {
		facts = append(facts, arena.Fact{Key: "note", Value: "this run " + note})
	}
	if from != "" {
		facts = append(facts, arena.Fact{Key: "resume", Value: from})
	}
	return facts
}

func (t *training) parts() []agents.Part { return append(t.agent.Parts(), t.trainer.Parts()...) }

// meta returns the description of a checkpoint.
func (t *training) meta(step int64) checkpoint.Meta {
	return checkpoint.Meta{
		Step: step, Env: t.spec.ID, Agent: t.cfg.Agent, Network: fingerprint(t.agent.Params()), Kernels: kernel.Set(),
		Seed:  t.cfg.Seed,
		Extra: t.arena.Origin(),
	}
}

// fingerprint returns a text that differs between networks with different names or shapes.
func fingerprint(p *nets.Params) string {
	h := sha256.New()
	for _, v := range p.Views {
		fmt.Fprintln(h, v.Name, v.Shape)
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// resume loads the newest checkpoint of the run directory and returns a description of it.
func (t *training) resume() (from string, err error) {
	if err := rundir.WholeCheckpoints(filepath.Join(t.opt.RunDir, rundir.Checkpoints)); err != nil {
		return "", err
	}
	dir, err := checkpoint.Latest(filepath.Join(t.opt.RunDir, rundir.Checkpoints))
	if errors.Is(err, checkpoint.ErrNone) {
		return fmt.Sprintf("no checkpoint yet in %s: from the beginning", t.opt.RunDir), t.load("")
	}
	if err != nil {
		return "", err
	}
	m, err := checkpoint.Verify(dir)
	if err != nil {
		return "", &fault.Mistake{Err: err}
	}
	if err := m.Meta.Match(t.meta(0)); err != nil {
		return "", &fault.Mistake{Err: fmt.Errorf("%s: %w", dir, err)}
	}
	if t.cfg.Train.Steps < m.Meta.Step {
		return "", fault.Mistakef("train.steps: got %d, want at least the %d that the run in %s has taken", t.cfg.Train.Steps,
			m.Meta.Step, t.opt.RunDir)
	}
	if err := rundir.Reported(t.opt.RunDir, m.Meta.Step); err != nil {
		return "", err
	}
	if err := t.arena.Same(m.Meta.Extra, t.opt.RunDir); err != nil {
		return "", err
	}
	if err := t.load(dir); err != nil {
		return "", err
	}
	from = fmt.Sprintf("%s, step %d of %d", dir, t.trainer.Step(), t.cfg.Train.Steps)
	if m.Meta.Kernels != kernel.Set() {
		from += fmt.Sprintf("; it was made with kernels %s and goes on with %s: the last bits of what follows will differ",
			m.Meta.Kernels, kernel.Set())
	}
	if a, ok := t.agent.(interface{ ExactResume() bool }); ok && !a.ExactResume() {
		from += "; it holds no replay: what follows will differ from a run that was not interrupted"
	}
	if t.cfg.Note() != "" {
		from += "; it follows the clock: what follows will differ from a run that was not interrupted"
	}
	return from, nil
}

func (t *training) tick(p train.Progress) error {
	if t.opt.Until > 0 && p.Step >= t.opt.Until {
		t.pause()
	}
	if t.opt.Tick != nil {
		t.opt.Tick(p)
	}
	return nil
}

func (t *training) log(r train.Record) error {
	now := t.opt.Now()
	rate, interval := t.pace.rates(now, r.Step, r.Updates)
	l := rundir.Line{
		Step: r.Step, Episodes: r.Episodes, Updates: r.Updates, Kernels: kernel.Set(), Note: t.cfg.Note(),
		Return: report.Number(r.Return), Length: report.Number(r.Length),
		Info: stats(r.Info), Learn: stats(r.Learn),
		Timing: &rundir.Timing{PerSecond: rate, Interval: &interval, Wall: now.Sub(t.begun).Seconds()},
	}
	t.result = resultOf(&l)
	if err := t.dir.Append(l); err != nil {
		return err
	}
	var s []tfevents.Scalar
	add := func(group, name string, v float64) {
		if !math.IsNaN(v) {
			s = append(s, tfevents.Scalar{Tag: tag(t.dir.Tags, group, name), Value: v})
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
	if err := t.dir.Scalars(r.Step, s); err != nil {
		return err
	}
	if l.Note != "" {
		if err := t.dir.Text(r.Step, "run/note", l.Note); err != nil {
			return err
		}
	}
	if t.opt.Log != nil {
		t.opt.Log(r, rate)
	}
	return nil
}

func stats(list []agents.Stat) map[string]float64 {
	m := map[string]float64{}
	for _, s := range list {
		if report.Number(s.Value) != nil {
			m[s.Name] = s.Value
		}
	}
	return m
}

// validate judges the current agent and keeps the checkpoint if it is the best so far.
func (t *training) validate(step int64) error {
	begun := t.opt.Now()
	defer func() { t.pace.aside += t.opt.Now().Sub(begun) }()
	v, err := t.arena.Validate(t.cfg, t.agent, t.opt.Workers)
	if err != nil {
		return err
	}
	v.Best, t.validated = !t.hasBest || v.Beats(t.best), step
	if err := t.announce(v.Best); err != nil {
		return err
	}
	if err := t.dir.Append(rundir.EvalLine{Step: step, Eval: v}); err != nil {
		return err
	}
	scalars := []tfevents.Scalar{{Tag: "eval/jct_s", Value: v.JCT}}
	switch {
	case v.Return != nil:
		scalars = []tfevents.Scalar{{Tag: "eval/mean_reward", Value: *v.Return}}
	case v.Score != nil:
		scalars = []tfevents.Scalar{{Tag: "eval/" + v.Metric, Value: *v.Score}}
	}
	if err := t.dir.Scalars(step, scalars); err != nil {
		return err
	}
	if t.opt.Best != nil {
		t.opt.Best(step, v.Words(), v.Best)
	}
	if !v.Best {
		return nil
	}
	// First the checkpoint, then the file that names it.
	if err := t.save(step); err != nil {
		return err
	}
	t.best, t.hasBest = v.At(step), true
	return t.dir.WriteBest(t.best)
}

// load restores the checkpoint in dir. It does nothing if dir is "", before the first checkpoint.
func (t *training) load(dir string) error {
	if t.opt.Ranks != nil {
		return t.loadRanks(dir)
	}
	if dir == "" {
		return nil
	}
	if _, err := checkpoint.Load(dir, t.parts()...); err != nil {
		return &fault.Mistake{Err: fmt.Errorf("%s: %w", dir, err)}
	}
	return nil
}

// save writes a checkpoint.
func (t *training) save(step int64) error {
	if t.opt.Ranks != nil {
		return t.saveRanks(step)
	}
	return t.dir.SaveCheckpoint(t.meta(step), t.parts())
}

func (t *training) checkpoint(step int64) error {
	if err := t.save(step); err != nil {
		return err
	}
	if err := t.dir.Prune(t.cfg.Train.Keep); err != nil || t.opt.Saved == nil {
		return err
	}
	return t.opt.Saved()
}

// finish evaluates the best checkpoint on the test windows or episodes.
func (t *training) finish(ctx context.Context) (*TrainResult, error) {
	dir, _, err := rundir.CheckpointDir(t.opt.RunDir)
	if err != nil {
		return nil, err
	}
	t.result.Step, t.result.Checkpoint, t.result.Kernels = t.trainer.Step(), dir, kernel.Set()
	if t.opt.NoEval {
		return &t.result, t.dir.Ended()
	}
	r, err := t.arena.Judge(ctx, *t.cfg,
		arena.EvalOptions{Checkpoints: []string{dir}, Workers: t.opt.Workers, Game: t.opt.Game})
	if err != nil {
		if ctx.Err() != nil {
			return nil, fault.Errorf("%w during the evaluation; the training is saved, %s %s evaluates again",
				fault.ErrInterrupted, fault.Key("resume"), t.opt.RunDir)
		}
		return nil, err
	}
	t.result.Eval = r
	b, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return nil, err
	}
	if err := t.dir.WriteFile(rundir.EvalFile, append(b, '\n')); err != nil {
		return nil, err
	}
	if err := t.dir.Scalars(t.result.Step, evaluated(r)); err != nil {
		return nil, err
	}
	return &t.result, t.dir.Ended()
}

// tag returns the name of a statistic in TensorBoard, in the style of Stable-Baselines3 or CleanRL. A name that
// contains a group keeps it.
func tag(family, group, name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	if family == "cleanrl" {
		switch group + "/" + name {
		case "rollout/ep_rew_mean":
			return "charts/episodic_return"
		case "rollout/ep_len_mean":
			return "charts/episodic_length"
		case "time/fps":
			return "charts/SPS"
		case "train/learning_rate":
			return "charts/learning_rate"
		}
		if group == "train" {
			return "losses/" + name
		}
	}
	return group + "/" + name
}
