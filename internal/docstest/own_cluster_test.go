package docstest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/internal/raced"
)

// ownCluster is the page that goes from an accounting to an answer. Its blocks are those of the tutorial, and:
//
//	```sh cluster    commands that need a real cluster, which nobody executes
//	```text alike    what the commands print, with other figures each time
var ownCluster = filepath.Join(root, "docs", "start", "own-cluster.md")

// ownParts reads the blocks of the page. alike has the lines of those outputs of which only beginnings count.
func ownParts(page string) (all []part, alike map[int]bool, err error) {
	alike = map[int]bool{}
	lines := strings.Split(page, "\n")
	for i := 0; i < len(lines); i++ {
		switch lines[i] {
		case "```text alike":
			lines[i], alike[i+1] = "```text", true
		case "```sh cluster":
			for lines[i] != "```" {
				lines[i] = ""
				i++
			}
			lines[i] = ""
		}
	}
	all, err = parts(strings.Join(lines, "\n"))
	return all, alike, err
}

// sections returns the lines that name the parts of a report, without figures.
func sections(out string) string {
	var b strings.Builder
	for line := range strings.Lines(out) {
		for _, begins := range []string{"log ", "cluster ", "policy ", "Agreement ", "Replay ", "as it was ", "nobody can know ",
			"Calibration", "Error of ", "Models "} {
			if strings.HasPrefix(line, begins) {
				fmt.Fprintln(&b, begins)
			}
		}
	}
	return b.String()
}

// The shadow of the page takes minutes, so here the demo runs faster.
var faster = strings.NewReplacer("--speed 3600", "--speed 36000")

// lasts is what a demo says of its speed.
var lasts = regexp.MustCompile(`, \d+ times as fast: [0-9hms]+ in all`)

// TestOwnClusterWorks follows docs/start/own-cluster.md from the first block to the last, and holds what is printed
// against the page.
func TestOwnClusterWorks(t *testing.T) {
	if testing.Short() || raced.On || runtime.GOOS == "windows" {
		t.Skip("builds gymctl, and replays four days in a quarter of a minute")
	}
	data, err := os.ReadFile(ownCluster)
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	all, loose, err := ownParts(page)
	if err != nil {
		t.Fatalf("%s: %v", ownCluster, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	bin, home := t.TempDir(), t.TempDir()
	build := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(bin, "gymctl"), "./cmd/gymctl")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r := &reader{dir: t.TempDir(), env: append(os.Environ(), "HOME="+home, "XDG_CACHE_HOME="+home,
		"PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))}
	lines, moved := strings.Split(page, "\n"), 0
	for i := range all {
		p := all[i]
		if p.kind == "output" {
			continue
		}
		p.text = faster.Replace(p.text)
		got, err := r.follow(ctx, &p)
		if err != nil {
			t.Fatalf("%s:%d: %v", ownCluster, p.line, err)
		}
		if i+1 == len(all) || all[i+1].kind != "output" {
			if got != "" {
				t.Errorf("%s:%d: this prints what the page does not show:\n%s", ownCluster, p.line, got)
			}
			continue
		}
		want, same := &all[i+1], func(out string) string { return lasts.ReplaceAllString(masked(out), "") }
		switch {
		case loose[want.line]:
			same = sections
		case runtime.GOARCH != "amd64": // it rounds in another way
			same = outline
		}
		if same(got) == same(want.text) && (want.text != "" || !*update) {
			continue
		}
		if !*update {
			t.Errorf("%s:%d: got\n%s\nwant\n%s\n(go test ./internal/docstest -run TestOwnClusterWorks -update writes it)",
				ownCluster, want.line, got, want.text)
			continue
		}
		if !loose[want.line] {
			got = lasts.ReplaceAllString(got, ", 3600 times as fast: 2m33s in all")
			if !strings.Contains(all[i].text, "--speed") {
				got = strings.ReplaceAll(got, ", 3600 times as fast: 2m33s in all", ", 60 times as fast: 2h32m57s in all")
			}
		}
		old, now := strings.Count(want.text, "\n"), strings.Split(strings.TrimSuffix(got, "\n"), "\n")
		lines = slices.Replace(lines, want.line+moved, want.line+moved+old, now...)
		moved += len(now) - old
	}
	t.Logf("%v of processor time", r.cpu.Round(time.Second))
	if *update {
		if err := os.WriteFile(ownCluster, []byte(strings.Join(lines, "\n")), 0o644); err != nil { //nolint:gosec // for all
			t.Fatal(err)
		}
	}
}

// The page has only blocks that the test follows, and what a reader is to do on a cluster is nothing that the test does.
func TestOwnClusterIsReadable(t *testing.T) {
	data, err := os.ReadFile(ownCluster)
	if err != nil {
		t.Fatal(err)
	}
	all, loose, err := ownParts(string(data))
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, p := range all {
		kinds[p.kind]++
		if p.kind == "output" && strings.TrimSpace(p.text) == "" {
			t.Errorf("line %d: an output that is empty", p.line)
		}
		if p.kind == "run" && strings.Contains(p.text, "sacct ") {
			t.Errorf("line %d: this needs a Slurm", p.line)
		}
		if loose[p.line] && sections(p.text) == "" {
			t.Errorf("line %d: an output without the lines that are compared", p.line)
		}
	}
	if kinds["run"] < 5 || kinds["output"] < 4 {
		t.Errorf("blocks are %v", kinds)
	}
}
