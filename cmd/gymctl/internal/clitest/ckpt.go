package clitest

import (
	"io"
	"path/filepath"
	"strings"
	"testing"

	"clustergym/agents/checkpoint"
)

// part is a part of a checkpoint with fixed content.
type part struct{ name, content string }

func (p part) Name() string { return p.name }

func (p part) WriteTo(w io.Writer) (int64, error) {
	n, err := io.WriteString(w, p.content)
	return int64(n), err
}

func (p part) ReadFrom(r io.Reader) (int64, error) { return io.Copy(io.Discard, r) }

// Save creates the run directory run with checkpoints of two steps.
func Save(t *testing.T) {
	t.Helper()
	SaveSteps(t, "run", 1000, 500)
}

// SaveSteps saves checkpoints of so many steps into the folder of a run.
func SaveSteps(t *testing.T, run string, steps ...int64) {
	t.Helper()
	for _, step := range steps {
		m := checkpoint.Meta{Step: step, Env: "JobSelect-v1", Agent: "ppo", Seed: 3, Kernels: "portable"}
		dir := checkpoint.Dir(filepath.Join(run, "checkpoints"), step)
		if err := checkpoint.Save(dir, m, part{"weights.bin", "weights"}, part{"agent.bin", strings.Repeat("x", 500)}); err != nil {
			t.Fatal(err)
		}
	}
}
