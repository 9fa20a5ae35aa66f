package server

import (
	"bytes"
	"fmt"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"clustergym/bridge/wire"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// settled waits half a second for goroutines to end, or less if no more than before are left, and returns the least
// number that was seen and the bytes of the heap in use.
func settled(before int) (goroutines int, heap uint64) {
	goroutines = runtime.NumGoroutine()
	for i := 0; goroutines > before && i < 500; i++ {
		time.Sleep(time.Millisecond)
		goroutines = min(goroutines, runtime.NumGoroutine())
	}
	var ms runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&ms)
	return goroutines, ms.HeapAlloc
}

// TestNothingPilesUp runs many short sessions: some say bye, some are dropped, some are parked and then expire, make
// room or are resumed; and it opens and closes many handles.
func TestNothingPilesUp(t *testing.T) {
	cfg := quick()
	cfg.ResumeWindow = 10 * time.Second // for those who come back, on a slow machine too
	h := serveLogging(t, cfg, &bytes.Buffer{}, discard())
	h.soak = true
	round := func() {
		p := h.connect()
		k := ticketOf(p.hello())
		for range 5 {
			hd := p.open(8)
			for range 6 {
				p.must("step", "h", hd, "a", act(0, 8))
			}
			p.must("close", "h", hd)
		}
		hd := p.open(2)
		p.drop()
		p = h.back(k, p.next, hd, p.next-1)
		p.must("step", "h", hd, "a", act(0, 2))
		p.drop() // this client does not come back
		if err := h.play(3); err != nil {
			t.Fatal(err)
		}
		q := h.client("feat", []any{})
		q.open(1)
		q.drop()
		h.connect().drop()
		r := h.client()
		r.must("bye")
		r.closedWith(wire.CloseBye)
		r.ws.Close()
	}
	empty := func() {
		eventually(t, "no session is left", func() bool { return h.sessionsLeft() == 0 })
		eventually(t, "no connection is left", func() bool {
			h.mu.Lock()
			defer h.mu.Unlock()
			return len(h.conns) == 0
		})
	}
	for range 10 {
		round()
	}
	empty()
	goroutines, heap := settled(0)
	rounds := 100
	if testing.Short() {
		rounds = 30
	}
	// What piles up does so every time. A pool or a slice of the runtime may grow once.
	for try := 1; ; try++ {
		for range rounds {
			round()
		}
		empty()
		after, heapAfter := settled(goroutines)
		t.Logf("%d goroutines and %d kB, then %d and %d", goroutines, heap>>10, after, heapAfter>>10)
		if after <= goroutines && heapAfter <= heap+1<<20 {
			break
		}
		if try == 4 {
			t.Errorf("%d times in a row more is left: %d goroutines have become %d, %d kB of memory %d", try, goroutines, after,
				heap>>10, heapAfter>>10)
			break
		}
		goroutines, heap = after, heapAfter
	}
	for _, name := range []string{"sessions", "sessions_parked", "handles", "envs", "requests_in_flight"} {
		if got := h.metric("clustergym_"+name, ""); got != "0" {
			t.Errorf("%s are %s at the end", name, got)
		}
	}
	h.nothingReserved()
}

// TestServersLeaveNothingBehind starts servers, and ends them while their clients are active.
func TestServersLeaveNothingBehind(t *testing.T) {
	before, _ := settled(0)
	for i := range 10 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			h := serve(t, quick())
			p := h.client()
			hd := p.open(1)
			p.ask("step", "h", hd, "a", act(0, 1))
			q := h.client()
			q.open(2)
			q.drop()
			h.connect()
			h.stop()
			p.closedWith(wire.CloseDraining)
		})
	}
	eventually(t, "no more goroutines than before", func() bool { return runtime.NumGoroutine() <= before })
}
