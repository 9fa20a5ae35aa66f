package operate_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
)

// Metrics that other machines can reach need a token, as pages and environments do.
func TestMetricsBeyondThisMachineWantAToken(t *testing.T) {
	inMemory(t, 2)
	dir := t.TempDir()
	const look = "0123456789abcdef-read"
	tokens, none := filepath.Join(dir, "tokens"), filepath.Join(dir, "none")
	for name, text := range map[string]string{tokens: "read " + look + "\nenv 0123456789abcdef-play\n",
		none: "env 0123456789abcdef-play\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const steer = "steer --cluster slurm --policy sjf+skip --cycles 1 "
	for args, want := range map[string]string{
		"--metrics 0.0.0.0:0": "--metrics-token-file FILE, or an address such as 127.0.0.1",
		"--metrics [::]:0":    "can be reached from other machines",
		"--metrics 0.0.0.0:0 --metrics-token-file " + none: "no token has role read or admin",
		"--metrics nowhere":                                       "want HOST:PORT",
		"--metrics-token-file " + tokens:                          "--metrics-token-file goes with --metrics",
		"--metrics 127.0.0.1:0 --metrics-token-file " + dir + "/": "is a directory",
	} {
		clitest.Wrong(t, strings.Fields(steer+args), want)
	}
	// A port that is free: steer does not print the one that it gets.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close() // steer takes it
	_, port, _ := net.SplitHostPort(addr)
	for listen, token := range map[string]string{"--metrics :" + port: "",
		"--metrics 0.0.0.0:" + port + " --metrics-token-file " + tokens: look} {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan int, 1)
		go func() {
			ended <- clitest.Execute(ctx,
				strings.Fields("steer --cluster slurm --policy sjf+skip --cycles 0 --every 1s "+listen), io.Discard, io.Discard)
		}()
		ask := func(token string) (code int, text string) {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/metrics", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			if token != "" {
				r.Header.Set("Authorization", "Bearer "+token)
			}
			resp, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				return 0, ""
			}
			b, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close() // it was read
			return resp.StatusCode, string(b)
		}
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			if code, text := ask(token); code == http.StatusOK && strings.Contains(text, "clustergym_steer_") {
				break
			} else if time.Now().After(end) {
				t.Fatalf("%s: %d %s", listen, code, text)
			}
		}
		for _, wrong := range []string{"", "0123456789abcdef-play", "guessed"} {
			if code, text := ask(wrong); token != "" &&
				(code != http.StatusUnauthorized || strings.Contains(text, "clustergym_steer_")) {
				t.Errorf("%s with %q: %d %s", listen, wrong, code, text)
			}
		}
		cancel()
		if code := <-ended; code != cli.ExitInterrupted && code != cli.ExitDone {
			t.Errorf("%s: code %d", listen, code)
		}
	}
}
