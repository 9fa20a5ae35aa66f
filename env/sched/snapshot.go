package sched

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"clustergym/env"
)

// A snapshot is the episode's name and the actions taken: an episode follows from these alone, so restoring
// plays it again. That costs the time of the steps so far, but a snapshot is small, cannot disagree with the
// code that reads it, and hostile bytes can do no more than play an episode.
//
// The last byte of the magic is the version: 2 names the part of the workload, which 1 left to the environment.
const snapshotMagic = "CGS2"

// AppendSnapshot implements env.Snapshotter.
func (e *Env) AppendSnapshot(dst []byte) ([]byte, error) {
	if e.closed {
		return dst, env.ErrClosed
	}
	if !e.begun {
		return dst, env.ErrResetNeeded
	}
	dst = append(dst, snapshotMagic...)
	dst = binary.LittleEndian.AppendUint64(dst, e.ep.Seed)
	dst = binary.AppendVarint(dst, int64(e.ep.Window))
	dst = append(dst, byte(slices.Index(splits[:], e.ep.Split)))
	dst = binary.AppendUvarint(dst, uint64(e.steps))
	for _, a := range e.actions {
		dst = binary.AppendUvarint(dst, uint64(a))
	}
	return dst, nil
}

// RestoreSnapshot implements env.Snapshotter.
func (e *Env) RestoreSnapshot(src []byte, ts *env.TimeStep) error {
	if e.closed {
		return env.ErrClosed
	}
	ep, actions, err := e.parseSnapshot(src)
	if err != nil {
		return fmt.Errorf("%w: %v", env.ErrSnapshot, err)
	}
	own, ownActions, begun := e.ep, append([]int32(nil), e.actions...), e.begun
	out := env.NewTimeStep(e.spec)
	if err := e.replay(ep, actions, out); err != nil {
		// What was here before can be played again.
		if begun {
			if err := e.replay(own, ownActions, env.NewTimeStep(e.spec)); err != nil {
				return err
			}
		}
		return fmt.Errorf("%w: %v", env.ErrSnapshot, err)
	}
	ts.Kind, ts.Reward, ts.Elapsed = out.Kind, out.Reward, out.Elapsed
	copy(ts.Obs, out.Obs)
	copy(ts.Mask, out.Mask)
	copy(ts.Info, out.Info)
	return nil
}

func (e *Env) parseSnapshot(src []byte) (ep env.Episode, actions []int32, err error) {
	short := fmt.Errorf("%d bytes are too few or of another kind", len(src))
	if old := "CGS1"; len(src) >= len(old) && string(src[:len(old)]) == old {
		return ep, nil, fmt.Errorf("it is of format %s, which does not name its part of the workload; want %s", old, snapshotMagic)
	}
	if len(src) < len(snapshotMagic)+8 || string(src[:len(snapshotMagic)]) != snapshotMagic {
		return ep, nil, short
	}
	src = src[len(snapshotMagic):]
	ep.Seed, src = binary.LittleEndian.Uint64(src), src[8:]
	window, n := binary.Varint(src)
	if n <= 0 {
		return ep, nil, short
	}
	if ep.Window, src = int(window), src[n:]; len(src) == 0 {
		return ep, nil, short
	}
	if int(src[0]) >= len(splits) {
		return ep, nil, fmt.Errorf("part %d of the workload, want 0 to %d", src[0], len(splits)-1)
	}
	ep.Split, src = splits[src[0]], src[1:]
	steps, n := binary.Uvarint(src)
	factors := uint64(len(e.spec.Action.Sizes))
	// Each action takes a byte at least, so a length that lies cannot make us allocate.
	if n <= 0 || steps > uint64(len(src)) || steps*factors > uint64(len(src)) {
		return ep, nil, short
	}
	src = src[n:]
	actions = make([]int32, 0, steps*factors)
	for range steps * factors {
		a, n := binary.Uvarint(src)
		if n <= 0 || a > 1<<30 {
			return ep, nil, short
		}
		actions, src = append(actions, int32(a)), src[n:]
	}
	if len(src) != 0 {
		return ep, nil, fmt.Errorf("%d bytes too many", len(src))
	}
	return ep, actions, nil
}

// replay plays actions from the beginning of ep.
func (e *Env) replay(ep env.Episode, actions []int32, ts *env.TimeStep) error {
	ctx := context.Background()
	if err := e.Reset(ctx, ep, ts); err != nil {
		return err
	}
	n := len(e.spec.Action.Sizes)
	for i := 0; i < len(actions); i += n {
		if err := e.Step(ctx, env.Action{Disc: actions[i : i+n]}, ts); err != nil {
			return fmt.Errorf("step %d: %w", i/n, err)
		}
	}
	return nil
}
