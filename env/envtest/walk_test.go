package envtest

import (
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"clustergym/env"
	"clustergym/internal/rng"
	"clustergym/internal/snap"
)

// walk is a small environment that uses every part of the contract: two factors with a changing mask, a box, infos, a
// task, snapshots and rendering. With fault set it breaks the contract in that one way.
type walk struct {
	fault   string
	spec    env.Spec
	pcg     rand.PCG
	src     *rand.Rand
	x, tilt float64
	steps   int
	kind    env.Kind
	reward  float64
	masked  int // value of factor 0 that is illegal now
	begun   bool
	closed  bool
	alias   []float32 // fault: the caller's buffer, kept
	old     *env.TimeStep
	stream  uint64 // fault: state that a reset does not clear
	junk    []byte
}

const walkSteps = 12

// shared is what instances share under a fault. It is atomic, so that the fault breaks the contract without also being
// a data race.
var shared atomic.Uint64

func newWalk(fault string) *walk {
	w := &walk{fault: fault, spec: env.Spec{
		ID: "Walk-v1",
		Obs: []env.Field{
			{Name: "masked", Shape: []int{3}, Low: 0, High: 1, Unit: "one-hot"},
			{Name: "x", Shape: []int{1, 2}, Low: -100, High: 100},
		},
		Action: env.ActionSpec{Sizes: []int{3, 2}, Low: []float32{-1}, High: []float32{1}},
		Info: []env.Field{{Name: "steps", Low: 0, High: walkSteps}, {Name: "unknown"},
			{Name: "end", High: 100, Metric: true}},
		MaxSteps: walkSteps, Solved: math.NaN(), NoOp: -1,
	}}
	switch fault {
	case "bad id":
		w.spec.ID = "Walk"
	case "unsorted fields":
		w.spec.Obs[0].Name = "z"
	case "empty shape":
		w.spec.Obs[0].Shape = []int{0}
	case "filled of no table":
		w.spec.Obs[0].Filled = 1
	case "empty rows differ":
		w.spec.Obs[1].Filled = 1
	case "bounds crossed":
		w.spec.Action.Low[0] = 2
	case "info not scalar":
		w.spec.Info[0].Shape = []int{2}
	case "observation is a metric":
		w.spec.Obs[1].Metric = true
	case "metric not declared":
		w.spec.Info[2].Metric = false
	case "instances differ in spec":
		w.spec.Info[0].Doc = fmt.Sprint(shared.Add(1))
	case "never ends":
		w.spec.MaxSteps, w.spec.Info[0].High = 0, 0
	case "limit not kept":
		w.spec.MaxSteps = walkSteps - 1
	}
	w.src = rand.New(&w.pcg)
	return w
}

func (w *walk) Spec() env.Spec { return w.spec }

func (w *walk) Close() error {
	if w.fault == "close twice" && w.closed {
		return env.ErrClosed
	}
	w.closed = true
	return nil
}

func (w *walk) TaskSpec() []env.Field { return []env.Field{{Name: "tilt", Low: -1, High: 1}} }

func (w *walk) SampleTask(src *rand.Rand, dst []float64) {
	dst[0] = 2*src.Float64() - 1
	switch w.fault {
	case "task out of bounds":
		dst[0] = 2
	case "task from elsewhere":
		dst[0] = rng.Uniform(rng.Mix(shared.Add(1)))
	}
}

func (w *walk) Render(out io.Writer, mode string) error {
	if mode != "ansi" && w.fault != "renders anything" {
		return fmt.Errorf("no mode %q", mode)
	}
	switch w.fault {
	case "renders nothing":
		return nil
	case "rendering changes":
		w.src.Uint64()
	}
	_, err := fmt.Fprintln(out, "x =", w.x)
	return err
}

func (w *walk) FrameRate() int {
	if w.fault == "no frame rate" {
		return 0
	}
	return 10
}

func (w *walk) Paint(dst *image.RGBA) error {
	switch {
	case w.closed && w.fault != "paints after close":
		return env.ErrClosed
	case !w.begun && w.fault != "paints before reset":
		return env.ErrResetNeeded
	case dst.Rect != env.NewFrame().Rect && w.fault != "paints any size":
		return env.ErrFrame
	}
	for i := range dst.Pix {
		dst.Pix[i] = 255
	}
	for i := range 8 { // eight pixels are the position
		for k := range 3 {
			dst.Pix[4*i+k] = byte(math.Float64bits(w.x) >> (8 * i))
		}
	}
	switch w.fault {
	case "paints one colour":
		for i := range dst.Pix {
			dst.Pix[i] = 255
		}
	case "paints one picture":
		for i := range 32 {
			dst.Pix[i] = 255
		}
		dst.Pix[0] = 7
	case "paints through":
		dst.Pix[3] = 128
	case "paints over":
		dst.Pix[4*100] = byte(shared.Add(1))
	case "painting changes":
		w.src.Uint64()
	}
	return nil
}

func (w *walk) Reset(ctx context.Context, ep env.Episode, ts *env.TimeStep) error {
	if w.closed && w.fault != "reset after close" {
		return env.ErrClosed
	}
	w.begun = w.fault == "failed reset keeps the episode"
	if ctx.Err() != nil && w.fault != "reset ignores ctx" {
		return ctx.Err()
	}
	tilt := 0.0
	if ep.Task != nil {
		if len(ep.Task) != 1 && w.fault != "task of any length" {
			return fmt.Errorf("task of %d numbers", len(ep.Task))
		}
		if tilt = ep.Task[0]; !(tilt >= -1 && tilt <= 1) && w.fault != "task of any length" {
			return fmt.Errorf("task %v", tilt)
		}
	}
	if ep.Split != "" && w.fault != "takes any split" {
		return fmt.Errorf("split %q", ep.Split)
	}
	seed := ep.Seed
	switch w.fault {
	case "seed ignored":
		w.stream++
		seed = w.stream
	case "episodes depend on order":
		seed, w.stream = seed^w.stream, seed
		if w.stream == seed^ep.Seed {
			w.stream = 0
		}
	case "instances share state":
		shared.Add(1)
	}
	rng.Seed(&w.pcg, seed, "walk")
	w.x, w.tilt, w.steps, w.kind, w.reward, w.begun = w.src.NormFloat64(), tilt, 0, env.First, 0, true
	if w.fault == "first step pays" {
		w.reward = 1
	}
	w.masked = w.src.IntN(3)
	w.fill(ts)
	return nil
}

func (w *walk) Step(ctx context.Context, a env.Action, ts *env.TimeStep) error {
	if w.closed && w.fault != "step after close" {
		return env.ErrClosed
	}
	if ctx.Err() != nil && w.fault != "step ignores ctx" {
		return ctx.Err()
	}
	if (!w.begun || w.kind.Last()) && w.fault != "steps without an episode" {
		return env.ErrResetNeeded
	}
	if err := w.check(a); err != nil {
		switch w.fault {
		case "illegal action moves":
			w.x++
		case "illegal action writes":
			ts.Reward = -1
		}
		if w.fault == "illegal action has another error" {
			return errors.New("no")
		}
		return err
	}
	if w.fault == "reads the caller's buffer" && w.alias != nil {
		w.x = float64(w.alias[3])
	}
	if w.fault == "writes to old buffers" && w.old != nil && w.old != ts {
		w.old.Obs[0] = 9
	}
	if w.fault == "allocates" {
		w.junk = make([]byte, 64)
	}
	w.x += float64(a.Disc[0]-1) + float64(a.Cont[0]) + w.tilt + 0.1*w.src.NormFloat64()
	if w.fault == "instances share state" {
		w.x += float64(shared.Add(1)%97) * 1e-3
	}
	w.reward = -math.Abs(w.x)
	w.masked = w.src.IntN(3)
	w.steps++
	w.kind = env.Mid
	switch {
	case w.fault == "never ends":
	case w.x > 3:
		w.kind = env.Terminated
	case w.steps == walkSteps:
		w.kind = env.Truncated
	}
	switch w.fault {
	case "kind First in the middle":
		w.kind = env.First
		w.reward = 0
	case "reward NaN":
		w.reward = math.NaN()
	}
	w.fill(ts)
	return nil
}

func (w *walk) check(a env.Action) error {
	bad := len(a.Disc) != 2 || len(a.Cont) != 1
	if w.fault == "short action panics not" && len(a.Disc) > 2 {
		a.Disc, bad = a.Disc[:2], false
	}
	if bad {
		return env.ErrIllegalAction
	}
	if a.Disc[0] < 0 || a.Disc[0] > 2 || a.Disc[1] < 0 || a.Disc[1] > 1 {
		return env.ErrIllegalAction
	}
	if int(a.Disc[0]) == w.masked && w.fault != "mask not enforced" {
		return env.ErrIllegalAction
	}
	if !(a.Cont[0] >= -1 && a.Cont[0] <= 1) && w.fault != "box not enforced" {
		return env.ErrIllegalAction
	}
	return nil
}

func (w *walk) fill(ts *env.TimeStep) {
	ts.Kind, ts.Reward, ts.Elapsed = w.kind, w.reward, time.Duration(w.steps)*time.Second
	if w.kind == env.First {
		ts.Elapsed = 0
	}
	for i := range 3 {
		ts.Obs[i] = 0
		ts.Mask[i] = i != w.masked
	}
	ts.Obs[w.masked] = 1
	ts.Obs[3] = float32(min(max(w.x, -100), 100))
	if w.fault != "leaves an element unwritten" {
		ts.Obs[4] = float32(w.tilt)
	}
	if w.fault == "observation out of bounds" {
		ts.Obs[4] = 101
	}
	if w.fault == "empty rows differ" {
		ts.Obs[3], ts.Obs[4] = 0, ts.Obs[3]
	}
	ts.Mask[3], ts.Mask[4] = true, true
	if w.fault == "nothing legal" {
		ts.Mask[3], ts.Mask[4] = false, false
	}
	if w.fault != "info unwritten" {
		ts.Info[0] = float64(w.steps)
	}
	ts.Info[1], ts.Info[2] = math.NaN(), math.NaN()
	if ts.Kind.Last() {
		ts.Info[2] = math.Abs(float64(ts.Obs[3]))
	}
	w.alias, w.old = ts.Obs, ts
}

func (w *walk) AppendSnapshot(dst []byte) ([]byte, error) {
	if w.closed && w.fault != "snapshot after close" {
		return dst, env.ErrClosed
	}
	if !w.begun {
		return dst, env.ErrResetNeeded
	}
	if w.fault == "snapshot moves" {
		w.src.Uint64()
	}
	start := len(dst)
	if w.fault == "snapshot does not append" {
		dst, start = nil, 0
	}
	b := snap.Begin(dst, "walk")
	state, err := w.pcg.MarshalBinary()
	if err != nil {
		return dst, err
	}
	if w.fault == "generator not saved" {
		state, _ = new(rand.PCG).MarshalBinary()
	}
	b = snap.Bytes(b, state)
	b = snap.F64(b, w.x)
	if w.fault != "task not saved" {
		b = snap.F64(b, w.tilt)
	}
	b = snap.F64(b, w.reward)
	for _, v := range []int{w.steps, int(w.kind), w.masked} {
		b = snap.Int(b, v)
	}
	return snap.Seal(b, start), nil
}

func (w *walk) RestoreSnapshot(src []byte, ts *env.TimeStep) error {
	if w.closed && w.fault != "snapshot after close" {
		return env.ErrClosed
	}
	if w.fault == "hostile length allocates" && len(src) > 12 && src[4] == 0xff && src[11] == 0xff {
		w.junk = make([]byte, 300<<20)
	}
	if w.fault == "restore spoils the time step" {
		ts.Reward = 3
	}
	r, err := snap.Open(src, "walk")
	if err != nil && w.fault == "checksum not checked" && len(src) > 8 {
		sealed := snap.Seal(append([]byte(nil), src[:len(src)-4]...), 0)
		r, err = snap.Open(sealed, "walk")
	}
	if err != nil {
		if w.fault == "restore has another error" {
			return err
		}
		if w.fault == "restore spoils the state" {
			w.x = 0
		}
		return fmt.Errorf("%w: %v", env.ErrSnapshot, err)
	}
	var pcg rand.PCG
	if err := pcg.UnmarshalBinary(r.Bytes()); err != nil {
		return fmt.Errorf("%w: %v", env.ErrSnapshot, err)
	}
	x, tilt := r.F64(), w.tilt
	if w.fault != "task not saved" {
		tilt = r.F64()
	}
	reward, steps, kind, masked := r.F64(), r.Int(), r.Int(), r.Int()
	if r.Done() != nil || steps < 0 || steps > walkSteps || kind < 0 || kind > 3 || masked < 0 || masked > 2 ||
		!(x >= -100 && x <= 100 && tilt >= -1 && tilt <= 1 && reward <= 0 && reward > -1000) ||
		(kind == 0) != (steps == 0) || kind == 0 && reward != 0 || steps == walkSteps && kind < 2 {
		return fmt.Errorf("%w: impossible", env.ErrSnapshot)
	}
	w.pcg, w.x, w.tilt, w.reward, w.steps, w.kind, w.masked, w.begun = pcg, x, tilt, reward, steps, env.Kind(kind), masked,
		true
	w.fill(ts)
	return nil
}
