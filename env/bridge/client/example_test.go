package client_test

import (
	"context"
	"fmt"
	"log"

	"clustergym/env"
	"clustergym/env/bridge/client"
)

// One environment, as any other.
func ExampleClient_Open() {
	ctx := context.Background()
	c, err := client.Dial(ctx, client.Config{URL: "ws://127.0.0.1:8765"})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	e, err := c.Open(ctx, "JobSelect-v1", map[string]any{"cluster": "2x4", "window": 64})
	if err != nil {
		log.Fatal(err)
	}
	ts := env.NewTimeStep(e.Spec())
	if err := e.Reset(ctx, env.Episode{Seed: 1, Window: -1}, ts); err != nil {
		log.Fatal(err)
	}
	total := 0.0
	for !ts.Kind.Last() {
		rule, err := e.Call(ctx, "heuristic", map[string]any{"rule": "sjf"})
		if err != nil {
			log.Fatal(err)
		}
		if err := e.Step(ctx, env.Action{Disc: []int32{int32(rule.(int64))}}, ts); err != nil {
			log.Fatal(err)
		}
		total += ts.Reward
	}
	fmt.Println(total)
}

// Many environments in one round trip.
func ExampleClient_OpenVec() {
	ctx := context.Background()
	c, err := client.Dial(ctx, client.Config{URL: "ws://127.0.0.1:8765"})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	v, err := c.OpenVec(ctx, "CartPole-v1", nil, 64, client.VecConfig{Autoreset: client.SameStep})
	if err != nil {
		log.Fatal(err)
	}
	v.Seed(7)
	b, a := env.NewBatch(v.Spec(), 64), env.NewActions(v.Spec(), 64)
	if err := v.Reset(ctx, nil, nil, b); err != nil {
		log.Fatal(err)
	}
	for range 1000 {
		for i := range a.Disc { // push towards the side to which the pole leans
			a.Disc[i] = 0
			if b.Obs[i*v.Spec().ObsLen()+2] > 0 {
				a.Disc[i] = 1
			}
		}
		if err := v.Step(ctx, nil, a, b); err != nil {
			log.Fatal(err)
		}
	}
}
