package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var page = filepath.Join("..", "..", "docs", "reference", "wire.md")

// example matches an example of the page: a comment that names a case of a golden file, and the block after it.
var example = regexp.MustCompile("<!-- example: ([a-z]+)/([a-z0-9_-]+) json -->\n```\n((?s:.*?))```\n")

// The examples of the page are the golden files' frames in JSON. -update writes them.
func TestExamplesOfThePageAreTheGoldenFrames(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	out := example.ReplaceAllFunc(text, func(all []byte) []byte {
		n++
		m := example.FindSubmatch(all)
		file, name := string(m[1]), string(m[2])
		c, ok := goldenFrame(t, file, name, JSON.String())
		if !ok {
			t.Errorf("the page has an example %s/%s in JSON, which no golden file has", file, name)
			return all
		}
		return fmt.Appendf(nil, "<!-- example: %s/%s json -->\n```\n%s```\n", file, name, broken(c.Text))
	})
	if n < 10 || n != bytes.Count(text, []byte("<!-- example:")) {
		t.Errorf("%d examples of %d are whole", n, bytes.Count(text, []byte("<!-- example:")))
	}
	if bytes.Equal(text, out) {
		return
	}
	if !*update {
		t.Fatalf("the examples of %s differ from the golden files; -update writes them anew", page)
	}
	if err := os.WriteFile(page, out, 0o644); err != nil {
		t.Fatal(err)
	}
}

func goldenFrame(t *testing.T, file, name, enc string) (entry, bool) {
	t.Helper()
	for _, c := range readGolden(t, file) {
		if c.Name == name && c.Enc == enc {
			return c, true
		}
	}
	return entry{}, false
}

// explained are the golden frames that testdata/frames explains byte by byte.
var explained = []struct{ file, name, enc string }{
	{"requests", "hello", "ext"}, {"requests", "step-discrete", "ext"}, {"requests", "step-discrete", "mpnp"},
	{"requests", "bye", "ext"},
	{"replies", "step", "ext"}, {"spaces", "dict", "ext"},
}

// The files of testdata/frames are golden frames with every byte explained, and the page names no others. -update
// writes them.
func TestExplainedFramesAreTheGoldenFrames(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join("testdata", "frames")
	known := map[string]bool{}
	for _, x := range explained {
		base := fmt.Sprintf("%s-%s.%s.txt", x.file, x.name, x.enc)
		known[base] = true
		c, ok := goldenFrame(t, x.file, x.name, x.enc)
		if !ok {
			t.Errorf("no golden file has %s/%s in %s", x.file, x.name, x.enc)
			continue
		}
		frame, err := hex.DecodeString(c.Hex)
		if err != nil {
			t.Fatal(err)
		}
		want := annotate(frame)
		if *update {
			if err := os.WriteFile(filepath.Join(dir, base), []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(filepath.Join(dir, base)); err != nil || string(got) != want {
			t.Errorf("%s differs from the golden frame (%v); -update writes it anew", base, err)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !known[f.Name()] {
			t.Errorf("%s explains no frame that this test knows", f.Name())
		}
	}
	named := regexp.MustCompile(`frames/([a-z0-9_.-]+\.txt)`).FindAllStringSubmatch(string(text), -1)
	for _, m := range named {
		if !known[m[1]] {
			t.Errorf("the page names %s, which is not there", m[1])
		}
	}
	if len(named) < 3 {
		t.Errorf("the page names %d explained frames", len(named))
	}
}

// The page names every operation, code, close code, element type and limit, and no others of their kind.
func TestThePageIsComplete(t *testing.T) {
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	rows := func(from, to string) []string { // the first column of the tables of a part of the page
		_, part, ok := strings.Cut(text, "\n"+from+"\n")
		if part, _, _ = strings.Cut(part, "\n"+to+"\n"); !ok {
			t.Fatalf("the page has no part %q", from)
		}
		var out []string
		for _, m := range regexp.MustCompile("(?m)^\\| `?([a-z0-9_]+)`? \\|").FindAllStringSubmatch(part, -1) {
			out = append(out, m[1])
		}
		return out
	}
	var codes, closes []string
	for _, c := range errorReplies() {
		codes = append(codes, c.name)
	}
	for _, c := range closeCodes {
		closes = append(closes, fmt.Sprint(c.code))
	}
	var types []string
	for d := Bool; d.valid(); d++ {
		types = append(types, fmt.Sprint(int(d)))
	}
	for _, c := range []struct {
		from, to string
		want     []string
	}{
		{"## Errors", "## Close codes", codes},
		{"## Close codes", "## Resume", closes},
		{"### Arrays in `ext`", "### Arrays in `mpnp`", types},
		{"## Limits", "## Metrics", []string{"frame_in", "frame_out", "envs", "handles", "inflight", "sessions", "idle_s",
			"resume_s", "step_s", "ping_s"}},
	} {
		got := rows(c.from, c.to)
		slices.Sort(got)
		want := slices.Clone(c.want)
		slices.Sort(want)
		for _, w := range want {
			if !slices.Contains(got, w) {
				t.Errorf("%s: %s is missing", c.from, w)
			}
		}
		if c.from != "## Limits" && !slices.Equal(got, want) {
			t.Errorf("%s: has %v, want %v", c.from, got, want)
		}
	}
	for _, op := range []string{OpOpen, OpReset, OpStep, OpSend, OpRecv, OpMasks, OpCall, OpRender, OpSnapshot, OpRestore,
		OpSimulate, OpDecide, OpClose, OpPing, OpBye} {
		if !strings.Contains(text, "\n### `"+op+"`\n") {
			t.Errorf("operation %s has no part", op)
		}
	}
	for _, s := range spaces() {
		if kind := s.value.(Map)[0].Value.(Space).Kind; !strings.Contains(text, "\n| `"+kind+"` |") {
			t.Errorf("space %s is missing", kind)
		}
	}
	for _, s := range []string{SubMsgpack, SubJSON, OpHello, OpWelcome, OpNotice, OpDrain, MaskKey} {
		if !strings.Contains(text, "`"+s+"`") && !strings.Contains(text, `"`+s+`"`) {
			t.Errorf("%s is missing", s)
		}
	}
}

// broken returns a JSON message with line breaks after commas, so that its lines are not too long.
func broken(s string) string {
	const width = 130
	var b strings.Builder
	line := ""
	for _, part := range strings.SplitAfter(s, ",") {
		if len(line)+len(part) > width && line != "" {
			b.WriteString(line + "\n")
			line = "  "
		}
		line += part
	}
	b.WriteString(line + "\n")
	return b.String()
}

// annotate explains a frame of msgpack byte by byte, without using the decoder.
func annotate(frame []byte) string {
	a := annotator{b: frame}
	a.value("")
	if a.at != len(frame) {
		panic(fmt.Sprintf("%d of %d bytes are explained", a.at, len(frame)))
	}
	return a.out.String()
}

type annotator struct {
	b   []byte
	at  int
	out strings.Builder
}

// line explains the next n bytes, a few a line.
func (a *annotator) line(n int, indent, format string, args ...any) {
	const each = 16
	text := indent + fmt.Sprintf(format, args...)
	for first := true; first || n > 0; first = false {
		k := min(n, each)
		row := fmt.Sprintf("%04x  % x", a.at, a.b[a.at:a.at+k])
		if text != "" {
			row = fmt.Sprintf("%-56s%s", row, text)
		}
		a.out.WriteString(strings.TrimRight(row, " ") + "\n")
		text = ""
		a.at += k
		n -= k
	}
}

func (a *annotator) uint(at, n int) int {
	v := 0
	for _, x := range a.b[at : at+n] {
		v = v<<8 | int(x)
	}
	return v
}

func (a *annotator) value(indent string) {
	c := a.b[a.at]
	switch {
	case c < 0x80:
		a.line(1, indent, "%d", c)
	case c < 0x90:
		a.entries(1, int(c&15), indent)
	case c < 0xA0:
		a.items(1, int(c&15), indent)
	case c < 0xC0:
		a.text(1, int(c&31), indent)
	case c == 0xC0:
		a.line(1, indent, "nil")
	case c == 0xC2 || c == 0xC3:
		a.line(1, indent, "%v", c == 0xC3)
	case c == 0xC4:
		n := a.uint(a.at+1, 1)
		if isText := n > 0 && bytes.IndexFunc(a.b[a.at+2:a.at+2+n], func(r rune) bool { return r < 'a' || r > 'z' }) <
			0; isText {
			a.line(2+n, indent, "bytes %q", a.b[a.at+2:a.at+2+n])
			return
		}
		a.line(2+n, indent, "%d bytes", n)
	case c == 0xC7:
		a.array(3, a.uint(a.at+1, 1), indent)
	case c == 0xC8:
		a.array(4, a.uint(a.at+1, 2), indent)
	case c == 0xD7:
		a.array(2, 8, indent)
	case c == 0xD8:
		a.array(2, 16, indent)
	case c == 0xCB:
		a.line(9, indent, "%v", math.Float64frombits(binary.BigEndian.Uint64(a.b[a.at+1:])))
	case c >= 0xCC && c <= 0xCF:
		n := 1 << (c - 0xCC)
		a.line(1+n, indent, "%d", a.uint(a.at+1, n))
	case c == 0xD9:
		a.text(2, a.uint(a.at+1, 1), indent)
	case c == 0xDE:
		a.entries(3, a.uint(a.at+1, 2), indent)
	default:
		panic(fmt.Sprintf("no words for byte %02x", c))
	}
}

func (a *annotator) text(head, n int, indent string) {
	a.line(head+n, indent, "%q", a.b[a.at+head:a.at+head+n])
}

func (a *annotator) entries(head, n int, indent string) {
	a.line(head, indent, "map of %d", n)
	for range n {
		a.value(indent + "  ")
		a.value(indent + "    ")
	}
}

func (a *annotator) items(head, n int, indent string) {
	a.line(head, indent, "list of %d", n)
	for range n {
		a.value(indent + "  ")
	}
}

func (a *annotator) array(head, n int, indent string) {
	if a.b[a.at+head-1] != 78 {
		panic("an extension that is no array")
	}
	a.line(head, indent, "extension type 78 of %d bytes", n)
	end := a.at + n
	indent += "  "
	name, ndim := DType(a.b[a.at]).String(), int(a.b[a.at+1])
	a.line(4, indent, "%s, dimensions: %d, flags 0 0", name, ndim)
	from := a.at - 4
	for range ndim {
		a.line(4, indent, "dimension %d", binary.LittleEndian.Uint32(a.b[a.at:]))
	}
	if pad := (8 - (a.at-from)%8) % 8; pad > 0 {
		a.line(pad, indent, "padding")
	}
	if end > a.at {
		a.line(end-a.at, indent, "data")
	}
}
