package sweep

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"clustergym/configs"
	"clustergym/internal/fault"
	"clustergym/internal/rng"
	"clustergym/internal/statistic"
	"clustergym/lab/run"
	"clustergym/lab/rundir"
)

const tinySweep = `name: find
base: ignored
set: [train.steps=400]
space:
  ppo.lr: {min: 1e-4, max: 1e-1, log: true}
  ppo.epochs: {min: 1, max: 3}
  ppo.network.hidden: [[8], [16, 16]]
  ppo.network.activation: [tanh, relu]
trials: 4
seeds: 2
halving: {rungs: 2, keep: 2}
`

func sweepOf(t *testing.T, text string) Config {
	t.Helper()
	c := Default()
	if err := configs.DecodeBytes("sweep.yaml", []byte(text), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestSpacesThatMakeNoSenseAreFaults(t *testing.T) {
	for _, c := range []struct{ space, want string }{
		{"{}", "space: got"},
		{"{ppo.lr: 3}", "space.ppo.lr: got 3, want a list of values"},
		{"{ppo.lr: []}", "space.ppo.lr: got"},
		{"{ppo.lr: {min: 1, max: 1}}", "space.ppo.lr.max: got 1, want a number above min"},
		{"{ppo.lr: {min: 0, max: 1, log: true}}", "space.ppo.lr.min: got 0, want a number above 0 with log"},
		{"{ppo.lr: {min: 0, max: 1, logg: true}}", "space.ppo.lr.logg: got true, want no such key; did you mean log?"},
		{"{ppo.lr: {min: 0}}", "space.ppo.lr.max: got nothing, want a number"},
		{"{ppo.lr: {min: a, max: 1}}", `space.ppo.lr.min: got "a", want a number`},
		{"{ppo.lr: {min: 0, max: 1, log: yes please}}", "space.ppo.lr.log: got"},
		{"{train.steps: [5]}", "space.train.steps: got [5], want nothing: it is the budget"},
		{"{seed: [5]}", "space.seed: got [5], want nothing: see seeds"},
	} {
		cfg := Default()
		err := configs.DecodeBytes("s.yaml", []byte("trials: 2\nspace: "+c.space+"\n"), &cfg)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one fault, %s…", c.space, err, c.want)
		}
	}
	for _, c := range []struct{ text, want string }{
		{"space: {ppo.lrr: {min: 1e-4, max: 1}}", "space: ppo.lrr: unknown key; did you mean lr?"},
		{"space: {pop.lr: [1]}", "space: pop: unknown key; did you mean ppo?"},
		{"space: {agent: {min: 0, max: 1}}", "agent: got"},
		{"space: {ppo.clip: [2]}", "space: trial 0: ppo.clip: got 2, want a number in (0, 1)"},
		{"space: {ppo.clip: [x]}", "ppo.clip: got"},
		{"set: [ppo.lrr=1]\nspace: {ppo.clip: [0.1]}", "set: ppo.lrr=1: ppo.lrr: unknown key; did you mean lr?"},
		{"set: [ppo.lr=7]\nspace: {ppo.clip: [0.1]}", "ppo.lr: got 7"},
	} {
		dir := filepath.Join(t.TempDir(), "s")
		_, err := Run(t.Context(), sweepOf(t, c.text), tinyProblem(), Options{Dir: dir, Workers: 1})
		refused(t, c.text, err, c.want)
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: a folder was made", c.text)
		}
	}
}

func TestDrawsKeepToTheSpaceAndRepeat(t *testing.T) {
	c := sweepOf(t, tinySweep)
	c.Trials = 300
	trials, err := c.trials(tinyProblem())
	if err != nil {
		t.Fatal(err)
	}
	below, epochs := 0, map[int]int{}
	for _, tr := range trials {
		p := tr.cfg.PPO
		if tr.set["ppo.lr"] != p.LR || p.LR < 1e-4 || p.LR > 1e-1 || !slices.Contains([]int{1, 2}, len(p.Network.Hidden)) {
			t.Fatalf("trial %d: %v gives %+v", tr.number, tr.set, p)
		}
		if p.LR < math.Sqrt(1e-5) {
			below++
		}
		epochs[p.Epochs]++
	}
	// Half of the draws lie below the geometric middle; a whole number is rounded, so the ends get half a share.
	if below < 120 || below > 180 || len(epochs) != 3 || epochs[2] < epochs[1] || epochs[2] < epochs[3] {
		t.Errorf("%d of 300 below the middle; epochs %v", below, epochs)
	}
	few := c
	few.Trials = 3
	again, err := few.trials(tinyProblem())
	if err != nil || !reflect.DeepEqual(again, trials[:3]) {
		t.Errorf("drawn again, the first trials are others (%v)", err)
	}
	d := dimension{min: 2, max: 3}
	for range 100 {
		if v := d.draw(rng.Stream(1, "x")).(float64); v < 2 || v > 3 {
			t.Fatal(v)
		}
	}
}

func TestRungsAreSharesOfTheTraining(t *testing.T) {
	c := Config{Halving: Halving{Rungs: 3, Keep: 3}}
	if b := c.Budgets(1000); !slices.Equal(b, []int64{112, 334, 1000}) {
		t.Errorf("rungs at %v", b)
	}
}

// A sweep that is interrupted, or loses half a line to a crash, goes on to the table of one that was not. Pausing on
// a rung changes nothing of a run: the winner's last checkpoint is that of a training straight through.
func TestSweepHalvesResumesAndPausesWithoutATrace(t *testing.T) {
	cfg, base := sweepOf(t, tinySweep), tinyProblem()
	straight := filepath.Join(t.TempDir(), "s")
	want, err := Run(t.Context(), cfg, base, Options{Dir: straight, Workers: 3})
	if err != nil {
		t.Fatal(err)
	}
	if lines, err := Lines(straight); err != nil || len(lines) != cfg.Results() {
		t.Errorf("%d results, error %v, want %d", len(lines), err, cfg.Results())
	}
	if len(want.Trials) != 4 || !slices.Equal(want.Rungs, []int64{200, 400}) || want.Metric != rundir.BestReturn ||
		!want.Higher {
		t.Fatalf("the report is %+v", want)
	}
	for i, l := range want.Trials {
		if rung := map[bool]int{true: 1}[i < 2]; l.Rung != rung || len(l.Scores) != 2 || *l.Score != statistic.IQM(l.Scores) {
			t.Errorf("place %d: %+v, want 2 of 4 on the second rung", i, l)
		}
		if i%2 > 0 && *l.Score > *want.Trials[i-1].Score && l.Rung == want.Trials[i-1].Rung {
			t.Errorf("place %d is better than the one before", i)
		}
	}
	winner := want.Trials[0]
	alone, err := rundir.ReadConfig(want.Best[1])
	if err != nil || alone.Seed != 2 || alone.PPO.LR != winner.Set["ppo.lr"] {
		t.Fatalf("the winner's configuration is %+v (%v), want %v", alone, err, winner.Set)
	}
	straightRun := filepath.Join(t.TempDir(), "seed-2")
	if _, err := run.Train(t.Context(), alone, run.TrainOptions{RunDir: straightRun, Workers: 1, NoEval: true}); err !=
		nil {
		t.Fatal(err)
	}
	if weights(t, want.Best[1]) != weights(t, straightRun) {
		t.Error("the winner's weights are not those of a training straight through")
	}

	cut := filepath.Join(t.TempDir(), "s")
	ctx, cancel := cancelled(t)
	_, err = Run(ctx, cfg, base, Options{Dir: cut, Workers: 1, Say: func(string, ...any) { cancel() }})
	if !errors.Is(err, fault.ErrInterrupted) || !strings.Contains(err.Error(), "resume "+cut) {
		t.Fatalf("got %v, want ErrInterrupted with what to do", err)
	}
	name := filepath.Join(cut, trialsFile)
	data, err := os.ReadFile(name)
	if err != nil || bytes.Count(data, []byte("\n")) != 1 {
		t.Fatalf("%s holds %q (%v)", trialsFile, data, err)
	}
	if err := os.WriteFile(name, append(data, `{"trial":1,"ru`...), 0o600); err != nil {
		t.Fatal(err)
	}
	c, read, err := Read(cut)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Run(t.Context(), c, read, Options{Dir: cut, Workers: 2, Resume: true})
	if err != nil || jsonOf(got.Trials) != jsonOf(want.Trials) {
		t.Errorf("resumed, the trials are\n%s (%v), want\n%s", jsonOf(got), err, jsonOf(want))
	}
	var text strings.Builder
	if err := got.WriteTable(&text); err != nil || !strings.Contains(text.String(), "ppo.network.hidden") ||
		!strings.Contains(text.String(), "higher is better") {
		t.Errorf("the table is\n%s(%v)", text.String(), err)
	}

	c.Seed++
	_, err = Run(t.Context(), c, read, Options{Dir: cut, Workers: 1, Resume: true})
	refused(t, "other draws", err, "trials.jsonl:1: trial 0 was drawn as")
	_, err = Run(t.Context(), cfg, base, Options{Dir: cut, Workers: 1})
	refused(t, "a folder that is taken", err, "holds a sweep")
	if err := os.WriteFile(name, []byte("{}x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Run(t.Context(), cfg, base, Options{Dir: cut, Workers: 1, Resume: true})
	refused(t, "a broken line", err, "trials.jsonl:1")
}

// A draw that cannot be trained is a row of the table; a sweep of such draws alone is a failure.
func TestTrialsThatFailAreTold(t *testing.T) {
	cfg := sweepOf(t, "set: [train.steps=130]\nspace: {ppo.minibatches: [1, 1000]}\ntrials: 6\n")
	r, err := Run(t.Context(), cfg, tinyProblem(), Options{Dir: filepath.Join(t.TempDir(), "s"), Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range r.Trials {
		if failed := l.Set["ppo.minibatches"] == 1000; failed != (l.Score == nil) ||
			failed != strings.Contains(l.Error, "1000 minibatches") {
			t.Errorf("place %d: %+v", i, l)
		}
	}
	if r.Trials[0].Score == nil || r.Trials[5].Score != nil {
		t.Fatal("the draws hold one kind only, or who failed stands first")
	}
	cfg.Space["ppo.minibatches"] = []any{1000}
	_, err = Run(t.Context(), cfg, tinyProblem(), Options{Dir: filepath.Join(t.TempDir(), "s"), Workers: 1})
	if err == nil || !strings.Contains(err.Error(), "every trial failed") {
		t.Errorf("got %v", err)
	}
}
