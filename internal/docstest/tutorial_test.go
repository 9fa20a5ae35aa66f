package docstest

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
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

var update = flag.Bool("update", false, "write what the tutorial's commands print into it")

// Environment variables that make tutorial sets: a Python with what the package needs, and the wheel with gymctl in it.
const (
	tutorialPython = "CLUSTERGYM_TUTORIAL_PYTHON"
	tutorialWheel  = "CLUSTERGYM_TUTORIAL_WHEEL"
)

// A part is a fenced block of docs/start/tutorial.md, all of which are executed or compared:
//
//	```LANGUAGE file=NAME   a file that the reader saves
//	```sh                   commands, which must succeed
//	```sh serve             a command that prints an address of pages and stays until Ctrl-C
//	```text                 what the commands just before print
type part struct {
	kind, path, text string // kind is file, run, serve or output
	line             int    // of its fence, from 1
}

// parts reads the blocks of a page.
func parts(page string) ([]part, error) {
	var all []part
	var now *part
	for i, line := range strings.Split(page, "\n") {
		switch m := fence.FindStringSubmatch(line); {
		case now != nil && line == "```":
			all = append(all, *now)
			now = nil
		case now != nil:
			now.text += line + "\n"
		case strings.HasPrefix(line, "```"):
			now = &part{line: i + 1}
			if m == nil {
				return nil, fmt.Errorf("line %d: a block without a language", i+1)
			}
			path, isFile := strings.CutPrefix(m[2], "file=")
			switch {
			case isFile && path == filepath.Base(path):
				now.kind, now.path = "file", path
			case m[1] == "sh" && m[2] == "":
				now.kind = "run"
			case m[1] == "sh" && m[2] == "serve":
				now.kind = "serve"
			case m[1] == "text" && m[2] == "" && len(all) > 0 &&
				(all[len(all)-1].kind == "run" || all[len(all)-1].kind == "serve"):
				now.kind = "output"
			default:
				return nil, fmt.Errorf("line %d: got %q, want LANGUAGE file=NAME, sh, sh serve, or text right after commands", i+1,
					line)
			}
		}
	}
	if now != nil {
		return nil, fmt.Errorf("line %d: a block without an end", now.line)
	}
	return all, nil
}

// masks are what differs from run to run: times, rates, ports, hashes, and the program's own version.
var masks = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`http://127\.0\.0\.1:\d+/`), "http://127.0.0.1:PORT/"},
	{regexp.MustCompile(`(?m) +\d+ steps/s  eta.*$`), " STEPS/S"},
	{regexp.MustCompile(`(?m)^records .*\n`), ""}, // how many there are follows from how fast they come
	{regexp.MustCompile(`\b[0-9a-f]{12,64}\b`), "HASH"},
	{regexp.MustCompile(`(?m)^(gymctl|commit|go) {2,}.*$`), "$1"},
	{regexp.MustCompile(`(?m)^(\| program \|).*$`), "$1"},
	{regexp.MustCompile(`, \d+ bytes, ONNX`), ", BYTES, ONNX"}, // the program's commit is in it
	{regexp.MustCompile(`(?m) +$`), ""},
}

func masked(out string) string {
	for _, m := range masks {
		out = m.what.ReplaceAllString(out, m.with)
	}
	return out
}

var (
	kernels = regexp.MustCompile(`\bkernels +([a-z0-9]+)`)
	digits  = regexp.MustCompile(`\d+`)
)

// outline is what a program prints whose arithmetic rounds in another way: how each line begins.
func outline(out string) string {
	var b strings.Builder
	for line := range strings.Lines(masked(out)) {
		if first := strings.Fields(line); len(first) > 0 && !strings.HasPrefix(first[0], "---") {
			fmt.Fprintln(&b, digits.ReplaceAllString(first[0], "#"))
		}
	}
	return b.String()
}

// A reader follows the tutorial in a fresh folder.
type reader struct {
	dir string
	env []string
	cpu time.Duration
}

// newReader gives the reader the wheel, and a Python with all that is not on the page: what pip would fetch.
func newReader(t *testing.T, python, wheel string) *reader {
	r := &reader{dir: t.TempDir()}
	home, installed := t.TempDir(), t.TempDir()
	data, err := os.ReadFile(wheel)
	if err == nil {
		err = os.WriteFile(filepath.Join(r.dir, filepath.Base(wheel)), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	const where = "import sysconfig, sys; v = {'base': sys.argv[1], 'platbase': sys.argv[1]}; " +
		"print(*(sysconfig.get_path(k, 'posix_prefix', v) for k in ('purelib', 'platlib', 'scripts')), sep='\\n')"
	out, err := exec.Command(python, "-c", where, installed).Output() //nolint:gosec // the caller's interpreter
	paths := strings.Fields(string(out))
	if err != nil || len(paths) != 3 {
		t.Fatalf("%s does not say where it installs: %q, %v", python, out, err)
	}
	list := string(os.PathListSeparator)
	r.env = []string{
		"PATH=" + strings.Join([]string{paths[2], filepath.Dir(python), "/usr/local/bin", "/usr/bin", "/bin"}, list),
		"PYTHONPATH=" + paths[0] + list + paths[1], "PYTHONDONTWRITEBYTECODE=1", "LANG=C.UTF-8",
		"HOME=" + home, "TMPDIR=" + t.TempDir(),
		"PIP_PREFIX=" + installed, "PIP_NO_INDEX=1", "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_ROOT_USER_ACTION=ignore",
	}
	return r
}

func (r *reader) command(ctx context.Context, script string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", "-e", "-c", script)
	cmd.Dir, cmd.Env, cmd.WaitDelay = r.dir, r.env, 10*time.Second
	return cmd
}

// follow does what a part says and returns what was printed.
func (r *reader) follow(ctx context.Context, p *part) (string, error) {
	switch p.kind {
	case "file":
		return "", os.WriteFile(filepath.Join(r.dir, p.path), []byte(p.text), 0o600)
	case "run":
		cmd := r.command(ctx, p.text)
		out, err := cmd.CombinedOutput()
		if s := cmd.ProcessState; s != nil {
			r.cpu += s.UserTime() + s.SystemTime()
		}
		if err != nil {
			return "", fmt.Errorf("%s: %w\n%s", strings.TrimSpace(p.text), err, out)
		}
		return string(out), nil
	}
	// The shell makes way for the program, which is then what is interrupted.
	cmd := r.command(ctx, "exec "+p.text)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return "", err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err == nil {
		err = visit(ctx, strings.TrimSpace(line))
	}
	_ = cmd.Process.Signal(os.Interrupt)
	_ = cmd.Wait() // says that it was interrupted
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.TrimSpace(p.text), err)
	}
	return line, nil
}

// visit looks at pages as a browser would, and at the list of runs behind them.
func visit(ctx context.Context, address string) error {
	for path, want := range map[string]string{"": "<html", "api/list": `"agent"`} {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address+path, nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK || !bytes.Contains(body, []byte(want)) {
			return fmt.Errorf("%s%s answers %s, want 200 and %s in it", address, path, resp.Status, want)
		}
	}
	return nil
}

// TestTutorialWorks follows docs/start/tutorial.md from the first block to the last, and holds what is printed against
// the page. With other kernels than the page's an agent's figures differ, so there only the lines' beginnings are
// compared.
func TestTutorialWorks(t *testing.T) {
	python, wheel := os.Getenv(tutorialPython), os.Getenv(tutorialWheel)
	if python == "" || wheel == "" || runtime.GOOS == "windows" || raced.On {
		t.Skip(tutorialPython + " and " + tutorialWheel +
			" name no Python and wheel (make tutorial does), or this is no place for it")
	}
	name := filepath.Join(root, "docs", "start", "tutorial.md")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	all, err := parts(page)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	r := newReader(t, python, wheel)
	alike, lines, moved := masked, strings.Split(page, "\n"), 0
	for i := range all {
		p := &all[i]
		if p.kind == "output" {
			continue
		}
		got, err := r.follow(ctx, p)
		if err != nil {
			t.Fatalf("%s:%d: %v", name, p.line, err)
		}
		got = strings.TrimRight(masks[len(masks)-1].what.ReplaceAllString(got, ""), "\n")
		if got != "" {
			got += "\n"
		}
		if i+1 == len(all) || all[i+1].kind != "output" {
			if got != "" {
				t.Errorf("%s:%d: this prints what the page does not show:\n%s", name, p.line, got)
			}
			continue
		}
		want := &all[i+1]
		if a, b := kernels.FindStringSubmatch(got), kernels.FindStringSubmatch(want.text); a != nil && b != nil &&
			a[1] != b[1] {
			alike = outline
		}
		if alike(got) == alike(want.text) {
			continue
		}
		if !*update {
			t.Errorf("%s:%d: got\n%s\nwant\n%s\n(make tutorial UPDATE=1 writes it)", name, want.line, got, want.text)
			continue
		}
		old := strings.Count(want.text, "\n")
		now := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
		lines = slices.Replace(lines, want.line+moved, want.line+moved+old, now...)
		moved += len(now) - old
	}
	t.Logf("%v of processor time", r.cpu.Round(time.Second))
	if *update {
		if err := os.WriteFile(name, []byte(strings.Join(lines, "\n")), 0o644); err != nil { //nolint:gosec // a page for all
			t.Fatal(err)
		}
	}
}

// TestTutorialIsReadable needs no Python: the page has only blocks that the test follows, and steps of every kind.
func TestTutorialIsReadable(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "docs", "start", "tutorial.md"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := parts(string(data))
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, p := range all {
		kinds[p.kind]++
		if p.kind == "output" && strings.TrimSpace(p.text) == "" {
			t.Errorf("line %d: an output that is empty", p.line)
		}
	}
	if kinds["file"] < 2 || kinds["run"] < 8 || kinds["serve"] < 1 || kinds["output"] < 8 {
		t.Errorf("blocks are %v", kinds)
	}
}

func TestPartsAreTheBlocksOfAPage(t *testing.T) {
	all, err := parts("x\n```sh\na\nb\n```\n\n```text\nc\n```\n```python file=d.py\ne\n```\n```sh serve\nf\n```\n")
	want := []part{{"run", "", "a\nb\n", 2}, {"output", "", "c\n", 7}, {"file", "d.py", "e\n", 10},
		{"serve", "", "f\n", 13}}
	if err != nil || !slices.Equal(all, want) {
		t.Errorf("got %v, %v, want %v", all, err, want)
	}
	for _, page := range []string{"```\na\n```\n", "```text\na\n```\n", "```sh\na\n", "```sh test\na\n```\n",
		"```python\na\n```\n", "```yaml file=../a\nb\n```\n"} {
		if _, err := parts(page); err == nil {
			t.Errorf("%q: no fault", page)
		}
	}
}

func TestWhatDiffersFromRunToRunIsMasked(t *testing.T) {
	a := "pages     http://127.0.0.1:33667/\nstep        0 of 32768  return        -       0 steps/s  eta\nrecords   8818 of 30000 steps\nsha256 c2e6edf64eba…\ncommit   unknown\n| program | gymctl 0.1.0 |\n| file | `a.onnx`, 167913 bytes, ONNX opset 17 |\n"
	b := "pages     http://127.0.0.1:6/   \nstep        0 of 32768  return        -   12345 steps/s  eta 1m2s\nrecords   9 of 30000 steps\nrecords   30000 of 30000 steps\nsha256 000000000000…\ncommit   4711\n| program | gymctl 0.1.0, commit 4711 |\n| file | `a.onnx`, 167976 bytes, ONNX opset 17 |\n"
	if masked(a) != masked(b) {
		t.Errorf("%q and %q differ", masked(a), masked(b))
	}
	if c := strings.Replace(b, "32768", "32769", 1); masked(a) == masked(c) {
		t.Error("a number of steps is masked")
	}
	if outline("ppo@0  3.66 h\n-----  --\nsjf 4 h\n") != outline("ppo@16384  3.7 h\n------  ---\nsjf   4.1 h\n") ||
		outline("sjf 4\n") == outline("fifo 4\n") {
		t.Error("outlines are not those of the lines' beginnings")
	}
}
