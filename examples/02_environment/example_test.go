// One episode of JobSelect-v1: the agent chooses which waiting job starts.
package environment_test

import (
	"context"
	"fmt"
	"log"

	"clustergym/bridge/wire"
	"clustergym/env"
	"clustergym/lab/envs"
)

func Example() {
	ctx := context.Background()
	registry, err := envs.NewRegistry(envs.DefaultRegistryConfig())
	if err != nil {
		log.Fatal(err)
	}
	args := wire.Map{{Key: "window", Value: int64(32)}, {Key: "warm", Value: int64(0)}}
	made, err := registry.Make(ctx, "JobSelect-v1", args, 1)
	if err != nil {
		log.Fatal(err)
	}
	defer made.Release()
	e := made.Envs[0]
	defer e.Close()

	spec := e.Spec()
	ts := env.NewTimeStep(spec)
	if err := e.Reset(ctx, env.Episode{Seed: 1, Window: 0}, ts); err != nil { // the first window of the workload
		log.Fatal(err)
	}
	steps := 0
	for !ts.Kind.Last() {
		first := int32(0) // the first job that fits, or waiting, which is the last action
		for !ts.Mask[first] {
			first++
		}
		if err := e.Step(ctx, env.Action{Disc: []int32{first}}, ts); err != nil {
			log.Fatal(err)
		}
		steps++
	}
	fmt.Println(spec.ID, "has", spec.Action.Sizes[0], "actions")
	fmt.Println("all 32 jobs were started:", steps >= 32)
	// Output:
	// JobSelect-v1 has 11 actions
	// all 32 jobs were started: true
}
