package env

import (
	"context"
	"io"
	"math/rand/v2"
	"time"
)

// Env is a single-agent episodic decision process. It is not safe for concurrent use.
type Env interface {
	// Spec describes observations, actions and limits. It never changes.
	Spec() Spec
	// Reset begins the episode named by ep and fills ts with its first time step (Kind First). A window, split or
	// task that the environment does not have is ErrEpisode.
	// An error leaves ts as it was; the environment then needs another Reset.
	Reset(ctx context.Context, ep Episode, ts *TimeStep) error
	// Step applies a and fills ts. After a step whose Kind is Last, and before the first Reset, it returns
	// ErrResetNeeded. An action outside the space or masked is ErrIllegalAction.
	// An error leaves the environment and ts as they were.
	Step(ctx context.Context, a Action, ts *TimeStep) error
	// Close releases what the environment holds; later calls return ErrClosed. Closing twice is harmless.
	Close() error
}

// Episode names one episode completely: equal Episodes give equal bytes.
type Episode struct {
	Seed   uint64
	Window int       // of the workload; -1 = drawn from Seed
	Task   []float64 // nil = the environment's own; in the order of TaskSpec
	// Split is the part of the workload that the window is of: SplitTrain, SplitValidation, SplitTest, or "" for
	// the part that the environment was made for. Environments without a workload ignore Window and refuse a Split.
	Split string
}

// The values of Episode.Split.
const (
	SplitTrain      = "train"
	SplitValidation = "validation"
	SplitTest       = "test"
)

// EpisodeSeed is the seed of episode k of the row that was seeded with x. Episode 0 runs on x itself, as in
// Gymnasium, where reset(seed=x) names the first episode.
func EpisodeSeed(x uint64, k int) uint64 {
	if k == 0 {
		return x
	}
	return episodeSeed(x, uint64(k))
}

// Snapshotter is an environment whose state can be saved and restored. It is an optional ability, looked for
// once, at construction.
type Snapshotter interface {
	// AppendSnapshot appends the state to dst and returns the longer slice.
	AppendSnapshot(dst []byte) ([]byte, error)
	// RestoreSnapshot continues from src and fills ts with the time step that was current then. src may be
	// hostile: what cannot be restored is an error (ErrSnapshot), and nothing is changed.
	RestoreSnapshot(src []byte, ts *TimeStep) error
}

// Tasker is an environment that stands for a family of tasks, as meta-learning needs it.
type Tasker interface {
	TaskSpec() []Field
	SampleTask(rng *rand.Rand, dst []float64)
}

// Renderer is an environment that can show itself. mode is "ansi". What stands for an environment that cannot, at the
// other end of a wire for instance, returns errors.ErrUnsupported.
type Renderer interface {
	Render(w io.Writer, mode string) error
}

// TimeStep is owned by the caller and filled by the environment, like the p of io.Reader.
type TimeStep struct {
	Kind    Kind
	Reward  float64       // for the transition just taken; 0 at First
	Elapsed time.Duration // simulated time of that transition; decisions are not evenly spaced
	Obs     []float32     // [Spec.ObsLen()], fields in the order of Spec.Obs
	Mask    []bool        // [Spec.MaskLen()], true = legal; at least one per factor
	Info    []float64     // [len(Spec.Info)], NaN = unknown
}

// NewTimeStep returns a time step with buffers of the sizes that s asks for.
func NewTimeStep(s Spec) *TimeStep {
	return &TimeStep{
		Obs:  make([]float32, s.ObsLen()),
		Mask: make([]bool, s.MaskLen()),
		Info: make([]float64, len(s.Info)),
	}
}

// Kind says how a time step begins or ends an episode. An episode cannot end in two ways at once.
type Kind uint8

// The four kinds.
const (
	First      Kind = iota // begins an episode; its Reward is 0
	Mid                    // neither begins nor ends one
	Terminated             // ended by the problem itself: nothing comes after, its value is 0
	Truncated              // cut off from outside: the value of the last observation still counts
)

// Last says whether the episode has ended.
func (k Kind) Last() bool { return k >= Terminated }

// Bootstrap says whether the value of the observation counts in the return of what came before.
func (k Kind) Bootstrap() bool { return k != Terminated }

func (k Kind) String() string {
	return [...]string{"First", "Mid", "Terminated", "Truncated"}[k]
}

// Action is one decision: views into the caller's columns. Disc holds one index per factor of
// ActionSpec.Sizes, Cont one number per dimension of Low and High.
type Action struct {
	Disc []int32
	Cont []float32
}

// Actions is N decisions by column: Disc is [N, len(Sizes)], Cont [N, len(Low)].
type Actions struct {
	N    int
	Disc []int32
	Cont []float32
}

// NewActions returns n actions of the shape that s asks for.
func NewActions(s Spec, n int) *Actions {
	return &Actions{N: n, Disc: make([]int32, n*len(s.Action.Sizes)), Cont: make([]float32, n*len(s.Action.Low))}
}

// Row is a view of action i.
func (a *Actions) Row(i int) Action {
	d, c := len(a.Disc)/a.N, len(a.Cont)/a.N
	return Action{Disc: a.Disc[i*d : (i+1)*d], Cont: a.Cont[i*c : (i+1)*c]}
}
