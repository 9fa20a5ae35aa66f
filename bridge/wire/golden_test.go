package wire

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files and the examples of docs/reference/wire.md")

// goldenFiles are the files of testdata/golden that -update writes.
var goldenFiles = []struct {
	file  string
	cases func() []golden
}{
	{"requests", requests}, {"replies", replies}, {"errors", errorReplies}, {"arrays", arrays}, {"values", values},
	{"spaces", spaces},
}

// entry is one case of a golden file.
type entry struct {
	Name       string          `json:"name"`
	Enc        string          `json:"enc"`
	Hex        string          `json:"hex"`
	Text       string          `json:"text,omitempty"`
	DecodeOnly bool            `json:"decode_only,omitempty"`
	Value      json.RawMessage `json:"value"`
}

func encodings3() []Encoding { return []Encoding{Ext, MPNP, JSON} }

func encode(enc Encoding, v any) []byte {
	w := NewWriter(enc)
	w.Value(v)
	if !w.Complete() {
		panic("a value that is not whole")
	}
	return bytes.Clone(w.Bytes())
}

// goldenFile is the text of a golden file: one case a line.
func goldenFile(cases []golden) []byte {
	b := []byte("[\n")
	for i, c := range cases {
		for j, enc := range encodings3() {
			if i+j > 0 {
				b = append(b, ",\n"...)
			}
			frame := encode(enc, c.value)
			m, e := Decode(frame, enc, DefaultLimits())
			if e != nil {
				panic(fmt.Sprintf("%s %v: %v", c.name, enc, e))
			}
			b = fmt.Appendf(b, `{"name": %q, "enc": %q, "hex": %q`, c.name, enc, hex.EncodeToString(frame))
			if enc == JSON {
				b = appendText(append(b, `, "text": `...), string(frame))
			}
			b = append(appendValue(append(b, `, "value": `...), m), '}')
		}
	}
	return append(b, "\n]\n"...)
}

func goldenPath(file string) string { return filepath.Join("testdata", "golden", file+".json") }

func readGolden(t *testing.T, file string) []entry {
	t.Helper()
	b, err := os.ReadFile(goldenPath(file))
	if err != nil {
		t.Fatal(err)
	}
	var out []entry
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if len(out) == 0 {
		t.Fatalf("%s: no cases", file)
	}
	return out
}

func TestMessagesAreWrittenAsInTheGoldenFiles(t *testing.T) {
	for _, f := range goldenFiles {
		got := goldenFile(f.cases())
		if *update {
			if err := os.WriteFile(goldenPath(f.file), got, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(goldenPath(f.file))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			at := 0
			for at < min(len(got), len(want)) && got[at] == want[at] {
				at++
			}
			t.Errorf("%s: differs at byte %d:\n%.200s\nwant\n%.200s", f.file, at, got[max(0, at-60):], want[max(0, at-60):])
		}
	}
}

// This test reads the files without the code that writes them: numpy.json comes from msgpack-numpy, forms.json was
// written by hand.
func TestGoldenFilesAreReadAndWrittenBack(t *testing.T) {
	files, err := filepath.Glob(goldenPath("*"))
	if err != nil || len(files) < len(goldenFiles) {
		t.Fatalf("%d golden files, %v", len(files), err)
	}
	for _, path := range files {
		file := filepath.Base(path)
		file = file[:len(file)-len(".json")]
		seen := map[string]bool{}
		for _, c := range readGolden(t, file) {
			name := fmt.Sprintf("%s/%s/%s", file, c.Name, c.Enc)
			if seen[name] {
				t.Errorf("%s stands twice", name)
			}
			seen[name] = true
			frame, err := hex.DecodeString(c.Hex)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			enc, ok := EncodingNamed(c.Enc)
			if !ok {
				t.Fatalf("%s: no such encoding", name)
			}
			if enc == JSON && c.Text != string(frame) {
				t.Errorf("%s: text and hex differ", name)
			}
			m, e := Decode(frame, enc, DefaultLimits())
			if e != nil {
				t.Errorf("%s: %v", name, e)
				continue
			}
			if got := appendValue(nil, m); string(got) != string(c.Value) {
				t.Errorf("%s: is\n%s\nwant\n%s", name, got, c.Value)
			}
			if again := encode(enc, m); !c.DecodeOnly && !bytes.Equal(again, frame) {
				t.Errorf("%s: becomes\n%x\nwant\n%x", name, again, frame)
			}
		}
	}
}

func TestFramesThatAreRefused(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "refused.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct{ Name, Enc, Hex, Why string }
	if err := json.Unmarshal(b, &cases); err != nil || len(cases) < 50 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for _, c := range cases {
		frame, err := hex.DecodeString(c.Hex)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		enc, ok := EncodingNamed(c.Enc)
		if !ok {
			t.Fatalf("%s: no encoding %q", c.Name, c.Enc)
		}
		m, e := Decode(frame, enc, DefaultLimits())
		if e == nil {
			t.Errorf("%s %s (%s): read as %s", c.Name, c.Enc, c.Why, appendValue(nil, m))
			continue
		}
		if e.Code != BadFrame || e.Msg == "" {
			t.Errorf("%s %s: %v, want %s and a message", c.Name, c.Enc, e, BadFrame)
		}
		if testing.Verbose() {
			t.Logf("%s %s (%s): %v", c.Name, c.Enc, c.Why, e)
		}
	}
}

// closeCodes are the codes with which a server closes connections.
var closeCodes = []struct {
	code int
	name string
}{
	{CloseBye, "bye"}, {CloseDraining, "draining"}, {CloseProtocol, "protocol"}, {CloseWrongType, "wrong type"},
	{CloseTooLarge, "too large"},
	{CloseInternal, "internal"}, {CloseBadHello, "bad hello"}, {CloseUnauthorized, "unauthorized"},
	{CloseNoVersion, "no version"},
	{CloseHelloTimeout, "hello timeout"}, {CloseTakenOver, "taken over"}, {CloseExpired, "expired"},
	{CloseCapacity, "capacity"},
	{CloseNotNow, "not now"},
}

func TestCloseCodesAreThoseOfTheFile(t *testing.T) {
	b := []byte("[\n")
	for i, c := range closeCodes {
		if i > 0 {
			b = append(b, ",\n"...)
		}
		b = append(appendText(fmt.Appendf(b, `{"code": %d, "name": `, c.code), c.name), '}')
	}
	b = append(b, "\n]\n"...)
	path := filepath.Join("testdata", "closes.json")
	if *update {
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(path); err != nil || !bytes.Equal(b, want) {
		t.Errorf("%s differs from\n%s (%v)", path, b, err)
	}
}
