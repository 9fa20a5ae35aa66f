package handle

import (
	"context"
	"log/slog"
	"sync/atomic"

	"clustergym/bridge/budget"
	"clustergym/bridge/wire"
	"clustergym/env"
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

	// Account is what the factory has reserved for Envs; the server adds what it keeps for them, and releases all of it
	// when they are closed. nil = nothing.
	Account *budget.Account
	// Leave is called once, when Envs are closed, after Account was released; nil = nothing to call.
	Leave func()
}

// Budgeted is a Factory that reserves what its environments take in the server's budget. It is an optional ability: the
// server calls UseBudget once, before anything is made.
type Budgeted interface {
	UseBudget(b *budget.Budget)
}

// Simulations is a Factory that also plays simulations whose scheduler is the client (`simulate`, `decide`). It is an
// optional ability, looked for at every hello.
type Simulations interface {
	// Simulate makes the simulations that o asks for and writes the whole reply to w, as Open does for environments. It
	// returns nil with every error; errors are those of Make.
	Simulate(ctx context.Context, lim Limits, o *Opening, w *wire.Writer) (Served, error)
}

// Served is what a session has open under a number: a Handle with environments, or simulations. One goroutine at a time
// calls its methods, in the order of the requests.
type Served interface {
	// Do answers request re, as Handle.Do describes.
	Do(ctx context.Context, op string, re uint32, req wire.Map, w *wire.Writer) error
	// Poison is called when a request was abandoned, so that the state is unknown.
	Poison()
	// Close releases everything, memory of the budget included.
	Close() error
	// Envs returns the number of environments, 0 for simulations.
	Envs() int
	// Stats returns the counts since the last call.
	Stats() Stats
	// ReplyBytes and RequestBytes return the bytes of the buffers that are reserved for a reply and for a request.
	ReplyBytes() int
	RequestBytes() int
	// Refuse returns the error of an opening for which need more bytes could not be reserved.
	Refuse(need int64) *wire.Error
}

var _ Served = (*Handle)(nil)

// Caller is an environment that answers more methods of `call` than those about tasks. It is an optional ability,
// looked for once, at open. Call must not keep args; its result must be a value that wire.Writer.Value can write.
type Caller interface {
	Call(method string, args wire.Map) (any, error)
}

// Adviser is an environment that tells which action a policy would take now, the method `advise` of `call`. It is an
// optional ability, looked for once, at open.
type Adviser interface {
	// Advises returns the names of the policies that can be asked for; empty = it is not allowed.
	Advises() []string
	// Advise returns the action of the policy that args name: an int64, or a []int64 of several factors. It must not keep
	// args nor change the environment, and it returns soon after ctx is cancelled.
	Advise(ctx context.Context, args wire.Map) (any, error)
}

// Limits are the server's limits that concern handles.
type Limits struct {
	MaxEnvs                 int // of a handle
	MaxFrameIn, MaxFrameOut int // bytes of a message
	Workers                 int // goroutines that step a handle's environments; 0 = chosen by the handle
}

// Opening is a request to open a handle.
type Opening struct {
	Req     wire.Map // valid until Open returns, like the frame of which it has views
	Re      uint32   // the request's id
	H       uint32   // the handle's number, for the reply
	Async   bool     // feature async was granted
	Share   bool     // feature shm was granted
	Foreign bool     // the session may restore snapshots that another server signed
	Key     *Keys    // the server's, sign snapshots
	Log     *slog.Logger

	Budget   *budget.Budget // from which the handle's memory is reserved; nil = there is no limit
	Replies  int            // buffers of replies, and of requests, for which the server reserves memory when the handle is
	Requests int            // open; an open for which there is no memory says how much is needed with them
	Steppers *atomic.Int32  // counts the steps under way in the whole server; nil = they are not counted
}

// Stats holds counts for the metrics.
type Stats struct{ Steps, Resets, Episodes, Advice uint64 }
