// An agent is saved as a checkpoint, and its greedy policy is read from there and plays an episode.
package checkpoint_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"clustergym/agents/checkpoint"
	"clustergym/agents/ppo"
	"clustergym/env"
	"clustergym/env/control"
	"clustergym/env/vec"
)

func Example() {
	ctx := context.Background()
	cartpole, err := control.New("CartPole-v1")
	if err != nil {
		log.Fatal(err)
	}
	envs, err := vec.New(vec.DefaultConfig(), cartpole)
	if err != nil {
		log.Fatal(err)
	}
	root, err := os.MkdirTemp("", "checkpoint")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(root) }()
	cfg, spec := ppo.DefaultConfig(), envs.Spec()
	agent, err := ppo.New(cfg, spec, 1, 1, 7)
	if err != nil {
		log.Fatal(err)
	}
	dir := checkpoint.Dir(root, 0)
	if err := checkpoint.Save(dir, checkpoint.Meta{Env: spec.ID, Agent: "ppo"}, agent.Parts()...); err != nil {
		log.Fatal(err)
	}

	weights, meta, err := checkpoint.Open(dir, "weights.safetensors")
	if err != nil {
		log.Fatal(err)
	}
	defer weights.Close()
	policy, err := ppo.NewPolicy(cfg, spec, weights)
	if err != nil {
		log.Fatal(err)
	}
	batch, actions := env.NewBatch(spec, 1), env.NewActions(spec, 1)
	err = envs.Reset(ctx, nil, []env.Episode{{Seed: 1, Window: -1}}, batch)
	for steps := 0; err == nil && steps < 5; steps++ {
		if err = policy.Act(ctx, batch, actions, nil); err == nil {
			err = envs.Step(ctx, nil, actions, batch)
		}
	}
	fmt.Println(meta.Agent, "plays", meta.Env, "without a fault:", err == nil)
	// Output: ppo plays CartPole-v1 without a fault: true
}
