package conformance

import (
	"errors"
	"fmt"
	"slices"

	"clustergym/bridge/conformance/compare"
	"clustergym/bridge/wire"
)

// saver opens n environments, plays them for a while and saves them. It returns a skip if there are no snapshots.
func (s *suite) saver(n int) (p *player, mask compare.Column, blob []byte, err error) {
	c, err := s.dial()
	if err != nil {
		return nil, mask, nil, err
	}
	if !c.has("snapshot") {
		return nil, mask, nil, skip("the server does not grant snapshot")
	}
	if p, err = s.openOn(c, n, "autoreset", "same_step"); err != nil {
		return nil, mask, nil, err
	}
	reply, err := p.ask(wire.OpReset, "seed", 44)
	if err != nil {
		return nil, mask, nil, err
	}
	if mask, err = p.masks(reply, n); err != nil {
		return nil, mask, nil, err
	}
	if _, mask, err = p.play(s, mask, 25); err != nil {
		return nil, mask, nil, err
	}
	blob, err = p.snapshot()
	return p, mask, blob, err
}

func (p *player) snapshot(more ...any) ([]byte, error) {
	reply, err := p.ask(wire.OpSnapshot, more...)
	var e *wire.Error
	if errors.As(err, &e) && e.Code == wire.Unsupported {
		return nil, skip("the environment has no snapshots")
	}
	if err != nil {
		return nil, err
	}
	blob, e := reply.Bytes("blob")
	if e != nil || len(blob) == 0 {
		return nil, fmt.Errorf("snapshot gives blob %s", compare.Brief(reply.Get("blob")))
	}
	return slices.Clone(blob), nil
}

// play takes k legal steps and returns their replies.
func (p *player) play(s *suite, mask compare.Column, k int) ([]wire.Map, compare.Column, error) {
	var all []wire.Map
	for range k {
		a, err := p.legal(s.draw, mask)
		if err != nil {
			return nil, mask, err
		}
		x, err := p.step(a)
		if err != nil {
			return nil, mask, err
		}
		mask = x.mask
		all = append(all, x.reply)
	}
	return all, mask, nil
}

func (s *suite) snapshotsContinue() error {
	const n, steps = 3, 60
	p, mask, blob, err := s.saver(n)
	if err != nil {
		return err
	}
	again, err := p.snapshot()
	if err != nil {
		return err
	}
	if !slices.Equal(blob, again) {
		return errors.New("two snapshots of one state differ")
	}
	s.draw = newDraw()
	want, _, err := p.play(s, mask, steps)
	if err != nil {
		return err
	}
	other, err := s.openOn(p.conn, n, "autoreset", "same_step")
	if err != nil {
		return err
	}
	for _, to := range []*player{p, other} {
		reply, err := to.ask(wire.OpRestore, "blob", blob)
		if err != nil {
			return err
		}
		if got, err := to.masks(reply, n); err != nil {
			return fmt.Errorf("restore: %w", err)
		} else if !slices.Equal(got.V, mask.V) {
			return errors.New("restore gives other masks than were there")
		}
		if reply.Get("obs") == nil {
			return errors.New("restore gives no observation")
		}
		s.draw = newDraw()
		got, _, err := to.play(s, mask, steps)
		if err != nil {
			return err
		}
		for k := range want {
			if err := compare.Same(got[k], want[k]); err != nil {
				return fmt.Errorf("step %d after restore: %w", k, err)
			}
		}
	}
	// A snapshot of two rows can be restored into any two rows.
	two, err := p.snapshot("ids", []int{2, 0})
	if err != nil {
		return err
	}
	if _, err := other.ask(wire.OpRestore, "ids", []int{0, 1}, "blob", two); err != nil {
		return err
	}
	x, err := p.ask(wire.OpMasks, "ids", []int{2, 0})
	if err != nil {
		return err
	}
	y, err := other.ask(wire.OpMasks, "ids", []int{0, 1})
	if err != nil {
		return err
	}
	return compare.SameBut(x, y, "re", "ids")
}

func (s *suite) brokenSnapshotsChangeNothing() error {
	const n = 2
	p, mask, blob, err := s.saver(n)
	if err != nil {
		return err
	}
	codes := only(wire.SnapshotMismatch, wire.BadRequest, wire.Forbidden)
	refuse := func(what string, b any, more ...any) error {
		if _, err := p.refuse(codes, wire.OpRestore, append([]any{"blob", b}, more...)...); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		now, err := p.snapshot()
		if err != nil {
			return err
		}
		if !slices.Equal(now, blob) {
			return fmt.Errorf("%s: the refusal changed the state", what)
		}
		return nil
	}
	noise := make([]byte, len(blob))
	for i := range noise {
		noise[i] = byte(s.draw.Uint32())
	}
	if err := first(
		refuse("nothing", []byte{}), refuse("no blob", nil), refuse("a number", 7), refuse("noise", noise), refuse("a byte more", append(slices.Clone(blob), 0)),
		refuse("twice the blob", append(slices.Clone(blob), blob...)), refuse("one environment of two", blob, "ids", []int{1}),
	); err != nil {
		return err
	}
	for range 150 {
		at := s.draw.IntN(len(blob))
		flipped := slices.Clone(blob)
		flipped[at] ^= 1 << s.draw.IntN(8)
		flooded := slices.Clone(blob)
		for k := at; k < min(at+8, len(blob)); k++ {
			flooded[k] = ^flooded[k] | 1
		}
		if err := first(
			refuse(fmt.Sprintf("the first %d bytes", at), blob[:at]), refuse(fmt.Sprintf("a flipped bit in byte %d", at), flipped),
			refuse(fmt.Sprintf("other bytes from %d on", at), flooded),
		); err != nil {
			return err
		}
	}
	more, err := s.openOn(p.conn, n+1)
	if err != nil {
		return err
	}
	if err := more.reset(1); err != nil {
		return err
	}
	if _, err := more.refuse(codes, wire.OpRestore, "blob", blob); err != nil {
		return fmt.Errorf("into three environments: %w", err)
	}
	if _, err := p.ask(wire.OpRestore, "blob", blob); err != nil {
		return fmt.Errorf("the blob itself: %w", err)
	}
	_, _, err = p.play(s, mask, 3)
	return err
}

func (s *suite) callsAreFromAList() error {
	p, err := s.start(2)
	if err != nil {
		return err
	}
	if err := p.reset(1); err != nil {
		return err
	}
	for _, method := range []any{"dance", "__class__", "step", "close", "", 3, nil} {
		if _, err := p.refuse(only(wire.BadRequest, wire.Unsupported, wire.Forbidden), wire.OpCall, "method", method, "args", m()); err != nil {
			return err
		}
	}
	if _, ok := p.open.Get("tasks").([]any); !ok {
		if _, err := p.refuse(only(wire.Unsupported, wire.BadRequest), wire.OpCall, "method", "sample_tasks", "args", m("n", 1)); err != nil {
			return fmt.Errorf("an environment without tasks: %w", err)
		}
		return nil
	}
	draw := func(seed int) (any, error) {
		reply, err := p.ask(wire.OpCall, "method", "sample_tasks", "args", m("n", 2, "seed", seed))
		if err != nil {
			return nil, err
		}
		ret, ok := reply.Get("ret").([]any)
		if !ok || len(ret) != 2 {
			return nil, fmt.Errorf("sample_tasks of 2 gives %s", compare.Brief(reply.Get("ret")))
		}
		return ret, nil
	}
	x, err1 := draw(5)
	y, err2 := draw(5)
	if err := first(err1, err2); err != nil {
		return err
	}
	if err := compare.SameValue("ret", x, y); err != nil {
		return fmt.Errorf("tasks of one seed: %w", err)
	}
	task := x.([]any)[1]
	if _, err := p.ask(wire.OpCall, "method", "set_task", "args", m("task", task), "ids", []int{1}); err != nil {
		return err
	}
	reply, err := p.ask(wire.OpCall, "method", "get_task", "args", m(), "ids", []int{1})
	if err != nil {
		return err
	}
	ret, _ := reply.Get("ret").([]any)
	if len(ret) != 1 {
		return fmt.Errorf("get_task of one gives %s", compare.Brief(reply.Get("ret")))
	}
	return compare.SameValue("get_task", ret[0], task)
}

func (s *suite) picturesCome() error {
	p, err := s.start(2)
	if err != nil {
		return err
	}
	if !p.has("render") {
		return skip("the server does not grant render")
	}
	reply, err := p.ask(wire.OpReset, "seed", 1)
	if err != nil {
		return err
	}
	meta, _ := p.open.Sub("meta")
	modes, _ := meta.Strs("render_modes", nil)
	if len(modes) == 0 {
		_, err := p.refuse(only(wire.Unsupported), wire.OpRender, "mode", "ansi")
		return err
	}
	if _, err := p.refuse(only(wire.Unsupported, wire.BadRequest), wire.OpRender, "mode", "no such mode"); err != nil {
		return err
	}
	mask, err := p.masks(reply, 2)
	if err != nil {
		return err
	}
	size := map[string]string{} // of pixels, by mode: it never changes
	for range 3 {
		for _, mode := range modes {
			reply, err := p.ask(wire.OpRender, "mode", mode, "ids", []int{1})
			if err != nil {
				return err
			}
			shape, err := picture(mode, reply.Get("render"))
			if err != nil {
				return err
			}
			if was, ok := size[mode]; ok && was != shape {
				return fmt.Errorf("render %s gives %s, and %s before", mode, shape, was)
			}
			size[mode] = shape
		}
		if _, mask, err = p.play(s, mask, 1); err != nil {
			return err
		}
	}
	return nil
}

// picture returns the shape of the picture of one environment that a reply to render has, "" for text.
func picture(mode string, v any) (string, error) {
	switch v := v.(type) {
	case []any:
		if len(v) == 1 && mode != "rgb_array" {
			if t, ok := v[0].(string); ok && t != "" {
				return "", nil
			}
		}
	case wire.Array:
		if v.DType == wire.U8 && len(v.Shape) == 4 && v.Shape[0] == 1 && v.Len() > 0 && v.Shape[3] == 3 && mode != "ansi" {
			return fmt.Sprint(v.Shape), nil
		}
		return "", fmt.Errorf("render %s gives %v %v, want text for ansi, else bytes of [1 H W 3]", mode, v.Shape, v.DType)
	}
	return "", fmt.Errorf("render %s of one environment gives %s", mode, compare.Brief(v))
}
