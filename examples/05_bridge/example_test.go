// A server and a client in one program. Elsewhere the server is gymctl serve.
package bridge_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"net"

	"clustergym/bridge/client"
	"clustergym/bridge/server"
	"clustergym/env"
	"clustergym/lab/envs"
)

func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	registry, err := envs.NewRegistry(envs.DefaultRegistryConfig())
	if err != nil {
		log.Fatal(err)
	}
	s, err := server.New(server.DefaultConfig(), envs.NewFactory(registry), slog.New(slog.DiscardHandler))
	if err != nil {
		log.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()

	c, err := client.Dial(ctx, client.Config{URL: "ws://" + l.Addr().String()})
	if err != nil {
		log.Fatal(err)
	}
	e, err := c.Open(ctx, "JobSelect-v1", map[string]any{"window": 32, "warm": 0})
	if err != nil {
		log.Fatal(err)
	}
	ts := env.NewTimeStep(e.Spec())
	if err := e.Reset(ctx, env.Episode{Seed: 1, Window: 0}, ts); err != nil {
		log.Fatal(err)
	}
	first := int32(0) // the first legal action
	for !ts.Mask[first] {
		first++
	}
	if err := e.Step(ctx, env.Action{Disc: []int32{first}}, ts); err != nil {
		log.Fatal(err)
	}
	fmt.Println("one step of", e.Spec().ID, "over the bridge")
	c.Close()
	stop()
	fmt.Println("server ended:", <-done)
	// Output:
	// one step of JobSelect-v1 over the bridge
	// server ended: <nil>
}
