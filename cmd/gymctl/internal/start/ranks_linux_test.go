package start_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
	"clustergym/internal/raced"
)

// A rank whose network is gone is lost after the timeout, on both sides of the cut. Its machine is a network namespace
// here.
func TestANetworkIsCut(t *testing.T) {
	if raced.On || testing.Short() {
		t.Skip("trains for seconds")
	}
	if os.Getuid() != 0 {
		t.Skip("network namespaces need root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("network namespaces need ip (iproute2)")
	}
	ip := func(args ...string) error {
		out, err := exec.Command("ip", args...).CombinedOutput() //nolint:gosec // this test's
		if err != nil {
			return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
		}
		return nil
	}
	name := fmt.Sprintf("gym%d", os.Getpid()%100000)
	here, there := name+"a", name+"b"
	for _, ns := range []string{here, there} {
		if err := ip("netns", "add", ns); err != nil {
			t.Skipf("no network namespaces here: %v", err)
		}
		t.Cleanup(func() { _ = ip("netns", "del", ns) })
	}
	for _, args := range [][]string{
		{"link", "add", "v0", "netns", here, "type", "veth", "peer", "name", "v1", "netns", there},
		{"-n", here, "addr", "add", "10.211.7.1/24", "dev", "v0"}, {"-n", there, "addr", "add", "10.211.7.2/24", "dev", "v1"},
		{"-n", here, "link", "set", "v0", "up"}, {"-n", there, "link", "set", "v1", "up"},
		{"-n", here, "link", "set", "lo", "up"}, {"-n", there, "link", "set", "lo", "up"},
	} {
		if err := ip(args...); err != nil {
			t.Skipf("no network namespaces here: %v", err)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	at := "10.211.7.1:7788"
	rank := func(k int, ns string) *clitest.RankProcess {
		args := append(clitest.SmallTraining(3), "--set", "train.steps=100000000", "--run-dir", "run", "--token-file",
			"token", "--rank-timeout", "1s", "--workers", "1",
			"--world", "3", "--rank", fmt.Sprint(k), "--rendezvous", at)
		return clitest.BeginProgram(t, dir, nil, "ip", append([]string{"netns", "exec", ns, os.Args[0], "train"}, args...)...)
	}
	ranks := []*clitest.RankProcess{rank(0, here), rank(1, here), rank(2, there)}
	ranks[0].Await(t, "validation: mean")
	if err := ip("-n", here, "link", "set", "v0", "down"); err != nil {
		t.Fatal(err)
	}
	for k, want := range []string{"rank 2 of 3 is lost: nothing was heard from it for 1s",
		"rank 2 of 3 is lost: nothing was heard from it for 1s", " of 3 is lost: nothing was heard from it for 1s"} {
		ranks[k].End(t, fmt.Sprintf("rank %d", k), cli.ExitFailed, want)
	}
}
