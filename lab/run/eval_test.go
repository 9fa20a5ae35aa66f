package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/agents/checkpoint"
	"clustergym/configs"
	"clustergym/internal/fault"
	"clustergym/internal/raced"
	"clustergym/internal/statistic"
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/lab/report"
	"clustergym/lab/rundir"
	"clustergym/simulator/cluster"
	"clustergym/simulator/metrics"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

func evaluate(t *testing.T, cfg config.Config, opt arena.EvalOptions) (*report.Report, string) {
	t.Helper()
	if opt.Workers == 0 {
		opt.Workers = 1
	}
	r, err := arena.Evaluate(t.Context(), cfg, opt)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return r, string(b)
}

// trained trains for a number of steps and returns the run directory.
func trained(t *testing.T, cfg config.Config, steps int64) string {
	t.Helper()
	dir := t.TempDir()
	cfg.Train.Steps = steps
	trainTo(t, cfg, dir, TrainOptions{NoEval: true})
	return filepath.Join(dir, "tiny")
}

func TestEvaluationsRepeatForAnyNumberOfWorkers(t *testing.T) {
	cfg := tinyRun("ppo")
	run := trained(t, cfg, 300)
	jobSelect(&cfg).Estimates = sim.MustEstimates("noisy:0.5")
	var want string
	for _, workers := range []int{1, 2, 8} {
		games := 0
		_, got := evaluate(t, cfg, arena.EvalOptions{Checkpoints: []string{run}, Workers: workers, Game: func(done, all int) {
			// Four windows of five policies, twice of the random one, and each over the whole part.
			if games++; done != games || all != 4*6+5 {
				t.Errorf("game %d: %d of %d", games, done, all)
			}
		}})
		if games != 29 {
			t.Errorf("%d games", games)
		}
		if want == "" {
			want = got
		} else if got != want {
			t.Errorf("%d workers give another document", workers)
		}
	}
	cfg.Eval.Seed++
	if _, got := evaluate(t, cfg, arena.EvalOptions{Checkpoints: []string{run}}); got == want {
		t.Error("another eval.seed gives the same document")
	}
	cfg.Eval.Seed--
	cfg.Seed++
	if _, got := evaluate(t, cfg, arena.EvalOptions{Checkpoints: []string{run}}); got != want {
		t.Error("the run's seed changes the document: runs could not be compared")
	}
}

// The metrics of a heuristic in an evaluation are those of a direct simulation of the window, written here without the
// environment: FIFO skip on the jobs before the window, then the waiting ones are removed and the heuristic takes over.
func TestHeuristicsGetTheNumbersOfADirectSimulation(t *testing.T) {
	raced.Alone(t)
	cfg := tinyRun("ppo")
	cfg.Eval.Policies, cfg.Eval.Windows, jobSelect(&cfg).Load = []string{"fifo+strict", "sjf+skip", "srtf", "las"}, 8, 6
	report, _ := evaluate(t, cfg, arena.EvalOptions{})
	scenario, err := arena.NewScenario(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	distinct := map[float64]bool{}
	for i, w := range report.Windows {
		at, err := scenario.Taken.Windows.At(traces.Test, 0, i)
		if err != nil {
			t.Fatal(err)
		}
		if w.FirstJob != at.First || w.Jobs != 32 || at.Warm != 32 || at.First < 2993*8/10 {
			t.Errorf("window %d is %+v, want jobs from %d", i, w, at.First)
		}
		for _, p := range report.Policies {
			order, admission, _ := strings.Cut(p.Name, "+")
			m := simulateWindow(t, scenario.Cluster(), at.Before(), at.Counting(), jobSelect(&cfg).Load, order, admission,
				jobSelect(&cfg).Placement, jobSelect(&cfg).Comm)
			distinct[m.JCT.Mean] = true
			for name, c := range map[string][2]float64{
				"jct_s": {p.Metrics.JCT.PerWindow[i], m.JCT.Mean}, "wait_s": {p.Metrics.Wait.PerWindow[i], m.Wait.Mean},
				"first_wait_s":          {p.Metrics.FirstWait.PerWindow[i], m.FirstWait.Mean},
				"slowdown":              {p.Metrics.Slowdown.PerWindow[i], m.Slowdown.Mean},
				"bounded_slowdown":      {p.Metrics.BoundedSlowdown.PerWindow[i], m.BoundedSlowdown.Mean},
				"jct_p99_s":             {p.Metrics.JCT99.PerWindow[i], m.JCT.P99},
				"makespan_s":            {p.Metrics.Makespan.PerWindow[i], m.Makespan},
				"gpu_utilization":       {p.Metrics.Utilization.PerWindow[i], m.Utilization},
				"effective_utilization": {p.Metrics.Effective.PerWindow[i], m.Effective},
			} {
				if c[0] != c[1] {
					t.Errorf("window %d, %s, %s: %v, want %v", i, p.Name, name, c[0], c[1])
				}
			}
		}
	}
	if len(distinct) < 10 {
		t.Errorf("only %d different mean JCTs: the windows are too easy to tell anything", len(distinct))
	}
}

func simulateWindow(t *testing.T, spec cluster.Spec, warm, counted []traces.Job, load float64, order, admission,
	placement, comm string) metrics.Summary {
	t.Helper()
	s, err := sim.New(sim.Config{Comm: comm}, spec)
	if err != nil {
		t.Fatal(err)
	}
	factor := traces.LoadFactor(counted, s.View().Cluster().GPUs(), load)
	var jobs []traces.Job
	for _, j := range slices.Concat(warm, counted) {
		j.Submit = time.Duration(math.Round(float64(j.Submit-warm[0].Submit) * factor))
		jobs = append(jobs, j)
	}
	if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
		t.Fatal(err)
	}
	scheduler := func(order, admission string) schedulers.Policy {
		c := schedulers.DefaultConfig()
		c.Order, c.Admission, c.Placement = order, admission, placement
		h, err := schedulers.New(c)
		if err != nil {
			t.Fatal(err)
		}
		h.Reset(s.View())
		return h
	}
	h, taken := scheduler("fifo", "skip"), false
	c := metrics.Collector{Keep: func(pos int) bool { return pos >= len(warm) }}
	v := s.View()
	var d sim.Decision
	for {
		p, err := s.Advance(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !taken && v.Arrived() > len(warm) {
			taken = true
			for _, j := range slices.Clone(v.Waiting()) {
				if v.Pos(j) < len(warm) {
					if err := s.Apply(&sim.Decision{Op: sim.DropJob, Job: j}); err != nil {
						t.Fatal(err)
					}
				}
			}
			h = scheduler(order, admission)
		}
		if taken {
			if err := c.Observe(v, p); err != nil {
				t.Fatal(err)
			}
		}
		if c.Len() == len(counted) {
			return c.Summary(0, 0)
		}
		for {
			d.Op, d.GPUs, d.Until = sim.Wait, d.GPUs[:0], 0
			if err := h.Decide(v, p, &d); err != nil {
				t.Fatal(err)
			}
			if err := s.Apply(&d); err != nil {
				t.Fatal(err)
			}
			if d.Op == sim.Wait {
				break
			}
		}
	}
}

// A rule that acts through slots equals the heuristic if every waiting job has a slot, on every metric of every window
// and under any estimates, and differs from it otherwise.
func TestRulesInSlotsAreTheHeuristicsWhenEverythingIsSeen(t *testing.T) {
	if raced.On {
		t.Skip("the race detector sees the same code in TestEvaluationsRepeatForAnyNumberOfWorkers, which takes less time; make unit runs this test")
	}
	for _, estimates := range []string{"exact", "noisy:1"} {
		cfg := tinyRun("ppo")
		cfg.Eval.Policies, cfg.Eval.Whole,
			cfg.Eval.Windows = []string{"fifo+skip", "sjf+skip", "area+skip", "fifo@slots", "sjf@slots", "area@slots"}, false, 8
		own := jobSelect(&cfg)
		own.Slots, own.Estimates = "oldest", sim.MustEstimates(estimates)
		for _, visible := range []int{32, 2} {
			jobSelect(&cfg).Visible = visible
			r, _ := evaluate(t, cfg, arena.EvalOptions{})
			for i := range 3 {
				full, slots := r.Policies[i], r.Policies[i+3]
				if slots.Kind != "slots" || full.Kind != "heuristic" {
					t.Fatalf("%s is %s, %s is %s", full.Name, full.Kind, slots.Name, slots.Kind)
				}
				same := fmt.Sprint(full.Metrics) == fmt.Sprint(slots.Metrics)
				if visible == 32 && !same {
					t.Errorf("%s, %s: %+v, want those of %s: %+v", estimates, slots.Name, slots.Metrics, full.Name, full.Metrics)
				}
				if visible == 2 && same && full.Name != "fifo+skip" {
					t.Errorf("%s, %s is %s even with 2 slots: the windows are too easy to tell anything", estimates, slots.Name,
						full.Name)
				}
			}
		}
	}
}

// The same weights under two names have no difference and only ties.
func TestAPolicyComparedWithItselfTies(t *testing.T) {
	cfg := tinyRun("ppo")
	run := trained(t, cfg, 300)
	twin := filepath.Join(t.TempDir(), "twin")
	if err := os.CopyFS(twin, os.DirFS(run)); err != nil {
		t.Fatal(err)
	}
	cfg.Eval.Policies = nil
	r, _ := evaluate(t, cfg, arena.EvalOptions{Checkpoints: []string{run, twin}})
	if len(r.Paired) != 4 || r.Policies[0].Name != "ppo:tiny@300" || r.Policies[1].Name != "ppo:twin@300" {
		t.Fatalf("%d pairs of %s and %s", len(r.Paired), r.Policies[0].Name, r.Policies[1].Name)
	}
	for _, p := range r.Paired {
		if p.Difference != 0 || p.CI95 != [2]float64{0, 0} || p.Ties != 4 || p.Wins != 0 || p.WinRate != 0.5 {
			t.Errorf("%+v, want no difference and 4 ties", p)
		}
	}
	if fmt.Sprint(r.Policies[0].Metrics) != fmt.Sprint(r.Policies[1].Metrics) {
		t.Error("the same weights give other metrics")
	}
}

// The comparison of a with b must agree with that of b with a.
func TestPairsAreSymmetric(t *testing.T) {
	if raced.On {
		t.Skip("the race detector sees the same code in TestEvaluationsRepeatForAnyNumberOfWorkers, which takes less time; make unit runs this test")
	}
	cfg := tinyRun("ppo")
	names := []string{"fifo+strict", "sjf+skip", "random-start@slots", "las"}
	reports := [2]map[string]statistic.Paired{}
	for i := range reports {
		cfg.Eval.Policies, cfg.Eval.Seeds, cfg.Eval.Windows, cfg.Eval.Whole = slices.Clone(names), 1, 16, false
		r, _ := evaluate(t, cfg, arena.EvalOptions{})
		reports[i] = map[string]statistic.Paired{}
		for _, p := range r.Paired {
			reports[i][p.A+" "+p.B+" "+p.Metric] = p
		}
		slices.Reverse(names)
	}
	if len(reports[0]) != 12 || len(reports[1]) != 12 {
		t.Fatalf("%d and %d pairs, want 12", len(reports[0]), len(reports[1]))
	}
	for _, key := range slices.Sorted(maps.Keys(reports[0])) {
		p := reports[0][key]
		q, ok := reports[1][p.B+" "+p.A+" "+p.Metric]
		if !ok || p.Wins+q.Wins+p.Ties != 16 || p.Ties != q.Ties || math.Abs(p.WinRate+q.WinRate-1) > 1e-12 {
			t.Errorf("%s: wins %d and %d, ties %d and %d, rates %v and %v", key, p.Wins, q.Wins, p.Ties, q.Ties, p.WinRate,
				q.WinRate)
		}
		back := func(x float64) float64 { return 100 * (1/(1+x/100) - 1) }
		if math.Abs(p.Difference-back(q.Difference)) > 1e-9*(1+math.Abs(p.Difference)) {
			t.Errorf("%s: %v %% and %v %%", key, p.Difference, q.Difference)
		}
		// Quantiles are interpolated, so that turning them round moves them a little.
		for i, got := range p.CI95 {
			if want := back(q.CI95[1-i]); math.Abs(got-want) > 0.02*(1+math.Abs(want)) {
				t.Errorf("%s: interval %v, turned round %v", key, p.CI95, q.CI95)
			}
		}
		if p.CI95[0] > p.CI95[1] {
			t.Errorf("%s: interval %v", key, p.CI95)
		}
	}
}

// keysOf returns the sorted paths of the keys of a JSON value; lists add nothing to a path.
func keysOf(t *testing.T, text string) []string {
	t.Helper()
	found := map[string]bool{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, x := range v {
				found[path+k] = true
				walk(path+k+".", x)
			}
		case []any:
			for _, x := range v {
				walk(path, x)
			}
		}
	}
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	walk("", v)
	return slices.Sorted(maps.Keys(found))
}

func TestDocumentOfAnEvaluationHasItsKeys(t *testing.T) {
	cfg := tinyRun("ppo")
	cfg.Eval.Whole = false
	_, text := evaluate(t, cfg, arena.EvalOptions{Checkpoints: []string{trained(t, cfg, 300)}})
	want := []string{
		"windows", "windows.seed", "windows.first_job", "windows.jobs",
		"policies", "policies.name", "policies.kind", "policies.metrics", "policies.metrics.unfinished",
		"policies.trained_on", "policies.asks_nothing", "estimates", "rung",
		"left_out", "left_out.of", "left_out.above_max_gpus", "left_out.above_max_gpus_share", "left_out.max_gpus",
		"left_out.never_fit", "left_out.never_fit_share", "left_out.without_work",
		"paired", "paired.a", "paired.b", "paired.metric", "paired.difference_percent", "paired.ci95", "paired.win_rate",
		"paired.wins", "paired.ties",
	}
	for _, m := range []string{
		"jct_s", "wait_s", "first_wait_s", "slowdown", "bounded_slowdown", "jct_p99_s", "makespan_s", "gpu_utilization",
		"effective_utilization",
	} {
		for _, k := range []string{"", ".iqm", ".mean", ".ci95", ".per_window"} {
			want = append(want, "policies.metrics."+m+k)
		}
	}
	slices.Sort(want)
	if got := keysOf(t, text); !slices.Equal(got, want) {
		t.Errorf("keys\n%v, want\n%v", got, want)
	}
	cfg.Eval.Whole, cfg.Eval.Policies = true, []string{"fifo"}
	r, text := evaluate(t, cfg, arena.EvalOptions{})
	got := strings.Join(keysOf(t, text), " ")
	for _, k := range []string{"whole", "whole.first_job", "whole.jobs", "whole.counted", "whole.policies.name",
		"whole.policies.metrics.jct_s.mean"} {
		if !strings.Contains(" "+got+" ", " "+k+" ") {
			t.Errorf("no key %s", k)
		}
	}
	// A fifth of 2991 or so jobs, the first 32 of which fill the machine; 5 % at each end are not counted.
	w := r.Whole
	m := w.Policies[0].Metrics
	if w.Jobs < 550 || w.Jobs > 570 || w.Counted != w.Jobs-2*(w.Jobs/20) || m.Finished != w.Counted || m.Unfinished != 0 {
		t.Errorf("whole: %+v with %d finished", w, m.Finished)
	}
	if w.FirstJob != r.Windows[0].FirstJob {
		t.Errorf("the whole part begins at job %d, its first window at %d", w.FirstJob, r.Windows[0].FirstJob)
	}
}

func TestCheckpointsThatCannotBePlayedAreRefused(t *testing.T) {
	cfg := tinyRun("ppo")
	whole := trained(t, cfg, 300)
	ckpt := filepath.Join(rundir.Checkpoints, "300")
	for name, c := range map[string]struct {
		spoil func(t *testing.T, run string)
		dir   string // under the run
		want  []string
	}{
		"no such folder":      {func(*testing.T, string) {}, "nothing", []string{"nothing", "neither a checkpoint"}},
		"a folder of another": {func(*testing.T, string) {}, rundir.Checkpoints, []string{"neither a checkpoint"}},
		"a missing file": {func(t *testing.T, run string) {
			remove(t, filepath.Join(run, ckpt, "weights.safetensors"))
		}, "", []string{"weights.safetensors is missing"}},
		"half of a write": {func(t *testing.T, run string) {
			path := filepath.Join(run, ckpt, "weights.safetensors")
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, b[:len(b)/2], 0o600); err != nil {
				t.Fatal(err)
			}
		}, "", []string{"weights.safetensors", "bytes"}},
		"no manifest": {func(t *testing.T, run string) {
			remove(t, filepath.Join(run, ckpt, checkpoint.ManifestName))
		}, ckpt, []string{"neither a checkpoint"}},
		"best.json of a checkpoint that is gone": {func(t *testing.T, run string) {
			if err := rundir.WriteBest(run, rundir.BestCheckpoint{Step: 77}); err != nil {
				t.Fatal(err)
			}
		}, "", []string{filepath.Join(rundir.Checkpoints, "77"), "does not exist"}},
		"a broken best.json": {func(t *testing.T, run string) { put(t, run, rundir.BestFile) }, "",
			[]string{rundir.BestFile}},
		"no checkpoint at all": {func(t *testing.T, run string) {
			if err := os.RemoveAll(filepath.Join(run, ckpt)); err != nil {
				t.Fatal(err)
			}
		}, "", []string{rundir.Checkpoints}},
		"no config.yaml": {func(t *testing.T, run string) { remove(t, filepath.Join(run, rundir.ConfigFile)) }, ckpt,
			[]string{rundir.ConfigFile}},
		"a broken config.yaml": {func(t *testing.T, run string) { put(t, run, rundir.ConfigFile) }, ckpt,
			[]string{rundir.ConfigFile}},
		"another environment": {func(t *testing.T, run string) {
			remake(t, filepath.Join(run, ckpt), func(m *checkpoint.Meta) { m.Env = "Other-v1" })
		}, "", []string{"Other-v1", "JobSelect-v1"}},
		"another agent": {func(t *testing.T, run string) {
			remake(t, filepath.Join(run, ckpt), func(m *checkpoint.Meta) { m.Agent = "ddqn" })
		}, "", []string{"ddqn", "ppo"}},
		"another network": {func(t *testing.T, run string) {
			c := cfg
			c.PPO.Network.Hidden = []int{9, 9}
			if err := rundir.WriteConfig(run, &c); err != nil {
				t.Fatal(err)
			}
		}, "", []string{ckpt, "does not fit"}},
	} {
		run := filepath.Join(t.TempDir(), "tiny")
		if err := os.CopyFS(run, os.DirFS(whole)); err != nil {
			t.Fatal(err)
		}
		c.spoil(t, run)
		_, err := arena.Evaluate(t.Context(), cfg,
			arena.EvalOptions{Checkpoints: []string{filepath.Join(run, c.dir)}, Workers: 1})
		refused(t, name, err, c.want...)
	}
	wide := cfg
	jobSelect(&wide).Visible = 8
	_, err := arena.Evaluate(t.Context(), wide, arena.EvalOptions{Checkpoints: []string{whole}, Workers: 1})
	refused(t, "an environment of another shape", err, ckpt, "does not fit this environment")

	// And resuming one.
	for name, spoil := range map[string]func(run string){
		"damaged": func(run string) {
			b, err := os.ReadFile(filepath.Join(run, ckpt, "envs.bin"))
			if err != nil {
				t.Fatal(err)
			}
			b[len(b)/2] ^= 1
			if err := os.WriteFile(filepath.Join(run, ckpt, "envs.bin"), b, 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"missing": func(run string) { remove(t, filepath.Join(run, ckpt, "rollout.bin")) },
	} {
		run := filepath.Join(t.TempDir(), "tiny")
		if err := os.CopyFS(run, os.DirFS(whole)); err != nil {
			t.Fatal(err)
		}
		spoil(run)
		before := contentsRaw(t, run)
		_, err := Train(t.Context(), cfg, TrainOptions{RunDir: run, Resume: true, Workers: 1})
		refused(t, name, err, ckpt)
		sameFiles(t, name, contentsRaw(t, run), before, false)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// remake changes the description in a checkpoint.
func remake(t *testing.T, dir string, change func(m *checkpoint.Meta)) {
	t.Helper()
	path := filepath.Join(dir, checkpoint.ManifestName)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var m checkpoint.Manifest
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	change(&m.Meta)
	if b, err = json.Marshal(m); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// The schedule found in hindsight is at least as good as its base on every window, for any number of workers; tables
// say what it knows, and it does not play the whole part.
func TestHindsightInTables(t *testing.T) {
	cfg := tinyRun("ppo")
	e := jobSelect(&cfg)
	e.Estimates, e.Load = sim.MustEstimates("noisy:1"), 20
	cfg.Eval.Policies, cfg.Eval.Windows, cfg.Eval.Hindsight = []string{"sjf+skip", "hindsight:sjf+skip"}, 6, 300
	var want string
	for _, workers := range []int{1, 4} {
		r, got := evaluate(t, cfg, arena.EvalOptions{Workers: workers})
		if want == "" {
			want = got
		} else if got != want {
			t.Error("the number of workers changes the document")
		}
		base, found := r.Policies[0].Metrics.JCT, r.Policies[1].Metrics.JCT
		for i := range base.PerWindow {
			if found.PerWindow[i] > base.PerWindow[i] {
				t.Errorf("window %d: %v s, SJF %v s", i, found.PerWindow[i], base.PerWindow[i])
			}
		}
		if found.Mean >= base.Mean {
			t.Errorf("hindsight reaches %v s and SJF %v s: the search has found nothing", found.Mean, base.Mean)
		}
		var b bytes.Buffer
		if err := r.WriteTable(&b); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), "hindsight:sjf+skip (exact)") ||
			!strings.Contains(b.String(), "hindsight:sjf+skip knows the workload beforehand.") {
			t.Errorf("table:\n%s", &b)
		}
		if !r.Policies[1].Knows || r.Whole == nil || len(r.Whole.Policies) != 1 {
			t.Errorf("%+v", r.Whole)
		}
	}
}

func TestNamesOfPolicies(t *testing.T) {
	cfg := tinyRun("ppo")
	for _, c := range []struct {
		policies []string
		want     []string
	}{
		{[]string{"fifo", "fifo+strict"}, []string{"fifo+strict", "twice"}},
		{[]string{"sjf@slots", "sjf@slots"}, []string{"sjf@slots", "twice"}},
		{nil, []string{"nothing to evaluate", "sjf+skip"}},
		{[]string{"fifi"}, []string{"eval.policies[0]", "fifi"}},
		{[]string{"sjf", "sjf@slot"}, []string{"eval.policies[1]", "sjf@slot"}},
		{[]string{"lifo@slots"}, []string{"eval.policies[0]", "lifo"}},
		{[]string{"sjf+skp"}, []string{"eval.policies[0]", "skp"}},
		{[]string{"hindsight:srtf"}, []string{"eval.policies[0]", "hindsight:srtf", "srtf stops running jobs"}},
		{[]string{"hindsight:sjf@slots"}, []string{"eval.policies[0]", "sjf@slots does not see the whole queue"}},
		{[]string{"hindsight:"}, []string{"eval.policies[0]", "hindsight:"}},
		{[]string{"hindsight:sjf+skip", "hindsight:sjf+skip"}, []string{"hindsight:sjf+skip", "twice"}},
	} {
		cfg.Eval.Policies = c.policies
		_, err := arena.Evaluate(t.Context(), cfg, arena.EvalOptions{Workers: 1})
		refused(t, strings.Join(c.policies, ","), err, c.want...)
	}
	// Rules that rank by run time cannot where it is hidden, neither of the whole queue nor of the slots.
	jobSelect(&cfg).Estimates = sim.MustEstimates("none")
	for _, p := range []string{"sjf", "sjf@slots", "srtf"} {
		cfg.Eval.Policies = []string{p}
		refused(t, p, errOf(cfg.Validate()), "hides")
	}
	cfg.Eval.Policies, cfg.Eval.Whole = []string{"fifo", "las", "random", "fifo@slots", "random@slots"}, false
	r, _ := evaluate(t, cfg, arena.EvalOptions{})
	var names []string
	for _, p := range r.Policies {
		names = append(names, p.Name)
	}
	if want := []string{"fifo+strict", "las+skip", "random+strict", "fifo@slots", "random@slots"}; !slices.Equal(names,
		want) {
		t.Errorf("names %v, want %v", names, want)
	}

	// Runs in folders of one name are told apart by their paths.
	cfg = tinyRun("ppo")
	run := trained(t, cfg, 300)
	twin := filepath.Join(t.TempDir(), "tiny")
	if err := os.CopyFS(twin, os.DirFS(run)); err != nil {
		t.Fatal(err)
	}
	cfg.Eval.Policies, cfg.Eval.Whole = []string{"fifo"}, false
	r, _ = evaluate(t, cfg, arena.EvalOptions{Checkpoints: []string{run, twin}})
	if a, b := r.Policies[0].Name, r.Policies[1].Name; a != "ppo:"+filepath.ToSlash(run)+"@300" ||
		b != "ppo:"+filepath.ToSlash(twin)+"@300" {
		t.Errorf("twins are called %s and %s", a, b)
	}
	_, err := arena.Evaluate(t.Context(), cfg, arena.EvalOptions{Checkpoints: []string{run, run}, Workers: 1})
	refused(t, "one run twice", err, "twice")
}

func errOf(err error) error {
	if err == nil {
		return nil
	}
	return &fault.Mistake{Err: err}
}

// Limits on episodes are for training only: windows are judged by all their jobs.
func TestEvaluationsPlayToTheLastJob(t *testing.T) {
	raced.Alone(t)
	cfg := tinyRun("ppo")
	run := trained(t, cfg, 300)
	cfg.Eval.Whole = false
	_, want := evaluate(t, cfg, arena.EvalOptions{Checkpoints: []string{run}})
	own := jobSelect(&cfg)
	own.Horizon, own.MaxSteps = time.Minute, 3
	r, got := evaluate(t, cfg, arena.EvalOptions{Checkpoints: []string{run}})
	if got != want {
		t.Error("a horizon and a number of steps change the document")
	}
	for _, p := range r.Policies {
		if p.Metrics.Unfinished != 0 {
			t.Errorf("%s leaves %d jobs unfinished", p.Name, p.Metrics.Unfinished)
		}
	}
}

// All faults are reported at once, each with its key.
func TestConfigReportsAllFaults(t *testing.T) {
	cfg := config.For("JobSelect-v1")
	cfg.Name, cfg.Cluster, cfg.Agent, cfg.Env.ID = "a b", "", "sac", "JobSelect-v0"
	cfg.Trace.Skip, cfg.Trace.Synth.Jobs = -1, 0
	own := jobSelect(&cfg)
	own.Load, own.Visible = 1000, 3
	cfg.PPO.LR, cfg.PPO.Network.Kind = 0, "rnn"
	cfg.DDQN.Batch = 0
	cfg.Train.Steps, cfg.Train.Envs, cfg.Train.Keep = 0, 0, -1
	cfg.Eval.Windows, cfg.Eval.Validation, cfg.Eval.Seeds, cfg.Eval.Policies = 0, 0, 0, []string{"fifo", "fifi", "x@slots"}
	var keys []string
	for _, f := range fault.All(cfg.Validate()) {
		keys = append(keys, f.Key)
	}
	for _, want := range []string{
		"name", "cluster", "agent", "env.id", "trace.skip", "trace.synth.jobs", "env.load", "env.visible", "ppo.lr",
		"ppo.network.kind", "ddqn.batch",
		"train.steps", "train.envs", "train.keep", "eval.windows", "eval.validation", "eval.seeds", "eval.policies[1]",
		"eval.policies[2]",
	} {
		if !slices.Contains(keys, want) {
			t.Errorf("%s is not reported", want)
		}
	}
	if len(keys) != 19 {
		t.Errorf("%d faults, want 19: %v", len(keys), keys)
	}
	for _, run := range []func() error{
		func() error { _, err := Train(t.Context(), cfg, TrainOptions{RunDir: t.TempDir()}); return err },
		func() error { _, err := arena.Evaluate(t.Context(), cfg, arena.EvalOptions{}); return err },
	} {
		var input *fault.Mistake
		if err := run(); !errors.As(err, &input) || len(fault.All(err)) != 19 {
			t.Errorf("got %v, want a *fault.Mistake of 19 faults", err)
		}
	}
	good := config.For("JobSelect-v1")
	if err := good.Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
}

// Every preset can be read, written and read again.
func TestPresetsAreRuns(t *testing.T) {
	if !slices.Contains(configs.Runs(), "quickstart") {
		t.Fatalf("presets are %v", configs.Runs())
	}
	for _, name := range configs.Runs() {
		cfg, err := config.Preset(name)
		if err != nil {
			t.Error(err)
			continue
		}
		b, err := configs.Encode(&cfg)
		if err != nil {
			t.Fatal(err)
		}
		again, err := config.Decode(name, b)
		if err != nil {
			t.Errorf("%s, written and read again: %v", name, err)
		}
		c, err := configs.Encode(&again)
		if err != nil || !bytes.Equal(b, c) {
			t.Errorf("%s changes by being written and read (%v)", name, err)
		}
	}
}
