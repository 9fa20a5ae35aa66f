package mbmpo_test

import (
	"context"
	"slices"
	"testing"

	"clustergym/agents/maml"
	"clustergym/agents/mbmpo"
	"clustergym/agents/ppo"
	"clustergym/env/workerplace"
	"clustergym/nets/model"
)

var ctx = context.Background()

func world(change func(c *workerplace.Config)) mbmpo.Real {
	c := workerplace.DefaultConfig()
	c.Obs, c.Slots, c.Jobs, c.Noise = "pairs", 5, 40, 0.02
	if change != nil {
		change(&c)
	}
	return mbmpo.Real{Open: func() (*workerplace.Env, error) { return workerplace.New(c) }}
}

// policy scores every pair of job and server with the same small network.
func policy(t testing.TB, r mbmpo.Real, width int) func() (mbmpo.Model, error) {
	t.Helper()
	e, err := r.Open()
	if err != nil {
		t.Fatal(err)
	}
	c := ppo.ModelConfig{Network: model.Config{
		Kind: "cnn", Hidden: []int{width}, Activation: "tanh", Head: "slots", SlotHidden: width,
		Branches: []model.Branch{{Field: "pairs", Dense: []int{width}, Slots: true}},
	}}
	return func() (mbmpo.Model, error) { return ppo.NewModel(c, e.Spec(), 3) }
}

var _ maml.Model = mbmpo.Model(nil)

func seeds(n int) []uint64 {
	s := make([]uint64, n)
	for i := range s {
		s[i] = 1<<40 + uint64(i)
	}
	return s
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x / float64(len(v))
	}
	return sum
}

var _ = slices.Equal[[]int]
