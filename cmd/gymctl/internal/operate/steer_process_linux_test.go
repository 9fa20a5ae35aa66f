package operate_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"clustergym/cmd/gymctl/internal/clitest"
	"clustergym/live"
	"clustergym/ops/steer"
)

// steering is a gymctl steer that runs as a process of its own, as users have it.
type steering struct {
	t                *testing.T
	cmd              *exec.Cmd
	said, log, lease string // files; what it says goes into one. lease is "" without --lease-file
	ended            chan struct{}
}

// startSteering starts a command line with further variables. Its files are in dir; what keeps a log is told where. At
// the end of the test it and its guards are killed, and it is shown what it said if the test has failed.
func startSteering(t *testing.T, dir string, args, env []string) *steering {
	t.Helper()
	p := &steering{t: t, said: filepath.Join(dir, "said"), log: filepath.Join(dir, "log"), ended: make(chan struct{})}
	if i := slices.Index(args, "--lease-file"); i > 0 {
		p.lease = args[i+1]
	}
	if !slices.Contains(args, "guard") && !slices.Contains(args, "release-all") {
		args = append(slices.Clip(args), "--log", p.log)
	}
	said, err := os.Create(p.said)
	if err != nil {
		t.Fatal(err)
	}
	p.cmd = exec.Command(args[0], args[1:]...)                                 //nolint:gosec // this program
	p.cmd.Env = append(append(os.Environ(), "RUNTIME_DIRECTORY="+dir), env...) // no two tests have one lease
	p.cmd.Stdout, p.cmd.Stderr = said, said
	err = errors.Join(p.cmd.Start(), said.Close())
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // its exit code is looked at where it matters
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		for _, pid := range p.guards() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if t.Failed() {
			log, _ := os.ReadFile(p.log) // there may be none
			t.Logf("%s said:\n%s\nits log ends with\n%s", strings.Join(args, " "), p.says(), log[max(0, len(log)-4000):])
		}
	})
	return p
}

// says returns what it has said so far.
func (p *steering) says() string {
	p.t.Helper()
	return clitest.Read(p.t, p.said)
}

// dead reports whether it has ended.
func (p *steering) dead() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// end sends a signal, nil = none, and returns the exit code.
func (p *steering) end(sig os.Signal) int {
	p.t.Helper()
	if sig != nil {
		_ = p.cmd.Process.Signal(sig) // it may have ended
	}
	select {
	case <-p.ended:
	case <-time.After(6 * clitest.Patience):
		p.t.Fatalf("it does not end: %s", p.says())
	}
	return p.cmd.ProcessState.ExitCode()
}

// wait waits for its end, and returns its exit code and what it has said.
func (p *steering) wait() (code int, said string) {
	p.t.Helper()
	code = p.end(nil)
	return code, p.says()
}

// guards returns the process ids of the guards that watch its lease.
func (p *steering) guards() (pids []int) {
	if p.lease == "" {
		return nil
	}
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		text, err := os.ReadFile(f) //nolint:gosec // of other processes
		if err != nil {
			continue // it has ended
		}
		args := strings.Split(string(text), "\x00")
		if slices.Contains(args, "guard") && slices.Contains(args, p.lease) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// unguarded waits until there is no guard any more.
func (p *steering) unguarded() {
	p.t.Helper()
	clitest.Eventually(p.t, "the guard ends", func() bool { return len(p.guards()) == 0 })
}

// lines returns the log so far.
func (p *steering) lines() []steer.Line {
	p.t.Helper()
	return steerLog(p.t, p.log)
}

// steerLog returns what is in a log; there may be none yet.
func steerLog(t testing.TB, file string) (all []steer.Line) {
	t.Helper()
	text, err := os.ReadFile(file) //nolint:gosec // of a test
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var l struct {
			steer.Line
			Order []struct{ ID string } `json:"order"`
		}
		if json.Unmarshal([]byte(line), &l) != nil { // the last one is being written
			break
		}
		for _, o := range l.Order {
			l.Line.Order = append(l.Line.Order, steer.Ranked{ID: o.ID})
		}
		all = append(all, l.Line)
	}
	return all
}

// looks waits until it has looked n times more.
func (p *steering) looks(n int) {
	p.t.Helper()
	before := len(p.lines())
	clitest.Eventually(p.t, "steer looks", func() bool {
		if p.dead() {
			p.t.Fatalf("steer has ended: %s", p.says())
		}
		return len(p.lines()) >= before+n
	})
}

// sent returns the nodes that steer has named for each job when it started it, "" where it named none, and what it has
// noted. A start whose answer was lost when the cluster went counts, because the cluster may have carried it out.
func (p *steering) sent() (starts map[string][]string, notes string) {
	p.t.Helper()
	starts = map[string][]string{}
	for _, l := range p.lines() {
		notes += l.Note + "\n"
		for _, w := range l.Writes {
			if x, ok := strings.CutPrefix(w.Action, "start "); ok &&
				(w.Error == "" || strings.Contains(w.Error, live.ErrUnreachable.Error())) {
				id, nodes, _ := strings.Cut(x, " on ")
				starts[id] = append(starts[id], nodes)
			}
		}
	}
	return starts, notes
}

// writes returns the actions that were carried out.
func (p *steering) writes() (list []string) {
	p.t.Helper()
	for _, l := range p.lines() {
		for _, w := range l.Writes {
			if w.Error == "" {
				list = append(list, w.Action)
			}
		}
	}
	return list
}
