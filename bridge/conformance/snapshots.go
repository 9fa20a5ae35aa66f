package conformance

import (
	"fmt"
	"slices"

	"clustergym/bridge/conformance/compare"
	"clustergym/bridge/wire"
)

// saver opens n environments, plays them for a while and saves them. It skips the claim if there are no snapshots.
func (s *suite) saver(n int) (p *player, mask compare.Column, blob []byte) {
	c := s.dial()
	c.grants("snapshot")
	p = s.openOn(c, n, "autoreset", "same_step")
	_, mask = p.play(s, p.masks(p.ask(wire.OpReset, "seed", 44), n), 25)
	return p, mask, p.snapshot()
}

func (p *player) snapshot(more ...any) []byte {
	reply, e := p.answer(wire.OpSnapshot, p.post(wire.OpSnapshot, append([]any{"h", p.h}, more...)...))
	switch {
	case e == nil:
	case e.Code == wire.Unsupported:
		skipf("the environment has no snapshots")
	default:
		failf("snapshot: %w", e)
	}
	blob, e := reply.Bytes("blob")
	if e != nil || len(blob) == 0 {
		failf("snapshot gives blob %s", compare.Brief(reply.Get("blob")))
	}
	return slices.Clone(blob)
}

// play takes k legal steps and returns their replies.
func (p *player) play(s *suite, mask compare.Column, k int) ([]wire.Map, compare.Column) {
	var all []wire.Map
	for range k {
		x := p.step(p.legal(s.draw, mask))
		mask = x.mask
		all = append(all, x.reply)
	}
	return all, mask
}

func (s *suite) snapshotsContinue() {
	const n, steps = 3, 60
	p, mask, blob := s.saver(n)
	if !slices.Equal(blob, p.snapshot()) {
		failf("two snapshots of one state differ")
	}
	s.draw = newDraw()
	want, _ := p.play(s, mask, steps)
	other := s.openOn(p.conn, n, "autoreset", "same_step")
	for _, to := range []*player{p, other} {
		reply := to.ask(wire.OpRestore, "blob", blob)
		if !slices.Equal(to.masks(reply, n).V, mask.V) {
			failf("restore gives other masks than were there")
		}
		if reply.Get("obs") == nil {
			failf("restore gives no observation")
		}
		s.draw = newDraw()
		got, _ := to.play(s, mask, steps)
		for k := range want {
			s.part("step %d after restore", k)
			must(compare.Same(got[k], want[k]))
		}
		s.part("another handle")
	}
	// A snapshot of two rows can be restored into any two rows.
	s.part("a snapshot of two rows")
	two := p.snapshot("ids", []int{2, 0})
	other.ask(wire.OpRestore, "ids", []int{0, 1}, "blob", two)
	x := p.ask(wire.OpMasks, "ids", []int{2, 0})
	y := other.ask(wire.OpMasks, "ids", []int{0, 1})
	must(compare.SameBut(x, y, "re", "ids"))
}

func (s *suite) brokenSnapshotsChangeNothing() {
	const n = 2
	p, mask, blob := s.saver(n)
	codes := only(wire.SnapshotMismatch, wire.BadRequest, wire.Forbidden)
	refuse := func(what string, b any, more ...any) {
		s.part("%s", what)
		p.refuse(codes, wire.OpRestore, append([]any{"blob", b}, more...)...)
		if !slices.Equal(p.snapshot(), blob) {
			failf("the refusal changed the state")
		}
	}
	noise := make([]byte, len(blob))
	for i := range noise {
		noise[i] = byte(s.draw.Uint32())
	}
	refuse("nothing", []byte{})
	refuse("no blob", nil)
	refuse("a number", 7)
	refuse("noise", noise)
	refuse("a byte more", append(slices.Clone(blob), 0))
	refuse("twice the blob", slices.Repeat(blob, 2))
	refuse("one environment of two", blob, "ids", []int{1})
	for range 150 {
		at := s.draw.IntN(len(blob))
		flipped := slices.Clone(blob)
		flipped[at] ^= 1 << s.draw.IntN(8)
		flooded := slices.Clone(blob)
		for k := at; k < min(at+8, len(blob)); k++ {
			flooded[k] = ^flooded[k] | 1
		}
		refuse(fmt.Sprintf("the first %d bytes", at), blob[:at])
		refuse(fmt.Sprintf("a flipped bit in byte %d", at), flipped)
		refuse(fmt.Sprintf("other bytes from %d on", at), flooded)
	}
	s.part("into three environments")
	more := s.openOn(p.conn, n+1)
	more.reset(1)
	more.refuse(codes, wire.OpRestore, "blob", blob)
	s.part("the blob itself")
	p.ask(wire.OpRestore, "blob", blob)
	p.play(s, mask, 3)
}

func (s *suite) callsAreFromAList() {
	p := s.start(2)
	p.reset(1)
	for _, method := range []any{"dance", "__class__", "step", "close", "", 3, nil} {
		p.refuse(only(wire.BadRequest, wire.Unsupported, wire.Forbidden), wire.OpCall, "method", method, "args", m())
	}
	if _, ok := p.open.Get("tasks").([]any); !ok {
		s.part("an environment without tasks")
		p.refuse(only(wire.Unsupported, wire.BadRequest), wire.OpCall, "method", "sample_tasks", "args", m("n", 1))
		return
	}
	draw := func(seed int) []any {
		reply := p.ask(wire.OpCall, "method", "sample_tasks", "args", m("n", 2, "seed", seed))
		ret, ok := reply.Get("ret").([]any)
		if !ok || len(ret) != 2 {
			failf("sample_tasks of 2 gives %s", compare.Brief(reply.Get("ret")))
		}
		return ret
	}
	s.part("tasks of one seed")
	x := draw(5)
	must(compare.SameValue("ret", x, draw(5)))
	task := x[1]
	s.part("a task that was set")
	p.ask(wire.OpCall, "method", "set_task", "args", m("task", task), "ids", []int{1})
	reply := p.ask(wire.OpCall, "method", "get_task", "args", m(), "ids", []int{1})
	ret, _ := reply.Get("ret").([]any)
	if len(ret) != 1 {
		failf("get_task of one gives %s", compare.Brief(reply.Get("ret")))
	}
	must(compare.SameValue("get_task", ret[0], task))
}

func (s *suite) picturesCome() {
	p := s.start(2)
	p.grants("render")
	reply := p.ask(wire.OpReset, "seed", 1)
	meta, _ := p.open.Sub("meta")
	modes, _ := meta.Strs("render_modes", nil)
	if len(modes) == 0 {
		p.refuse(only(wire.Unsupported), wire.OpRender, "mode", "ansi")
		return
	}
	p.refuse(only(wire.Unsupported, wire.BadRequest), wire.OpRender, "mode", "no such mode")
	mask := p.masks(reply, 2)
	size := map[string]string{} // of pixels, by mode: it never changes
	for range 3 {
		for _, mode := range modes {
			reply := p.ask(wire.OpRender, "mode", mode, "ids", []int{1})
			shape := picture(mode, reply.Get("render"))
			if was, ok := size[mode]; ok && was != shape {
				failf("render %s gives %s, and %s before", mode, shape, was)
			}
			size[mode] = shape
		}
		_, mask = p.play(s, mask, 1)
	}
}

// picture returns the shape of the picture of one environment that a reply to render has, "" for text.
func picture(mode string, v any) string {
	switch v := v.(type) {
	case []any:
		if len(v) == 1 && mode != "rgb_array" {
			if t, ok := v[0].(string); ok && t != "" {
				return ""
			}
		}
	case wire.Array:
		pixels := v.DType == wire.U8 && len(v.Shape) == 4 && v.Shape[0] == 1 && v.Len() > 0 && v.Shape[3] == 3
		if pixels && mode != "ansi" {
			return fmt.Sprint(v.Shape)
		}
		failf("render %s gives %v %v, want text for ansi, else bytes of [1 H W 3]", mode, v.Shape, v.DType)
	}
	failf("render %s of one environment gives %s", mode, compare.Brief(v))
	return ""
}
