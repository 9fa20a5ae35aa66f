package env

import (
	"context"
	"image"
	"io"
	"math/rand/v2"
	"time"
)

// Env is a single-agent episodic decision process. It is not safe for concurrent use.
type Env interface {
	// Spec describes observations, actions and limits. It never changes.
	Spec() Spec
	// Reset begins the episode named by ep and fills ts with its first time step (Kind First). It returns ErrEpisode
	// for a window, split or task that the environment does not have. An error leaves ts unchanged, and the
	// environment then needs another Reset.
	Reset(ctx context.Context, ep Episode, ts *TimeStep) error
	// Step applies a and fills ts. It returns ErrResetNeeded before the first Reset and after a step whose Kind is
	// Last, and ErrIllegalAction for an action that is outside the space or masked. An error leaves the environment
	// and ts unchanged.
	Step(ctx context.Context, a Action, ts *TimeStep) error
	// Close releases the environment's resources; later calls return ErrClosed. Closing twice is harmless.
	Close() error
}

// Episode identifies one episode completely: equal Episodes give equal bytes.
type Episode struct {
	Seed   uint64
	Window int       // index in the workload; -1 = drawn from Seed
	Task   []float64 // in the order of TaskSpec; nil = the environment's own
	// Split is the part of the workload that Window indexes: SplitTrain, SplitValidation, SplitTest, or "" for the
	// part that the environment was made for. Environments without a workload ignore Window and refuse a Split.
	Split string
}

// The values of Episode.Split.
const (
	SplitTrain      = "train"
	SplitValidation = "validation"
	SplitTest       = "test"
)

// EpisodeSeed returns the seed of episode k of a row that was seeded with x. Episode 0 uses x itself, as in Gymnasium,
// where reset(seed=x) names the first episode.
func EpisodeSeed(x uint64, k int) uint64 {
	if k == 0 {
		return x
	}
	return episodeSeed(x, uint64(k))
}

// Snapshotter is an environment whose state can be saved and restored. The ability is optional; callers look for it
// once, at construction.
type Snapshotter interface {
	// AppendSnapshot appends the state to dst and returns the longer slice.
	AppendSnapshot(dst []byte) ([]byte, error)
	// RestoreSnapshot continues from src and fills ts with the time step that was current when src was saved. src may
	// be hostile: if it cannot be restored, RestoreSnapshot returns ErrSnapshot and changes nothing.
	RestoreSnapshot(src []byte, ts *TimeStep) error
}

// Tasker is an environment that represents a family of tasks, for meta-learning.
type Tasker interface {
	TaskSpec() []Field
	SampleTask(rng *rand.Rand, dst []float64)
}

// Renderer is an environment that can draw itself as text. mode is "ansi". A stand-in for an environment that cannot
// render, such as a remote client, returns errors.ErrUnsupported.
type Renderer interface {
	Render(w io.Writer, mode string) error
}

// FrameWidth and FrameHeight are the size of every picture in pixels. All environments share it and it never changes,
// because a video needs frames of one size, and most encoders even numbers.
const (
	FrameWidth  = 640
	FrameHeight = 480
)

// Painter is an environment that can draw itself in pixels: Gymnasium's render mode "rgb_array". Like Renderer the
// ability is optional, and a stand-in for an environment without it returns errors.ErrUnsupported.
type Painter interface {
	// Paint draws the current time step on dst, which the caller owns and NewFrame makes. It sets every pixel, all of them
	// opaque, whatever dst held before. The picture follows from the state alone, and painting changes nothing. Paint
	// returns ErrClosed after Close, ErrResetNeeded before the first Reset, and ErrFrame for a dst of another size.
	Paint(dst *image.RGBA) error
	// FrameRate returns how many pictures a second, one of each step, make a video that one can follow. It never changes.
	FrameRate() int
}

// NewFrame returns a picture for Painter.Paint: FrameWidth by FrameHeight pixels.
func NewFrame() *image.RGBA { return image.NewRGBA(image.Rect(0, 0, FrameWidth, FrameHeight)) }

// TimeStep is owned by the caller and filled by the environment, like the p of io.Reader.
type TimeStep struct {
	Kind    Kind
	Reward  float64       // of the transition just taken; 0 at First
	Elapsed time.Duration // simulated time of that transition; decisions are not evenly spaced
	Obs     []float32     // [Spec.ObsLen()], fields in the order of Spec.Obs
	Mask    []bool        // [Spec.MaskLen()], true = legal; at least one per factor
	Info    []float64     // [len(Spec.Info)], NaN = unknown
}

// NewTimeStep returns a time step with buffers of the sizes in s.
func NewTimeStep(s Spec) *TimeStep {
	return &TimeStep{
		Obs:  make([]float32, s.ObsLen()),
		Mask: make([]bool, s.MaskLen()),
		Info: make([]float64, len(s.Info)),
	}
}

// Kind says where in an episode a time step is, and how the episode ended. An episode cannot end in two ways at once.
type Kind uint8

// The values of Kind.
const (
	First      Kind = iota // begins an episode; Reward is 0
	Mid                    // neither begins nor ends an episode
	Terminated             // ended by the problem itself: nothing follows, so the value of the last observation is 0
	Truncated              // cut off from outside: the value of the last observation still counts
)

// Last reports whether the episode has ended.
func (k Kind) Last() bool { return k >= Terminated }

// Bootstrap reports whether the value of the observation counts in the return of the steps before it.
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

// NewActions returns n actions of the shape in s.
func NewActions(s Spec, n int) *Actions {
	return &Actions{N: n, Disc: make([]int32, n*len(s.Action.Sizes)), Cont: make([]float32, n*len(s.Action.Low))}
}

// Row returns a view of action i.
func (a *Actions) Row(i int) Action {
	d, c := len(a.Disc)/a.N, len(a.Cont)/a.N
	return Action{Disc: a.Disc[i*d : (i+1)*d], Cont: a.Cont[i*c : (i+1)*c]}
}
