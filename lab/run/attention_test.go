package run

import (
	"maps"
	"path/filepath"
	"testing"

	"clustergym/internal/raced"
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/nets/model"
	"clustergym/simulator/sim"
)

// attentive returns a tiny run whose agent sees rows of tables with an attention network.
func attentive(agent string) config.Config {
	c := tinyRun(agent)
	net := model.Config{
		Kind: model.KindAttention, Activation: "relu", Head: "slots", SlotHidden: 8, Hidden: []int{8},
		Attention: model.Attention{Width: 8, Heads: 2, Layers: 2, Feed: 8},
	}
	c.PPO.Network, c.DDQN.Network = net, net
	c.Cluster = "4x4"
	own := jobSelect(&c)
	own.Images, own.Running = false, 6
	c.Eval.Policies = []string{"sjf@slots"}
	return c
}

// A checkpoint with an attention network plays on smaller and larger clusters than that of its training, with other
// numbers of slots and of rows of running gangs; other observations are refused in a sentence.
func TestOneCheckpointPlaysOnEveryCluster(t *testing.T) {
	for _, agent := range []string{"ppo", "ddqn"} {
		cfg := attentive(agent)
		run := trained(t, cfg, 400)
		results := map[string]bool{}
		for _, c := range []struct {
			cluster          string
			visible, running int
		}{{"4x4", 4, 6}, {"2x4", 4, 6}, {"12x4", 4, 6}, {"6x8", 10, 3}} {
			there := cfg
			there.Cluster = c.cluster
			own := jobSelect(&there)
			own.Visible, own.Running = c.visible, c.running
			_, text := evaluate(t, there, arena.EvalOptions{Checkpoints: []string{run}})
			_, again := evaluate(t, there, arena.EvalOptions{Checkpoints: []string{run}, Workers: 3})
			if text != again {
				t.Errorf("%s on %s: 3 workers give another report", agent, c.cluster)
			}
			results[text] = true
		}
		if len(results) != 4 {
			t.Errorf("%s: %d different reports of 4 clusters", agent, len(results))
		}
		forecasts := cfg
		jobSelect(&forecasts).Estimates = sim.MustEstimates("history")
		_, err := arena.Evaluate(t.Context(), forecasts, arena.EvalOptions{Checkpoints: []string{run}, Workers: 1})
		refused(t, agent+", rows of other columns", err,
			"does not fit this environment, whose fields have other columns than those of its training")
	}
}

// Where running gangs can be stopped, the actions stand for the rows of two tables.
func TestAttentionStopsGangs(t *testing.T) {
	cfg := attentive("ppo")
	own := jobSelect(&cfg)
	own.Preempt = true
	cfg.PPO.Network.Attention.Slots = []string{"jobs", "running"}
	run := trained(t, cfg, 128)
	cfg.Cluster, own.Running = "2x4", 9
	evaluate(t, cfg, arena.EvalOptions{Checkpoints: []string{run}})
}

func TestAttentionTrainsAlikeWithAnyNumberOfWorkers(t *testing.T) {
	if raced.On {
		t.Skip("trains; without the race detector this test runs in make unit")
	}
	for _, agent := range []string{"ppo", "ddqn"} {
		cfg := attentive(agent)
		cfg.Train.Steps, cfg.PPO.Shards, cfg.DDQN.Shards = 800, 3, 3
		var all []map[string]string
		for _, workers := range []int{1, 3} {
			dir := t.TempDir()
			trainTo(t, cfg, dir, TrainOptions{Workers: workers})
			all = append(all, contents(t, filepath.Join(dir, "tiny")))
		}
		if !maps.Equal(all[0], all[1]) {
			t.Errorf("%s: 3 workers train otherwise than one", agent)
		}
	}
}
