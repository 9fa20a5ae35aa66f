package operate_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"clustergym/bridge/client"
	"clustergym/bridge/wire"
	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
	"clustergym/env"
	"clustergym/internal/raced"
)

// serverProcess starts gymctl serve as a process of its own, which ends with the test, and returns its address and id.
func serverProcess(t *testing.T, args ...string) (addr string, pid int) {
	t.Helper()
	cmd := clitest.Program(t,
		append([]string{"serve", "--addr", "127.0.0.1:0", "--log-level", "error", "--drain-timeout", "5s"}, args...)...)
	cmd.Env = append(cmd.Env, "GOMEMLIMIT=")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server ends with %v", err)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line), cmd.Process.Pid
}

// gauge returns the value of a metric; name includes its labels.
func gauge(t *testing.T, addr, name string) float64 {
	t.Helper()
	resp, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, name+" "); ok {
			x, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
			if err != nil {
				t.Fatal(err)
			}
			return x
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}

// peakMemory returns the most bytes that a process has had in memory, 0 if the system does not tell.
func peakMemory(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmHWM:" {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n << 10
		}
	}
	return 0
}

// returns plays an episode by a fixed rule and returns what it saw.
func returns(ctx context.Context, e *client.Env, seed uint64) (string, error) {
	spec := e.Spec()
	b, a := env.NewBatch(spec, 1), env.NewActions(spec, 1)
	ts := env.TimeStep{Obs: b.Obs, Mask: b.Mask, Info: b.Info}
	if err := e.Reset(ctx, env.Episode{Seed: seed, Window: -1}, &ts); err != nil {
		return "", err
	}
	sum, steps := 0.0, 0
	for ; !ts.Kind.Last(); steps++ {
		a.Disc[0] = 0
		for !ts.Mask[a.Disc[0]] {
			a.Disc[0]++
		}
		if err := e.Step(ctx, env.Action{Disc: a.Disc}, &ts); err != nil {
			return "", err
		}
		sum += ts.Reward
		for _, x := range ts.Obs {
			sum += float64(x) / float64(steps+1)
		}
	}
	return fmt.Sprintf("%d steps, %v", steps, sum), nil
}

// Two hundred clients open the largest environments over and over, in a server with little memory. It stays under its
// bound and refuses what does not fit as capacity, and a client that was in before goes on undisturbed.
func TestAServerStaysUnderItsMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: it keeps a server busy for several seconds")
	}
	const budget = 256 << 20
	clients, rounds, gpus := 200, 3, 10000
	if raced.On {
		clients, rounds, gpus = 16, 1, 1000
	}
	addr, pid := serverProcess(t, "--memory", "256MiB", "--step-timeout", "5m", "--hello-timeout", "1m")
	if got := gauge(t, addr, "clustergym_memory_budget_bytes"); got != budget {
		t.Fatalf("the budget is %v", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	// The server gives a connection a few seconds to say what it wants, which all at once on a slow machine may exceed.
	dial := func() (c *client.Client, err error) {
		for range 10 {
			c, err = client.Dial(ctx, client.Config{URL: "ws://" + addr, DialTimeout: time.Minute, Timeout: 6 * time.Minute})
			if err == nil {
				break
			}
		}
		return c, err
	}
	good, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	defer good.Close() //nolint:errcheck // always nil
	calm, err := good.Open(ctx, "GPUPick-v1", nil)
	if err != nil {
		t.Fatal(err)
	}
	want, err := returns(ctx, calm, 5)
	if err != nil {
		t.Fatal(err)
	}

	largest := []struct {
		id     string
		kwargs map[string]any
		n      int
	}{
		{"DAGPlace-v1", map[string]any{"gpus": gpus, "tasks": 30}, 1},
		{"DAGPlace-v1", map[string]any{"gpus": gpus / 4, "tasks": 20, "links": "random"}, 1},
		{"JobSelect-v1", nil, 150},
		{"JobSelect-v1", map[string]any{"visible": 256, "max_gpus": 256, "cluster": "20x80"}, 2},
		{"QueueRank-v1", map[string]any{"visible": 4096}, 100},
		{"WorkerPlace-v1", map[string]any{"servers": 1000, "jobs": 500}, 8},
		{"CartPole-v1", nil, 4096},
	}
	var opened, refused atomic.Int64
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for g := range clients {
		wg.Go(func() {
			src := rand.New(rand.NewPCG(uint64(g), 9))
			c, err := dial()
			if err != nil {
				t.Errorf("client %d: %v", g, err)
				return
			}
			defer c.Close() //nolint:errcheck // always nil
			for range rounds {
				l := largest[src.IntN(len(largest))]
				v, err := c.OpenVec(ctx, l.id, l.kwargs, l.n, client.VecConfig{})
				if err != nil {
					var e *wire.Error
					if !errors.As(err, &e) || e.Code != wire.Capacity || !e.Retry || !strings.Contains(e.Want, "more memory") {
						t.Errorf("client %d: %v", g, err)
						return
					}
					refused.Add(1)
					time.Sleep(time.Duration(src.IntN(100)) * time.Millisecond)
					continue
				}
				opened.Add(1)
				b := env.NewBatch(v.Spec(), l.n)
				if err := v.Reset(ctx, nil, nil, b); err != nil {
					t.Errorf("client %d: reset of %s: %v", g, l.id, err)
				}
				if src.IntN(2) == 0 { // else the session's end closes it
					if err := v.Close(); err != nil {
						t.Errorf("client %d: %v", g, err)
					}
				}
			}
		})
	}
	plays := 0
	go func() {
		wg.Wait()
		close(stop)
	}()
	for over := false; !over; plays++ {
		select {
		case <-stop:
			over = true
		default:
		}
		got, err := returns(ctx, calm, 5)
		if err != nil {
			t.Fatalf("the client that was in before: %v", err)
		}
		if got != want {
			t.Fatalf("the client that was in before saw %s, alone it saw %s", got, want)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if opened.Load() == 0 || refused.Load() == 0 && !raced.On {
		t.Errorf("%d opens succeeded and %d were refused", opened.Load(), refused.Load())
	}
	// What the help of serve says, and the program itself.
	const bound = budget*3/2 + 64<<20 + 64<<20
	peak := peakMemory(pid)
	t.Logf("%d opened, %d refused, %d plays beside them; at most %d MiB of %d", opened.Load(), refused.Load(), plays,
		peak>>20, bound>>20)
	if !raced.On && peak > bound {
		t.Errorf("the server had %d MiB in memory, want at most %d", peak>>20, bound>>20)
	}
	if err := calm.Close(); err != nil {
		t.Error(err)
	}
	_ = good.Close()
	for _, kind := range []string{"environments", "replies", "frames"} {
		for end := time.Now().Add(clitest.Patience); gauge(t, addr,
			fmt.Sprintf("clustergym_memory_reserved_bytes{kind=%q}", kind)) != 0; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("memory of %s is still reserved", kind)
			}
		}
	}
}

func TestBadMemorySizesAreOneSentence(t *testing.T) {
	for _, verb := range []string{"serve", "eval"} {
		for _, bad := range []string{"lots", "-1GiB", "0", "4Gi"} {
			code, _, said := clitest.Run(t, verb, "--memory", bad)
			if code != cli.ExitMistake || strings.Count(said, "\n") != 1 || !strings.Contains(said, bad) ||
				!strings.Contains(said, "want a size such as 4GiB, 500MB or 1073741824") {
				t.Errorf("%s --memory %s: exit code %d: %s", verb, bad, code, said)
			}
		}
	}
	code, _, said := clitest.Run(t, "serve", "--addr", "127.0.0.1:0", "--memory", "1kB")
	if code != cli.ExitMistake || strings.Count(said, "\n") != 1 || !strings.Contains(said, "--memory: got 1000") ||
		!strings.Contains(said, "1048576") {
		t.Errorf("exit code %d: %s", code, said)
	}
	code, _, said = clitest.Run(t, "eval", "--memory", "1GiB")
	if code != cli.ExitMistake || !strings.Contains(said, "--memory goes with --serve") {
		t.Errorf("exit code %d: %s", code, said)
	}
}
