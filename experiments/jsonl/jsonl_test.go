package jsonl

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestTailGoesOnWhereItStopped(t *testing.T) {
	name := filepath.Join(t.TempDir(), "progress.jsonl")
	tail := New(name)
	next := func(wantAnew bool, want ...string) {
		t.Helper()
		var got []string
		anew, err := tail.Next(func(n int, line []byte) error {
			got = append(got, fmt.Sprintf("%d %s", n, line))
			return nil
		})
		if err != nil || anew != wantAnew || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("anew %v, lines %q, error %v; want %v, %q", anew, got, err, wantAnew, want)
		}
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	next(false)
	write("a\nb\nhal")
	next(false, "1 a", "2 b")
	next(false)
	write("a\nb\nhalf\nc\n")
	next(false, "3 half", "4 c")
	write("a\n") // a run that is resumed was cut
	next(true, "1 a")
	write("a\nx\n")
	next(false, "2 x")
	write("z\nx\ny\n") // another file of the same name
	next(true, "1 z", "2 x", "3 y")
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	next(true)
	if tail.Lines() != 0 {
		t.Errorf("%d lines of a file that is gone", tail.Lines())
	}
}
