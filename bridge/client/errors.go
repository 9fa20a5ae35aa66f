package client

import (
	"errors"
	"fmt"

	"github.com/gorilla/websocket"

	"clustergym/bridge/wire"
	"clustergym/env"
)

var (
	// ErrLost is returned by every call if the session is over and cannot be resumed: its environments are gone. The
	// error that wraps it says why.
	ErrLost = errors.New("client: the session is lost")
	// ErrPending is returned if an earlier call was cancelled after it had been sent, so that its outcome is not known.
	// Repeating that call returns its reply; a reset discards it. It wraps env.ErrResetNeeded.
	ErrPending = fmt.Errorf("client: an earlier call was given up on its way: repeat it, or reset: %w", env.ErrResetNeeded)
	// ErrReply is a reply that does not fit the request or the environment's spec.
	ErrReply = errors.New("client: the server's reply makes no sense")
)

// byCode has the errors that codes stand for, and byOp those of codes that say only that a request is wrong.
var (
	byCode = map[wire.Code]error{
		wire.BadAction: env.ErrIllegalAction, wire.NeedsReset: env.ErrResetNeeded, wire.SnapshotMismatch: env.ErrSnapshot,
		wire.Unsupported: errors.ErrUnsupported,
	}
	byOp = map[string]error{wire.OpReset: env.ErrEpisode, wire.OpRestore: env.ErrSnapshot}
)

// refused returns err, the server's refusal of op, as the error that package env demands. It wraps err too.
func refused(op string, err *wire.Error) error {
	if op == wire.OpReset && err.Code == wire.Unsupported {
		return fmt.Errorf("%w: %w", env.ErrEpisode, err) // a task where there are none
	}
	is := byCode[err.Code]
	switch err.Code {
	case wire.BadRequest, wire.BadKwargs, wire.BadSeed, wire.TooLarge, wire.Forbidden:
		is = byOp[op]
	}
	if is == nil {
		return fmt.Errorf("client: %s: %w", op, err)
	}
	return fmt.Errorf("%w: %s: %w", is, op, err)
}

// final reports whether err ends the session, so that connecting again is useless.
func final(err error) bool {
	var refused *refusal
	if errors.As(err, &refused) {
		return true
	}
	var c *websocket.CloseError
	if !errors.As(err, &c) {
		return false
	}
	switch c.Code {
	case websocket.CloseNoStatusReceived, websocket.CloseAbnormalClosure, wire.CloseInternal,
		websocket.CloseServiceRestart, websocket.CloseTryAgainLater, wire.CloseCapacity:
		return false
	}
	return true
}

// refusal is the error of a server that answers without giving a session.
type refusal struct{ why string }

func (r *refusal) Error() string { return r.why }
