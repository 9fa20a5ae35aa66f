package look_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
)

// What cannot be shown, and addresses that cannot be used, are refused before anything begins, in one sentence.
func TestUISaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nobody connects
	tokens := filepath.Join(dir, "tokens")
	if err := os.WriteFile(tokens, []byte("env 0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"ui " + filepath.Join(dir, "none"), cli.ExitMistake, "no such file or directory; want the folder of a run"},
		{"ui " + dir, cli.ExitMistake, "holds no run (config.yaml), sweep or experiment"},
		{"ui " + tokens, cli.ExitMistake, "it is no JSON object"},
		{"train -c cartpole-ppo --ui " + l.Addr().String(), cli.ExitFailed, "is in use by another program"},
		{"train -c cartpole-ppo --ui 0.0.0.0:0", cli.ExitMistake, "can be reached from other machines"},
		{"train -c cartpole-ppo --ui 0.0.0.0:0 --ui-token-file " + tokens, cli.ExitMistake,
			"no token has role read or admin"},
		{"train -c cartpole-ppo --ui nowhere", cli.ExitMistake, `want HOST:PORT`},
		{"train -c cartpole-ppo --ui-token-file " + tokens, cli.ExitMistake, "--ui-token-file goes with --ui"},
		{"train -c cartpole-ppo --mlflow here:5000", cli.ExitMistake, "--mlflow: got"},
		{"train -c cartpole-ppo --mlflow-experiment x", cli.ExitMistake, "--mlflow-experiment goes with --mlflow"},
		{"worker nats://127.0.0.1:1 --status --ui :0", cli.ExitMistake, "--ui does not go with --status"},
		{"eval --ui :0 --policies fifo,sjf", cli.ExitMistake, "--ui goes with --checkpoint"},
	} {
		args := strings.Fields(c.args)
		if args[0] == "train" {
			args = append(args, "--run-dir", filepath.Join(dir, "run"))
		}
		code, _, errs := clitest.Run(t, args...)
		if code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("%s: code %d, %q, want %d and %q", c.args, code, errs, c.code, c.want)
		}
		if _, err := os.Stat(filepath.Join(dir, "run")); err == nil {
			t.Fatalf("%s has begun a run", c.args)
		}
	}
}

// The examples do not end, and show folders that are not there; this test checks that their flags can be read.
func TestExamplesOfUICanBeRead(t *testing.T) {
	for line := range strings.Lines(clitest.Find(t, "ui").Example) {
		words := strings.Fields(line)
		c := clitest.Find(t, "ui")
		if err := c.ParseFlags(words[2:]); err != nil || c.Flags().NArg() == 0 {
			t.Errorf("%q: %v", line, err)
		}
	}
}

// The pages of a training are there while it goes on, and its metrics under the same address.
func TestTrainShowsPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	read, write := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- clitest.Execute(ctx,
			strings.Fields(
				"train -c cartpole-ppo --workers 1 --no-eval --set train.steps=100000000 --set train.log_every=1024 --ui :0 --run-dir "+dir), io.Discard, write)
		_ = write.Close() // of a pipe
	}()
	var said strings.Builder
	buf := make([]byte, 1<<12)
	for !strings.Contains(said.String(), "pages     http://127.0.0.1:") || !strings.Contains(said.String(), "step ") {
		n, err := read.Read(buf)
		if err != nil {
			t.Fatalf("it ends: %s", said.String())
		}
		said.Write(buf[:n])
	}
	go func() { _, _ = io.Copy(io.Discard, read) }() // it says more
	_, rest, _ := strings.Cut(said.String(), "pages     ")
	url, _, _ := strings.Cut(rest, "\n")
	for path, want := range map[string]string{"api/list": `"state":"running"`,
		"metrics": `clustergym_run_steps_target{agent="ppo",env="CartPole-v1",run="run"} 1e+08`} {
		r, err := http.Get(url + path) //nolint:noctx // of this machine
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r.Body)
		_ = r.Body.Close() // read to its end
		if err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s: error %v, no %s in %.400s", path, err, want, b)
		}
	}
	cancel()
	if code := <-ended; code != cli.ExitInterrupted {
		t.Errorf("code %d", code)
	}
}
