package vec

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"clustergym/env"
)

// Vec is N environments stepped together. Rows of batches and of actions are the environments in the order
// given to New. A Vec is not safe for concurrent use.
type Vec struct {
	cfg  Config
	spec env.Spec
	envs []env.Env
	rows []row
	ts   []env.TimeStep // views of the caller's batch, set anew by every call

	obsLen, maskLen, infoLen int
	discLen, contLen         int

	// What an episode of row i ended with waits here until the call gathers it in row order.
	finalObs  []float32
	finalMask []bool
	finalInfo []float64

	all    []int // 0, 1, …, N-1
	asked  []uint64
	serial uint64 // of the call; a row whose asked equals it is part of the call
	call   call
	work   func(worker, chunk int) error
	async  *async // nil before the first Send
	closed bool
}

// row is the state of one environment's stream of episodes.
type row struct {
	seed    uint64 // of the stream: episode k runs on env.EpisodeSeed(seed, k)
	episode int    // k; -1 before the first
	task    []float64
	hasTask bool

	live  bool // the environment has an episode, running or ended
	ended bool // …and it has ended: NextStep begins the next one, Disabled waits; never so in SameStep

	// The time step as it was last written to a batch; in SameStep these differ from the environment's own.
	kind    env.Kind
	reward  float64
	elapsed time.Duration

	final bool // ended in the present call, under SameStep
	done  bool // was worked on in the present call
	out   bool // sent and not yet received: what stands above belongs to the workers
	err   error
}

// New returns a Vec over envs, which it owns from then on and closes with Close. Their specs must be equal. It
// is seeded with 0 until Seed or Reset says otherwise.
func New(cfg Config, envs ...env.Env) (*Vec, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("vec: %w", err)
	}
	if len(envs) == 0 {
		return nil, errors.New("vec: no environments")
	}
	seen := make(map[env.Env]int, len(envs))
	for i, e := range envs {
		if e == nil {
			return nil, fmt.Errorf("vec: environment %d is nil", i)
		}
		if !reflect.TypeOf(e).Comparable() {
			continue
		}
		if first, twice := seen[e]; twice {
			return nil, fmt.Errorf("vec: environments %d and %d are the same instance", first, i)
		}
		seen[e] = i
	}
	n := len(envs)
	v := &Vec{
		cfg:   cfg,
		spec:  envs[0].Spec(),
		envs:  append([]env.Env(nil), envs...),
		rows:  make([]row, n),
		ts:    make([]env.TimeStep, n),
		all:   make([]int, n),
		asked: make([]uint64, n),
	}
	for i, e := range envs[1:] {
		if err := specsDiffer(v.spec, e.Spec()); err != nil {
			return nil, fmt.Errorf("vec: environments 0 and %d differ: %w", i+1, err)
		}
	}
	v.obsLen, v.maskLen, v.infoLen = v.spec.ObsLen(), v.spec.MaskLen(), len(v.spec.Info)
	v.discLen, v.contLen = len(v.spec.Action.Sizes), len(v.spec.Action.Low)
	if cfg.Autoreset == SameStep {
		v.finalObs = make([]float32, n*v.obsLen)
		v.finalMask = make([]bool, n*v.maskLen)
		v.finalInfo = make([]float64, n*v.infoLen)
	}
	for i := range v.all {
		v.all[i] = i
	}
	v.work = v.chunk // one closure for the life of the Vec, so that calls allocate nothing
	v.Seed(0)
	return v, nil
}

// Spec is the spec that all environments share.
func (v *Vec) Spec() env.Spec { return v.spec }

// Len is the number of rows.
func (v *Vec) Len() int { return len(v.envs) }

// Config is the configuration given to New, with the workers of SetWorkers.
func (v *Vec) Config() Config { return v.cfg }

// SetWorkers changes the number of goroutines that share the rows of later Resets and Steps, and nothing else. It is
// for callers that measure how long calls take. Goroutines that Send has started stay as many as they are.
func (v *Vec) SetWorkers(n int) { v.cfg.Workers = max(n, 0) }

// Seed makes row i run the episodes env.EpisodeSeed(s+i, k), k = 0, 1, … from its next reset on, whoever
// causes it. An episode under way goes on. Seeding while rows are out (Send) is a bug and panics.
func (v *Vec) Seed(s uint64) {
	if n := v.Pending(); n > 0 {
		panic(fmt.Sprintf("vec: seeded while %d rows are out", n))
	}
	for i := range v.rows {
		v.rows[i].seed, v.rows[i].episode = s+uint64(i), -1
	}
}

// SetTask makes row i's episodes be of task from its next reset on; nil is the environment's own. The task is
// copied.
func (v *Vec) SetTask(i int, task []float64) error {
	if i < 0 || i >= len(v.rows) {
		return fmt.Errorf("vec: row %d of %d", i, len(v.rows))
	}
	if v.rows[i].out {
		return &RowError{i, ErrOut}
	}
	v.rows[i].setTask(task)
	return nil
}

// Task is a copy of what row i's next episode will be of, nil the environment's own. The row must not be out.
func (v *Vec) Task(i int) []float64 {
	r := &v.rows[i]
	if !r.hasTask {
		return nil
	}
	return append([]float64{}, r.task...)
}

// Episode is the seed that row i's stream was seeded with, and the number of its present episode in that
// stream, -1 before the first. The row must not be out.
func (v *Vec) Episode(i int) (seed uint64, k int) { return v.rows[i].seed, v.rows[i].episode }

// Drop gives up row i's episode, if it has one: its environment has failed in a way that it does not report itself. The
// row needs a Reset; its stream of episodes stays where it is. The row must not be out.
func (v *Vec) Drop(i int) { v.rows[i].live = false }

// Close closes all environments; later calls return env.ErrClosed. It waits for rows that are out: their contexts
// are cancelled, and what they give is lost. Closing twice is harmless.
func (v *Vec) Close() error {
	if v.closed {
		return nil
	}
	v.closed = true
	if v.async != nil {
		v.async.cancel()
		v.async.pool.Close()
	}
	var errs []error
	for i, e := range v.envs {
		if err := e.Close(); err != nil {
			errs = append(errs, &RowError{i, err})
		}
	}
	return errors.Join(errs...)
}

func (r *row) setTask(task []float64) {
	r.hasTask = task != nil
	r.task = append(r.task[:0], task...)
}

// next is the episode after the present one. Its Task is a view of the row's own copy.
func (r *row) next() env.Episode {
	ep := env.Episode{Seed: env.EpisodeSeed(r.seed, r.episode+1), Window: -1}
	if r.hasTask {
		ep.Task = r.task[:len(r.task):len(r.task)]
	}
	return ep
}

// RowError is the failure of one row. Its row of the batch is not meaningful where a reset was under way, and
// unchanged otherwise.
type RowError struct {
	Row int
	Err error
}

func (e *RowError) Error() string { return fmt.Sprintf("vec: row %d: %v", e.Row, e.Err) }

// Unwrap is the environment's own error.
func (e *RowError) Unwrap() error { return e.Err }

// call is what one Reset or Step works on. It is kept in the Vec while the call lasts, so that handing it to
// the workers allocates nothing.
type call struct {
	ctx  context.Context
	rows []int
	ep   []env.Episode
	next bool         // ep are episodes of the rows' own streams: their seeds do not count
	a    *env.Actions // nil = reset
	b    *env.Batch
	size int // of a chunk of rows
}
