package server

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"testing"

	"github.com/gorilla/websocket"

	"clustergym/bridge/wire"
	"clustergym/env"
)

// cheap is an environment of 64 numbers and no work, so that what is measured is the bridge.
type cheap struct{ n float32 }

func (e *cheap) Spec() env.Spec {
	return env.Spec{
		ID: "Cheap-v1", NoOp: -1,
		Obs:    []env.Field{{Name: "x", Shape: []int{64}, Low: 0, High: 1}},
		Action: env.ActionSpec{Sizes: []int{2}},
	}
}

func (e *cheap) fill(ts *env.TimeStep, k env.Kind) {
	ts.Kind, ts.Reward, ts.Elapsed = k, 0, 0
	e.n = 1 - e.n
	ts.Obs[0], ts.Mask[0], ts.Mask[1] = e.n, true, true
}

func (e *cheap) Reset(_ context.Context, _ env.Episode, ts *env.TimeStep) error {
	e.fill(ts, env.First)
	return nil
}

func (e *cheap) Step(_ context.Context, _ env.Action, ts *env.TimeStep) error {
	e.fill(ts, env.Mid)
	return nil
}

func (e *cheap) Close() error { return nil }

type cheaps struct{}

func (cheaps) List() []Listing { return nil }

func (cheaps) Make(_ context.Context, _ string, _ wire.Map, n int) (*Made, error) {
	m := &Made{}
	for range n {
		m.Envs = append(m.Envs, &cheap{})
	}
	return m, nil
}

// BenchmarkRoundTrip steps n environments over loopback, with inflight requests always under way. Client and server are
// in one process, and the client does next to nothing.
func BenchmarkRoundTrip(b *testing.B) {
	for _, c := range []struct{ n, inflight int }{{1, 1}, {64, 1}, {1024, 1}, {1, 2}, {64, 2}} {
		for _, resume := range []bool{false, true} {
			b.Run(fmt.Sprintf("n=%d/inflight=%d/resume=%v", c.n, c.inflight, resume), func(b *testing.B) {
				benchmarkRoundTrip(b, c.n, c.inflight, resume)
			})
		}
	}
}

func benchmarkRoundTrip(b *testing.B, n, inflight int, resume bool) {
	s, err := New(quick(), cheaps{}, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			b.Error(err)
		}
	}()
	d := websocket.Dialer{Subprotocols: []string{wire.SubMsgpack}, ReadBufferSize: 1 << 20}
	ws, _, err := d.Dial("ws://"+l.Addr().String()+"/v1/ws", nil)
	if err != nil {
		b.Fatal(err)
	}
	defer ws.Close()
	w := wire.NewWriter(wire.Ext)
	send := func() {
		if err := ws.WriteMessage(websocket.BinaryMessage, w.Bytes()); err != nil {
			b.Fatal(err)
		}
	}
	buf := make([]byte, 4<<20)
	recv := func() {
		_, r, err := ws.NextReader()
		for at := 0; err == nil; {
			var k int
			if k, err = r.Read(buf[at:]); err != nil {
				break
			}
			at += k
		}
	}
	feat := []any{}
	if resume {
		feat = append(feat, "resume")
	}
	w.Value(m("op", "hello", "id", 1, "proto", []any{1, 1}, "enc", []any{"ext"}, "feat", feat))
	send()
	recv()
	id := uint32(1)
	next := func(op string, more ...any) {
		id++
		w.Reset()
		w.Value(append(m("op", op, "id", id, "h", 1), m(more...)...))
		send()
	}
	next("open", "env", "Cheap-v1", "n", n)
	recv()
	next("reset", "seed", 1)
	recv()
	a := wire.Array{DType: wire.I64, Shape: []int{n}, Data: make([]byte, 8*n)}
	for range inflight - 1 {
		next("step", "a", a)
	}
	b.ReportAllocs()
	for b.Loop() {
		next("step", "a", a)
		recv()
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "envsteps/s")
	for range inflight - 1 {
		recv()
	}
}
