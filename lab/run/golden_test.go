package run

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clustergym/configs"
	"clustergym/internal/raced"
	"clustergym/lab/config"
	"clustergym/nets/kernel"
)

// golden compares lines with testdata/name; -update rewrites the file.
func golden(t *testing.T, name string, lines []string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	got := strings.Join(lines, "\n") + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	for _, l := range lines {
		if !slices.Contains(want, l) {
			t.Errorf("%s does not have\n  %s", file, l)
		}
	}
	for _, l := range want {
		if !slices.Contains(lines, l) {
			t.Errorf("%s has, and this program does not give,\n  %s", file, l)
		}
	}
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Run directories keep their bytes, so that a run from an older version continues and ends the same. The portable
// kernels give the same bits on every amd64 machine.
var update = flag.Bool("update", false, "rewrite testdata")

func TestRunDirectoriesKeepTheirBytes(t *testing.T) {
	if raced.On {
		t.Skip("trains; without the race detector this test runs in make unit")
	}
	was := kernel.Set()
	t.Cleanup(func() {
		if err := kernel.Use(was); err != nil {
			t.Error(err)
		}
	})
	problem := func(id, agent string) config.Config {
		c := config.For(id)
		c.Name, c.Agent = "tiny", agent
		c.PPO.Steps, c.PPO.Epochs, c.PPO.Minibatches, c.PPO.Network.Hidden = 32, 2, 2, []int{16}
		c.DDQN.Buffer, c.DDQN.LearningStarts, c.DDQN.Batch, c.DDQN.TrainEvery, c.DDQN.TargetEvery = 300, 100, 16, 16, 300
		c.DDQN.Network.Hidden = []int{16}
		c.Train.Steps, c.Train.Envs, c.Train.LogEvery, c.Train.EvalEvery, c.Train.CheckpointEvery = 800, 4, 200, 400, 400
		c.Eval.Episodes, c.Eval.Validation = 4, 2
		return c
	}
	runs := map[string]config.Config{
		"jobselect ppo": tinyRun("ppo"), "jobselect ddqn": tinyRun("ddqn"),
		"cartpole ppo": problem("CartPole-v1", "ppo"), "cartpole ddqn": problem("CartPole-v1", "ddqn"),
		"jobselect attention": attentive("ppo"),
		"dagplace ddqn":       problem("DAGPlace-v1", "ddqn"), "workerplace ppo": problem("WorkerPlace-v1", "ppo"),
	}
	bandit, err := config.Preset("bandit-maml")
	if err != nil {
		t.Fatal(err)
	}
	bandit.Name, bandit.Train.Steps, bandit.MAML.Tasks = "tiny", 4000, 4
	bandit.Train.LogEvery, bandit.Train.EvalEvery, bandit.Train.CheckpointEvery = 2000, 2000, 2000
	bandit.Eval.Episodes, bandit.Eval.Validation = 2, 2
	runs["bandit maml"] = bandit
	var lines []string
	for name, cfg := range runs {
		cfg.Kernels = "portable"
		dir := t.TempDir()
		trainTo(t, cfg, dir, TrainOptions{Workers: 2})
		for file, text := range contents(t, filepath.Join(dir, "tiny")) {
			lines = append(lines, fmt.Sprintf("%s %s %s", strings.ReplaceAll(name, " ", "-"), file, digest([]byte(text))))
		}
	}
	slices.Sort(lines)
	golden(t, "golden_runs.txt", lines)
}

// Equal presets are equal runs: this is the text of each preset as config.yaml.
func TestPresetsKeepTheirBytes(t *testing.T) {
	var lines []string
	for _, name := range configs.Runs() {
		cfg, err := config.Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		text, err := configs.Encode(&cfg)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, name+" "+digest(text))
	}
	golden(t, "golden_presets.txt", lines)
}

// quickstart-exact is the quick start of versions that showed agents the run times, apart from its name.
func TestTheExactQuickStartIsTheEarlierOne(t *testing.T) {
	cfg, err := config.Preset("quickstart-exact")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Name = "quickstart"
	text, err := configs.Encode(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	if got := digest(text); got != "3d01e4cfaa76af918281e940cad2e2f98aec322566bd1407d066e07e3b5c0efc" {
		t.Errorf("quickstart-exact is another run, %s:\n%s", got, text)
	}
	causal, err := config.Preset("quickstart-v1")
	if err != nil {
		t.Fatal(err)
	}
	// What differs beside the jobs and what is known of them is how the agent learns, not in what and with which network.
	network := causal.PPO.Network
	causal.Train, causal.Eval, causal.PPO, causal.Trace.Synth = cfg.Train, cfg.Eval, cfg.PPO, cfg.Trace.Synth
	causal.PPO.Network = network
	if err := configs.Set(&causal, "env.estimates=exact"); err != nil {
		t.Fatal(err)
	}
	if got, err := configs.Encode(&causal); err != nil || string(got) != string(text) {
		t.Errorf(
			"quickstart differs from quickstart-exact in more than its jobs, what is known of them and how it learns (%v):\n%s",
			err, got)
	}
}
