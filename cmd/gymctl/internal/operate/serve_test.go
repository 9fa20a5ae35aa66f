package operate_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"clustergym/bridge/client"
	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
	"clustergym/cmd/gymctl/internal/operate"
	"clustergym/env"
	"clustergym/env/jobselect"
)

// service is a running gymctl serve, in this process.
type service struct {
	addr string
	line string // first line on standard output
	stop context.CancelFunc
	said *cli.Locked
	end  chan int
}

// serve starts gymctl serve on a free port. It ends with the test at the latest.
func serve(t *testing.T, args ...string) *service {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, w := io.Pipe()
	var said bytes.Buffer
	s := &service{stop: cancel, said: &cli.Locked{W: &said}, end: make(chan int, 1)}
	go func() {
		code := clitest.Execute(ctx, append([]string{"serve", "--addr", "127.0.0.1:0", "--drain-timeout", "1s"}, args...), w,
			s.said)
		_ = w.Close()
		s.end <- code
	}()
	t.Cleanup(func() {
		s.stop()
		s.code(t)
		if t.Failed() {
			t.Logf("gymctl serve said: %s", said.String())
		}
	})
	b := bufio.NewReader(r)
	line, err := b.ReadString('\n')
	if err != nil {
		t.Fatalf("gymctl serve %v: %v; said %q", args, err, said.String())
	}
	go func() { _, _ = io.Copy(io.Discard, b) }() // it ends with the program
	s.line = line
	s.addr = strings.TrimSpace(line)
	return s
}

// code waits for the end and returns the exit code.
func (s *service) code(t *testing.T) int {
	t.Helper()
	select {
	case c := <-s.end:
		s.end <- c
		return c
	case <-time.After(clitest.Patience):
		t.Fatal("gymctl serve does not end")
		return -1
	}
}

// get returns the HTTP status of a page.
func get(t *testing.T, c *http.Client, url, token string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode
}

func TestServeSaysItsAddressServesAndDrains(t *testing.T) {
	s := serve(t)
	if host, _, err := net.SplitHostPort(s.addr); err != nil || host != "127.0.0.1" {
		t.Fatalf("first line %q (%v)", s.line, err)
	}
	c := &http.Client{Timeout: clitest.Patience}
	for _, page := range []string{"/healthz", "/readyz", "/metrics", "/v1/envs", "/v1/version"} {
		if code := get(t, c, "http://"+s.addr+page, ""); code != http.StatusOK {
			t.Errorf("%s: %d", page, code)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), clitest.Patience)
	defer cancel()
	conn, err := client.Dial(ctx, client.Config{URL: "ws://" + s.addr})
	if err != nil {
		t.Fatal(err)
	}
	e, err := conn.Open(ctx, jobselect.V1,
		map[string]any{"window": 16, "warm": 0, "trace": map[string]any{"synth": map[string]any{"jobs": 400}}})
	if err != nil {
		t.Fatal(err)
	}
	ts := env.NewTimeStep(e.Spec())
	if err := e.Reset(ctx, env.Episode{Seed: 1, Window: -1, Split: "test"}, ts); err != nil {
		t.Fatal(err)
	}
	if err := e.Reset(ctx, env.Episode{Split: "tset"}, ts); err == nil ||
		!strings.Contains(err.Error(), "train, validation, test") {
		t.Errorf("an unknown split: %v", err)
	}
	if _, err := conn.Open(ctx, jobselect.V1, map[string]any{"visible": 3}); err == nil ||
		!strings.Contains(err.Error(), "even number") {
		t.Errorf("a bad argument: %v", err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	s.stop()
	if code := s.code(t); code != cli.ExitDone {
		t.Errorf("drained: exit code %d, want 0", code)
	}
}

func TestServePrintsItsAddressAsJSON(t *testing.T) {
	var d struct{ Addr string }
	clitest.Strict(t, serve(t, "--json").line, &d)
	if _, _, err := net.SplitHostPort(d.Addr); err != nil {
		t.Error(err)
	}
}

// certificate writes a self-signed certificate for 127.0.0.1 and returns a client that trusts it.
func certificate(t *testing.T) *http.Client {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	clitest.Write(t, "cert.pem", cert)
	clitest.Write(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})))
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(cert))
	return &http.Client{Timeout: clitest.Patience, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
}

// The examples in the help, on free ports.
func TestServeExamplesServe(t *testing.T) {
	t.Chdir(t.TempDir())
	c := certificate(t)
	clitest.Write(t, "tokens", "read s3cret-of-readers\nenv what-others-have\n")
	if err := os.Mkdir("traces", 0o750); err != nil {
		t.Fatal(err)
	}
	lines := 0
	for line := range strings.Lines(operate.ServeVerb(&cli.App{}).Example) {
		lines++
		words := strings.Fields(line)
		if strings.Contains(line, "--check") {
			continue // it serves nothing, and has a test of its own
		}
		if len(words) < 2 || words[0] != "gymctl" || words[1] != "serve" {
			t.Fatalf("%q is no example", line)
		}
		args := regexp.MustCompile(`:8765\b|/srv/`).ReplaceAllStringFunc(strings.Join(words[2:], " "), func(s string) string {
			return map[string]string{":8765": ":0", "/srv/": ""}[s]
		})
		t.Run(args, func(t *testing.T) {
			s := serve(t, strings.Fields(args)...)
			_, port, err := net.SplitHostPort(strings.TrimSuffix(strings.TrimPrefix(s.addr, `{"addr":"`), `"}`))
			if err != nil {
				t.Fatal(err)
			}
			scheme, token := "http", ""
			if strings.Contains(args, "--tls-cert") {
				scheme, token = "https", "s3cret-of-readers"
				if code := get(t, c, "https://127.0.0.1:"+port+"/metrics", ""); code != http.StatusUnauthorized {
					t.Errorf("without a token: %d", code)
				}
				if code := get(t, c, "https://127.0.0.1:"+port+"/metrics", "what-others-have"); code != http.StatusForbidden {
					t.Errorf("with a token of another role: %d", code)
				}
			}
			if code := get(t, c, scheme+"://127.0.0.1:"+port+"/metrics", token); code != http.StatusOK {
				t.Errorf("%s: %d", args, code)
			}
			c.CloseIdleConnections()
			s.stop()
			if code := s.code(t); code != cli.ExitDone {
				t.Errorf("exit code %d", code)
			}
		})
	}
	if lines < 5 {
		t.Errorf("%d examples", lines)
	}
}

func TestServeRefusesBadInputInOneSentence(t *testing.T) {
	t.Chdir(t.TempDir())
	certificate(t)
	clitest.Write(t, "tokens", "# none\nenv s3cret-of-players\nroot s3cret\n")
	clitest.Write(t, "empty", "")
	clitest.Write(t, "short", "env s3cret-of-players\nread s3cret\n")
	clitest.Write(t, "shared", "env s3cret-of-players\n")
	if err := os.Chmod("shared", 0o666); err != nil { //nolint:gosec // this is what must be refused
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"--addr 0.0.0.0:0", "0.0.0.0:0 can be reached from other machines|--token-file FILE|--insecure"},
		{"--addr :0", "can be reached from other machines"},
		{"--addr [::]:0", "can be reached from other machines"},
		{"--addr 127.0.0.1", "HOST:PORT"},
		{"--addr 127.0.0.1:http+", "HOST:PORT"},
		{"--addr 127.0.0.1:99999", "HOST:PORT"},
		{"--addr 127.0.0.1:0 --token-file tokens", "tokens:3: got another first word, want the role read, env or admin"},
		{"--addr 127.0.0.1:0 --token-file short", "short:2: the token has 6 characters, want at least 16"},
		{"--addr 127.0.0.1:0 --token-file shared",
			"shared: everybody on this machine may write it (mode 0666)|want mode 0600"},
		{"--addr 127.0.0.1:0 --token-file empty", "empty: there is no token"},
		{"--addr 127.0.0.1:0 --token-file nowhere", "nowhere"},
		{"--addr 127.0.0.1:0 --tls-cert cert.pem", "--tls-cert|key"},
		{"--addr 127.0.0.1:0 --tls-cert empty --tls-key key.pem", "empty"},
		{"--addr 127.0.0.1:0 --tls-cert cert.pem --tls-key nowhere", "nowhere"},
		{"--addr 127.0.0.1:0 --client-ca cert.pem", "--client-ca"},
		{"--addr 127.0.0.1:0 --trace-root nowhere", "trace root nowhere"},
		{"--addr 127.0.0.1:0 --trace-root tokens", "trace root tokens: this is no folder"},
		{"--addr 127.0.0.1:0 --own-files", "--own-files lets clients read every file of yours; want --token-file FILE"},
		{"--addr 0.0.0.0:0 --own-files --token-file good", "want --addr 127.0.0.1:PORT"},
		{"--addr 127.0.0.1:0 --own-files --token-file good --trace-root .", "--trace-root does not go with --own-files"},
		{"--addr 127.0.0.1:0 --max-sessions 0", "--max-sessions: got 0"},
		{"--addr 127.0.0.1:0 --max-inflight x", `--max-inflight: got "x", want a whole number`},
		{"--addr 127.0.0.1:0 --idle-timeout 5", `--idle-timeout: got "5", want a time such as 90s`},
		{"--addr 127.0.0.1:0 --step-timeout -1s", "--step-timeout: got -1s"},
		{"--addr 127.0.0.1:0 --log-level loud", `--log-level: got "loud", want one of debug, info, warn, error`},
		{"--adr 127.0.0.1:0", "did you mean --addr?"},
		{"now", "flags only"},
	} {
		clitest.Wrong(t, append([]string{"serve"}, strings.Fields(c.args)...), strings.Split(c.want, "|")...)
	}
	// A port that another program uses is not the user's mistake.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nobody connected
	code, out, said := clitest.Run(t, "serve", "--addr", l.Addr().String())
	if code != cli.ExitFailed || out != "" || !strings.Contains(said, "in use") {
		t.Errorf("a taken port: exit code %d, printed %q, said %q", code, out, said)
	}
}

// started runs gymctl serve as a separate process and returns its address.
func started(t *testing.T, args ...string) (p *os.Process, stdin io.WriteCloser, addr string, wait func() int) {
	t.Helper()
	c := clitest.Program(t, append([]string{"serve", "--addr", "127.0.0.1:0", "--json"}, args...)...)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var d struct{ Addr string }
	if err := json.NewDecoder(out).Decode(&d); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.Wait() // its exit code is checked below
	}()
	t.Cleanup(func() {
		_ = c.Process.Kill() // it has already ended, unless the test failed
		<-ended
	})
	return c.Process, in, d.Addr, func() int {
		t.Helper()
		select {
		case <-ended:
		case <-time.After(clitest.Patience):
			t.Fatal("gymctl serve does not end")
		}
		return c.ProcessState.ExitCode()
	}
}

func TestServeEndsWithItsParentsPipe(t *testing.T) {
	_, in, addr, wait := started(t, "--until-eof")
	if code := get(t, &http.Client{Timeout: clitest.Patience}, "http://"+addr+"/readyz", ""); code != http.StatusOK {
		t.Errorf("readyz: %d", code)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if code := wait(); code != cli.ExitDone {
		t.Errorf("exit code %d, want 0", code)
	}
}

func TestASignalDrainsAndASecondEndsAtOnce(t *testing.T) {
	p, _, _, wait := started(t)
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := wait(); code != cli.ExitDone {
		t.Errorf("drained: exit code %d, want 0", code)
	}
	p, _, addr, wait := started(t, "--drain-timeout", "1h")
	ctx, cancel := context.WithTimeout(t.Context(), clitest.Patience)
	defer cancel()
	c, err := client.Dial(ctx, client.Config{URL: "ws://" + addr})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // the server is gone
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); !c.Draining(); time.Sleep(5 * time.Millisecond) {
		if time.Since(begun) > clitest.Patience {
			t.Fatal("the client is not told that the server drains")
		}
	}
	time.Sleep(1100 * time.Millisecond) // what comes within a second counts once
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := wait(); code == cli.ExitDone {
		t.Error("it drained, though told twice")
	}
}

// A client that plays a rule through gymctl eval --serve gets the row of that rule.
func TestEvalServesExternalPolicies(t *testing.T) {
	clitest.InRoom(t, false)
	clitest.Write(t, "tokens", "env s3cret-of-players\n")
	ctx, cancel := context.WithTimeout(t.Context(), 2*clitest.Patience)
	defer cancel()
	r, w := io.Pipe()
	var out bytes.Buffer
	code := make(chan int, 1)
	go func() {
		args := "eval -c tiny.yaml --policies sjf@slots,fifo+skip --serve 127.0.0.1:0 --external mine --token-file tokens --external-timeout 30s --json"
		c := clitest.Execute(ctx, strings.Fields(args), &out, w)
		_ = w.Close()
		code <- c
	}()
	addr := ""
	said := bufio.NewScanner(r)
	for addr == "" && said.Scan() {
		if m := regexp.MustCompile(`^gymctl: mine can connect to (127\.0\.0\.1:\d+)$`).FindStringSubmatch(said.Text()); m !=
			nil {
			addr = m[1]
		}
	}
	go func() { _, _ = io.Copy(io.Discard, r) }() // it ends with the program
	if addr == "" {
		t.Fatal("no address on standard error")
	}
	if err := playMine(ctx, addr); err != nil {
		t.Error(err)
	}
	if c := <-code; c != cli.ExitDone {
		t.Fatalf("exit code %d", c)
	}
	var d struct {
		Policies []struct {
			Name, Kind, Missing string
			Metrics             json.RawMessage
		}
	}
	if err := json.Unmarshal(out.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	if p := d.Policies; len(p) != 3 || p[0].Name != "mine" || p[0].Kind != "external" || p[1].Name != "sjf@slots" ||
		!bytes.Equal(p[0].Metrics, p[1].Metrics) {
		t.Errorf("got %s", out.String())
	}
}

func playMine(ctx context.Context, addr string) error {
	if _, err := client.Dial(ctx, client.Config{URL: "ws://" + addr, Token: "wrong"}); err == nil {
		return fmt.Errorf("a wrong token lets in")
	}
	c, err := client.Dial(ctx, client.Config{URL: "ws://" + addr, Token: "s3cret-of-players"})
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // the session ends with the server at the latest
	e, err := c.Open(ctx, "eval", map[string]any{"policy": "mine"})
	if err != nil {
		return err
	}
	n, ok := e.Meta().Get("windows").(int64)
	if !ok {
		return fmt.Errorf("meta %v", e.Meta())
	}
	ts := env.NewTimeStep(e.Spec())
	for range n {
		if err := e.Reset(ctx, env.Episode{Window: -1}, ts); err != nil {
			return err
		}
		for !ts.Kind.Last() {
			a, err := e.Call(ctx, "heuristic", map[string]any{"rule": "sjf"})
			if err != nil {
				return err
			}
			if err := e.Step(ctx, env.Action{Disc: []int32{int32(a.(int64))}}, ts); err != nil {
				return err
			}
		}
	}
	return e.Close()
}

func TestEvalServesOnlyWhoIsNamed(t *testing.T) {
	clitest.InRoom(t, false)
	for _, c := range []struct{ args, want string }{
		{"--external mine", "--external goes with --serve"},
		{"--external-timeout 1s", "--external-timeout goes with --serve"},
		{"--token-file x", "--token-file goes with --serve"},
		{"--serve 127.0.0.1:0", "--serve goes with --external"},
		{"--serve 127.0.0.1:0 --external a --external a", "--external: got|differ"},
		{"--serve 127.0.0.1:0 --external sjf@slots --policies sjf@slots", "sjf@slots is named twice"},
		{"--serve 127.0.0.1:0 --external a --external-timeout 0s", "--external-timeout: got 0s"},
		{"--serve 0.0.0.0:0 --external a", "can be reached from other machines"},
		{"--serve nowhere --external a", "HOST:PORT"},
		{"--serve 127.0.0.1:0 --external a --token-file nowhere", "nowhere"},
	} {
		clitest.Wrong(t, append([]string{"eval", "-c", "tiny.yaml"}, strings.Fields(c.args)...),
			strings.Split(c.want, "|")...)
	}
	// A policy that does not connect is reported as missing, and the others are compared.
	code, out, said := clitest.Run(t,
		strings.Fields(
			"eval -c tiny.yaml --policies sjf@slots --serve 127.0.0.1:0 --external nobody --external-timeout 20ms")...)
	if code != cli.ExitFailed || !strings.Contains(said, "nobody (finished 0 of 4 windows)") ||
		!strings.Contains(out, "nobody missing: finished 0 of 4 windows") || !strings.Contains(out, "sjf@slots") {
		t.Errorf("exit code %d, printed %q, said %q", code, out, said)
	}
}

// A program that starts an evaluation may be killed while the evaluation waits for it.
func TestEvalEndsWithItsParentsPipe(t *testing.T) {
	clitest.InRoom(t, false)
	c := clitest.Program(t,
		strings.Fields(
			"eval -c tiny.yaml --policies sjf@slots --serve 127.0.0.1:0 --external mine --external-timeout 1h --until-eof")...)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(said)
	for lines.Scan() && !strings.Contains(lines.Text(), "can connect to") {
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(clitest.Patience, func() { _ = c.Process.Kill() }) // the code then is another one
	defer late.Stop()
	_, _ = io.Copy(io.Discard, said)
	_ = c.Wait() // its exit code is looked at below
	if code := c.ProcessState.ExitCode(); code != cli.ExitInterrupted {
		t.Errorf("exit code %d, want %d", code, cli.ExitInterrupted)
	}
}
