package client_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"net"

	"clustergym/bridge/client"
	"clustergym/bridge/server"
	"clustergym/bridge/wire"
	"clustergym/env"
	"clustergym/env/control"
)

// problems lets a server make the problems of package control.
type problems struct{}

// List implements server.Factory.
func (problems) List() []server.Listing { return nil } // only /v1/envs would show them

// Make implements server.Factory.
func (problems) Make(_ context.Context, id string, _ wire.Map, n int) (*server.Made, error) {
	made := &server.Made{}
	for range n {
		e, err := control.New(id)
		if err != nil {
			return nil, wire.Errorf(wire.UnknownEnv, "%v", err)
		}
		made.Envs = append(made.Envs, e)
	}
	return made, nil
}

// listen starts a server on a free port of this machine. stop ends it and waits for it.
func listen() (url string, stop func()) {
	s, err := server.New(server.DefaultConfig(), problems{}, slog.New(slog.DiscardHandler))
	if err != nil {
		log.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	return "ws://" + l.Addr().String(), func() {
		cancel()
		if err := <-done; err != nil {
			log.Fatal(err)
		}
	}
}

// A server and a client in one program. Elsewhere the server is gymctl serve, and its address takes the place of url.
func Example() {
	url, stop := listen()
	defer stop()

	ctx := context.Background()
	c, err := client.Dial(ctx, client.Config{URL: url})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	e, err := c.Open(ctx, "CartPole-v1", nil)
	if err != nil {
		log.Fatal(err)
	}
	ts := env.NewTimeStep(e.Spec())
	if err := e.Reset(ctx, env.Episode{Seed: 7, Window: -1}, ts); err != nil {
		log.Fatal(err)
	}
	total := 0.0
	for range 5 {
		push := int32(0) // left
		if ts.Obs[2] > 0 {
			push = 1 // the pole leans to the right
		}
		if err := e.Step(ctx, env.Action{Disc: []int32{push}}, ts); err != nil {
			log.Fatal(err)
		}
		total += ts.Reward
		fmt.Printf("push %d: angle %+.3f\n", push, ts.Obs[2])
	}
	fmt.Println("return so far:", total)
	// Output:
	// push 0: angle -0.028
	// push 0: angle -0.023
	// push 0: angle -0.012
	// push 0: angle +0.004
	// push 1: angle +0.026
	// return so far: 5
}
