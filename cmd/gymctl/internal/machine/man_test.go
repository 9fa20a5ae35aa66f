package machine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
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
		if name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"; c.IsAvailableCommand() || !c.HasParent() {
			if !left[name] {
				t.Errorf("no %s", name)
			}
			delete(left, name)
		}
	}
	if len(left) > 0 {
		t.Errorf("pages of no verb: %v", left)
	}
}

// Equal programs write equal pages, which name neither a date nor this machine's processors.
func TestManualPagesNameNothingOfTheMachine(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	clitest.Must(t, "man", first)
	clitest.Must(t, "man", second)
	for _, name := range []string{"gymctl.1", "gymctl-train.1"} {
		page := clitest.Read(t, filepath.Join(first, name))
		if page != clitest.Read(t, filepath.Join(second, name)) {
			t.Errorf("%s differs from call to call", name)
		}
		if head := `.TH "` + strings.ToUpper(strings.TrimSuffix(name, ".1")) +
			`" "1" "" "gymctl `; !strings.Contains(page, head) {
			t.Errorf("%s lacks %s", name, head)
		}
		if name == "gymctl-train.1" && !strings.Contains(page, "--workers\\fP=one for each processor") {
			t.Errorf("%s names the machine's processors", name)
		}
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
	defer func(v, c, m string) { cli.ReleaseVersion, cli.ReleaseCommit, cli.ReleaseModified = v, c, m }(cli.ReleaseVersion,
		cli.ReleaseCommit, cli.ReleaseModified)
	cli.ReleaseVersion, cli.ReleaseCommit = "1.2.3", "0123abcd"
	if v := cli.About(); v.Version != "1.2.3" || v.Commit != "0123abcd" || v.Modified {
		t.Errorf("got %+v", v)
	}
	cli.ReleaseModified = "true"
	if v := cli.About(); !v.Modified {
		t.Errorf("got %+v", v)
	}
}
