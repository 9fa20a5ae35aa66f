package arena

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clustergym/configs"
	"clustergym/lab/config"
	"clustergym/lab/envs"
	"clustergym/traces"
)

// ownTrace writes a CSV file of n jobs, most of one GPU and some of up to widest, and returns its path.
func ownTrace(t *testing.T, n, widest int) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("submit_time,duration,num_gpu\n")
	for i := range n {
		gpus := 1 << (i * 7 % 5 % 4)
		if i%40 == 0 {
			gpus = widest
		}
		fmt.Fprintf(&b, "%d,%d,%d\n", 30*i, 60+977*i%5000, gpus)
	}
	file := filepath.Join(t.TempDir(), "own.csv")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Sizes that are not given follow from the workload in every environment over jobs, the same in every call.
func TestSizesFollowTheWorkloadInEveryEnvironment(t *testing.T) {
	file := ownTrace(t, 2000, 24)
	for _, id := range envs.IDs() {
		d := envs.Find(id)
		if !d.Simulated() {
			continue
		}
		fit := func(given config.Given, cluster string) (config.Config, *Scenario, []string) {
			cfg := config.For(id)
			cfg.Trace.File, cfg.Trace.Mix, cfg.Cluster = file, "topdrl-cnn", cluster
			cfg.Trace.AcceptLeftOut = d.Ongoing
			if err := cfg.Set("env.estimates=exact"); err != nil {
				t.Fatal(err)
			}
			scenario, said, err := Fit(t.Context(), &cfg, given)
			if err != nil {
				t.Fatalf("%s: %v", id, err)
			}
			return cfg, scenario, said
		}
		cfg, scenario, said := fit(config.Given{}, "4x4")
		cut := d.Cut(cfg.Env.Settings)
		if cut.MaxGPUs != 8 || cut.Window > 256 || cut.Window < 16 || scenario.Count(traces.Validation) < 4 ||
			scenario.Count(traces.Test) < 8 {
			t.Errorf("%s: %+v with %d validation and %d test windows; want gangs of 8, which fit 16 GPUs, and 4 and 8 windows",
				id, cut, scenario.Count(traces.Validation), scenario.Count(traces.Test))
		}
		if l := scenario.Taken.Left; l.Of != 2000 || l.Large != 50 || l.LargeShare < 0.1 || l.LargeShare > 0.5 {
			t.Errorf("%s: left out %+v, want the 50 of 24 GPUs with their share", id, l)
		}
		if len(said) < 2 || !strings.HasPrefix(said[0], "env.max_gpus 8: the largest gang of ") ||
			!strings.Contains(said[1], "1,950 jobs give ") {
			t.Errorf("%s: said %q", id, said)
		}
		again, _, _ := fit(config.Given{}, "4x4")
		if a, b := text(t, cfg), text(t, again); a != b {
			t.Errorf("%s: a second call chose\n%s, the first\n%s", id, b, a)
		}
		cfg, _, said = fit(config.Given{"env.max_gpus": true, "env.window": true, "env.warm": true, "eval.validation": true},
			"8x4")
		if plain := d.Cut(d.Settings()); d.Cut(cfg.Env.Settings).MaxGPUs != plain.MaxGPUs || len(said) > 0 {
			t.Errorf("%s: %+v, said %q; want the given sizes", id, d.Cut(cfg.Env.Settings), said)
		}
		if cfg, scenario, _ = fit(config.Given{}, "8x4"); id != "GPUPick-v1" && d.Cut(cfg.Env.Settings).MaxGPUs != 24 ||
			scenario.Taken.Left.Never > 0 {
			t.Errorf("%s: %+v on 32 GPUs, want gangs of 24", id, d.Cut(cfg.Env.Settings))
		}
	}
}

// Where jobs have no estimates, those of the trace become history's; where they have no models, DelayOffer draws them.
// What is given stays.
func TestEstimatesAndModelsFollowTheWorkload(t *testing.T) {
	file := ownTrace(t, 2000, 24)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSpace(string(data)), "\n")
	for i := range rows {
		rows[i] += map[bool]string{true: ",estimate", false: ",5000"}[i == 0]
	}
	known := filepath.Join(t.TempDir(), "known.csv")
	if err := os.WriteFile(known, []byte(strings.Join(rows, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	partly := filepath.Join(t.TempDir(), "partly.csv")
	rows[1], _ = strings.CutSuffix(rows[1], "5000")
	if err := os.WriteFile(partly, []byte(strings.Join(rows, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		id, file, set string
		given         config.Given
		want, said    string // estimates and mix; the beginning of the first sentence
	}{
		{"QueueRank-v1", file, "", config.Given{}, "history ", "env.estimates history: all jobs of "},
		{"QueueRank-v1", partly, "", config.Given{}, "history ", "env.estimates history: 1 of 2,000 jobs of "},
		{"QueueRank-v1", known, "", config.Given{}, "trace ", "env.max_gpus 24"},
		{"QueueRank-v1", file, "env.estimates=exact", config.Given{"env.estimates": true}, "exact ", "env.max_gpus 24"},
		{"DelayOffer-v1", file, "", config.Given{}, "exact dally", "trace.mix dally: "},
		{"DelayOffer-v1", file, "trace.mix=topdrl-cnn", config.Given{"trace.mix": true}, "exact topdrl-cnn",
			"env.max_gpus 24"},
		{"DelayOffer-v1", file, "env.comm=none", config.Given{}, "exact ", "env.max_gpus 24"},
	} {
		cfg := config.For(c.id)
		cfg.Trace.File, cfg.Cluster = c.file, "8x4"
		if c.set != "" {
			if err := cfg.Set(c.set); err != nil {
				t.Fatal(err)
			}
		}
		scenario, said, err := Fit(t.Context(), &cfg, c.given)
		if err != nil {
			t.Errorf("%s %s: %v", c.id, c.set, err)
			continue
		}
		got, _ := envs.Setting(cfg.Env.Settings, "estimates")
		if s := fmt.Sprintf("%v %s", got, cfg.Trace.Mix); s != c.want || len(said) == 0 ||
			!strings.HasPrefix(said[0], c.said) || scenario.Trace.Mix != cfg.Trace.Mix {
			t.Errorf("%s %s: %s, said %q; want %s, %s", c.id, c.set, s, said, c.want, c.said)
		}
	}
	cfg := config.For("QueueRank-v1")
	cfg.Trace.File, cfg.Cluster = file, "8x4"
	if _, _, err := Fit(t.Context(), &cfg, config.Given{"env.estimates": true}); err == nil ||
		!strings.Contains(err.Error(), "have no estimate in their trace") {
		t.Errorf("given estimates of a trace that has none: %v", err)
	}
}

// Jobs that can never fit are left out where sizes follow, and a job in a window is always one that fits.
func TestFitLeavesOutWhatNeverFits(t *testing.T) {
	cfg := config.Default()
	cfg.Trace.File, cfg.Cluster = ownTrace(t, 300, 24), "1x2"
	if _, _, err := Fit(t.Context(), &cfg, config.Given{}); err == nil ||
		!strings.Contains(err.Error(), "81 % of its GPU time cannot run on cluster 1x2") {
		t.Errorf("too much is left out, and said is %v", err)
	}
	cfg.Trace.AcceptLeftOut = true
	scenario, _, err := Fit(t.Context(), &cfg, config.Given{})
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range scenario.Taken.Windows.Jobs(traces.Training) {
		if j.GPUs > 2 {
			t.Fatalf("job %s of %d GPUs is in a window", j.ID, j.GPUs)
		}
	}
}

// A window of one job after the other has no choice; one in which jobs come together has many.
func TestChoicesCountDecisionsBetweenJobs(t *testing.T) {
	for _, c := range []struct {
		name        string
		gap         int
		least, most int
		warned      bool
	}{
		{"one after the other", 10_000, 0, 0, true},
		{"all at once", 0, 20, 1000, false},
	} {
		var b strings.Builder
		b.WriteString("submit_time,duration,num_gpu\n")
		for i := range 700 {
			fmt.Fprintf(&b, "%d,%d,%d\n", c.gap*i, 100+i%50, 1+i%3)
		}
		cfg := config.Default()
		cfg.Cluster, cfg.Trace.File = "1x4", filepath.Join(t.TempDir(), "jobs.csv")
		if err := os.WriteFile(cfg.Trace.File, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, set := range []string{"env.load=0", "env.window=32", "env.warm=0"} {
			if err := cfg.Set(set); err != nil {
				t.Fatal(err)
			}
		}
		scenario, err := NewScenario(&cfg)
		if err != nil {
			t.Fatal(err)
		}
		counts, err := scenario.Choices(t.Context(), 1)
		if err != nil || len(counts) != sampledWindows || slices.Min(counts) < c.least || slices.Max(counts) > c.most {
			t.Errorf("%s: %v choices, %v; want %d to %d", c.name, counts, err, c.least, c.most)
		}
		again, err := scenario.Choices(t.Context(), 1)
		if err != nil || !slices.Equal(counts, again) {
			t.Errorf("%s: then %v, %v", c.name, again, err)
		}
		facts, err := scenario.DescribeChoices(t.Context(), &cfg)
		if err != nil || facts[0].Key != "choices" || !strings.HasPrefix(facts[0].Value, "a window has ") ||
			(len(facts) == 2) != c.warned {
			t.Errorf("%s: %q, %v", c.name, facts, err)
		}
		if c.warned && !strings.Contains(facts[1].Value, "--set env.load=…, now 0") {
			t.Errorf("%s: %q names no load", c.name, facts[1].Value)
		}
	}
}

// text returns a configuration as config.yaml has it.
func text(t *testing.T, cfg config.Config) string {
	t.Helper()
	b, err := configs.Encode(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
