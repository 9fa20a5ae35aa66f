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

// A tail that begins near a line reads the lines after it and no others, and knows the file by its first line.
func TestTailBeginsNearALine(t *testing.T) {
	name := filepath.Join(t.TempDir(), "progress.jsonl")
	write := func(first string, n int) {
		t.Helper()
		text := []byte(first + "\n")
		for i := 2; i <= n; i++ {
			text = fmt.Appendf(text, "%d%0*d\n", i, 1000, 0)
		}
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const lines = 5000
	write("one", lines)
	tail := New(name)
	if tail.Head() != "" || tail.After(7).Lines() != 0 {
		t.Error("a tail that has read nothing knows something")
	}
	none := func(int, []byte) error { return nil }
	if _, err := tail.Next(none); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 1, 1050, 4321, lines, lines + 1} {
		from := tail.After(n)
		at := from.Lines()
		if at > n || n-at > 1100 && n <= lines {
			t.Errorf("a tail for line %d begins after line %d", n, at)
		}
		_, err := from.Next(func(n int, line []byte) error {
			if at++; n != at || n > 1 && string(line) != fmt.Sprintf("%d%0*d", n, 1000, 0) {
				return fmt.Errorf("line %d is %.20s", n, line)
			}
			return nil
		})
		if err != nil || at != lines || from.Head() != tail.Head() {
			t.Errorf("after line %d: up to line %d, error %v", n, at, err)
		}
	}
	head, late := tail.Head(), tail.After(4000)
	write("two", lines+1)
	if anew, err := late.Next(none); !anew || err != nil || late.Lines() != lines+1 || late.Head() == head {
		t.Errorf("another file: anew %v, error %v, %d lines", anew, err, late.Lines())
	}
}
