package dagplace

import (
	"testing"

	"clustergym/env"
)

// No planner gets below the bound, on graphs and platforms of all kinds.
func TestNoPlanIsShorterThanTheLeast(t *testing.T) {
	for _, change := range []func(c *Config){
		func(*Config) {},
		func(c *Config) { c.Graph = "fork-join" },
		func(c *Config) { c.Graph = "training" },
	} {
		cfg := DefaultConfig()
		change(&cfg)
		e, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(10) {
			ep := env.Episode{Seed: seed, Window: -1}
			least, leader, err := e.Least(t.Context(), ep)
			if err != nil {
				t.Fatal(err)
			}
			for _, planner := range Planners() {
				made, heft, err := e.Plan(t.Context(), ep, planner)
				if err != nil {
					t.Fatal(err)
				}
				if heft != leader || made < least*(1-1e-12) || least <= 0 {
					t.Errorf("%s, seed %d: %s takes %v s and HEFT %v s; the bound is %v s, and the leader takes %v s", cfg.Graph, seed,
						planner, made, heft, least, leader)
				}
			}
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}
