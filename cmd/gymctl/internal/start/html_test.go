package start_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
)

// page returns what a page of --html draws.
func page(t *testing.T, file string) (p struct {
	Title  string
	Charts []struct {
		Title  string
		Curves []struct{ Name string }
		Levels []struct{ Name string }
	}
	Forests []struct{ Rows []struct{ Name string } }
	Tables  []struct{ Title string }
	Runs    []struct{ Name string }
}) {
	t.Helper()
	s := clitest.Read(t, file)
	_, rest, ok := strings.Cut(s, `<script type="application/json" id="data">`)
	block, _, _ := strings.Cut(rest, "</script>")
	if err := json.Unmarshal([]byte(block), &p); err != nil || !ok || !strings.HasPrefix(s, "<!DOCTYPE html>") {
		t.Fatalf("%s is no page: %v", file, err)
	}
	return p
}

func TestTrainAndEvalWritePages(t *testing.T) {
	clitest.InRoom(t, false)
	out := clitest.Must(t, "train", "-c", "tiny.yaml", "--run-dir", "run", "--html", "run/page.html")
	if !strings.Contains(out, "sjf@slots") {
		t.Errorf("the table is gone: %s", out)
	}
	p := page(t, "run/page.html")
	if len(p.Charts) != 2 || p.Charts[0].Curves[0].Name != "run" || len(p.Charts[0].Levels) != 2 || len(p.Forests) != 2 ||
		len(p.Tables) != 1 || len(p.Runs) != 2 {
		t.Errorf("page of the training: %+v", p)
	}
	out = clitest.Must(t, "eval", "--checkpoint", "run", "--policies", "fifo,sjf", "--html", "eval.html", "--json")
	if !json.Valid([]byte(out)) {
		t.Errorf("--json prints %s", out)
	}
	if p = page(t, "eval.html"); p.Runs[1].Name != "sjf+strict" || len(p.Forests[0].Rows) != 2 {
		t.Errorf("page of the evaluation: %+v", p)
	}
	clitest.Must(t, "train", "-c", "tiny.yaml", "--run-dir", "two", "--seeds", "2", "--html", "two.html")
	if p = page(t, "two.html"); len(p.Charts[0].Curves) != 2 || len(p.Forests[0].Rows) != 4 ||
		!strings.HasSuffix(p.Forests[0].Rows[0].Name, ", seed-1") {
		t.Errorf("page of two seeds: %+v", p)
	}
	// A run that is resumed to its end writes the same page.
	before := clitest.Read(t, "run/page.html")
	clitest.Must(t, "train", "--resume", "run", "--html", "again.html")
	if clitest.Read(t, "again.html") != before {
		t.Error("a resumed run draws another page")
	}
}

// A page that could not be written is refused before the training, which then has not begun.
func TestAPageThatCannotBeWrittenIsRefusedAtOnce(t *testing.T) {
	clitest.InRoom(t, false)
	if err := os.Mkdir("folder", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, verb := range [][]string{{"train", "-c", "tiny.yaml", "--run-dir", "run"}, {"eval", "-c", "tiny.yaml"}} {
		for html, want := range map[string]string{
			"-":                 `--html: got "-", want the path of a file`,
			"folder":            "--html: folder is a folder",
			"nowhere/page.html": "--html: there is no folder nowhere for page.html",
			"../nowhere/p.html": "--html: there is no folder ../nowhere for p.html",
		} {
			code, out, said := clitest.Run(t, append(verb, "--html", filepath.FromSlash(html))...)
			if code != cli.ExitMistake || out != "" || !strings.Contains(filepath.ToSlash(said), want) ||
				strings.Count(said, "\n") != 1 {
				t.Errorf("%s --html %s: exit code %d, said %q, want %q", verb[0], html, code, said, want)
			}
		}
	}
	if _, err := os.Stat("run"); err == nil {
		t.Error("the run has begun")
	}
}
