package handle

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"

	"clustergym/bridge/budget"
	"clustergym/bridge/wire"
	"clustergym/env"
	"clustergym/env/control"
)

// spacious is an environment whose observation has many numbers. It keeps none of them.
type spacious struct{ env.Env }

const spaciousObs = 2000

func (w *spacious) Spec() env.Spec {
	s := w.Env.Spec()
	s.Obs = []env.Field{{Name: "spacious", Shape: []int{spaciousObs}, Low: 0, High: 1}}
	return s
}

// openIn opens n environments in b.
func openIn(t *testing.T, b *budget.Budget, id string, n int, more ...wire.Pair) (*Handle, error) {
	t.Helper()
	f := &testFactory{makers: map[string]makeOne{"Spacious-v1": func(wire.Map) (env.Env, error) {
		e, err := control.New("CartPole-v1")
		return &spacious{e}, err
	}}}
	o := &Opening{
		Req: append(wire.Map{{Key: "env", Value: id}, {Key: "n", Value: int64(n)}}, more...), Re: 1, H: 1, Async: true,
		Key: NewKeys(func() []byte { return make([]byte, 32) }),
		Log: slog.New(slog.DiscardHandler), Budget: b, Replies: 3, Requests: 2,
	}
	return Open(t.Context(), f, Limits{MaxEnvs: 1 << 20, MaxFrameIn: 1 << 30, MaxFrameOut: 1 << 30}, o,
		wire.NewWriter(wire.Ext))
}

// What a handle reserves covers its batches and what it keeps for each environment, in every mode.
func TestAHandleReservesWhatItTakes(t *testing.T) {
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	for _, id := range []string{"CartPole-v1", "Spacious-v1"} {
		for _, mode := range []string{"next_step", "same_step", "disabled"} {
			b := budget.New(1 << 40)
			before := heap()
			h, err := openIn(t, b, id, 1000, wire.Pair{Key: "autoreset", Value: mode})
			if err != nil {
				t.Fatal(err)
			}
			w := wire.NewWriter(wire.Ext)
			if err := h.Do(t.Context(), wire.OpReset, 2, wire.Map{{Key: "seed", Value: int64(1)}}, w); err != nil {
				t.Fatal(err)
			}
			if w.Cap() > h.ReplyBytes() {
				t.Errorf("%s %s: a reply in %d bytes, reserved are %d", id, mode, w.Cap(), h.ReplyBytes())
			}
			a := make([]any, 1000)
			for i := range a {
				a[i] = int64(0)
			}
			w.Trim(0)
			if err := h.Do(t.Context(), wire.OpSend, 3, wire.Map{{Key: "a", Value: a}}, w); err != nil {
				t.Fatal(err)
			}
			w.Trim(0)
			if err := h.Do(t.Context(), wire.OpRecv, 4, nil, w); err != nil {
				t.Fatal(err)
			}
			if w.Cap() > h.ReplyBytes() {
				t.Errorf("%s %s: a reply in %d bytes, reserved are %d", id, mode, w.Cap(), h.ReplyBytes())
			}
			w = nil
			took, reserved := heap()-before, b.Used(budget.Environments)
			if !testing.Short() && (took > reserved || id == "Spacious-v1" && reserved > 3*took) {
				t.Errorf("%s %s: %d bytes, reserved are %d", id, mode, took, reserved)
			}
			runtime.KeepAlive(h)
			runtime.KeepAlive(a)
			if err := h.Close(); err != nil || b.Used(budget.Environments) != 0 {
				t.Errorf("%s %s: %v, %d are reserved after close", id, mode, err, b.Used(budget.Environments))
			}
		}
	}
}

func TestAHandleThatDoesNotFitIsRefusedAndLeavesNothing(t *testing.T) {
	for _, c := range []struct {
		total, taken int64
		n            int
		retry        bool
	}{{16 << 20, 15 << 20, 100, true}, {16 << 20, 0, 10000, false}} {
		b := budget.New(c.total)
		b.Reserve(budget.Workloads, c.taken)
		_, err := openIn(t, b, "Spacious-v1", c.n)
		var e *wire.Error
		if !errors.As(err, &e) || e.Code != wire.Capacity || e.Retry != c.retry ||
			!strings.Contains(e.Msg, fmt.Sprintf("%d environments of Spacious-v1", c.n)) {
			t.Errorf("%d environments: %v", c.n, err)
		}
		if b.Used(budget.Environments) != 0 {
			t.Errorf("%d environments: %d are reserved", c.n, b.Used(budget.Environments))
		}
	}
}
