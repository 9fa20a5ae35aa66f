package handle

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"

	"clustergym/bridge/wire"
	"clustergym/env"
	"clustergym/env/vec"
	"clustergym/internal/plain"
	"clustergym/internal/snap"
)

// snapshotMagic begins a blob and names its format and version. It is followed by the origin (hash of environment and
// scenario), the handle's state of each row, and vec's snapshot of the rows. Then comes a SHA-256 of all that, which
// anyone can check, and an HMAC-SHA256 under the server's key, which only this server can make.
const snapshotMagic = "clustergym bridge snapshot 1\n"

const seals = 2 * sha256.Size

func (h *Handle) doSnapshot(q request, w *wire.Writer) error {
	rows := q.rows
	if _, ok := h.guards[0].inner.(env.Snapshotter); !ok {
		return wire.Errorf(wire.Unsupported, "%.80s has no snapshots", h.id)
	}
	if err := h.ready(rows, false); err != nil {
		return err
	}
	body := snap.Begin(nil, snapshotMagic)
	body = snap.Bytes(body, h.origin[:])
	body = snap.Int(body, len(rows))
	for _, i := range rows {
		r := &h.rows[i]
		body = snap.Bool(body, r.seeded)
		body = snap.F64(body, r.ret)
		body = snap.Int(body, int(r.length))
		body = snap.F64(body, h.b.Reward[i]) // the penalty of a masked action included
	}
	inner, e := h.v.AppendRows(nil, rows)
	if e != nil {
		return h.snapshotFailed(e)
	}
	body = seal(snap.Seal(snap.Bytes(body, inner), 0), h.keys.signing())
	// A blob that cannot be sent back is useless.
	if most := min(h.lim.MaxFrameIn, h.lim.MaxFrameOut) - 1024; blobSize(w.Encoding(), len(body)) > most {
		return &wire.Error{Code: wire.TooLarge,
			Msg: fmt.Sprintf("the snapshot of %s", plain.Count(len(rows), "environment", "environments")),
			Got: plain.Count(len(body), "byte", "bytes"), Want: fmt.Sprintf("at most %d: name fewer environments in ids", most)}
	}
	w.Reply(q.re, wire.OpSnapshot, 1+count(q.named))
	w.Key("blob")
	w.Bin(body)
	writeIDs(w, rows, q.named)
	return nil
}

// blobSize returns the number of bytes that a blob takes in a message.
func blobSize(enc wire.Encoding, n int) int {
	if enc == wire.JSON {
		return n/3*4 + 8
	}
	return n
}

// seal appends SHA-256 and HMAC to a blob's contents.
func seal(body, key []byte) []byte {
	sum := sha256.Sum256(body)
	body = append(body, sum[:]...)
	m := hmac.New(sha256.New, key)
	m.Write(body)
	return m.Sum(body)
}

// snapshotFailed returns the error reply for rows that cannot be saved.
func (h *Handle) snapshotFailed(err error) error {
	list := flat(err)
	if len(list) == 0 {
		return err
	}
	if errors.Is(err, errors.ErrUnsupported) {
		return wire.Errorf(wire.Unsupported, "%.80s has no snapshots", h.id)
	}
	return h.callFailed(list[0].Row, list[0].Err)
}

// mismatch returns the error for a blob that does not fit.
func mismatch(format string, args ...any) *wire.Error {
	e := wire.Errorf(wire.SnapshotMismatch, format, args...)
	e.Want = "a snapshot of the same environment, kwargs and number of environments"
	return e
}

// unseal checks SHA-256 and HMAC of a blob and returns its contents. For a client that may restore foreign blobs it
// checks only the SHA-256, which still finds damage.
func (h *Handle) unseal(blob []byte) ([]byte, *wire.Error) {
	if len(blob) < len(snapshotMagic)+seals || string(blob[:len(snapshotMagic)]) != snapshotMagic {
		return nil, mismatch("field blob is no snapshot of this version")
	}
	n := len(blob) - seals
	body, sum, mac := blob[:n], blob[n:n+sha256.Size], blob[n+sha256.Size:]
	for _, key := range h.keys.verifying() {
		m := hmac.New(sha256.New, key)
		m.Write(blob[:n+sha256.Size])
		if hmac.Equal(m.Sum(nil), mac) {
			return body, nil
		}
	}
	if !h.foreign {
		return nil, wire.Errorf(wire.Forbidden,
			"field blob was not made by this server as it is: it is damaged, or foreign and needs the role admin")
	}
	if want := sha256.Sum256(body); subtle.ConstantTimeCompare(want[:], sum) != 1 {
		return nil, mismatch("field blob is damaged: its checksum differs")
	}
	return body, nil
}

func (h *Handle) doRestore(ctx context.Context, q request, w *wire.Writer) error {
	rows := q.rows
	if _, ok := h.guards[0].inner.(env.Snapshotter); !ok {
		return wire.Errorf(wire.Unsupported, "%.80s has no snapshots", h.id)
	}
	if e := h.fetch(ctx, rows); e != nil {
		return e
	}
	blob, err := q.req.Bytes("blob")
	if err != nil {
		return err
	}
	if blob == nil {
		return wire.Errorf(wire.BadRequest, "field blob is missing, want what snapshot answered")
	}
	body, err := h.unseal(blob)
	if err != nil {
		return err
	}
	states, inner, err := h.parseStates(body, len(rows))
	if err != nil {
		return err
	}
	h.v.SetWorkers(h.pace.most(len(rows)))
	if e := h.v.RestoreRows(inner, rows, h.b); e != nil {
		return h.restoreFailed(e)
	}
	h.failed = h.failed[:0]
	for p, i := range rows {
		h.rows[i], h.b.Reward[i] = states[p].rowState, states[p].reward
		if h.b.Kind[i] == env.First { // so too in the row of another mode that was saved after an episode's end
			h.b.Reward[i] = 0
		}
	}
	h.writeRestored(w, q.re, rows, q.named)
	return nil
}

// savedRow is what a blob keeps of a row besides vec's snapshot.
type savedRow struct {
	rowState
	reward float64
}

// parseStates parses the body of a blob and changes nothing.
func (h *Handle) parseStates(body []byte, k int) (states []savedRow, inner []byte, err *wire.Error) {
	rd, e := snap.Open(body, snapshotMagic)
	if e != nil {
		return nil, nil, mismatch("field blob makes no sense")
	}
	if string(rd.Bytes()) != string(h.origin[:]) {
		return nil, nil, mismatch("field blob is a snapshot of another environment or of other kwargs")
	}
	if n := rd.Int(); n != k {
		return nil, nil, mismatch("field blob is a snapshot of %s, asked for is %s",
			plain.Count(n, "environment", "environments"), plain.Count(k, "environment", "environments"))
	}
	states = make([]savedRow, k)
	for p := range states {
		s := &states[p]
		s.begun = true
		s.seeded, s.ret, s.length, s.reward = rd.Bool(), rd.F64(), int64(rd.Int()), rd.F64()
		if s.length < 0 || !isNumber(s.ret) || !isNumber(s.reward) {
			return nil, nil, mismatch("field blob makes no sense")
		}
	}
	inner = rd.Bytes()
	if e := rd.Done(); e != nil {
		return nil, nil, mismatch("field blob makes no sense")
	}
	return states, inner, nil
}

// restoreFailed returns the error reply for a blob that an environment refuses.
func (h *Handle) restoreFailed(err error) error {
	if !errors.Is(err, env.ErrSnapshot) {
		return h.snapshotFailed(err)
	}
	var ended *vec.EndedError
	if errors.As(err, &ended) {
		return &wire.Error{Code: wire.SnapshotMismatch, Env: ended.Rows,
			Msg: "field blob has an environment at the end of its episode, where autoreset same_step never is, since it " +
				"begins the next episode in the same step",
			Want: "a snapshot from before that end, or from after the next reset or step"}
	}
	e := mismatch("%v", err)
	for _, re := range flat(err) {
		e.Env = append(e.Env, re.Row)
	}
	return e
}
