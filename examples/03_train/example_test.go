// PPO learns to balance a pole, in four environments that are stepped together.
package train_test

import (
	"context"
	"fmt"
	"log"

	"clustergym/agents/ppo"
	"clustergym/agents/train"
	"clustergym/env"
	"clustergym/env/control"
	"clustergym/env/vec"
)

func Example() {
	const rows, seed = 4, 1
	var problems []env.Env
	for range rows {
		p, err := control.New("CartPole-v1")
		if err != nil {
			log.Fatal(err)
		}
		problems = append(problems, p)
	}
	envs, err := vec.New(vec.Config{Autoreset: vec.SameStep}, problems...)
	if err != nil {
		log.Fatal(err)
	}
	cfg := ppo.DefaultConfig() // the settings of CleanRL
	cfg.LR = 0.001
	agent, err := ppo.New(cfg, envs.Spec(), rows, 1, seed)
	if err != nil {
		log.Fatal(err)
	}
	run := train.DefaultConfig()
	run.Steps, run.Envs, run.LogEvery, run.EvalEvery, run.CheckpointEvery = 20480, rows, 1024, 0, 0
	trainer, err := train.New(run, envs, agent, seed)
	if err != nil {
		log.Fatal(err)
	}
	var returns []float64 // mean return of the last 100 episodes
	err = trainer.Run(context.Background(), train.Hooks{Log: func(r train.Record) error {
		returns = append(returns, r.Return)
		return nil
	}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("steps:", trainer.Step())
	fmt.Println("three times as long at the end:", returns[len(returns)-1] > 3*returns[0])
	// Output:
	// steps: 20480
	// three times as long at the end: true
}
