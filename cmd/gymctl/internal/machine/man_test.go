package machine_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
	"clustergym/cmd/gymctl/internal/machine"
)

func TestManHasAPageOfEachVerb(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "share", "man1")
	if _, out, said := clitest.Run(t, "man", dir); out != "" || !strings.Contains(said, "manual pages in "+dir) {
		t.Errorf("printed %q, said %q", out, said)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]bool{}
	for _, p := range pages {
		left[filepath.Base(p)] = true
	}
	for _, c := range clitest.Commands() {
		if machine.Documented(c) || !c.HasParent() {
			if name := machine.PageName(c) + ".1"; !left[name] {
				t.Errorf("no %s", name)
			}
			delete(left, machine.PageName(c)+".1")
		}
	}
	if len(left) > 0 {
		t.Errorf("pages of no verb: %v", left)
	}
}

// macro matches the requests that the pages use.
var macro = regexp.MustCompile(`^\.(TH|SH|TP|PP|BR|br|nf|fi|nh)( |$)`)

func TestManualPagesAreText(t *testing.T) {
	for _, c := range clitest.Commands() {
		page := machine.ManPage(c)
		if again := machine.ManPage(c); again != page {
			t.Errorf("%s: two pages differ", c.CommandPath())
		}
		for i, line := range strings.Split(page, "\n") {
			switch {
			case strings.HasPrefix(line, "'"), strings.HasPrefix(line, ".") && !macro.MatchString(line):
				t.Errorf("%s: line %d is a macro: %s", c.CommandPath(), i+1, line)
			case regexp.MustCompile(`\\[^e&\-f(]`).MatchString(line):
				t.Errorf("%s: line %d has an escape: %s", c.CommandPath(), i+1, line)
			}
		}
		for _, f := range []string{".SH \"NAME\"", ".SH \"SYNOPSIS\"", ".SH \"EXIT STATUS\""} {
			if !strings.Contains(page, f) {
				t.Errorf("%s: no %s", c.CommandPath(), f)
			}
		}
	}
	if got, want := machine.Roff(".a-b \\n\n'c"), `\&.a\-b \en`+"\n"+`\&'c`; got != want {
		t.Errorf("roff gives %q, want %q", got, want)
	}
}

func TestManPagesAreRefusedWhereTheyCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, said := clitest.Run(t, "man", file); code != cli.ExitFailed || !strings.Contains(said, "not a directory") {
		t.Errorf("exit code %d, said %q", code, said)
	}
	if code, _, said := clitest.Run(t, "man"); code != cli.ExitMistake || !strings.Contains(said, "want one DIR") {
		t.Errorf("exit code %d, said %q", code, said)
	}
}

func TestVersionOfARelease(t *testing.T) {
	defer func(v, c, m string) { cli.ReleaseVersion, cli.ReleaseCommit, cli.ReleaseModified = v, c, m }(cli.ReleaseVersion, cli.ReleaseCommit, cli.ReleaseModified)
	cli.ReleaseVersion, cli.ReleaseCommit = "1.2.3", "0123abcd"
	if v := cli.About(); v.Version != "1.2.3" || v.Commit != "0123abcd" || v.Modified {
		t.Errorf("got %+v", v)
	}
	cli.ReleaseModified = "true"
	if v := cli.About(); !v.Modified {
		t.Errorf("got %+v", v)
	}
}
