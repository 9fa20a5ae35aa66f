package vec

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"clustergym/env"
	"clustergym/internal/par"
)

// Vec is N environments stepped together. Rows of batches and of actions are in the order of the environments given to
// New. A Vec is not safe for concurrent use.
type Vec struct {
	cfg  Config
	spec env.Spec
	envs []env.Env
	rows []row
	ts   []env.TimeStep // views of the caller's batch, set by every call

	obsLen, maskLen, infoLen int
	discLen, contLen         int

	// The last time step of row i's ended episode, until the call gathers it in row order.
	finalObs  []float32
	finalMask []bool
	finalInfo []float64

	all    []int // 0, 1, …, N-1
	asked  []uint64
	serial uint64 // number of the call; a row is part of the call if its asked equals it
	call   call
	work   func(worker, p int)
	team   *par.Team
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

	// The time step as last written to a batch; in SameStep it differs from the environment's own.
	kind    env.Kind
	reward  float64
	elapsed time.Duration

	final bool // ended in the current call, under SameStep
	done  bool // processed in the current call
	out   bool // sent and not yet received: the workers own the fields above
	err   error
}

// Open returns a Vec over n environments that open opens, whose episodes follow each other in the same step.
func Open(n, workers int, open func() (env.Env, error)) (*Vec, error) {
	envs := make([]env.Env, n)
	for i := range envs {
		e, err := open()
		if err != nil {
			return nil, err
		}
		envs[i] = e
	}
	return New(Config{Workers: workers, Autoreset: SameStep}, envs...)
}

// New returns a Vec over envs. The Vec owns them from then on and closes them with Close. Their specs must be equal.
// The seed is 0 until Seed or Reset sets another.
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
	v.team, v.work = par.NewTeam(), v.one // one closure for the Vec's lifetime, so that calls do not allocate
	v.Seed(0)
	return v, nil
}

// Spec returns the spec that all environments share.
func (v *Vec) Spec() env.Spec { return v.spec }

// Len returns the number of rows.
func (v *Vec) Len() int { return len(v.envs) }

// Config returns the configuration given to New, with the workers of SetWorkers.
func (v *Vec) Config() Config { return v.cfg }

// SetWorkers changes only the number of goroutines that share the rows of later Resets and Steps. It is for callers
// that measure how long calls take. It does not change the number of goroutines that Send has started.
func (v *Vec) SetWorkers(n int) { v.cfg.Workers = max(n, 0) }

// Seed makes row i run the episodes env.EpisodeSeed(s+i, k), k = 0, 1, … from its next reset on, whether a call or
// autoreset causes it. A running episode continues. Seeding while rows are out (Send) is a bug and panics.
func (v *Vec) Seed(s uint64) {
	if n := v.Pending(); n > 0 {
		panic(fmt.Sprintf("vec: seeded while %d rows are out", n))
	}
	for i := range v.rows {
		v.rows[i].seed, v.rows[i].episode = s+uint64(i), -1
	}
}

// SeedGroups is Seed for rows in groups of size, which play the same episodes: row i runs env.EpisodeSeed(s+i/size, k).
// Rows are counted from first, which is not 0 if the Vec has a share of the rows of several.
func (v *Vec) SeedGroups(s uint64, size, first int) {
	v.Seed(s)
	for i := range v.rows {
		v.rows[i].seed = s + uint64((first+i)/size)
	}
}

// SetTask sets the task of row i's episodes from its next reset on; nil means the environment's own. SetTask copies
// the task.
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

// Task returns a copy of the task of row i's next episode; nil means the environment's own. The row must not be out.
func (v *Vec) Task(i int) []float64 {
	r := &v.rows[i]
	if !r.hasTask {
		return nil
	}
	return append([]float64{}, r.task...)
}

// Episode returns the seed of row i's stream, and the number of its current episode in that stream, -1 before the
// first. The row must not be out.
func (v *Vec) Episode(i int) (seed uint64, k int) { return v.rows[i].seed, v.rows[i].episode }

// Drop abandons row i's episode, if it has one. It is for an environment that has failed in a way that it does not
// report itself. The row needs a Reset; its stream of episodes does not advance. The row must not be out.
func (v *Vec) Drop(i int) { v.rows[i].live = false }

// Close closes all environments; later calls return env.ErrClosed. It cancels the contexts of rows that are out, waits
// for them and discards their results. Closing twice is harmless.
func (v *Vec) Close() error {
	if v.closed {
		return nil
	}
	v.closed = true
	v.team.Close()
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

// next returns the episode after the current one. Its Task is a view of the row's own copy.
func (r *row) next() env.Episode {
	ep := env.Episode{Seed: env.EpisodeSeed(r.seed, r.episode+1), Window: -1}
	if r.hasTask {
		ep.Task = r.task[:len(r.task):len(r.task)]
	}
	return ep
}

// RowError is the failure of one row. That row of the batch is undefined if a reset was under way, and unchanged
// otherwise.
type RowError struct {
	Row int
	Err error
}

func (e *RowError) Error() string { return fmt.Sprintf("vec: row %d: %v", e.Row, e.Err) }

// Unwrap returns the environment's own error.
func (e *RowError) Unwrap() error { return e.Err }

// call is the input of one Reset or Step. The Vec keeps it while the call lasts, so that passing it to the workers
// does not allocate.
type call struct {
	ctx  context.Context
	rows []int
	ep   []env.Episode
	next bool         // ep continues the rows' own streams: its seeds are ignored
	a    *env.Actions // nil = reset
	b    *env.Batch
}
