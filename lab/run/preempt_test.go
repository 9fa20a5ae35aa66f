package run

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clustergym/agents/train"
	"clustergym/configs"
	"clustergym/internal/fault"
	"clustergym/lab/config"
)

// A run whose replicas are cut short by the clock says that it cannot be repeated: at its beginning, in every record,
// in TensorBoard and on resume. The test interrupts it in the middle; it still ends.
func TestPreemptedRunsSayThatTheyCannotBeRepeated(t *testing.T) {
	for name, cfg := range map[string]config.Config{"problem": tinyProblem("ppo"), "workload": tinyRun("ppo")} {
		cfg.PPO.Replicas, cfg.PPO.PreemptShare = 4, 0.5
		dir := t.TempDir()
		run := filepath.Join(dir, "tiny")
		var said strings.Builder
		opt := TrainOptions{RunDir: run, Workers: 2, Tags: "sb3", NoEval: true,
			Say: func(f string, args ...any) { fmt.Fprintf(&said, f+"\n", args...) }}
		ctx, cancel := cancelled(t)
		opt.Tick = func(p train.Progress) {
			if p.Step >= cfg.Train.Steps/2 {
				cancel()
			}
		}
		if _, err := Train(ctx, cfg, opt); !errors.Is(err, fault.ErrInterrupted) {
			t.Fatalf("%s: %v, want fault.ErrInterrupted", name, err)
		}
		if want := "note      this run cannot be repeated: ppo.preempt_share"; !strings.Contains(said.String(), want) ||
			strings.Contains(said.String(), "resume") {
			t.Errorf("%s: it says\n%s, want %q", name, said.String(), want)
		}
		said.Reset()
		opt.Tick, opt.Resume, opt.Tags = nil, true, "cleanrl"
		r := trainTo(t, cfg, dir, opt)
		if want := "it follows the clock: what follows will differ"; !strings.Contains(said.String(), want) {
			t.Errorf("%s: resumed it says\n%s, want %q", name, said.String(), want)
		}
		if rows := int64(cfg.Train.Envs); r.Step < cfg.Train.Steps || r.Step >= cfg.Train.Steps+rows {
			t.Errorf("%s: it ends at step %d, want %d", name, r.Step, cfg.Train.Steps)
		}
		records, validations := progressOf(t, run)
		if len(records) < 2 || len(validations) < 2 {
			t.Fatalf("%s: %d records and %d validations", name, len(records), len(validations))
		}
		learnt := 0
		for _, l := range records {
			if l.Note != config.NotRepeatable {
				t.Errorf("%s: step %d: note %q", name, l.Step, l.Note)
			}
			if len(l.Learn) == 0 {
				continue // no update since the record before it
			}
			learnt++
			cut, there := l.Learn["ppo/preempted"]
			share := l.Learn["ppo/collected"]
			if !there || cut < 0 || cut > 2 || share < (2+2*0.25)/4 || share > 1 || (cut == 0) != (share == 1) {
				t.Errorf("%s: step %d: %v cut short, %v collected", name, l.Step, cut, share)
			}
		}
		if learnt < 2 {
			t.Errorf("%s: %d records of learning", name, learnt)
		}
		files, err := filepath.Glob(filepath.Join(run, "events.out.tfevents.*"))
		if err != nil || len(files) != 2 {
			t.Fatalf("%s: event files %v (%v)", name, files, err)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"\x08run/note", config.NotRepeatable, "\x0dppo/preempted", "\x0dppo/collected"} {
				if !bytes.Contains(b, []byte(want)) {
					t.Errorf("%s: %s has no %q", name, filepath.Base(file), want)
				}
			}
		}
	}
}

func TestSeveralPreemptedSeedsSaySoToo(t *testing.T) {
	for share, want := range map[float64]int{0.5: 1, 1: 0} {
		cfg := tinyProblem("ppo")
		cfg.PPO.Replicas, cfg.PPO.PreemptShare, cfg.Train.Steps = 2, share, 200
		said := 0
		_, err := TrainSeeds(t.Context(), cfg, 2, TrainOptions{RunDir: filepath.Join(t.TempDir(), "all"), Workers: 2, NoEval: true, Say: func(f string, args ...any) {
			if strings.Contains(fmt.Sprintf(f, args...), config.NotRepeatable) {
				said++
			}
		}})
		if err != nil || said != want {
			t.Errorf("share %v: said %d times (%v), want %d", share, said, err, want)
		}
	}
}

// A share of all replicas cuts none short, and such runs are repeated byte for byte with any number of workers.
func TestRunsThatWaitForAllReplicasCanBeRepeated(t *testing.T) {
	var want map[string]string
	for _, workers := range []int{1, 4} {
		cfg, dir := tinyRun("ppo"), t.TempDir()
		cfg.PPO.Replicas, cfg.PPO.PreemptShare, cfg.PPO.NormObs = 2, 0.6, true
		var said []string
		trainTo(t, cfg, dir, TrainOptions{Workers: workers, NoEval: true,
			Say: func(f string, args ...any) { said = append(said, fmt.Sprintf(f, args...)) }})
		if i := slices.IndexFunc(said, func(s string) bool { return strings.Contains(s, "repeated") }); i >= 0 {
			t.Errorf("it says %q", said[i])
		}
		got := contents(t, filepath.Join(dir, "tiny"))
		if want != nil {
			sameFiles(t, "the second run", got, want, false)
		}
		want = got
	}
}

func TestPreemptShareIsRefusedInASentence(t *testing.T) {
	for set, want := range map[string]string{
		"ppo.preempt_share=0.3": "ppo.preempt_share: got 0.3, want 0 = replicas step together, or the share of them that cuts the others short, 0.5 to 1",
		"ppo.preempt_share=0.6": "ppo.preempt_share: got 0.6, want 0, or at least 2 replicas (here 1): one alone waits for nobody",
	} {
		cfg := tinyProblem("ppo")
		if err := configs.Set(&cfg, set); err != nil {
			t.Fatal(err)
		}
		if err := cfg.Validate(); len(fault.All(err)) != 1 || err.Error() != want {
			t.Errorf("%s: %v, want %s", set, err, want)
		}
	}
}
