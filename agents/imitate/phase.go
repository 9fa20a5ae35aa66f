package imitate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/internal/par"
	"clustergym/internal/rng"
)

// Config is the size of a phase.
type Config struct {
	Steps   int64   // recorded in all; each round adds its share, in whole episodes
	Epochs  int     // passes over the recording in each round
	Rounds  int     // the learner plays in all but the first
	LR      float64 // of the pupil at the beginning; it falls linearly to 0 over the phase; 0 = as in training
	Gamma   float64
	Rows    int // environments that a pass steps together; changes results
	Workers int // goroutines, which change nothing but speed
	Seed    uint64
}

// Source makes what a phase needs.
type Source struct {
	Env func() (env.Env, error)
	// Teacher returns the policy that answers in e alone: batches have one row, e's current time step.
	Teacher func(e env.Env) (agents.Policy, error)
}

// Progress is how far a phase is.
type Progress struct {
	Round, Rounds int  // from 1
	Records       bool // otherwise it learns
	Done, All     int64
}

// Phase is the imitation before a training. Not safe for concurrent use.
type Phase struct {
	// Keep, if set, gets every episode once it is recorded, in order.
	Keep func(p *Play) error
	// Tick, if set, is called while the phase records and learns; it must be cheap. Its error ends Run.
	Tick func(p Progress) error

	cfg    Config
	spec   env.Spec
	source Source
	plays  []Play
	state  State

	workerStates []workerState // that record, one for each worker
	pass         *pass         // nil between two passes
}

// State is where a phase is.
type State struct {
	Round int   `json:"round"` // from 0; all rounds = done
	Epoch int   `json:"epoch"`
	Tick  int64 `json:"tick"`  // steps of all rows in the current pass
	Heard int   `json:"heard"` // episodes whose returns the pupil knows
}

// New returns a phase in environments of spec s.
func New(cfg Config, s env.Spec, source Source) (*Phase, error) {
	switch {
	case cfg.Steps < 1 || cfg.Epochs < 1 || cfg.Rounds < 1 || cfg.Rows < 1:
		return nil, fmt.Errorf("imitate: got %d steps, %d epochs, %d rounds and %d rows, want at least 1 of each", cfg.Steps,
			cfg.Epochs, cfg.Rounds, cfg.Rows)
	case len(s.Action.Sizes) == 0 || len(s.Action.Low) > 0:
		return nil, fmt.Errorf("imitate: %s has actions that are numbers; a teacher can show only choices", s.ID)
	}
	return &Phase{cfg: cfg, spec: s, source: source}, nil
}

// Recall gives the phase what an earlier one of the same configuration recorded, in order.
func (p *Phase) Recall(plays []Play) { p.plays = plays }

// Done reports whether the phase is over.
func (p *Phase) Done() bool { return p.state.Round >= p.cfg.Rounds }

// State returns where the phase is.
func (p *Phase) State() State { return p.state }

// Restore continues a phase from s.
func (p *Phase) Restore(s State) error {
	if s.Round < 0 || s.Round > p.cfg.Rounds || s.Epoch < 0 || s.Epoch > p.cfg.Epochs || s.Tick < 0 || s.Heard < 0 {
		return fmt.Errorf("imitate: round %d, epoch %d, tick %d of %d rounds of %d epochs cannot be", s.Round, s.Epoch,
			s.Tick, p.cfg.Rounds, p.cfg.Epochs)
	}
	p.state, p.pass = s, nil
	return nil
}

// Run teaches the pupil until the phase is over or ctx is cancelled; it then returns ctx's error, and State, the pupil
// and what was recorded are whole. learned gets the statistics of every update.
func (p *Phase) Run(ctx context.Context, pupil agents.Pupil, learned func(agents.Stats)) error {
	defer p.close()
	var ret []float32
	for !p.Done() {
		n, err := p.record(ctx, pupil)
		if err != nil {
			return err
		}
		for ; p.state.Heard < n; p.state.Heard++ {
			ret = p.plays[p.state.Heard].Returns(ret[:0], p.spec, p.cfg.Gamma)
			pupil.Foresee(ret)
		}
		for p.state.Epoch < p.cfg.Epochs {
			if err := p.learn(ctx, pupil, n, learned); err != nil {
				return err
			}
		}
		p.state = State{Round: p.state.Round + 1, Heard: p.state.Heard}
	}
	return nil
}

// close frees the environments.
func (p *Phase) close() {
	for i := range p.workerStates {
		if p.workerStates[i].env != nil {
			_ = p.workerStates[i].env.Close() // memory only
		}
	}
	p.workerStates = nil
	p.endPass()
}

func (p *Phase) endPass() {
	if p.pass != nil {
		p.pass.close()
		p.pass = nil
	}
}

func (p *Phase) tick(records bool, done, all int64) error {
	if p.Tick == nil {
		return nil
	}
	return p.Tick(Progress{p.state.Round + 1, p.cfg.Rounds, records, min(done, all), all})
}

// need returns how many steps are recorded by the end of a round.
func (p *Phase) need(round int) int64 {
	n := int64(p.cfg.Rounds)
	return (p.cfg.Steps*int64(round+1) + n - 1) / n
}

// enough returns how many of the plays have steps steps together, and their sum; too few if there are fewer.
func (p *Phase) enough(steps int64) (n int, sum int64) {
	for n < len(p.plays) && sum < steps {
		sum += int64(p.plays[n].Len())
		n++
	}
	return n, sum
}

// workerState is what a worker records with.
type workerState struct {
	env     env.Env
	teacher agents.Policy
	learner agents.Policy
	batch   *env.Batch // of one row
	label   *env.Actions
	taken   *env.Actions
	ts      env.TimeStep // views of batch
}

// block is the number of episodes that are recorded side by side, whatever the number of workers.
const block = 16

// record plays episodes until there are enough for the current round, and returns how many that are.
func (p *Phase) record(ctx context.Context, pupil agents.Pupil) (int, error) {
	need := p.need(p.state.Round)
	if p.state.Round > 0 {
		before := p.need(p.state.Round - 1)
		if p.state.Epoch > 0 || p.state.Tick > 0 {
			before = need
		}
		// What the learner played was played with weights that it no longer has.
		if _, sum := p.enough(before); sum < before {
			return 0, fmt.Errorf("imitate: the recording has %d of the %d steps that round %d had: part of it is lost", sum,
				before, p.state.Round+1)
		}
	}
	base := rng.Source(p.cfg.Seed, "imitate/episodes").Uint64()
	for {
		n, sum := p.enough(need)
		if err := p.tick(true, sum, need); err != nil {
			return 0, err
		}
		if sum >= need {
			return n, nil
		}
		if p.workerStates == nil {
			p.workerStates = make([]workerState, max(1, min(p.cfg.Workers, block)))
		}
		plays, first := make([]Play, block), len(p.plays)
		err := par.For(ctx, p.cfg.Workers, block, func(worker, i int) error {
			h := &p.workerStates[worker]
			if err := h.make(p); err != nil {
				return err
			}
			if p.state.Round > 0 && h.learner == nil {
				h.learner = pupil.Greedy()
			}
			src := rng.Stream(p.cfg.Seed, fmt.Sprintf("imitate/act/%d", first+i))
			return h.play(ctx, p.spec, env.EpisodeSeed(base, first+i), p.state.Round > 0, src, &plays[i])
		})
		for i := range plays { // what was played up to a cancellation stays
			if _, sum := p.enough(need); sum >= need || plays[i].Kind == env.First {
				break
			}
			p.plays = append(p.plays, plays[i])
			if p.Keep != nil {
				if err := p.Keep(&plays[i]); err != nil {
					return 0, err
				}
			}
		}
		if err != nil {
			return 0, err
		}
	}
}

func (h *workerState) make(p *Phase) (err error) {
	if h.env != nil {
		return nil
	}
	if h.env, err = p.source.Env(); err != nil {
		return err
	}
	if h.teacher, err = p.source.Teacher(h.env); err != nil {
		return err
	}
	h.batch, h.label, h.taken = env.NewBatch(p.spec, 1), env.NewActions(p.spec, 1), env.NewActions(p.spec, 1)
	h.ts = env.TimeStep{Obs: h.batch.Obs, Mask: h.batch.Mask, Info: h.batch.Info}
	return nil
}

// play plays one episode. dst gets its Kind last, so that an episode without one was not finished.
func (h *workerState) play(ctx context.Context, s env.Spec, seed uint64, learner bool, src *rand.Rand,
	dst *Play) error {
	var p Play
	p.Seed = seed
	streams := []*rand.Rand{src}
	_, _, err := env.Play(ctx, h.env, env.Episode{Seed: seed, Window: -1}, &h.ts,
		func(ts *env.TimeStep, a env.Action) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			h.batch.Kind[0], h.batch.Reward[0], h.batch.Elapsed[0] = ts.Kind, ts.Reward, ts.Elapsed
			if err := h.teacher.Act(ctx, h.batch, h.label, streams); err != nil {
				return err
			}
			at := 0
			for i, size := range s.Action.Sizes {
				if k := int(h.label.Disc[i]); k < 0 || k >= size || !ts.Mask[at+k] {
					return fmt.Errorf("imitate: the teacher takes action %d of factor %d, which is not legal", k, i)
				}
				at += size
			}
			p.Label = append(p.Label, h.label.Disc...)
			copy(a.Disc, h.label.Disc)
			if learner {
				if err := h.learner.Act(ctx, h.batch, h.taken, streams); err != nil {
					return err
				}
				p.Taken = append(p.Taken, h.taken.Disc...)
				copy(a.Disc, h.taken.Disc)
			}
			return nil
		}, func(_ env.Action, ts *env.TimeStep) {
			p.Reward, p.Elapsed = append(p.Reward, ts.Reward), append(p.Elapsed, ts.Elapsed)
		})
	if err != nil {
		return err
	}
	if !learner {
		p.Taken = p.Label
	}
	p.Kind = h.ts.Kind
	*dst = p
	return nil
}

// rate returns the learning rate after a share of the current pass. At a constant rate the last updates decide what a
// teacher's close calls look like, such as whether to wait; at one that falls, the updates average.
func (p *Phase) rate(share float64) float64 {
	passes := float64(p.state.Round*p.cfg.Epochs+p.state.Epoch) + share
	return p.cfg.LR * max(leastRate, 1-passes/float64(p.cfg.Rounds*p.cfg.Epochs))
}

// leastRate keeps the last updates from doing nothing: a learning rate of 0 is that of training.
const leastRate = 1e-3

// learn goes through the first n plays once.
func (p *Phase) learn(ctx context.Context, pupil agents.Pupil, n int, learned func(agents.Stats)) error {
	all := int64(0)
	for i := range p.plays[:n] {
		all += int64(p.plays[i].Len())
	}
	q, err := p.begin(n)
	if err != nil {
		return err
	}
	p.pass = q
	defer p.endPass()
	done := int64(0)
	for tick := int64(0); ; tick++ {
		if tick >= p.state.Tick {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		steps, err := q.step()
		if err != nil {
			return err
		}
		done += int64(steps)
		over := q.over()
		if tick >= p.state.Tick { // otherwise the pupil has seen it before it was stopped
			pupil.Pace(p.rate(float64(done) / float64(all)))
			if err := pupil.Watch(q.cur, q.label, q.taken, q.ret, q.next); err != nil {
				return err
			}
			// An update is always whole, and so is the tick.
			for {
				stats, err := pupil.Study(context.WithoutCancel(ctx), over)
				if errors.Is(err, agents.ErrNotReady) {
					break
				}
				if err != nil {
					return err
				}
				learned(stats)
			}
			p.state.Tick = tick + 1
			if err := p.tick(false, int64(p.state.Epoch)*all+done, int64(p.cfg.Epochs)*all); err != nil {
				return err
			}
		}
		if over {
			p.state.Epoch, p.state.Tick = p.state.Epoch+1, 0
			return nil
		}
		q.cur, q.next = q.next, q.cur
	}
}
