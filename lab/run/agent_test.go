package run

import (
	"fmt"
	"slices"
	"testing"

	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/traces"
)

// The quick start's network follows the observation. With its own sizes it has the initial weights that it had when its
// kernels were written out: [20, 8] for a slot and [20, 4] for a machine.
func TestTheQuickStartHasTheWeightsOfItsWrittenOutKernels(t *testing.T) {
	for agent, want := range map[string]string{
		"ppo":  "cab214c1f7a74600",
		"ddqn": "e7a4aef59b3d49c0",
	} {
		cfg, err := config.Preset("quickstart-exact")
		if err != nil {
			t.Fatal(err)
		}
		cfg.Agent, cfg.Trace.Synth.Jobs = agent, 6000
		scenario, err := arena.NewScenario(&cfg)
		if err != nil {
			t.Fatal(err)
		}
		weights := func(cfg config.Config) (shapes string, values []float32) {
			e, err := scenario.NewEnv(traces.Training, cfg.Gamma())
			if err != nil {
				t.Fatal(err)
			}
			a, err := arena.NewAgent(&cfg, e.Spec(), 1)
			if err != nil {
				t.Fatal(err)
			}
			return fingerprint(a.Params()), a.Params().Data
		}
		shapes, values := weights(cfg)
		for field, width := range map[int]int{1: 8, 2: 4} {
			for _, key := range []string{"kernel", "stride"} {
				if err := cfg.Set(fmt.Sprintf("%s.network.branches[%d].convs[0].%s=[20, %d]", agent, field, key, width)); err !=
					nil {
					t.Fatal(err)
				}
			}
		}
		if written, explicit := weights(cfg); shapes != written || !slices.Equal(values, explicit) {
			t.Errorf("%s: other weights than with kernels written out", agent)
		}
		if shapes != want { // as checkpoints of the quick start have it
			t.Errorf("%s: network %s, want %s", agent, shapes, want)
		}
	}
}
