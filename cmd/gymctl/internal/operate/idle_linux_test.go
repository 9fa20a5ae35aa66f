package operate_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"clustergym/agents/checkpoint"
	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
	"clustergym/cmd/gymctl/internal/operate"
	"clustergym/live"
	"clustergym/live/livetest"
	"clustergym/traces"
)

// poorFiles is what a program of these tests may open, as on a machine with a strict limit.
const poorFiles = 512

// inMemoryCluster has a program of these tests steer a cluster in its own memory.
const inMemoryCluster = "GYMCTL_TEST_CLUSTER_IN_MEMORY"

func init() {
	if os.Getenv(inMemoryCluster) == "" {
		return
	}
	c := livetest.New(livetest.Machines(2, 8)...)
	for i := range 20 {
		c.Submit(traces.Job{ID: fmt.Sprintf("%02d", i), Work: time.Hour, Estimate: time.Hour, GPUs: 8, GPUMilli: 1000})
	}
	c.Advance(0)
	operate.Steered = func(*operate.ClusterFlags) (live.Cluster, error) { return c, nil }
}

// beginPoor starts gymctl with few descriptors.
func beginPoor(t *testing.T, dir string, env []string, args ...string) *clitest.RankProcess {
	t.Helper()
	return clitest.Begin(t, dir, append(env, fmt.Sprintf("%s=%d", clitest.FewFiles, poorFiles)), args...)
}

// idle opens n connections to addr that stay until the test ends: silent ones, some with half a request, and some that
// keep alive after a request. Those that are closed meanwhile stay closed.
func idle(t *testing.T, addr string, n int) {
	t.Helper()
	for i := range n {
		c, err := net.DialTimeout("tcp", addr, clitest.Patience)
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		t.Cleanup(func() { _ = c.Close() })
		switch i % 3 {
		case 1:
			_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: 127.0.0.1") // it may have had to make room
		case 2:
			_, _ = io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n") // likewise
		}
	}
}

// roomy skips a test whose own process may not open so many files.
func roomy(t *testing.T, n uint64) {
	t.Helper()
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil || r.Cur < n {
		t.Skipf("this process may open %d files, want %d", r.Cur, n)
	}
}

// holds checks that a process has descriptors to spare.
func holds(t *testing.T, p *clitest.RankProcess) {
	t.Helper()
	// A broker takes a connection before it closes it for want of a place, so a storm holds more for a moment.
	n := 0
	clitest.Eventually(t, "strangers leave a quarter of the descriptors", func() bool {
		files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.Cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		n = len(files)
		return n <= poorFiles*3/4
	})
	t.Logf("it holds %d descriptors of %d", n, poorFiles)
}

// answers waits until a new connection gets an answer.
func answers(t *testing.T, url string) {
	t.Helper()
	clitest.Eventually(t, url+" answers", func() bool {
		c := http.Client{Timeout: clitest.Patience, Transport: &http.Transport{DisableKeepAlives: true}}
		r, err := c.Get(url) //nolint:noctx // it has a timeout
		if err != nil {
			return false
		}
		_ = r.Body.Close() // it is short
		return r.StatusCode == http.StatusOK || r.StatusCode == http.StatusUnauthorized
	})
}

// A training continues while strangers hold its pages open: it writes checkpoints, shows its pages, and ends normally.
func TestIdleConnectionsEndNoTraining(t *testing.T) {
	clitest.OneGoroutine(t)
	roomy(t, 4000)
	for _, n := range []int{700, 2000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			args := []string{"train", "-c", "cartpole-ppo", "--workers", "1", "--no-eval", "--run-dir", "run", "--ui",
				"127.0.0.1:0"}
			for _, s := range []string{"train.steps=1000000000", "train.checkpoint_every=20000", "train.log_every=20000",
				"train.eval_every=0"} {
				args = append(args, "--set", s)
			}
			p := beginPoor(t, dir, nil, args...)
			url := strings.TrimSpace(p.Await(t, "pages     "))
			idle(t, strings.Trim(strings.TrimPrefix(url, "http://"), "/"), n)
			checkpoints := filepath.Join(dir, "run", "checkpoints")
			newest := func() int64 {
				steps, err := checkpoint.List(checkpoints)
				if err != nil || len(steps) == 0 {
					return -1
				}
				return steps[len(steps)-1]
			}
			for range 2 {
				last := newest()
				clitest.Eventually(t, "another checkpoint", func() bool { return newest() > last })
			}
			holds(t, p)
			answers(t, url+"metrics")
			if err := p.Cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			p.End(t, "the training", cli.ExitInterrupted, "saved, continue with --resume run")
			if _, err := checkpoint.Verify(checkpoint.Dir(checkpoints, newest())); err != nil {
				t.Error(err)
			}
		})
	}
}

// A gate continues while strangers hold its metrics open: it renews its lease, writes its log and starts jobs.
func TestIdleConnectionsEndNoGate(t *testing.T) {
	clitest.OneGoroutine(t)
	roomy(t, 4000)
	for _, n := range []int{400, 2000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			l, err := net.Listen("tcp", "127.0.0.1:0") // a port that is free
			if err != nil {
				t.Fatal(err)
			}
			addr := l.Addr().String()
			_ = l.Close() // for the gate
			p := beginPoor(t, dir, []string{inMemoryCluster + "=1"}, "steer", "--cluster", "slurm", "--policy", "sjf+skip",
				"--mode", "gate", "--every", "1s",
				"--lease", "2s", "--lease-file", filepath.Join(dir, "lease"), "--log", filepath.Join(dir, "log"), "--metrics", addr)
			answers(t, "http://"+addr+"/metrics")
			idle(t, addr, n)
			cycles := func() int {
				b, err := os.ReadFile(filepath.Join(dir, "log"))
				if err != nil {
					t.Fatal(err)
				}
				return strings.Count(string(b), "\n")
			}
			before := cycles()
			clitest.Eventually(t, "three more lines in the log", func() bool { return cycles() >= before+3 })
			holds(t, p)
			answers(t, "http://"+addr+"/metrics")
			if err := p.Cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			p.End(t, "the gate", cli.ExitDone, "")
		})
	}
}

// Strangers that say nothing keep no rank out, however many they are and however long they stay.
func TestSilentConnectionsKeepNoRankOut(t *testing.T) {
	clitest.OneGoroutine(t)
	roomy(t, 4000)
	for _, n := range []int{400, 2000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			args := append([]string{"train", "--workers", "1", "--world", "2", "--run-dir", "run"}, clitest.SmallTraining(2)...)
			args = append(args, "--set", "train.steps=12000")
			first := beginPoor(t, dir, nil, append(args, "--rank", "0", "--rendezvous", "127.0.0.1:0")...)
			at := first.Await(t, "rank 0 of 2 at ")
			at, _, _ = strings.Cut(at, ",")
			idle(t, at, n)
			holds(t, first)
			second := beginPoor(t, dir, nil, append(args, "--rank", "1", "--rendezvous", at)...)
			idle(t, at, n/4)
			first.End(t, "rank 0", cli.ExitDone, "")
			second.End(t, "rank 1", cli.ExitDone, "")
		})
	}
}

// Strangers at the queue of a training of several seeds keep no worker out, and take no descriptors that its runs need.
func TestIdleConnectionsEndNoQueue(t *testing.T) {
	clitest.OneGoroutine(t)
	roomy(t, 4000)
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte("0123456789abcdef-queue\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"train", "-c", "cartpole-ppo", "--workers", "0", "--no-eval", "--run-dir", "run", "--seeds", "2",
		"--listen", "127.0.0.1:0", "--token-file", token}
	for _, s := range []string{"train.steps=20000", "train.checkpoint_every=4096", "train.eval_every=0"} {
		args = append(args, "--set", s)
	}
	p := beginPoor(t, dir, nil, args...)
	url, _, _ := strings.Cut(p.Await(t, "queue     "), ",")
	idle(t, strings.TrimPrefix(url, "nats://"), 1000)
	holds(t, p)
	w := clitest.Begin(t, dir, nil, "worker", url, "--token-file", token, "--slots", "1", "--dir",
		filepath.Join(dir, "scratch"))
	p.End(t, "the training", cli.ExitDone, "")
	_ = w.Cmd.Process.Kill() // it would wait for more
}
