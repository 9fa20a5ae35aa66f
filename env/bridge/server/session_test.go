package server

import (
	"testing"

	"clustergym/env/bridge/wire"
)

func TestADialogueFromHelloToBye(t *testing.T) {
	for _, sub := range []string{wire.SubMsgpack, wire.SubJSON} {
		h := serve(t, quick())
		p, _, err := h.dial(sub, nil)
		if err != nil {
			t.Fatal(err)
		}
		w := p.hello()
		t.Log(w)
		t.Log(p.must("open", "env", "Walk-v1", "n", 2))
		if got := shown(t, p.must("reset", "h", 1, "seed", 3)); got != 0 {
			t.Errorf("reset shows step %v", got)
		}
		if got := shown(t, p.must("step", "h", 1, "a", act(0, 2))); got != 1 {
			t.Errorf("step shows step %v", got)
		}
		if v := p.must("ping", "t", 3.5); v.Get("t") != 3.5 || v.Get("qlen") != int64(0) {
			t.Errorf("ping: %v", v)
		}
		p.must("close", "h", 1)
		p.must("close", "h", 1)
		p.fails(wire.BadHandle, "step", "h", 1, "a", act(0, 2))
		if got := h.hooks.closedEnvs(); got != 2 {
			t.Errorf("%d environments closed, want 2", got)
		}
		p.must("bye")
		p.closedWith(wire.CloseBye)
		eventually(t, "no session", func() bool { return h.sessionsLeft() == 0 })
	}
}
