package runpage

import (
	"bytes"
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clustergym/env/jobselect"
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/lab/report"
	"clustergym/lab/run"
	"clustergym/lab/rundir"
)

// read is what the tests read of a page.
type read struct {
	Title  string
	Charts []struct {
		Title, Text  string
		Lower        bool
		Seconds, Log bool
		Curves       []struct {
			Name string
			X, Y []float64
			Best int
		}
		Levels []struct {
			Name  string
			Value float64
		}
	}
	Forests []struct {
		Title string
		Rows  []struct {
			Name string
			At   [3]float64
		}
	}
	Tables []struct{ Rows [][]string }
	Notes  []string
	GPUs   int
	Runs   []struct {
		Name   string
		Series struct{ Values [][]float64 }
		JCT    struct{ Jobs int }
	}
}

func written(t *testing.T, p *Page) read {
	t.Helper()
	var b, again bytes.Buffer
	if err := p.Write(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	if err := p.Write(t.Context(), &again); err != nil || !bytes.Equal(b.Bytes(), again.Bytes()) {
		t.Errorf("the same page has other bytes (%v)", err)
	}
	_, rest, _ := strings.Cut(b.String(), `<script type="application/json" id="data">`)
	block, _, _ := strings.Cut(rest, "</script>")
	var d read
	if err := json.Unmarshal([]byte(block), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// small is a run of seconds on generated jobs.
func small(t *testing.T) config.Config {
	t.Helper()
	cfg := config.For(jobselect.V1)
	cfg.Name = "small"
	cfg.Trace.Synth.Jobs = 3000
	cfg.PPO.Steps, cfg.PPO.Minibatches, cfg.PPO.Network.Hidden = 32, 2, []int{16}
	cfg.Train.Steps, cfg.Train.Envs, cfg.Train.LogEvery, cfg.Train.EvalEvery = 1600, 4, 250, 500
	cfg.Eval.Windows, cfg.Eval.Validation, cfg.Eval.Whole = 4, 2, false
	cfg.Eval.Policies = []string{"fifo+strict", "sjf+skip", "sjf@slots", "random@slots"}
	for _, set := range []string{"env.window=32", "env.warm=32", "env.visible=4", "env.load=3"} {
		if err := cfg.Set(set); err != nil {
			t.Fatal(err)
		}
	}
	return cfg
}

func trained(t *testing.T, cfg config.Config) (*run.TrainResult, *Page) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), cfg.Name)
	r, err := run.Train(t.Context(), cfg, run.TrainOptions{RunDir: dir, Workers: 2, Tags: "sb3"})
	if err != nil {
		t.Fatal(err)
	}
	return r, &Page{
		Config: cfg, Runs: []string{dir}, Sheets: r.Eval.Sheets(), Results: []Result{{Comparison: r.Eval}},
		Evaluated: arena.EvalOptions{Checkpoints: []string{r.Checkpoint}, Workers: 2},
	}
}

// The page of a training: what progress.jsonl, the evaluation and the simulator say.
func TestPageOfATraining(t *testing.T) {
	cfg := small(t)
	r, p := trained(t, cfg)
	d := written(t, p)
	if len(d.Charts) != 2 {
		t.Fatalf("%d charts", len(d.Charts))
	}
	lines, err := rundir.ReadProgress(p.Runs[0])
	if err != nil {
		t.Fatal(err)
	}
	var at, value []float64
	for _, l := range lines {
		if l.Eval != nil {
			at, value = append(at, float64(l.Step)), append(value, float64(float32(l.Eval.JCT)))
		}
	}
	near := func(a, b float64) bool { return a-b <= 1e-5*b && b-a <= 1e-5*b }
	c := d.Charts[0]
	if u := c.Curves[0]; !slices.Equal(u.X, at) || !slices.EqualFunc(u.Y, value, near) || u.Best < 0 || len(at) < 3 ||
		!c.Lower || !c.Seconds {
		t.Errorf("the curve is %+v, want %v at %v", u, value, at)
	}
	if best, ok, err := rundir.ReadBest(p.Runs[0]); err != nil || !ok ||
		c.Curves[0].X[c.Curves[0].Best] != float64(best.Step) {
		t.Errorf("the best is marked at %v, it is %+v (%v)", c.Curves[0].X[c.Curves[0].Best], best, err)
	}
	// The rivals' lines are what a validation of them gives.
	if len(c.Levels) != len(cfg.Eval.Policies) || c.Levels[1].Name != "sjf+skip" ||
		c.Levels[1].Value >= c.Levels[0].Value {
		t.Errorf("levels %+v", c.Levels)
	}
	// Every policy of the evaluation has its difference, with the numbers of the table.
	e := r.Eval.(*report.Report)
	if len(d.Forests) != 2 || len(d.Forests[0].Rows) != len(cfg.Eval.Policies) {
		t.Fatalf("forests %+v", d.Forests)
	}
	for i, row := range d.Forests[0].Rows {
		if q := e.Paired[2*i]; row.Name != q.B || !near(row.At[0]+1000, q.Difference+1000) ||
			!near(row.At[1]+1000, q.CI95[0]+1000) {
			t.Errorf("difference %+v, want %+v", row, q)
		}
	}
	if len(d.Tables) != 1 || len(d.Tables[0].Rows) != 1+len(cfg.Eval.Policies) {
		t.Errorf("tables %+v", d.Tables)
	}
	// The agent's schedule beside SJF's: the same window, never fewer than nobody, every counted job finished.
	if len(d.Runs) != 2 || d.Runs[1].Name != "sjf+skip" || d.GPUs != 32 ||
		!strings.HasPrefix(d.Notes[0], "Schedules, estimates exact: window ") {
		t.Fatalf("%d runs, notes %q", len(d.Runs), d.Notes)
	}
	for _, x := range d.Runs {
		for variable, name := range []string{"GPUs in use", "waiting", "running"} {
			if v := x.Series.Values[variable]; slices.Min(v) < 0 || slices.Max(v) == 0 {
				t.Errorf("%s of %s: from %v to %v", name, x.Name, slices.Min(v), slices.Max(v))
			}
		}
		if x.JCT.Jobs != 32 {
			t.Errorf("%d jobs of %s count, want the window's 32", x.JCT.Jobs, x.Name)
		}
	}
}

// The schedule that is drawn is the one that the evaluation counted.
func TestTheScheduleIsThatOfTheEvaluation(t *testing.T) {
	cfg := small(t)
	r, p := trained(t, cfg)
	e := r.Eval.(*report.Report)
	agent, rival := pair(onWindows(e), false)
	if agent.kind != report.KindCheckpoint || rival.name != "sjf+skip" {
		t.Fatalf("%s next to %s", agent.name, rival.name)
	}
	window := typical(agent, rival)
	below := 0
	x, y := agent.per, rival.per
	for i := range x {
		if x[i]/y[i] < x[window]/y[window] {
			below++
		}
	}
	if below != 1 && below != 2 && x[window] != y[window] {
		t.Errorf("%d of %d windows differ by less", below, len(x))
	}
	scenario, err := arena.NewScenario(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, who := range []*playable{agent, rival} {
		sum := jctSum{}
		at, err := scenario.Watch(t.Context(), cfg, p.Evaluated, who.name, window, &sum)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := sum.mean(at.First), who.per[window]; got-want > 1e-6*want || want-got > 1e-6*want {
			t.Errorf("%s: mean JCT %v s, the evaluation said %v", who.name, got, want)
		}
	}
	if _, err := scenario.Watch(t.Context(), cfg, p.Evaluated, "nobody", 0, &jctSum{}); err == nil ||
		!strings.Contains(err.Error(), "nobody") {
		t.Errorf("watching nobody: %v", err)
	}
}

// Pages of problems, of meta-learners and of heuristics alone have what they have.
func TestPagesWithoutSchedules(t *testing.T) {
	cfg, err := config.Preset("cartpole-ppo")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Train.Steps, cfg.Train.EvalEvery, cfg.Eval.Episodes, cfg.Eval.Validation = 2048, 1024, 8, 4
	_, p := trained(t, cfg)
	d := written(t, p)
	if len(d.Charts) != 2 || len(d.Runs) != 0 || d.Charts[0].Lower || len(d.Forests) != 1 ||
		d.Forests[0].Rows[0].Name != "random" {
		t.Errorf("page %+v", d)
	}
	var levels []string
	for _, l := range d.Charts[0].Levels {
		levels = append(levels, l.Name)
	}
	if !slices.Equal(levels, []string{"random", "solved"}) {
		t.Errorf("levels %v", levels)
	}

	cfg = small(t)
	c, err := arena.Compare(t.Context(), cfg, arena.EvalOptions{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	d = written(t,
		&Page{Config: cfg, Sheets: c.Sheets(), Results: []Result{{Comparison: c}}, Evaluated: arena.EvalOptions{Workers: 1}})
	if len(d.Charts) != 0 || len(d.Forests[0].Rows) != 3 || len(d.Runs) != 2 || d.Runs[0].Name != "fifo+strict" ||
		d.Runs[1].Name != "sjf+skip" {
		t.Errorf("heuristics alone: %d charts, forests %+v, %d runs", len(d.Charts), d.Forests, len(d.Runs))
	}
}

// Runs whose validations differ are drawn apart; those that compare are drawn together.
func TestRunsAreDrawnTogetherWhereTheyCompare(t *testing.T) {
	cfg := small(t)
	_, one := trained(t, cfg)
	cfg.Seed, cfg.Name = 2, "two"
	_, two := trained(t, cfg)
	cfg.Seed, cfg.Name = 3, "other"
	if err := cfg.Set("env.load=0.5"); err != nil {
		t.Fatal(err)
	}
	_, other := trained(t, cfg)
	one.Runs = append(append(one.Runs, two.Runs...), other.Runs...)
	d := written(t, one)
	if len(d.Charts) != 4 || len(d.Charts[0].Curves) != 2 || len(d.Charts[2].Curves) != 1 ||
		d.Charts[2].Curves[0].Name != "other" {
		t.Fatalf("%d charts", len(d.Charts))
	}
	if d.Charts[0].Levels[1].Value == d.Charts[2].Levels[1].Value {
		t.Error("SJF has one value at two loads")
	}
}

// The page of a comparison on streams: differences with their intervals, and the schedules of the first jobs that
// count, with completion times that are those of the comparison.
func TestPageOfStreams(t *testing.T) {
	for _, draws := range []int{12, 3} {
		cfg := config.Default()
		cfg.Trace.Synth.Jobs = 3000
		cfg.Eval.Policies = []string{"fifo+skip", "sjf+skip", "hold"}
		cfg.Eval.Streams.Draws, cfg.Eval.Streams.Jobs, cfg.Eval.Streams.Warm = draws, 80, 100
		c, err := arena.Compare(t.Context(), cfg, arena.EvalOptions{Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		e := c.(*report.StreamReport)
		p := &Page{Config: cfg, Sheets: c.Sheets(), Results: []Result{{Comparison: c}},
			Evaluated: arena.EvalOptions{Workers: 1}}
		d := written(t, p)
		if len(d.Forests) != 1 || len(d.Forests[0].Rows) != 2 ||
			d.Forests[0].Title != "Each policy against fifo+skip: mean JCT" {
			t.Fatalf("forests %+v", d.Forests)
		}
		near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-5*(100+math.Abs(b)) }
		for i, row := range d.Forests[0].Rows {
			q := e.Paired[i]
			low := q.CI95[0]
			if draws < 10 {
				low = float64(q.Difference)
			}
			if row.Name != q.A || !near(row.At[0], float64(q.Difference)) || !near(row.At[1], low) {
				t.Errorf("difference %+v, want %+v", row, q)
			}
		}
		if len(d.Runs) != 2 || d.Runs[1].Name != "sjf+skip" ||
			!strings.HasPrefix(d.Notes[0],
				"Schedules, estimates history (causal): the first 80 counted jobs of the first draw") {
			t.Fatalf("%d runs, notes %q", len(d.Runs), d.Notes)
		}
		scenario, err := arena.NewScenario(&cfg)
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range d.Runs {
			if x.JCT.Jobs != 80 || slices.Min(x.Series.Values[1]) < 0 {
				t.Errorf("%d jobs of %s count, want 80", x.JCT.Jobs, x.Name)
			}
			sum := jctSum{}
			at, err := scenario.Watch(t.Context(), cfg, p.Evaluated, x.Name, 0, &sum)
			if err != nil || at.First != e.Streams.Warm || at.Jobs != 80 {
				t.Fatalf("%+v, %v", at, err)
			}
			if got, want := sum.among(at), float64(e.Policies[i].Metrics.JCT.Per[0]); !near(got, want) {
				t.Errorf("%s: mean JCT %v s, the evaluation said %v", x.Name, got, want)
			}
		}
	}
}
