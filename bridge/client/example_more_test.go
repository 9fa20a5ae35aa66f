package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"clustergym/bridge/client"
	"clustergym/bridge/wire"
	"clustergym/env"
)

// Errors can be told apart with package errors: by the contract of package env, and by the server's code.
func ExampleClient_Open() {
	url, stop := listen()
	defer stop()
	ctx := context.Background()
	c, err := client.Dial(ctx, client.Config{URL: url})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	_, err = c.Open(ctx, "Teapot-v1", nil)
	var refused *wire.Error
	fmt.Println(errors.As(err, &refused), refused.Code)

	e, err := c.Open(ctx, "InvalidAction-v1", nil)
	if err != nil {
		log.Fatal(err)
	}
	ts := env.NewTimeStep(e.Spec())
	fmt.Println(errors.Is(e.Step(ctx, env.Action{Disc: []int32{0}}, ts), env.ErrResetNeeded))
	if err := e.Reset(ctx, env.Episode{Seed: 1, Window: -1}, ts); err != nil {
		log.Fatal(err)
	}
	for a, legal := range ts.Mask {
		if !legal {
			fmt.Println(errors.Is(e.Step(ctx, env.Action{Disc: []int32{int32(a)}}, ts), env.ErrIllegalAction))
			break
		}
	}
	// Output:
	// true unknown_env
	// true
	// true
}

// 64 environments are stepped in one round trip.
func ExampleClient_OpenVec() {
	url, stop := listen()
	defer stop()
	ctx := context.Background()
	c, err := client.Dial(ctx, client.Config{URL: url})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	const n = 64
	v, err := c.OpenVec(ctx, "CartPole-v1", nil, n, client.VecConfig{Autoreset: client.SameStep})
	if err != nil {
		log.Fatal(err)
	}
	v.Seed(7)
	b, a := env.NewBatch(v.Spec(), n), env.NewActions(v.Spec(), n)
	if err := v.Reset(ctx, nil, nil, b); err != nil {
		log.Fatal(err)
	}
	episodes := 0
	for range 100 {
		for i := range a.Disc { // push towards the side to which the pole leans
			a.Disc[i] = 0
			if b.Obs[i*v.Spec().ObsLen()+2] > 0 {
				a.Disc[i] = 1
			}
		}
		if err := v.Step(ctx, nil, a, b); err != nil {
			log.Fatal(err)
		}
		episodes += len(b.FinalRows)
	}
	fmt.Println(episodes, "episodes ended in", 100*n, "steps")
	// Output: 124 episodes ended in 6400 steps
}

// Rows are received as they finish, two at a time, and sent on without waiting for the others.
func ExampleVec_Send() {
	url, stop := listen()
	defer stop()
	ctx := context.Background()
	c, err := client.Dial(ctx, client.Config{URL: url})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	const n = 4
	v, err := c.OpenVec(ctx, "Bandit-v1", nil, n, client.VecConfig{Autoreset: client.SameStep, Batch: 2})
	if err != nil {
		log.Fatal(err)
	}
	b, a := env.NewBatch(v.Spec(), n), env.NewActions(v.Spec(), n)
	if err := v.Reset(ctx, nil, nil, b); err != nil {
		log.Fatal(err)
	}
	if err := v.Send(ctx, nil, a); err != nil {
		log.Fatal(err)
	}
	steps := 0
	for steps < 40 {
		rows, err := v.Recv(ctx, b)
		if err != nil {
			log.Fatal(err)
		}
		steps += len(rows)
		if err := v.Send(ctx, rows, a); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(steps, "steps,", v.Pending(), "rows are out")
	// Output:
	// 40 steps, 4 rows are out
}

// A snapshot continues the same episode, bit for bit, also in another environment of the same id and kwargs.
func ExampleEnv_AppendSnapshot() {
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
	blob, err := e.AppendSnapshot(nil)
	if err != nil {
		log.Fatal(err)
	}
	right := env.Action{Disc: []int32{1}}
	for range 3 {
		if err := e.Step(ctx, right, ts); err != nil {
			log.Fatal(err)
		}
	}
	angle := ts.Obs[2]
	if err := e.RestoreSnapshot(blob, ts); err != nil {
		log.Fatal(err)
	}
	for range 3 {
		if err := e.Step(ctx, right, ts); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(ts.Obs[2] == angle)
	// Output: true
}
