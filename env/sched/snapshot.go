package sched

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"clustergym/env"
)

// A snapshot is the episode's name and the actions taken. The state follows from these alone, so restoring plays the
// episode again. That takes as long as the steps did, but a snapshot is small, cannot disagree with the code that reads
// it, and hostile bytes can do no more than play an episode.
//
// The last byte of the magic is the version. Version 2 names the part of the workload; version 1 did not.
const snapshotMagic = "CGS2"

// Record is an episode and the actions taken in it, which is all that a snapshot holds. Episode.Split is not empty.
type Record struct {
	Episode env.Episode
	Actions []int32 // by step, all factors of a step in a row
}

// Append appends the record to dst. factors is the number of discrete parts of an action.
func (r *Record) Append(dst []byte, factors int) []byte {
	dst = append(dst, snapshotMagic...)
	dst = binary.LittleEndian.AppendUint64(dst, r.Episode.Seed)
	dst = binary.AppendVarint(dst, int64(r.Episode.Window))
	dst = append(dst, byte(slices.Index(splits[:], r.Episode.Split)))
	dst = binary.AppendUvarint(dst, uint64(len(r.Actions)/factors))
	for _, a := range r.Actions {
		dst = binary.AppendUvarint(dst, uint64(a))
	}
	return dst
}

func (r *Record) clone() Record {
	c := Record{r.Episode, slices.Clone(r.Actions)}
	c.Episode.Task = slices.Clone(r.Episode.Task)
	return c
}

// play plays the record from its beginning.
func (r *Record) play(e env.Env, ts *env.TimeStep) error {
	ctx := context.Background()
	if err := e.Reset(ctx, r.Episode, ts); err != nil {
		return err
	}
	n := len(e.Spec().Action.Sizes)
	for i := 0; i < len(r.Actions); i += n {
		if err := e.Step(ctx, env.Action{Disc: r.Actions[i : i+n]}, ts); err != nil {
			return fmt.Errorf("step %d: %w", i/n, err)
		}
	}
	return nil
}

func parseRecord(src []byte, parts int) (r Record, err error) {
	var ep env.Episode
	var actions []int32
	short := fmt.Errorf("%d bytes are too few or of another kind", len(src))
	if old := "CGS1"; len(src) >= len(old) && string(src[:len(old)]) == old {
		return r, fmt.Errorf("it is of format %s, which does not name its part of the workload; want %s", old, snapshotMagic)
	}
	if len(src) < len(snapshotMagic)+8 || string(src[:len(snapshotMagic)]) != snapshotMagic {
		return r, short
	}
	src = src[len(snapshotMagic):]
	ep.Seed, src = binary.LittleEndian.Uint64(src), src[8:]
	window, n := binary.Varint(src)
	if n <= 0 {
		return r, short
	}
	if ep.Window, src = int(window), src[n:]; len(src) == 0 {
		return r, short
	}
	if int(src[0]) >= len(splits) {
		return r, fmt.Errorf("part %d of the workload, want 0 to %d", src[0], len(splits)-1)
	}
	ep.Split, src = splits[src[0]], src[1:]
	steps, n := binary.Uvarint(src)
	factors := uint64(parts)
	// Each action takes at least one byte, so a false length cannot cause a large allocation.
	if n <= 0 || steps > uint64(len(src)) || steps*factors > uint64(len(src)) {
		return r, short
	}
	src = src[n:]
	actions = make([]int32, 0, steps*factors)
	for range steps * factors {
		a, n := binary.Uvarint(src)
		if n <= 0 || a > 1<<30 {
			return r, short
		}
		actions, src = append(actions, int32(a)), src[n:]
	}
	if len(src) != 0 {
		return r, fmt.Errorf("%d bytes too many", len(src))
	}
	return Record{ep, actions}, nil
}

// AppendSnapshot implements env.Snapshotter.
func (e *Env) AppendSnapshot(dst []byte) ([]byte, error) { return e.shell.AppendSnapshot(dst) }

// RestoreSnapshot implements env.Snapshotter.
func (e *Env) RestoreSnapshot(src []byte, ts *env.TimeStep) error {
	return e.shell.RestoreSnapshot(e, src, ts)
}
