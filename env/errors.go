package env

import (
	"errors"

	"clustergym/internal/rng"
)

var (
	// ErrClosed is returned by every call after Close.
	ErrClosed = errors.New("env: closed")
	// ErrResetNeeded is returned by Step before the first Reset and after an episode has ended.
	ErrResetNeeded = errors.New("env: reset needed")
	// ErrIllegalAction is returned by Step for an action outside the space, or one that the mask forbids.
	ErrIllegalAction = errors.New("env: illegal action")
	// ErrEpisode is returned by Reset for an episode that the environment does not have: a window out of range, an
	// unknown split, or a task of the wrong length.
	ErrEpisode = errors.New("env: no such episode")
	// ErrSnapshot is returned by RestoreSnapshot for bytes that are not a snapshot of this environment.
	ErrSnapshot = errors.New("env: not a snapshot of this environment")
	// ErrFrame is returned by Paint for a picture that is not FrameWidth by FrameHeight pixels.
	ErrFrame = errors.New("env: a picture must begin at (0, 0) and have 640 by 480 pixels, as NewFrame makes it")
)

func episodeSeed(x, k uint64) uint64 { return rng.At(x, 0x657069736f6465, k) }
