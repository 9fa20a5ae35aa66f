//go:build unix

package workqueue

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"clustergym/internal/testseed"
)

// proxy passes TCP connections on, late, and cuts them from time to time.
type proxy struct {
	listener net.Listener
	to       string
	delay    time.Duration

	mu    sync.Mutex
	conns map[net.Conn]bool
	cuts  int
	all   sync.WaitGroup
}

func newProxy(t *testing.T, to string, delay time.Duration) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, to: to, delay: delay, conns: map[net.Conn]bool{}}
	p.all.Add(1)
	go func() {
		defer p.all.Done()
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", p.to)
			if err != nil {
				_ = in.Close()
				continue
			}
			p.mu.Lock()
			p.conns[in], p.conns[out] = true, true
			p.mu.Unlock()
			p.all.Add(2)
			go p.pass(in, out)
			go p.pass(out, in)
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		p.cut()
		p.all.Wait()
	})
	return p
}

// pass copies what arrives, each piece after the delay.
func (p *proxy) pass(from, to net.Conn) {
	defer p.all.Done()
	type piece struct {
		data []byte
		at   time.Time
	}
	pieces := make(chan piece, 1<<12)
	p.all.Add(1)
	go func() {
		defer p.all.Done()
		defer func() { _ = to.Close() }()
		for d := range pieces {
			time.Sleep(time.Until(d.at))
			if _, err := to.Write(d.data); err != nil {
				break
			}
		}
		for range pieces { // nobody reads any more
			continue
		}
	}()
	defer close(pieces)
	for {
		b := make([]byte, 16<<10)
		n, err := from.Read(b)
		if n > 0 {
			pieces <- piece{b[:n], time.Now().Add(p.delay)}
		}
		if err != nil {
			_ = from.Close()
			return
		}
	}
}

// cut closes all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
	clear(p.conns)
	p.cuts++
}

func TestASlowNetworkThatBreaks(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	seed := testseed.Or(11)
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 2))
	dir := t.TempDir()
	// A lost connection is no lost worker: nothing is done twice because of the closed connection alone.
	c, _ := listen(t, Options{Tries: 1 << 30, AckWait: 5 * time.Second})
	p := newProxy(t, strings.TrimPrefix(c.URL(), "nats://"), 10*time.Millisecond)
	url := "nats://" + p.listener.Addr().String()
	start(t, WorkOptions{URL: url, Name: "a", Slots: 2})
	start(t, WorkOptions{URL: url, Name: "b", Slots: 2})
	var tasks []Task
	var names []string
	for i := range 40 {
		k := newTask("slow", fmt.Sprintf("cell-%d", i), time.Duration(20+rng.IntN(31))*time.Millisecond)
		tasks, names = append(tasks, k), append(names, k.Name)
	}
	done := make(chan error, 1)
	go func() { done <- doAll(t.Context(), c, tasks, dir) }()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for over := false; !over; {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			over = true
		case <-tick.C:
			if p.cuts < 6 {
				p.cut()
			}
		}
	}
	if len(c.Disputes()) != 0 {
		t.Errorf("got %+v", c.Disputes())
	}
	checkAlone(t, tasks, dir, names)
}
