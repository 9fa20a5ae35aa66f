package server

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"

	"clustergym/env"
	"clustergym/env/bridge/wire"
)

// Factory makes environments by id. Safe for concurrent use.
type Factory interface {
	// List is what /v1/envs shows and `open` accepts, sorted by id.
	List() []Listing
	// Make returns n independent environments of one Spec. kwargs are as decoded and must not be kept: their byte
	// slices and arrays are views of a buffer that is used again. A *wire.Error (unknown_env, bad_kwargs) is the
	// client's mistake and is sent to it; any other error is the server's and is only logged in full.
	Make(ctx context.Context, id string, kwargs wire.Map, n int) (*Made, error)
}

// Listing describes one kind of environment that a Factory makes.
type Listing struct {
	ID     string
	Spec   env.Spec // with default kwargs
	Kwargs any      // what encoding/json can write: a list of {name, type, default, doc}
	SHA    string   // hash of the scenario with default kwargs, "" = none
}

// Made is what a Factory made.
type Made struct {
	Envs []env.Env // owned by the server from then on, which closes them
	SHA  string    // hash of everything that decides episodes: workload, cluster, configuration
	Meta any       // goes into the reply's `meta`: what wire.Writer.Value can write, nil = an empty map
}

// Caller is an environment that answers methods of `call` beyond tasks. It is an optional ability, looked for once, at
// open. args are as decoded and must not be kept; the result is what wire.Writer.Value can write.
type Caller interface {
	Call(method string, args wire.Map) (any, error)
}

// Role is what the holder of a token may do; roles add up.
type Role uint8

// The roles.
const (
	RoleRead  Role = 1 << iota // metrics
	RoleEnv                    // sessions
	RoleAdmin                  // everything: foreign snapshots and draining besides
)

// String is the name used in token files; several are joined by "+".
func (r Role) String() string {
	var names []string
	for i, name := range roleNames {
		if r&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, "+")
}

var roleNames = [...]string{"read", "env", "admin"}

// RoleNamed is the role of that name.
func RoleNamed(name string) (Role, bool) {
	for i, n := range roleNames {
		if n == name {
			return 1 << i, true
		}
	}
	return 0, false
}

// features are the abilities that client and server agreed on in the handshake.
type features uint8

const (
	featAsync features = 1 << iota // send, recv
	featResume
	featSnapshot // snapshot, restore
	featRender
	featShm // observations in memory that the client sees
)

var featureNames = [...]string{"async", "resume", "snapshot", "render", "shm"}

// opening is a request to open a handle.
type opening struct {
	req  wire.Map // valid until open returns, as its views of the frame are
	re   uint32   // the request's id
	h    uint32   // the handle's number, for the reply
	feat features // granted to the session
	role Role     // of the session
	key  []byte   // signs snapshots, the server's own
	log  *slog.Logger

	steppers *atomic.Int32 // counts the steps under way in the whole server; nil = nobody does
}

// handle is one open set of environments. Its methods are called by one goroutine at a time, in the order of the
// requests. The function that makes one is
//
//	func open(ctx context.Context, f Factory, cfg *Config, o *opening, w *wire.Writer) (handle, error)
//
// which writes the whole reply to w, like do.
type handle interface {
	// do answers request re: it writes the whole reply, beginning with w.Reply(re, op, …), to w, which is empty. req
	// is valid until it returns. An error makes an error reply of its own and what stands in w is dropped: a *wire.Error
	// is sent as it is, any other is logged and sent as `internal`. `close`, `ping` and `bye` never come here; send,
	// recv, snapshot, restore and render come only where their feature was granted.
	//
	// ctx ends when the request has taken longer than Config.StepTimeout or the session ends. A late result is
	// discarded, and poison is called before anything else.
	do(ctx context.Context, op string, re uint32, req wire.Map, w *wire.Writer) error
	// poison says that a request was abandoned half-way: every environment answers env_fault until it is reset.
	poison()
	// close closes the environments and waits for what they run.
	close() error
	// envs is their number.
	envs() int
	// stats are counts since the last call.
	stats() handleStats
}

// handleStats are counts for the metrics.
type handleStats struct{ steps, resets, episodes uint64 }
