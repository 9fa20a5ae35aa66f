package start_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
)

// A counter has GPUs and no nodes, in the table, in the document and on the page.
func TestSimSaysThatACounterHasNoNodes(t *testing.T) {
	t.Chdir(t.TempDir())
	clitest.Write(t, "jobs.csv", clitest.Jobs)
	for _, c := range []string{"pool:2", "swf-2"} {
		if out := clitest.Must(t, "sim", "--trace", "jobs.csv", "--cluster", c, "--html", "page.html"); !strings.Contains(out,
			"cluster    "+c+": a plain counter of 2 GPUs or processors\n") {
			t.Errorf("%s is shown as\n%s", c, out)
		}
		if page := clitest.Read(t, "page.html"); !strings.Contains(page, c+": a plain counter of 2 GPUs or processors") {
			t.Errorf("the page does not say that %s is a counter", c)
		}
		if out := clitest.Must(t, "sim", "--trace", "jobs.csv", "--cluster", c, "--json"); !strings.Contains(out,
			`"cluster":{"name":"`+c+`","nodes":0,"gpus":2}`) {
			t.Errorf("%s is documented as\n%s", c, out)
		}
	}
	if out := clitest.Must(t, "sim", "--trace", "jobs.csv", "--cluster", "1x2"); !strings.Contains(out,
		"cluster    1x2: 1 node, 2 GPUs\n") {
		t.Errorf("1x2 is shown as\n%s", out)
	}
}

// What the table's first line says of rows that were left out, put in order or completed stands in the document too.
func TestSimDocumentSaysWhatWasLeftOut(t *testing.T) {
	t.Chdir(t.TempDir())
	row := func(id, submit, run, procs, asked string) string {
		return id + " " + submit + " 0 " + run + " " + procs + " -1 -1 " + procs + " " + asked + " -1 1 1 1 1 1 -1 -1 -1\n"
	}
	clitest.Write(t, "log.swf",
		row("1", "0", "10", "1",
			"-1")+row("2", "9", "-1", "1", "5")+row("3", "5", "0", "1", "5")+row("4", "5", "10", "-1", "5")+row("5", "6", "10",
			"1", "-1"))
	for _, args := range [][]string{{"--sort"}, {"--sort", "--skip", "1"}, {"--sort", "--policy", "fifo,sjf"}} {
		base := append([]string{"sim", "--trace", "log.swf", "--cluster", "pool:2"}, args...)
		text, out := clitest.Must(t, base...), clitest.Must(t, append(base, "--json")...)
		var d struct {
			Trace json.RawMessage
			Runs  []struct{ Trace json.RawMessage }
		}
		if err := json.Unmarshal([]byte(out), &d); err != nil {
			t.Fatal(err)
		}
		all := []json.RawMessage{d.Trace}
		if d.Runs != nil {
			all = []json.RawMessage{d.Runs[0].Trace, d.Runs[1].Trace}
		}
		for _, raw := range all {
			var got struct {
				Dropped, Passed, Assumed int
				Skipped                  []struct {
					Reason string
					Count  int
				}
			}
			if err := json.Unmarshal(raw, &got); err != nil {
				t.Fatal(err)
			}
			sum := 0
			for _, s := range got.Skipped {
				sum += s.Count
				if want := "left out (" + s.Reason + ")"; !strings.Contains(text, want) {
					t.Errorf("%v: the table does not say %q:\n%s", args, want, text)
				}
			}
			if got.Dropped != 3 || sum != 3 || got.Assumed == 0 ||
				got.Passed != strings.Count(strings.Join(args, " "), "--skip") {
				t.Errorf("%v: the document says %s; want three rows left out", args, raw)
			}
		}
	}
	// A document of a clean trace has only the keys that it always had.
	clitest.Write(t, "jobs.csv", clitest.Jobs)
	var d struct{ Trace map[string]any }
	if err := json.Unmarshal([]byte(clitest.Must(t, "sim", "--trace", "jobs.csv", "--cluster", "pool:2", "--json")),
		&d); err != nil {
		t.Fatal(err)
	}
	if want := map[string]any{"file": "jobs.csv", "format": "csv", "jobs": 3., "refused": 0.}; !reflect.DeepEqual(d.Trace,
		want) {
		t.Errorf("a clean trace is %v, want %v", d.Trace, want)
	}
}

// Times near 292 years, the most that the clock's numbers hold, give one sentence and exit code 2 or 1, never a wrong
// table.
func TestSimEndsWithASentenceWhereTheClockEnds(t *testing.T) {
	clitest.OneGoroutine(t)
	t.Chdir(t.TempDir())
	const head = "submit_time,duration,num_gpu\n"
	clitest.Write(t, "submit.csv", head+"0,1,1\n9.2e9,1,1\n")
	clitest.Write(t, "work.csv", head+"0,9.2e9,1\n")
	clitest.Write(t, "sum.csv", head+"0,4e9,1\n0,4e9,1\n")
	clitest.Write(t, "late.csv", head+"4e9,1,1\n")
	clitest.Write(t, "fine.csv", head+"0,2e9,1\n0,2e9,1\n")
	for _, c := range []struct{ args, want string }{
		{"submit.csv", "job 1 is submitted at 2555555h33m20s, want a time from 0s to 146 years"},
		{"work.csv", "job 0 works 2555555h33m20s, want a time from 0s to 146 years"},
		{"submit.csv --stream on", "job 1 is submitted at"},
		{"sum.csv", "still run after 146 years, where the clock ends"},
		{"sum.csv --policy gittins-2d", "still run after 146 years, where the clock ends"},
		{"late.csv --horizon 1000000h", "horizon: got 1000000h0m0s, want less"},
		{"fine.csv --horizon 2000000h", "horizon: got 2000000h0m0s, want a time of at most 146 years"},
		{"fine.csv --horizon 9000000h", "horizon"},
		{"fine.csv", ""},
	} {
		code, out, said := clitest.Run(t,
			append([]string{"sim", "--cluster", "pool:1", "--trace"}, strings.Fields(c.args)...)...)
		if c.want == "" {
			if code != cli.ExitDone {
				t.Errorf("%s: exit code %d, said %q", c.args, code, said)
			}
			continue
		}
		if code == cli.ExitDone || out != "" || !strings.Contains(said, c.want) || strings.Count(said, "\n") != 1 {
			t.Errorf("%s: exit code %d, printed %q, said %q; want %q", c.args, code, out, said, c.want)
		}
	}
}
