package client_test

import (
	"bytes"
	"errors"
	"image"
	"io"
	"strings"
	"testing"

	"clustergym/bridge/client"
	"clustergym/bridge/wire"
	"clustergym/env"
)

// A remote environment's pictures are those of the environment itself.
func TestRemotePicturesAreTheSame(t *testing.T) {
	far, err := dial(t, serve(t, nil), nil).Open(ctx, driftID, nil)
	if err != nil {
		t.Fatal(err)
	}
	home := newDrift()
	x, y := env.NewTimeStep(home.Spec()), env.NewTimeStep(home.Spec())
	here, there := env.NewFrame(), env.NewFrame()
	if err := errors.Join(home.Reset(ctx, env.Episode{Seed: 4}, x), far.Reset(ctx, env.Episode{Seed: 4}, y)); err != nil {
		t.Fatal(err)
	}
	for step := range 5 {
		if err := errors.Join(home.Paint(here), far.Paint(there)); err != nil || !bytes.Equal(here.Pix, there.Pix) {
			t.Fatalf("step %d: %v, or other pixels", step, err)
		}
		a := env.Action{Disc: []int32{int32((home.masked + 1) % 3), 0}, Cont: []float32{0.1, 0.1}}
		if err := errors.Join(home.Step(ctx, a, x), far.Step(ctx, a, y)); err != nil {
			t.Fatal(err)
		}
	}
	if n := far.FrameRate(); n != 12 {
		t.Errorf("%d pictures a second, want 12", n)
	}
	if err := far.Render(io.Discard, "rgb_array"); err == nil ||
		!strings.Contains(err.Error(), "want ansi; Paint draws pixels") {
		t.Errorf("pixels as text: %v", err)
	}
	if err := far.Paint(image.NewRGBA(image.Rect(0, 0, 2, 2))); !errors.Is(err, env.ErrFrame) {
		t.Errorf("on 2 by 2 pixels: %v", err)
	}
}

// What another server says is checked: it may have no pictures, or others.
func TestPicturesOfOtherServers(t *testing.T) {
	reply := func(modes []string, shown any) error {
		meta := wire.Map{{Key: "fields",
			Value: []any{wire.Map{{Key: "name", Value: "x"}, {Key: "shape", Value: []int{1}}, {Key: "high", Value: 1.0}}}},
			{Key: "render_modes", Value: modes}}
		addr := pretend(t, func(op string, id uint32, w *wire.Writer) bool {
			switch op {
			case wire.OpHello:
				return false
			case wire.OpOpen:
				opened(id, w, with("meta", meta))
			case wire.OpRender:
				w.Reply(id, op, 1)
				w.Key("render")
				w.Value(shown)
			default:
				w.Reply(id, op, 0)
			}
			return true
		})
		e, err := dial(t, addr, nil).Open(ctx, "X-v1", nil)
		if err != nil {
			t.Fatal(err)
		}
		return e.Paint(env.NewFrame())
	}
	for _, modes := range [][]string{nil, {"ansi"}} {
		if err := reply(modes, nil); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("modes %q: %v, want %v", modes, err, errors.ErrUnsupported)
		}
	}
	for _, shown := range []any{
		nil, []string{"text"}, wire.Array{DType: wire.U8, Shape: []int{1, 2, 2, 3}, Data: make([]byte, 12)},
		wire.Array{DType: wire.I8, Shape: []int{1, 480, 640, 3}, Data: make([]byte, 480*640*3)},
	} {
		if err := reply([]string{"rgb_array"}, shown); !errors.Is(err, client.ErrReply) {
			t.Errorf("%.40v: %v, want %v", shown, err, client.ErrReply)
		}
	}
	if err := reply([]string{"rgb_array"},
		wire.Array{DType: wire.U8, Shape: []int{1, 480, 640, 3}, Data: make([]byte, 480*640*3)}); err != nil {
		t.Errorf("a sound picture: %v", err)
	}
}
