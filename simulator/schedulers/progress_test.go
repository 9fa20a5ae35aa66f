package schedulers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// turnsOf plays twelve jobs, each of which needs all eight GPUs, under a policy that lets them take turns.
func turnsOf(t *testing.T, change func(c *schedulers.Config, run *sim.Config)) error {
	t.Helper()
	var jobs []traces.Job
	for i := range 12 {
		j := whole(fmt.Sprint(i), 0, 5000*second, 8)
		j.MinGPUs, j.MaxGPUs = 4, 8
		j.Profile = madeUp[0]
		jobs = append(jobs, j)
	}
	cfg, run := schedulers.DefaultConfig(), sim.DefaultConfig()
	change(&cfg, &run)
	h, err := schedulers.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s, err := sim.New(run, cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{GPUs: 8}}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
		t.Fatal(err)
	}
	return sim.Run(context.Background(), s, h)
}

// A restart that costs as much as a turn, or nearly so: no job would ever end, or only after millions of turns. The
// error says what a restart costs and how long a turn is. With a restart that costs somewhat less, the jobs end.
func TestTurnsThatBringNothingEnd(t *testing.T) {
	minute := time.Minute
	for name, x := range map[string]struct {
		change func(c *schedulers.Config, run *sim.Config)
		says   []string // nothing: the run ends
	}{
		"gandiva": {func(c *schedulers.Config, r *sim.Config) { c.Order, r.Restart = "gandiva", minute },
			[]string{"gandiva", "1m0s", "round"}},
		"nearly": {func(c *schedulers.Config, r *sim.Config) {
			c.Order, r.Restart = "gandiva",
				minute-10*time.Millisecond
		}, []string{"59.99s", "1m0s"}},
		"more": {func(c *schedulers.Config, r *sim.Config) { c.Order, r.Restart = "gandiva", 10*minute },
			[]string{"10m0s", "1m0s"}},
		"enough": {func(c *schedulers.Config, r *sim.Config) { c.Order, r.Restart = "gandiva", minute-second }, nil},
		"a round": {func(c *schedulers.Config, r *sim.Config) {
			c.Order, c.Round, r.Restart = "gandiva", 7*second,
				7*second
		}, []string{"7s"}},
		"gavel-las": {func(c *schedulers.Config, r *sim.Config) { c.Order, r.Restart = "gavel-las", 6*minute },
			[]string{"gavel-las", "6m0s"}},
		"gavel-ftf": {func(c *schedulers.Config, r *sim.Config) { c.Order, r.Restart = "gavel-ftf", 6*minute },
			[]string{"gavel-ftf", "6m0s"}},
		"overheads": {func(c *schedulers.Config, r *sim.Config) { c.Order, r.Overhead.Start = "gandiva", minute },
			[]string{"1m0s"}},
		"both": {func(c *schedulers.Config, r *sim.Config) {
			c.Order, r.Overhead.Start, r.Overhead.Stop, r.Restart = "gandiva", 20*second, 20*second, 40*second
		}, []string{"1m20s"}},
		"checkpoints": {func(c *schedulers.Config, r *sim.Config) { c.Order, r.Checkpoint = "gandiva", 10*minute },
			[]string{"one every 10m0s", "1m0s"}},
		"a horizon": {func(c *schedulers.Config, r *sim.Config) {
			c.Order, r.Restart, r.Horizon = "gandiva", minute, 20*24*time.Hour
		}, nil},
		"no contention": {func(c *schedulers.Config, r *sim.Config) {
			c.Order, c.Admission, r.Restart = "srtf", "strict", 10*minute
		}, nil},
	} {
		err := turnsOf(t, x.change)
		if x.says == nil {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if !errors.Is(err, schedulers.ErrNoProgress) {
			t.Errorf("%s: got %v", name, err)
			continue
		}
		for _, say := range x.says {
			if !strings.Contains(err.Error(), say) {
				t.Errorf("%s: %q does not say %q", name, err, say)
			}
		}
	}
}
