package client_test

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// proxy is a TCP proxy between client and server that misbehaves as networks do.
type proxy struct {
	addr      string
	target    string
	swallowed atomic.Int64 // bytes from the server that it dropped
	mute      atomic.Bool  // it drops what the server sends
	deaf      atomic.Bool  // it drops what the client sends
	refuse    atomic.Bool  // new connections end at once

	mu    sync.Mutex
	pairs [][2]net.Conn
	count int
	wg    sync.WaitGroup
}

func newProxy(t testing.TB, target string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{addr: l.Addr().String(), target: target}
	p.wg.Add(1)
	go func() {
		defer p.wg.Done()
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			if p.refuse.Load() {
				in.Close()
				continue
			}
			out, err := net.DialTimeout("tcp", target, 5*time.Second)
			if err != nil {
				in.Close()
				continue
			}
			p.mu.Lock()
			p.pairs = append(p.pairs, [2]net.Conn{in, out})
			p.count++
			p.mu.Unlock()
			p.wg.Add(2)
			go p.copy(out, in, &p.deaf, nil)
			go p.copy(in, out, &p.mute, &p.swallowed)
		}
	}()
	t.Cleanup(func() {
		l.Close()
		p.cut()
		p.wg.Wait()
	})
	return p
}

func (p *proxy) copy(dst io.WriteCloser, src io.ReadCloser, lost *atomic.Bool, count *atomic.Int64) {
	defer p.wg.Done()
	defer dst.Close()
	defer src.Close()
	b := make([]byte, 32<<10)
	for {
		n, err := src.Read(b)
		if err != nil {
			return
		}
		if lost.Load() {
			if count != nil {
				count.Add(int64(n))
			}
			continue
		}
		if _, err := dst.Write(b[:n]); err != nil {
			return
		}
	}
}

// cut ends all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pair := range p.pairs {
		pair[0].Close()
		pair[1].Close()
	}
	p.pairs = nil
}

// connections returns how many there have been.
func (p *proxy) connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}

// eventually waits until ok is true.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after 5 s: %s", what)
		}
	}
}
