package run

import (
	"path/filepath"
	"slices"
	"testing"

	"clustergym/agents/checkpoint"
	"clustergym/agents/ddqn"
	"clustergym/lab/arena"
)

// Thinned checkpoints play as before, and the last one can still be resumed.
func TestThin(t *testing.T) {
	cfg := tinyRun("ddqn")
	dir := t.TempDir()
	trainTo(t, cfg, dir, TrainOptions{NoEval: true})
	root := filepath.Join(dir, "tiny", "checkpoints")
	steps, err := checkpoint.List(root)
	if err != nil || len(steps) < 3 {
		t.Fatalf("checkpoints %v, %v", steps, err)
	}
	play := func() (all []string) {
		for _, step := range steps[:2] {
			_, text := evaluate(t, cfg, arena.EvalOptions{Checkpoints: []string{checkpoint.Dir(root, step)}})
			all = append(all, text)
		}
		return all
	}
	before := play()
	if err := Thin(root); err != nil {
		t.Fatal(err)
	}
	for i, step := range steps {
		m, err := checkpoint.Verify(checkpoint.Dir(root, step))
		if err != nil {
			t.Fatal(err)
		}
		if has := slices.ContainsFunc(m.Parts, func(f checkpoint.File) bool { return f.Name == ddqn.ReplayPart }); has !=
			(i == len(steps)-1) {
			t.Errorf("checkpoint %d of %d has a replay: %v", i+1, len(steps), has)
		}
	}
	if got := play(); !slices.Equal(got, before) {
		t.Error("thinned checkpoints play otherwise")
	}
	trainTo(t, cfg, dir, TrainOptions{NoEval: true, Resume: true})
}
