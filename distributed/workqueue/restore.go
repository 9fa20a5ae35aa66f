package workqueue

import (
	"context"
	"errors"
)

// Restore unpacks into dir, which it makes, the folder that a worker saved of a task, for a task that then runs on this
// machine. ok is false if no worker saved anything.
func (c *Coordinator) Restore(ctx context.Context, digest, dir string) (ok bool, err error) {
	err = c.store.folder(ctx, stateName(digest), dir, "")
	if errors.Is(err, errGone) {
		return false, nil
	}
	return err == nil, err
}
