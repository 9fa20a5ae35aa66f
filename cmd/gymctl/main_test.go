package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m) }

func TestHelpTexts(t *testing.T) {
	clitest.OneGoroutine(t)
	// The number of processors depends on the machine.
	workers := regexp.MustCompile(`(--workers .*\(default )\d+\)`)
	for _, c := range clitest.Commands() {
		path := c.CommandPath()
		if strings.Contains(path, "completion") {
			continue // written by the library
		}
		args := append(strings.Fields(path)[1:], "--help")
		got := workers.ReplaceAllString(clitest.Must(t, args...), "${1}N)")
		golden := filepath.Join("testdata", "help", strings.ReplaceAll(path, " ", "-")+".txt")
		if *clitest.Update {
			if err := os.MkdirAll(filepath.Dir(golden), 0o750); err != nil {
				t.Fatal(err)
			}
			clitest.Write(t, golden, got)
		}
		if want := clitest.Read(t, golden); got != want {
			t.Errorf("%s --help (-update rewrites):\n%s\nwant\n%s", path, got, want)
		}
	}
}

func TestEveryVerbHasHelpOfAKind(t *testing.T) {
	for _, c := range clitest.Commands() {
		path := c.CommandPath()
		if strings.Contains(path, "completion") || c.Hidden {
			continue
		}
		if c.Short == "" || strings.HasSuffix(c.Short, ".") || strings.Contains(c.Short, "\n") || len(c.Short) > 72 {
			t.Errorf("%s: short help %q, want one line without a full stop", path, c.Short)
		}
		if c.Example == "" || strings.Contains(c.Long, "\n  gymctl ") {
			t.Errorf("%s shows no example, or shows it in its text", path)
		}
		for line := range strings.Lines(c.Long + "\n" + c.Example) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > 130 {
				t.Errorf("%s: a line of %d characters: %s", path, n, line)
			}
		}
	}
}

// Examples must work as printed. Those of train, tune, sweep, eval and experiment run take minutes, those of get need
// the network, those of serve and ui do not end, those of worker need a command to work for, those of act and export
// need a trained agent, those of man write into the home folder, those of benchmark need results and the secret, and
// those of steer, twin and trace get a cluster or a log of one; they have their own tests.
func TestExamplesWorkAsPrinted(t *testing.T) {
	clitest.OneGoroutine(t)
	other := []string{"train", "worker", "tune", "sweep", "get", "serve", "ui", "run", "act", "export", "man"}
	for _, c := range clitest.Commands() {
		if c.Example == "" || slices.Contains(other, c.Name()) || c.CommandPath() == "gymctl eval" {
			continue
		}
		if c.HasParent() && c.Parent().Name() == "benchmark" && c.Name() != "list" && c.Name() != "show" {
			continue
		}
		if path := c.CommandPath(); strings.HasPrefix(path, "gymctl steer") || strings.HasPrefix(path, "gymctl twin") ||
			strings.HasPrefix(path, "gymctl trace get ") {
			continue
		}
		t.Run(c.CommandPath(), func(t *testing.T) {
			t.Chdir(t.TempDir())
			clitest.SaveSteps(t, filepath.Join("runs", "mine"), 50000)
			for line := range strings.Lines(c.Example) {
				line, to, redirected := strings.Cut(strings.TrimSpace(line), " > ")
				words := strings.Fields(line)
				if len(words) < 2 || words[0] != "gymctl" {
					t.Fatalf("%q is no example", line)
				}
				if strings.Contains(line, " --agent ") { // it trains for minutes
					words = append(words, "--set", "train.imitate_steps=2048", "--set", "train.steps=4096", "--set",
						"ppo.minibatches=16", "--set", "train.envs=16", "--set", "eval.validation=2")
				}
				code, out, err := clitest.Run(t, words[1:]...)
				if code != cli.ExitDone || out == "" && !strings.Contains(line, " -o ") {
					t.Errorf("%s: exit code %d, printed %q and %q", line, code, out, err)
				}
				if redirected {
					clitest.Write(t, to, out)
				}
			}
		})
	}
}

func TestUnknownVerbsAndFlagsAreAnsweredWithTheNearest(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"simm", `verb "simm" is unknown; did you mean sim?`},
		{"xyzzy", `verb "xyzzy" is unknown, want one of assess, benchmark, ckpt, `},
		{"trace sats", `trace: verb "sats" is unknown; did you mean stats?`},
		{"config chek f", `config: verb "chek" is unknown; did you mean check?`},
		{"completion tcsh", `completion: verb "tcsh" is unknown, want one of bash, fish, powershell, zsh`},
		{"help simm", `verb "simm" is unknown; did you mean sim?`},
		{"help trace sats", `trace: verb "sats" is unknown; did you mean stats?`},
		{"sim --polcy fifo", `sim: flag --polcy is unknown; did you mean --policy?`},
		{"sim --xyzzy", `sim: flag --xyzzy is unknown; see gymctl sim --help`},
		{"sim -q", `sim: flag -q is unknown; see gymctl sim --help`},
		{"--jsno", `flag --jsno is unknown; see gymctl --help`},
		{"sim --jobs x", `--jobs: got "x", want a whole number`},
		{"sim --jobs", `--jobs: got nothing, want a whole number`},
		{"sim --events", `--events: got nothing, want FILE`},
		{"sim --seed -1", `--seed: got "-1", want a whole number, 0 or more`},
		{"sim --horizon 3", `--horizon: got "3", want a time such as 90s, 40m or 72h`},
		{"sim --json=perhaps", `--json: got "perhaps", want true or false`},
		{"sim trace.csv",
			`sim: there is no file "trace.csv"; want the FILE of a trace (policies follow --policy, clusters --cluster)`},
		{"sim a.csv b.csv", `sim: got "a.csv" "b.csv", want one FILE, or none; see gymctl sim --help`},
		{"trace stats", `trace stats: want one FILE; see gymctl trace stats --help`},
		{"trace stats a b", `trace stats: got "a" "b", want one FILE; see gymctl trace stats --help`},
	} {
		code, out, err := clitest.Run(t, strings.Fields(c.args)...)
		if code != cli.ExitMistake || out != "" || !strings.HasPrefix(err, "gymctl: "+c.want) ||
			strings.Count(err, "\n") != 1 {
			t.Errorf("gymctl %s: exit code %d, printed %q, said %q; want 2, nothing, one line with %q", c.args, code, out, err,
				c.want)
		}
	}
}

func TestWithoutArgumentsThereIsHelp(t *testing.T) {
	for _, args := range [][]string{nil, {"help"}, {"--help"}, {"trace"}, {"help", "trace"}, {"config"}, {"ckpt"},
		{"help", "sim"}} {
		if out := clitest.Must(t, args...); !strings.Contains(out, "Usage:\n  gymctl") {
			t.Errorf("gymctl %v prints %q", args, out)
		}
	}
}

func TestCompletionKnowsVerbsFlagsAndValues(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if out := clitest.Must(t, "completion", shell); !strings.Contains(out, "gymctl") || len(out) < 1000 {
			t.Errorf("completion %s prints %d bytes", shell, len(out))
		}
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"si"}, "sim"}, {[]string{"sim", "--pol"}, "--policy"}, {[]string{"sim", "--policy", "s"}, "sjf+skip"},
		{[]string{"envs", "Job"}, "JobSelect-v1"}, {[]string{"config", "show", "--cluster", "p"}, "philly-192"},
		{[]string{"trace", "stats", "--format", "s"}, "swf"},
	} {
		if out := clitest.Must(t, append([]string{"__complete"}, c.args...)...); !strings.Contains("\n"+out, "\n"+c.want) {
			t.Errorf("completion of %v does not offer %s:\n%s", c.args, c.want, out)
		}
	}
}

func TestSignalsEndALongSimulationCleanly(t *testing.T) {
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		dir := t.TempDir()
		c := clitest.Program(t, "sim", "--jobs", "400000", "--cluster", "pool:64", "--policy", "las", "--events",
			filepath.Join(dir, "events.jsonl"))
		var out, said bytes.Buffer
		c.Stdout, c.Stderr = &out, &said
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = c.Wait() // its exit code is checked below
		}()
		// The first events show that it is running.
		for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
			parts, err := filepath.Glob(filepath.Join(dir, ".events.jsonl.*.part"))
			if err != nil {
				t.Fatal(err)
			}
			if len(parts) == 1 {
				if st, err := os.Stat(parts[0]); err == nil && st.Size() > 0 {
					break
				}
			}
			if time.Since(begun) > 2*time.Minute {
				_ = c.Process.Kill()
				t.Fatalf("no events after two minutes: %s", said.String())
			}
		}
		if err := c.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ended:
		case <-time.After(2 * time.Minute):
			_ = c.Process.Kill()
			t.Fatalf("%v does not end it", sig)
		}
		if code := c.ProcessState.ExitCode(); code != cli.ExitInterrupted || said.String() != "gymctl: interrupted\n" ||
			out.Len() != 0 {
			t.Errorf("%v: exit code %d, said %q, printed %q; want 130", sig, code, said.String(), out.String())
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			t.Errorf("%v leaves %v behind (%v)", sig, left, err)
		}
	}
}

func TestAReaderThatStopsIsNoCrash(t *testing.T) {
	c := clitest.Program(t, "trace", "synth", "--jobs", "50000")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	c.Stderr = &said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil || said.Len() != 0 {
		t.Errorf("a closed pipe: %v, said %q; want a quiet end", err, said.String())
	}
}

// full is an output without space left.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestOutputThatCannotBeWrittenIsAFailure(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"version", "--json"}, {"sim", "--jobs", "20"},
		{"trace", "synth", "--jobs", "9"}, {"envs"}, {"config", "list"}, {"help"}} {
		var said bytes.Buffer
		if code := clitest.Execute(t.Context(), args, full{}, &said); code != cli.ExitFailed ||
			!strings.Contains(said.String(), "no space left") {
			t.Errorf("gymctl %v on a full disk: exit code %d, said %q", args, code, said.String())
		}
	}
}

func TestACancelledContextIsAnInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, said bytes.Buffer
	if code := clitest.Execute(ctx, []string{"sim", "--jobs", "50"}, &out, &said); code != cli.ExitInterrupted ||
		out.Len() != 0 {
		t.Errorf("exit code %d, printed %q, said %q", code, out.String(), said.String())
	}
}

func TestVersion(t *testing.T) {
	out := clitest.Must(t, "version")
	for _, want := range []string{"gymctl ", "commit ", "go       go1.", "kernels  "} {
		if !strings.Contains(out, want) {
			t.Errorf("%q lacks %q", out, want)
		}
	}
	if flag := clitest.Must(t, "--version"); flag != out {
		t.Errorf("--version prints %q, version %q", flag, out)
	}
	var v cli.Build
	clitest.Strict(t, clitest.Must(t, "version", "--json"), &v)
	if v.Version == "" || v.Kernels == "" || !strings.HasPrefix(v.Go, "go1.") || !strings.Contains(v.Platform, "/") {
		t.Errorf("got %+v", v)
	}
}
