//go:build unix

package operate_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"clustergym/bridge/client"
	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
)

// dialed connects with a token.
func dialed(t *testing.T, addr, token string) (*client.Client, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), clitest.Patience)
	defer cancel()
	return client.Dial(ctx, client.Config{URL: "ws://" + addr, Token: token})
}

// journal collects a program's standard error while the program runs.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.String()
}

// process is gymctl serve as a process of its own.
type process struct {
	*os.Process
	addr string
	said *journal
	wait func() int
}

// launch starts gymctl serve with an environment of its own and a standard error that is read, unless stderr is given.
func launch(t *testing.T, env []string, stderr *os.File, args ...string) *process {
	t.Helper()
	c := clitest.Program(t, append([]string{"serve", "--addr", "127.0.0.1:0", "--drain-timeout", "1s"}, args...)...)
	c.Env = append(c.Env, env...)
	p := &process{said: &journal{}}
	c.Stderr = p.said
	if stderr != nil {
		c.Stderr = stderr
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	p.Process = c.Process
	ended := make(chan struct{})
	line, err := bufio.NewReader(out).ReadString('\n')
	go func() {
		defer close(ended)
		_ = c.Wait() // its exit code is checked by the test
	}()
	t.Cleanup(func() {
		_ = c.Process.Kill() // it has already ended, unless the test failed
		<-ended
		if t.Failed() {
			t.Logf("gymctl serve said: %.5000s", p.said.String())
		}
	})
	if err != nil {
		t.Fatalf("no address: %v", err)
	}
	p.addr = strings.TrimSpace(line)
	p.wait = func() int {
		t.Helper()
		select {
		case <-ended:
		case <-time.After(clitest.Patience):
			t.Fatal("gymctl serve does not end")
		}
		return c.ProcessState.ExitCode()
	}
	return p
}

// says waits until the program has said all of these.
func (p *process) says(t *testing.T, words ...string) {
	t.Helper()
	for end := time.Now().Add(clitest.Patience); ; time.Sleep(5 * time.Millisecond) {
		missing := ""
		for _, w := range words {
			if !strings.Contains(p.said.String(), w) {
				missing = w
			}
		}
		if missing == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("it does not say %q", missing)
		}
	}
}

// A hangup reads the tokens again; a bad file leaves the old ones.
func TestAHangupReloadsTheTokens(t *testing.T) {
	t.Chdir(t.TempDir())
	const first, second = "the-first-of-the-tokens", "the-second-of-the-tokens"
	clitest.Write(t, "tokens", "env "+first+"\n")
	p := launch(t, nil, nil, "--token-file", "tokens")
	old, err := dialed(t, p.addr, first)
	if err != nil {
		t.Fatal(err)
	}
	hangup := func(says ...string) {
		t.Helper()
		if err := p.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		p.says(t, says...)
	}
	// Three bad files.
	clitest.Write(t, "tokens", "env "+second+"\nenv s3cret\n")
	hangup("level=ERROR", "nothing was reloaded", "tokens:2: the token has 6 characters")
	clitest.Write(t, "tokens", "")
	hangup("there is no token in it")
	if err := os.Remove("tokens"); err != nil {
		t.Fatal(err)
	}
	hangup("no such file")
	if c, err := dialed(t, p.addr, first); err != nil {
		t.Errorf("the old token after bad reloads: %v", err)
	} else if err := c.Close(); err != nil {
		t.Error(err)
	}
	// A good one.
	clitest.Write(t, "tokens", "env "+second+"\n")
	hangup("level=INFO msg=reloaded tokens=1")
	if _, err := dialed(t, p.addr, first); err == nil {
		t.Error("the old token still counts")
	}
	c, err := dialed(t, p.addr, second)
	if err != nil {
		t.Fatal(err)
	}
	// The session that was open goes on.
	ctx, cancel := context.WithTimeout(t.Context(), clitest.Patience)
	defer cancel()
	if _, err := old.Open(ctx, "CartPole-v1", nil); err != nil {
		t.Errorf("the old session: %v", err)
	}
	for _, c := range []*client.Client{old, c} {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.wait(); code != cli.ExitDone {
		t.Errorf("exit code %d", code)
	}
	if said := p.said.String(); strings.Contains(said, first) || strings.Contains(said, second) ||
		strings.Contains(said, "s3cret") {
		t.Error("the log has a token")
	}
}

// Without files there is nothing to reload, and a hangup ends nothing either.
func TestAHangupEndsNothing(t *testing.T) {
	p := launch(t, nil, nil)
	for range 3 {
		if err := p.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	p.says(t, "msg=reloaded tokens=0")
	c, err := dialed(t, p.addr, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// Nobody reads standard error, and the pipe is full: clients get in as ever, and a signal ends the server.
func TestALogThatNobodyReadsBlocksNothing(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // nothing is read
	p := launch(t, nil, w, "--log-level", "debug")
	if err := w.Close(); err != nil { // the program has its own
		t.Fatal(err)
	}
	for i := range 600 { // more lines than a pipe takes
		ctx, cancel := context.WithTimeout(t.Context(), clitest.Patience)
		c, err := client.Dial(ctx, client.Config{URL: "ws://" + p.addr})
		cancel()
		if err != nil {
			t.Fatalf("client %d: %v", i, err)
		}
		if err := c.Close(); err != nil {
			t.Fatalf("client %d: %v", i, err)
		}
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.wait(); code != cli.ExitDone {
		t.Errorf("exit code %d", code)
	}
}

// The address is not read either.
func TestAnAddressThatNobodyReadsDoesNotHoldUpTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r, w := net.Pipe() // a write waits for a reader
	defer r.Close()    //nolint:errcheck // as above
	ended := make(chan int, 1)
	go func() { ended <- clitest.Execute(ctx, []string{"serve", "--addr", "127.0.0.1:0"}, w, &journal{}) }()
	time.Sleep(50 * time.Millisecond) // it most likely tries to print; the test holds also if it does not yet
	cancel()
	select {
	case code := <-ended:
		if code != cli.ExitDone {
			t.Errorf("exit code %d", code)
		}
	case <-time.After(clitest.Patience):
		t.Fatal("gymctl serve does not end")
	}
}

// With few descriptors, all of them in use, the server goes on: it answers probes, says what is missing, and takes
// clients again as soon as it can.
func TestServeSurvivesTheLimitOfOpenFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	const token = "a-token-of-the-test"
	clitest.Write(t, "tokens", "env "+token+"\n")
	const files = 64
	p := launch(t, []string{fmt.Sprintf("%s=%d", clitest.FewFiles, files)}, nil, "--token-file", "tokens")
	p.says(t, "the limit of open files is low")
	// Sessions take all there is.
	var clients []*client.Client
	defer func() {
		for _, c := range clients {
			_ = c.Close() // the server may be gone
		}
	}()
	refused := false
	for range files {
		c, err := dialed(t, p.addr, token)
		if err != nil {
			refused = true
			break
		}
		clients = append(clients, c)
	}
	// And then there is a crowd.
	var crowd []net.Conn
	defer func() {
		for _, c := range crowd {
			_ = c.Close() // likewise
		}
	}()
	for range 4 * files {
		c, err := net.Dial("tcp", p.addr)
		if err != nil {
			t.Fatal(err)
		}
		crowd = append(crowd, c)
	}
	p.says(t, "level=WARN", "a connection cannot be accepted", "too many open files")
	web := &http.Client{Timeout: clitest.Patience, Transport: &http.Transport{DisableKeepAlives: true}}
	for _, page := range []string{"/healthz", "/readyz"} {
		if code := get(t, web, "http://"+p.addr+page, ""); code != http.StatusOK {
			t.Errorf("%s: %d", page, code)
		}
	}
	if len(clients) < files/2 {
		t.Errorf("%d sessions (refused: %t)", len(clients), refused)
	}
	if err := clients[0].Close(); err != nil {
		t.Error(err)
	}
	clients = clients[1:]
	for end := time.Now().Add(clitest.Patience); ; { // the server may hear of it a little later
		c, err := dialed(t, p.addr, token)
		if err == nil {
			clients = append(clients, c)
			break
		}
		if time.Now().After(end) {
			t.Fatalf("after one has left: %v", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if n := strings.Count(p.said.String(), "level=WARN"); n > 500 {
		t.Errorf("%d warnings", n)
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.wait(); code != cli.ExitDone {
		t.Errorf("exit code %d", code)
	}
}
