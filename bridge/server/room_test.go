package server

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"clustergym/bridge/budget"
	"clustergym/bridge/wire"
)

// show is a walk that shows itself in a million letters.
type show struct{ walk }

const shownBytes = 1 << 20

func (s *show) Render(w io.Writer, _ string) error {
	_, err := io.WriteString(w, strings.Repeat("x", shownBytes))
	return err
}

// reserved returns the memory that is reserved for k, as /metrics shows it.
func (h *host) reserved(k budget.Kind) int64 {
	h.t.Helper()
	x, err := strconv.ParseFloat(h.metric(fmt.Sprintf("clustergym_memory_reserved_bytes{kind=%q}", k), ""), 64)
	if err != nil {
		h.t.Fatal(err)
	}
	return int64(x)
}

// nothingReserved waits until all memory is free again.
func (h *host) nothingReserved() {
	h.t.Helper()
	eventually(h.t, "all memory is free", func() bool { return h.budget.Free() == h.budget.Total() })
	for _, k := range budget.Kinds() {
		if n := h.reserved(k); n != 0 {
			h.t.Errorf("%d bytes are reserved for %v at the end", n, k)
		}
	}
}

// tight returns a configuration with so many bytes of memory.
func tight(bytes int64) Config {
	cfg := quick()
	cfg.Memory = bytes
	return cfg
}

// Newcomers are refused when memory is full. Those who are in go on: they step, reset and open what still fits.
func TestFullMemoryRefusesNewcomersOnly(t *testing.T) {
	h := serve(t, tight(16<<20))
	good := h.client()
	hd := good.open(16)
	play := func() string {
		out := ""
		good.must("reset", "h", hd, "seed", 3)
		for range 12 {
			v := good.must("step", "h", hd, "a", act(0, 16))
			out += fmt.Sprint(shown(t, v), " ")
		}
		return out
	}
	want := play()
	greedy := h.client()
	opened := []int64{}
	for {
		v := greedy.do("open", "env", "Walk-v1", "n", 1500)
		if v.Get("op") == "open" {
			opened = append(opened, v.Get("h").(int64))
			continue
		}
		e := wire.ErrorOf(v)
		if e.Code != wire.Capacity || !e.Retry || !strings.Contains(e.Msg, "1500 environments of Walk-v1") ||
			!strings.Contains(e.Got, "of 16 MiB are free") || !strings.Contains(e.Want, "more memory") {
			t.Errorf("the first that does not fit: %v", e)
		}
		break
	}
	if len(opened) < 2 {
		t.Fatalf("%d handles fill 16 MiB", len(opened))
	}
	if got := play(); got != want {
		t.Errorf("the client that was in saw %s, before %s", got, want)
	}
	sum := int64(0)
	for _, k := range budget.Kinds() {
		sum += h.reserved(k)
	}
	if sum != h.budget.Total()-h.budget.Free() || sum > h.budget.Total() ||
		h.metric("clustergym_memory_budget_bytes", "") != "1.6777216e+07" {
		t.Errorf("%d reserved of %s, %d free", sum, h.metric("clustergym_memory_budget_bytes", ""), h.budget.Free())
	}
	before := h.reserved(budget.Environments)
	greedy.must("close", "h", opened[0])
	if after := h.reserved(budget.Environments); after >= before {
		t.Errorf("a closed handle leaves %d bytes of environments reserved, before it %d", after, before)
	}
	greedy.must("open", "env", "Walk-v1", "n", 1500)
	for _, p := range []*peer{good, greedy} {
		p.must("bye")
		p.closedWith(wire.CloseBye)
	}
	h.nothingReserved()
}

// What never fits is not worth trying again.
func TestWhatNeverFitsIsRefusedForGood(t *testing.T) {
	h := serve(t, tight(2<<20))
	e := h.client().fails(wire.Capacity, "open", "env", "Walk-v1", "n", 4096)
	if e.Retry || !strings.Contains(e.Want, "more memory") {
		t.Errorf("%v", e)
	}
}

// Replies to closed handles are kept for a resume, but not where their client needs the memory.
func TestKeptRepliesOfClosedHandlesMakeRoom(t *testing.T) {
	cfg := tight(12 << 20)
	h := serve(t, cfg)
	p := h.client()
	for range 12 {
		hd := p.open(1500)
		for range 6 {
			p.must("step", "h", hd, "a", act(0, 1500))
		}
		p.must("close", "h", hd)
	}
	if h.reserved(budget.Replies) == 0 {
		t.Error("no reply is kept")
	}
	p.must("bye")
	p.closedWith(wire.CloseBye)
	h.nothingReserved()
}

// A large message waits for memory. A large reply without memory is refused and has no effect.
func TestLargeMessagesTakeWhatIsLeft(t *testing.T) {
	cfg := tight(16 << 20)
	cfg.StepTimeout = 2 * time.Second
	h := serve(t, cfg)
	p := h.connect()
	k := ticketOf(p.hello())
	shows := p.must("open", "env", "Show-v1").Get("h").(int64)
	p.must("reset", "h", shows, "seed", 1)
	big := make([]byte, 2<<20)
	p.must("ping", "t", big)
	eventually(t, "the message is gone", func() bool { return h.reserved(budget.Frames) < 1<<20 })
	hog := h.budget.Free() - 256<<10
	if !h.budget.Reserve(budget.Environments, hog) {
		t.Fatal("the rest is not free")
	}
	if e := p.fails(wire.Capacity, "render", "h", shows); !e.Retry {
		t.Errorf("%v", e)
	}
	p.must("step", "h", shows, "a", act(0, 1))
	p.ask("ping", "t", big)
	if reason := p.closedWith(wire.CloseCapacity); reason != noRoom {
		t.Errorf("closed because %q", reason)
	}
	q := h.back(k, p.next, shows, p.next-2) // the session is parked
	q.must("step", "h", shows, "a", act(0, 1))
	id := q.ask("ping", "t", big)
	time.Sleep(20 * time.Millisecond)
	h.budget.Release(budget.Environments, hog)
	if v := q.recv(); v.Get("re") != int64(id) || v.Get("op") != "ping" {
		t.Errorf("a message that waited is answered by %v", v)
	}
	q.must("bye")
	q.closedWith(wire.CloseBye)
	h.nothingReserved()
}

// Requests that wait for a slow environment count, and are free when they are answered.
func TestWaitingRequestsCount(t *testing.T) {
	h := serve(t, tight(64<<20))
	slow := make(chan struct{})
	h.hooks.one = func(context.Context) error { <-slow; return nil }
	p := h.client()
	hd := p.open(1)
	before := h.reserved(budget.Frames)
	p.ask("step", "h", hd, "a", act(1, 1))
	for range 3 {
		p.ask("step", "h", hd, "a", act(0, 1), "x", make([]byte, 1<<20))
	}
	eventually(t, "three large requests wait", func() bool { return h.reserved(budget.Frames) > before+5<<19 })
	close(slow)
	for range 4 {
		p.recv()
	}
	eventually(t, "their memory is free", func() bool { return h.reserved(budget.Frames) == before })
}

// The count of message bytes is right for messages of any size in any order.
func TestFrameRoomKeepsItsBooks(t *testing.T) {
	b := budget.New(10_000)
	r := &frameRoom{budget: b}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			src := rand.New(rand.NewPCG(uint64(g), 1))
			var held, own []int64
			for range 3000 {
				n := 1 + src.Int64N(3000)
				switch src.IntN(4) {
				case 0:
					if r.hold(n) {
						held = append(held, n)
					}
				case 1:
					if r.grow(n) {
						own = append(own, n)
					}
				case 2:
					if len(held) > 0 {
						r.free(held[0])
						held = held[1:]
					}
				case 3:
					if len(own) > 0 {
						r.shrink(own[0])
						own = own[1:]
					}
				}
			}
			for _, n := range own {
				r.shrink(n)
			}
			for _, n := range held {
				r.free(n)
			}
		})
	}
	wg.Wait()
	if b.Free() != b.Total() || r.held.Load() != 0 || r.own.Load() != 0 || r.extra.Load() != 0 {
		t.Errorf("%d free, %d held, %d own, %d extra", b.Free(), r.held.Load(), r.own.Load(), r.extra.Load())
	}
	one := &frameRoom{budget: b}
	if !one.grow(100) || testing.AllocsPerRun(100, func() { one.hold(100); one.free(100) }) != 0 {
		t.Error("counting a message allocates")
	}
}
