package ddqn

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

// valuesOf are the online network's action values of an observation, every action legal.
func valuesOf(t testing.TB, a *Agent, obs ...float32) []float64 {
	t.Helper()
	q, mask := make([]float32, a.net.Actions()), make([]bool, a.net.Actions())
	for k := range mask {
		mask[k] = true
	}
	if err := a.fwd.Run(context.Background(), obs, mask, 1, q); err != nil {
		t.Fatal(err)
	}
	out := make([]float64, len(q))
	for k, v := range q {
		out[k] = float64(v)
	}
	return out
}
