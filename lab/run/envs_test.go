package run

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"clustergym/agents/train"
	"clustergym/internal/fault"
	"clustergym/internal/raced"
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/lab/report"
	"clustergym/lab/rundir"
	"clustergym/simulator/dag/dagjson"
	"clustergym/simulator/dag/synth"
)

// tinyIn returns a very short run in the environment called id, with the given keys changed.
func tinyIn(t *testing.T, id string, sets ...string) config.Config {
	t.Helper()
	c := config.For(id)
	c.Name = "tiny"
	c.PPO.Steps, c.PPO.Epochs, c.PPO.Minibatches = 32, 1, 2
	c.PPO.Network.Hidden = []int{8}
	c.DDQN.Buffer, c.DDQN.LearningStarts, c.DDQN.Batch, c.DDQN.TrainEvery = 200, 64, 16, 16
	c.DDQN.Network.Hidden = []int{8}
	c.Train.Steps, c.Train.Envs, c.Train.LogEvery, c.Train.EvalEvery, c.Train.CheckpointEvery = 256, 2, 128, 128, 128
	c.Eval.Validation, c.Eval.Whole = 2, false
	if c.Simulated() {
		c.Eval.Windows = 3
		sets = append([]string{"trace.synth.jobs=1200", "env.window=16"}, sets...)
	} else {
		c.Eval.Episodes = 3
	}
	for _, s := range sets {
		if err := c.Set(s); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// tableOf returns the table of a comparison, and its header.
func tableOf(t *testing.T, c arena.Comparison) (table, header string) {
	t.Helper()
	var b strings.Builder
	if err := c.WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	rest := b.String()
	if strings.HasPrefix(rest, "estimates: ") {
		_, rest, _ = strings.Cut(rest, "\n\n")
	}
	header, _, _ = strings.Cut(rest, "\n")
	return b.String(), header
}

// interrupted trains cfg in dir/tiny and interrupts it at step cut.
func interrupted(t *testing.T, cfg config.Config, dir string, cut int64) {
	t.Helper()
	ctx, cancel := cancelled(t)
	_, err := Train(ctx, cfg, TrainOptions{RunDir: filepath.Join(dir, "tiny"), Workers: 2, Tick: func(p train.Progress) {
		if p.Step >= cut {
			cancel()
		}
	}})
	if !errors.Is(err, fault.ErrInterrupted) {
		t.Fatalf("%v, want fault.ErrInterrupted", err)
	}
}

// seedsTable checks that two seeds of cfg end with a table that has the metric and every rival.
func seedsTable(t *testing.T, cfg config.Config) {
	t.Helper()
	d := cfg.Descriptor()
	r, err := TrainSeeds(t.Context(), cfg, 2, TrainOptions{RunDir: filepath.Join(t.TempDir(), "seeds"), Workers: 2})
	if err != nil {
		t.Fatalf("%s: %v", d.ID, err)
	}
	var b strings.Builder
	if err := r.WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	if r.Metric != d.Metric.Key || len(r.Runs) != 2 {
		t.Errorf("%s: two seeds are %d runs compared by %q", d.ID, len(r.Runs), r.Metric)
	}
	for _, want := range append([]string{d.Metric.Title, "all", "2 seeds"}, d.Rivals...) {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s: %q is missing in the table of two seeds:\n%s", d.ID, want, b.String())
		}
	}
}

// A short training in every environment on the simulator: the comparison uses the environment's metric and its rivals,
// and is the same with another number of workers and after an interruption.
func TestEveryEnvironmentOnTheSimulatorIsTrainedAndCompared(t *testing.T) {
	if raced.On {
		t.Skip("trains; without the race detector this test runs in make unit")
	}
	for _, c := range []struct {
		id   string
		sets []string
	}{
		{"JobSelect-v1", []string{"env.warm=8"}},
		{"DelayOffer-v1", nil},
		{"GPUPick-v1", nil},
		{"PolicyMix-v1", []string{"env.warm=8"}},
		{"QueueRank-v1", nil},
	} {
		t.Run(c.id, func(t *testing.T) {
			cfg, straight, other := tinyIn(t, c.id, c.sets...), t.TempDir(), t.TempDir()
			d := cfg.Descriptor()
			whole := trainTo(t, cfg, straight, TrainOptions{})
			r, ok := whole.Eval.(*report.Report)
			if !ok || len(r.Windows) != 3 || len(r.Policies) != 1+len(d.Rivals) || r.Policies[0].Kind != report.KindCheckpoint {
				t.Fatalf("the comparison is %+v", whole.Eval)
			}
			for i, name := range d.Rivals {
				if r.Policies[i+1].Name != name || r.Policies[i+1].Metrics == nil {
					t.Errorf("policy %d is %q, want %s", i+1, r.Policies[i+1].Name, name)
				}
			}
			if r.Counts().Key != d.Metric.Key {
				t.Errorf("compared by %q, want %q", r.Counts().Key, d.Metric.Key)
			}
			table, header := tableOf(t, r)
			for _, column := range []string{d.Metric.Title, "IQM [95 %]", "agent vs it [95 %]", "wins"} {
				if !strings.Contains(header, column) {
					t.Errorf("no column %q in %q", column, header)
				}
			}
			if !strings.Contains(table, "difference of "+d.Metric.Title+" on the same windows, negative = ppo@") {
				t.Errorf("the table does not say what is compared:\n%s", table)
			}
			pairs := 0
			for _, p := range r.Paired {
				if p.A == r.Policies[0].Name && p.Metric == d.Metric.Key {
					pairs++
				}
			}
			if pairs != len(d.Rivals) {
				t.Errorf("%d comparisons by %s, want %d", pairs, d.Metric.Key, len(d.Rivals))
			}
			b, ok, err := rundir.ReadBest(filepath.Join(straight, "tiny"))
			if err != nil || !ok || !strings.HasPrefix(b.Metric, "validation/"+d.Metric.Key+" ") ||
				rundir.HigherIsBetter(b.Metric) != d.Metric.Higher {
				t.Errorf("best.json holds %+v (%v)", b, err)
			}

			interrupted(t, cfg, other, 100)
			resumed := trainTo(t, cfg, other, TrainOptions{Resume: true, Workers: 3})
			sameFiles(t, c.id, contents(t, filepath.Join(other, "tiny")), contents(t, filepath.Join(straight, "tiny")), true)
			if !reflect.DeepEqual(resumed.Eval, whole.Eval) {
				t.Errorf("interrupted, resumed and with 3 workers, the comparison is %+v, want %+v", resumed.Eval, whole.Eval)
			}
			seedsTable(t, cfg)
		})
	}
}

// recordings writes a folder of task graphs, and a trace whose jobs name models.
func recordings(t *testing.T) (graphs, jobs string) {
	t.Helper()
	root := t.TempDir()
	graphs, jobs = filepath.Join(root, "graphs"), filepath.Join(root, "jobs.csv")
	if err := os.Mkdir(graphs, 0o750); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		p, err := synth.FamilyProblem("degree-3", 6+i%3, 3, i, true)
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(filepath.Join(graphs, fmt.Sprintf("g%02d.json", i)))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(dagjson.Write(f, p.Graph, nil), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	var b strings.Builder
	b.WriteString("submit_time,duration,num_gpu,model\n")
	for i := range 120 {
		fmt.Fprintf(&b, "%d,%d,%d,%s\n", 60*i, 900+i*7%500, 1+i%3, []string{"resnet-50", "vgg-16"}[i%2])
	}
	if err := os.WriteFile(jobs, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return graphs, jobs
}

// The environments over graphs and workers are compared by their metric too, on generated episodes and on recorded
// ones.
func TestGraphsAndWorkersAreTrainedAndCompared(t *testing.T) {
	if raced.On {
		t.Skip("trains; without the race detector this test runs in make unit")
	}
	graphs, jobs := recordings(t)
	for _, c := range []struct {
		name, id, agent, file string
		sets                  []string
		episodes              int
	}{
		{"generated graphs", "DAGPlace-v1", "ddqn", "", []string{"env.tasks=8", "env.gpus=3"}, 3},
		{"recorded graphs", "DAGPlace-v1", "ppo", graphs, []string{"env.gpus=3"}, 2}, // the test part has 2 of 10
		{"generated workers", "WorkerPlace-v1", "ppo", "", []string{"env.jobs=4"}, 3},
		{"recorded workers", "WorkerPlace-v1", "ppo", jobs, []string{"env.jobs=4"}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg, straight, other := tinyIn(t, c.id, c.sets...), t.TempDir(), t.TempDir()
			cfg.Agent, cfg.Trace.File = c.agent, c.file
			d := cfg.Descriptor()
			whole := trainTo(t, cfg, straight, TrainOptions{})
			r, ok := whole.Eval.(*report.EpisodeReport)
			if !ok || r.Metric != d.Metric.Key || r.Episodes != c.episodes || len(r.Policies) != 1+len(d.Rivals) ||
				len(r.Paired) != len(d.Rivals) {
				t.Fatalf("the comparison is %+v", whole.Eval)
			}
			for i, p := range r.Policies {
				if p.Score == nil || !(p.Score.Mean > 0) || i > 0 && p.Name != d.Rivals[i-1] ||
					(p.Return == nil) != (p.Kind == "planner") {
					t.Errorf("policy %d is %+v", i, p)
				}
			}
			for i, p := range r.Paired {
				if p.A != r.Policies[0].Name || p.B != d.Rivals[i] || p.Metric != d.Metric.Key {
					t.Errorf("comparison %d is %+v", i, p)
				}
			}
			table, header := tableOf(t, r)
			for _, column := range []string{d.Metric.Title, "agent vs it [95 %]", "wins"} {
				if !strings.Contains(header, column) {
					t.Errorf("no column %q in %q", column, header)
				}
			}
			from := "from seed 1"
			if c.file != "" {
				from = "of " + c.file
			}
			if want := fmt.Sprintf("%s: %d test episodes %s, the same for every policy", c.id, c.episodes,
				from); !strings.Contains(table, want) {
				t.Errorf("%q is missing in\n%s", want, table)
			}
			if planners := slices.ContainsFunc(d.Rivals, func(n string) bool { return n == "heft" }); planners !=
				strings.Contains(table, "PLANNER decides") {
				t.Errorf("the note on planners is wrong for %s:\n%s", c.id, table)
			}

			interrupted(t, cfg, other, 100)
			resumed := trainTo(t, cfg, other, TrainOptions{Resume: true, Workers: 3})
			sameFiles(t, c.name, contents(t, filepath.Join(other, "tiny")), contents(t, filepath.Join(straight, "tiny")), true)
			if !reflect.DeepEqual(resumed.Eval, whole.Eval) {
				t.Errorf("interrupted, resumed and with 3 workers, the comparison is %+v, want %+v", resumed.Eval, whole.Eval)
			}
			seedsTable(t, cfg)
		})
	}
}

// Without checkpoints, a meta-learner's configuration compares the rules of its environment.
func TestRulesAreComparedUnderAMetaLearnersConfiguration(t *testing.T) {
	cfg := tinyIn(t, "WorkerPlace-v1", "env.jobs=4", "agent=maml", "eval.policies=[random@slots, sjf-waits@slots]")
	cfg.Train.Envs = config.For("WorkerPlace-v1").Train.Envs
	c, err := arena.Compare(t.Context(), cfg, arena.EvalOptions{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	if r, ok := c.(*report.EpisodeReport); !ok || len(r.Policies) != 2 || r.Policies[1].Name != "sjf-waits@slots" ||
		len(r.Paired) != 0 {
		t.Errorf("the comparison is %+v", c)
	}
	_, err = arena.Compare(t.Context(), tinyMeta("Bandit-v1"), arena.EvalOptions{Workers: 1})
	refused(t, "a problem without checkpoints", err, "nothing to evaluate: name checkpoints of agent maml")
}

// Older versions wrote the settings of DelayOffer-v1 as env.args. Such a run can be resumed and ends like one with
// keys.
func TestARunWithArgumentsGoesOn(t *testing.T) {
	keys := tinyIn(t, "DelayOffer-v1", "env.lease=5m", "env.load=2")
	want := trainTo(t, keys, t.TempDir(), TrainOptions{})

	old := tinyIn(t, "DelayOffer-v1", "env.window=256")
	if err := old.Set("env.args=[window=16, lease=5m, load=2]"); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	interrupted(t, old, dir, 100)
	text, err := os.ReadFile(filepath.Join(dir, "tiny", rundir.ConfigFile))
	if err != nil {
		t.Fatal(err)
	}
	bare := old.Descriptor().ID // as it stood in old files: the id and the arguments alone
	start, end := strings.Index(string(text), "\nenv:\n"), strings.Index(string(text), "\nagent:")
	if start < 0 || end < start {
		t.Fatalf("config.yaml has no section env before agent:\n%s", text)
	}
	edited := string(text[:start]) + "\nenv:\n  id: " + bare + "\n  args: [window=16, lease=5m, load=2]" +
		string(text[end:])
	if err := os.WriteFile(filepath.Join(dir, "tiny", rundir.ConfigFile), []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
	read, err := rundir.ReadConfig(filepath.Join(dir, "tiny"))
	if err != nil || !reflect.DeepEqual(read.Env, keys.Env) {
		t.Fatalf("read %+v (%v), want %+v", read.Env.Settings, err, keys.Env.Settings)
	}
	got := trainTo(t, read, dir, TrainOptions{Resume: true})
	if !reflect.DeepEqual(got.Eval, want.Eval) {
		t.Errorf("with arguments the comparison is %+v, want %+v", got.Eval, want.Eval)
	}
}

// If every job of a window fits one node, there is no offer to answer: the agent and every rule have the same result.
// Training draws such windows again.
func TestWindowsWithoutAnOfferAreTheSameForEveryPolicy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "jobs.csv")
	var b strings.Builder
	b.WriteString("submit_time,duration,num_gpu\n")
	for i := range 900 {
		gpus := 1
		if i < 800 { // the last test windows have single GPUs only
			gpus = []int{1, 6, 2, 5, 8, 3}[i%6]
		}
		fmt.Fprintf(&b, "%d,%d,%d\n", 240*i, 300+i*977%3000, gpus)
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := tinyIn(t, "DelayOffer-v1", "cluster=2x8", "trace.file="+file, "trace.mix=dally", "eval.windows=11",
		"eval.policies=[accept@slots, decline@slots, las+skip]")
	c, err := arena.Compare(t.Context(), cfg, arena.EvalOptions{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	r := c.(*report.Report)
	accept, decline := r.Policies[0].Metrics.JCT.PerWindow, r.Policies[1].Metrics.JCT.PerWindow
	if n := len(accept); n != 11 || accept[n-1] != decline[n-1] || !(accept[n-1] > 300) || slices.Equal(accept, decline) {
		t.Errorf("accepting takes %v s, declining %v s; want the last of 11 windows alike, and not all of them", accept,
			decline)
	}
	trainTo(t, cfg, t.TempDir(), TrainOptions{}) // most windows to train on have an offer; others are drawn again

	cfg.Trace.Mix = ""
	_, err = arena.NewScenario(&cfg)
	refused(t, "jobs without models", err, "job ", " wants 6 GPUs and has no profile of its model; DelayOffer-v1 needs ",
		"trace.mix", "dally")
	if err := cfg.Set("env.comm=tree"); err != nil {
		t.Fatal(err)
	}
	if _, err := arena.NewScenario(&cfg); err != nil {
		t.Errorf("comm tree needs no models: %v", err)
	}
}
