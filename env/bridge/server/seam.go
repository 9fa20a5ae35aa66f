package server

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"

	"clustergym/env"
	"clustergym/env/bridge/wire"
)

// Factory makes environments by id. It must be safe for concurrent use.
type Factory interface {
	// List returns what /v1/envs shows and `open` accepts, sorted by id.
	List() []Listing
	// Make returns n independent environments of one Spec. It must not keep kwargs, whose byte slices and arrays are
	// views of a buffer that is reused. A *wire.Error (unknown_env, bad_kwargs) is the client's mistake and is sent to
	// it; any other error is the server's, and only the log has its text.
	Make(ctx context.Context, id string, kwargs wire.Map, n int) (*Made, error)
}

// Listing describes one kind of environment that a Factory makes.
type Listing struct {
	ID     string
	Spec   env.Spec // with default kwargs
	Kwargs any      // a list of {name, type, default, doc}, in any form that encoding/json can write
	SHA    string   // hash of the scenario with default kwargs, "" = none
}

// Made holds what a Factory has made.
type Made struct {
	Envs []env.Env // the server owns and closes them
	SHA  string    // hash of everything that decides episodes: workload, cluster, configuration
	Meta any       // added to the reply's `meta`; a map that wire.Writer.Value can write, nil = nothing
}

// Caller is an environment that answers more methods of `call` than those about tasks. It is an optional ability, looked
// for once, at open. Call must not keep args; its result must be a value that wire.Writer.Value can write.
type Caller interface {
	Call(method string, args wire.Map) (any, error)
}

// Role is what the holder of a token may do. Roles are bits that add up.
type Role uint8

// The roles.
const (
	RoleRead  Role = 1 << iota // metrics
	RoleEnv                    // sessions
	RoleAdmin                  // everything, also foreign snapshots and draining
)

// String returns the name used in token files. Several names are joined by "+".
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

// RoleNamed returns the role called name, and whether there is one.
func RoleNamed(name string) (Role, bool) {
	for i, n := range roleNames {
		if n == name {
			return 1 << i, true
		}
	}
	return 0, false
}

// features are the abilities on which client and server have agreed in the handshake.
type features uint8

const (
	featAsync features = 1 << iota // send, recv
	featResume
	featSnapshot // snapshot, restore
	featRender
	featShm // observations in shared memory
)

var featureNames = [...]string{"async", "resume", "snapshot", "render", "shm"}

// opening is a request to open a handle.
type opening struct {
	req  wire.Map // valid until open returns, like the frame of which it has views
	re   uint32   // the request's id
	h    uint32   // the handle's number, for the reply
	feat features // granted to the session
	role Role     // of the session
	key  []byte   // the server's, signs snapshots
	log  *slog.Logger

	steppers *atomic.Int32 // counts the steps under way in the whole server; nil = they are not counted
}

// handle is one open set of environments. One goroutine at a time calls its methods, in the order of the requests. It is
// made by
//
//	func open(ctx context.Context, f Factory, cfg *Config, o *opening, w *wire.Writer) (handle, error)
//
// which writes the whole reply to w, as do does.
type handle interface {
	// do answers request re: it writes the whole reply, beginning with w.Reply(re, op, …), to w, which is empty. req
	// is valid until it returns. If it returns an error, the contents of w are dropped: a *wire.Error is sent as it is,
	// any other error is logged and sent as `internal`. The caller answers `close`, `ping` and `bye` itself, and passes
	// send, recv, snapshot, restore and render only if their feature was granted.
	//
	// ctx ends when the request has taken longer than Config.StepTimeout or the session ends. A late result is
	// discarded, and poison is called before anything else.
	do(ctx context.Context, op string, re uint32, req wire.Map, w *wire.Writer) error
	// poison makes every environment answer env_fault until it is reset, because a request was abandoned half-way.
	poison()
	// close closes the environments and waits for their goroutines.
	close() error
	// envs returns the number of environments.
	envs() int
	// stats returns the counts since the last call.
	stats() handleStats
}

// handleStats holds counts for the metrics.
type handleStats struct{ steps, resets, episodes uint64 }
