package start_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
)

// ownTrace writes a trace of n jobs, as a user's cluster might have had them: mostly small ones, some of 64 GPUs.
func ownTrace(t *testing.T, n int) string {
	t.Helper()
	return ownTraceAs(t, fmt.Sprintf("jobs%d.csv", n), n, "job_id,user,submit_time,duration,num_gpu\n",
		func(i, user, at, run, gpus int) string {
			return fmt.Sprintf("j%d,u%d,%d,%d,%d\n", i, user, at, run, gpus)
		})
}

// exportedTrace is ownTrace as a spreadsheet exports it: a byte-order mark, semicolons, dates, lengths of time, other
// names and line ends.
func exportedTrace(t *testing.T, n int) string {
	t.Helper()
	from := time.Date(2024, 2, 28, 22, 0, 0, 0, time.UTC)
	return ownTraceAs(t, fmt.Sprintf("export%d.csv", n), n, "\ufeffJob ID;User;Submit Time;Duration;Num GPU\r\n",
		func(i, user, at, run, gpus int) string {
			length := fmt.Sprintf("%dh%dm%ds", run/3600, run/60%60, run%60)
			return fmt.Sprintf("j%d;\"Doe, J. %d\";%s;%s;%d\r\n", i, user,
				from.Add(time.Duration(at)*time.Second).Format("2006-01-02 15:04:05"), length, gpus)
		})
}

// ownTraceAs writes the jobs of ownTrace as rows below header.
func ownTraceAs(t *testing.T, name string, n int, header string, row func(i, user, at, run, gpus int) string) string {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(n), 7))
	sizes := []int{1, 1, 1, 1, 1, 1, 2, 4, 8, 8, 16, 32}
	var b strings.Builder
	b.WriteString(header)
	at := 0.0
	for i := range n {
		at += 300 * r.ExpFloat64()
		gpus := sizes[r.IntN(len(sizes))]
		if i%100 == 0 {
			gpus = 64
		}
		run := min(86400, max(10, math.Exp(7+1.5*r.NormFloat64())))
		b.WriteString(row(i, r.IntN(20), int(at), int(run), gpus))
	}
	clitest.Write(t, name, b.String())
	return name
}

// The path of the README, with traces and clusters of a user's own: no flag but --trace and --cluster is needed.
func TestAnOwnTraceOnAnOwnClusterTrainsAtOnce(t *testing.T) {
	clitest.OneGoroutine(t)
	t.Chdir(t.TempDir())
	clitest.Write(t, "uniform.yaml",
		"name: uniform\nracks:\n  - count: 2\n    nodes:\n      - {count: 8, gpus: 8, gpu_type: A100}\n")
	clitest.Write(t, "mixed.yaml",
		"name: mixed\nracks:\n  - nodes:\n      - {count: 2, gpus: 8, gpu_type: A100}\n      - {count: 3, gpus: 4, gpu_type: V100}\n")
	largest := map[string]int{"uniform": 64, "mixed": 16}
	for _, n := range []int{600, 4000, 100_000} {
		trace := ownTrace(t, n)
		if n == 4000 {
			trace = exportedTrace(t, n)
		}
		if said := clitest.Must(t, "trace", "stats", trace); !strings.Contains(said, fmt.Sprintf("(csv): %d jobs", n)) {
			t.Errorf("trace stats %s: %s", trace, said)
		}
		for _, cluster := range []string{"uniform", "mixed"} {
			file, run := cluster+".yaml", fmt.Sprintf("run-%s-%d", cluster, n)
			if n == 4000 {
				// The two ways to write the same jobs are the same workload.
				accepting := []string{"--cluster", file, "--policy", "sjf+skip", "--accept-left-out"}
				if a, b := clitest.Must(t, append([]string{"sim", ownTrace(t, n)}, accepting...)...),
					clitest.Must(t, append([]string{"sim", trace}, accepting...)...); rowsOf(a) != rowsOf(b) {
					t.Errorf("the export is simulated as\n%s, want\n%s", b, a)
				}
				code, out, said := clitest.Run(t, "sim", "--trace", trace, "--cluster", file, "--policy", "sjf+skip", "--json",
					"--accept-left-out")
				if refused := strings.Contains(said, " % of the GPU time, refused"); code != cli.ExitDone ||
					refused != (cluster == "mixed") ||
					refused != strings.Contains(out, `"refused_share":0.`) {
					t.Errorf("sim on %s: exit code %d, said %q", cluster, code, said)
				}
			}
			code, _, said := clitest.Run(t, "train", "--trace", trace, "--cluster", file, "--run-dir", run, "--no-eval",
				"--workers", "2",
				"--set", "train.imitate=", "--set", "train.steps=256", "--set", "train.envs=4", "--set", "train.group=0", "--set",
				"ppo.baseline=", "--set", "ppo.steps=32", "--set", "train.eval_every=256", "--set", "train.checkpoint_every=256",
				"--set", "eval.validation=1", "--accept-left-out")
			if code != cli.ExitDone {
				t.Fatalf("train %s on %s: exit code %d: %s", trace, cluster, code, said)
			}
			for _, want := range []string{
				fmt.Sprintf("chosen    env.max_gpus %d: the largest gang of %s that fits", largest[cluster], trace),
				"chosen    env.window ", " to train on; --set env.window=… chooses another\n", "choices   a window has ",
			} {
				if !strings.Contains(said, want) {
					t.Errorf("train %s on %s does not say %q: %s", trace, cluster, want, said)
				}
			}
			if left := regexp.MustCompile(
				`left out: [0-9,]+ of [0-9,]+ jobs \([0-9.]+ %\), [0-9.]+ % of the GPU time, ask for more than 16 GPUs \(env\.max_gpus\)`); left.MatchString(said) != (cluster == "mixed") {
				t.Errorf("train %s on %s says of what is left out: %s", trace, cluster, said)
			}
			// The run's config.yaml has the chosen values, so --resume and eval use them too.
			config := clitest.Read(t, run+"/config.yaml")
			chosen := regexp.MustCompile(`env\.window (\d+) and env\.warm (\d+)`).FindStringSubmatch(said)
			for _, line := range []string{fmt.Sprintf("  max_gpus: %d\n", largest[cluster]), "  window: " + chosen[1] + "\n",
				"  warm: " + chosen[2] + "\n"} {
				if !strings.Contains(config, line) {
					t.Errorf("%s/config.yaml lacks %q", run, line)
				}
			}
			if n == 4000 {
				clitest.Must(t, "train", "--resume", run, "--no-eval", "--set", "train.steps=384", "--workers", "1")
			}
			var report struct {
				Windows []struct{ Jobs int }
				LeftOut struct {
					Of    int
					Large int     `json:"above_max_gpus"`
					Share float64 `json:"above_max_gpus_share"`
				} `json:"left_out"`
			}
			out := clitest.Must(t, "eval", "--checkpoint", run, "--policies", "sjf@slots", "--windows", "2", "--no-whole",
				"--json")
			if err := json.Unmarshal([]byte(out), &report); err != nil {
				t.Fatal(err)
			}
			if len(report.Windows) < 1 || strconv.Itoa(report.Windows[0].Jobs) != chosen[1] {
				t.Errorf("eval of %s played %v, want windows of %s", run, report.Windows, chosen[1])
			}
			if l := report.LeftOut; cluster == "mixed" && (l.Of != n || l.Large < n/100 || l.Share < 0.05 || l.Share > 0.95) {
				t.Errorf("eval of %s left out %+v", run, l)
			}
		}
	}
}

// rowsOf returns the row of sjf+skip in a table of sim.
func rowsOf(table string) string {
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "sjf+skip") {
			return line
		}
	}
	return "no row of sjf+skip in\n" + table
}

// What the user says himself stays, wherever he says it.
func TestGivenSizesAreNotChosen(t *testing.T) {
	t.Chdir(t.TempDir())
	trace := ownTrace(t, 2000)
	clitest.Write(t, "mine.yaml", "name: mine\nenv: {id: JobSelect-v1, window: 24}\n")
	clitest.Write(t, "args.yaml", "name: mine\nenv: {id: JobSelect-v1, args: [window=24, max_gpus=4]}\n")
	for _, c := range []struct {
		args           string
		gpus, win, war string
	}{
		{"quickstart-v1 --trace " + trace + " --cluster 4x4", "16", "32", "32"},
		{"quickstart-v1 --trace " + trace + " --cluster 4x4 --set env.max_gpus=4", "4", "24", "24"},
		{"quickstart-v1 --trace " + trace + " --cluster 4x4 --set env.window=32 --set env.warm=8", "16", "32", "8"},
		{"mine.yaml --trace " + trace + " --cluster 4x4", "16", "24", "80"},
		{"args.yaml --trace " + trace + " --cluster 4x4", "4", "24", "32"},
		{"quickstart-v1 --set trace.synth.jobs=9000", "8", "256", "256"}, // no trace and no cluster of one's own
	} {
		out := clitest.Must(t, append([]string{"config", "show"}, strings.Fields(c.args)...)...)
		env := out[strings.Index(out, "\nenv:"):]
		for key, want := range map[string]string{"max_gpus": c.gpus, "window": c.win, "warm": c.war} {
			if got := regexp.MustCompile(`\n  ` + key + `: (\d+)`).FindStringSubmatch(env); got == nil || got[1] != want {
				t.Errorf("config show %s: %s %v, want %s", c.args, key, got, want)
			}
		}
	}
	clitest.Wrong(t, []string{"config", "show", "--trace", trace}, "want one FILE or --cluster C")
	clitest.Wrong(t, []string{"config", "show", "quickstart", "--trace="}, "--trace: got")
	// A sweep's own set counts as said.
	clitest.Write(t, "sweep.yaml",
		"base: quickstart-v1\nset: [trace.file="+trace+
			", cluster=4x4, train.imitate=, train.imitate_steps=0, train.imitate_epochs=0, train.steps=128, train.envs=4, train.group=4, ppo.steps=32, train.eval_every=128, eval.validation=1]\n"+
			"space: {env.load: [2]}\ntrials: 1\n")
	clitest.Must(t, "sweep", "-c", "sweep.yaml", "--dir", "sweep", "--workers", "1")
	if base := clitest.Read(t, "sweep/base.yaml"); !strings.Contains(base, "  window: 32\n") ||
		!strings.Contains(base, "  max_gpus: 16\n") {
		t.Errorf("the sweep's base: %s", base)
	}
}

func TestTooFewOwnJobsNameWhatWouldDo(t *testing.T) {
	t.Chdir(t.TempDir())
	trace := ownTrace(t, 60)
	clitest.Wrong(t, []string{"train", "--trace", trace, "--cluster", "16x8"},
		"jobs60.csv: too few jobs: 60 are left to train on, to validate and to judge on; want at least 100, or --set env.window=5 --set env.warm=0")
	clitest.Must(t, "train", "--trace", trace, "--cluster", "16x8", "--set", "env.window=5", "--set", "env.warm=0",
		"--set", "train.imitate=", "--set", "train.steps=128", "--set", "train.envs=4", "--set", "train.group=4",
		"--set", "ppo.steps=32", "--no-eval", "--run-dir", "run", "--workers", "1")
	long := ownTrace(t, 700)
	clitest.Wrong(t,
		[]string{"train", "--trace", long, "--cluster", "16x8", "--set", "env.window=256", "--set", "env.warm=256"},
		"jobs700.csv: too few jobs: the training part (70 %) has 490 of the 700",
		"needs 5114 jobs in all; want window 16 and warm 6, or less: --set env.window=16 --set env.warm=6")
}
