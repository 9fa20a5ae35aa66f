package operate_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
	"clustergym/cmd/gymctl/internal/operate"
)

// The example of the help, against a server that is a process of its own.
func TestServeCheckPassesTheProgramsOwnServer(t *testing.T) {
	_, _, addr, _ := started(t, "--max-sessions", "12")
	example := ""
	for line := range strings.Lines(operate.ServeVerb(&cli.App{}).Example) {
		if strings.Contains(line, "--check") {
			example = strings.ReplaceAll(strings.TrimSpace(line), "127.0.0.1:8765", addr)
		}
	}
	c := clitest.Program(t, strings.Fields(example)[1:]...)
	var out, said bytes.Buffer
	c.Stdout, c.Stderr = &out, &said
	if err := c.Run(); err != nil {
		t.Fatalf("%s: %v; printed %s, said %s", example, err, out.String(), said.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	passed := 0
	for _, l := range lines[:len(lines)-1] {
		switch {
		case strings.HasPrefix(l, "pass  "):
			passed++
		case !strings.HasPrefix(l, "skip  ") || !strings.Contains(l, ": "):
			t.Errorf("line %q", l)
		}
	}
	if last := lines[len(lines)-1]; passed < 40 ||
		!strings.HasPrefix(last, fmt.Sprintf("%d claims: %d hold, 0 fail, ", len(lines)-1, passed)) {
		t.Errorf("%d claims hold, and the summary is %q", passed, last)
	}
}

// A server with TLS and tokens, checked with nothing skipped.
func TestServeCheckShowsATokenAndTrustsAnAuthority(t *testing.T) {
	t.Chdir(t.TempDir())
	certificate(t)
	clitest.Write(t, "tokens", "read what-others-have\nadmin who-may-do-it-all\nenv s3cret-of-players\n")
	s := serve(t,
		strings.Fields(
			"--token-file tokens --tls-cert cert.pem --tls-key key.pem --client-ca cert.pem --hello-timeout 200ms --max-sessions 12")...)
	var d struct {
		URL, Env                string
		Claims                  []operate.Verdict
		Passed, Failed, Skipped int
	}
	at := "wss://" + s.addr
	all := "--check-env CartPole-v1 --token-file tokens --ca cert.pem --tls-cert cert.pem --tls-key key.pem --hello-timeout 200ms --json"
	clitest.Strict(t, clitest.Must(t, append([]string{"serve", "--check", at}, strings.Fields(all)...)...), &d)
	if d.URL != at || d.Env != "CartPole-v1" || len(d.Claims) != d.Passed+d.Skipped || d.Failed != 0 || d.Passed < 40 {
		t.Errorf("%+v", d)
	}
	for _, v := range d.Claims {
		if v.Verdict == "skip" && (strings.Contains(v.Reason, "token") || strings.Contains(v.Reason, "timeout")) {
			t.Errorf("%s: skipped: %s", v.Claim, v.Reason)
		}
	}
	for _, c := range []struct{ args, want string }{
		// an authority that is not trusted
		{"--tls-cert cert.pem --tls-key key.pem --token-file tokens", "certificate"},
		{"--ca cert.pem --token-file tokens", "certificate"},                                   // none is shown
		{"--ca cert.pem --tls-cert cert.pem --tls-key key.pem", "the server asks for a token"}, // none is shown
	} {
		code, out, said := clitest.Run(t, append([]string{"serve", "--check", at}, strings.Fields(c.args)...)...)
		if code != cli.ExitFailed || out != "" || strings.Count(said, "\n") != 1 ||
			!strings.Contains(said, at+" cannot be checked: ") || !strings.Contains(said, c.want) {
			t.Errorf("%s: exit code %d, printed %q, said %q", c.args, code, out, said)
		}
	}
	clitest.Write(t, "tokens", "env a-wrong-one-of-16\n")
	code, _, said := clitest.Run(t, "serve", "--check", at, "--token-file", "tokens", "--ca", "cert.pem", "--tls-cert",
		"cert.pem", "--tls-key", "key.pem")
	if code != cli.ExitFailed || !strings.Contains(said, "HTTP 401") {
		t.Errorf("a wrong token: exit code %d, said %q", code, said)
	}
}

// another is what the server sends with some bytes exchanged for as many.
type another struct {
	io.ReadWriteCloser
	from, to []byte
}

func (a another) Read(p []byte) (int, error) {
	n, err := a.ReadWriteCloser.Read(p)
	copy(p, bytes.ReplaceAll(p[:n], a.from, a.to))
	return n, err
}

// liar stands before a good server, exchanges words of what it says, and has no page /readyz.
func liar(t *testing.T, addr, from, to string) string {
	t.Helper()
	p := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: addr})
	p.ModifyResponse = func(r *http.Response) error {
		if body, ok := r.Body.(io.ReadWriteCloser); ok && r.StatusCode == http.StatusSwitchingProtocols {
			r.Body = another{body, []byte(from), []byte(to)}
		}
		if r.Request.URL.Path == "/readyz" {
			r.StatusCode = http.StatusNotFound
		}
		return nil
	}
	s := httptest.NewServer(p)
	t.Cleanup(s.Close)
	return "ws" + strings.TrimPrefix(s.URL, "http")
}

func TestServeCheckFindsALyingServer(t *testing.T) {
	s := serve(t, "--max-sessions", "12")
	at := liar(t, s.addr, "bad_seed", "bad_sead")
	code, out, said := clitest.Run(t, "serve", "--check", at)
	if code != cli.ExitFailed || !strings.Contains(said, "gymctl: "+at+" breaks ") || strings.Count(said, "\n") != 1 {
		t.Errorf("exit code %d, said %q", code, said)
	}
	failed := map[string]string{}
	for line := range strings.Lines(out) {
		if claim, ok := strings.CutPrefix(line, "fail  "); ok {
			claim, reason, _ := strings.Cut(claim, ": ")
			failed[claim] = reason
		}
	}
	for claim, reason := range map[string]string{"bad seeds are refused": "bad_sead",
		"the HTTP pages answer": "/readyz: HTTP 404"} {
		if !strings.Contains(failed[claim], reason) {
			t.Errorf("%s: failed with %q, want %q in it; printed\n%s", claim, failed[claim], reason, out)
		}
	}
	if strings.Contains(out, "fail  bad actions change nothing") ||
		!strings.Contains(out, "pass  bad actions change nothing\n") || !strings.Contains(out, " fail, ") {
		t.Errorf("printed\n%s", out)
	}
	var d struct {
		URL, Env                string
		Claims                  []operate.Verdict
		Passed, Failed, Skipped int
	}
	code, out, _ = clitest.Run(t, "serve", "--check", at, "--json")
	if clitest.Strict(t, out, &d); code != cli.ExitFailed || d.Failed != len(failed) {
		t.Errorf("exit code %d, %d failed, and as a table %d", code, d.Failed, len(failed))
	}
}

func TestServeCheckRefusesBadInputInOneSentence(t *testing.T) {
	t.Chdir(t.TempDir())
	certificate(t)
	clitest.Write(t, "tokens", "read s3cret-of-readers\n")
	clitest.Write(t, "empty", "")
	for _, c := range []struct{ args, want string }{
		{"--check 127.0.0.1:8765", `URL "127.0.0.1:8765", want ws://host:port or wss://host:port`},
		{"--check http://127.0.0.1:8765", "want ws://host:port"},
		{"--check ws://", "want ws://host:port"},
		{"--check ws://:8765", "want ws://host:port"},
		{"--check ws://me:s3cret@127.0.0.1", "want ws://host:port"},
		{"--check ws://127.0.0.1:8765/other", "want ws://host:port"},
		{"--check=", "want ws://host:port"},
		{"--check ws://127.0.0.1:1 --max-sessions 3", "--max-sessions does not go with --check"},
		{"--check ws://127.0.0.1:1 --trace-root .", "--trace-root does not go with --check"},
		{"--check ws://127.0.0.1:1 --client-ca cert.pem", "--client-ca does not go with --check"},
		{"--check ws://127.0.0.1:1 --token-file tokens", "no token of role env or admin"},
		{"--check ws://127.0.0.1:1 --token-file nowhere", "nowhere"},
		{"--check ws://127.0.0.1:1 --ca cert.pem", "want wss://"},
		{"--check wss://127.0.0.1:1 --ca empty", "--ca: empty holds no certificate"},
		{"--check wss://127.0.0.1:1 --ca nowhere", "--ca: "},
		{"--check wss://127.0.0.1:1 --tls-cert cert.pem", "--tls-cert and --tls-key go together"},
		{"--check wss://127.0.0.1:1 --tls-cert empty --tls-key key.pem", "--tls-cert empty"},
		{"--check ws://127.0.0.1:1 --hello-timeout 0s", "--hello-timeout: got 0s"},
		{"--ca cert.pem", "--ca goes with --check"},
		{"--check-env x", "--check-env goes with --check"},
	} {
		clitest.Wrong(t, append([]string{"serve"}, strings.Fields(c.args)...), c.want)
	}
	s := serve(t)
	clitest.Wrong(t, []string{"serve", "--check", "ws://" + s.addr, "--check-env", "Nothing-v1"},
		`has no environment "Nothing-v1"`)
	// A server that is not there is no mistake of the user's.
	for _, at := range []string{"ws://127.0.0.1:1", "wss://" + s.addr} {
		code, out, said := clitest.Run(t, "serve", "--check", at)
		if code != cli.ExitFailed || out != "" || !strings.Contains(said, at+" cannot be checked: connecting: ") ||
			strings.Count(said, "\n") != 1 {
			t.Errorf("%s: exit code %d, printed %q, said %q", at, code, out, said)
		}
	}
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	code, _, said := clitest.Run(t, "serve", "--check", "ws"+strings.TrimPrefix(other.URL, "http"))
	if code != cli.ExitFailed || !strings.Contains(said, "/v1/ws answers HTTP 404") {
		t.Errorf("another server: exit code %d, said %q", code, said)
	}
}

func TestReasonsStayOnOneLine(t *testing.T) {
	if got := operate.OneLine("a\nb\x1b[2Jc\x7f\u009bé"); got != "a b [2Jc  é" {
		t.Errorf("got %q", got)
	}
}

// A check that waits for a server which says nothing ends at once when it is told to.
func TestServeCheckEndsWhenInterrupted(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	here := make(chan net.Conn, 8)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			here <- c
		}
	}()
	// It would wait for five seconds. A slow machine may take as long once, but not every time.
	took := time.Duration(math.MaxInt64)
	for try := 0; try < 5 && took > 3*time.Second; try++ {
		c := clitest.Program(t, "serve", "--check", "ws://"+l.Addr().String())
		var said bytes.Buffer
		c.Stderr = &said
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		conn := <-here
		begun := time.Now()
		if err := c.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait() // its exit code is looked at below
		took = time.Since(begun)
		conn.Close()
		if code := c.ProcessState.ExitCode(); code != cli.ExitInterrupted || said.String() != "gymctl: interrupted\n" {
			t.Errorf("exit code %d, said %q", code, said.String())
		}
	}
	if took > 3*time.Second {
		t.Errorf("it took %v to end", took)
	}
	// And in the middle of the claims, where the lines so far stay.
	s := serve(t)
	c := clitest.Program(t, "serve", "--check", "ws://"+s.addr)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 6)
	if _, err := io.ReadFull(out, first); err != nil || string(first) != "pass  " {
		t.Errorf("the first line begins with %q: %v", first, err)
	}
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(out)
	_ = c.Wait() // its exit code is looked at below
	if code := c.ProcessState.ExitCode(); err != nil || code != cli.ExitInterrupted ||
		bytes.Contains(rest, []byte("claims:")) {
		t.Errorf("exit code %d (%v), printed %s", code, err, rest)
	}
}
