package operate_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
	"clustergym/cmd/gymctl/internal/operate"
	"clustergym/internal/lock"
	"clustergym/live/demo"
)

// history is a made-up accounting of 4x8 in a fresh folder.
func history(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	home := t.TempDir()
	for _, name := range []string{"HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "RUNTIME_DIRECTORY", "LocalAppData"} {
		t.Setenv(name, home)
	}
	clitest.Must(t, strings.Fields("trace synth --profile philly-users --jobs 1000 --seed 3 --set rate=0.3 --set work=0.6 "+
		"--set max_gpus=4 -o jobs.csv")...)
	clitest.Must(t, strings.Fields("trace account jobs.csv --cluster 4x8 -o slurm-jobs.txt")...)
	guards := operate.Guarded
	operate.Guarded = func(*operate.SteerFlags, *cobra.Command) (func() error, error) {
		return func() error { return nil }, nil
	}
	t.Cleanup(func() { operate.Guarded = guards })
}

// said runs gymctl and returns what it says to people.
func said(t *testing.T, args string) string {
	t.Helper()
	code, _, err := clitest.Run(t, strings.Fields(args)...)
	if code != cli.ExitDone {
		t.Fatalf("gymctl %s: exit code %d: %s", args, code, err)
	}
	return err
}

// Every mode plays a demo to its end, which is no failure; a shadow's log makes a report with the policy that it had.
func TestADemoIsSteeredToItsEnd(t *testing.T) {
	clitest.OneGoroutine(t)
	history(t)
	for _, mode := range []string{"shadow", "rank --clear", "gate"} {
		name, _, _ := strings.Cut(mode, " ")
		out := said(t, "steer "+mode+" --cluster demo --from slurm-jobs.txt --policy sjf+skip --speed 400000 --every 1m --log "+
			name)
		if !strings.Contains(out, "demo of slurm-jobs.txt: 32 GPUs on 4 nodes") || !strings.Contains(out, "4x8 is guessed") ||
			!strings.Contains(out, "the history is over") {
			t.Errorf("%s: %s", mode, out)
		}
		log := clitest.Read(t, name)
		if n := strings.Count(log, `"action":"hold `); (n > 0) != (name == "gate") {
			t.Errorf("%s has held %d jobs", mode, n)
		}
		if n := strings.Count(log, `"action":"rank `); (n > 0) != (name == "rank") {
			t.Errorf("%s has ranked %d jobs", mode, n)
		}
		// at this speed jobs start while the policy thinks
		if strings.Count(log, `"error"`) != strings.Count(log, "the job does not wait any more") ||
			strings.Contains(log, "nothing is written") {
			t.Errorf("%s: something was refused", mode)
		}
	}
	report := clitest.Must(t, "steer", "report", "shadow")
	if !strings.Contains(report, "cluster   demo: 4 nodes with 32 GPUs") || !strings.Contains(report, "forecasts (history)") {
		t.Error(report)
	}
}

// The history of a policy on a demo is what had ended when it began, and a report knows that, too.
func TestADemosPolicyKnowsNothingOfTheFuture(t *testing.T) {
	clitest.OneGoroutine(t)
	history(t)
	said(t, "steer shadow --cluster demo --from slurm-jobs.txt --policy sjf+skip --cycles 1 --log log")
	var line struct {
		Observed string
		Begun    struct {
			History string
			Until   float64 `json:"history_until_s"`
		}
	}
	if err := json.Unmarshal([]byte(clitest.Read(t, "log")), &line); err != nil {
		t.Fatal(err)
	}
	if line.Begun.History != "slurm-jobs.txt" || line.Begun.Until <= 0 || !strings.HasPrefix(line.Observed, "2026-01-") {
		t.Errorf("%+v", line)
	}
}

// The first look is that of the beginning, whenever it comes: a forecast has the same figures each time.
func TestTwinLooksAtADemo(t *testing.T) {
	clitest.OneGoroutine(t)
	history(t)
	args := strings.Fields("twin --cluster demo --from slurm-jobs.txt --draws 20 --policy sjf+skip --top 3")
	first := clitest.Must(t, args...)
	if !strings.Contains(first, "fifo+strict+easy") || !strings.Contains(first, "arrivals") ||
		!strings.Contains(first, "What if: policy sjf+skip") {
		t.Error(first)
	}
	if second := clitest.Must(t, args...); second != first {
		t.Errorf("%s\n%s", first, second)
	}
	if out := clitest.Must(t, append(args, "--backfill", "any")...); !strings.Contains(out, "fifo+skip, estimates") {
		t.Error(out)
	}
	out := said(t, "twin --cluster demo --from slurm-jobs.txt --draws 2 --speed 1000000 --every 12h --top 1")
	if !strings.Contains(out, "the history is over") {
		t.Error(out)
	}
	if out := said(t, "steer release-all --cluster demo --from slurm-jobs.txt"); !strings.Contains(out, "nothing is held") {
		t.Error(out)
	}
}

// A second program sees the demo of the first, and adopts its settings.
func TestProgramsShareADemo(t *testing.T) {
	if !lock.Supported {
		t.Skip("this system has no locks")
	}
	clitest.OneGoroutine(t)
	history(t)
	home, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	fast := demo.Unset()
	fast.Speed = 120
	j, err := demo.OpenJournal(t.Context(), filepath.Join(home, "clustergym", "demo"), "slurm-jobs.txt", fast)
	if err != nil {
		t.Fatal(err)
	}
	out := said(t, "twin --cluster demo --from slurm-jobs.txt --draws 2 --top 1")
	if !strings.Contains(out, "120 times as fast") || strings.Contains(out, "guessed") {
		t.Error(out)
	}
	code, _, out := clitest.Run(t, strings.Fields("twin --cluster demo --from slurm-jobs.txt --speed 60")...)
	if code != cli.ExitMistake || !strings.Contains(out, "--speed: got 60, and the demo of slurm-jobs.txt runs with 120") {
		t.Errorf("%d, %s", code, out)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if out := said(t, "twin --cluster demo --from slurm-jobs.txt --draws 2 --speed 30"); !strings.Contains(out, " 30 times") {
		t.Error(out)
	}
}

func TestMistakesAboutADemo(t *testing.T) {
	history(t)
	clitest.Write(t, "still.csv", "job_id,submit_time,duration,num_gpu\na,0,0,1\nb,5,0,1\n")
	clitest.Write(t, "cpu.csv", "job_id,submit_time,duration,num_gpu\na,0,10,0\nb,5,10,0\n")
	clitest.Write(t, "log", "{}\n")
	const on = "steer shadow --policy sjf+skip --cluster demo"
	for _, x := range []struct{ args, want string }{
		{on, "--cluster demo: want --from FILE"},
		{on + " --from none.txt", "none.txt: there is no such file"},
		{on + " --from .", "folder"},
		{on + " --from still.csv", "no job has a run time"},
		{on + " --from cpu.csv", "no job has GPUs"},
		{on + " --from slurm-jobs.txt --speed 0", "--speed: got 0, want a number above 0"},
		{on + " --from slurm-jobs.txt --speed -1", "--speed: got -1, want a number above 0"},
		{on + " --from slurm-jobs.txt --speed NaN", "--speed: got NaN, want a number above 0"},
		{on + " --from slurm-jobs.txt --begin 1", "--begin: got 1, want a share"},
		{on + " --from slurm-jobs.txt --begin 0.9999", "--begin"},
		{on + " --from slurm-jobs.txt --nodes 1x1 --log log", "--log: log has looks already"},
		{on + " --from slurm-jobs.txt --nodes 8y", "--nodes: cluster"},
		{on + " --from slurm-jobs.txt --history jobs.csv", "--history does not go with --cluster demo"},
		{on + " --from slurm-jobs.txt --backfill some", "want one of easy, none, any"},
		{"steer shadow --policy sjf+skip --cluster slurm --from slurm-jobs.txt", "--from goes with --cluster demo"},
		{"twin --cluster kubernetes --speed 3", "--speed goes with --cluster demo"},
		{"twin --cluster demo --from slurm-jobs.txt --history jobs.csv", "--history does not go with --cluster demo"},
		{"twin --cluster dem", `--cluster: got "dem", want slurm, kubernetes or demo`},
	} {
		code, _, out := clitest.Run(t, strings.Fields(x.args)...)
		if code != cli.ExitMistake || !strings.Contains(out, x.want) {
			t.Errorf("%s: %d, %s", x.args, code, out)
		}
	}
}

// Ctrl-C ends a shadow of a demo as it ends every other.
func TestADemoCanBeInterrupted(t *testing.T) {
	history(t)
	ctx, cancel := context.WithCancel(t.Context())
	var out strings.Builder
	done := make(chan int)
	args := strings.Fields("steer shadow --cluster demo --from slurm-jobs.txt --policy sjf+skip --log log")
	go func() { done <- clitest.Execute(ctx, args, &out, &out) }()
	for range 1000 {
		if info, err := os.Stat("log"); err == nil && info.Size() > 0 {
			break
		}
		if err := ctx.Err(); err != nil {
			t.Fatal(err)
		}
		wait(t)
	}
	cancel()
	if code := <-done; !slices.Contains([]int{cli.ExitDone, cli.ExitInterrupted}, code) {
		t.Errorf("%d: %s", code, out.String())
	}
}

func wait(t *testing.T) {
	t.Helper()
	<-time.After(10 * time.Millisecond)
}
