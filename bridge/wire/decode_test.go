package wire

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// allocated returns how many bytes fn allocates, including those it frees.
func allocated(fn func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// Reading any frame allocates at most a small multiple of the frame's bytes, whatever lengths it announces.
func TestMemoryIsBoundedByTheFrame(t *testing.T) {
	const size = 60_000
	u32 := func(n int) string { return string([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}) }
	fill := func(unit string) string { return strings.Repeat(unit, size/len(unit)) }
	list := func(unit string, each int) string { // a list of entries of each bytes
		body := fill(unit)
		return "\x81\xa1v\xdd" + u32(len(body)/each) + body
	}
	keys := func(format string) string {
		var b strings.Builder
		for i := range size / 8 {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	deep := strings.Repeat("\xdd"+u32(size), 14)
	frames := []struct {
		name  string
		enc   Encoding
		frame string
	}{
		{"nils", Ext, list("\xc0", 1)},
		{"small integers", Ext, list("\x05", 1)},
		{"integers", Ext, list("\xcd\x12\x34", 3)},
		{"empty lists", Ext, list("\x90", 1)},
		{"empty maps", Ext, list("\x80", 1)},
		{"short strings", Ext, list("\xa1x", 2)},
		{"empty blobs", Ext, list("\xc4\x00", 2)},
		{"small arrays", Ext, list("\xd7\x4e\x03\x01\x00\x00\x00\x00\x00\x00", 10)},
		{"numpy's scalars", MPNP, list("\x83\xc4\x02nd\xc2\xc4\x04type\xa3|u1\xc4\x04data\xc4\x01\x00", 28)},
		{"keys", Ext, "\xdf" + u32(size/8) + keys("\xa6%06d\xc0")},
		{"announced lists within lists", Ext, "\x81\xa1v" + deep + fill("\xc0")},
		{"announced lists beside lists", Ext,
			"\x81\xa1v\xdd" + u32(size/8) + strings.Repeat("\xdd"+u32(size/10), 8) + fill("\xc0")},
		{"announced maps within maps", Ext, strings.Repeat("\xdf"+u32(size/2)+"\xa1v", 14) + fill("\xa0\xc0")},
		{"a blob", Ext, "\x81\xa1v\xc6" + u32(size) + fill("x")},
		{"JSON nulls", JSON, `{"v":[` + fill("null,") + `null]}`},
		{"JSON integers", JSON, `{"v":[` + fill("7,") + `7]}`},
		{"JSON lists", JSON, `{"v":[` + fill("[],") + `[]]}`},
		{"JSON maps", JSON, `{"v":[` + fill("{},") + `{}]}`},
		{"JSON strings", JSON, `{"v":[` + fill(`"x",`) + `""]}`},
		{"JSON keys", JSON, "{" + keys(`"%06d":0,`) + `"":0}`},
		{"JSON blob", JSON, `{"v":"` + fill("QUJD") + `"}`},
	}
	for _, c := range frames {
		frame := []byte(c.frame)
		lim := DefaultLimits()
		lim.Values = 0
		got := allocated(func() { _, _ = Decode(frame, c.enc, lim) })
		times := int64(50)
		if c.enc == JSON {
			times = 150
		}
		if most := times*int64(len(frame)) + 4096; got > most {
			t.Errorf("%s: %d bytes for a frame of %d, %.1f times; want at most %d times", c.name, got, len(frame),
				float64(got)/float64(len(frame)), times)
		}
		if testing.Verbose() {
			t.Logf("%s: %.1f times", c.name, float64(got)/float64(len(frame)))
		}
	}
}

func TestLimitsAreExact(t *testing.T) {
	lim := Limits{Depth: 4, String: 10, Values: 6}
	for _, c := range []struct {
		name string
		v    any
		ok   bool
	}{
		{"as deep as allowed", Map{{"a", []any{Map{{"b", []any{}}}}}}, true},
		{"deeper", Map{{"a", []any{Map{{"b", []any{[]any{}}}}}}}, false},
		{"a string as long as allowed", Map{{"a", "0123456789"}}, true},
		{"a longer one", Map{{"a", "0123456789-"}}, false},
		{"a key as long as allowed", Map{{"0123456789", nil}}, true},
		{"a longer key", Map{{"0123456789-", nil}}, false},
		{"as many values as allowed", Map{{"a", []any{1, 2, 3, 4}}}, true},
		{"more values", Map{{"a", []any{1, 2, 3, 4, 5, 6}}}, false},
	} {
		for _, enc := range encodings3() {
			_, e := Decode(encode(enc, c.v), enc, lim)
			if (e == nil) != c.ok {
				t.Errorf("%s (%v): %v", c.name, enc, e)
			}
		}
	}
}

// An array is a value, not a nesting level, in both msgpack encodings.
func TestArraysMayStandOnTheLastLevel(t *testing.T) {
	for _, enc := range []Encoding{Ext, MPNP} {
		if _, e := Decode(encode(enc, Map{{"a", []any{bools(true)}}}), enc, Limits{Depth: 2, String: 10}); e != nil {
			t.Errorf("%v: %v", enc, e)
		}
	}
}

func TestKeysAreUniqueInLargeMapsToo(t *testing.T) {
	for _, enc := range encodings3() {
		for _, n := range []int{fewKeys, fewKeys + 1, 3 * fewKeys} {
			m := Map{}
			for i := range n {
				m = append(m, Pair{fmt.Sprint("k", i), int64(i)})
			}
			got, e := Decode(encode(enc, m), enc, DefaultLimits())
			if e != nil || len(got) != n || got.Get(fmt.Sprint("k", n-1)) != int64(n-1) {
				t.Errorf("%v, %d keys: %v, %v", enc, n, got, e)
			}
			for _, twice := range []int{0, fewKeys - 1, n - 1} {
				if _, e := Decode(encode(enc, append(m[:n:n], Pair{fmt.Sprint("k", twice), nil})), enc, DefaultLimits()); e == nil {
					t.Errorf("%v, %d keys: key %d twice is read", enc, n, twice)
				}
			}
		}
	}
}

func TestADecoderServesAfterAnError(t *testing.T) {
	good := stepRequest(Ext, 3)
	d := NewDecoder(Ext, DefaultLimits())
	for n := range len(good) {
		if _, e := d.Decode(good[:n]); e == nil {
			t.Errorf("%d of %d bytes are read", n, len(good))
		}
		if m, e := d.Decode(good); e != nil || len(m) != 4 {
			t.Fatalf("after %d bytes: %v, %v", n, m, e)
		}
	}
}

// Decoding a message allocates its map, its shapes and the values that do not fit into an interface, but nothing that
// grows with its arrays.
func TestReadingAStepAllocatesLittle(t *testing.T) {
	for enc, most := range map[Encoding]float64{Ext: 5, MPNP: 12} {
		for _, n := range []int{1, 1024} {
			d, frame := NewDecoder(enc, DefaultLimits()), stepRequest(enc, n)
			if got := testing.AllocsPerRun(50, func() {
				if _, e := d.Decode(frame); e != nil {
					t.Fatal(e)
				}
			}); got > most {
				t.Errorf("%v, %d environments: %v allocations, want at most %v", enc, n, got, most)
			}
		}
	}
}

func TestArraysAreViewsAndStringsCopies(t *testing.T) {
	for _, enc := range []Encoding{Ext, MPNP} {
		frame := encode(enc, Map{{"key of my own", "my own text"}, {"a", ints(U8, []int{2}, 7, 8)}, {"b", []byte{9}}})
		m, e := Decode(frame, enc, DefaultLimits())
		if e != nil {
			t.Fatal(e)
		}
		clear(frame)
		a, b := m[1].Value.(Array), m[2].Value.([]byte)
		if m[0].Key != "key of my own" || m[0].Value != "my own text" || !bytes.Equal(a.Data, []byte{0, 0}) || b[0] != 0 {
			t.Errorf("%v: %v", enc, m)
		}
		if cap(b) != 1 {
			t.Errorf("%v: appending to a blob would write into the frame", enc)
		}
	}
}

func TestExtensionsAreReadInASessionOfMPNP(t *testing.T) {
	m, e := Decode(encode(Ext, Map{{"a", f64s(1, 2)}}), MPNP, DefaultLimits())
	if a, ok := m.Get("a").(Array); e != nil || !ok || a.Float(1) != 2 {
		t.Errorf("%v, %v", m, e)
	}
}

// In JSON a string longer than the limit of strings must be a blob.
func TestLongStringsOfJSONAreBlobs(t *testing.T) {
	blob := bytes.Repeat([]byte{1, 2, 250}, 40_000)
	frame := encode(JSON, Map{{"blob", blob}})
	m, e := Decode(frame, JSON, DefaultLimits())
	if e != nil {
		t.Fatal(e)
	}
	if got, e := m.Bytes("blob"); e != nil || !bytes.Equal(got, blob) {
		t.Errorf("%d bytes, %v", len(got), e)
	}
	m, e = Decode(encode(JSON, Map{{"blob", blob[:30]}}), JSON, DefaultLimits())
	if got, e2 := m.Bytes("blob"); e != nil || e2 != nil || !bytes.Equal(got, blob[:30]) {
		t.Errorf("a short one: %v, %v, %v", got, e, e2)
	}
	for _, bad := range []string{strings.Repeat("é", 40_000), strings.Repeat("QUJ\\n", 20_000),
		strings.Repeat("QUJD", 20_000) + "Q"} {
		if _, e := Decode([]byte(`{"blob":"`+bad+`"}`), JSON, DefaultLimits()); e == nil {
			t.Errorf("%.8s… is read", bad)
		}
	}
}

// Numbers that would be rounded are refused.
func TestIntegersOfJSONAreExact(t *testing.T) {
	m, e := Decode([]byte(`{"a":9007199254740993,"b":18446744073709551615,"c":9007199254740993.0,"d":4.0,"e":-9223372036854775808}`), JSON, DefaultLimits())
	if e != nil {
		t.Fatal(e)
	}
	if a := m.Get("a"); a != int64(1<<53+1) {
		t.Errorf("a is %v", a)
	}
	if b := m.Get("b"); b != uint64(1<<64-1) {
		t.Errorf("b is %v", b)
	}
	if d, e := m.Int("d", 0, 0, 10); e != nil || d != 4 {
		t.Errorf("d is %v, %v", d, e)
	}
	if v, e := m.Int("c", 0, 0, 1<<62); e == nil {
		t.Errorf("a float beyond 2^53 is taken for %d", v)
	}
	for _, enc := range encodings3() {
		if again, e := Decode(encode(enc, m), enc, DefaultLimits()); e != nil ||
			!bytes.Equal(appendValue(nil, again), appendValue(nil, m)) {
			t.Errorf("%v: %v, %v", enc, again, e)
		}
	}
}
