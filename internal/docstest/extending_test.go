package docstest

import (
	"bytes"
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"clustergym/internal/raced"
)

// A recipe is one section of a page in docs/guides/extend. Its fenced blocks say what to do:
//
//	```go file=PATH      a new file
//	```diff file=PATH    a change of a file: hunks of lines that begin with a blank, - or +, parted by lines with @@
//	```sh test           commands that must succeed, one a line
//
// Other blocks are for readers alone.
type recipe struct {
	title string
	steps []step
}

type step struct {
	kind, path, text string // kind is new, diff or test
	line             int
}

var fence = regexp.MustCompile("^```([a-z]+)(?: (.*))?$")

// recipes cuts the page into its sections with steps.
func recipes(page string) ([]recipe, error) {
	var all []recipe
	var now *step
	for i, line := range strings.Split(page, "\n") {
		switch m := fence.FindStringSubmatch(line); {
		case now != nil && line == "```":
			if now.kind != "" {
				r := &all[len(all)-1]
				r.steps = append(r.steps, *now)
			}
			now = nil
		case now != nil:
			now.text += line + "\n"
		case strings.HasPrefix(line, "# ") || strings.HasPrefix(line, "## "):
			all = append(all, recipe{title: strings.TrimLeft(line, "# ")})
		case line == "```":
			now = &step{}
		case m != nil:
			now = &step{line: i + 1}
			path, isFile := strings.CutPrefix(m[2], "file=")
			switch {
			case m[2] == "":
			case m[1] == "diff" && isFile:
				now.kind, now.path = "diff", path
			case isFile:
				now.kind, now.path = "new", path
			case m[1] == "sh" && m[2] == "test":
				now.kind = "test"
			default:
				return nil, fmt.Errorf("line %d: got %q, want file=PATH, or test after sh", i+1, m[2])
			}
			if now.kind != "" && len(all) == 0 {
				return nil, fmt.Errorf("line %d: a step before the first section", i+1)
			}
		}
	}
	if now != nil {
		return nil, fmt.Errorf("line %d: a block without an end", now.line)
	}
	return all, nil
}

// apply changes text by the hunks of a diff. The old lines of each must stand in text exactly once; how wide the gaps
// in them are does not matter, because gofmt aligns columns by their neighbours.
func apply(text, diff string) (string, error) {
	lines := strings.Split(text, "\n")
	for _, hunk := range strings.Split("\n"+diff, "\n@@\n") {
		var old []string
		hunk := strings.Split(strings.Trim(hunk, "\n"), "\n")
		for _, line := range hunk {
			switch {
			case line == "":
				old = append(old, "")
			case line[0] == ' ' || line[0] == '-':
				old = append(old, line[1:])
			case line[0] != '+':
				return "", fmt.Errorf("got %q, want a line that begins with a blank, - or +", line)
			}
		}
		if len(old) == 0 {
			return "", fmt.Errorf("a hunk without a line to find its place by: %q", hunk)
		}
		var places []int
		for i := range lines {
			if i+len(old) <= len(lines) && slices.EqualFunc(lines[i:i+len(old)], old, alike) {
				places = append(places, i)
			}
		}
		if len(places) != 1 {
			return "", fmt.Errorf("these lines are there %d times, want once:\n%s", len(places), strings.Join(old, "\n"))
		}
		at := places[0]
		var now []string
		for _, line := range hunk {
			if line != "" && line[0] == '+' {
				now = append(now, line[1:])
				continue
			}
			if line == "" || line[0] == ' ' {
				now = append(now, lines[at])
			}
			at++
		}
		lines = slices.Replace(lines, places[0], places[0]+len(old), now...)
	}
	return strings.Join(lines, "\n"), nil
}

// alike reports whether two lines are the same but for the width of the gaps in them.
func alike(a, b string) bool { return slices.Equal(strings.Fields(a), strings.Fields(b)) }

var root = filepath.Join("..", "..")

// copied is a copy of the module's files, those that git ignores left out.
func copied(t *testing.T) string {
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	list, err := cmd.Output()
	if err != nil {
		t.Skipf("git ls-files, which says what belongs to the module: %v", err)
	}
	dir := t.TempDir()
	for _, name := range strings.Split(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		data, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // deleted, and not committed yet
		}
		if err == nil {
			err = write(filepath.Join(dir, name), data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func write(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

// do takes one step in a copy of the module.
func (s *step) do(dir string) error {
	path := filepath.Join(dir, filepath.FromSlash(s.path))
	switch s.kind {
	case "new":
		if _, err := os.Stat(path); err == nil {
			return fmt.Errorf("%s is there already: show its change as diff", s.path)
		}
		if strings.HasSuffix(path, ".go") {
			if text, err := format.Source([]byte(s.text)); err != nil || string(text) != s.text {
				return fmt.Errorf("%s is not formatted: %v", s.path, err)
			}
		}
		return write(path, []byte(s.text))
	case "diff":
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text, err := apply(string(data), s.text)
		if err == nil && strings.HasSuffix(path, ".go") {
			data, err = format.Source([]byte(text)) // a new line may move the columns of its neighbours
			text = string(data)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.path, err)
		}
		return write(path, []byte(text))
	}
	for _, line := range strings.Split(strings.TrimSpace(s.text), "\n") {
		line, _, _ = strings.Cut(line, " #")
		cmd := exec.Command("sh", "-c", line)
		cmd.Dir = dir
		// Without the folder in them, compiled packages are those of the cache: only what the recipe changes is built anew.
		cmd.Env = append(os.Environ(), "GOFLAGS=-trimpath")
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", line, err, out)
		}
		if bytes.Contains(out, []byte("no tests to run")) || bytes.Contains(out, []byte("no test files")) {
			return fmt.Errorf("%s: it tests nothing\n%s", line, out)
		}
	}
	return nil
}

// TestRecipesWork follows the recipes of docs/guides/extend, and runs the commands that they name. Each is followed in a
// copy of the module as it is, for a reader follows one of them. What they make is built and tested in one copy that has
// followed all of them: almost every package is built anew for each copy. It is a copy, not an overlay of the build,
// because some of the tests read files: pages, and the tables of archtest.
func TestRecipesWork(t *testing.T) {
	if testing.Short() || raced.On {
		t.Skip("builds the module with the recipes in it")
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "guides", "extend", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	together := copied(t)
	commands, tested := []step(nil), 0
	for _, name := range pages {
		page, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all, err := recipes(string(page))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, r := range all {
			if len(r.steps) == 0 {
				continue
			}
			if last := r.steps[len(r.steps)-1]; last.kind != "test" || len(r.steps) < 2 {
				t.Fatalf("%s: a recipe changes files and ends with a test, %q has %d steps and ends with %q", name, r.title,
					len(r.steps), last.kind)
			}
			tested++
			alone := copied(t)
			for _, s := range r.steps {
				if s.kind == "test" {
					commands = append(commands, s.lines(name)...)
					continue
				}
				for _, dir := range []string{alone, together} {
					if err := s.do(dir); err != nil {
						t.Fatalf("%s:%d: %v", name, s.line, err)
					}
				}
			}
		}
	}
	if tested != 6 {
		t.Errorf("docs/guides/extend has %d recipes with steps, expected 6", tested)
	}
	done := map[string]bool{}
	for _, c := range commands {
		if done[c.text] {
			continue
		}
		done[c.text] = true
		if err := c.do(together); err != nil {
			t.Errorf("%s:%d: %v", c.path, c.line, err)
		}
	}
}

// lines returns the commands of a test, a step each, with the page on which they stand.
func (s *step) lines(page string) (all []step) {
	for i, line := range strings.Split(strings.TrimSpace(s.text), "\n") {
		all = append(all, step{kind: "test", path: page, text: line, line: s.line + 1 + i})
	}
	return all
}

func TestApplyWantsEveryHunkExactlyOnce(t *testing.T) {
	const text = "a\nb\nc\nb\nd\n"
	for _, c := range []struct{ diff, want, fault string }{
		{" a\n+x\n", "a\nx\nb\nc\nb\nd\n", ""},
		{" d\n+x\n", "a\nb\nc\nb\nd\nx\n", ""},
		{" w  =  1\n+x\n", "", "0 times"},
		{" c\n-b\n+y\n", "a\nb\nc\ny\nd\n", ""},
		{"-a\n@@\n-d\n+z\n", "b\nc\nb\nz\n", ""},
		{"-b\n+y\n", "", "2 times"},
		{"-e\n", "", "0 times"},
		{"+e\n", "", "without a line"},
		{"e\n", "", "begins with a blank"},
	} {
		got, err := apply(text, c.diff)
		switch {
		case c.fault == "" && (err != nil || got != c.want):
			t.Errorf("%q: got %q, %v, want %q", c.diff, got, err, c.want)
		case c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)):
			t.Errorf("%q: got %v, want a fault with %q", c.diff, err, c.fault)
		}
	}
}

func TestApplyLeavesTheWidthOfGapsAlone(t *testing.T) {
	got, err := apply("\ta:   1, // one\n\tbb:  2,\n", " \ta: 1, // one\n-\tbb: 2,\n+\tb: 2,\n")
	if want := "\ta:   1, // one\n\tb: 2,\n"; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestRecipesAreReadByTheirBlocks(t *testing.T) {
	all,
		err := recipes(
		"intro\n\n# One\n\n```go file=a/b.go\npackage b\n```\n\n```sh\nno step\n```\n\n## Two\n\n```diff file=c.go\n c\n+d\n```\n\n```sh test\ngo test ./c\n```\n")
	if err != nil || len(all) != 2 || len(all[0].steps) != 1 || len(all[1].steps) != 2 {
		t.Fatalf("got %+v, %v", all, err)
	}
	if s := all[0].steps[0]; s != (step{"new", "a/b.go", "package b\n", 5}) {
		t.Errorf("got %+v", s)
	}
	if s := all[1].steps; s[0].kind != "diff" || s[1].kind != "test" || s[1].text != "go test ./c\n" {
		t.Errorf("got %+v", s)
	}
	for _, page := range []string{"## One\n```go fiel=a.go\n```\n", "```go file=a.go\n```\n",
		"## One\n```go file=a.go\n"} {
		if _, err := recipes(page); err == nil {
			t.Errorf("%q: no fault", page)
		}
	}
}
