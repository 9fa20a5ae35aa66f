package client_test

import (
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/envtest"
	"clustergym/internal/rng"
	"clustergym/internal/snap"
)

// drift is an environment with every ability of the contract: two factors with a changing mask and a box, uneven times,
// infos that may be unknown, a scalar field, tasks, snapshots, both kinds of rendering.
type drift struct {
	slow time.Duration // of one step
	gate *gate         // holds up steps while it is shut; nil = no gate

	pcg     rand.PCG
	src     *rand.Rand
	x, tilt float64
	steps   int
	kind    env.Kind
	reward  float64
	elapsed time.Duration
	masked  int // the value of factor 0 that is illegal now
	begun   bool
	closed  bool
	jammed  bool // it refuses actions that its mask allows
}

const (
	driftID    = "Drift-v3"
	driftSteps = 30
)

func newDrift() *drift {
	d := &drift{}
	d.src = rand.New(&d.pcg)
	return d
}

func TestDriftIsAnEnvironment(t *testing.T) {
	envtest.Run(t, func() env.Env { return newDrift() }, envtest.Sealed(), envtest.NoAllocs())
}

func (d *drift) Spec() env.Spec {
	return env.Spec{
		ID: driftID,
		Obs: []env.Field{
			{Name: "masked", Shape: []int{3}, Low: 0, High: 1, Unit: "one-hot", Doc: "what is illegal now"},
			{Name: "tilt", Low: -1, High: 1},
			{Name: "x", Shape: []int{1, 2}, Low: float32(math.Inf(-1)), High: 100, Doc: "where it is"},
		},
		Action: env.ActionSpec{Sizes: []int{3, 2}, Low: []float32{-1, float32(math.Inf(-1))}, High: []float32{1, 0.25}},
		Info: []env.Field{{Name: "steps", Low: 0, High: driftSteps, Unit: "steps"}, {Name: "rarely", Low: -5, High: 5},
			{Name: "never"}, {Name: "end", Metric: true}},
		MaxSteps: driftSteps, Solved: math.NaN(), NoOp: -1, Tau: 90*time.Minute + 1,
	}
}

func (d *drift) TaskSpec() []env.Field {
	return []env.Field{{Name: "tilt", Low: -1, High: 1, Unit: "slope"}}
}

func (d *drift) SampleTask(src *rand.Rand, dst []float64) { dst[0] = 2*src.Float64() - 1 }

func (d *drift) Render(w io.Writer, mode string) error {
	if mode != "ansi" {
		return fmt.Errorf("no mode %q", mode)
	}
	_, err := fmt.Fprintf(w, "x = %v ü\n", d.x)
	return err
}

func (d *drift) FrameRate() int { return 12 }

// Paint draws a column that says where it is.
func (d *drift) Paint(dst *image.RGBA) error {
	switch {
	case d.closed:
		return env.ErrClosed
	case !d.begun:
		return env.ErrResetNeeded
	case dst.Rect != env.NewFrame().Rect:
		return env.ErrFrame
	}
	at := int(math.Float64bits(d.x) % env.FrameWidth)
	for i := range dst.Pix {
		dst.Pix[i] = 255
		if i%4 == 0 && i/4%env.FrameWidth == at {
			dst.Pix[i] = byte(d.steps)
		}
	}
	return nil
}

func (d *drift) Close() error {
	d.closed = true
	return nil
}

func (d *drift) Reset(ctx context.Context, ep env.Episode, ts *env.TimeStep) error {
	if d.closed {
		return env.ErrClosed
	}
	d.begun = false
	if err := ctx.Err(); err != nil {
		return err
	}
	tilt := 0.0
	if ep.Task != nil {
		if len(ep.Task) != 1 || !(ep.Task[0] >= -1 && ep.Task[0] <= 1) {
			return fmt.Errorf("%w: task %v", env.ErrEpisode, ep.Task)
		}
		tilt = ep.Task[0]
	}
	if ep.Split != "" && ep.Split != env.SplitTest || ep.Window > 3 {
		return fmt.Errorf("%w: split %q, window %d", env.ErrEpisode, ep.Split, ep.Window)
	}
	rng.Seed(&d.pcg, ep.Seed+uint64(ep.Window+1)+uint64(len(ep.Split)), "drift")
	d.x, d.tilt, d.steps, d.kind, d.reward, d.elapsed, d.begun = d.src.NormFloat64(), tilt, 0, env.First, 0, 0, true
	d.masked = d.src.IntN(3)
	d.fill(ts)
	return nil
}

func (d *drift) Step(ctx context.Context, a env.Action, ts *env.TimeStep) error {
	if d.closed {
		return env.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if !d.begun || d.kind.Last() {
		return env.ErrResetNeeded
	}
	if len(a.Disc) != 2 || len(a.Cont) != 2 || a.Disc[0] < 0 || a.Disc[0] > 2 || a.Disc[1] < 0 || a.Disc[1] > 1 ||
		int(a.Disc[0]) == d.masked ||
		!(a.Cont[0] >= -1 && a.Cont[0] <= 1) || !(a.Cont[1] <= 0.25) || math.IsInf(float64(a.Cont[1]), 0) || d.jammed {
		return env.ErrIllegalAction
	}
	if d.slow > 0 {
		time.Sleep(d.slow)
	}
	if d.gate != nil {
		d.gate.pass()
	}
	d.x = min(max(d.x+float64(a.Disc[0]-1)+float64(a.Cont[0])+max(float64(a.Cont[1]), -1)+d.tilt+0.1*d.src.NormFloat64(),
		-100), 100)
	d.reward = -math.Abs(d.x)
	d.elapsed = time.Duration(d.src.Int64N(int64(30 * 24 * time.Hour))) // to the nanosecond
	d.masked = d.src.IntN(3)
	d.steps++
	d.kind = env.Mid
	switch {
	case d.x > 6:
		d.kind = env.Terminated
	case d.steps == driftSteps:
		d.kind = env.Truncated
	}
	d.fill(ts)
	return nil
}

func (d *drift) fill(ts *env.TimeStep) {
	ts.Kind, ts.Reward, ts.Elapsed = d.kind, d.reward, d.elapsed
	for i := range 3 {
		ts.Obs[i], ts.Mask[i] = 0, i != d.masked
	}
	ts.Obs[d.masked] = 1
	ts.Obs[3], ts.Obs[4], ts.Obs[5] = float32(d.tilt), float32(d.x), float32(d.x/7)
	ts.Mask[3], ts.Mask[4] = true, true
	ts.Info[0], ts.Info[1], ts.Info[2], ts.Info[3] = float64(d.steps), math.NaN(), math.NaN(), math.NaN()
	if d.kind.Last() {
		ts.Info[3] = d.x
	}
	if d.steps%5 == 1 {
		ts.Info[1] = d.x / 21
	}
}

func (d *drift) AppendSnapshot(dst []byte) ([]byte, error) {
	if d.closed {
		return dst, env.ErrClosed
	}
	if !d.begun {
		return dst, env.ErrResetNeeded
	}
	pcg, err := d.pcg.MarshalBinary()
	if err != nil {
		return dst, err
	}
	b := snap.Bytes(snap.Begin(dst, "drift"), pcg)
	for _, v := range []float64{d.x, d.tilt, d.reward} {
		b = snap.F64(b, v)
	}
	for _, v := range []int{d.steps, int(d.kind), d.masked, int(d.elapsed)} {
		b = snap.Int(b, v)
	}
	return snap.Seal(b, len(dst)), nil
}

func (d *drift) RestoreSnapshot(src []byte, ts *env.TimeStep) error {
	if d.closed {
		return env.ErrClosed
	}
	r, err := snap.Open(src, "drift")
	if err != nil {
		return fmt.Errorf("%w: %w", env.ErrSnapshot, err)
	}
	var pcg rand.PCG
	if err := pcg.UnmarshalBinary(r.Bytes()); err != nil {
		return fmt.Errorf("%w: %w", env.ErrSnapshot, err)
	}
	x, tilt, reward := r.F64(), r.F64(), r.F64()
	steps, kind, masked, elapsed := r.Int(), r.Int(), r.Int(), r.Int()
	if err := r.Done(); err != nil || kind < 0 || kind > 3 || masked < 0 || masked > 2 {
		return errors.Join(env.ErrSnapshot, err)
	}
	d.pcg, d.x, d.tilt, d.reward, d.steps = pcg, x, tilt, reward, steps
	d.kind, d.masked, d.elapsed, d.begun = env.Kind(kind), masked, time.Duration(elapsed), true
	d.fill(ts)
	return nil
}
