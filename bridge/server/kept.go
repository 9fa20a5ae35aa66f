package server

import (
	"bytes"
	"cmp"
	"slices"

	"clustergym/bridge/budget"
	"clustergym/bridge/wire"
)

// ring holds the last replies of one lane, each in the buffer that it was written to, so that keeping them costs
// nothing. It has one slot more than it keeps replies: the slot being written. The session's lock guards everything but
// the contents of that slot.
type ring struct {
	slots []slot
	at    int // the slot being written
}

type slot struct {
	id    uint32 // of the request, 0 = not kept
	loose bool   // the reply to `open`, whose handle the client may not know yet
	lent  bool   // a connection sends what w holds, so w is not written to again
	extra int64  // bytes that are reserved for w beyond those of every buffer
	w     *wire.Writer
}

func newRing(keep int) ring { return ring{slots: make([]slot, keep+1)} }

// writer returns the empty buffer of the next reply.
func (r *ring) writer(enc wire.Encoding) *wire.Writer {
	s := &r.slots[r.at]
	if s.w == nil {
		s.w = wire.NewWriter(enc)
	}
	s.w.Reset()
	return s.w
}

// keep keeps the contents of the slot being written as the reply to request id, and forgets the oldest reply.
func (r *ring) keep(id uint32, loose bool) {
	r.slots[r.at].id, r.slots[r.at].loose = id, loose
	r.at = (r.at + 1) % len(r.slots)
	r.slots[r.at].id = 0
}

// abandon leaves the buffer of the slot being written to the call that still writes to it. The slot gets a new one.
func (r *ring) abandon() { r.slots[r.at].w = nil }

// reply is a kept reply outside its ring.
type reply struct {
	id uint32
	b  []byte
}

// lend returns the contents of a kept reply. They stay as they are, whatever becomes of the slot.
func (k *slot) lend() []byte {
	k.lent = true
	return k.w.Bytes()
}

// find returns the reply to request id, nil if it is not kept. The caller holds the session's lock.
func (s *session) find(id uint32) []byte {
	for _, l := range s.rings() {
		for i := range l.kept.slots {
			if k := &l.kept.slots[i]; k.id == id {
				return k.lend()
			}
		}
	}
	for _, r := range s.loose {
		if r.id == id {
			return r.b
		}
	}
	return nil
}

// rings returns the lanes whose replies are kept: those of the open handles and of the last closed ones.
func (s *session) rings() []*lane {
	out := slices.Clone(s.tombs)
	for _, l := range s.lanes {
		out = append(out, l)
	}
	return out
}

// unacknowledged returns the kept replies that the client has not received, in the order of the requests. last says by
// handle which replies it has received. Some replies have no entry of their own in last: those without a handle, those
// of a closed handle that last does not list, and those that named the handle (to open). They count as received up to
// last[0] or, if that is missing, up to the newest reply in last.
func (s *session) unacknowledged(last map[uint32]uint32) []reply {
	var out []reply
	newest, there := last[0]
	if !there {
		for _, id := range last {
			newest = max(newest, id)
		}
	}
	for _, l := range s.rings() {
		seen, there := last[l.h]
		if !there && s.lanes[l.h] == nil {
			seen = newest
		}
		for i := range l.kept.slots {
			k := &l.kept.slots[i]
			if k.id > seen && !(k.loose && (there || k.id <= newest)) {
				out = append(out, reply{k.id, k.lend()})
			}
		}
	}
	for _, r := range s.loose {
		if r.id > newest {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b reply) int { return cmp.Compare(a.id, b.id) })
	return out
}

// largestLoose is the size up to which replies without a lane are kept. Only replies to pings can be larger.
const largestLoose = 64 << 10

// keepLoose keeps a copy of a reply that belongs to no open handle, if there is memory for it. The caller holds the
// session's lock.
func (s *session) keepLoose(id uint32, b []byte) {
	if s.feat&featResume == 0 || s.ended || len(b) > largestLoose || !s.srv.budget.Reserve(budget.Replies, int64(len(b))) {
		return
	}
	if len(s.loose) == s.srv.cfg.MaxInflight {
		s.srv.budget.Release(budget.Replies, int64(len(s.loose[0].b)))
		s.loose = slices.Delete(s.loose, 0, 1)
	}
	s.loose = append(s.loose, reply{id, bytes.Clone(b)})
}

// bury keeps the replies of a closed handle until MaxInflight handles have been closed after it.
func (s *session) bury(l *lane) {
	delete(s.lanes, l.h)
	if s.feat&featResume == 0 {
		l.drop()
		return
	}
	if len(s.tombs) == s.srv.cfg.MaxInflight {
		s.tombs[0].drop()
		s.tombs = slices.Delete(s.tombs, 0, 1)
	}
	s.tombs = append(s.tombs, l)
}
