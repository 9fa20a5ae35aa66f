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

// The README has at most this many lines.
const readmeLines = 150

func readme(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// blocks returns the fenced blocks of a page in one language.
func blocks(page, language string) []string {
	var all []string
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(page, -1) {
		all = append(all, m[1])
	}
	return all
}

// rows returns the table of Markdown whose header begins with first, without its header.
func rows(page, first string) [][]string {
	_, table, _ := strings.Cut(page, "\n| "+first+" |")
	table, _, _ = strings.Cut(table, "\n\n")
	var all [][]string
	for _, line := range strings.Split(table, "\n")[2:] {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		all = append(all, cells)
	}
	return all
}

// printed returns the rows of a table of gymctl by their first cell. Its columns are apart by at least two blanks.
func printed(out string) map[string][]string {
	all := map[string][]string{}
	gap := regexp.MustCompile(` {2,}`)
	for line := range strings.Lines(out) {
		cells := gap.Split(strings.TrimRight(line, " \n"), -1)
		all[cells[0]] = cells
	}
	return all
}

func TestReadmeIsShort(t *testing.T) {
	if n := strings.Count(readme(t), "\n"); n > readmeLines {
		t.Errorf("README.md has %d lines, at most %d are allowed: details belong to docs", n, readmeLines)
	}
}

// TestReadmeWorks runs the commands of the README and compares its figures. The quick start is compared with AVX2
// kernels, as its caption says, and only with the policies of the page; the training on a trace is shorter than the
// reader's. Elsewhere the agent's arithmetic rounds in another way, so only the rules are compared there. Of the
// experiments, make papers compares the figures.
func TestReadmeWorks(t *testing.T) {
	if testing.Short() || raced.On || runtime.GOOS == "windows" {
		t.Skip("builds gymctl and trains for half a minute")
	}
	page := readme(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	r := &reader{dir: t.TempDir(), env: append(os.Environ(), "HOME="+t.TempDir())}
	build := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(r.dir, "gymctl"), "./cmd/gymctl")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := func(command string) string {
		t.Helper()
		out, err := r.follow(ctx, &part{kind: "run", text: command})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	scripts := blocks(page, "sh")
	if len(scripts) != 2 || scripts[0] != "go run ./cmd/gymctl train\n" ||
		!strings.HasPrefix(scripts[1], "go build ./cmd/gymctl\n") {
		t.Fatalf("the blocks of commands are %q", scripts)
	}

	t.Run("quick start", func(t *testing.T) {
		avx2 := ""
		if regexp.MustCompile(`kernels +avx`).MatchString(run("./gymctl version")) {
			avx2 = " --kernels avx2"
		}
		table := rows(page, "policy")
		var rivals []string
		for _, row := range table[1:] {
			rivals = append(rivals, strings.TrimSuffix(row[0], " (stops jobs)")) // a mark of the table
		}
		out := printed(run("./gymctl train --run-dir quick --set 'eval.policies=[" + strings.Join(rivals, ",") + "]'" + avx2))
		for i, row := range table {
			cells := out[row[0]]
			if len(cells) == 0 && avx2 == "" && i == 0 {
				continue // another checkpoint
			}
			if len(cells) < 6 {
				t.Errorf("gymctl train prints no row %s", row[0])
				continue
			}
			got := []string{cells[0], cells[1], cells[3], cells[4], strings.Join(cells[6:min(7, len(cells))], "")}
			if avx2 == "" {
				got, row = got[:4], row[:4]
			}
			if !slices.Equal(got, row) && (avx2 != "" || i > 0) {
				t.Errorf("got row %q, README.md has %q", got, row)
			}
		}
		preset := run("./gymctl config show quickstart")
		_, list, _ := strings.Cut(preset, "  policies:\n")
		if n := len(regexp.MustCompile(`^(?:    - .*\n)+`).FindString(list)); n == 0 ||
			!strings.Contains(page, fmt.Sprintf("a table of %d policies", 1+strings.Count(list[:n], "\n"))) {
			t.Errorf("README.md does not say of how many policies the table is: the preset lists\n%s", list[:n])
		}
	})

	t.Run("your own trace", func(t *testing.T) {
		run("./gymctl trace synth --profile philly-users --jobs 6000 --seed 7 --set rate=0.2 --set work=0.4 --set max_gpus=8 -o jobs.csv")
		for line := range strings.Lines(strings.TrimPrefix(scripts[1], "go build ./cmd/gymctl\n")) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), " #")
			p := &part{kind: "run", text: line}
			switch {
			case strings.HasPrefix(line, "./gymctl train"):
				p.text += " --set train.imitate_steps=2000 --set train.steps=16384 --set eval.policies=[sjf+skip]"
			case strings.HasPrefix(line, "./gymctl ui"):
				p = &part{kind: "serve", text: line + " --addr :0"}
			}
			if _, err := r.follow(ctx, p); err != nil {
				t.Error(err)
			}
		}
	})

	t.Run("commands in sentences", func(t *testing.T) {
		experiments := run("./gymctl experiment list")
		for _, m := range regexp.MustCompile("`gymctl ([^`]+)`").FindAllStringSubmatch(page, -1) {
			switch words := strings.Fields(m[1]); {
			case words[0] == "experiment" && len(words) > 2:
				if words[2] != "NAME" && !strings.Contains(experiments, "\n"+words[2]+" ") {
					t.Errorf("there is no experiment %s", words[2])
				}
			case len(words) == 1:
				run("./gymctl " + m[1] + " --help")
			default:
				run("./gymctl " + m[1])
			}
		}
	})

	help := run("./gymctl sim --help")
	for pattern, sentence := range map[string]string{`(?s)Orders and policies: ([^.]*)\.`: "%d orders and policies",
		`(?s)Placements: ([^;]*);`: "%d placements and `lwf-K`"} {
		n := 0
		for name := range strings.SplitSeq(regexp.MustCompile(pattern).FindString(help), ",") {
			if !strings.Contains(name, " lwf-") && !strings.Contains(name, "\nlwf-") {
				n++
			}
		}
		if s := fmt.Sprintf(sentence, n); !strings.Contains(page, s) {
			t.Errorf("README.md does not say %q", s)
		}
	}
	t.Logf("%v of processor time", r.cpu.Round(time.Second))
}

// TestReadmePython runs the block in Python with the wheel that make tutorial names.
func TestReadmePython(t *testing.T) {
	python, wheel := os.Getenv(tutorialPython), os.Getenv(tutorialWheel)
	if python == "" || wheel == "" || runtime.GOOS == "windows" || raced.On {
		t.Skip(tutorialPython + " and " + tutorialWheel +
			" name no Python and wheel (make tutorial does), or this is no place for it")
	}
	scripts := blocks(readme(t), "python")
	if len(scripts) != 1 {
		t.Fatalf("README.md has %d blocks of Python, expected one", len(scripts))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	r := newReader(t, python, wheel)
	for _, p := range []part{
		{kind: "file", path: "six.py", text: scripts[0] + "assert obs is not None and envs.num_envs == 64\n"},
		{kind: "run", text: "pip install -q clustergym-*.whl gymnasium && python six.py"},
	} {
		if out, err := r.follow(ctx, &p); err != nil || out != "" {
			t.Fatalf("%s, %v", out, err)
		}
	}
}
