package wire

import (
	"bytes"
	"testing"
)

func TestMessagesSurviveTheWire(t *testing.T) {
	for _, enc := range []Encoding{Ext, MPNP, JSON} {
		w := NewWriter(enc)
		w.Reply(7, OpStep, 4)
		w.Key("x")
		w.F32([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
		w.Key("list")
		w.List(2)
		w.Int(-5)
		w.Str("ü")
		w.Key("empty")
		w.Map(0)
		w.Key("b")
		w.Bools([]bool{true, false})
		t.Logf("%v %q", enc, w.Bytes())
		m, e := Decode(bytes.Clone(w.Bytes()), enc, DefaultLimits())
		if e != nil {
			t.Fatalf("%v: %v", enc, e)
		}
		again := NewWriter(enc)
		again.Value(m)
		if !bytes.Equal(again.Bytes(), w.Bytes()) {
			t.Errorf("%v: %q, then %q", enc, w.Bytes(), again.Bytes())
		}
	}
}
