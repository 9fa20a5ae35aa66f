package rlscheduler

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/queuerank"
	program "clustergym/env/queuerank/rlscheduler"
	"clustergym/experiments/study"
	"clustergym/internal/fault"
	"clustergym/internal/raced"
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/lab/run"
	"clustergym/lab/rundir"
	peer "clustergym/peer/rlscheduler"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// tinyAgent trains RLScheduler's network for a moment and returns the run directory.
func tinyAgent(t *testing.T) string {
	t.Helper()
	c, err := config.Preset("queuerank-rlscheduler")
	if err != nil {
		t.Fatal(err)
	}
	c.Trace.Synth.Jobs = 1500
	c.Env.Settings.(*queuerank.Config).Window = 32
	c.PPO.Steps, c.PPO.Epochs, c.PPO.CriticEpochs, c.PPO.Shards, c.PPO.LR = 32, 2, 2, 4, 0.01
	c.Train.Steps, c.Train.Envs, c.Train.LogEvery, c.Train.EvalEvery, c.Train.CheckpointEvery = 512, 4, 256, 512, 512
	c.Eval.Validation, c.Eval.Windows = 2, 2
	dir := filepath.Join(t.TempDir(), "tiny")
	if _, err := run.Train(t.Context(), c, run.TrainOptions{RunDir: dir, Workers: 1, NoEval: true}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// crowded returns a window in which more jobs wait than there are slots, and whose longest job is longer than any that
// the agent was trained on.
func crowded(longest int64) []peer.Job {
	var jobs []peer.Job
	for i := range 220 {
		run := 1 + int64(i)*int64(i)*37%5000
		if i%50 == 7 {
			run = longest + 1000*int64(i)
		}
		jobs = append(jobs,
			peer.Job{ID: fmt.Sprint(i), Submit: 1000 + int64(i/3), Run: run, Request: run, Procs: int32(1 + i*29%128)})
	}
	return jobs
}

// What the study plays is the play of the checkpoint in QueueRank-v1 as its run had it, decision by decision, and on
// the peer's machine with the peer's observations.
func TestANetworkPlaysAsInQueueRank(t *testing.T) {
	if testing.Short() {
		t.Skip("some seconds")
	}
	a, err := open(study.Plan{}, study.Agent{Where: "generated", Dir: tinyAgent(t)}, &logSettings{})
	if err != nil {
		t.Fatal(err)
	}
	world, err := arena.NewScenario(&a.found.Cfg)
	if err != nil {
		t.Fatal(err)
	}
	training := world.Taken.Windows.Jobs(traces.Training)
	var longest time.Duration
	for i := range training {
		longest = max(longest, training[i].Work)
	}
	if a.longest != longest || a.jobs != len(training) {
		t.Errorf("%d jobs up to %v, want %d up to %v", a.jobs, a.longest, len(training), longest)
	}
	jobs := crowded(int64(longest / time.Second))
	most := 0
	for _, mode := range modes {
		best, draws, err := a.play(t.Context(), 1, 3, mode, []window{{name: "crowded", jobs: jobs}})
		if err != nil {
			t.Fatal(err)
		}
		// The run's own settings but for the window and back-filling, and its own jobs.
		c := *a.found.Cfg.Env.Settings.(*queuerank.Config)
		c.Window = len(jobs)
		if mode == "yes" {
			c.Backfill = "easy"
		}
		e, err := program.New(queuerank.V1, program.FromOlder(c), cluster.Spec{Pool: procs}, windowsOf{simulated(jobs)},
			training, traces.Training)
		if err != nil {
			t.Fatal(err)
		}
		p, err := arena.NewPolicy(&a.found.Cfg, e.Spec(), bytes.NewReader(a.found.Weights))
		if err != nil {
			t.Fatal(err)
		}
		ts := env.NewTimeStep(e.Spec())
		if err := e.Reset(t.Context(), env.Episode{}, ts); err != nil {
			t.Fatal(err)
		}
		batch, action := env.NewBatch(e.Spec(), 1), env.NewActions(e.Spec(), 1)
		m, o := peer.NewMachine(procs, mode == "yes"), peer.Observer{Longest: int64(longest / time.Second)}
		for m.Reset(jobs); !m.Done(); {
			most = max(most, m.Waiting())
			slots := o.Look(m)
			for k := range peer.Slots {
				row := batch.Obs[8*k : 8*k+8]
				if batch.Mask[k] = k < len(slots); batch.Mask[k] {
					o.Row(m, m.Job(slots[k]), row)
				} else {
					copy(row, []float32{0, 1, 1, 1, 1, 1, 1, 0})
				}
			}
			if !slices.Equal(batch.Obs, ts.Obs) {
				t.Fatalf("back-filling %s, job %d: other observations than in QueueRank", mode, m.Started())
			}
			if err := p.Act(t.Context(), batch, action, nil); err != nil {
				t.Fatal(err)
			}
			k := int(action.Disc[0])
			if id := e.View().Trace(e.Slots()[k]).ID; id != m.Job(slots[k]).ID {
				t.Fatalf("back-filling %s, job %d: job %s, QueueRank has %s in that slot", mode, m.Started(), m.Job(slots[k]).ID,
					id)
			}
			m.Commit(slots[k])
			if err := e.Step(t.Context(), env.Action{Disc: action.Disc}, ts); err != nil {
				t.Fatal(err)
			}
		}
		if got := ts.Info[queuerank.InfoBSLD]; got != best[0] || got < m.Mean()*(1-1e-9) || got > m.Mean()*(1+1e-9) {
			t.Errorf("back-filling %s: the study has %v, QueueRank %v, the machine %v", mode, best[0], got, m.Mean())
		}
		if len(draws) != 3 || draws[0][0] == draws[1][0] || draws[0][0] == best[0] {
			t.Errorf("back-filling %s: draws %v beside %v with the best action", mode, draws, best)
		}
	}
	if most <= peer.Slots {
		t.Errorf("up to %d jobs wait: the window is too easy for the test", most)
	}
}

// The rows of an agent are whole and the same for any number of workers, and its study keeps all other figures.
func TestTheRowsOfANetwork(t *testing.T) {
	if testing.Short() || raced.On {
		t.Skip("some seconds")
	}
	agent := study.Agent{Where: "generated", Dir: tinyAgent(t)}
	few := func(p study.Plan) (settings, error) {
		s, err := small(p)
		s.Draws = 2
		return s, err
	}
	var first []byte
	for _, workers := range []int{1, 3} {
		dir := t.TempDir()
		plan := study.Plan{Quick: true, Workers: workers, Agents: []study.Agent{agent}}
		r, err := study.Run(t.Context(), studyWith(few), study.Options{Plan: plan, Dir: dir, Only: "network/"})
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dir, "rows.csv"))
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = b
		} else if string(b) != string(first) {
			t.Error("rows.csv depends on the number of workers")
		}
		for _, policy := range []string{network, drawn} {
			for _, set := range []string{"held-out", "fresh"} {
				v, _, ok := r.Results.Find(set, map[string]string{"log": "generated", "back-filling": "yes", "policy": policy},
					"bounded slowdown")
				if !ok || v.Value < 1 || v.Units != 2 {
					t.Errorf("%s, %s: %+v", set, policy, v)
				}
			}
		}
		if v, _,
			ok := r.Results.Find("held-out", map[string]string{"log": "generated", "back-filling": "no", "policy": drawn},
			"± of a draw"); !ok || v.Value <= 0 {
			t.Errorf("the spread of draws: %+v", v)
		}
		var text strings.Builder
		if err := r.WriteTable(&text); err != nil {
			t.Fatal(err)
		}
		if want := "network and network-drawn on generated: ppo:tiny@512, trained on 1050 jobs of"; !strings.Contains(
			text.String(), want) {
			t.Errorf("%s\n%q is missing", text.String(), want)
		}
	}
}

// A wrong agent is refused in one sentence, before anything is played.
func TestAgentsThatCannotPlay(t *testing.T) {
	s, err := settingsOf(study.Plan{Quick: true})
	if err != nil {
		t.Fatal(err)
	}
	good := tinyAgent(t)
	edited := func(edit func(*config.Config)) string {
		dir := filepath.Join(t.TempDir(), "edited")
		if err := os.CopyFS(dir, os.DirFS(good)); err != nil {
			t.Fatal(err)
		}
		c, err := rundir.ReadConfig(dir)
		if err != nil {
			t.Fatal(err)
		}
		edit(&c)
		if err := rundir.WriteConfig(dir, &c); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	own := func(c *config.Config) *queuerank.Config { return c.Env.Settings.(*queuerank.Config) }
	other, err := config.Preset("quickstart-v1")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		where, dir string
		want       string
	}{
		{"generated", filepath.Join(good, "nowhere"), "there is no such folder"},
		{"generated", t.TempDir(), "is neither a checkpoint (no manifest.json) nor a run directory (no config.yaml)"},
		{"generatde", good, `log "generatde" is unknown, want one of generated; did you mean generated?`},
		{"Lublin-1", good, "log Lublin-1 is not at hand; data names the folder that has it"},
		{"generated", edited(func(c *config.Config) { *c = other }),
			"it was trained in JobSelect-v1, want RLScheduler-v1, or QueueRank-v1 with env.peer: true"},
		{"generated", edited(func(c *config.Config) { own(c).Peer = false }),
			"it was trained with env.peer: false, want true"},
		{"generated", edited(func(c *config.Config) { own(c).Estimates = sim.MustEstimates("noisy:1") }),
			"it was trained with env.estimates: noisy:1, want exact or trace"},
		{"generated", edited(func(c *config.Config) { c.Cluster = "pool:128" }),
			"it was trained on 128 processors, want 256"},
		{"generated", edited(func(c *config.Config) { c.PPO.Network.Branches[0].Dense = []int{31, 16} }),
			"does not fit this environment"},
	} {
		_, err := s.cells(study.Plan{Quick: true, Agents: []study.Agent{{Where: c.where, Dir: c.dir}}})
		var input *fault.Mistake
		if !errors.As(err, &input) || !strings.HasPrefix(err.Error(), fmt.Sprintf("agent %s=%s: ", c.where, c.dir)) ||
			!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	twice := []study.Agent{{Where: "generated", Dir: good}, {Where: "generated", Dir: good}}
	if _, err := s.cells(study.Plan{Quick: true, Agents: twice}); err == nil ||
		!strings.Contains(err.Error(), "log generated has an agent already") {
		t.Errorf("two agents for a log: %v", err)
	}
}
