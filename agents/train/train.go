package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"clustergym/agents"
	"clustergym/agents/imitate"
	"clustergym/env"
	"clustergym/env/vec"
	"clustergym/internal/rng"
)

// recent is the number of finished episodes over which means are reported, as in Stable-Baselines3.
const recent = 100

// Record is a report of a run at one step.
type Record struct {
	Step     int64
	Episodes int64
	Updates  int64
	Return   float64       // mean over the last 100 finished episodes, NaN before the first
	Length   float64       // likewise, in steps
	Info     []agents.Stat // likewise, the environment's Info at an episode's end; NaNs are left out
	Learn    []agents.Stat // means over the updates since the last record
}

// Hooks are called between two iterations, in this order. An error ends training. They must not change the
// agent.
type Hooks struct {
	Tick       func(r Progress) error // after every iteration; must be cheap
	Log        func(r Record) error
	Evaluate   func(step int64) error
	Checkpoint func(step int64) error
}

// Progress is what is known after every iteration.
type Progress struct {
	Step, Steps int64
	Return      float64
	Lesson      imitate.Progress // before the first step, in runs that imitate
}

// Trainer trains one agent. Not safe for concurrent use.
type Trainer struct {
	// Kernels, if set, names the set of kernels that computes the networks. Checkpoints keep it for information.
	Kernels string
	// Lessons, if set, come before the first step; the agent must be an agents.Pupil. The same phase, and what it
	// recorded, must be set before Parts are read.
	Lessons *imitate.Phase

	cfg   Config
	spec  env.Spec
	vec   *vec.Vec
	agent agents.Agent

	cur, next *env.Batch
	actions   *env.Actions
	pcg       []*rand.PCG
	src       []*rand.Rand

	step, episodes, updates int64
	ret                     []float64 // by row: return of the running episode
	length                  []int64
	lastReturn, lastLength  []float64   // of the last episodes, oldest first
	lastInfo                [][]float64 // likewise
	learn                   []agents.Stat
	learnN                  []int64
	begun                   bool
	rowRanges               []rowRange // of a Separate agent, nil until it runs
	ranks                              // with Peers
}

// New returns a trainer of agent in v, whose mode must be SameStep. seed is the run's seed: the environments'
// episodes and the actions' draws come from its streams "train/envs" and "train/act/ROW".
func New(cfg Config, v *vec.Vec, agent agents.Agent, seed uint64) (*Trainer, error) {
	return newTrainer(cfg, v, agent, seed, ranks{of: 1})
}

func newTrainer(cfg Config, v *vec.Vec, agent agents.Agent, seed uint64, r ranks) (*Trainer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if v.Len()*r.of != cfg.Envs || v.Config().Autoreset != vec.SameStep {
		return nil, fmt.Errorf("train: %d environments with autoreset %v, want %d with same_step", v.Len(),
			v.Config().Autoreset, cfg.Envs/r.of)
	}
	r.first *= v.Len()
	t := &Trainer{
		ranks: r,
		cfg:   cfg, spec: v.Spec(), vec: v, agent: agent,
		cur: env.NewBatch(v.Spec(),
			v.Len()), next: env.NewBatch(v.Spec(), v.Len()), actions: env.NewActions(v.Spec(), v.Len()),
		ret: make([]float64, v.Len()), length: make([]int64, v.Len()),
	}
	for i := range v.Len() {
		p := rng.Source(seed, fmt.Sprintf("train/act/%d", r.first+i))
		t.pcg, t.src = append(t.pcg, p), append(t.src, rand.New(p))
	}
	v.SeedGroups(rng.Source(seed, "train/envs").Uint64(), max(1, cfg.Group), r.first)
	return t, nil
}

// Step is the number of environment steps taken so far.
func (t *Trainer) Step() int64 { return t.step }

// Run trains until Config.Steps or until ctx is cancelled, in which case it returns ctx's error. It checks ctx
// between two iterations only, so the state is always complete. An iteration is one step of all rows and the update
// that follows, or, with a Separate agent, the steps that its collectors take until all learn; collectors check ctx
// between two of their steps.
//
// A reward or an observation that is NaN or infinite ends training with an error that names it, before the agent has
// seen it; so does an error of the agent's Learn. No hook is called after an error, so the last checkpoint has a
// sound state.
func (t *Trainer) Run(ctx context.Context, h Hooks) error {
	// An iteration is always whole: nothing is cancelled inside.
	whole := context.Background()
	if !t.begun {
		if err := t.vec.Reset(whole, nil, nil, t.cur); err != nil {
			return err
		}
		if err := checkFinite(t.spec, t.cur); err != nil {
			return fmt.Errorf("train: step 0: %w", t.placed(err))
		}
		t.begun = true
	}
	if t.Lessons != nil && !t.Lessons.Done() {
		if err := t.imitate(ctx, h); err != nil {
			return err
		}
	}
	iterate := func() error { return t.iterate(whole) }
	if t.peers != nil {
		iterate = func() error { return t.together(ctx) }
	}
	if s, ok := t.agent.(Separate); ok && len(s.Collectors()) > 0 {
		if err := t.split(len(s.Collectors())); err != nil {
			return err
		}
		iterate = func() error { return t.collect(ctx, s) }
	}
	for t.step < t.cfg.Steps {
		if err := t.stopped(ctx); err != nil {
			return err
		}
		before := t.step
		if err := iterate(); err != nil {
			return err
		}
		err := h.After(&t.cfg, before, Progress{Step: t.step, Steps: t.cfg.Steps, Return: mean(t.lastReturn)},
			func() (Record, error) {
				if err := t.collectEpisodes(); err != nil {
					return Record{}, err
				}
				return t.record(), nil
			})
		if err != nil {
			return err
		}
	}
	return nil
}

// imitate has the agent learn from its teacher, then reports, evaluates and saves it at step 0.
func (t *Trainer) imitate(ctx context.Context, h Hooks) error {
	pupil, ok := t.agent.(agents.Pupil)
	if !ok {
		return fmt.Errorf("train: imitate: want an agent that can learn from a teacher (agents.Pupil), which %T cannot",
			t.agent)
	}
	t.agent.Progress(0)
	if h.Tick != nil {
		t.Lessons.Tick = func(p imitate.Progress) error {
			return h.Tick(Progress{Steps: t.cfg.Steps, Return: math.NaN(), Lesson: p})
		}
	}
	if err := t.Lessons.Run(ctx, pupil, t.learned); err != nil {
		if ctx.Err() != nil {
			return err
		}
		return fmt.Errorf("train: %w", err)
	}
	if h.Log != nil {
		if err := h.Log(t.record()); err != nil {
			return err
		}
	}
	if h.Evaluate != nil && t.cfg.EvalEvery > 0 {
		if err := h.Evaluate(0); err != nil {
			return err
		}
	}
	if h.Checkpoint != nil {
		return h.Checkpoint(0)
	}
	return nil
}

// After calls the hooks that are due after an iteration of a run of c, which was at step before; it ended where p says.
// record returns what Log gets.
func (h *Hooks) After(c *Config, before int64, p Progress, record func() (Record, error)) error {
	due := func(every int64) bool { return p.Step >= c.Steps || crossed(before, p.Step, every) }
	if h.Tick != nil {
		if err := h.Tick(p); err != nil {
			return err
		}
	}
	if h.Log != nil && due(c.LogEvery) {
		r, err := record()
		if err == nil {
			err = h.Log(r)
		}
		if err != nil {
			return err
		}
	}
	if h.Evaluate != nil && c.EvalEvery > 0 && due(c.EvalEvery) {
		if err := h.Evaluate(p.Step); err != nil {
			return err
		}
	}
	if h.Checkpoint != nil && due(c.CheckpointEvery) {
		return h.Checkpoint(p.Step)
	}
	return nil
}

// crossed reports whether a multiple of every is in (from, to].
func crossed(from, to, every int64) bool { return every > 0 && from/every != to/every }

// iterate takes one step in every environment, and learns as long as the agent wants to.
func (t *Trainer) iterate(ctx context.Context) error {
	t.agent.Progress(float64(t.step) / float64(t.cfg.Steps))
	if err := t.agent.Act(ctx, t.cur, t.actions, t.src); err != nil {
		return err
	}
	if err := t.vec.Step(ctx, nil, t.actions, t.next); err != nil {
		return err
	}
	if err := checkFinite(t.spec, t.next); err != nil {
		return fmt.Errorf("train: step %d: %w", t.step+int64(t.next.N*t.of), t.placed(err))
	}
	if err := t.agent.Observe(t.cur, t.actions, t.next); err != nil {
		return err
	}
	t.taken++
	ended := t.ended
	if t.peers != nil {
		ended = t.keep
	}
	follow(t.next, len(t.spec.Info), t.ret, t.length, ended)
	t.cur, t.next = t.next, t.cur
	t.step += int64(t.cur.N * t.of)
	return t.improve(ctx)
}

// improve learns as long as the agent wants to.
func (t *Trainer) improve(ctx context.Context) error {
	for {
		stats, err := t.agent.Learn(ctx)
		if errors.Is(err, agents.ErrNotReady) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("train: step %d: %w", t.step, err)
		}
		t.updates++
		t.learned(stats)
	}
}

// follow adds the step that led to b to returns and lengths, by row, and calls ended for every episode that ended.
func follow(b *env.Batch, infos int, ret []float64, length []int64,
	ended func(ret float64, length int64, info []float64)) {
	final := 0
	for i := range b.N {
		ret[i] += b.Reward[i]
		length[i]++
		if !b.Kind[i].Last() {
			continue
		}
		ended(ret[i], length[i], append([]float64(nil), b.FinalInfo[final*infos:(final+1)*infos]...))
		final++
		ret[i], length[i] = 0, 0
	}
}

// ended counts a finished episode.
func (t *Trainer) ended(ret float64, length int64, info []float64) {
	t.episodes++
	t.lastReturn = push(t.lastReturn, ret)
	t.lastLength = push(t.lastLength, float64(length))
	t.lastInfo = push(t.lastInfo, info)
}

func push[T any](list []T, v T) []T {
	if len(list) == recent {
		copy(list, list[1:])
		list = list[:recent-1]
	}
	return append(list, v)
}

func (t *Trainer) learned(stats agents.Stats) {
	for _, s := range stats {
		found := false
		for i := range t.learn {
			if t.learn[i].Name == s.Name {
				t.learn[i].Value += s.Value
				t.learnN[i]++
				found = true
				break
			}
		}
		if !found {
			t.learn, t.learnN = append(t.learn, s), append(t.learnN, 1)
		}
	}
}

// record returns a report and begins the next one's means.
func (t *Trainer) record() Record {
	r := Record{Step: t.step, Episodes: t.episodes, Updates: t.updates, Return: mean(t.lastReturn),
		Length: mean(t.lastLength)}
	for i, f := range t.spec.Info {
		sum, n := 0.0, 0
		for _, row := range t.lastInfo {
			if !math.IsNaN(row[i]) {
				sum += row[i]
				n++
			}
		}
		if n > 0 {
			r.Info = append(r.Info, agents.Stat{Name: f.Name, Value: sum / float64(n)})
		}
	}
	for i, s := range t.learn {
		r.Learn = append(r.Learn, agents.Stat{Name: s.Name, Value: s.Value / float64(t.learnN[i])})
	}
	t.learn, t.learnN = t.learn[:0], t.learnN[:0]
	return r
}

func mean(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}
