package handle

import (
	"context"
	"errors"
	"image"
	"log/slog"
	"sync/atomic"

	"clustergym/bridge/wire"
	"clustergym/env"
	"clustergym/env/vec"
)

// Handle is one open set of environments. One goroutine at a time may call its methods, in the order of the requests.
//
// It is a vec.Vec with what the protocol adds: how replies look, which rows may be stepped, what became of masked
// actions, returns and lengths of episodes.
type Handle struct {
	lim  Limits
	log  *slog.Logger
	id   string // the environment's
	spec env.Spec
	choices
	origin  [32]byte // hash of environment and scenario; snapshots fit only handles with the same one
	keys    *Keys    // sign snapshots
	foreign bool     // restores snapshots that another server signed

	v      *vec.Vec
	guards []*guard
	rows   []rowState
	all    []int
	b      *env.Batch   // the current time step of every row
	region *region      // holds b.Obs; nil = b.Obs is ordinary memory
	a      *env.Actions // of the current request
	pace   pace
	// steppers counts the steps under way in the whole server; nil = they are not counted.
	steppers *atomic.Int32
	shape    shape
	encoding wire.Encoding
	books    books // what is reserved for it
	stray    bool  // the rows that are out belong to abandoned requests

	canvas *image.RGBA // nil until a picture is asked for

	count Stats

	// Reused between requests.
	ids    []int
	bad    []badAction
	failed []failure
}

// rowState is what a handle keeps for one environment besides its time step.
type rowState struct {
	seeded bool    // its stream of episodes has a seed that the client chose or was told
	begun  bool    // it has been reset
	fault  bool    // it answers env_fault until it is reset
	drawn  bool    // the current request drew its seed
	named  bool    // the current request's options name its episode
	forced bool    // the current request's action was masked and has been replaced
	ret    float64 // sum of the current episode's rewards so far
	length int64
}

// policy is what happens to masked actions.
type policy uint8

const (
	invalidNoop policy = iota
	invalidPenalty
	invalidError
)

// choices holds the fields of open that decide how the handle behaves.
type choices struct {
	mode     vec.Autoreset
	view     string // wire.ViewDict or wire.ViewFlat
	maskInfo bool
	maskObs  bool
	invalid  policy
	penalty  float64
	episode  bool // info has returns and lengths of ended episodes
	notes    bool // info has invalid and seed
	columns  []infoColumn
	batch    int // rows of a recv
	render   string
	shm      bool // observations go to shared memory
}

// Envs returns the number of environments.
func (h *Handle) Envs() int { return len(h.rows) }

// Stats returns the counts since the last call.
func (h *Handle) Stats() Stats {
	s := h.count
	h.count = Stats{}
	return s
}

// Close closes the environments and waits for their goroutines. Then it releases their memory.
func (h *Handle) Close() error {
	err := h.v.Close()
	if h.region != nil { // Close has ended all steps, so the region is no longer written
		h.b.Obs = nil
		h.region.close()
	}
	h.settleBooks()
	return err
}

// Poison makes every row answer env_fault until it is reset: a request was abandoned, so the state of its environments
// is unknown. Rows that are out stay out until the first reset fetches them (fetch).
func (h *Handle) Poison() {
	h.stray = h.v.Pending() > 0
	for i := range h.rows {
		h.rows[i].fault = true
	}
}

// Do answers request re: it writes the whole reply, beginning with w.Reply(re, op, …), to w, which is empty. req is
// valid until it returns. If it returns an error, the contents of w are to be dropped: a *wire.Error is for the client,
// any other error is the server's. The server answers `close`, `ping` and `bye` itself, and passes send, recv,
// snapshot, restore and render only if their feature was granted.
//
// If Do does not return in time, the server discards its late result, and calls Poison before anything else.
func (h *Handle) Do(ctx context.Context, op string, re uint32, req wire.Map, w *wire.Writer) (err error) {
	defer survive(&err)
	err = h.dispatch(ctx, op, re, req, w)
	if err == nil && w.Len() > h.lim.MaxFrameOut {
		// Replies to steps are never too large, since open has checked that. Rendered text, results of calls and pictures in
		// JSON can be.
		err = wire.Errorf(wire.TooLarge, "the reply has %d bytes, want at most %d: ask for fewer environments at once",
			w.Len(), h.lim.MaxFrameOut)
	}
	return err
}

func (h *Handle) dispatch(ctx context.Context, op string, re uint32, req wire.Map, w *wire.Writer) error {
	if op == wire.OpRecv {
		return h.doRecv(ctx, re, w)
	}
	rows, named, err := h.asked(req, op == wire.OpReset)
	if err != nil {
		return err
	}
	q := request{re, req, rows, named}
	switch op {
	case wire.OpReset:
		return h.doReset(ctx, q, w)
	case wire.OpStep:
		return h.doStep(ctx, q, w)
	case wire.OpSend:
		return h.doSend(q, w)
	case wire.OpMasks:
		return h.doMasks(q, w)
	case wire.OpCall:
		return h.doCall(ctx, q, w)
	case wire.OpRender:
		return h.doRender(q, w)
	case wire.OpSnapshot:
		return h.doSnapshot(q, w)
	case wire.OpRestore:
		return h.doRestore(ctx, q, w)
	}
	return wire.Errorf(wire.UnknownOp, "a handle has no operation %.40q", op)
}

// request is a request about rows; named says that it names them, so that the reply does too.
type request struct {
	re    uint32 // its id
	req   wire.Map
	rows  []int
	named bool
}

// asked returns the rows that a request names by `ids`, or, if which is set, by `which`; all rows if it names none.
// named says that the request named them, so that the reply does too.
func (h *Handle) asked(req wire.Map, which bool) (rows []int, named bool, err *wire.Error) {
	h.ids = h.ids[:0]
	ids := req.Get("ids")
	if which {
		if sel := req.Get("which"); sel != nil {
			if ids != nil {
				return nil, false, wire.Errorf(wire.BadRequest, "fields ids and which, want one of them")
			}
			return h.which(sel)
		}
	}
	if ids == nil {
		return h.all, false, nil
	}
	n := len(h.rows)
	list, err := req.Ints("ids")
	if err != nil {
		return nil, false, err
	}
	if len(list) == 0 {
		return nil, false, wire.Errorf(wire.BadRequest, "field ids is empty, want at least one index; leave it out for all")
	}
	if len(list) > n {
		return nil, false, wire.Errorf(wire.BadRequest, "field ids has %d entries, want different ones of %d environments",
			len(list), n)
	}
	for _, x := range list {
		if x < 0 || x >= int64(n) {
			return nil, false, wire.Errorf(wire.BadRequest, "field ids names environment %d, want 0 to %d", x, n-1)
		}
		i := int(x)
		if h.shape.mark[i] {
			err = wire.Errorf(wire.BadRequest, "field ids names environment %d twice", i)
			break
		}
		h.shape.mark[i] = true
		h.ids = append(h.ids, i)
	}
	for _, i := range h.ids {
		h.shape.mark[i] = false
	}
	return h.ids, true, err
}

// which returns the rows selected by one boolean for each row.
func (h *Handle) which(sel any) (rows []int, named bool, err *wire.Error) {
	n := len(h.rows)
	wrong := wire.Errorf(wire.BadRequest,
		"field which, want a list or array of %d booleans, one for each environment, one of them true", n)
	switch sel := sel.(type) {
	case wire.Array:
		if sel.DType != wire.Bool || len(sel.Shape) != 1 || sel.Len() != n {
			return nil, false, wrong
		}
		for i := range n {
			if sel.Data[i] != 0 {
				h.ids = append(h.ids, i)
			}
		}
	case []any:
		if len(sel) != n {
			return nil, false, wrong
		}
		for i, x := range sel {
			yes, ok := x.(bool)
			if !ok {
				return nil, false, wrong
			}
			if yes {
				h.ids = append(h.ids, i)
			}
		}
	default:
		return nil, false, wrong
	}
	if len(h.ids) == 0 {
		return nil, false, wrong
	}
	return h.ids, true, nil
}

// ready returns an error unless all rows may be read or, with step, stepped: none has failed, none is out, all have
// been reset, and to be stepped none has ended without autoreset.
func (h *Handle) ready(rows []int, step bool) *wire.Error {
	if h.v.Pending() > 0 {
		if err := h.failedOf(rows); err != nil {
			return err
		}
		if err := h.home(rows); err != nil {
			return err
		}
	}
	for _, i := range rows {
		r := &h.rows[i]
		if r.fault || !r.begun || step && h.mode == vec.Disabled && h.b.Kind[i].Last() {
			return h.notReady(rows, step)
		}
	}
	return nil
}

func (h *Handle) notReady(rows []int, step bool) *wire.Error {
	if err := h.failedOf(rows); err != nil {
		return err
	}
	return without(rows, wire.NeedsReset, "an environment has no episode under way", "a reset of it", func(i int) bool {
		return !h.rows[i].begun || step && h.mode == vec.Disabled && h.b.Kind[i].Last()
	})
}

// without returns the error of a request that is not done because of those of rows that is selects, nil if there are
// none.
func without(rows []int, code wire.Code, msg, want string, is func(i int) bool) *wire.Error {
	var some []int
	for _, i := range rows {
		if is(i) {
			some = append(some, i)
		}
	}
	if some == nil {
		return nil
	}
	return &wire.Error{Code: code, Msg: msg + "; nothing was done", Env: some, Want: want}
}

// failedOf returns the error for those of rows that have failed, nil if none has.
func (h *Handle) failedOf(rows []int) *wire.Error {
	return without(rows, wire.EnvFault, "an environment has failed, or a call for it was abandoned", "a reset of it",
		func(i int) bool { return h.rows[i].fault })
}

// home returns an error that lists those of rows that are out, nil if none is.
func (h *Handle) home(rows []int) *wire.Error {
	if h.v.Pending() == 0 {
		return nil
	}
	return without(rows, wire.BadRequest, "an environment has been sent an action whose result was not received",
		"a recv first", h.v.Out)
}

// failure is a row that failed in the current request.
type failure struct {
	row  int
	code wire.Code
	msg  string
}

// settle sorts the errors of a step or reset. It returns nil if err is nil or if only environments failed, and lists
// their rows in h.failed. The end of a context is returned as it is.
func (h *Handle) settle(err error) error {
	h.failed = h.failed[:0]
	if err == nil {
		return nil
	}
	list := flat(err)
	if len(list) == 0 {
		return err
	}
	for _, re := range list {
		if errors.Is(re.Err, context.DeadlineExceeded) || errors.Is(re.Err, context.Canceled) {
			return re.Err
		}
	}
	for _, re := range list {
		h.failed = append(h.failed, h.failure(re))
	}
	return nil
}

// failure returns what the client is told about a row's error. If the environment refuses an action that its mask
// allows, the row is unchanged. After any other error the row needs a reset, and its row of the reply is blank.
func (h *Handle) failure(re *vec.RowError) failure {
	i := re.Row
	if errors.Is(re.Err, env.ErrIllegalAction) {
		h.b.Kind[i], h.b.Reward[i], h.b.Elapsed[i] = env.Mid, 0, 0
		return failure{i, wire.BadAction, re.Err.Error()}
	}
	h.rows[i].fault = true
	h.v.Drop(i)
	h.blank(i)
	var p *panicked
	if errors.As(re.Err, &p) {
		return failure{i, wire.EnvFault, p.Error()}
	}
	h.log.Error("an environment failed", "env", h.id, "index", i, "error", re.Err)
	return failure{i, wire.EnvFault, "the environment failed: " + re.Err.Error()}
}

// blank clears row i of the batch.
func (h *Handle) blank(i int) {
	b, o, m, n := h.b, h.shape.obs, h.shape.mask, len(h.spec.Info)
	b.Kind[i], b.Reward[i], b.Elapsed[i] = env.Mid, 0, 0
	clear(b.Obs[i*o : (i+1)*o])
	clear(b.Mask[i*m : (i+1)*m])
	for k := range n {
		b.Info[i*n+k] = nan
	}
}

// allFailed returns the error of a request if all of its k rows failed, else nil.
func (h *Handle) allFailed(k int) error {
	if len(h.failed) < k {
		return nil
	}
	e := &wire.Error{Code: h.failed[0].code, Msg: h.failed[0].msg}
	for _, f := range h.failed {
		e.Env = append(e.Env, f.row)
	}
	if e.Code == wire.EnvFault {
		e.Want = "a reset of it"
	}
	return e
}

// flat returns the failures of rows that vec has joined in err. It is empty if err is another error.
func flat(err error) []*vec.RowError {
	switch e := err.(type) {
	case *vec.RowError:
		return []*vec.RowError{e}
	case interface{ Unwrap() []error }:
		var list []*vec.RowError
		for _, one := range e.Unwrap() {
			list = append(list, flat(one)...)
		}
		return list
	}
	return nil
}
