package handle

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"slices"
	"testing"

	"clustergym/bridge/budget"
	"clustergym/bridge/wire"
	"clustergym/env"
	"clustergym/env/control"
)

// painter is a toy that can draw itself: every pixel has the colour of the number of steps. fault is what Paint does
// wrong.
type painter struct {
	savedToy
	fault string
}

func (p painter) FrameRate() int { return 25 }

func (p painter) Paint(dst *image.RGBA) error {
	switch p.fault {
	case "unsupported":
		return fmt.Errorf("far away: %w", errors.ErrUnsupported)
	case "error":
		return errors.New("out of paint")
	case "panic":
		panic("paint")
	}
	for y := range env.FrameHeight {
		for x := range env.FrameWidth {
			dst.SetRGBA(x, y, color.RGBA{byte(p.steps), byte(x), byte(y), 255})
		}
	}
	return nil
}

func painters(fault string) *testFactory {
	return &testFactory{makers: map[string]makeOne{
		"Toy-v3": func(wire.Map) (env.Env, error) { return painter{savedToy{newToy()}, fault}, nil },
		"CartPole-v1": func(wire.Map) (env.Env, error) {
			return control.New("CartPole-v1")
		},
	}}
}

// shot returns the pictures of a reply, one for each row.
func shot(t *testing.T, m wire.Map, rows int) [][]byte {
	t.Helper()
	a, ok := m.Get("render").(wire.Array)
	if !ok || a.DType != wire.U8 || !slices.Equal(a.Shape, []int{rows, 480, 640, 3}) {
		t.Fatalf("render is %v %v, want bytes of [%d 480 640 3]", a.DType, a.Shape, rows)
	}
	return slices.Collect(slices.Chunk(a.Data, len(a.Data)/rows))
}

// Every row has a picture of its own, in the order asked for, without the fourth byte of its pixels.
func TestPicturesArePixels(t *testing.T) {
	for _, enc := range []wire.Encoding{wire.Ext, wire.MPNP} {
		d := newDriver(t, painters(""))
		d.enc, d.w = enc, wire.NewWriter(enc)
		m := d.open("Toy-v3", field("n", 3), field("render_mode", "rgb_array"))
		if modes, fps := at(m, "meta", "render_modes"),
			at(m, "meta", "render_fps"); fmt.Sprint(modes) != "[ansi rgb_array]" || fps != int64(25) {
			t.Errorf("modes %v, %v pictures a second, want ansi, rgb_array and 25", modes, fps)
		}
		d.do(wire.OpReset, field("seed", 0))
		d.do(wire.OpStep, field("a", i64s(0, 0)), field("ids", []int{1, 2}))
		d.do(wire.OpStep, field("a", i64s(0)), field("ids", []int{2}))
		m = d.do(wire.OpRender, field("ids", []int{2, 0}), field("mode", "rgb_array"))
		is(t, "ids", m.Get("ids"), 2, 0)
		for p, steps := range []byte{2, 0} {
			got := shot(t, m, 2)[p]
			for _, at := range [][2]int{{0, 0}, {5, 7}, {639, 479}} {
				if px := got[3*(640*at[1]+at[0]):][:3]; !bytes.Equal(px, []byte{steps, byte(at[0]), byte(at[1])}) {
					t.Errorf("row %d: pixel %v is %v", p, at, px)
				}
			}
		}
		shot(t, d.do(wire.OpRender, field("mode", "rgb_array")), 3)
	}
}

// In JSON a picture is lists of numbers.
func TestPicturesAreListsInJSON(t *testing.T) {
	d := newDriver(t, painters(""))
	d.open("Toy-v3")
	d.do(wire.OpReset, field("seed", 0))
	w := wire.NewWriter(wire.JSON)
	if err := d.h.Do(t.Context(), wire.OpRender, 9, d.frame(wire.OpRender, wire.Map{field("mode", "rgb_array")}),
		w); err != nil {
		t.Fatal(err)
	}
	if want := `{"re":9,"op":"render","render":[[[[0,0,0],[0,1,0],[0,2,0],`; !bytes.HasPrefix(w.Bytes(), []byte(want)) {
		t.Errorf("the reply begins with %.80s, want %s", w.Bytes(), want)
	}
}

// An environment that has no drawing, or whose drawing is far away, is drawn by what it shows the agent.
func TestEveryEnvironmentHasAPicture(t *testing.T) {
	for name, f := range map[string]*testFactory{"none": toys(nil), "far away": painters("unsupported")} {
		d := newDriver(t, f)
		d.open("Toy-v3", field("autoreset", "same_step"))
		d.do(wire.OpReset, field("seed", 0))
		picture := func() []byte { return bytes.Clone(shot(t, d.do(wire.OpRender, field("mode", "rgb_array")), 1)[0]) }
		first := picture()
		if !bytes.Equal(first, picture()) {
			t.Errorf("%s: one state, two pictures", name)
		}
		d.pass(1, 1)
		if bytes.Equal(first, picture()) {
			t.Errorf("%s: a step does not show", name)
		}
	}
	d := newDriver(t, toys(nil))
	if m := d.open("Bare-v3"); fmt.Sprint(at(m, "meta", "render_modes")) != "[rgb_array]" {
		t.Errorf("modes %v", at(m, "meta", "render_modes"))
	}
	d.do(wire.OpReset, field("seed", 0))
	shot(t, d.do(wire.OpRender), 1)
}

// After an episode's last step in same_step, the picture is of the next one's first.
func TestPicturesOfSameStepAreOfTheNextEpisode(t *testing.T) {
	d := newDriver(t, toys(nil))
	d.open("Bare-v3", field("autoreset", "same_step"))
	d.do(wire.OpReset, field("seed", 5))
	d.pass(1, toyEnd)
	ended := bytes.Clone(shot(t, d.do(wire.OpRender), 1)[0])
	other := newDriver(t, toys(nil))
	other.open("Bare-v3")
	other.do(wire.OpReset, field("seed", env.EpisodeSeed(5, 1)))
	if !bytes.Equal(ended, shot(t, other.do(wire.OpRender), 1)[0]) {
		t.Error("the picture is not that of the new episode")
	}
}

// Rendering changes nothing: replies are the same bytes with it and without.
func TestRenderingChangesNoReply(t *testing.T) {
	run := func(modes ...string) (all []byte) {
		d := newDriver(t, painters(""))
		d.open("CartPole-v1", field("n", 2), field("autoreset", "same_step"))
		d.do(wire.OpReset, field("seed", 3))
		all = append(all, d.raw...)
		for step := range 60 {
			d.re = uint32(10 + step)
			d.do(wire.OpStep, field("a", i64s(int64(step%2), 1)))
			all = append(all, d.raw...)
			for _, mode := range modes {
				d.do(wire.OpRender, field("mode", mode))
			}
		}
		return all
	}
	if !bytes.Equal(run(), run("rgb_array", "ansi")) {
		t.Error("steps differ after rendering")
	}
}

// A reply that could not be sent is refused before anything is drawn.
func TestTooManyPicturesAreRefused(t *testing.T) {
	d := newDriver(t, painters("panic"))
	d.lim.MaxFrameOut = 2 << 20
	d.open("Toy-v3", field("n", 3))
	d.do(wire.OpReset, field("seed", 0))
	e := d.fails(wire.TooLarge, wire.OpRender, field("mode", "rgb_array"))
	if want := "3 pictures of 921600 bytes, want at most 2 in one reply: ask for fewer environments at once"; e.Msg !=
		want {
		t.Errorf("%q, want %q", e.Msg, want)
	}
}

func TestUnknownModesAreRefused(t *testing.T) {
	d := newDriver(t, painters(""))
	d.open("Toy-v3")
	d.do(wire.OpReset, field("seed", 0))
	if e := d.fails(wire.Unsupported, wire.OpRender, field("mode", "human")); e.Error() !=
		`unsupported: field mode; got "human"; want ansi, rgb_array` {
		t.Error(e.Error())
	}
	if _, e := newDriver(t, painters("")).tryOpen(wire.Map{field("env", "Toy-v3"), field("render_mode", "human")}); e ==
		nil || e.Want != "ansi, rgb_array" {
		t.Errorf("open: %v", e)
	}
}

// Pictures that fail are the environment's fault: the others go on.
func TestFailedPicturesAreFaults(t *testing.T) {
	d := newDriver(t, painters("panic"))
	d.open("Toy-v3", field("n", 2))
	d.do(wire.OpReset, field("seed", 0))
	if e := d.fails(wire.EnvFault, wire.OpRender, field("mode", "rgb_array"), field("ids", []int{1})); !slices.Equal(e.Env,
		[]int{1}) {
		t.Errorf("environments %v, want 1", e.Env)
	}
	d.do(wire.OpStep, field("a", i64s(0)), field("ids", []int{0}))
	d.fails(wire.EnvFault, wire.OpStep, field("a", i64s(0)), field("ids", []int{1}))
	d = newDriver(t, painters("error"))
	d.open("Toy-v3")
	d.do(wire.OpReset, field("seed", 0))
	if e := d.fails(wire.BadRequest, wire.OpRender, field("mode", "rgb_array")); e.Msg != "out of paint" {
		t.Error(e.Error())
	}
}

// The picture under way is in the budget: from the beginning if the handle was opened for pictures, else from the first
// on.
func TestPicturesAreInTheBudget(t *testing.T) {
	const canvas = 4 * 640 * 480
	used := func(more ...wire.Pair) (int64, *Handle, *budget.Budget) {
		b := budget.New(1 << 40)
		h, err := openIn(t, b, "CartPole-v1", 2, more...)
		if err != nil {
			t.Fatal(err)
		}
		w := wire.NewWriter(wire.Ext)
		if err := h.Do(t.Context(), wire.OpReset, 2, wire.Map{field("seed", int64(1))}, w); err != nil {
			t.Fatal(err)
		}
		return b.Used(budget.Environments), h, b
	}
	shoot := func(h *Handle) error {
		return h.Do(t.Context(), wire.OpRender, 3, wire.Map{field("mode", "rgb_array")}, wire.NewWriter(wire.Ext))
	}
	without, h, b := used()
	for range 2 {
		if err := shoot(h); err != nil {
			t.Fatal(err)
		}
		if got := b.Used(budget.Environments); got != without+canvas {
			t.Errorf("%d bytes are reserved, %d without pictures, want %d more", got, without, canvas)
		}
	}
	with, asked, bAsked := used(field("render_mode", "rgb_array"))
	if err := shoot(asked); err != nil || with != without+canvas || bAsked.Used(budget.Environments) != with {
		t.Errorf("%v; opened for pictures %d bytes are reserved, then %d, want %d", err, with,
			bAsked.Used(budget.Environments), without+canvas)
	}
	for _, x := range []struct {
		h *Handle
		b *budget.Budget
	}{{h, b}, {asked, bAsked}} {
		if err := x.h.Close(); err != nil || x.b.Used(budget.Environments) != 0 {
			t.Errorf("after Close %d bytes are reserved (%v)", x.b.Used(budget.Environments), err)
		}
	}
	small := budget.New(without + canvas/2)
	h, err := openIn(t, small, "CartPole-v1", 2)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close() //nolint:errcheck // the environments cannot fail to close
	if err := h.Do(t.Context(), wire.OpReset, 2, wire.Map{field("seed", int64(1))}, wire.NewWriter(wire.Ext)); err != nil {
		t.Fatal(err)
	}
	var e *wire.Error
	if err := shoot(h); !errors.As(err, &e) || e.Code != wire.Capacity {
		t.Errorf("without memory: %v, want %s", err, wire.Capacity)
	}
}
