package operate_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clustergym/cmd/gymctl/internal/clitest"
	"clustergym/ops/assess"
)

// forty is an accounting made by hand: job i of 40 waits 5·i minutes (ops/assess/testdata/README.md).
const forty = "../../../../ops/assess/testdata/forty.txt"

// What the file says is printed as it is, in text, as a document and on a page.
func TestAssessSaysWhatWasRecorded(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.html")
	out := clitest.Must(t, "assess", forty, "--cluster", "2x4", "--html", page)
	if first, _, _ := strings.Cut(out, "\n"); !strings.HasPrefix(first, "Users wait 98 min today. The record is too short") {
		t.Error(first)
	}
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if s := string(b); !strings.Contains(s, "&lt;b&gt;bob&lt;/b&gt;") || strings.Contains(s, "<script") {
		t.Error("names of users are not text on the page")
	}
	var a assess.Assessment
	if err := json.Unmarshal([]byte(clitest.Must(t, "assess", forty, "--cluster", "2x4", "--json")), &a); err != nil {
		t.Fatal(err)
	}
	r := &a.Recorded
	if r.Jobs != 40 || r.Mean != 5850 || r.P50 != 5850 || r.Span != 36000 || r.Hours != 80 || a.LeftOut.CPUOnly != 1 {
		t.Errorf("%+v, %+v", r, a.LeftOut)
	}
	if len(r.Sizes) != 1 || r.Sizes[0].Name != "5 to 8 GPUs" || r.OwnersAre != "account" || len(r.Owners) != 2 ||
		r.Owners[0].Mean != 2850 || r.Owners[1].Mean != 8850 {
		t.Errorf("%+v, %+v", r.Sizes, r.Owners)
	}
	if from := r.From.Format("Mon 2006-01-02 15:04"); from != "Mon 2026-01-05 08:00" || r.Week[8].Jobs != 6 ||
		r.Week[8].Mean != 750 {
		t.Errorf("%s, %+v", from, r.Week[8])
	}
	if r.Use < 0.999 || r.Use > 1.001 || a.Head.Today != 5850 || a.Head.Order != nil || len(a.Models) < 12 {
		t.Errorf("use %v, %+v, %d models", r.Use, a.Head, len(a.Models))
	}
}

// Each refusal is one sentence that names the column, the row and the flag.
func TestAssessRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	zero := time.Date(2026, time.January, 5, 8, 0, 0, 0, time.UTC)
	whole := "job_id,submit_time,start_time,end_time,num_gpu,user,estimate\n"
	var rows strings.Builder
	for i := range 40 {
		at := func(minute int) string {
			return zero.Add(time.Duration(10*i+minute) * time.Minute).Format("2006-01-02T15:04:05")
		}
		limit := "3600"
		if i == 20 {
			limit = ""
		}
		rows.WriteString(strings.Join([]string{"j" + at(0)[11:16], at(0), at(1), at(9), "2", "u", limit}, ",") + "\n")
	}
	clitest.Write(t, "limit.csv", whole+rows.String())
	clitest.Write(t, "few.csv", whole+"a,0,1,2,1,u,60\n")
	clitest.Write(t, "starts.csv", "job_id,submit_time,duration,num_gpu\na,0,5,1\nb,0,5,1\n")
	clitest.Write(t, "broken.csv", whole+"a,0,1,2,x,u,60\n")
	for _, x := range []struct{ args, want string }{
		{"limit.csv --cluster 2x4", "(line 22) has no time limit (column Timelimit of sacct, estimate of a CSV file), as 1 of " +
			"40 jobs: models of the scheduler need them; --limit says"},
		{"few.csv --cluster 2x4", "want at least 30"},
		{"starts.csv --cluster 2x4", "no row has a start"},
		{"broken.csv --cluster 2x4", "broken.csv:2: num_gpu"},
		{"limit.csv --cluster 1x1 --limit 1h", "can never fit cluster 1x1"},
		{"limit.csv --cluster 1x1 --limit 1h", "--cluster names the right one, --accept-left-out"},
		{"none.csv --cluster 2x4", "no such file"},
		{"limit.csv --cluster nonsense", "nonsense"},
		{"limit.csv --cluster 2x4 --limit -1h", "--limit"},
		{"limit.csv --cluster 2x4 --html nowhere/a.html", "--html"},
	} {
		code, out, err := clitest.Run(t, append([]string{"assess"}, strings.Fields(x.args)...)...)
		if code != 2 || out != "" || !strings.Contains(err, x.want) || strings.Count(strings.TrimSpace(err), "\n") > 0 {
			t.Errorf("assess %s: exit code %d, %q, %s; want %q", x.args, code, out, err, x.want)
		}
	}
	if out := clitest.Must(t, "assess", "limit.csv", "--cluster", "2x4", "--limit", "1h"); !strings.Contains(out,
		"1 job has no time limit; 1h0m0s stands for it") {
		t.Error(out)
	}
}

// --tune writes weights that --hold reads, and --agent trains on the first half alone, once: the second time the agent is
// only played, and for another file or with other settings its folder is refused.
func TestAssessLearns(t *testing.T) {
	t.Chdir(t.TempDir())
	clitest.Must(t, "trace", "synth", "--profile", "philly-users", "--jobs", "700", "--set", "rate=0.3", "--set", "work=0.6",
		"--set", "max_gpus=4", "-o", "made.csv")
	clitest.Must(t, "trace", "account", "made.csv", "--cluster", "4x8", "-o", "jobs.txt")
	learn := []string{"assess", "jobs.txt", "--cluster", "4x8", "--agent", "run", "--json"}
	short := []string{"--set", "train.imitate_steps=2048", "--set", "train.steps=2048", "--set", "train.envs=8",
		"--set", "ppo.steps=32", "--set", "ppo.minibatches=4", "--set", "eval.validation=2"}
	var first, second assess.Assessment
	for i, a := range []*assess.Assessment{&first, &second} {
		args := learn
		if i == 0 {
			args = append(append([]string{}, learn...), short...)
		}
		if err := json.Unmarshal([]byte(clitest.Must(t, args...)), a); err != nil {
			t.Fatal(err)
		}
	}
	l := first.Learned
	if n := len(l.Policies); n != 5 || l.Policies[n-1].Role != "agent" || l.Policies[n-1].Never > 0 || l.Agent != "run" {
		t.Errorf("%+v", l)
	}
	if x, y := &l.Policies[4], &second.Learned.Policies[4]; x.Mean != y.Mean || x.Name != y.Name {
		t.Errorf("played again, %s waits %v s; it was %s with %v s", y.Name, y.Mean, x.Name, x.Mean)
	}
	// The cluster grows: the agent still fits, but for one that sees single nodes.
	clitest.Must(t, "assess", "jobs.txt", "--cluster", "6x8", "--agent", "run")
	sees := append([]string{"assess", "jobs.txt", "--cluster", "4x8", "--agent", "sees", "--set", "env.images=true"}, short...)
	clitest.Must(t, sees...)
	if code, _, said := clitest.Run(t, "assess", "jobs.txt", "--cluster", "6x8", "--agent", "sees"); code == 0 ||
		!strings.Contains(said, "4 nodes of 8 GPUs there, 6 here") || !strings.Contains(said, "as in the preset quickstart") {
		t.Errorf("code %d, said %q", code, said)
	}
	config, err := os.ReadFile("run/config.yaml")
	if err != nil || !strings.Contains(string(config), "file: jobs.txt") || !strings.Contains(string(config), "jobs: ") {
		t.Errorf("%v: %s", err, config)
	}
	for _, x := range []struct {
		want string
		args []string
	}{
		{"its settings stay", append(append([]string{}, learn...), short...)},
		{"has learned from jobs.txt and not from the first half of other.txt", []string{"assess", "other.txt", "--cluster",
			"4x8", "--agent", "run"}},
		{"--set goes with --agent", []string{"assess", "jobs.txt", "--cluster", "4x8", "--set", "train.steps=1"}},
	} {
		b, err := os.ReadFile("jobs.txt")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("other.txt", b, 0o600); err != nil {
			t.Fatal(err)
		}
		if code, _, said := clitest.Run(t, x.args...); code == 0 || !strings.Contains(said, x.want) {
			t.Errorf("%v: code %d, said %q, want %q", x.args, code, said, x.want)
		}
	}
}
