package wire

import (
	"bytes"
	"strings"
	"testing"
)

func TestMessagesSurviveTheWire(t *testing.T) {
	for _, enc := range encodings3() {
		w := NewWriter(enc)
		w.Reply(7, OpStep, 4)
		w.Key("x")
		PutF32(w.Array(F32, 2, 3), []float32{1, 2, 3, 4, 5, 6})
		w.Key("list")
		w.List(2)
		w.Int(-5)
		w.Str("ü")
		w.Key("empty")
		w.Map(0)
		w.Key("b")
		PutBool(w.Array(Bool, 2), []bool{true, false})
		m, e := Decode(bytes.Clone(w.Bytes()), enc, DefaultLimits())
		if e != nil {
			t.Fatalf("%v: %v", enc, e)
		}
		if again := encode(enc, m); !bytes.Equal(again, w.Bytes()) {
			t.Errorf("%v: %q, then %q", enc, w.Bytes(), again)
		}
	}
}

func TestWritersAllocateNothingOnceTheyHaveGrown(t *testing.T) {
	for _, enc := range encodings3() {
		w := NewWriter(enc)
		write := replyOf(w, 64, 64)
		write()
		if n := testing.AllocsPerRun(20, write); n != 0 {
			t.Errorf("%v: %v allocations a reply", enc, n)
		}
		if !w.Complete() {
			t.Errorf("%v: the reply is not whole", enc)
		}
	}
}

// A message that would be broken in one encoding is a panic in all of them.
func TestBrokenMessagesPanic(t *testing.T) {
	for _, c := range []struct {
		name  string
		write func(w *Writer)
	}{
		{"more entries than announced", func(w *Writer) { w.Map(1); w.Key("a"); w.Nil(); w.Key("b") }},
		{"a key in a list", func(w *Writer) { w.List(1); w.Key("a") }},
		{"a key at the top", func(w *Writer) { w.Key("a") }},
		{"two keys", func(w *Writer) { w.Map(2); w.Key("a"); w.Key("b") }},
		{"a value without a key", func(w *Writer) { w.Map(2); w.Int(1) }},
		{"an array without a key", func(w *Writer) { w.Map(2); w.Array(U8, 2) }},
		{"a container without a key", func(w *Writer) { w.Map(2); w.List(0) }},
		{"a negative length", func(w *Writer) { w.Map(-1) }},
		{"an unknown type", func(w *Writer) { w.Value(struct{}{}) }},
		{"an unknown space", func(w *Writer) { w.Value(&Space{Kind: "sphere"}) }},
	} {
		for _, enc := range encodings3() {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s (%v): no panic", c.name, enc)
					}
				}()
				c.write(NewWriter(enc))
			}()
		}
	}
}

func TestAMessageIsCompleteWithItsLastEntry(t *testing.T) {
	for _, enc := range encodings3() {
		w := NewWriter(enc)
		if w.Complete() {
			t.Errorf("%v: nothing is complete", enc)
		}
		w.Map(2)
		w.Key("a")
		w.List(1)
		w.Array(U8, 2)[0] = 1
		w.Key("b")
		if w.Complete() {
			t.Errorf("%v: complete before its last value", enc)
		}
		w.Nil()
		if !w.Complete() {
			t.Errorf("%v: not complete", enc)
		}
		w.Map(3) // abandoned
		w.Reset()
		w.Map(0)
		if !w.Complete() || w.Len() > 2 {
			t.Errorf("%v: %q after Reset", enc, w.Bytes())
		}
	}
}

// One byte that is not UTF-8 would make readers refuse the whole message.
func TestStringsAreMadeUTF8(t *testing.T) {
	bad := "a\xffb\xc3"
	for _, enc := range encodings3() {
		m, e := Decode(encode(enc, Map{{bad, bad}}), enc, DefaultLimits())
		if e != nil {
			t.Fatalf("%v: %v", enc, e)
		}
		if want := "a\uFFFDb\uFFFD"; m[0].Key != want || m[0].Value != want {
			t.Errorf("%v: %q, want %q", enc, m, want)
		}
	}
}

func TestGoValuesAreWrittenAsWhatTheyStandFor(t *testing.T) {
	v := map[string]any{
		"z": 1, "y": int32(-2), "x": uint32(3), "w": float32(0.5), "v": []string{"a"}, "u": []int{1}, "t": []int64{2},
		"s": []float64{1}, "r": Space{Kind: "mbinary", Shape: []int{2}},
	}
	want := `{"r":{"t":"mbinary","shape":[2]},"s":[1.0],"t":[2],"u":[1],"v":["a"],"w":0.5,"x":3,"y":-2,"z":1}`
	if got := string(encode(JSON, v)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Lengths of four bytes have a test of their own, so that the golden files stay small.
func TestLargeArrays(t *testing.T) {
	a := Array{U8, []int{70, 1000}, bytes.Repeat([]byte{1, 2, 3, 4, 5, 6, 7}, 10000)}
	for _, enc := range []Encoding{Ext, MPNP} {
		frame := encode(enc, Map{{"a", a}})
		m, e := Decode(frame, enc, DefaultLimits())
		if e != nil {
			t.Fatal(e)
		}
		if got := m.Get("a").(Array); !bytes.Equal(got.Data, a.Data) || got.Shape[0] != 70 || got.Shape[1] != 1000 {
			t.Errorf("%v: %d bytes of shape %v", enc, len(got.Data), got.Shape)
		}
	}
	if frame := encode(Ext, Map{{"a", a}}); !strings.HasPrefix(string(frame), "\x81\xa1a\xc9\x00\x01\x11\x80\x4e") {
		t.Errorf("begins with %x", frame[:12])
	}
}
