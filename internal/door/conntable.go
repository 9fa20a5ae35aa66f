package door

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

const (
	// grace is how long a connection may stay in any case. Without it, many clients that connect at the same moment would
	// push each other out before the server has read what they sent.
	grace = 50 * time.Millisecond
	// mostLeaving is how many connections at once are told why they are closed. More are just closed.
	mostLeaving = 64
)

// A Guest is a connection of another protocol than HTTP. It can receive the reason why it is closed.
type Guest interface {
	// Expel closes the connection because its place is needed, without waiting for the other side to read that. It returns
	// false if the connection is being closed already.
	Expel() bool
}

// connClass says where a connection is counted.
type connClass uint8

const (
	nowhere  connClass = iota // it has a session, or it is gone
	stranger                  // it has shown nothing
	known                     // it has shown a token or a certificate, and has no session
)

// Place is a connection's place in the table.
type Place struct {
	conns *connTable
	raw   net.Conn // below TLS
	from  netip.Addr

	// Under the table's lock.
	since    time.Time // when it came, or its last request with a token ended
	at       connClass
	guest    Guest // nil until the connection has changed its protocol
	hijacked bool  // the HTTP server has given the connection away
	gone     bool
	leaving  bool // told why it is closed
}

// connTable holds places. Its methods are safe for concurrent use.
type connTable struct {
	limit   int // of each standing
	dropped func(from net.Addr, upgraded bool)
	left    func() bool // called when a connection has ended

	mu      sync.Mutex
	places  [known + 1]map[*Place]struct{}
	byConn  map[net.Conn]*Place // connections of the HTTP server
	leaving int
}

func newConnTable(limit int, dropped func(from net.Addr, upgraded bool), left func() bool) *connTable {
	return &connTable{
		limit: limit, dropped: dropped, left: left, byConn: map[net.Conn]*Place{},
		places: [known + 1]map[*Place]struct{}{stranger: {}, known: {}},
	}
}

// neighbourhood returns what counts as one address: an IPv6 subscriber has a whole subnet. Addresses without an IP are
// one.
func neighbourhood(a net.Addr) netip.Addr {
	p, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}
	}
	ip := p.Addr().Unmap().WithZone("")
	if ip.Is6() {
		if net, err := ip.Prefix(64); err == nil {
			return net.Addr()
		}
	}
	return ip
}

// placeKey is the key of a connection's place in the context of its requests.
type placeKey struct{}

// PlaceOf returns the place of the connection of a request, nil if no Door guards its server.
func PlaceOf(r *http.Request) *Place {
	p, _ := r.Context().Value(placeKey{}).(*Place)
	return p
}

// enter gives a new connection of an HTTP server a place. It runs in the goroutine that accepts connections.
func (h *connTable) enter(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, placeKey{}, h.place(c, true))
}

// place gives a new connection a place, and makes room first.
func (h *connTable) place(c net.Conn, http bool) *Place {
	p := &Place{conns: h, raw: c, from: neighbourhood(c.RemoteAddr()), since: time.Now(), hijacked: !http}
	if t, ok := c.(*tls.Conn); ok {
		p.raw = t.NetConn()
	}
	h.makeRoom(stranger)
	h.mu.Lock()
	defer h.mu.Unlock()
	if http {
		h.byConn[c] = p
	}
	h.put(p, stranger)
	return p
}

// makeRoom closes connections until there is room for one more with this standing. It waits for those that are very
// young.
func (h *connTable) makeRoom(at connClass) {
	for {
		h.mu.Lock()
		if len(h.places[at]) < h.limit {
			h.mu.Unlock()
			return
		}
		p := h.oldest(at)
		if wait := grace - time.Since(p.since); wait > 0 {
			h.mu.Unlock()
			time.Sleep(min(wait, time.Millisecond)) // meanwhile another may leave
			continue
		}
		h.expel(p, true)
	}
}

// shed closes the oldest stranger if there are at least so many, and reports whether it has.
func (h *connTable) shed(least int) bool {
	h.mu.Lock()
	if len(h.places[stranger]) < least {
		h.mu.Unlock()
		return false
	}
	p := h.oldest(stranger)
	h.expel(p, false) // its descriptor is needed now
	return true
}

// oldest returns the oldest connection of the address that has the most places, nil if there is no connection. The
// caller holds the lock.
func (h *connTable) oldest(at connClass) (p *Place) {
	count := map[netip.Addr]int{}
	most := 0
	for q := range h.places[at] {
		count[q.from]++
		most = max(most, count[q.from])
	}
	for q := range h.places[at] {
		if count[q.from] == most && (p == nil || q.since.Before(p.since)) {
			p = q
		}
	}
	return p
}

// put counts p where it belongs. The caller holds the lock.
func (h *connTable) put(p *Place, at connClass) {
	if p.at != nowhere {
		delete(h.places[p.at], p)
	}
	if p.at = at; at != nowhere {
		h.places[at][p] = struct{}{}
	}
}

// expel closes the connection of p. If tell, a websocket is told why, unless it is being closed already or too many
// are. The caller holds the lock, and expel releases it.
func (h *connTable) expel(p *Place, tell bool) {
	h.put(p, nowhere)
	c := p.guest
	tell = tell && c != nil && !p.leaving && h.leaving < mostLeaving
	if tell {
		p.leaving = true
		h.leaving++
	}
	h.mu.Unlock()
	h.dropped(p.raw.RemoteAddr(), c != nil)
	if !tell || !c.Expel() {
		_ = p.raw.Close() // the reader gets an error
	}
}

// state follows the connections of the HTTP server.
func (h *connTable) state(c net.Conn, s http.ConnState) {
	if s != http.StateIdle && s != http.StateHijacked && s != http.StateClosed {
		return
	}
	h.mu.Lock()
	p := h.byConn[c]
	if p == nil {
		h.mu.Unlock()
		return
	}
	switch s {
	case http.StateIdle: // what it showed counted for one request
		if p.at == known {
			h.put(p, stranger)
			p.since = time.Now()
		}
	case http.StateHijacked:
		p.hijacked = true
		delete(h.byConn, c)
	case http.StateClosed:
		delete(h.byConn, c)
		h.put(p, nowhere)
		p.gone = true
	}
	h.mu.Unlock()
	if s == http.StateClosed {
		h.left()
	}
}

// Vouch takes p from the strangers, because its client has shown a token or a certificate. A closed table lets it stay.
func (p *Place) Vouch() {
	if p == nil {
		return
	}
	p.conns.makeRoom(known)
	p.conns.mu.Lock()
	defer p.conns.mu.Unlock()
	if p.at == stranger {
		p.conns.put(p, known)
	}
}

// locked calls f under the table's lock, unless no Door guards the connection.
func (p *Place) locked(f func()) {
	if p == nil {
		return
	}
	p.conns.mu.Lock()
	defer p.conns.mu.Unlock()
	f()
}

// Upgraded notes that the connection speaks another protocol now.
func (p *Place) Upgraded(c Guest) { p.locked(func() { p.guest = c }) }

// Settle takes p from the table, because its connection has a session.
func (p *Place) Settle() { p.locked(func() { p.conns.put(p, nowhere) }) }

// Depart puts p back into the table, because its connection is being closed. It is among the first to make room.
func (p *Place) Depart() {
	p.locked(func() {
		if p.at == nowhere && !p.leaving && !p.gone {
			p.conns.put(p, stranger)
		}
	})
}

// Vacate takes p from the table for good, unless the HTTP server still has its connection.
func (p *Place) Vacate() {
	if p == nil {
		return
	}
	h := p.conns
	h.mu.Lock()
	if p.gone || !p.hijacked {
		h.mu.Unlock()
		return
	}
	p.gone = true
	h.put(p, nowhere)
	if p.leaving {
		h.leaving--
	}
	h.mu.Unlock()
	h.left()
}
