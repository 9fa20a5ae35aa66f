package start_test

import (
	"os"
	"strings"
	"testing"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
)

func TestSimWritesAPage(t *testing.T) {
	t.Chdir(t.TempDir())
	clitest.Write(t, "jobs.csv", clitest.Jobs)
	args := []string{"sim", "--trace", "jobs.csv", "--cluster", "1x2", "--policy", "fifo,srtf", "--html", "page.html"}
	out := clitest.Must(t, args...)
	if !strings.Contains(out, "fifo+strict") {
		t.Errorf("the table is gone: %s", out)
	}
	page, err := os.ReadFile("page.html")
	if err != nil {
		t.Fatal(err)
	}
	if s := string(page); !strings.HasPrefix(s, "<!DOCTYPE html>") || strings.Count(s, `"name":"`) != 2 ||
		!strings.Contains(s, `"id":["a","b","c"]`) {
		t.Errorf("page of %d bytes: %.300s", len(s), s)
	}
	clitest.Must(t, args...)
	if again, err := os.ReadFile("page.html"); err != nil || string(again) != string(page) {
		t.Errorf("the same runs gave another page (%v)", err)
	}
	one := []string{"sim", "--trace", "jobs.csv", "--cluster", "1x2", "--policy", "fifo", "--html", "one.html", "--events",
		"events.jsonl"}
	clitest.Must(t, one...)
	for _, f := range []string{"one.html", "events.jsonl"} {
		if st, err := os.Stat(f); err != nil || st.Size() == 0 {
			t.Errorf("%s: %v", f, err)
		}
	}
	for _, c := range []struct{ html, want string }{
		{"-", `--html: got "-", want the path of a file`},
		{"./events.jsonl", "which is the file of --events"},
		{"jobs.csv", "it is the input jobs.csv"},
	} {
		one[8] = c.html
		if code, _, stderr := clitest.Run(t, one...); code != cli.ExitMistake || !strings.Contains(stderr, c.want) {
			t.Errorf("--html %s: exit code %d, %s", c.html, code, stderr)
		}
	}
}
