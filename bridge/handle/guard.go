package handle

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"image"
	"io"
	"log/slog"
	"runtime/debug"

	"clustergym/bridge/wire"
	"clustergym/env"
	"clustergym/env/paint"
)

// guard turns an environment's panics into errors: one environment's bug must not end a server that others use. After a
// panic it refuses everything until a Reset succeeds.
type guard struct {
	inner  env.Env
	index  int
	id     string
	log    *slog.Logger
	broken bool
}

// panicked is the error of a call that panicked. The log has the details under its number.
type panicked struct {
	op, number string
}

func (p *panicked) Error() string {
	return fmt.Sprintf("the environment panicked in %s: see fault %s in the server's log", p.op, p.number)
}

// caught logs the panic p, which a deferred function has recovered, and returns its error.
func (g *guard) caught(op string, what any) error {
	g.broken = true
	var b [6]byte
	_, _ = rand.Read(b[:]) // it never fails
	p := &panicked{op: op, number: hex.EncodeToString(b[:])}
	g.log.Error("an environment panicked", "fault", p.number, "env", g.id, "index", g.index, "op", op, "panic",
		fmt.Sprint(what), "stack", string(debug.Stack()))
	return p
}

// rescue is deferred around a call of the environment, and turns its panic into an error.
func (g *guard) rescue(op string, err *error) {
	if p := recover(); p != nil {
		*err = g.caught(op, p)
	}
}

var errBroken = errors.New("the environment has failed before and was not reset since")

func (g *guard) Spec() env.Spec { return g.inner.Spec() }

func (g *guard) Reset(ctx context.Context, ep env.Episode, ts *env.TimeStep) (err error) {
	defer g.rescue("reset", &err)
	if err = g.inner.Reset(ctx, ep, ts); err == nil {
		g.broken = false
	}
	return err
}

func (g *guard) Step(ctx context.Context, a env.Action, ts *env.TimeStep) (err error) {
	if g.broken {
		return errBroken
	}
	defer g.rescue("step", &err)
	return g.inner.Step(ctx, a, ts)
}

func (g *guard) Close() (err error) {
	defer g.rescue("close", &err)
	return g.inner.Close()
}

func (g *guard) AppendSnapshot(dst []byte) (out []byte, err error) {
	s, ok := g.inner.(env.Snapshotter)
	if !ok {
		return dst, errors.ErrUnsupported
	}
	if g.broken {
		return dst, errBroken
	}
	defer func() {
		if p := recover(); p != nil {
			out, err = dst, g.caught("snapshot", p)
		}
	}()
	return s.AppendSnapshot(dst)
}

func (g *guard) RestoreSnapshot(src []byte, ts *env.TimeStep) (err error) {
	s, ok := g.inner.(env.Snapshotter)
	if !ok {
		return errors.ErrUnsupported
	}
	defer g.rescue("restore", &err)
	if err = s.RestoreSnapshot(src, ts); err == nil {
		g.broken = false
	}
	return err
}

// render renders the environment in the given mode to w.
func (g *guard) render(w io.Writer, mode string) (err error) {
	if g.broken {
		return errBroken
	}
	defer g.rescue("render", &err)
	return g.inner.(env.Renderer).Render(w, mode)
}

// paint paints the environment on dst. Of an environment that cannot, it paints the time step ts, after so many steps.
func (g *guard) paint(dst *image.RGBA, ts *env.TimeStep, steps int) (err error) {
	if g.broken {
		return errBroken
	}
	defer g.rescue("render", &err)
	if p, ok := g.inner.(env.Painter); ok {
		if err := p.Paint(dst); !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
	c, err := paint.On(dst)
	if err != nil {
		return err
	}
	c.TimeStep(g.inner.Spec(), ts, steps)
	return nil
}

// frameRate returns how many pictures a second a video of the environment should have.
func (g *guard) frameRate() int {
	if p, ok := g.inner.(env.Painter); ok {
		return p.FrameRate()
	}
	return paint.FrameRate
}

// advise asks for the action of a policy.
func (g *guard) advise(ctx context.Context, args wire.Map) (action any, err error) {
	if g.broken {
		return nil, errBroken
	}
	defer g.rescue("call", &err)
	return g.inner.(Adviser).Advise(ctx, args)
}

// call calls a method beyond package env's contract.
func (g *guard) call(method string, args wire.Map) (ret any, err error) {
	if g.broken {
		return nil, errBroken
	}
	defer g.rescue("call", &err)
	return g.inner.(Caller).Call(method, args)
}
