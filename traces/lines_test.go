package traces

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"unsafe"
)

func TestLinesCutAtEveryKindOfEnd(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	l := NewLines(iotest.OneByteReader(strings.NewReader("\xef\xbb\xbfa\r\n\nb\rc\n\xef\xbb\xbfd\n"+long+"\nlast")), "f")
	for i, want := range []struct {
		text string
		crlf bool
	}{{"a", true}, {"", false}, {"b\rc", false}, {"\xef\xbb\xbfd", false}, {long, false}, {"last", false}} {
		got, err := l.Next()
		if err != nil || string(got) != want.text || l.Line() != i+1 || l.CRLF() != want.crlf {
			t.Fatalf("line %d: %.20q, %v, number %d, CRLF %v", i+1, got, err, l.Line(), l.CRLF())
		}
	}
	for range 2 {
		if _, err := l.Next(); err != io.EOF || l.Line() != 6 {
			t.Errorf("after the last: %v in line %d", err, l.Line())
		}
	}
}

func TestAFileWithoutLineEndsIsAFaultAndNotAFullMemory(t *testing.T) {
	l := NewLines(io.MultiReader(strings.NewReader("ok\n"), zeros{}), "big")
	if _, err := l.Next(); err != nil {
		t.Fatal(err)
	}
	_, err := l.Next()
	var row *RowError
	if !errors.As(err, &row) || row.Line != 2 || row.File != "big" || !strings.Contains(row.Want, "1048576") ||
		len(err.Error()) > 1000 {
		t.Errorf("%v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestAReadErrorNamesTheLine(t *testing.T) {
	broken := errors.New("disk on fire")
	l := NewLines(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(broken)), "f.csv")
	if _, err := l.Next(); err != nil {
		t.Fatal(err)
	}
	if b, err := l.Next(); !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "f.csv:2:") {
		t.Errorf("%q, %v: half a line must not pass as one", b, err)
	}
}

func TestFaultsCutLongValues(t *testing.T) {
	l := NewLines(strings.NewReader(""), "f")
	e := l.Fault("c", strings.Repeat("é", 1000), "less")
	if len(e.Value) > 90 || !strings.HasSuffix(e.Value, "…") || strings.ContainsRune(e.Value, '\uFFFD') {
		t.Errorf("%q", e.Value)
	}
}

func TestNamesAreOneStringEach(t *testing.T) {
	var n Names
	b := []byte("alice")
	first := n.Get(b)
	if allocs := testing.AllocsPerRun(100, func() {
		if n.Get(b) != first {
			t.Error("another name")
		}
	}); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
	copy(b, "bobby")
	if n.Get(b) != "bobby" || first != "alice" || n.Get(nil) != "" {
		t.Error("names share the caller's bytes")
	}
	for i := range 1 << 17 { // more names than it keeps
		b = append(b[:0], byte(i), byte(i>>8), byte(i>>16), 'x')
		if s := n.Get(b); !bytes.Equal([]byte(s), b) {
			t.Fatalf("%q for %q", s, b)
		}
	}
	if len(n.m)+len(n.old) > 1<<17 {
		t.Errorf("%d names kept", len(n.m)+len(n.old))
	}
}

// A trace may have more names than are kept, and one of them on most jobs, whenever it first occurs.
func TestANameInUseStaysOneString(t *testing.T) {
	var n Names
	var b []byte
	unique := func(from, count int) {
		for i := range count {
			b = strconv.AppendInt(append(b[:0], 'j'), int64(from+i), 10)
			n.Get(b)
		}
	}
	unique(0, 1<<17) // no room is left
	train := []byte("train")
	first := n.Get(train)
	for round := range 8 {
		unique((round+4)<<16, 1<<16-1)
		if s := n.Get(train); unsafe.StringData(s) != unsafe.StringData(first) {
			t.Fatalf("round %d: another copy of %q", round, s)
		}
	}
	if kept := len(n.m) + len(n.old); kept > 1<<17 {
		t.Errorf("%d names kept", kept)
	}
}

func TestParseStatusKnowsTheWordsInUse(t *testing.T) {
	for s, want := range map[string]Status{"completed": Completed, "Pass": Completed, "COMPLETE": Completed,
		"Killed": Cancelled, "canceled": Cancelled,
		"cancelled": Cancelled, "Failed": Failed, "": StatusUnknown, " ": StatusUnknown, "Running": StatusUnknown,
		"fail done": StatusUnknown, "unknown": StatusUnknown} {
		if got := ParseStatus(s); got != want {
			t.Errorf("ParseStatus(%q) = %v, want %v", s, got, want)
		}
	}
	for _, s := range []Status{StatusUnknown, Completed, Failed, Cancelled} {
		if ParseStatus(s.String()) != s {
			t.Errorf("%v is not read back", s)
		}
	}
}
