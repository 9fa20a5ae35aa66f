package handle

import (
	"fmt"

	"clustergym/bridge/budget"
	"clustergym/bridge/wire"
	"clustergym/env"
	"clustergym/env/vec"
	"clustergym/internal/plain"
)

// A handle reserves all the memory that it can ever take when it is opened, so that no later request fails for lack of
// it: the environments with what they grow to, the batches of their time steps, and, through its server, the buffers of
// its replies and of the requests that wait for it.

// books is what is reserved for a handle.
type books struct {
	n       int // environments
	account *budget.Account
	leave   func() // see Made.Leave
}

// keepBooks takes over what the factory has reserved for made.
func (h *Handle) keepBooks(made *Made, b *budget.Budget) {
	h.books = books{n: len(made.Envs), account: made.Account, leave: made.Leave}
	if h.books.account == nil {
		h.books.account = b.Account()
	}
}

// settleBooks releases everything. Only the first call counts.
func (h *Handle) settleBooks() {
	k := h.books
	h.books.leave = nil
	if k.account != nil {
		k.account.Release()
	}
	if k.leave != nil {
		k.leave()
	}
}

// discard releases what the factory has reserved for environments that are not used.
func discard(made *Made) {
	h := &Handle{}
	h.keepBooks(made, nil)
	h.settleBooks()
}

// perEnv bounds what a handle keeps for an environment besides its time steps: its guard, its row's state, its task.
const perEnv = 3 << 9

// reserve reserves what the handle keeps for its n environments, of which e is one.
func (h *Handle) reserve(e env.Env, n int, o *Opening) error {
	s := &h.spec
	row := 4*s.ObsLen() + s.MaskLen() + 8*len(s.Info) + 3*8 // of one time step
	rows := 2                                               // a batch has final rows too
	if h.mode == vec.SameStep {
		rows++ // final time steps, until they are gathered
	}
	if o.Async {
		rows += 2 // the batch that is stepped in the background
	}
	if _, ok := e.(env.Snapshotter); ok {
		rows += 2 // the batch in which a snapshot is restored
	}
	actions := 2 * 4 * (len(s.Action.Sizes) + len(s.Action.Low))
	need := int64(n) * int64(rows*row+actions+perEnv)
	if h.render == renderPixels {
		need += canvasBytes
	}
	if h.books.account.Reserve(budget.Environments, need) {
		return nil
	}
	return h.Refuse(need + int64(o.Replies)*int64(h.replyBytes(n)) + int64(o.Requests)*int64(h.requestBytes(n)))
}

// Refuse returns the error of an open for which need more bytes could not be reserved.
func (h *Handle) Refuse(need int64) *wire.Error {
	return h.books.account.Refuse(fmt.Sprintf("%s of %.80s", plain.Count(h.books.n, "environment", "environments"), h.id),
		need)
}

// ReplyBytes bounds the bytes of a buffer for replies to steps and resets.
func (h *Handle) ReplyBytes() int { return h.replyBytes(len(h.rows)) }

// RequestBytes bounds the bytes of a step or reset in memory, decoded, with every field that one usually has. Snapshots
// to restore and lists of tasks can take more.
func (h *Handle) RequestBytes() int { return h.requestBytes(len(h.rows)) }

func (h *Handle) replyBytes(n int) int {
	return max(h.largestReply(n, h.encoding)*5/4, 4<<10) // buffers grow by a quarter at a time
}

func (h *Handle) requestBytes(n int) int {
	// An entry of a list is an interface with a number, and at most some twenty digits. Options are a map for each row.
	return 4<<10 + n*(256+48*(len(h.spec.Action.Sizes)+len(h.spec.Action.Low)))
}
