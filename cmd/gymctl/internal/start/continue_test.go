package start_test

import (
	"strings"
	"testing"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
)

// A launcher that starts a command again does not know how far it came: the same command begins a run and continues it.
func TestContinueBeginsARunOrContinuesIt(t *testing.T) {
	t.Chdir(t.TempDir())
	short := []string{
		"train", "-c", "cartpole-ppo", "--no-eval", "--workers", "1", "--set", "train.envs=4", "--set",
		"train.eval_every=2000",
		"--set", "train.checkpoint_every=500", "--set", "eval.validation=1", "--set", "ppo.steps=64", "--set", "train.keep=0",
	}
	with := func(more ...string) []string { return append(append([]string{}, short...), more...) }
	clitest.Must(t, with("--set", "train.steps=1000", "--run-dir", "twice", "--continue")...)
	code, _, said := clitest.Run(t, with("--set", "train.steps=2000", "--run-dir", "twice", "--continue")...)
	if code != cli.ExitDone || !strings.Contains(said, "resume    ") {
		t.Fatalf("exit code %d: %s", code, said)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{with("--continue"), "--continue "},
		{[]string{"train", "--resume", "twice", "--continue"}, "--continue "},
		{with("--run-dir", "twice", "--continue", "--seeds", "2"), "twice holds a single run"},
		{with("--run-dir", "twice", "--continue", "--set", "ppo.lr=0.5"),
			"ppo: the run in twice goes on with the one it began with"},
	} {
		if code, _, said := clitest.Run(t, c.args...); code != cli.ExitMistake || !strings.Contains(said, c.want) {
			t.Errorf("%v: exit code %d, said %q, want 2 and %q", c.args, code, said, c.want)
		}
	}
}
