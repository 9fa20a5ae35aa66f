package agents

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"

	"clustergym/env"
)

// ErrNotReady is returned by Learn while there is not enough experience for an update.
var ErrNotReady = errors.New("agents: not enough experience yet")

// Policy chooses actions. Row i is chosen among its legal actions and draws from src[i] only, so that a row's
// actions do not depend on what else is in the batch. Not safe for concurrent use.
type Policy interface {
	Act(ctx context.Context, b *env.Batch, dst *env.Actions, src []*rand.Rand) error
}

// Observer is shown every transition: the batch that was acted on, the actions, and the batch that followed.
// In row i the new observation is next's, or that row's FinalObs where the episode ended. The batches belong to
// the caller and change afterwards.
type Observer interface {
	Observe(b *env.Batch, a *env.Actions, next *env.Batch) error
}

// Learner improves itself by one update, or says ErrNotReady.
type Learner interface {
	Learn(ctx context.Context) (Stats, error)
}

// Stat is one number that an update reports, named as in docs/metrics.md.
type Stat struct {
	Name  string
	Value float64
}

// Stats are the numbers that one update reports, in a fixed order. The slice belongs to the learner and is
// valid until its next call.
type Stats []Stat

// Agent is everything that training needs.
type Agent interface {
	Policy
	Observer
	Learner
	// Greedy is the policy without exploration. It shares the agent's parameters.
	Greedy() Policy
	// Parts is what a checkpoint keeps, so that a resumed run continues bit for bit.
	Parts() []Part
	// Progress tells the agent which share of the training steps is done, in [0, 1]: schedules of the learning
	// rate, of exploration and of importance weights follow it.
	Progress(share float64)
}

// Collector is one of several learners that learn together, but take their steps each in rows of its own and without
// waiting for the others. It is used by one goroutine.
type Collector interface {
	Policy
	Observer
	// Len is the number of steps, each of all its rows, that it has for the next update.
	Len() int
	// More says whether it wants another step before that. Once it does not, it waits for the others.
	More() bool
}

// Part is one named piece of state in a checkpoint.
type Part interface {
	Name() string // a file name without a path, as "weights.safetensors"
	io.WriterTo
	io.ReaderFrom
}
