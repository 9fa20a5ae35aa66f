package client

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"clustergym/bridge/wire"
)

// Config.Timeout bounds a whole call: waiting for an earlier one, busy replies and repetitions included.
func TestOneTimeLimitForTheWholeCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 10 * time.Second
		c := &Client{
			cfg: Config{Timeout: limit}.withDefaults(), log: slog.New(slog.DiscardHandler), wake: make(chan struct{}, 1),
			acked: map[uint32]uint32{}, limits: limits{frameIn: 1 << 20, inflight: 4},
		}
		busy := func() {
			for cl := c.take(); cl != nil; cl = c.take() {
				c.wrote(cl)
				w := wire.NewWriter(wire.Ext)
				(&wire.Error{Code: wire.Busy, Msg: "full", Retry: true}).Reply(w, cl.id)
				m, e := wire.Decode(w.Bytes(), wire.Ext, wire.DefaultLimits())
				if e != nil {
					t.Error(e)
				}
				c.deliver(cl.id, m, nil)
			}
		}
		go func() { // a server that is busy for most of the time, and then says nothing more
			for end := time.Now().Add(limit - time.Second); time.Now().Before(end); {
				<-c.wake
				busy()
			}
		}()
		h := c.newHandle(1)
		h.begin(wire.OpStep, 0)
		begun := time.Now()
		if err := h.roundTrip(context.Background()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want %v", err, context.DeadlineExceeded)
		}
		if took := time.Since(begun); took != limit {
			t.Errorf("it took %v, want %v", took, limit)
		}
		for range 1000 { // lets the server see the end
			time.Sleep(time.Second)
		}
	})
}
