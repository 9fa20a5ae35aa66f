// Package wire is the byte format of the bridge, GBP/1. A message is a map with string keys, in msgpack or JSON; in
// msgpack, arrays are typed binary. docs/reference/wire.md is the normative description.
//
// The package reads input from untrusted peers. Decode checks every length against the bytes that are there before it
// allocates, and every refusal is an *Error that says what was wrong. The package knows env.Spec, but nothing of
// connections, sessions and environments: these belong to bridge/server and bridge/client.
package wire

import "math"

// Proto is the major version of the protocol.
const Proto = 1

// The websocket subprotocols.
const (
	SubMsgpack = "gbp.v1.msgpack"
	SubJSON    = "gbp.v1.json"
)

// The operations of requests and replies, and the events that a server sends on its own.
const (
	OpHello    = "hello"
	OpWelcome  = "welcome"
	OpOpen     = "open"
	OpReset    = "reset"
	OpStep     = "step"
	OpSend     = "send"
	OpRecv     = "recv"
	OpMasks    = "masks"
	OpCall     = "call"
	OpRender   = "render"
	OpSnapshot = "snapshot"
	OpRestore  = "restore"
	OpSimulate = "simulate"
	OpDecide   = "decide"
	OpClose    = "close"
	OpPing     = "ping"
	OpBye      = "bye"
	OpError    = "error"
	OpNotice   = "notice" // event
	OpDrain    = "drain"  // event
)

// Limits bound what Decode accepts.
type Limits struct {
	Depth  int // nesting, the top map being level 1
	String int // bytes of one string or key
	Values int // entries of all lists and maps together; 0 = as many as the bytes allow
}

func (l Limits) values() int {
	if l.Values <= 0 {
		return math.MaxInt
	}
	return l.Values
}

// DefaultLimits returns the limits of the protocol.
func DefaultLimits() Limits { return Limits{Depth: 16, String: 64 << 10, Values: 1 << 20} }
