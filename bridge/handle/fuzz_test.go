package handle

import (
	"context"
	"errors"
	"testing"
	"time"

	"clustergym/bridge/wire"
)

// FuzzRequests sends any message that decodes to a handle. No request may break the server (an error without a code, or
// with `internal`), leave half a reply, or change anything if it is refused.
func FuzzRequests(f *testing.F) {
	w := wire.NewWriter(wire.Ext)
	for _, m := range []wire.Map{
		{field("op", "reset"), field("seed", 3), field("ids", []int{1}), field("options", wire.Map{field("window", 2)})},
		{field("op", "reset"), field("seed", []any{1, nil, 3}),
			field("options", []any{nil, wire.Map{field("task", []float64{0, 0, 0})}, nil})},
		{field("op", "reset"), field("which", wire.Array{DType: wire.Bool, Shape: []int{3}, Data: []byte{1, 0, 1}}),
			field("options", wire.Map{field("split", "x")})},
		{field("op", "step"), field("a", i64s(0, 1, 2))}, {field("op", "step"), field("a", []any{1, 2.5, -7})},
		{field("op", "step"), field("a", f64s(0, 1, 2)), field("ids", i64s(2, 1, 0))},
		{field("op", "send"), field("a", i64s(0, 1, 2))}, {field("op",
			"recv")}, {field("op", "masks"), field("ids", []int{0})},
		{field("op", "call"), field("method", "set_task"),
			field("args", wire.Map{field("tasks", []any{nil, nil, []int{1, 0, 0}})})},
		{field("op", "call"), field("method", "sample_tasks"), field("args", wire.Map{field("n", 2), field("seed", 1)})},
		{field("op", "call"), field("method", "heuristic"), field("args", wire.Map{field("rule", "x")})},
		{field("op", "render"), field("mode", "ansi")}, {field("op",
			"snapshot")}, {field("op", "restore"), field("blob", []byte(snapshotMagic))},
	} {
		w.Reset()
		w.Value(m)
		f.Add(append([]byte{}, w.Bytes()...))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		req, e := wire.Decode(frame, wire.Ext, wire.DefaultLimits())
		if e != nil {
			return
		}
		op, _ := req.Get("op").(string)
		d := newDriver(t, toys(nil))
		d.lim.Workers = 2
		d.open("Toy-v3", field("n", 3), field("recv", "any"), field("invalid", "error"))
		d.do(wire.OpReset, field("seed", 10))
		d.do(wire.OpStep, field("a", i64s(0, 0, 0)))
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		d.w.Reset()
		err := d.h.Do(ctx, op, 3, req, d.w)
		if err == nil {
			if m, e := wire.Decode(d.w.Bytes(), wire.Ext, wire.DefaultLimits()); e != nil || m.Get("op") != op ||
				!d.w.Complete() {
				t.Fatalf("%s: the reply is %v, error %v", op, m, e)
			}
			return
		}
		var we *wire.Error
		if !errors.As(err, &we) || we.Code == wire.Internal {
			t.Fatalf("%s: %v", op, err)
		}
		if len(we.Error()) > 4<<10 {
			t.Fatalf("%s: an error of %d bytes", op, len(we.Error()))
		}
		if we.Code != wire.EnvFault {
			is(t, op+" after an error", at(d.do(wire.OpStep, field("a", i64s(0, 0, 0))), "obs", "aa"), 10, 2, 11, 2, 12, 2)
		}
	})
}

// FuzzOpen uses any message that decodes as a request to open.
func FuzzOpen(f *testing.F) {
	w := wire.NewWriter(wire.Ext)
	for _, m := range []wire.Map{
		{field("env", "Toy-v3"), field("n", 3), field("mask", []string{"obs"}), field("info", []string{"late"}),
			field("invalid", "penalty"), field("penalty", 1.5)},
		{field("env", "Bare-v3"), field("autoreset", "same_step"), field("obs", "flat"),
			field("kwargs", wire.Map{field("penalty", 2)}), field("recv", "any"), field("batch", 1)},
		{field("env", "CartPole-v1"), field("render_mode", "ansi"), field("info", "all")},
	} {
		w.Reset()
		w.Value(m)
		f.Add(append([]byte{}, w.Bytes()...))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		req, e := wire.Decode(frame, wire.Ext, wire.DefaultLimits())
		if e != nil {
			return
		}
		d := newDriver(t, toys(nil))
		d.lim.MaxEnvs = 16
		o := d.o
		o.Req, o.Re = req, 9
		h, err := Open(context.Background(), d.f, d.lim, &o, d.w)
		if err == nil {
			if _, e := wire.Decode(d.w.Bytes(), wire.Ext, wire.DefaultLimits()); e != nil || !d.w.Complete() {
				t.Errorf("the reply cannot be read: %v", e)
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
			return
		}
		var we *wire.Error
		if h != nil || !errors.As(err, &we) || we.Code == wire.Internal || len(we.Error()) > 4<<10 {
			t.Fatalf("handle %v, error %v", h, err)
		}
	})
}
