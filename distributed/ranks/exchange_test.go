package ranks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"clustergym/internal/raced"
	"clustergym/nets/kernel"
)

// together returns all ranks of a group in this process.
func joined(t testing.TB, world int, change func(c *Config)) []*Group {
	t.Helper()
	groups, errs := join(world, change)
	for k, err := range errs {
		if err != nil {
			t.Fatalf("rank %d: %v", k, err)
		}
	}
	t.Cleanup(func() {
		for _, g := range groups {
			g.Close(nil)
		}
	})
	return groups
}

// join has all ranks join, each in a goroutine.
func join(world int, change func(c *Config)) ([]*Group, []error) {
	groups, errs := make([]*Group, world), make([]error, world)
	addr := make(chan string, 1)
	var all sync.WaitGroup
	one := func(k int, at string) {
		defer all.Done()
		c := DefaultConfig()
		c.Rank, c.World, c.Rendezvous, c.Token, c.Build = k, world, at, "secret", "build"
		c.Listening = func(at string) error {
			addr <- at
			return nil
		}
		if change != nil {
			change(&c)
		}
		groups[k], errs[k] = Join(context.Background(), c)
		if k == 0 && errs[0] != nil {
			select {
			case addr <- "127.0.0.1:1":
			default:
			}
		}
	}
	all.Add(world)
	go one(0, "127.0.0.1:0")
	if world > 1 {
		at := <-addr
		for k := 1; k < world; k++ {
			go one(k, at)
		}
	}
	all.Wait()
	return groups, errs
}

// each calls f for all ranks at once.
func each(t testing.TB, groups []*Group, f func(g *Group) error) {
	t.Helper()
	errs := make([]error, len(groups))
	var all sync.WaitGroup
	for k, g := range groups {
		all.Add(1)
		go func() {
			defer all.Done()
			errs[k] = f(g)
		}()
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// numbers of very different sizes, so that the order of a sum shows in its bits.
func numbers(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64()) * float32([]float64{1, 1e-6, 1e7}[r.IntN(3)])
	}
	return x
}

// All ranks get the sum in order of ranks, bit for bit, whichever way it takes.
func TestSumsHaveTheBitsOfOneMachine(t *testing.T) {
	for _, world := range []int{1, 2, 3, 4, 5, 8} {
		for _, small := range []int{1, 1 << 40} { // in pieces, and to everybody
			groups := joined(t, world, func(c *Config) { c.small = small })
			r := rand.New(rand.NewPCG(7, uint64(world)))
			for _, n := range []int{0, 1, 5, 100, 4099, 300_001} {
				x, y := make([][]float32, world), make([][]float64, world)
				var want []float32
				var wantY []float64
				for k := range world {
					x[k], y[k] = numbers(r, n), make([]float64, 7)
					for i := range y[k] {
						y[k][i] = r.NormFloat64() * 1e3
					}
					if k == 0 {
						want, wantY = slices.Clone(x[0]), slices.Clone(y[0])
						continue
					}
					kernel.Add(want, want, x[k])
					for i, v := range y[k] {
						wantY[i] += v
					}
				}
				each(t, groups, func(g *Group) error { return g.Sum(g.rank, x[g.rank], y[g.rank]) })
				for k := range world {
					if !slices.Equal(x[k], want) || !slices.Equal(y[k], wantY) {
						t.Fatalf("%d ranks, %d numbers, small %d: rank %d has another sum", world, n, small, k)
					}
				}
			}
		}
	}
}

func TestBytesGoWhereTheyShould(t *testing.T) {
	for _, world := range []int{1, 2, 3, 6} {
		groups := joined(t, world, nil)
		for _, size := range []int{0, 3, 100_000, 3 << 20} {
			each(t, groups, func(g *Group) error {
				own := bytes.Repeat([]byte{byte(g.rank + 1)}, size)
				all := make([]byte, world*size)
				if err := g.Gather(g.rank, own, all); err != nil {
					return err
				}
				for i, b := range all {
					if int(b) != i/size+1 {
						return fmt.Errorf("gathered %d at %d", b, i)
					}
				}
				got, err := g.Collect(append(own, byte(g.rank)))
				if err != nil || (got != nil) != (g.rank == 0) {
					return fmt.Errorf("collect: %v", err)
				}
				parts := make([][]byte, world)
				for k, b := range got {
					if len(b) != size+1 || int(b[size]) != k {
						return fmt.Errorf("collected %d bytes of rank %d", len(b), k)
					}
					parts[k] = b[:size]
				}
				if g.rank > 0 {
					parts = nil
				}
				if b, err := g.Scatter(parts); err != nil || !bytes.Equal(b, own) {
					return fmt.Errorf("scatter: %d bytes, %v", len(b), err)
				}
				if b, err := g.Broadcast(own); err != nil || len(b) != size || size > 0 && b[0] != 1 {
					return fmt.Errorf("broadcast: %d bytes, %v", len(b), err)
				}
				for _, who := range []int{-1, 0, world - 1} {
					if some, err := g.Any(g.rank == who); err != nil || some != (who >= 0) {
						return fmt.Errorf("any: %v, %v", some, err)
					}
				}
				return nil
			})
		}
	}
}

func TestExchangesDoNotAllocate(t *testing.T) {
	if raced.On {
		t.Skip("the race detector allocates")
	}
	for _, small := range []int{1, 1 << 40} {
		groups := joined(t, 3, func(c *Config) { c.small = small })
		const rounds = 100
		x := make([][]float32, 3)
		for k := range x {
			x[k] = make([]float32, 70_000)
		}
		own, all := make([]byte, 1000), make([][]byte, 3)
		for k := range all {
			all[k] = make([]byte, 3000)
		}
		var others sync.WaitGroup
		round := func(g *Group) {
			y := [6]float64{}
			if err := errors.Join(g.Sum(g.rank, x[g.rank], y[:]), g.Gather(g.rank, own, all[g.rank])); err != nil {
				t.Error(err)
			}
		}
		for _, g := range groups[1:] {
			others.Add(1)
			go func() {
				defer others.Done()
				for range rounds + 21 {
					round(g)
				}
			}()
		}
		for range 20 {
			round(groups[0])
		}
		if n := testing.AllocsPerRun(rounds, func() { round(groups[0]) }); n > 0 { // of all ranks, which are one process here
			t.Errorf("small %d: %v allocations an exchange", small, n)
		}
		others.Wait()
	}
}

// A rank that does something else than the others, by a bug, is named instead of mixing up numbers.
func TestRanksThatDoDifferentThingsFail(t *testing.T) {
	groups := joined(t, 2, nil)
	errs := make([]error, 2)
	var all sync.WaitGroup
	all.Add(2)
	go func() {
		defer all.Done()
		errs[0] = groups[0].Sum(0, make([]float32, 10), nil)
		groups[0].Close(errs[0])
	}()
	go func() {
		defer all.Done()
		errs[1] = groups[1].Sum(1, make([]float32, 12), nil)
		groups[1].Close(errs[1])
	}()
	all.Wait()
	for k, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "does not do what this rank does") {
			t.Errorf("rank %d: %v", k, err)
		}
	}
}

// A rank that fails says why to all, also to those that do not exchange anything at the time.
func TestAFailureIsToldToAll(t *testing.T) {
	groups := joined(t, 3, nil)
	groups[1].Close(errors.New("the disk is full"))
	for _, k := range []int{0, 2} {
		select {
		case <-groups[k].dead:
		case <-time.After(20 * time.Second):
			t.Fatal("not heard of it")
		}
		err := groups[k].Sum(k, make([]float32, 3), nil)
		if err == nil || err.Error() != "rank 1 of 3 has failed: the disk is full" {
			t.Errorf("rank %d: %v", k, err)
		}
	}
}

// Without a word, as by kill -9: its connections end.
func TestARankThatDiesIsNamed(t *testing.T) {
	groups := joined(t, 3, nil)
	groups[2].mu.Lock()
	groups[2].closed = true // the dead do not speak
	close(groups[2].stop)
	groups[2].mu.Unlock()
	for p := range 2 {
		_ = groups[2].links[p].conn.Close()
		_ = groups[2].controls[p].Close()
	}
	for k := range 2 {
		err := groups[k].Sum(k, make([]float32, 3), nil)
		if err == nil || !strings.HasPrefix(err.Error(), "rank 2 of 3 is lost: its connection has ended") {
			t.Errorf("rank %d: %v", k, err)
		}
	}
}

// A rank that has ended is missed only by those that still need it.
func TestARankMayEndBeforeTheOthers(t *testing.T) {
	groups := joined(t, 3, nil)
	each(t, groups, func(g *Group) error { return g.Sum(g.rank, make([]float32, 3), nil) })
	groups[1].Close(nil)
	time.Sleep(50 * time.Millisecond)
	if err := groups[0].Err(); err != nil {
		t.Error(err)
	}
	err := groups[0].Sum(0, make([]float32, 3), nil)
	if err == nil || err.Error() != "rank 1 of 3 has come to its end before the others" {
		t.Error(err)
	}
}

// A rank from which nothing comes any more, as one that is stopped or cut off, is lost after the timeout. Here a relay
// between it and the others stops.
func TestSilenceIsNoticed(t *testing.T) {
	relays := &relay{}
	groups := joined(t, 3, func(c *Config) {
		c.Timeout = 300 * time.Millisecond
		if c.Rank == 2 {
			c.Rendezvous = relays.to(t, c.Rendezvous)
		}
	})
	each(t, groups, func(g *Group) error { return g.Sum(g.rank, make([]float32, 3), nil) })
	relays.stop()
	for _, k := range []int{0, 2} {
		err := groups[k].Sum(k, make([]float32, 3), nil)
		var lost *LostError
		if !errors.As(err, &lost) || !strings.Contains(lost.Why, "is lost: nothing was heard from it for 300ms") ||
			lost.Rank != 2-k {
			t.Errorf("rank %d: %v", k, err)
		}
	}
	if err := groups[1].Sum(1, make([]float32, 3), nil); err == nil ||
		!strings.Contains(err.Error(), "is lost: nothing was heard") {
		t.Errorf("rank 1: %v", err) // it hears of it
	}
}

// A group whose messages take long is slow and works.
func TestDelayIsNoFailure(t *testing.T) {
	relays := &relay{delay: 30 * time.Millisecond}
	groups := joined(t, 3, func(c *Config) {
		c.Timeout, c.small = 400*time.Millisecond, 1
		if c.Rank > 0 {
			c.Rendezvous = relays.to(t, c.Rendezvous)
		}
	})
	for range 5 {
		each(t, groups, func(g *Group) error {
			x := []float32{1, 2, 3}
			if err := g.Sum(g.rank, x, nil); err != nil || x[2] != 9 {
				return fmt.Errorf("%v, %w", x, err)
			}
			return nil
		})
	}
	time.Sleep(time.Second) // longer than the timeout: heartbeats keep the group
	each(t, groups, func(g *Group) error { return g.Sum(g.rank, make([]float32, 300_000), nil) })
}

// relay passes bytes on between ranks, after a delay, until it stops.
type relay struct {
	delay   time.Duration
	mu      sync.Mutex
	stopped bool
}

func (r *relay) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
}

func (r *relay) to(t *testing.T, addr string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Error(err)
		return addr
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			b, err := net.Dial("tcp", addr)
			if err != nil {
				_ = a.Close()
				continue
			}
			go r.pass(a, b)
			go r.pass(b, a)
		}
	}()
	return "127.0.0.1:" + strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

func (r *relay) pass(to, from net.Conn) {
	type late struct {
		at time.Time
		b  []byte
	}
	queue := make(chan late, 1<<16)
	go func() {
		for m := range queue {
			time.Sleep(time.Until(m.at))
			if _, err := to.Write(m.b); err != nil {
				break
			}
		}
		_ = to.Close()
	}()
	defer close(queue)
	for b := make([]byte, 1<<16); ; {
		n, err := from.Read(b)
		r.mu.Lock()
		stopped := r.stopped
		r.mu.Unlock()
		if err != nil && !stopped {
			return
		}
		if err != nil {
			select {} // nothing passes, not even an end
		}
		if !stopped {
			queue <- late{time.Now().Add(r.delay), bytes.Clone(b[:n])}
		}
	}
}
