package ppo

import (
	"context"
	"testing"

	"clustergym/agents/agenttest"
	"clustergym/env"
	"clustergym/env/vec"
)

type loop = agenttest.Loop[*Agent]

// builder makes agents of one setting.
func builder(cfg Config) agenttest.Constructor[*Agent] {
	return func(spec env.Spec, rows, workers int, seed uint64) (*Agent, error) {
		return New(cfg, spec, rows, workers, seed)
	}
}

func newLoop(t testing.TB, id string, rows, workers int, mode vec.Autoreset, cfg Config, seed uint64, total int) *loop {
	t.Helper()
	return agenttest.NewLoop(t, builder(cfg),
		agenttest.Setting{Env: id, Rows: rows, Workers: workers, Autoreset: mode, Seed: seed, Total: total})
}

// valueOf is the critic's value of an observation.
func valueOf(t testing.TB, a *Agent, obs ...float32) float64 {
	t.Helper()
	v := make([]float32, 1)
	if err := a.fwd.Run(context.Background(), obs, 1, nil, v); err != nil {
		t.Fatal(err)
	}
	return float64(v[0])
}
