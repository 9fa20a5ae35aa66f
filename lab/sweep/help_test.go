package sweep

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clustergym/internal/fault"
	"clustergym/lab/config"
)

// tinyProblem is a run on CartPole that takes a moment.
func tinyProblem() config.Config {
	c := config.For("CartPole-v1")
	c.Name = "tiny"
	c.PPO.Steps, c.PPO.Epochs, c.PPO.Minibatches = 32, 2, 2
	c.PPO.Network.Hidden = []int{16}
	c.Train.Steps, c.Train.Envs, c.Train.LogEvery, c.Train.EvalEvery, c.Train.CheckpointEvery, c.Train.Keep = 800, 4, 250,
		300, 400, 0
	c.Eval.Episodes, c.Eval.Validation = 6, 3
	return c
}

// weights returns the weights of the checkpoint at step 400 of the run in dir.
func weights(t *testing.T, dir string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "checkpoints/400/weights.safetensors"))
	if err != nil || len(b) == 0 {
		t.Fatalf("%d bytes of weights: %v", len(b), err)
	}
	return string(b)
}

// cancelled returns a context and the function that cancels it.
func cancelled(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return ctx, cancel
}

// refused fails the test unless err is a *fault.Mistake of one line that contains every one of want.
func refused(t *testing.T, what string, err error, want ...string) {
	t.Helper()
	if _, ok := errors.AsType[*fault.Mistake](err); !ok || strings.Contains(err.Error(), "\n") {
		t.Errorf("%s: %v (%T), want a *fault.Mistake of one line", what, err, err)
		return
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: %q does not say %q", what, err, w)
		}
	}
}
