package ranks

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// Group is one rank's end of a group of processes. Its exchanges are collective: all ranks make the same ones in the
// same order. They belong to one goroutine; Fail and Close may be called from any.
type Group struct {
	cfg         Config
	rank, world int
	addr        string // of rank 0, as this rank knows it

	links    []*link    // by rank, nil for the own
	controls []net.Conn // likewise
	waits    sync.WaitGroup

	seq uint32 // of the last exchange
	buffers
	flag [1]float64

	mu     sync.Mutex
	err    error         // why the group has failed
	dead   chan struct{} // closed when it has
	ended  []bool        // ranks that have said goodbye
	closed bool
	stop   chan struct{} // closed by Close: no more heartbeats
	door   net.Listener  // rank 0's: it tells those who come late
	left   func()        // called at the end, nil = nothing to do
}

// LostError says that a rank has not kept up with the group, which therefore has failed.
type LostError struct {
	Rank, World int
	Why         string // a predicate, as "is lost: nothing was heard from it for 30s"
}

func (e *LostError) Error() string { return fmt.Sprintf("rank %d of %d %s", e.Rank, e.World, e.Why) }

// Rank returns the own rank.
func (g *Group) Rank() int { return g.rank }

// World returns the number of ranks.
func (g *Group) World() int { return g.world }

// Addr returns the address of rank 0.
func (g *Group) Addr() string { return g.addr }

// Messages on control connections: a byte, and for failures a rank, a length and a text.
const (
	beat   = 'h' // "I am alive"
	failed = 'f' // that rank has failed or is lost
	bye    = 'b' // "I have come to my end"
)

// longest is the largest text of a failure.
const longest = 1 << 12

func newGroup(cfg Config) *Group {
	return &Group{
		cfg: cfg, rank: cfg.Rank, world: cfg.World, links: make([]*link, cfg.World), controls: make([]net.Conn, cfg.World),
		dead: make(chan struct{}), ended: make([]bool, cfg.World), stop: make(chan struct{}),
	}
}

// watch starts the goroutines of the control connections.
func (g *Group) watch() {
	for p, c := range g.controls {
		if c == nil {
			continue
		}
		g.waits.Go(func() { g.listen(p, c) })
	}
	go g.beats()
}

// interval is the time between two heartbeats.
func (g *Group) interval() time.Duration { return max(g.cfg.Timeout/6, 20*time.Millisecond) }

// beats sends heartbeats until the group ends.
func (g *Group) beats() {
	t := time.NewTicker(g.interval())
	defer t.Stop()
	one := []byte{beat}
	for {
		select {
		case <-g.stop:
			return
		case <-g.dead:
			return
		case <-t.C:
		}
		g.mu.Lock()
		for p, c := range g.controls {
			if c != nil && !g.ended[p] && g.err == nil && !g.closed {
				_ = c.SetWriteDeadline(time.Now().Add(g.interval()))
				_, _ = c.Write(one) // its reader notices what is wrong
			}
		}
		g.mu.Unlock()
	}
}

// listen reads what rank p has to say until it ends.
func (g *Group) listen(p int, c net.Conn) {
	var b [9]byte
	for {
		_ = c.SetReadDeadline(time.Now().Add(g.cfg.Timeout))
		_, err := io.ReadFull(c, b[:1])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			// If this process was stopped itself, what the other sent meanwhile is waiting.
			_ = c.SetReadDeadline(time.Now().Add(g.interval()))
			_, err = io.ReadFull(c, b[:1])
		}
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			g.lose(p, fmt.Sprintf("is lost: nothing was heard from it for %v", g.cfg.Timeout))
			return
		case err != nil:
			g.lose(p, "is lost: its connection has ended")
			return
		}
		switch b[0] {
		case beat:
		case bye:
			g.mu.Lock()
			g.ended[p] = true
			g.mu.Unlock()
			closeWrite(c)
			return
		case failed:
			if _, err := io.ReadFull(c, b[1:]); err != nil {
				g.lose(p, "is lost: its connection has ended")
				return
			}
			which, n := int(binary.LittleEndian.Uint32(b[1:])), binary.LittleEndian.Uint32(b[5:])
			text := make([]byte, min(n, longest))
			if _, err := io.ReadFull(c, text); err != nil || which >= g.world {
				g.lose(p, "is lost: its connection has ended")
				return
			}
			g.lose(which, string(text))
			return
		default:
			g.lose(p, fmt.Sprintf("sends what is no message (%d)", b[0]))
			return
		}
	}
}

// lose makes the group fail because of rank p, unless it has failed or this rank has come to its end.
func (g *Group) lose(p int, why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err != nil || g.closed {
		return
	}
	g.err = &LostError{p, g.world, why}
	g.tell(p, why)
	close(g.dead)
	for _, l := range g.links {
		if l != nil {
			l.close()
		}
	}
}

// tell sends all others what has become of rank p.
func (g *Group) tell(p int, why string) {
	if len(why) > longest {
		why = why[:longest]
	}
	m := []byte{failed}
	m = binary.LittleEndian.AppendUint32(m, uint32(p))        //nolint:gosec // a rank
	m = binary.LittleEndian.AppendUint32(m, uint32(len(why))) //nolint:gosec // at most longest
	m = append(m, why...)
	for q, c := range g.controls {
		if c != nil && q != p {
			_ = c.SetWriteDeadline(time.Now().Add(time.Second))
			_, _ = c.Write(m) // who does not get it hears nothing more from this rank
			closeWrite(c)
		}
	}
}

// closeWrite ends what is sent, so that the other side has read all of it before the connection ends.
func closeWrite(c net.Conn) {
	if c, ok := c.(interface{ CloseWrite() error }); ok {
		_ = c.CloseWrite() // it may have ended
	}
}

// cause returns why the group has failed, given that the data connection to a rank has: the control connections know
// better.
func (g *Group) cause(peer int, err error) error {
	var order *orderError
	if errors.As(err, &order) {
		g.lose(peer, "does not do what this rank does: "+order.what)
		return g.err
	}
	select {
	case <-g.dead:
	case <-time.After(min(g.cfg.Timeout, 3*time.Second)):
		g.mu.Lock()
		why := fmt.Sprintf("is lost: its connection has ended (%v)", err)
		if g.ended[peer] {
			why = "has come to its end before the others"
		}
		g.mu.Unlock()
		g.lose(peer, why)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err == nil {
		return err // this rank has come to its end
	}
	return g.err
}

// Err returns why the group has failed, nil if it has not.
func (g *Group) Err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

// Close ends this rank's part. err is why, nil if it has come to its end: the others are told, and those that still
// need this rank fail.
func (g *Group) Close(err error) {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return
	}
	if g.err == nil {
		if err != nil {
			g.err = &LostError{g.rank, g.world, "has failed: " + err.Error()}
			g.tell(g.rank, "has failed: "+err.Error())
			close(g.dead)
		} else {
			for p, c := range g.controls {
				if c == nil {
					continue
				}
				if !g.ended[p] {
					_ = c.SetWriteDeadline(time.Now().Add(time.Second))
					_, _ = c.Write([]byte{bye}) // the other may have ended
				}
				closeWrite(c)
			}
		}
	}
	g.closed = true
	close(g.stop)
	g.mu.Unlock()
	if g.door != nil {
		_ = g.door.Close() // nobody comes any more
	}
	if g.left != nil {
		g.left()
	}
	// What was sent arrives if the connections are not cut before the others have read it.
	done := make(chan struct{})
	go func() {
		g.waits.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(time.Second):
	}
	for _, c := range g.controls {
		if c != nil {
			_ = c.Close() // all that matters was said
		}
	}
	for _, l := range g.links {
		if l != nil {
			l.close()
			close(l.out)
		}
	}
}
