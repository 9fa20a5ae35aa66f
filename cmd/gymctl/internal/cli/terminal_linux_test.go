package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"
	"unsafe"

	"clustergym/agents/train"
	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
	"clustergym/cmd/gymctl/internal/options"
	"clustergym/cmd/gymctl/internal/start"
	"clustergym/lab/simulate"
)

// terminal is a pseudo-terminal: what is written to its file, and what it shows.
type terminal struct {
	*os.File
	master *os.File
	mu     sync.Mutex
	shown  bytes.Buffer
	done   sync.WaitGroup
}

func (p *terminal) contains(s string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Contains(p.shown.String(), s)
}

func ioctl(t *testing.T, f *os.File, request uintptr, arg unsafe.Pointer) {
	t.Helper()
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, uintptr(arg)); errno != 0 {
		t.Skipf("the test needs a pseudo-terminal, and this system gives none: %v", errno)
	}
}

func newTerminal(t *testing.T, columns int) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	var unlocked, number int32
	ioctl(t, master, syscall.TIOCSPTLCK, unsafe.Pointer(&unlocked))
	ioctl(t, master, syscall.TIOCGPTN, unsafe.Pointer(&number))
	file, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	p := &terminal{File: file, master: master}
	p.resize(t, columns)
	p.done.Go(func() {
		piece := make([]byte, 1<<12)
		for {
			n, err := master.Read(piece)
			p.mu.Lock()
			p.shown.Write(piece[:n])
			p.mu.Unlock()
			if err != nil { // the other side is closed
				return
			}
		}
	})
	t.Cleanup(func() {
		_ = p.Close() // closed by text as well
		_ = master.Close()
	})
	return p
}

func (p *terminal) resize(t *testing.T, columns int) {
	t.Helper()
	size := [4]uint16{24, uint16(columns)}
	ioctl(t, p.master, syscall.TIOCSWINSZ, unsafe.Pointer(&size))
}

// text ends the terminal and returns everything that it was sent.
func (p *terminal) text(t *testing.T) string {
	t.Helper()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p.done.Wait()
	return strings.ReplaceAll(p.shown.String(), "\r\n", "\n")
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")

// fits reports every line, and every drawing of a status, that is longer than the terminal is wide.
func fits(t *testing.T, text string, columns int) {
	t.Helper()
	for _, line := range strings.FieldsFunc(escapes.ReplaceAllString(text, ""),
		func(r rune) bool { return r == '\n' || r == '\r' }) {
		if n := utf8.RuneCountInString(line); n > columns {
			t.Errorf("a line of %d characters on a terminal of %d: %q", n, columns, line)
		}
	}
}

func TestOnATerminalEverythingFitsItsWidth(t *testing.T) {
	t.Chdir(t.TempDir())
	clitest.Must(t, "trace", "synth", "--jobs", "200", "-o",
		"a-trace-with-a-name-that-is-too-long-for-a-terminal-of-forty-characters.csv")
	trace := "a-trace-with-a-name-that-is-too-long-for-a-terminal-of-forty-characters.csv"
	clitest.SaveSteps(t, filepath.Join("runs", "mine"), 1000, 50000)
	for _, args := range [][]string{
		{"sim", "--jobs", "300", "--policy", "fifo,srtf,fifo+strict+conservative", "--horizon", "24h"},
		{"sim", "--trace", trace, "--cluster", "pool:64"},
		{"trace", "stats", trace}, {"trace", "formats"}, {"trace", "get", "--list"},
		{"envs"}, {"config", "list"}, {"experiment", "list"}, {"config", "show", "--cluster", "pai-1897"},
		{"ckpt", "show", "runs/mine"},
		{"eval", "--policies", "fifo+skip,sjf@slots,srtf", "--windows", "2", "--no-whole", "--set", "trace.synth.jobs=4000"},
		{"plan", "--generate", "degree-3:50x5", "--policy", "heft,cpop"},
		{"version"}, {"help"}, {"sim", "--help"}, {"sim", "--policy", "nothing-of-the-kind"},
	} {
		for _, columns := range []int{80, 48} {
			screen := newTerminal(t, columns)
			code := clitest.Execute(t.Context(), args, screen.File, screen.File)
			text := screen.text(t)
			if code != cli.ExitDone && args[len(args)-1] != "nothing-of-the-kind" {
				t.Fatalf("gymctl %v: exit code %d: %s", args, code, text)
			}
			fits(t, text, columns)
			if len(text) < 40 {
				t.Errorf("gymctl %v shows %q", args, text)
			}
		}
	}
	screen := newTerminal(t, 80)
	clitest.Execute(t.Context(), []string{"sim", "--jobs", "300", "--policy", "fifo,srtf"}, screen.File, screen.File)
	if text := screen.text(t); !strings.Contains(text, "Left out to fit 80 characters a line: JCT p50") ||
		!strings.Contains(text, "\nsrtf+skip ") {
		t.Errorf("the table does not say what it leaves out:\n%s", text)
	}
	// The bytes of a result for programs do not depend on the terminal.
	screen = newTerminal(t, 40)
	clitest.Execute(t.Context(), []string{"config", "show", "quickstart"}, screen.File, screen.File)
	if want := clitest.Must(t, "config", "show", "quickstart"); screen.text(t) != want {
		t.Error("YAML is broken into lines on a terminal")
	}
}

// clock is a time that a test moves.
type clock struct{ time.Time }

func (c *clock) now() time.Time { return c.Time }

func TestProgressFollowsTheWidth(t *testing.T) {
	screen := newTerminal(t, 80)
	at := &clock{time.Unix(1e9, 0)}
	ui := options.NewProgress(&cli.App{Stdout: &cli.Output{W: screen.File}, Stderr: &cli.Locked{W: screen.File},
		Now: at.now}, 400000)
	for i, columns := range []int{80, 120, 50, 30, 12, 3} {
		screen.resize(t, columns)
		at.Time = at.Add(2 * time.Second)
		ui.Tick(train.Progress{Step: 1000 * int64(100+i), Return: -1234.5})
	}
	screen.resize(t, 80)
	ui.Best(104000, "validation windows: typical JCT 4.17 h", true)
	ui.Clear()
	text := screen.text(t)
	drawings := strings.Split(text, cli.EraseLine)
	for i, columns := range []int{80, 120, 50, 30, 12, 3} {
		if n := utf8.RuneCountInString(drawings[i+1]); n >= columns {
			t.Errorf("%d characters on a terminal of %d: %q", n, columns, drawings[i+1])
		}
	}
	for i, want := range []string{
		"training  25 %  100000/400000 steps  return -1234.500", // there is no rate yet
		"training  25 % [######------------------]  101000/400000 steps  500/s  9m58s left  return -1234.500",
		"training  26 %  102000/400000 steps  500/s",
		"training  26 %",
	} {
		if i == 0 {
			if !strings.HasPrefix(drawings[1], "training  25 % [") ||
				!strings.HasSuffix(drawings[1], "]  100000/400000 steps  return -1234.500") {
				t.Errorf("shows %q, want the parts of %q and a bar", drawings[1], want)
			}
			continue
		}
		if drawings[i+1] != want {
			t.Errorf("shows %q, want %q", drawings[i+1], want)
		}
	}
	if !strings.Contains(text, cli.EraseLine+"step   104000") {
		t.Errorf("a note stands behind the progress: %q", text)
	}
}

func TestProgressOfASimulation(t *testing.T) {
	screen := newTerminal(t, 80)
	at := &clock{time.Unix(1e9, 0)}
	a := &cli.App{Stdout: &cli.Output{W: screen.File}, Stderr: &cli.Locked{W: screen.File}, Now: at.now}
	line := cli.NewStatus(a, cli.Unnoticed)
	read := options.Reading(line, "a/very/long/folder/of/traces/that/does/not/fit/the/line/of/a/terminal/jobs.csv.gz")
	show := func(p simulate.Progress) { line.Show(func(int) []string { return start.SimParts(p) }) }
	read(1024)
	show(simulate.Progress{Policy: "fifo+strict", Runs: 1, Ended: 1, Jobs: 2})
	at.Time = at.Add(cli.Unnoticed)
	read(2048)
	show(simulate.Progress{Policy: "fifo+strict", Runs: 1, Ended: 1, Jobs: 2}) // too soon after the other
	at.Time = at.Add(cli.Redraw)
	show(simulate.Progress{Policy: "sjf+skip", Run: 1, Runs: 3, Ended: 12345, Jobs: 72000, Waiting: 67,
		Time: 36 * time.Hour})
	at.Time = at.Add(cli.Redraw)
	show(simulate.Progress{Policy: "dally", Runs: 1, Ended: 5, Waiting: -1, Time: time.Minute})
	line.Clear()
	line.Clear()
	if text, want := screen.text(t),
		cli.EraseLine+"reading a/very/long/folder/of/traces/t…ine/of/a/terminal/jobs.csv.gz  2048 jobs"+
			cli.EraseLine+"sjf+skip (2 of 3)  12345/72000 jobs finished  67 waiting  simulated 36.0 h"+
			cli.EraseLine+"dally  5 jobs finished  simulated 60 s"+cli.EraseLine; text != want {
		t.Errorf("shows %q\nwant  %q", text, want)
	}
	if cli.NewStatus(&cli.App{Stderr: &cli.Locked{W: &bytes.Buffer{}}, Now: at.now}, 0) != nil {
		t.Error("progress in a pipe")
	}
}

// A long run shows its progress, and Ctrl-C leaves nothing of it on the line of the message.
func TestALongSimulationShowsItsProgressUntilCtrlC(t *testing.T) {
	screen := newTerminal(t, 80)
	c := clitest.Program(t, "sim", "--jobs", "400000", "--cluster", "pool:64", "--policy", "las,fifo")
	c.Stdout, c.Stderr = screen.File, screen.File
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(2 * time.Minute)
	for {
		time.Sleep(20 * time.Millisecond)
		if screen.contains("generated jobs") || screen.contains("jobs finished") {
			break
		}
		if time.Now().After(deadline) {
			_ = c.Process.Kill()
			t.Fatal("no progress after two minutes")
		}
	}
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // its exit code is checked below
	text := screen.text(t)
	fits(t, text, 80)
	if code := c.ProcessState.ExitCode(); code != cli.ExitInterrupted ||
		!strings.HasSuffix(text, cli.EraseLine+"gymctl: interrupted\n") {
		t.Errorf("exit code %d, the end is %q", code, text[max(0, len(text)-200):])
	}
}
