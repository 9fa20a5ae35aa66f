package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// Dir returns the directory of the checkpoint of a step under root.
func Dir(root string, step int64) string { return filepath.Join(root, strconv.FormatInt(step, 10)) }

// List returns the steps of the finished checkpoints under root, in ascending order: directories named by a plain
// decimal number that hold a manifest. A root that does not exist has none.
func List(root string) ([]int64, error) {
	entries, err := os.ReadDir(root)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	var steps []int64
	for _, e := range entries {
		step, err := strconv.ParseInt(e.Name(), 10, 64)
		if err != nil || step < 0 || strconv.FormatInt(step, 10) != e.Name() {
			continue
		}
		if _, err := os.Stat(filepath.Join(root, e.Name(), ManifestName)); err == nil {
			steps = append(steps, step)
		}
	}
	slices.Sort(steps)
	return steps, nil
}

// Latest returns the directory of the checkpoint with the highest step under root, or ErrNone. It removes what a
// crash left behind, but nothing that a running process is writing.
func Latest(root string) (string, error) {
	if _, err := os.Stat(root); err == nil {
		if err := clean(root); err != nil {
			return "", err
		}
	}
	steps, err := List(root)
	if err != nil {
		return "", err
	}
	if len(steps) == 0 {
		return "", fmt.Errorf("%w in %s", ErrNone, root)
	}
	return Dir(root, steps[len(steps)-1]), nil
}

// Prune removes all checkpoints under root except the keep newest and those in spare, given as directories or as
// names under root, and returns the steps it removed. A crash on the way leaves whole checkpoints only.
func Prune(root string, keep int, spare ...string) (removed []int64, err error) {
	if keep < 0 {
		return nil, fmt.Errorf("checkpoint: keep %d of them, want 0 or more", keep)
	}
	steps, err := List(root)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(spare))
	for i, s := range spare {
		names[i] = filepath.Base(s)
	}
	for _, step := range steps[:max(0, len(steps)-keep)] {
		name := strconv.FormatInt(step, 10)
		if slices.Contains(names, name) {
			continue
		}
		gone := filepath.Join(root, gonePrefix+name)
		if err := os.RemoveAll(gone); err != nil {
			return removed, fmt.Errorf("checkpoint: %w", err)
		}
		if err := os.Rename(filepath.Join(root, name), gone); err != nil {
			return removed, fmt.Errorf("checkpoint: %w", err)
		}
		if err := os.RemoveAll(gone); err != nil {
			return removed, fmt.Errorf("checkpoint: %w", err)
		}
		removed = append(removed, step)
	}
	return removed, nil
}
