package client

import (
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"clustergym/bridge/wire"
	"clustergym/env"
)

// Env is one environment in the server's process. It returns the same bytes as the environment itself and has the same
// abilities: without snapshots or rendering these methods return errors.ErrUnsupported, without tasks TaskSpec is
// empty. It is not safe for concurrent use.
type Env struct {
	remote
	begun, ended bool
	one          env.Actions // of the current Step
}

var (
	_ env.Env         = (*Env)(nil)
	_ env.Snapshotter = (*Env)(nil)
	_ env.Tasker      = (*Env)(nil)
	_ env.Renderer    = (*Env)(nil)
	_ env.Painter     = (*Env)(nil)
)

// Open opens the environment called id. gymctl envs ID lists its kwargs; values are numbers, strings, booleans, and
// lists and maps with string keys of these. The environment stays open until its Close or the Client's.
func (c *Client) Open(ctx context.Context, id string, kwargs map[string]any) (*Env, error) {
	r, err := c.open(ctx, request{id, kwargs, 1, VecConfig{Autoreset: Disabled, Invalid: "error"}})
	if err != nil {
		return nil, err
	}
	return &Env{remote: *r}, nil
}

// Reset begins the episode ep and fills ts with its first time step. After an error the environment needs another
// Reset.
func (e *Env) Reset(ctx context.Context, ep env.Episode, ts *env.TimeStep) error {
	if e.closed {
		return env.ErrClosed
	}
	e.begun = false // until the server has begun the new episode
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := e.fits(ts); err != nil {
		return err
	}
	m := wire.MapOf("seed", ep.Seed)
	if special(ep) {
		m.Add("options", options(&ep))
	}
	e.h.request(wire.OpReset, m)
	if err := e.h.exchange(ctx, true); err != nil {
		return err
	}
	defer e.h.release()
	if err := e.l.read(e.h.reply.reply, 1, false); err != nil {
		return err
	}
	e.l.write(0, ts.Obs, ts.Mask, ts.Info)
	ts.Kind, ts.Reward, ts.Elapsed = env.First, 0, 0
	e.begun, e.ended = true, false
	return nil
}

// fits returns an error unless ts has room for a reply.
func (e *Env) fits(ts *env.TimeStep) error {
	if len(ts.Obs) != e.l.obs || len(ts.Mask) != e.l.mask || len(ts.Info) != len(e.l.spec.Info) {
		return fmt.Errorf("client: a time step of %d observations, %d mask bits and %d infos, want %d, %d and %d",
			len(ts.Obs), len(ts.Mask), len(ts.Info), e.l.obs, e.l.mask, len(e.l.spec.Info))
	}
	return nil
}

// Step applies a and fills ts, as env.Env says. a is not kept.
func (e *Env) Step(ctx context.Context, a env.Action, ts *env.TimeStep) error {
	if e.closed {
		return env.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if !e.begun || e.ended {
		return env.ErrResetNeeded
	}
	if d, c := len(e.l.spec.Action.Sizes), len(e.l.spec.Action.Low); len(a.Disc) != d || len(a.Cont) != c {
		return fmt.Errorf("%w: %s: %d indices and %d numbers, want %d and %d", env.ErrIllegalAction, e.l.spec.ID, len(a.Disc),
			len(a.Cont), d, c)
	}
	if err := e.fits(ts); err != nil {
		return err
	}
	w := e.h.begin(wire.OpStep, 1)
	w.Key("a")
	e.one = env.Actions{N: 1, Disc: a.Disc, Cont: a.Cont}
	e.l.actions(w, nil, &e.one)
	e.one = env.Actions{} // its slices are the caller's
	if err := e.h.roundTrip(ctx); err != nil {
		return err
	}
	defer e.h.release()
	if err := e.l.read(e.h.reply.reply, 1, true); err != nil {
		return err
	}
	e.l.write(0, ts.Obs, ts.Mask, ts.Info)
	ts.Kind, ts.Reward, ts.Elapsed = e.l.kind(0), e.l.reward(0), e.l.duration(0)
	e.ended = ts.Kind.Last()
	return nil
}

// AppendSnapshot appends the environment's state to dst. The server signs the bytes, and takes them back with
// RestoreSnapshot into any environment of the same id and kwargs.
func (e *Env) AppendSnapshot(dst []byte) ([]byte, error) {
	if !e.closed && !e.begun {
		return dst, env.ErrResetNeeded
	}
	return e.snapshot(dst)
}

// TaskSpec describes the environment's tasks. It is empty if the environment has none.
func (r *remote) TaskSpec() []env.Field { return slices.Clone(r.tasks) }

// SampleTask lets the server draw a task, from a generator seeded with one number of src. If the server cannot be
// asked, dst becomes NaN, which every Reset refuses.
func (e *Env) SampleTask(src *rand.Rand, dst []float64) {
	if err := e.sampleTask(src.Uint64(), dst); err != nil {
		e.h.c.log.Warn("no task was drawn", "env", e.l.spec.ID, "error", err)
		for i := range dst {
			dst[i] = math.NaN()
		}
	}
}

func (e *Env) sampleTask(seed uint64, dst []float64) error {
	if e.closed {
		return env.ErrClosed
	}
	ret, err := e.call(context.Background(), "sample_tasks", wire.MapOf("n", 1, "seed", seed))
	if err != nil {
		return err
	}
	for { // the reply nests the numbers: a list of one task, in a list of one environment
		list, ok := ret.([]any)
		if !ok || len(list) != 1 {
			break
		}
		if _, more := list[0].([]any); !more {
			break
		}
		ret = list[0]
	}
	list, ok := ret.([]any)
	if !ok || len(list) != len(dst) {
		return fmt.Errorf("%w: a task of another length", ErrReply)
	}
	for i, x := range list {
		switch x := x.(type) {
		case float64:
			dst[i] = x
		case int64:
			dst[i] = float64(x)
		default:
			return fmt.Errorf("%w: a task that is not made of numbers", ErrReply)
		}
	}
	return nil
}

// Call calls one of the methods that the server lists in Meta under "methods". args takes the same kinds of values as
// the kwargs of Open.
func (e *Env) Call(ctx context.Context, method string, args map[string]any) (any, error) {
	if e.closed {
		return nil, env.ErrClosed
	}
	if err := encodable("args", args); err != nil {
		return nil, err
	}
	m := wire.Map{}
	for _, k := range slices.Sorted(maps.Keys(args)) {
		m.Add(k, args[k])
	}
	ret, err := e.call(ctx, method, m)
	if err != nil {
		return nil, err
	}
	if list, ok := ret.([]any); ok && len(list) == 1 {
		return list[0], nil
	}
	return nil, fmt.Errorf("%w: the result of %s is no list of one", ErrReply, method)
}

// call returns the field ret of the reply to a call.
func (r *remote) call(ctx context.Context, method string, args wire.Map) (any, error) {
	r.h.request(wire.OpCall, wire.MapOf("method", method, "args", args))
	if err := r.h.roundTrip(ctx); err != nil {
		return nil, err
	}
	defer r.h.release()
	return own(r.h.reply.reply.Get("ret")), nil
}

// Render writes a picture of the current state to w.
func (e *Env) Render(w io.Writer, mode string) error {
	if !e.closed && mode == pixels {
		return fmt.Errorf("client: render mode %q is not for text, want ansi; Paint draws pixels", mode)
	}
	return e.show(mode, "ansi", func(shown any) error {
		list, _ := shown.([]any)
		if len(list) != 1 {
			return fmt.Errorf("%w: %d pictures", ErrReply, len(list))
		}
		s, ok := list[0].(string)
		if !ok {
			return fmt.Errorf("%w: a picture that is no text", ErrReply)
		}
		_, err := io.WriteString(w, s)
		return err
	})
}

// pixels is the render mode of pictures.
const pixels = "rgb_array"

// Paint implements env.Painter. The server must draw in the size of env.NewFrame, as every server of this project does.
func (e *Env) Paint(dst *image.RGBA) error {
	return e.show(pixels, pixels, func(shown any) error {
		a, ok := shown.(wire.Array)
		if !ok || a.DType != wire.U8 || !slices.Equal(a.Shape, []int{1, env.FrameHeight, env.FrameWidth, 3}) {
			return fmt.Errorf("%w: a picture that is not bytes of [1, %d, %d, 3]", ErrReply, env.FrameHeight, env.FrameWidth)
		}
		if dst == nil || dst.Rect != image.Rect(0, 0, env.FrameWidth, env.FrameHeight) {
			return env.ErrFrame
		}
		for from, to := a.Data, dst.Pix; len(from) > 0; from, to = from[3:], to[4:] {
			to[0], to[1], to[2], to[3] = from[0], from[1], from[2], 255
		}
		return nil
	})
}

// FrameRate implements env.Painter.
func (e *Env) FrameRate() int {
	rate, err := e.meta.Int("render_fps", 1, 1, 1000)
	if err != nil {
		return 1
	}
	return int(rate)
}

// show asks the server for the picture in the given mode and calls use with it. It returns errors.ErrUnsupported if the
// server does not have pictures of that kind.
func (e *Env) show(mode, kind string, use func(shown any) error) error {
	if e.closed {
		return env.ErrClosed
	}
	if modes, err := e.meta.Strs("render_modes", nil); err != nil || !slices.Contains(modes, kind) {
		return fmt.Errorf("client: %s does not show itself as %s: %w", e.l.spec.ID, kind, errors.ErrUnsupported)
	}
	e.h.request(wire.OpRender, wire.MapOf("mode", mode))
	if err := e.h.roundTrip(context.Background()); err != nil {
		return err
	}
	defer e.h.release()
	return use(e.h.reply.reply.Get("render"))
}
