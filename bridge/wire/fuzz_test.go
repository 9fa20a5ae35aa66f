package wire

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// seeds adds the frames of all golden files in one of the encodings.
func seeds(f *testing.F, enc Encoding) [][]byte {
	f.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "golden", "*.json"))
	if err != nil {
		f.Fatal(err)
	}
	var out [][]byte
	for _, p := range append(paths, filepath.Join("testdata", "refused.json")) {
		b, err := os.ReadFile(p)
		if err != nil {
			f.Fatal(err)
		}
		var cases []entry
		if err := json.Unmarshal(b, &cases); err != nil {
			f.Fatal(err)
		}
		for _, c := range cases {
			frame, err := hex.DecodeString(c.Hex)
			if err != nil {
				f.Fatal(err)
			}
			if c.Enc == enc.String() {
				out = append(out, frame)
			}
		}
	}
	return out
}

// same checks that what has been read from a frame is written and read as the same, in the encoding it came in.
func same(t *testing.T, m Map, enc Encoding, lim Limits) {
	t.Helper()
	once := encode(enc, m)
	again, e := Decode(once, enc, lim)
	if e != nil {
		t.Fatalf("%s is written as %x, which is refused: %v", appendValue(nil, m), once, e)
	}
	if a, b := appendValue(nil, m), appendValue(nil, again); !bytes.Equal(a, b) {
		t.Fatalf("%s becomes\n%s", a, b)
	}
	if twice := encode(enc, again); !bytes.Equal(once, twice) {
		t.Fatalf("%x becomes\n%x", once, twice)
	}
}

func fuzz(f *testing.F, enc Encoding) {
	for _, frame := range seeds(f, enc) {
		f.Add(frame)
	}
	// Small limits are reached by small frames.
	lim := Limits{Depth: 8, String: 64, Values: 1000}
	f.Fuzz(func(t *testing.T, frame []byte) {
		before := bytes.Clone(frame)
		m, e := Decode(frame, enc, lim)
		if !bytes.Equal(before, frame) {
			t.Fatalf("the frame was changed")
		}
		if e != nil {
			if e.Code != BadFrame || e.Msg == "" {
				t.Fatalf("refused with %v", e)
			}
			return
		}
		same(t, m, enc, lim)
	})
}

func FuzzExt(f *testing.F)  { fuzz(f, Ext) }
func FuzzMPNP(f *testing.F) { fuzz(f, MPNP) }
func FuzzJSON(f *testing.F) { fuzz(f, JSON) }

// FuzzArray checks that an array that can be read is written as the same bytes, and has the same meaning in
// msgpack-numpy's form.
func FuzzArray(f *testing.F) {
	for _, c := range arrays() {
		for _, p := range c.value.(Map) {
			if a, ok := p.Value.(Array); ok {
				f.Add(encode(Ext, a)[2:])
			}
		}
	}
	f.Add([]byte{byte(F32), 1, 0, 0, 1, 0, 0, 0, 0, 0, 0x80, 0x3F})
	f.Add([]byte{byte(I64), 3, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0, 0, 0xFF, 0xFF, 0, 0})
	f.Fuzz(func(t *testing.T, payload []byte) {
		a, e := parseArray(payload)
		if e != nil {
			return
		}
		frame := encode(Ext, a)
		if !bytes.HasSuffix(frame, payload) || len(frame) > len(payload)+6 {
			t.Fatalf("%x becomes %x", payload, frame)
		}
		m, e := Decode(encode(MPNP, Map{{"a", a}}), MPNP, DefaultLimits())
		if e != nil {
			t.Fatal(e)
		}
		b := m.Get("a").(Array)
		if a.DType != b.DType || !reflect.DeepEqual(a.Shape, b.Shape) || !bytes.Equal(a.Data, b.Data) {
			t.Fatalf("%v becomes %v", a, b)
		}
		for i := range min(a.Len(), 100) {
			if v, ok := a.Int(i); ok && a.DType != U64 && a.DType != I64 && a.Float(i) != float64(v) {
				t.Fatalf("element %d is %v and %v", i, v, a.Float(i))
			}
		}
	})
}

// FuzzSpace checks that a space that can be read is written and read as the same, in every encoding.
func FuzzSpace(f *testing.F) {
	for _, c := range spaces() {
		f.Add(encode(Ext, c.value.(Map)[0].Value))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		m, e := Decode(frame, Ext, DefaultLimits())
		if e != nil {
			return
		}
		s, e := ParseSpace(m)
		if e != nil {
			if e.Code != BadRequest || e.Msg == "" {
				t.Fatalf("refused with %v", e)
			}
			return
		}
		for _, enc := range encodings3() {
			again, e := Decode(encode(enc, s), enc, Limits{Depth: 64, String: 1 << 20})
			if e != nil {
				t.Fatalf("%v: %v", enc, e)
			}
			back, e := ParseSpace(again)
			if e != nil {
				t.Fatalf("%v: %+v: %v", enc, s, e)
			}
			if !reflect.DeepEqual(s, back) {
				t.Fatalf("%v: %+v becomes %+v", enc, s, back)
			}
		}
	})
}
