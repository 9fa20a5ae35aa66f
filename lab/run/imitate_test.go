package run

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/agents/train"
	"clustergym/env/rollout"
	"clustergym/internal/fault"
	"clustergym/internal/raced"
	"clustergym/internal/rng"
	"clustergym/internal/testseed"
	"clustergym/lab/config"
	"clustergym/lab/rundir"
	"clustergym/simulator/sim"
)

// imitating is tinyRun after imitation: of two rounds for ppo, of one for ddqn.
func imitating(agent string) config.Config {
	c := tinyRun(agent)
	c.Train.Steps, c.Train.Imitate, c.Train.ImitateSteps, c.Train.ImitateEpochs = 400, "sjf@slots", 700, 2
	c.Train.LogEvery, c.Train.EvalEvery, c.Train.CheckpointEvery = 200, 200, 200
	if agent == "ppo" {
		c.Train.ImitateRounds = 2
	}
	return c
}

// A run that imitates has the same bytes for any number of workers, and after interruptions while it records, while it
// learns and afterwards. What was recorded is not recorded again.
func TestImitationIsTheSameForWorkersAndAfterInterruptions(t *testing.T) {
	seed := testseed.Or(51)
	t.Logf("seed %d", seed)
	r := rng.Stream(seed, "cuts")
	for _, agent := range []string{"ppo", "ddqn"} {
		cfg := imitating(agent)
		cfg.Seed = seed
		cfg.PPO.CriticWarmup, cfg.PPO.Anchor, cfg.PPO.AnchorDecay = 1, 0.3, 0.5
		cfg.Train.ImitateLR = 2e-3
		straight := t.TempDir()
		all := 0
		trainTo(t, cfg, straight, TrainOptions{Tick: func(train.Progress) { all++ }})
		want := contents(t, filepath.Join(straight, "tiny"))
		if want[rundir.RecordingFile] == "" || want["checkpoints/0/manifest.json"] == "" ||
			!strings.Contains(want["progress.jsonl"], "imitation/") {
			t.Fatalf("%s: no recording, no checkpoint or no record of the imitation", agent)
		}
		if !raced.On {
			other := t.TempDir()
			trainTo(t, cfg, other, TrainOptions{Workers: 5})
			sameFiles(t, agent+", five workers", contents(t, filepath.Join(other, "tiny")), want, false)
		}
		dir := t.TempDir()
		run := filepath.Join(dir, "tiny")
		recorded := int64(0)
		for i := range 6 {
			ctx, cancel := cancelled(t)
			cut, ticks := 1+r.IntN(all/4), 0
			_, err := Train(ctx, cfg, TrainOptions{RunDir: run, Workers: 1 + i%3, Resume: i > 0, Tick: func(p train.Progress) {
				if ticks++; ticks == cut {
					cancel()
				}
				if p.Lesson.Records && p.Lesson.Round == 1 {
					if p.Lesson.Done < recorded {
						t.Errorf("%s: %d steps recorded, %d before an interruption", agent, p.Lesson.Done, recorded)
					}
					recorded = p.Lesson.Done
				}
			}})
			if err == nil {
				break // it was at its end
			}
			if !errors.Is(err, fault.ErrInterrupted) {
				t.Fatalf("%s: %v", agent, err)
			}
		}
		trainTo(t, cfg, dir, TrainOptions{Resume: true, Workers: 2})
		sameFiles(t, agent+", interrupted", contents(t, run), want, true)

		// A recording that a crash cut off is completed, and one that is damaged refused.
		name := filepath.Join(run, rundir.RecordingFile)
		whole, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		again := t.TempDir()
		ctx, cancel := cancelled(t)
		_, err = Train(ctx, cfg, TrainOptions{RunDir: filepath.Join(again, "tiny"), Workers: 1, Tick: func(p train.Progress) {
			if p.Lesson.Done > 0 {
				cancel()
			}
		}})
		if !errors.Is(err, fault.ErrInterrupted) {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(again, "tiny", rundir.RecordingFile), whole[:1+r.IntN(len(whole)/4)],
			0o600); err != nil {
			t.Fatal(err)
		}
		trainTo(t, cfg, again, TrainOptions{Resume: true})
		sameFiles(t, agent+", cut", contents(t, filepath.Join(again, "tiny")), want, true)
	}
}

func TestADamagedRecordingIsRefused(t *testing.T) {
	cfg, dir := imitating("ppo"), t.TempDir()
	run := filepath.Join(dir, "tiny")
	ctx, cancel := cancelled(t)
	_, err := Train(ctx, cfg, TrainOptions{RunDir: run, Workers: 1, Tick: func(p train.Progress) {
		if p.Lesson.All > 0 && !p.Lesson.Records && p.Lesson.Round == 2 {
			cancel()
		}
	}})
	if !errors.Is(err, fault.ErrInterrupted) {
		t.Fatal(err)
	}
	name := filepath.Join(run, rundir.RecordingFile)
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(b []byte) []byte{
		"damaged":            func(b []byte) []byte { b[40]++; return b },
		"part of it is lost": func(b []byte) []byte { return b[:8] },
	} {
		if err := os.WriteFile(name, change(slices.Clone(whole)), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Train(t.Context(), cfg, TrainOptions{RunDir: run, Workers: 1, Resume: true}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

// The play of a search over the simulator can be imitated, too, also one that stops jobs: the recording is the same for
// any number of workers, and differs from that of the rule that it looks ahead with.
func TestLookingAheadCanBeImitated(t *testing.T) {
	if raced.On {
		t.Skip("the race detector sees the same code in TestImitationIsTheSameForWorkersAndAfterInterruptions, which takes less time; make unit runs this test")
	}
	for base, sets := range map[string][]string{"sjf@slots": nil,
		"las@slots": {"env.running=4", "env.preempt=true", "env.min_run=1m", "env.restart=20s"}} {
		cfg := imitating("ppo")
		for _, set := range sets {
			if err := cfg.Set(set); err != nil {
				t.Fatal(err)
			}
		}
		cfg.Train.Imitate, cfg.Train.ImitateSteps, cfg.Train.Steps, cfg.Train.EvalEvery = "rollout:"+base, 200, 4, 0
		cfg.Eval.Rollout.Budget, cfg.Eval.Rollout.Ahead, cfg.Eval.Rollout.Confidence = rollout.Budget{Rollouts: 16}, 16, 0
		cfg.Eval.Rollout.Share = 0 // else LAS's own choices stand in all of these small windows
		var want map[string]string
		for _, workers := range []int{1, 4} {
			dir := t.TempDir()
			trainTo(t, cfg, dir, TrainOptions{NoEval: true, Workers: workers})
			got := contents(t, filepath.Join(dir, "tiny"))
			if want != nil {
				sameFiles(t, "workers", got, want, false)
			}
			want = got
		}
		plain, dir := cfg, t.TempDir()
		plain.Train.Imitate = base
		trainTo(t, plain, dir, TrainOptions{NoEval: true})
		if contents(t, filepath.Join(dir, "tiny"))[rundir.RecordingFile] == want[rundir.RecordingFile] {
			t.Errorf("%s: looking ahead changes nothing that is recorded", base)
		}
	}
}

// The weights of eval.hold are those of the teacher, alone and when it looks ahead, and belong to the run.
func TestATeacherHasTheWeightsThatAreGiven(t *testing.T) {
	if raced.On {
		t.Skip("the race detector sees the same code in TestImitationIsTheSameForWorkersAndAfterInterruptions, which takes less time; make unit runs this test")
	}
	for _, name := range []string{"hold@slots", "rollout:hold@slots"} {
		cfg := imitating("ppo")
		cfg.Train.Imitate, cfg.Train.ImitateSteps, cfg.Train.Steps, cfg.Train.EvalEvery = name, 200, 4, 0
		cfg.Eval.Rollout.Budget = rollout.Budget{Rollouts: 8}
		other := cfg
		if err := other.Set("eval.hold.width=2"); err != nil {
			t.Fatal(err)
		}
		var got []string
		dir := t.TempDir()
		for _, c := range []config.Config{cfg, other} {
			dir = t.TempDir()
			trainTo(t, c, dir, TrainOptions{NoEval: true, Workers: 1})
			got = append(got, contents(t, filepath.Join(dir, "tiny"))[rundir.RecordingFile])
		}
		if got[0] == "" || got[0] == got[1] {
			t.Errorf("%s: the weights change nothing that is recorded", name)
		}
		if _,
			err := Train(t.Context(), cfg, TrainOptions{RunDir: filepath.Join(dir, "tiny"), Workers: 1, Resume: true}); err ==
			nil || !strings.Contains(err.Error(), "eval.hold") {
			t.Errorf("%s: resumed with other weights: %v, want an error that names eval.hold", name, err)
		}
	}
}

// index@slots teaches with the weights of eval.index where jobs can be stopped, and they belong to the run.
func TestIndexTeachesWithTheWeightsThatAreGiven(t *testing.T) {
	cfg := imitating("ppo")
	for _, set := range []string{"train.imitate=index@slots", "train.imitate_steps=200", "train.steps=4",
		"train.eval_every=0", "env.preempt=true", "env.running=4", "env.min_run=1m", "env.restart=20s"} {
		if err := cfg.Set(set); err != nil {
			t.Fatal(err)
		}
	}
	other := cfg
	if err := other.Set("eval.index.left=-1"); err != nil {
		t.Fatal(err)
	}
	var got []string
	dir := ""
	for _, c := range []config.Config{cfg, other} {
		dir = t.TempDir()
		trainTo(t, c, dir, TrainOptions{NoEval: true, Workers: 1})
		got = append(got, contents(t, filepath.Join(dir, "tiny"))[rundir.RecordingFile])
	}
	if got[0] == "" || got[0] == got[1] {
		t.Error("the weights change nothing that is recorded")
	}
	if _,
		err := Train(t.Context(), cfg, TrainOptions{RunDir: filepath.Join(dir, "tiny"), Workers: 1, Resume: true}); err ==
		nil || !strings.Contains(err.Error(), "eval.index") {
		t.Errorf("resumed with other weights: %v, want an error that names eval.index", err)
	}
}

// Imitation alone is worth something: after it, without a step of its own, an agent is nearly as good as its teacher on
// the validation windows, and much nearer to it than one that has learnt nothing.
func TestImitationReachesItsTeacher(t *testing.T) {
	if raced.On {
		t.Skip("trains; without the race detector this test runs in make unit")
	}
	for _, agent := range []string{"ppo", "ddqn"} {
		cfg := imitating(agent)
		cfg.Train.Steps, cfg.Train.ImitateSteps, cfg.Train.ImitateEpochs, cfg.Train.ImitateRounds = 4, 8000, 6, 0
		cfg.PPO.LR, cfg.DDQN.LR, cfg.PPO.Network.Hidden, cfg.DDQN.Network.Hidden = 3e-3, 1e-3, []int{64}, []int{64}
		cfg.DDQN.Buffer, cfg.DDQN.RewardScale = 8000, true
		dir := t.TempDir()
		trainTo(t, cfg, dir, TrainOptions{NoEval: true})
		records, _ := progressOf(t, filepath.Join(dir, "tiny"))
		if agent == "ppo" {
			if got := records[0].Learn["imitation/agreement"]; got < 0.7 {
				t.Errorf("ppo agrees with its teacher in a share of %v of the steps", got)
			}
		}
		if len(records) == 0 || records[0].Step != 0 {
			t.Errorf("%s: no record of the imitation", agent)
		}
	}
}

func TestWhatCannotBeImitated(t *testing.T) {
	for want, change := range map[string]func(c *config.Config){
		`train.imitate: got "sjf+skip", want RULE@slots or rollout:RULE@slots: it does not act through the actions`: func(c *config.Config) { c.Train.Imitate = "sjf+skip" },
		`train.imitate: got "sfj@slots", want RULE@slots or rollout:RULE@slots: rule "sfj" is unknown`:              func(c *config.Config) { c.Train.Imitate = "sfj@slots" },
		`train.imitate: got "sjf@slots", want RULE@slots or rollout:RULE@slots: sjf`: func(c *config.Config) {
			c.Env.JobSelect().Estimates, c.Eval.Policies = sim.MustEstimates("none"), []string{"fifo@slots"}
		},
		"with a budget of time it does not decide the same twice": func(c *config.Config) {
			c.Train.Imitate, c.Eval.Rollout.Budget = "rollout:sjf@slots", rollout.Budget{Time: time.Second}
		},
		"train.imitate_steps: got 5, want nothing without imitate": func(c *config.Config) {
			c.Train.Imitate,
				c.Train.ImitateSteps = "", 5
		},
		"train.imitate_epochs: got -1":                        func(c *config.Config) { c.Train.ImitateEpochs = -1 },
		"ppo.replicas 2: one learner alone imitates":          func(c *config.Config) { c.PPO.Replicas = 2 },
		"train.imitate_rounds: got 2, want 1 with agent ddqn": func(c *config.Config) { c.Agent = "ddqn" },
		`train.imitate: got "sjf@slots", want nothing with agent improper`: func(c *config.Config) {
			c.Agent,
				c.Improper.Steps = "improper", 8
		},
		"ddqn.learning_starts: it would learn nothing": func(c *config.Config) {
			c.Agent, c.Train.ImitateRounds, c.DDQN.LearningStarts = "ddqn", 0, 1e6
		},
	} {
		c := imitating("ppo")
		c.Edit()
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	c := imitating("ppo")
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}

// A run can use what another one has recorded: it asks the policy only for what that lacks, and has the same bytes for
// any number of workers.
func TestARecordingServesOtherRuns(t *testing.T) {
	first, dir := imitating("ppo"), t.TempDir()
	trainTo(t, first, dir, TrainOptions{NoEval: true})
	from := filepath.Join(dir, "tiny")
	recording, err := os.ReadFile(filepath.Join(from, rundir.RecordingFile))
	if err != nil {
		t.Fatal(err)
	}
	cfg := imitating("ppo")
	cfg.Seed, cfg.PPO.LR, cfg.Train.ImitateFrom, cfg.Train.ImitateRounds, cfg.Train.ImitateSteps = 9, 1e-3, from, 0, 900
	var want map[string]string
	for _, workers := range []int{1, 3} {
		dir, recorded := t.TempDir(), int64(-1)
		trainTo(t, cfg, dir, TrainOptions{NoEval: true, Workers: workers, Tick: func(p train.Progress) {
			if p.Lesson.Records && recorded < 0 {
				recorded = p.Lesson.Done
			}
		}})
		if recorded < 300 || recorded > 600 { // its first round: half of 700, in whole episodes
			t.Errorf("the run begins with %d recorded steps", recorded)
		}
		got := contents(t, filepath.Join(dir, "tiny"))
		own := got[rundir.RecordingFile]
		if n := min(len(own), len(recording)); own[:n/3] != string(recording[:n/3]) || own == string(recording) {
			t.Error("the recording does not begin with the other run's first round, or goes on with its second")
		}
		if want != nil {
			sameFiles(t, "workers", got, want, false)
		}
		want = got
	}
	for text, change := range map[string]func(c *config.Config){
		"train.imitate differs": func(c *config.Config) { c.Train.Imitate = "fifo@slots" },
		"env differs":           func(c *config.Config) { c.Edit(); jobSelect(c).Load = 2 },
		"nowhere":               func(c *config.Config) { c.Train.ImitateFrom = "nowhere" },
		"imitate_from: got \"x\", want nothing without": func(c *config.Config) {
			c.Train = tinyRun(
				"ppo").Train
			c.Train.ImitateFrom = "x"
		},
	} {
		c := cfg
		change(&c)
		run := filepath.Join(t.TempDir(), "tiny")
		_, err := Train(t.Context(), c, TrainOptions{RunDir: run, Workers: 1})
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want %q", err, text)
		}
		if _, err := os.Stat(run); err == nil {
			t.Errorf("%q: a run has begun", text)
		}
	}
}
