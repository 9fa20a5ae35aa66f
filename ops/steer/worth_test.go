package steer_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"clustergym/internal/statistic"
	"clustergym/lab/config"
	training "clustergym/lab/run"
	"clustergym/live"
	"clustergym/live/livetest"
	"clustergym/ops/steer"
	"clustergym/ops/steer/mirror"
	"clustergym/traces"
	"clustergym/traces/synth"
)

// A window is a queue that a cluster in memory has, and what has run before.
type window struct{ before, jobs []traces.Job }

// windowsOf cuts a workload of the quick start's statistics, drawn with another seed than its own, into windows of 320
// jobs for 32 GPUs with an offered load of 1.1, as the quick start has it. Every job has a time limit, 1.2 to 4 times
// its run time by its user's habit, up to the next hour.
func windowsOf(b *testing.B, seed uint64, n int) (all []window) {
	b.Helper()
	const before, size = 4000, 320
	cfg := synth.DefaultConfig()
	cfg.Profile, cfg.Jobs, cfg.MaxGPUs = "philly-users", n*(before+size), 8
	jobs, err := synth.Generate(cfg, seed)
	if err != nil {
		b.Fatal(err)
	}
	r, habit := rand.New(rand.NewPCG(seed, 1)), map[string]float64{}
	for i := range jobs {
		j := &jobs[i]
		if habit[j.User] == 0 {
			habit[j.User] = 1.2 + 2.8*r.Float64()
		}
		j.ID, j.GPUMilli = strconv.Itoa(10_000_000+i), 1000
		j.Estimate = time.Duration(habit[j.User]*float64(j.Work)).Truncate(time.Hour) + time.Hour
	}
	for ; len(jobs) >= before+size; jobs = jobs[before+size:] {
		w := window{jobs[:before], append([]traces.Job(nil), jobs[before:before+size]...)}
		first, last := w.jobs[0].Submit, w.jobs[size-1].Submit
		var work float64
		for i := range w.jobs {
			work += w.jobs[i].Work.Seconds() * float64(w.jobs[i].GPUs)
		}
		stretch := work / 32 / 1.1 / (last - first).Seconds()
		for i := range w.jobs {
			w.jobs[i].Submit = time.Duration(float64(w.jobs[i].Submit-first) * stretch)
		}
		all = append(all, w)
	}
	return all
}

// BenchmarkSteered steers a cluster in memory, which starts jobs first come, first served with back-filling by their
// limits, with the quick start's agent and with a rule that has the same forecasts, in rank and gate. It reports the
// mean wait in hours, and its difference in percent to the cluster alone and to the rule in the same mode, with 95 %
// intervals over windows. hold is what the agent imitates at first. The windows are of other seeds than the agent's,
// and nothing was chosen on them. Training takes a minute.
func BenchmarkSteered(b *testing.B) {
	cfg, err := config.Preset("quickstart-v1")
	if err != nil {
		b.Fatal(err)
	}
	cfg.Name = "quickstart"
	agent := filepath.Join(b.TempDir(), "run")
	if _, err := training.Train(b.Context(), cfg, training.TrainOptions{RunDir: agent, Workers: 2, NoEval: true}); err !=
		nil {
		b.Fatal(err)
	}
	windows := windowsOf(b, 4143, 16)
	alone := make([]float64, len(windows))
	for i := range windows {
		alone[i] = windows[i].steered(b, "", "")
	}
	rule := map[string][]float64{} // by mode: what sjf+skip gives
	for _, x := range []struct{ mode, policy string }{
		{"", "alone"}, {steer.Rank, "sjf+skip"}, {steer.Rank, agent}, {steer.Gate, "sjf+skip"}, {steer.Gate, agent},
		{steer.Gate, "hold"},
	} {
		name := x.policy
		if name == agent {
			name = "agent"
		}
		name = strings.TrimPrefix(x.mode+"/"+name, "/")
		b.Run(name, func(b *testing.B) {
			waits := alone
			if x.mode != "" {
				waits = make([]float64, len(windows))
				for i := range windows {
					waits[i] = windows[i].steered(b, x.mode, x.policy)
				}
			}
			if x.policy == "sjf+skip" {
				rule[x.mode] = waits
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(sum(waits, nil)/float64(len(waits)), "h")
			for what, than := range map[string][]float64{"alone": alone, "sjf": rule[x.mode]} {
				if than == nil {
					continue
				}
				ci := statistic.Bootstrap(1, name+"/"+what, len(windows),
					func(drawn []statistic.Draw) float64 { return percent(waits, than, drawn) })
				b.ReportMetric(percent(waits, than, nil), "%"+what)
				b.ReportMetric(ci[0], "%"+what+"-low")
				b.ReportMetric(ci[1], "%"+what+"-high")
			}
		})
	}
}

// sum adds the waits of the windows that were drawn; nil = of all.
func sum(waits []float64, drawn []statistic.Draw) (s float64) {
	if drawn == nil {
		for _, w := range waits {
			s += w
		}
	}
	for _, d := range drawn {
		s += waits[d.Unit]
	}
	return s
}

func percent(waits, than []float64, drawn []statistic.Draw) float64 {
	return 100 * (sum(waits, drawn)/sum(than, drawn) - 1)
}

// steered plays a window and returns the mean wait in hours; mode "" is the cluster alone.
func (w *window) steered(b *testing.B, mode, policy string) float64 {
	b.Helper()
	nodes := livetest.Machines(8, 4) // topdrl-2x4x4
	for i := range nodes {
		nodes[i].GPUType = "P100"
	}
	c := livetest.New(nodes...)
	for i := range w.jobs {
		c.Submit(w.jobs[i])
	}
	if mode != "" {
		ctx, end := context.WithCancel(b.Context())
		defer end()
		cfg := moved(c, mode, policy, 0)
		cfg.Every, cfg.MaxAge, cfg.Grace, cfg.Timeout = time.Minute, time.Hour, time.Hour, time.Hour
		cfg.PerCycle, cfg.PerMinute = 0, 0
		own, err := config.Preset("quickstart-v1")
		if err != nil {
			b.Fatal(err)
		}
		cfg.Open = func(l mirror.Layout, _ *live.Snapshot) (*steer.Policy, error) {
			return steer.Open(&steer.Choice{Policy: policy, Config: own, History: w.before}, l)
		}
		cfg.Mirror.Epoch = livetest.Epoch.Add(-w.before[len(w.before)-1].Submit - 24*time.Hour)
		cfg.Wait = func(ctx context.Context, d time.Duration) error {
			c.Advance(d)
			if all := c.History(); !slices.ContainsFunc(all, func(j live.Job) bool { return j.Start.IsZero() }) &&
				len(all) == len(w.jobs) {
				end()
			}
			return ctx.Err()
		}
		if err := steer.Run(ctx, cfg); err != nil && !errors.Is(err, context.Canceled) {
			b.Fatal(err)
		}
	}
	c.Advance(10_000 * time.Hour)
	var sum time.Duration
	all := c.History()
	for i := range all {
		if all[i].State != live.Ended {
			b.Fatalf("job %s is %v", all[i].ID, all[i].State)
		}
		sum += all[i].Start.Sub(all[i].Submit)
	}
	return sum.Hours() / float64(len(all))
}
