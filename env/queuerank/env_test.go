package queuerank_test

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/envtest"
	"clustergym/env/queuerank"
	"clustergym/internal/fault"
	"clustergym/simulator/cluster"
	"clustergym/simulator/metrics"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
	"clustergym/traces/swf"
)

var ctx = context.Background()

// windows are the jobs of every episode.
type windows []traces.Job

func (w windows) At(traces.Part, uint64, int) (traces.Window, error) {
	return traces.Window{Jobs: w, Counted: len(w)}, nil
}

func job(submit, work time.Duration, gpus int) traces.Job {
	return traces.Job{ID: "j", Submit: submit, Work: work, Estimate: work, GPUs: gpus, GPUMilli: 1000}
}

func open(t *testing.T, cfg queuerank.Config, spec cluster.Spec, jobs ...traces.Job) (*queuerank.Env, *env.TimeStep) {
	t.Helper()
	e, err := queuerank.New(cfg, spec, windows(jobs), jobs, traces.Training)
	if err != nil {
		t.Fatal(err)
	}
	ts := env.NewTimeStep(e.Spec())
	if err := e.Reset(ctx, env.Episode{Seed: 1}, ts); err != nil {
		t.Fatal(err)
	}
	return e, ts
}

// play chooses slots until the end and returns the sum of the rewards and the steps.
func play(t *testing.T, e *queuerank.Env, ts *env.TimeStep, choose func() int) (ret float64, steps int) {
	t.Helper()
	for !ts.Kind.Last() {
		if err := e.Step(ctx, env.Action{Disc: []int32{int32(choose())}}, ts); err != nil {
			t.Fatal(err)
		}
		if err := e.Spec().Check(ts); err != nil {
			t.Fatal(err)
		}
		ret += ts.Reward
		steps++
	}
	return ret, steps
}

// A wants both GPUs for 100 s, B and C one each for 10 s, all at 0. By SJF B and C start, and A at 10 s: bounded
// slowdowns of 1, 1 and 1.1. With A first B and C end at 110 s: 1, 11 and 11.
func TestThreeJobsByHand(t *testing.T) {
	jobs := []traces.Job{job(0, 100*time.Second, 2), job(0, 10*time.Second, 1), job(0, 10*time.Second, 1)}
	for _, c := range []struct {
		name   string
		choose []int // slots, in order of submit
		metric string
		score  float64
	}{
		{"A first", []int{0, 0, 0}, "bsld", 23. / 3}, {"SJF", []int{1, 1, 0}, "bsld", 3.1 / 3},
		{"A first", []int{0, 1, 0}, "wait", 200. / 3}, {"SJF", []int{2, 1, 0}, "wait", 10. / 3},
		{"A first", []int{0, 0, 0}, "jct", 320. / 3}, {"SJF", []int{1, 1, 0}, "jct", 130. / 3},
		{"A first", []int{0, 0, 0}, "slowdown", 23. / 3}, {"SJF", []int{1, 1, 0}, "slowdown", 3.1 / 3},
		// 220 GPU-seconds by two GPUs in 110 s, either way.
		{"A first", []int{0, 0, 0}, "utilisation", -1}, {"SJF", []int{1, 1, 0}, "utilisation", -1},
	} {
		for _, reward := range []string{"minus", "dense"} {
			if c.metric == "utilisation" && reward == "dense" {
				continue
			}
			cfg := queuerank.DefaultConfig()
			cfg.Metric, cfg.Reward = c.metric, reward
			e, ts := open(t, cfg, cluster.Spec{Pool: 2}, jobs...)
			i := 0
			ret, steps := play(t, e, ts, func() int { i++; return c.choose[i-1] })
			if got := ts.Info[queuerank.InfoScore]; math.Abs(got-c.score) > 1e-9 || math.Abs(ret+c.score) > 1e-9 || steps != 3 {
				t.Errorf("%s, %s %s: score %v, return %v after %d steps, want %v after 3", c.name, c.metric, reward, got, ret,
					steps, c.score)
			}
		}
	}
}

// The same jobs behind one that blocks them until all have arrived, so that there is a choice.
func TestAChoiceByHand(t *testing.T) {
	jobs := []traces.Job{job(0, 5*time.Second, 2), job(time.Second, 100*time.Second, 2),
		job(time.Second, 10*time.Second, 1), job(time.Second, 10*time.Second, 1)}
	run := func(reward string, slots ...int) (float64, *env.TimeStep) {
		cfg := queuerank.DefaultConfig()
		cfg.Reward = reward
		e, ts := open(t, cfg, cluster.Spec{Pool: 2}, jobs...)
		i := 0
		ret, _ := play(t, e, ts, func() int { i++; return slots[i-1] })
		return ret, ts
	}
	// The first starts alone. Of those of 1 s the long one is chosen: it is held until 5 s and runs to 105 s; then come
	// the two short ones, after 104 s each: 1, 1.04, 11.4 and 11.4. SJF, which takes jobs as they come one by one, does
	// the same.
	want := (1 + 1.04 + 11.4 + 11.4) / 4
	for reward, ret := range map[string]float64{"minus": -want, "dense": -want, "relative": 0} {
		got, ts := run(reward, 0, 0, 0, 0)
		if math.Abs(got-ret) > 1e-9 || math.Abs(ts.Info[queuerank.InfoBSLD]-want) > 1e-9 {
			t.Errorf("%s: return %v, bounded slowdown %v, want %v and %v", reward, got, ts.Info[queuerank.InfoBSLD], ret, want)
		}
	}
}

// lublin256 is the workload of the published rows, where it is at hand.
func lublin256(t *testing.T) []traces.Job {
	t.Helper()
	f, err := traces.OpenFile(filepath.Join("..", "..", "..", "shared", "traces", "swf", "lublin_256.swf.gz"))
	if err != nil {
		t.Skip("the published workload is not at hand: looked for in ../shared, beside this repository, of which it is no part")
	}
	defer f.Close() //nolint:errcheck // only read
	r, err := swf.NewReader(f, "lublin_256", swf.Options{})
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := traces.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	kept, _, _ := traces.Filter(jobs, 0)
	return kept
}

// Always the oldest is FCFS: the published rows of windows of 1024 jobs, with and without back-filling, and what
// gymctl sim does.
func TestAlwaysTheOldestIsFCFS(t *testing.T) {
	f, err := os.Open(filepath.Join("..", "..", "..", "shared", "groundtruth", "rlscheduler_lublin_256_windows.csv"))
	if err != nil {
		t.Skip("the published results are not at hand: looked for in ../shared, beside this repository, of which it is no part")
	}
	defer f.Close() //nolint:errcheck // only read
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	jobs := lublin256(t)
	number := func(row []string, name string) float64 {
		v, err := strconv.ParseFloat(row[column[name]], 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	played := 0
	for _, row := range rows[1:] {
		if row[column["policy"]] != "FCFS" {
			continue
		}
		played++
		start := int(number(row, "start_index"))
		cfg := queuerank.DefaultConfig()
		cfg.Window, cfg.Reward, cfg.Estimates = 1024, "dense", sim.MustEstimates("exact")
		if row[column["backfill"]] == "1" {
			cfg.Backfill = "easy"
		}
		e, ts := open(t, cfg, cluster.Spec{Pool: 256}, jobs[start:start+1024]...)
		ret, steps := play(t, e, ts, func() int { return 0 })
		for name, got := range map[string]float64{
			"bsld_avg": -ret, "wait_avg": ts.Info[queuerank.InfoWait], "jct_avg": ts.Info[queuerank.InfoJCT],
			"makespan": ts.Info[queuerank.InfoMakespan],
		} {
			if want := number(row, name); math.Abs(got-want) > 5.1e-7 {
				t.Errorf("window at %d, back-filling %s: %s is %.6f, published is %.6f", start, row[column["backfill"]], name, got,
					want)
			}
		}
		if cfg.Backfill == "none" && steps != 1024 {
			t.Errorf("window at %d: %d steps, want one for each job", start, steps)
		}
	}
	if played != 20 {
		t.Errorf("%d rows, want 20", played)
	}
}

func TestAlwaysTheOldestIsFIFOUnderCommit(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for _, spec := range []cluster.Spec{{Pool: 16}, {Name: "nodes", Racks: []cluster.RackSpec{{Count: 1, Nodes: []cluster.NodeSpec{{Count: 4, GPUs: 4}}}}}} {
		for _, backfill := range []string{"none", "easy"} {
			if backfill == "easy" && spec.Pool == 0 {
				continue
			}
			jobs := random(r, 300)
			cfg := queuerank.DefaultConfig()
			cfg.Visible, cfg.Backfill, cfg.Estimates, cfg.Reward = 8, backfill, sim.MustEstimates("exact"), "minus"
			e, ts := open(t, cfg, spec, jobs...)
			ret, _ := play(t, e, ts, func() int { return 0 })

			h := schedulers.DefaultConfig()
			h.Admission, h.Backfill = "commit", backfill
			p, err := schedulers.New(h)
			if err != nil {
				t.Fatal(err)
			}
			sc := sim.DefaultConfig()
			h.Simulator(&sc)
			s, err := sim.New(sc, spec)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
				t.Fatal(err)
			}
			var c metrics.Collector
			if err := sim.Run(ctx, s, p, &c); err != nil {
				t.Fatal(err)
			}
			sum := c.Summary(0, 0)
			if math.Abs(-ret-sum.BoundedSlowdown.Mean) > 1e-9 || math.Abs(ts.Info[queuerank.InfoJCT]-sum.JCT.Mean) > 1e-9 ||
				ts.Info[queuerank.InfoMakespan] != sum.Makespan {
				t.Errorf("%s, back-filling %s: bounded slowdown %v, JCT %v, makespan %v; gymctl sim has %v, %v and %v", spec.Name,
					backfill,
					-ret, ts.Info[queuerank.InfoJCT], ts.Info[queuerank.InfoMakespan], sum.BoundedSlowdown.Mean, sum.JCT.Mean,
					sum.Makespan)
			}
		}
	}
}

// Always choosing the shortest visible job plays as SJF if all jobs are visible, and earns 0 relative to it.
func TestTheShortestEarnsNothingRelativeToSJF(t *testing.T) {
	cfg := queuerank.DefaultConfig()
	cfg.Visible = 400
	jobs := random(rand.New(rand.NewPCG(6, 6)), 300)
	for _, spec := range []cluster.Spec{{Pool: 16}, slow()} {
		e, ts := open(t, cfg, spec, jobs...)
		ret, _ := play(t, e, ts, func() int {
			best := 0
			for i, j := range e.Slots() {
				if e.Estimate(j) < e.Estimate(e.Slots()[best]) {
					best = i
				}
			}
			return best
		})
		if ret != 0 || ts.Info[queuerank.InfoScore] != ts.Info[queuerank.InfoBase] {
			t.Errorf("%s: return %v: score %v, SJF's %v", spec.Name, ret, ts.Info[queuerank.InfoScore],
				ts.Info[queuerank.InfoBase])
		}
	}
}

// slow returns 16 GPUs at half the speed of the reference.
func slow() cluster.Spec {
	return cluster.Spec{Name: "slow", Speeds: map[string]float64{"old": .5},
		Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 4, GPUs: 4, GPUType: "old"}}}}}
}

// A job that starts at once on GPUs of half the speed takes twice its work: slowdowns compare with the work, so both
// are 2.
func TestSlowdownsCompareWithTheWork(t *testing.T) {
	for _, metric := range []string{"bsld", "slowdown"} {
		cfg := queuerank.DefaultConfig()
		cfg.Metric = metric
		e, ts := open(t, cfg, slow(), job(0, 100*time.Second, 4))
		play(t, e, ts, func() int { return 0 })
		if got := [3]float64{ts.Info[queuerank.InfoScore], ts.Info[queuerank.InfoBase], ts.Info[queuerank.InfoBSLD]}; got !=
			[3]float64{2, 2, 2} {
			t.Errorf("%s: score, that of the base order and mean bounded slowdown are %v, want 2 each", metric, got)
		}
	}
}

// If more jobs wait than are visible: the oldest, then alternately the shortest and the smallest of the others.
func TestWhatIsSeenOfALongQueue(t *testing.T) {
	cfg := queuerank.DefaultConfig()
	cfg.Visible = 4
	e, ts := open(t, cfg, cluster.Spec{Pool: 8},
		job(0, 1000*time.Second, 8),            // holds the machine
		job(time.Second, 50*time.Second, 8),    // is held while the others arrive
		job(2*time.Second, 90*time.Second, 7),  // the oldest that waits
		job(3*time.Second, 80*time.Second, 1),  // the smallest
		job(4*time.Second, 10*time.Second, 6),  // the shortest
		job(5*time.Second, 20*time.Second, 5),  // the second shortest
		job(6*time.Second, 300*time.Second, 2), // not seen
	)
	for range 2 {
		if err := e.Step(ctx, env.Action{Disc: []int32{0}}, ts); err != nil {
			t.Fatal(err)
		}
	}
	var seen []string
	for _, j := range e.Slots() {
		seen = append(seen, fmt.Sprint(e.View().Pos(j)))
	}
	if got := strings.Join(seen, " "); got != "2 3 4 5" {
		t.Errorf("jobs %s are seen, want 2 3 4 5", got)
	}
	if ts.Obs[0] == 0 || ts.Obs[7] != float32(1e-5) {
		t.Errorf("the first slot is %v", ts.Obs[:8])
	}
}

func random(r *rand.Rand, n int) []traces.Job {
	var jobs []traces.Job
	at := time.Duration(0)
	for range n {
		at += time.Duration(1+r.IntN(120)) * time.Second
		j := job(at, time.Duration(1+r.IntN(900))*time.Second, 1+r.IntN(16))
		j.User, j.MemBytes = fmt.Sprint(r.IntN(20)), int64(r.IntN(5))<<30
		jobs = append(jobs, j)
	}
	return jobs
}

func TestContract(t *testing.T) {
	jobs := random(rand.New(rand.NewPCG(7, 7)), 600)
	for name, change := range map[string]func(c *queuerank.Config){
		"default":         func(*queuerank.Config) {},
		"dense, few seen": func(c *queuerank.Config) { c.Reward, c.Visible, c.Load = "dense", 5, 2 },
		"back-filling, filtered": func(c *queuerank.Config) {
			c.Backfill, c.Filter, c.Estimates = "easy", true, sim.MustEstimates("noisy:0.5")
		},
		"utilisation, by smallest": func(c *queuerank.Config) { c.Metric, c.Base = "utilisation", "smallest" },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := queuerank.DefaultConfig()
			cfg.Window = 30
			change(&cfg)
			w, err := traces.NewWindows(jobs, cfg.Window, 0)
			if err != nil {
				t.Fatal(err)
			}
			options := []envtest.Option{envtest.Cap(200)}
			if !checked {
				options = append(options, envtest.NoAllocs())
			}
			envtest.Run(t, func() env.Env {
				e, err := queuerank.New(cfg, cluster.Spec{Pool: 16}, w, w.Jobs(traces.Training), traces.Training)
				if err != nil {
					t.Fatal(err)
				}
				return e
			}, options...)
		})
	}
}

// A play that shows nothing is the episode: always the first slot, by Step and by Head.
func TestHeadIsTheFirstSlot(t *testing.T) {
	cfg := queuerank.DefaultConfig()
	cfg.Reward, cfg.Backfill, cfg.Visible = "minus", "easy", 5
	e, ts := open(t, cfg, cluster.Spec{Pool: 16}, random(rand.New(rand.NewPCG(9, 9)), 60)...)
	play(t, e, ts, func() int { return 0 })
	want := ts.Info[queuerank.InfoScore]
	got, err := e.Head(ctx, env.Episode{Seed: 1})
	if err != nil || got != want || got <= 1 {
		t.Errorf("Head scores %v (%v), the episode %v", got, err, want)
	}
	if err := e.Step(ctx, env.Action{Disc: []int32{0}}, ts); !errors.Is(err, env.ErrResetNeeded) {
		t.Errorf("a step after a play: %v", err)
	}
	if err := e.Reset(ctx, env.Episode{Seed: 1}, ts); err != nil {
		t.Fatal(err)
	}
	if play(t, e, ts, func() int { return 0 }); ts.Info[queuerank.InfoScore] != want {
		t.Error("an episode after a play is another")
	}
}

func TestFaultsAreAllTold(t *testing.T) {
	cfg := queuerank.DefaultConfig()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	cfg = queuerank.Config{Common: queuerank.Common{
		Gamma: 2, Load: -1, Placement: "anywhere", Backfill: "magic", Estimates: sim.MustEstimates("none"),
		Metric: "fame", Reward: "praise", Base: "luck",
	}}
	var keys []string
	for _, f := range fault.All(cfg.Validate()) {
		keys = append(keys, f.Key)
	}
	if got, want := strings.Join(keys, " "),
		"gamma window load max_gpus visible placement backfill estimates metric reward base forecast"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	cfg = queuerank.DefaultConfig()
	cfg.Backfill = "easy"
	spec := cluster.Spec{Name: "nodes",
		Racks: []cluster.RackSpec{{Count: 1, Nodes: []cluster.NodeSpec{{Count: 4, GPUs: 4}}}}}
	if _, err := queuerank.New(cfg, spec, windows(nil), nil, traces.Training); err == nil ||
		!strings.Contains(err.Error(), "is for counters") {
		t.Errorf("back-filling on nodes: %v", err)
	}
}
