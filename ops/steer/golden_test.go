package steer_test

import (
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clustergym/live/livetest"
	"clustergym/ops/steer"
)

var update = flag.Bool("update", false, "rewrite testdata")

// The log of steer keeps its bytes, whatever the mode and the policy: people keep it, and other programs read it. Here
// the clock is the cluster's, so that a log has no times of this machine.
func TestLogsKeepTheirBytes(t *testing.T) {
	var lines []string
	for _, x := range []struct{ mode, policy string }{
		{steer.Shadow, "sjf+skip"}, {steer.Shadow, "sjf@slots"}, {steer.Rank, "sjf+skip"}, {steer.Rank, "sjf@slots"},
		{steer.Gate, "sjf+skip"}, {steer.Gate, "sjf@slots"}, {steer.Gate, "rollout:sjf+skip"},
	} {
		c := livetest.New(livetest.Machines(2, 8)...)
		queue(c, 30)
		c.Advance(5 * time.Minute)
		cfg := moved(c, x.mode, x.policy, 40)
		file := filepath.Join(t.TempDir(), "log")
		var err error
		if cfg.Log, err = steer.OpenLog(file, 1<<30, 1); err != nil {
			t.Fatal(err)
		}
		wait := cfg.Wait
		cfg.Wait = func(ctx context.Context, d time.Duration) error {
			cfg.Log.Flush() // a moved clock is faster than a disk
			return wait(ctx, d)
		}
		if err := steer.Run(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		if err := cfg.Log.Close(); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines,
			fmt.Sprintf("%s %s %d lines %x", x.mode, x.policy, strings.Count(string(b), "\n"), sha256.Sum256(b)))
	}
	golden := filepath.Join("testdata", "logs.txt")
	got := strings.Join(lines, "\n") + "\n"
	if *update {
		if err := os.MkdirAll("testdata", 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the logs are\n%s\nand %s has (-update rewrites)\n%s", got, golden, want)
	}
}
