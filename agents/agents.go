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

// Policy chooses actions. Row i gets one of its legal actions and draws from src[i] only, so a row's actions do not
// depend on the rest of the batch. Not safe for concurrent use.
type Policy interface {
	Act(ctx context.Context, b *env.Batch, dst *env.Actions, src []*rand.Rand) error
}

// Scorer is an optional ability of policies whose action is one of several: it tells how they weigh each. It changes
// nothing of what Act does afterwards. Not safe for concurrent use.
type Scorer interface {
	Policy
	// Scores fills dst [N, MaskLen] with the policy's score of every action of every row, and says what scores are.
	Scores(ctx context.Context, b *env.Batch, dst []float32) (ScoreKind, error)
}

// ScoreKind says what the scores of a policy are.
type ScoreKind string

// The kinds of scores.
const (
	Probabilities ScoreKind = "probability" // of being drawn; those of the legal actions of a row sum to 1
	Values        ScoreKind = "value"       // the return that is expected after the action
	Logits        ScoreKind = "logit"       // logarithms of probabilities, but for a constant
)

// Observer receives every transition: the batch that was acted on, the actions, and the batch that followed. Row i's
// new observation is in next, or in that row's FinalObs if the episode ended. The batches belong to the caller, which
// changes them afterwards.
type Observer interface {
	Observe(b *env.Batch, a *env.Actions, next *env.Batch) error
}

// Learner improves itself by one update, or returns ErrNotReady.
type Learner interface {
	Learn(ctx context.Context) (Stats, error)
}

// Stat is one number that an update reports, named as in docs/reference/metrics.md.
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
	// Greedy returns the policy without exploration. It shares the agent's parameters.
	Greedy() Policy
	// Parts returns what a checkpoint keeps so that a resumed run continues bit for bit.
	Parts() []Part
	// Progress tells the agent which share of the training steps is done, in [0, 1]. Schedules of the learning rate,
	// of exploration and of importance weights follow it.
	Progress(share float64)
}

// Pupil is an agent that can learn from a teacher before it learns by itself (package imitate).
type Pupil interface {
	Agent
	// Foresee receives the returns of an episode, as Watch will, once and before its steps are watched, so that their size
	// is known from the first update on.
	Foresee(ret []float32)
	// Watch receives one step of all rows: the batch at which label is what the teacher would do and act what was done,
	// and the batch that followed. ret is, by row, the discounted sum of rewards from the step to the end of the episode,
	// NaN where it is not known. Rows whose next kind is First took no step. The arguments belong to the caller.
	Watch(b *env.Batch, label, act *env.Actions, ret []float32, next *env.Batch) error
	// Pace sets the learning rate of the updates of Study that follow, 0 = as in training.
	Pace(lr float64)
	// Study improves the agent by one update, or returns ErrNotReady. end says that nothing follows for now, so that what
	// was watched is to be learnt from even if it is too little for a full update.
	Study(ctx context.Context, end bool) (Stats, error)
}

// Collector is one of several learners that learn together but take their steps in separate rows, without waiting for
// each other. It belongs to one goroutine.
type Collector interface {
	Policy
	Observer
	// Len returns the number of steps, each of all its rows, that it has for the next update.
	Len() int
	// More reports whether it wants another step before that update. Once it does not, it waits for the others.
	More() bool
}

// Part is one named piece of state in a checkpoint.
type Part interface {
	Name() string // a file name without a path, as "weights.safetensors"
	io.WriterTo
	io.ReaderFrom
}

// Share is an agent, or what trains it, of which several processes, called ranks, have a part each. A checkpoint of a
// group of ranks has the bytes of one process that does everything; rank 0 writes it.
type Share interface {
	// Sync makes what a checkpoint keeps agree with all ranks, which call it together.
	Sync() error
	// Parts returns what this rank reads of a checkpoint.
	Parts() []Part
	// Share returns the parts that rank 0 lacks.
	Share() []Part
	// Whole returns, at rank 0, the parts of the checkpoint from the names and bytes of the ranks' Shares, in order of
	// ranks.
	Whole(shares []map[string][]byte) ([]Part, error)
}
