package start_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"clustergym/cmd/gymctl/internal/clitest"
	"clustergym/lab/config"
	"clustergym/lab/envs"
	"clustergym/simulator/policyname"
)

// An order that is written out schedules every job as the order of its formula, byte for byte.
func TestWrittenOrdersWriteTheSameJobs(t *testing.T) {
	clitest.OneGoroutine(t)
	t.Chdir(t.TempDir())
	for _, x := range [][]string{
		{"sjf", "key: estimate"}, {"sjf+skip", "key: estimate+skip"},
		{"fifo", "key: wait < 0 ? 0 : -wait"}, {"srtf", "key: left; stop if: true"},
	} {
		var jobs []string
		for _, policy := range x {
			clitest.Must(t, "sim", "--jobs", "600", "--cluster", "8x8", "--policy", policy, "--jobs-out", "jobs.csv")
			jobs = append(jobs, clitest.Read(t, "jobs.csv"))
		}
		if jobs[0] != jobs[1] || strings.Count(jobs[0], "\n") != 601 {
			t.Errorf("%s and %q schedule differently", x[0], x[1])
		}
	}
}

// ran returns the policies of the runs of a simulation with their admission, as tables show them.
func ran(t *testing.T, args ...string) (names []string) {
	t.Helper()
	out := clitest.Must(t, append([]string{"sim", "--jobs", "20", "--cluster", "2x8", "--json"}, args...)...)
	var d struct {
		Runs []struct{ Policy, Admission string }
	}
	if !strings.HasPrefix(out, `{"runs"`) {
		out = `{"runs":[` + out + `]}`
	}
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatal(err)
	}
	for _, r := range d.Runs {
		names = append(names, policyname.Short(r.Policy+"+"+r.Admission))
	}
	return names
}

// A file's order is called after the file, or as it calls itself, wherever the list of policies names it, and stands at
// its end otherwise.
func TestOrdersFromFiles(t *testing.T) {
	clitest.OneGoroutine(t)
	t.Chdir(t.TempDir())
	clitest.Write(t, "mine.expr", "# by size\n$w: 2\nkey: gpus ** $w\n  + wait * 0\nstart if: gpus < 9\n")
	clitest.Write(t, "other.txt", "named = key: max(gpus, 2)+skip")
	for _, x := range []struct{ args, want string }{
		{"--policy-file mine.expr", "mine+strict"},
		{"--policy-file mine.expr --policy sjf", "sjf+strict mine+strict"},
		{"--policy-file mine.expr --policy mine+skip,sjf", "mine+skip sjf+strict"},
		{"--policy-file mine.expr --policy-file other.txt", "mine+strict named+skip"},
		{"--policy-file other.txt --policy rollout:named+strict,named --budget 1 --estimates exact",
			"rollout:named+strict named+skip"},
		{"--policy-file mine.expr --policy mine --admission skip", "mine+skip"},
	} {
		if got := strings.Join(ran(t, strings.Fields(x.args)...), " "); got != x.want {
			t.Errorf("%s runs %s, want %s", x.args, got, x.want)
		}
	}
	long := "key: " + strings.Repeat("gpus + ", 9) + "gpus"
	got := ran(t, "--policy", "fifo,key: max(gpus, 2)/gpus,"+long)
	if len(got) != 3 || got[1] != "key: max(gpus, 2)/gpus+strict" || !strings.HasPrefix(got[2], "expr-") {
		t.Errorf("the list is %q", got)
	}
	if table := clitest.Must(t, "sim", "--jobs", "20", "--cluster", "2x8", "--policy",
		long); strings.Contains(table, "key:") {
		t.Errorf("the table has the whole order:\n%s", table)
	}
	clitest.Must(t, "sim", "--jobs", "20", "--cluster", "2x8", "--policy", "fifo,key: max(gpus, 2)", "--jobs-out",
		"jobs.csv")
	if rows := clitest.Read(t, "jobs.csv"); !strings.Contains(rows, `,"key: max(gpus, 2)+strict"`+"\n") {
		t.Errorf("the table of jobs names it otherwise:\n%s", rows[:200])
	}
	clitest.Write(t, "none.expr", "wait")
	clitest.Write(t, "bad.expr", "key: wait; key: gpus")
	clitest.Write(t, "a b.expr", "key: wait")
	clitest.Write(t, "slots.expr", "key: wait@slots")
	for file, want := range map[string]string{
		"nowhere.expr": "--policy-file: nowhere.expr: no such file",
		"none.expr":    "--policy-file: none.expr is no order that is written out; begin it with key:",
		"bad.expr":     "--policy-file: bad.expr: it has key: twice",
		"a b.expr":     "--policy-file: the name of a b.expr is no name of a policy; begin the order with one",
		"slots.expr":   "--policy-file: slots.expr: it begins with rollout: or ends with @slots; leave that to --policy",
	} {
		clitest.Wrong(t, []string{"sim", "--jobs", "20", "--policy-file", file}, want)
	}
}

func TestWrittenOrdersAreRefusedInOneSentence(t *testing.T) {
	clitest.OneGoroutine(t)
	t.Chdir(t.TempDir())
	for order, want := range map[string]string{
		"key: waitt / gpus": `--policy: got "key: waitt / gpus", want an expression that can be computed: key: column 1: ` +
			`"waitt" is unknown; use wait`,
		"key: user":            "want an expression that can be computed: key: it is a text; write a number",
		"key: wait / (gpus":    "key: column 12: the expression ends too early",
		"key: run_time":        `got "history", want exact, as key: run_time looks at run_time, which only that rung knows`,
		"key: log(wait - 1e9)": "the key of job 0 is not a number: log(wait - 1e9) with wait = 0",
		"key: " + strings.Repeat("1+",
			2100) + "1": "1+1+…\", want an expression that can be computed: it has 4206 bytes; write",
		"key: gpus@slots":                  "leave @slots out",
		"hindsight:key: gpus":              "leave hindsight: out",
		"rollout:key: left; stop if: true": "remembers which jobs it stops",
	} {
		clitest.Wrong(t, []string{"sim", "--jobs", "50", "--estimates", "history", "--policy", order}, want)
	}
	clitest.Wrong(t, []string{"sim", "--jobs", "50", "--estimates", "none", "--policy", "key: estimate"},
		"--estimates", "as order key: estimate ranks by run times")
}

// In a comparison a written order is level with the order of its formula, over the whole queue, through slots and where
// it looks ahead; an agent can imitate it.
func TestEvalPlaysWrittenOrders(t *testing.T) {
	clitest.OneGoroutine(t)
	t.Chdir(t.TempDir())
	clitest.Write(t, "mine.expr", "key: estimate")
	out := clitest.Must(t, "eval", "--env", "JobSelect-v1", "--windows", "1", "--no-whole", "--json", "--budget",
		"1", "--set",
		"env.window=16", "--set", "env.warm=16", "--set", "eval.hindsight=20", "--policy-file", "mine.expr", "--policies",
		"sjf+skip,mine+skip,area@slots,key: estimate * gpus@slots,rollout:area@slots,rollout:key: estimate * gpus@slots,"+
			"hindsight:sjf+skip,hindsight:mine+skip")
	var d struct {
		Policies []struct {
			Name    string
			Metrics struct {
				JCT struct{ Mean float64 } `json:"jct_s"`
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &d); err != nil || len(d.Policies) != 8 {
		t.Fatalf("%v\n%s", err, out)
	}
	for i := 0; i < len(d.Policies); i += 2 {
		a, b := d.Policies[i], d.Policies[i+1]
		if a.Metrics.JCT.Mean != b.Metrics.JCT.Mean || a.Metrics.JCT.Mean == 0 || !policyname.IsWritten(b.Name) {
			t.Errorf("%s has %v, %s %v", a.Name, a.Metrics.JCT.Mean, b.Name, b.Metrics.JCT.Mean)
		}
	}
	for policies, want := range map[string]string{
		"key: estimte@slots": `--policies: got "key: estimte@slots", want an expression that can be computed: ` +
			`key: column 1: "estimte" is unknown; use estimate`,
		"key: left; stop if: true@slots": "stop if stops running jobs, which no expression does through slots; leave @slots out",
	} {
		clitest.Wrong(t, []string{"eval", "--windows", "1", "--policies", policies}, want)
	}
	c := config.For("JobSelect-v1")
	c.Train.Imitate = "key: estimate * gpus@slots"
	if r, err := c.Teacher(); err != nil || !r.Estimates {
		t.Errorf("the teacher is %+v, %v", r, err)
	}
	c.Train.Imitate = "key: estimate@slot"
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "want an expression that can be computed") {
		t.Errorf("a teacher that is misspelt: %v", err)
	}
}

// The policies of the page play.
func TestThePoliciesOfThePagePlay(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "guides", "own-policy.md"))
	if err != nil {
		t.Fatal(err)
	}
	d, n := envs.Find("JobSelect-v1"), 0
	for _, m := range regexp.MustCompile(`(?m)^gymctl \S+ (?:--policy|--policies|--set) '([^']+)'|imitate='"(.+)"'$`).
		FindAllStringSubmatch(string(page), -1) {
		for _, name := range policyname.Split(m[1] + m[2]) {
			n++
			if _, err := config.ParseRival(name, d, d.Settings()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if n != 8 {
		t.Errorf("%d policies are on the page, want 8", n)
	}
	_, file, _ := strings.Cut(string(page), "# mine.expr")
	file, _, _ = strings.Cut(file, "```")
	t.Chdir(t.TempDir())
	clitest.Write(t, "mine.expr", "#"+file)
	if got := ran(t, "--policy-file", "mine.expr"); len(got) != 1 || got[0] != "mine+strict" {
		t.Errorf("the file runs %q", got)
	}
}
