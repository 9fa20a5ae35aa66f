package listsched

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"clustergym/simulator/dag"
	"clustergym/simulator/dag/dagjson"
)

// truth is the directory of instances with known makespans, if it exists.
const truth = "../../../../shared/groundtruth/dag"

func openTruth(t *testing.T, name string) io.Reader {
	t.Helper()
	f, err := os.Open(filepath.Join(truth, name))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the recorded makespans are not at hand: looked for in ../shared, beside this repository, of which it is no part")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if !strings.HasSuffix(name, ".gz") {
		return f
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func problems(t *testing.T, names ...string) map[string]*dag.Problem {
	t.Helper()
	all := map[string]*dag.Problem{}
	for _, name := range names {
		r := dagjson.NewReader(openTruth(t, name), name)
		for {
			in, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			q, err := dag.NewProblem(in.Graph, in.Platform)
			if err != nil {
				t.Fatal(err)
			}
			all[in.Graph.Name] = q
		}
	}
	return all
}

// run plans by an algorithm, by its name in the recorded results.
func run(q *dag.Problem, algorithm string) (plan *dag.Plan, transfers bool) {
	p := New(q, Options{})
	switch algorithm {
	case "heft":
		return p.HEFT(true), true
	case "heft_noinsert":
		return p.HEFT(false), true
	case "heft_meanbw":
		return New(q, Options{RankMean: dag.MeanBandwidth}).HEFT(true), true
	case "heft_selfpairs":
		return New(q, Options{RankMean: dag.SelfPairs}).HEFT(true), true
	case "cpop":
		return p.CPOP(), true
	case "peft":
		return p.PEFT(), true
	case "eft_index":
		return p.EFTIndex(), false
	case "list_ready":
		return p.ListReady(), true
	}
	return nil, false
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b)) }

func TestRecordedMakespansAreEqual(t *testing.T) {
	all := problems(t, "random.jsonl.gz", "tiny.jsonl.gz", "wfcommons_mapped.jsonl")
	same, ties := 0, 0
	for _, name := range []string{"expected.csv", "wfcommons_expected.csv"} {
		rows, err := csv.NewReader(openTruth(t, name)).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		col := map[string]int{}
		for k, c := range rows[0] {
			col[c] = k
		}
		for _, row := range rows[1:] {
			q, algorithm := all[row[col["instance"]]], row[col["algorithm"]]
			if q == nil {
				t.Fatalf("no instance %s", row[col["instance"]])
			}
			plan, transfers := run(q, algorithm)
			if plan == nil {
				continue // the optimum has its own test
			}
			if err := dag.Check(q, plan, transfers); err != nil {
				t.Errorf("%s, %s: %v", row[col["instance"]], algorithm, err)
			}
			makespan, _ := strconv.ParseFloat(row[col["makespan"]], 64)
			finish, _ := strconv.ParseFloat(row[col["sum_finish"]], 64)
			sum := 0.0
			for _, f := range plan.Finish {
				sum += f
			}
			equal := near(plan.Makespan,
				makespan) && near(sum, finish) && strconv.Itoa(plan.Used()) == row[col["processors_used"]]
			if row[col["tie_free"]] == "0" {
				if !equal {
					ties++
				}
				continue
			}
			if !equal {
				t.Errorf("%s, %s: makespan %v, ends together %v; want %v and %v", row[col["instance"]], algorithm, plan.Makespan,
					sum, makespan, finish)
			}
			same++
		}
	}
	t.Logf("%d rows equal; of those that hang on ties, %d differ", same, ties)
	if same < 900 {
		t.Errorf("only %d rows were compared", same)
	}
}

func TestRecordedSchedulesAreEqualStartByStart(t *testing.T) {
	all := problems(t, "random.jsonl.gz", "tiny.jsonl.gz")
	lines := bufio.NewScanner(openTruth(t, "schedules.jsonl.gz"))
	lines.Buffer(nil, 1<<20)
	rows, _ := csv.NewReader(openTruth(t, "expected.csv")).ReadAll()
	tieFree := map[string]bool{}
	for _, r := range rows[1:] {
		tieFree[r[0]+" "+r[8]] = r[12] == "1"
	}
	n := 0
	for lines.Scan() {
		var want struct {
			Instance, Algorithm string
			Proc                []int32
			Start               []float64
		}
		if err := json.Unmarshal(lines.Bytes(), &want); err != nil {
			t.Fatal(err)
		}
		if !tieFree[want.Instance+" "+want.Algorithm] {
			continue
		}
		plan, _ := run(all[want.Instance], want.Algorithm)
		for i := range want.Proc {
			if plan.Proc[i] != want.Proc[i] || math.Abs(plan.Start[i]-want.Start[i]) > 1e-9*max(1, plan.Makespan) {
				t.Errorf("%s, %s: task %d is on %d from %v, want %d from %v", want.Instance, want.Algorithm, i, plan.Proc[i],
					plan.Start[i], want.Proc[i], want.Start[i])
				break
			}
		}
		n++
	}
	if n < 400 {
		t.Errorf("only %d schedules were compared", n)
	}
}

func TestPublishedGraphsGiveTheirPublishedNumbers(t *testing.T) {
	all := problems(t, "textbook.jsonl")
	rows, err := csv.NewReader(openTruth(t, "textbook_expected.csv")).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows[1:] {
		plan, transfers := run(all[r[0]], r[1])
		if plan == nil {
			continue
		}
		if err := dag.Check(all[r[0]], plan, transfers); err != nil {
			t.Errorf("%s, %s: %v", r[0], r[1], err)
		}
		if want, _ := strconv.ParseFloat(r[2], 64); !near(plan.Makespan, want) {
			t.Errorf("%s, %s: makespan %v, want %v", r[0], r[1], plan.Makespan, want)
		}
		starts := strings.Fields(r[5])
		for i, g := range strings.Fields(r[4]) {
			start, _ := strconv.ParseFloat(starts[i], 64)
			if strconv.Itoa(int(plan.Proc[i])) != g || !near(plan.Start[i], start) {
				t.Errorf("%s, %s: task %d is on %d from %v, want %s from %v", r[0], r[1], i, plan.Proc[i], plan.Start[i], g, start)
			}
		}
	}
}
