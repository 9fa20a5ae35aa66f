package client

import (
	"bytes"
	"testing"

	"clustergym/bridge/wire"
	"clustergym/env"
)

// fuzzSpec has a column of every kind.
var fuzzSpec = env.Spec{
	ID:     "Fuzz-v1",
	Obs:    []env.Field{{Name: "a", Shape: []int{2}}, {Name: "b"}},
	Action: env.ActionSpec{Sizes: []int{2, 3}, Low: []float32{-1}, High: []float32{1}},
	Info:   []env.Field{{Name: "x"}, {Name: "y"}},
}

// goodReply returns a valid reply of two rows for fuzzSpec.
func goodReply() []byte {
	w := wire.NewWriter(wire.Ext)
	w.Reply(9, wire.OpRestore, 6)
	w.Key("obs")
	clear(w.Array(wire.F32, 2, 3))
	w.Key("r")
	w.F64([]float64{1, 2}, 2)
	for _, k := range []string{"te", "tr", "first"} {
		w.Key(k)
		wire.PutBool(w.Array(wire.Bool, 2), []bool{true, false})
	}
	w.Key("info")
	w.Map(4)
	w.Key(wire.MaskKey)
	clear(w.Array(wire.I8, 2, 5))
	w.Key("x")
	w.F64([]float64{3, 4}, 2)
	w.Key("_x")
	wire.PutBool(w.Array(wire.Bool, 2), []bool{false, true})
	w.Key("elapsed_s")
	w.F64([]float64{1e300, 0.25}, 2)
	return bytes.Clone(w.Bytes())
}

// Any reply is either refused or understood, and never read beyond its end.
func FuzzReplies(f *testing.F) {
	f.Add(goodReply())
	w := wire.NewWriter(wire.Ext)
	w.Value(wire.Map{
		{Key: "re", Value: 1}, {Key: "op", Value: wire.OpOpen}, {Key: "h", Value: 1},
		{Key: "obs_space", Value: wire.ObsSpace(fuzzSpec, wire.ViewFlat, false)},
		{Key: "act_space", Value: wire.ActionSpace(fuzzSpec)}, {Key: "spec", Value: wire.Map{{Key: "id", Value: "Fuzz-v1"}}},
		{Key: "meta",
			Value: wire.Map{{Key: "fields",
				Value: []any{wire.Map{{Key: "name", Value: "a"}, {Key: "shape", Value: []int{3}}}}}}},
	})
	f.Add(bytes.Clone(w.Bytes()))
	f.Fuzz(func(t *testing.T, frame []byte) {
		m, e := wire.Decode(frame, wire.Ext, wire.DefaultLimits())
		if e != nil {
			return
		}
		if r, _, err := parseOpened(m); err == nil && r.l.obs != r.l.spec.ObsLen() {
			t.Error("the layout is not the spec's")
		}
		l := newLayout(fuzzSpec)
		b := env.NewBatch(fuzzSpec, 2)
		if l.readRestored(m, 2) == nil {
			for i := range 2 {
				l.write(i, b.Obs[3*i:3*i+3], b.Mask[5*i:5*i+5], b.Info[2*i:2*i+2])
				if k, _, d := l.restored(i); k > env.Truncated || k == env.First && d != 0 {
					t.Errorf("kind %v, elapsed %v", k, d)
				}
			}
		}
		if with, err := l.readFinal(m, 2); err == nil {
			var mask []bool
			if with {
				mask = b.Mask[:5]
			}
			l.write(1, b.Obs[:3], mask, b.Info[:2])
		}
	})
}

func TestNumbersStandWhereTheyAreWritten(t *testing.T) {
	c := &Client{}
	for _, h := range []uint32{0, 7} {
		for _, op := range []string{wire.OpStep, wire.OpOpen, wire.OpSnapshot, wire.OpBye} {
			k := c.newHandle(h)
			w := k.begin(op, 1)
			w.Key("x")
			w.Int(5)
			a, b := bytes.Clone(w.Bytes()), bytes.Clone(w.Bytes())
			number(a, op, 1)
			number(b, op, 1<<32-2)
			for id, frame := range map[int64][]byte{1: a, 1<<32 - 2: b} {
				m, e := wire.Decode(frame, wire.Ext, wire.DefaultLimits())
				if e != nil || m.Get("id") != id || m.Get("x") != int64(5) || m.Get("op") != op {
					t.Errorf("%s %d is %v (%v)", op, id, m, e)
				}
			}
			if !same(a, b, op) {
				t.Errorf("%s: two requests that differ in their number only are told apart", op)
			}
			w = k.begin(op, 1)
			w.Key("x")
			w.Int(6)
			if same(a, w.Bytes(), op) {
				t.Errorf("%s: two requests are taken for one", op)
			}
		}
	}
}
