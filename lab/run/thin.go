package run

import (
	"clustergym/agents/checkpoint"
	"clustergym/agents/ddqn"
)

// Thin drops the replays of all checkpoints in root but the last, which may be hundreds of megabytes each: acting needs
// none of them, and resuming only the last.
func Thin(root string) error {
	steps, err := checkpoint.List(root)
	if err != nil {
		return err
	}
	for _, step := range steps[:max(0, len(steps)-1)] {
		if err := checkpoint.Drop(checkpoint.Dir(root, step), ddqn.ReplayPart); err != nil {
			return err
		}
	}
	return nil
}
