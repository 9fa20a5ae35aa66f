package simulate

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"clustergym/internal/fault"
	"clustergym/lab/workload"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
)

var update = flag.Bool("update", false, "rewrite testdata")

// ground is a folder of published results, which are not part of the repository.
func ground(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join("..", "..", "..", "shared", "groundtruth", name)
	if _, err := os.Stat(path); err != nil {
		t.Skip("the published workload is not at hand: looked for in ../shared, beside this repository, of which it is no part")
	}
	return path
}

// Independently written simulators agree on these means of 422 jobs on a pool of 48 GPUs. Ours must equal every digit
// that they print.
func TestPublishedMeansToTheLastDigit(t *testing.T) {
	cfg := oracleConfig()
	cfg.Trace.File = ground(t, "philly_2869ce_all.csv.gz")
	cfg.Cluster = "pool:48"
	f, err := os.Open(ground(t, "philly_2869ce_counter_48.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	policies := map[string]string{"fifo": "fifo", "fifo_skip": "fifo+skip", "sjf": "sjf", "sjf_skip": "sjf+skip",
		"srtf": "srtf"}
	col := map[string]int{}
	for i, name := range rows[0] {
		col[name] = i
	}
	cfg.Policies = nil
	for _, r := range rows[1:] {
		cfg.Policies = append(cfg.Policies, policies[r[col["rule"]]])
	}
	report, err := Run(t.Context(), cfg, Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Runs) != 5 {
		t.Fatalf("%d runs, want 5", len(report.Runs))
	}
	for i, r := range rows[1:] {
		m := report.Runs[i].Metrics
		for name, got := range map[string]float64{
			"jct_avg": m.JCT.Mean, "jct_median": m.JCT.P50, "wait_avg": m.Wait.Mean, "first_wait_avg": m.FirstWait.Mean,
			"bsld10_avg": m.BoundedSlowdown.Mean, "last_end": m.Makespan,
		} {
			// Formatted with as many decimals as the file can have, without the trailing zeros that it omits.
			shown := strconv.FormatFloat(got, 'f', 6, 64)
			shown = strings.TrimRight(strings.TrimRight(shown, "0"), ".")
			if shown != r[col[name]] {
				t.Errorf("%s: %s is %s, want %s", cfg.Policies[i], name, shown, r[col[name]])
			}
		}
	}
}

// small is three jobs on two GPUs: A takes both for 100 s, B and C one each for 10 s, all submitted at 1000 s.
const small = "job_id,submit_time,duration,num_gpu\nA,1000,100,2\nB,1000,10,1\nC,1000,10,1\n"

// oracleConfig returns the default configuration with run times that policies know.
func oracleConfig() Config {
	cfg := DefaultConfig()
	cfg.Policy.Estimates = sim.Estimates{Mode: sim.EstimateExact}
	return cfg
}

func smallConfig(t *testing.T) Config {
	cfg := oracleConfig()
	cfg.Trace.File = file(t, "small.csv", small)
	cfg.Cluster = "pool:2"
	return cfg
}

func TestSimulateByHand(t *testing.T) {
	cfg := smallConfig(t)
	cfg.Policies = []string{"fifo", "sjf+skip", "fifo+skip"}
	cfg.Admission = "strict"
	ticks := 0
	clock := func() time.Time { ticks++; return time.Unix(int64(ticks), 0) }
	report, err := Run(t.Context(), cfg, Hooks{Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	// FIFO: A at once (100), then B and C (110 each). SJF: B and C at once (10 each), then A (110).
	for i, want := range []struct {
		admission       string
		mean, p50, wait float64
	}{{"strict", 320. / 3, 110, 200. / 3}, {"skip", 130. / 3, 10, 10. / 3}, {"skip", 320. / 3, 110, 200. / 3}} {
		r := report.Runs[i]
		if r.Admission != want.admission || r.Metrics.JCT.Mean != want.mean || r.Metrics.JCT.P50 != want.p50 ||
			r.Metrics.Wait.Mean != want.wait {
			t.Errorf("%s: %s, %+v, want %+v", r.Policy, r.Admission, r.Metrics, want)
		}
		if r.Metrics.Makespan != 110 || r.Metrics.Utilization != 1 || r.Events != 9 || r.WallS != 1 {
			t.Errorf("%s: makespan %v, utilisation %v, %d events, wall %v; want 110, 1, 9, 1", r.Policy, r.Metrics.Makespan,
				r.Metrics.Utilization, r.Events, r.WallS)
		}
		if want := (Trace{File: cfg.Trace.File, Format: "csv", Jobs: 3}); !reflect.DeepEqual(r.Trace, want) {
			t.Errorf("trace %+v, want %+v", r.Trace, want)
		}
		if want := (Cluster{Name: "pool:2", Nodes: 0, GPUs: 2}); r.Cluster != want {
			t.Errorf("cluster %+v, want %+v", r.Cluster, want)
		}
	}
	if len(report.Notes) != 0 {
		t.Errorf("notes %q, want none", report.Notes)
	}
}

func TestAdmissionIsSkipForOrdersThatPreempt(t *testing.T) {
	cfg := DefaultConfig()
	for policy, want := range map[string]string{"fifo": "strict", "srtf": "skip", "srtf+strict": "strict",
		"sjf+skip": "skip"} {
		if h := cfg.Heuristic(policy); h.Admission != want {
			t.Errorf("%s takes admission %q, want %q", policy, h.Admission, want)
		}
	}
	cfg.Admission = "skip"
	if h := cfg.Heuristic("fifo"); h.Admission != "skip" {
		t.Errorf("fifo takes admission %q although all shall skip", h.Admission)
	}
}

// The document is a contract: these keys, in this order.
const document = `{"policy":"","admission":"","placement":"","backfill":"","estimates":"","rung":"",` +
	`"trace":{"file":"","format":"","jobs":0,"refused":0},"cluster":{"name":"","nodes":0,"gpus":0},` +
	`"metrics":{"finished":0,"unfinished":0,"makespan_s":0,"jct_s":{"mean":0,"p50":0,"p90":0,"p99":0,"max":0},` +
	`"first_wait_s":{"mean":0,"p50":0,"p90":0,"p99":0,"max":0},"wait_s":{"mean":0,"p50":0,"p90":0,"p99":0,"max":0},` +
	`"bounded_slowdown":{"mean":0,"p50":0,"p90":0,"p99":0,"max":0},"slowdown":{"mean":0,"p50":0,"p90":0,"p99":0,"max":0},` +
	`"gpu_utilization":0,"effective_utilization":0,"communication_share":0,"preemptions":0,"migrations":0,` +
	`"finish_time_fairness":{"mean":0,"p50":0,"p90":0,"p99":0,"max":0},"jain_index":0,"queue_length":{"mean":0,"p50":0,"p90":0,"p99":0,"max":0},` +
	`"fragmentation":0,"deadlines":0,"deadline_misses":0,"dropped":0,"failures":0,"lost_s":0},"events":0,"wall_s":0}`

func TestDocumentHasItsKeysInOrder(t *testing.T) {
	report := &Report{Runs: make([]Result, 1)}
	got, err := json.Marshal(report)
	if err != nil || string(got) != document {
		t.Errorf("one run (%v):\n%s\nwant\n%s", err, got, document)
	}
	report.Runs = make([]Result, 2)
	if got, err := json.Marshal(report); err != nil || string(got) != `{"runs":[`+document+","+document+"]}" {
		t.Errorf("two runs (%v):\n%s", err, got)
	}
}

func TestEventsTellTheWholeStory(t *testing.T) {
	cfg := smallConfig(t)
	cfg.Trace.File = file(t, "quoted.csv", "job_id,submit_time,duration,num_gpu\n\"A \"\"1\"\"\",0.25,100,2\né,0.5,10,1\n")
	cfg.Cluster, cfg.Policies = "1x2", []string{"srtf"}
	var b bytes.Buffer
	if _, err := Run(t.Context(), cfg, Hooks{Events: &b}); err != nil {
		t.Fatal(err)
	}
	want := `{"t_s":0.25,"event":"submit","job":"A \"1\"","gpus":[]}
{"t_s":0.25,"event":"start","job":"A \"1\"","gpus":[0,1]}
{"t_s":0.5,"event":"submit","job":"é","gpus":[]}
{"t_s":0.5,"event":"preempt","job":"A \"1\"","gpus":[0,1]}
{"t_s":0.5,"event":"start","job":"é","gpus":[0]}
{"t_s":10.5,"event":"finish","job":"é","gpus":[0]}
{"t_s":10.5,"event":"start","job":"A \"1\"","gpus":[0,1]}
{"t_s":110.25,"event":"finish","job":"A \"1\"","gpus":[0,1]}
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
	for line := range strings.Lines(b.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("%s is no JSON", line)
		}
	}
}

// The report's metrics must follow from the events alone.
func TestEventsAgreeWithMetrics(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Trace.Synth.Jobs, cfg.Trace.Synth.MaxGPUs, cfg.Cluster = 400, 8, "4x8"
	for _, policy := range []string{"fifo+skip", "las", "srtf", "random"} {
		cfg.Policies, cfg.Simulator.Comm, cfg.Simulator.Restart = []string{policy}, "tree", 30*time.Second
		var b bytes.Buffer
		report, err := Run(t.Context(), cfg, Hooks{Events: &b})
		if err != nil {
			t.Fatal(err)
		}
		type event struct {
			T     float64 `json:"t_s"`
			Event string  `json:"event"`
			Job   string  `json:"job"`
			GPUs  []int   `json:"gpus"`
		}
		submit, kinds, busy := map[string]float64{}, map[string]int{}, map[int]string{}
		jct, last := 0.0, 0.0
		d := json.NewDecoder(&b)
		d.DisallowUnknownFields()
		for {
			var e event
			if err := d.Decode(&e); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if e.T < last {
				t.Fatalf("%s: %+v goes back from %v", policy, e, last)
			}
			last = e.T
			kinds[e.Event]++
			switch e.Event {
			case "submit":
				submit[e.Job] = e.T
			case "start":
				for _, g := range e.GPUs {
					if busy[g] != "" {
						t.Fatalf("%s: %+v takes GPU %d of job %s", policy, e, g, busy[g])
					}
					busy[g] = e.Job
				}
			case "finish", "preempt":
				for _, g := range e.GPUs {
					if busy[g] != e.Job {
						t.Fatalf("%s: %+v gives back GPU %d of job %s", policy, e, g, busy[g])
					}
					delete(busy, g)
				}
				if e.Event == "finish" {
					jct += e.T - submit[e.Job]
				}
			default:
				t.Fatalf("event %q", e.Event)
			}
		}
		m := report.Runs[0].Metrics
		if mean := jct / 400; kinds["finish"] != 400 || m.Finished != 400 || mean < m.JCT.Mean*(1-1e-12) ||
			mean > m.JCT.Mean*(1+1e-12) {
			t.Errorf("%s: events give mean JCT %v of %d jobs, the report %v of %d", policy, mean, kinds["finish"], m.JCT.Mean,
				m.Finished)
		}
		if kinds["preempt"] != m.Preemptions || (policy == "las" || policy == "srtf") != (m.Preemptions > 0) {
			t.Errorf("%s: %d preemptions among the events, the report says %d", policy, kinds["preempt"], m.Preemptions)
		}
		if kinds["start"] != 400+m.Preemptions {
			t.Errorf("%s: %d starts, want %d", policy, kinds["start"], 400+m.Preemptions)
		}
	}
}

func TestJobsThatNeverFitAreRefusedByCountAndName(t *testing.T) {
	rows := "job_id,submit_time,duration,num_gpu\nok,0,10,2\n"
	for i := range 13 {
		rows += fmt.Sprintf("big%d,%d,10,%d\n", i, i, 3+i)
	}
	rows += "none,20,5,0\n"
	cfg := smallConfig(t)
	cfg.Trace.File = file(t, "big.csv", rows)
	cfg.FailRefused = true
	_, err := Run(t.Context(), cfg, Hooks{})
	want := "13 of 15 jobs can never fit cluster pool:2 (2 GPUs): big0, big1, big2, big3, big4, big5, big6, big7, big8, big9 and 3 more; " +
		"the largest asks for 15 GPUs; want a cluster that holds them, or no fail-refused, to run without them"
	if _, ok := errors.AsType[*fault.Mistake](err); !ok || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	for _, stream := range []string{"off", "on"} {
		cfg.FailRefused, cfg.Stream, cfg.Trace.AcceptLeftOut = false, stream, false
		_, err := Run(t.Context(), cfg, Hooks{})
		if err == nil || !strings.Contains(err.Error(), "98 % of its GPU time cannot run on cluster pool:2") ||
			!strings.Contains(err.Error(), "use accept-left-out (trace.accept_left_out: true)") {
			t.Errorf("stream %s: %v", stream, err)
		}
		cfg.Trace.AcceptLeftOut = true
		report, err := Run(t.Context(), cfg, Hooks{})
		if err != nil {
			t.Fatal(err)
		}
		if r := report.Runs[0]; r.Trace.Jobs != 15 || r.Trace.Refused != 13 || r.Trace.RefusedIDs[9] != "big9" ||
			r.Metrics.Finished != 2 {
			t.Errorf("stream %s: %+v, %d finished; want 15, 13 refused, 2 finished", stream, r.Trace, r.Metrics.Finished)
		}
		if len(report.Notes) != 1 ||
			!strings.Contains(report.Notes[0], "13 of 15 jobs (87 %), 98 % of the GPU time, refused, because cluster pool:2") ||
			!strings.Contains(report.Notes[0], "big9 and 3 more") {
			t.Errorf("notes %q", report.Notes)
		}
	}
	cfg.Trace.File = file(t, "all.csv", "job_id,submit_time,duration,num_gpu\nx,0,10,9\n")
	if _, err := Run(t.Context(), cfg, Hooks{}); err == nil {
		t.Error("a run without any job that fits is no run")
	}
}

// The message names the type of GPU if the number of GPUs is not why a job is refused.
func TestRefusalsNameTheReason(t *testing.T) {
	cfg := smallConfig(t)
	cfg.Trace.File = file(t, "typed.csv", "job_id,submit_time,duration,num_gpu,gpu_type\na,0,10,1,H100\n")
	cfg.Cluster = "topdrl-2x4x4"
	_, err := Run(t.Context(), cfg, Hooks{})
	if err == nil || !strings.Contains(err.Error(), "never enough of the GPU types") {
		t.Errorf("got %v", err)
	}
	// A cluster of types takes those of that name, in any capitals, and one without types takes all. The note counts the
	// others by type, whether the trace is streamed or not.
	cfg.Trace.File = file(t, "capitals.csv",
		"job_id,submit_time,duration,num_gpu,gpu_type\na,0,10,1,A100\nb,0,10,1,a100\nc,0,10,1,\nd,0,10,1,H200\n")
	cfg.Trace.AcceptLeftOut = true
	for _, stream := range []string{"off", "on"} {
		for spec, want := range map[string]string{
			"typed.yaml": "1 of 4 jobs (25 %), 25 % of the GPU time, refused, because cluster typed can never hold them: d; " +
				"1 asks for GPU type H200, and it has A100",
			"1x8": "",
		} {
			if cfg.Cluster, cfg.Stream = spec, stream; spec != "1x8" {
				cfg.Cluster = file(t, spec, "racks: [{nodes: [{gpus: 8, gpu_type: A100}]}]\n")
			}
			report, err := Run(t.Context(), cfg, Hooks{})
			if err != nil || strings.Join(report.Notes, "\n") != want {
				t.Errorf("stream %s: %v, %q\nwant %q", stream, err, report.Notes, want)
			}
		}
	}
}

func TestFittingCopiesOnlyWhereItMust(t *testing.T) {
	cfg := smallConfig(t)
	jobs, _, err := workload.LoadTrace(cfg.Trace)
	if err != nil {
		t.Fatal(err)
	}
	spec, _, err := cluster.Parse("pool:2")
	if err != nil {
		t.Fatal(err)
	}
	c, err := cluster.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	if kept, never := Fitting(c, jobs); never.count != 0 || &kept[0] != &jobs[0] || len(kept) != 3 {
		t.Errorf("kept %d, refused %d", len(kept), never.count)
	}
	jobs[0].GPUs = 5
	kept, never := Fitting(c, jobs)
	if never.count != 1 || len(kept) != 2 || kept[0].ID != "B" || kept[1].ID != "C" || jobs[0].ID != "A" ||
		jobs[2].ID != "C" {
		t.Errorf("kept %v, refused %+v", kept, never)
	}
}

func TestTheHorizonCountsFromTheFirstSubmitAndHidesNothing(t *testing.T) {
	cfg := smallConfig(t)
	cfg.Trace.File = file(t, "late.csv", small+"D,2000,1,1\n")
	cfg.Horizon = 105 * time.Second
	report, err := Run(t.Context(), cfg, Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	m := report.Runs[0].Metrics
	if m.Finished != 1 || m.Unfinished != 3 || m.JCT.Mean != 100 || m.Makespan != 105 {
		t.Errorf("got %+v; want 1 finished after 100 s, 3 unfinished, 105 s in all", m)
	}
	want := []string{"fifo+strict: 2 jobs unfinished at the horizon of 1m45s: B, C",
		"fifo+strict: 1 job is submitted after the horizon of 1m45s and not simulated"}
	if fmt.Sprint(report.Notes) != fmt.Sprint(want) {
		t.Errorf("notes %q, want %q", report.Notes, want)
	}
	var table bytes.Buffer
	if err := report.WriteTable(&table); err != nil || !strings.Contains(table.String(), "unfinished") {
		t.Errorf("the table hides unfinished jobs (%v):\n%s", err, table.String())
	}
}

func TestWarmupAndTailAreRunAndNotCounted(t *testing.T) {
	cfg := smallConfig(t)
	cfg.Warmup = 1
	report, err := Run(t.Context(), cfg, Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	if m := report.Runs[0].Metrics; m.Finished != 2 || m.JCT.Mean != 110 {
		t.Errorf("without A: %+v, want 2 jobs of 110 s", m)
	}
	cfg.Warmup, cfg.Tail = 0, 2
	if report, err = Run(t.Context(), cfg, Hooks{}); err != nil {
		t.Fatal(err)
	}
	if m := report.Runs[0].Metrics; m.Finished != 1 || m.JCT.Mean != 100 {
		t.Errorf("A alone: %+v, want 1 job of 100 s", m)
	}
	cfg.Warmup = 1
	if _, err = Run(t.Context(), cfg, Hooks{}); err == nil || !strings.Contains(err.Error(), "leave none of the 3 jobs") {
		t.Errorf("nothing to count: %v", err)
	}
}

func TestEstimatesOfTheTraceMustBeThere(t *testing.T) {
	cfg := smallConfig(t)
	cfg.Trace.File = file(t, "part.csv", native)
	cfg.Policy.Estimates, cfg.Policies = sim.MustEstimates("trace"), []string{"sjf"}
	_, err := Run(t.Context(), cfg, Hooks{})
	if _, ok := errors.AsType[*fault.Mistake](err); !ok || !strings.Contains(err.Error(), "1 of 3 jobs") ||
		!strings.Contains(err.Error(), "the first is b") {
		t.Errorf("got %v", err)
	}
	cfg.Policies = []string{"fifo"} // ranks without them
	if _, err := Run(t.Context(), cfg, Hooks{}); err != nil {
		t.Error(err)
	}
}

func TestAllFaultsAtOnce(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Policies = []string{"sfj", "fifo+never", "sjf"}
	cfg.Admission, cfg.Policy.Placement, cfg.Policy.Estimates, cfg.Simulator.Comm = "maybe", "anywhere",
		sim.MustEstimates("none"), "telepathy"
	cfg.Warmup, cfg.Tail, cfg.Horizon, cfg.Simulator.Restart, cfg.Cluster, cfg.Trace.Format = -1, -1, -1, -1, "", "xls"
	_, err := Run(t.Context(), cfg, Hooks{})
	if err == nil {
		t.Fatal("no fault found")
	}
	for _, want := range []string{"policies[0]: got \"sfj\"", "did you mean sjf?", "policies[1]: got \"fifo+never\"",
		"admission", "placement", "estimates",
		"comm", "warmup", "tail", "horizon", "restart", "cluster", "trace.format"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is missing in\n%v", want, err)
		}
	}
	if n := strings.Count(err.Error(), "\n") + 1; n != 12 {
		t.Errorf("%d faults, want 12:\n%v", n, err)
	}
	cfg = DefaultConfig()
	cfg.Policies = []string{"fifo", "sjf"}
	if _, err := Run(t.Context(), cfg, Hooks{Events: io.Discard}); err == nil {
		t.Error("one file took the events of two policies")
	}
}

func TestSimulationsRepeatAndDependOnTheSeedWhereTheyDraw(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Trace.Synth.Jobs, cfg.Trace.Synth.MaxGPUs, cfg.Cluster = 300, 8, "2x8"
	cfg.Policies = []string{"fifo", "sjf", "random", "las", "srtf"}
	cfg.Policy.Estimates = sim.MustEstimates("noisy:0.5")
	run := func() []string {
		report, err := Run(t.Context(), cfg, Hooks{})
		if err != nil {
			t.Fatal(err)
		}
		var runs []string
		for _, r := range report.Runs {
			b, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			runs = append(runs, string(b))
		}
		return runs
	}
	a, b := run(), run()
	for i := range a {
		if a[i] != b[i] {
			t.Errorf("%s: two runs differ:\n%s\n%s", cfg.Policies[i], a[i], b[i])
		}
	}
	cfg.Seed = 2
	c := run()
	for i, draws := range []bool{false, true, true, false, true} {
		if (a[i] != c[i]) != draws {
			t.Errorf("%s: another seed changes the result: %v, want %v", cfg.Policies[i], a[i] != c[i], draws)
		}
	}
}

func TestASimulationStopsWhenTheContextDoes(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cfg := DefaultConfig()
	cfg.Trace.Synth.Jobs = 500
	cfg.Policies = []string{"fifo"}
	stop := writerFunc(func(p []byte) (int, error) { cancel(); return len(p), nil })
	_, err := Run(ctx, cfg, Hooks{Events: stop})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	broken := errors.New("no room")
	_, err = Run(t.Context(), cfg, Hooks{Events: writerFunc(func([]byte) (int, error) { return 0, broken })})
	if _, input := errors.AsType[*fault.Mistake](err); !errors.Is(err, broken) || input {
		t.Errorf("got %v, want the writer's failure, which is not the user's mistake", err)
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestTable(t *testing.T) {
	cfg := smallConfig(t)
	cfg.Trace.File = file(t, "small.csv", strings.ReplaceAll(small, ",10,1", ",1000,1"))
	cfg.Policies = []string{"fifo", "srtf"}
	report, err := Run(t.Context(), cfg, Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	report.Info.File = "small.csv" // not the test's folder
	var got bytes.Buffer
	if err := report.WriteTable(&got); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "table.txt")
	if *update {
		if err := os.MkdirAll("testdata", 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
}

func TestUnitsSuitTheSmallestValue(t *testing.T) {
	for _, c := range []struct {
		seconds []float64
		unit    string
		cells   string
	}{
		{[]float64{1, 90}, " (s)", "1.00 90.00"},
		{[]float64{120, 3600}, " (min)", "2.00 60.00"},
		{[]float64{7200, 720000}, " (h)", "2.00 200.00"},
		{[]float64{0, 864000}, " (d)", "0.0 10.0"},
		{[]float64{0, 0}, " (s)", "0 0"},
		{[]float64{.25}, " (s)", "0.250"},
	} {
		unit, cells := timeCells(c.seconds)
		if unit != c.unit || strings.Join(cells, " ") != c.cells {
			t.Errorf("%v: %v%s, want %s%s", c.seconds, cells, unit, c.cells, c.unit)
		}
	}
}

func BenchmarkSimulate(b *testing.B) {
	cfg := oracleConfig()
	cfg.Policies = []string{"fifo", "sjf", "srtf"}
	jobs := 0
	b.ReportAllocs()
	for b.Loop() {
		report, err := Run(b.Context(), cfg, Hooks{})
		if err != nil {
			b.Fatal(err)
		}
		jobs += len(report.Runs) * report.Info.Jobs
	}
	b.ReportMetric(float64(jobs)/b.Elapsed().Seconds(), "jobs/s")
}
