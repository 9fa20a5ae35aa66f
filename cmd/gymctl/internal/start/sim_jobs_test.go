package start_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"clustergym/cmd/gymctl/internal/clitest"
	"clustergym/internal/testseed"
	"clustergym/traces"
)

// jobRows reads a table of jobs by column.
func jobRows(t *testing.T, name string) (rows []map[string]string) {
	t.Helper()
	f, err := traces.OpenFile(name) // plain or packed
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read
	all, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all[1:] {
		row := map[string]string{}
		for i, cell := range r {
			row[all[0][i]] = cell
		}
		rows = append(rows, row)
	}
	return rows
}

func number(t *testing.T, cell string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(cell, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestJobsOutIsTheDocumentJobByJob(t *testing.T) {
	t.Chdir(t.TempDir())
	// b waits for a; huge can never fit; late is submitted after the horizon; long runs at the horizon.
	clitest.Write(t, "jobs.csv",
		"job_id,user,vc,submit_time,duration,num_gpu\na,ann,\"x,y\",0,100.5,2\nhuge,,,1,1,9\nb,bob,,5,10,1\nlong,,,6,1000,2\nlate,,,700,5,1\n")
	clitest.Must(t, "sim", "jobs.csv", "--cluster", "pool:2", "--horizon", "10m", "--jobs-out", "out.csv")
	const want = `job_id,user,vc,num_gpu,submit_time,first_start,finish,duration,wait,jct,slowdown,preemptions,migrations,state
a,ann,"x,y",2,0,0,100.5,100.5,0,100.5,1,0,0,finished
huge,,,9,1,,,1,,,,0,0,refused
b,bob,,1,5,100.5,110.5,10,95.5,105.5,10.55,0,0,finished
long,,,2,6,110.5,,1000,,,,0,0,unfinished
late,,,1,700,,,5,,,,0,0,unfinished
`
	if got := clitest.Read(t, "out.csv"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	clitest.Must(t, "sim", "jobs.csv", "--cluster", "pool:2", "--horizon", "10m", "--stream", "on", "--jobs-out",
		"streamed.csv.zst")
	clitest.Must(t, "trace", "convert", "streamed.csv.zst", "-o", "again.csv")
	if rows := jobRows(t, "streamed.csv.zst"); fmt.Sprint(rows) != fmt.Sprint(jobRows(t, "out.csv")) {
		t.Errorf("of a streamed trace %v", rows)
	}
	// The table is a trace again.
	if a, b := clitest.Must(t, "trace", "convert", "out.csv"), clitest.Must(t, "trace", "convert", "jobs.csv"); a != b {
		t.Errorf("read again\n%s\nwant\n%s", a, b)
	}
	clitest.Must(t, "sim", "jobs.csv", "--cluster", "pool:2", "--warmup", "1", "--tail", "1", "--policy", "fifo,sjf",
		"--jobs-out", "cut.csv")
	counted := ""
	for _, r := range jobRows(t, "cut.csv") {
		counted += r["job_id"] + " " + r["counted"] + " " + r["policy"] + ", "
	}
	if counted != "a no fifo+strict, huge no fifo+strict, b yes fifo+strict, long yes fifo+strict, late no fifo+strict, "+
		"a no sjf+strict, huge no sjf+strict, b yes sjf+strict, long yes sjf+strict, late no sjf+strict, " {
		t.Errorf("with warm-up and tail %s", counted)
	}
}

// The means of the document follow from the rows, for every kind of policy.
func TestJobsOutSumsUpToTheTable(t *testing.T) {
	clitest.OneGoroutine(t)
	t.Chdir(t.TempDir())
	seed := testseed.Or(1)
	t.Logf("seed %d", seed)
	policies := []string{"fifo", "sjf+skip", "srtf", "las", "fifo+strict+easy", "gandiva", "dally", "random+skip"}
	out := clitest.Must(t, "sim", "--jobs", "600", "--cluster", "6x8", "--policy", strings.Join(policies, ","), "--seed",
		fmt.Sprint(seed),
		"--warmup", "20", "--tail", "30", "--json", "--jobs-out", "all.csv.gz")
	var d struct {
		Runs []struct {
			Policy, Admission string
			Metrics           struct {
				Finished    int
				Preemptions int
				Migrations  int
				JCT         struct{ Mean float64 } `json:"jct_s"`
				Wait        struct{ Mean float64 } `json:"wait_s"`
				FirstWait   struct{ Mean float64 } `json:"first_wait_s"`
				Slowdown    struct{ Mean float64 } `json:"slowdown"`
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatal(err)
	}
	rows := jobRows(t, "all.csv.gz")
	if len(rows) != 600*len(policies) || len(d.Runs) != len(policies) {
		t.Fatalf("%d rows of %d runs", len(rows), len(d.Runs))
	}
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-12*math.Abs(b) }
	for i, run := range d.Runs {
		var jct, wait, first, slow float64
		n, slows, stops, moves := 0, 0, 0, 0
		before := 0.0
		for k, r := range rows[600*i : 600*(i+1)] {
			if !strings.HasPrefix(r["policy"], run.Policy) || number(t, r["submit_time"]) < before {
				t.Fatalf("row %d: %v", k, r)
			}
			before = number(t, r["submit_time"])
			if r["counted"] != "yes" {
				continue
			}
			stops, moves = stops+int(number(t, r["preemptions"])), moves+int(number(t, r["migrations"]))
			if r["state"] != "finished" {
				continue
			}
			n++
			jct, wait = jct+number(t, r["jct"]), wait+number(t, r["wait"])
			first += number(t, r["first_start"]) - number(t, r["submit_time"])
			if r["slowdown"] != "" {
				slow, slows = slow+number(t, r["slowdown"]), slows+1
			}
		}
		m := run.Metrics
		if n != m.Finished || stops != m.Preemptions || moves != m.Migrations || !near(jct/float64(n), m.JCT.Mean) ||
			!near(slow/float64(slows), m.Slowdown.Mean) ||
			math.Abs(wait/float64(n)-m.Wait.Mean) > 1e-6 || math.Abs(first/float64(n)-m.FirstWait.Mean) > 1e-6 {
			t.Errorf("%s: %d jobs, JCT %v, wait %v, first wait %v, slowdown %v, %d preemptions, %d migrations; want %+v",
				policies[i], n, jct/float64(n), wait/float64(n),
				first/float64(n), slow/float64(slows), stops, moves, m)
		}
	}
}

func TestJobsOutReplacesAFileOnlyWhenTheRunIsDone(t *testing.T) {
	t.Chdir(t.TempDir())
	clitest.Write(t, "jobs.csv", clitest.Jobs)
	clitest.Write(t, "out.csv", "old\n")
	clitest.Wrong(t, []string{"sim", "jobs.csv", "--cluster", "pool:1", "--fail-refused", "--jobs-out", "out.csv"},
		"can never fit")
	clitest.Wrong(t, []string{"sim", "jobs.csv", "--cluster", "pool:2", "--jobs-out", "jobs.csv"}, "output file",
		"it is the input")
	clitest.Wrong(t, []string{"sim", "jobs.csv", "--cluster", "pool:2", "--jobs-out", "out.csv", "--html", "./out.csv"},
		"--html", "--jobs-out")
	clitest.Wrong(t, []string{"sim", "jobs.csv", "--cluster", "pool:2", "--jobs-out", "-"}, "--jobs-out",
		"want the path of a file")
	if got := clitest.Read(t, "out.csv"); got != "old\n" {
		t.Errorf("a run that failed wrote %q", got)
	}
	left, err := os.ReadDir(".")
	if err != nil || len(left) != 2 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}
