package run

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"clustergym/agents/train"
	"clustergym/configs"
	"clustergym/internal/fault"
	"clustergym/internal/raced"
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/lab/envs"
	"clustergym/lab/report"
	"clustergym/lab/rundir"
	"clustergym/nets/kernel"
)

// tinyProblem returns a very short run on CartPole.
func tinyProblem(agent string) config.Config {
	c := config.For("CartPole-v1")
	c.Name, c.Agent = "tiny", agent
	c.PPO.Steps, c.PPO.Epochs, c.PPO.Minibatches = 32, 2, 2
	c.PPO.Network.Hidden = []int{16}
	c.DDQN.Buffer, c.DDQN.LearningStarts, c.DDQN.Batch, c.DDQN.TrainEvery, c.DDQN.TargetEvery = 300, 200, 16, 16, 300
	c.DDQN.Network.Hidden = []int{16}
	c.Train.Steps, c.Train.Envs, c.Train.LogEvery, c.Train.EvalEvery, c.Train.CheckpointEvery, c.Train.Keep = 800, 4, 250,
		300, 400, 0
	c.Eval.Episodes, c.Eval.Validation = 6, 3
	return c
}

func TestKeysThatAnEnvironmentDoesNotHaveAreFaultsThatSayWhy(t *testing.T) {
	for _, c := range []struct{ set, want string }{
		{"trace.skip=4", "trace.skip: got 4, want nothing: CartPole-v1 has no workload"},
		{"trace.file=jobs.csv", `trace.file: got "jobs.csv", want nothing: CartPole-v1 has no workload`},
		{"trace.synth.rate=2", "trace.synth.rate: got 2, want nothing: CartPole-v1 has no workload"},
		{"cluster=4x8", `cluster: got "4x8", want nothing: CartPole-v1 has no cluster`},
		{"eval.windows=3", "eval.windows: got 3, want nothing: CartPole-v1 has no windows; see eval.episodes"},
		{"eval.seeds=3", "eval.seeds: got 3, want nothing: CartPole-v1 is played once"},
		{"eval.whole=true", "eval.whole: got true, want false: CartPole-v1 has no workload"},
		{"eval.policies=[fifo]", `eval.policies[0]: got "fifo", want random: policy "fifo" is unknown`},
		{"eval.policies=[random, random]", `eval.policies[1]: got "random", want each policy once`},
		{"eval.episodes=0", "eval.episodes: got 0, want 1 to 1048576"},
		{"env.id=CartPole-v2", `env.id: got "CartPole-v2", want an environment as in gymctl envs; did you mean CartPole-v1?`},
		{"kernels=sse", `kernels: got "sse", want one of auto, avx512, avx2, portable`},
	} {
		cfg := tinyProblem("ppo")
		if strings.HasPrefix(c.set, "env.id") {
			cfg = config.For("JobSelect-v1")
		}
		if err := configs.Set(&cfg, c.set); err != nil {
			t.Fatal(err)
		}
		err := cfg.Validate()
		if n := len(fault.All(err)); n != 1 || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %d faults: %v; want one, %s…", c.set, n, err, c.want)
		}
	}
	problem := tinyProblem("ppo")
	if err := problem.Set("env.reward=wait"); err == nil ||
		err.Error() != `env.reward: got "wait", want nothing: CartPole-v1 has no settings` {
		t.Errorf("a setting of another environment: %v", err)
	}
	cfg := config.For("JobSelect-v1")
	cfg.Eval.Episodes = 7
	if err := cfg.Validate(); err == nil ||
		!strings.Contains(err.Error(), "eval.episodes: got 7, want nothing: JobSelect-v1 is judged on windows") {
		t.Errorf("episodes of JobSelect-v1: %v", err)
	}
}

func TestEveryRegisteredEnvironmentCanBeConfigured(t *testing.T) {
	for _, id := range envs.IDs() {
		cfg := config.For("JobSelect-v1")
		inEnv(&cfg, id)
		if err := cfg.Validate(); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		a, err := arena.New(&cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		if s, err := a.Spec(&cfg); err != nil || s.ID != id {
			t.Errorf("%s: the environment is %q (%v)", id, s.ID, err)
		}
	}
}

// config.yaml leaves out the keys that an environment does not take, and reads as the same run.
func TestConfigOfAProblemShowsWhatItHas(t *testing.T) {
	cfg := tinyProblem("ddqn")
	text, err := configs.Encode(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, absent := range []string{"trace:", "cluster:", "windows:", "whole:", "reward:", "fifo"} {
		if strings.Contains(string(text), "\n"+absent) || strings.Contains(string(text), "\n  "+absent) {
			t.Errorf("%s is shown:\n%s", absent, text)
		}
	}
	read, err := config.Decode("config.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	again, err := configs.Encode(&read)
	if err != nil || string(again) != string(text) {
		t.Errorf("read again it is\n%s\n(%v), want\n%s", again, err, text)
	}
	read.Eval.Policies = cfg.Eval.Policies // the default list stands for random play
	if !reflect.DeepEqual(read, cfg) {
		t.Errorf("read %+v, want %+v", read, cfg)
	}
}

// Training, validations and the comparison at the end have the same bytes with any number of workers and after
// interruptions.
func TestProblemsTrainAndResumeByteForByte(t *testing.T) {
	for _, agent := range config.Agents() {
		cfg, straight := tinyProblem(agent), t.TempDir()
		whole := trainTo(t, cfg, straight, TrainOptions{})
		want := contents(t, filepath.Join(straight, "tiny"))
		r, ok := whole.Eval.(*report.EpisodeReport)
		if !ok || len(r.Policies) != 2 || !strings.HasPrefix(r.Policies[0].Name, agent+":tiny@") ||
			r.Policies[1].Name != "random" || r.Kernels != kernel.Set() {
			t.Fatalf("%s: the comparison is %+v", agent, whole.Eval)
		}
		dir := t.TempDir()
		for i, cut := range []int64{44, 300, 600} {
			ctx, cancel := cancelled(t)
			_, err := Train(ctx, cfg, TrainOptions{RunDir: filepath.Join(dir, "tiny"), Workers: 1 + i, Resume: i > 0, Tick: func(p train.Progress) {
				if p.Step >= cut {
					cancel()
				}
			}})
			if !errors.Is(err, fault.ErrInterrupted) {
				t.Fatal(err)
			}
		}
		resumed := trainTo(t, cfg, dir, TrainOptions{Resume: true, Workers: 3})
		sameFiles(t, agent, contents(t, filepath.Join(dir, "tiny")), want, true)
		if !reflect.DeepEqual(resumed.Eval, whole.Eval) {
			t.Errorf("%s: resumed, the comparison is %+v, want %+v", agent, resumed.Eval, whole.Eval)
		}
	}
}

func TestBestCheckpointOfAProblemIsTheLatestOfTheHighest(t *testing.T) {
	cfg, dir := tinyProblem("ppo"), t.TempDir()
	cfg.Train.EvalEvery = 100
	trainTo(t, cfg, dir, TrainOptions{NoEval: true})
	run := filepath.Join(dir, "tiny")
	_, validations := progressOf(t, run)
	var want rundir.Line
	for _, v := range validations {
		if v.Eval.Return == nil || v.Eval.Episodes != 3 || v.Eval.Windows != 0 {
			t.Fatalf("a validation without a return: %+v", v.Eval)
		}
		better := want.Eval == nil || *v.Eval.Return >= *want.Eval.Return
		if v.Eval.Best != better {
			t.Errorf("step %d: best is %v", v.Step, v.Eval.Best)
		}
		if better {
			want = v
		}
	}
	b, ok, err := rundir.ReadBest(run)
	if err != nil || !ok ||
		b != (rundir.BestCheckpoint{Step: want.Step, Metric: rundir.BestReturn, Value: *want.Eval.Return}) {
		t.Errorf("best.json holds %+v (%v), want step %d with %v", b, err, want.Step, *want.Eval.Return)
	}
	if v := (&rundir.Validation{Return: new(float64)}); !v.Beats(rundir.BestCheckpoint{Value: 0}) ||
		v.Beats(rundir.BestCheckpoint{Value: 1}) || !v.Beats(rundir.BestCheckpoint{Value: -1}) {
		t.Error("of equal returns the later is the best")
	}
}

// Random play of InvalidAction-v1 returns 5 on average: 100 steps, 20 legal actions.
func TestRandomPlayIsComparedOnTheSameEpisodes(t *testing.T) {
	cfg := config.For("InvalidAction-v1")
	cfg.Eval.Episodes = 100
	var first *report.EpisodeReport
	for workers := 1; workers <= 3; workers += 2 {
		c, err := arena.Compare(t.Context(), cfg, arena.EvalOptions{Workers: workers})
		if err != nil {
			t.Fatal(err)
		}
		r := c.(*report.EpisodeReport)
		if m := r.Policies[0].Return.Mean; len(r.Policies) != 1 || math.Abs(m-5) > 0.5 || *r.Policies[0].Length != 100 {
			t.Errorf("random play returns %v over %v steps, want about 5 over 100", m, *r.Policies[0].Length)
		}
		if first == nil {
			first = r
		} else if !reflect.DeepEqual(r, first) {
			t.Error("another number of workers, another report")
		}
	}
	cfg.Eval.Seed = 2
	if c, err := arena.Compare(t.Context(), cfg, arena.EvalOptions{Workers: 1}); err != nil ||
		reflect.DeepEqual(c.(*report.EpisodeReport).Policies, first.Policies) {
		t.Errorf("another seed, the same episodes (%v)", err)
	}
	cfg.Eval.Policies = nil
	_, err := arena.Compare(t.Context(), cfg, arena.EvalOptions{Workers: 1})
	refused(t, "nobody", err, "nothing to evaluate")
	_, err = arena.Evaluate(t.Context(), cfg, arena.EvalOptions{Workers: 1})
	refused(t, "windows", err, "InvalidAction-v1 has no windows")
}

func TestCheckpointOfAnotherEnvironmentIsRefused(t *testing.T) {
	cfg, dir := tinyProblem("ppo"), t.TempDir()
	cfg.Train.Steps = 100
	trainTo(t, cfg, dir, TrainOptions{NoEval: true})
	inEnv(&cfg, "Acrobot-v1")
	_, err := arena.Compare(t.Context(), cfg,
		arena.EvalOptions{Workers: 1, Checkpoints: []string{filepath.Join(dir, "tiny")}})
	refused(t, "another environment", err, "CartPole-v1", "Acrobot-v1")
}

// 80 actions of which 20 are legal are learned within three rollouts.
func TestPresetInvalidActionLearns(t *testing.T) {
	if testing.Short() || raced.On {
		t.Skip("seconds of training")
	}
	cfg, err := config.Preset("invalidaction-ppo")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Eval.Episodes = 20
	r := trainTo(t, cfg, t.TempDir(), TrainOptions{})
	if m := r.Eval.(*report.EpisodeReport).Policies[0].Return.Mean; m < 90 {
		t.Errorf("mean return %v, want 90 of 100", m)
	}
}

func TestKernelSetIsKeptAndAnotherOneIsTold(t *testing.T) {
	was := kernel.Set()
	t.Cleanup(func() {
		if err := kernel.Use(was); err != nil {
			t.Error(err)
		}
	})
	cfg, dir := tinyProblem("ppo"), t.TempDir()
	cfg.Train.Steps, cfg.Kernels = 200, "portable"
	r := trainTo(t, cfg, dir, TrainOptions{NoEval: true})
	run := filepath.Join(dir, "tiny")
	if records, _ := progressOf(t, run); r.Kernels != "portable" || kernel.Set() != "portable" ||
		records[0].Kernels != "portable" {
		t.Errorf("trained with %s, in use is %s", r.Kernels, kernel.Set())
	}
	for _, name := range []string{"trainer.json", "manifest.json"} {
		b, err := os.ReadFile(filepath.Join(r.Checkpoint, name))
		if err != nil || !strings.Contains(string(b), `"kernels": "portable"`) {
			t.Errorf("%s does not name the set (%v)", name, err)
		}
	}
	i := slices.IndexFunc(kernel.Sets(), func(s string) bool { return s != "portable" })
	if i < 0 {
		t.Skip("this machine has the portable set only")
	}
	other := kernel.Sets()[i]
	cfg.Kernels, cfg.Train.Steps = other, 400
	said := ""
	trainTo(t, cfg, dir, TrainOptions{NoEval: true, Resume: true, Say: func(format string, args ...any) {
		if line := fmt.Sprintf(format, args...); strings.HasPrefix(line, "resume") {
			said = line
		}
	}})
	if !strings.Contains(said, "made with kernels portable and goes on with "+other) {
		t.Errorf("said %q", said)
	}
	for _, name := range config.KernelSets()[1:] {
		if !slices.Contains(kernel.Sets(), name) {
			refused(t, name, config.UseKernels(name), "kernels: got", name, "this machine can run")
		}
	}
	refused(t, "sse", config.UseKernels("sse"), `kernels: got "sse"`, "portable")
}

// A validation judges the policy that the checkpoint plays, including scaled observations and real-valued actions.
func TestValidationJudgesWhatTheCheckpointPlays(t *testing.T) {
	for _, id := range []string{"CartPole-v1", "Nav2D-v1"} {
		cfg, dir := tinyProblem("ppo"), t.TempDir()
		inEnv(&cfg, id)
		cfg.PPO.NormObs, cfg.PPO.RewardScale, cfg.PPO.Batch = true, true, 32
		trainTo(t, cfg, dir, TrainOptions{NoEval: true})
		run := filepath.Join(dir, "tiny")
		b, ok, err := rundir.ReadBest(run)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		a, err := arena.New(&cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		spec, err := a.Spec(&cfg)
		if err != nil {
			t.Fatal(err)
		}
		agent, err := arena.NewAgent(&cfg, spec, 1)
		if err != nil {
			t.Fatal(err)
		}
		c, err := arena.OpenCheckpoint(run, spec)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range agent.Parts() {
			if p.Name() == "weights.safetensors" {
				if _, err := p.ReadFrom(bytes.NewReader(c.Weights)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if v, err := a.Validate(&cfg, agent, 2); err != nil || *v.Return != b.Value {
			t.Errorf("%s: the checkpoint returns %v (%v), its validation said %v", id, *v.Return, err, b.Value)
		}
	}
	cfg := tinyProblem("ddqn")
	inEnv(&cfg, "Nav2D-v1")
	_, err := Train(t.Context(), cfg, TrainOptions{RunDir: filepath.Join(t.TempDir(), "tiny"), Workers: 1})
	refused(t, "double DQN with real-valued actions", err, "Nav2D-v1", "continuous")
}
