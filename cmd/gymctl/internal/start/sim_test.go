package start_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
)

// The documented keys of gymctl sim --json, in order.
var simKeys = strings.Fields(`policy admission placement backfill estimates rung trace trace.file trace.format trace.jobs trace.refused
cluster cluster.name cluster.nodes cluster.gpus metrics metrics.finished metrics.unfinished metrics.makespan_s
metrics.jct_s metrics.jct_s.mean metrics.jct_s.p50 metrics.jct_s.p90 metrics.jct_s.p99 metrics.jct_s.max
metrics.first_wait_s metrics.first_wait_s.mean metrics.first_wait_s.p50 metrics.first_wait_s.p90 metrics.first_wait_s.p99 metrics.first_wait_s.max
metrics.wait_s metrics.wait_s.mean metrics.wait_s.p50 metrics.wait_s.p90 metrics.wait_s.p99 metrics.wait_s.max
metrics.bounded_slowdown metrics.bounded_slowdown.mean metrics.bounded_slowdown.p50 metrics.bounded_slowdown.p90 metrics.bounded_slowdown.p99 metrics.bounded_slowdown.max
metrics.slowdown metrics.slowdown.mean metrics.slowdown.p50 metrics.slowdown.p90 metrics.slowdown.p99 metrics.slowdown.max
metrics.gpu_utilization metrics.effective_utilization metrics.communication_share metrics.preemptions metrics.migrations
metrics.finish_time_fairness metrics.finish_time_fairness.mean metrics.finish_time_fairness.p50 metrics.finish_time_fairness.p90 metrics.finish_time_fairness.p99 metrics.finish_time_fairness.max
metrics.jain_index
metrics.queue_length metrics.queue_length.mean metrics.queue_length.p50 metrics.queue_length.p90 metrics.queue_length.p99 metrics.queue_length.max
metrics.fragmentation metrics.deadlines metrics.deadline_misses metrics.dropped metrics.failures metrics.lost_s events wall_s`)

func TestSimDocument(t *testing.T) {
	t.Chdir(t.TempDir())
	clitest.Write(t, "jobs.csv", clitest.Jobs)
	out := clitest.Must(t, "sim", "--trace", "jobs.csv", "--cluster", "pool:2", "--policy", "sjf", "--json")
	if strings.Count(out, "\n") != 1 {
		t.Errorf("more than one line: %q", out)
	}
	if got := strings.Join(clitest.Keys(t, out), "\n"); got != strings.Join(simKeys, "\n") {
		t.Errorf("keys\n%s\nwant\n%s", got, strings.Join(simKeys, "\n"))
	}
	var d struct {
		Policy, Admission, Placement, Backfill, Estimates string
		Metrics                                           struct {
			JCT struct{ Mean float64 } `json:"jct_s"`
		}
	}
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatal(err)
	}
	// a runs at once and ends at 100; b and c each wait 95 s for it and run for 10 s.
	if d.Policy != "sjf" || d.Admission != "strict" || d.Placement != "first-fit" || d.Backfill != "none" ||
		d.Estimates != "history" ||
		d.Metrics.JCT.Mean != 310./3 {
		t.Errorf("got %+v", d)
	}
	out = clitest.Must(t, "sim", "--trace", "jobs.csv", "--cluster", "pool:2", "--policy", "sjf,fifo+skip", "--json")
	var many struct {
		Runs []json.RawMessage `json:"runs"`
	}
	clitest.Strict(t, out, &many)
	if len(many.Runs) != 2 {
		t.Fatalf("%d runs", len(many.Runs))
	}
	for i, r := range many.Runs {
		want := slices.Clone(simKeys)
		if i == 1 { // fifo
			want = slices.Insert(want, slices.Index(want, "rung")+1, "asks_nothing")
		}
		if got := strings.Join(clitest.Keys(t, string(r)), "\n"); got != strings.Join(want, "\n") {
			t.Errorf("keys\n%s", got)
		}
	}
}

func TestSimGivesThePublishedMeans(t *testing.T) {
	trace := filepath.Join("..", "..", "..", "..", "..", "shared", "groundtruth", "philly_2869ce_all.csv.gz")
	if _, err := os.Stat(trace); err != nil {
		t.Skip("the published workload is not at hand: looked for in ../shared, beside this repository, of which it is no part")
	}
	for policy, want := range map[string]string{
		"fifo": "841484.616114", "fifo+skip": "387281.428910", "sjf": "366117.613744", "sjf+skip": "306328.296209",
		"srtf": "232178.016588",
	} {
		out := clitest.Must(t, "sim", "--trace", trace, "--cluster", "pool:48", "--policy", policy, "--estimates", "exact",
			"--json")
		var d struct {
			Metrics struct {
				JCT struct{ Mean json.Number } `json:"jct_s"`
			}
		}
		if err := json.Unmarshal([]byte(out), &d); err != nil {
			t.Fatal(err)
		}
		v, err := d.Metrics.JCT.Mean.Float64()
		if err != nil {
			t.Fatal(err)
		}
		if got := sixDecimals(v); got != want {
			t.Errorf("%s: mean JCT %s, want %s", policy, got, want)
		}
	}
}

func sixDecimals(v float64) string {
	b, err := json.Marshal(int64(v*1e6 + .5))
	if err != nil {
		return err.Error()
	}
	s := string(b)
	return s[:len(s)-6] + "." + s[len(s)-6:]
}

func TestSimTakesTheTraceAsItsArgument(t *testing.T) {
	t.Chdir(t.TempDir())
	clitest.Write(t, "jobs.csv", clitest.Jobs)
	wall := regexp.MustCompile(`"wall_s":[0-9.e-]+`)
	flag := clitest.Must(t, "sim", "--trace", "jobs.csv", "--cluster", "pool:2", "--policy", "sjf", "--json")
	argument := clitest.Must(t, "sim", "jobs.csv", "--cluster", "pool:2", "--policy", "sjf", "--json")
	if wall.ReplaceAllString(argument, "") != wall.ReplaceAllString(flag, "") {
		t.Errorf("as an argument %s, as --trace %s", argument, flag)
	}
	for args, want := range map[string]string{
		"jobs.csv --trace jobs.csv --cluster pool:2": `sim: got the trace "jobs.csv" and --trace "jobs.csv", want one of them`,
		"sjf --cluster pool:2":                       `sim: there is no file "sjf"; want the FILE of a trace (policies follow --policy, clusters --cluster)`,
		". --cluster pool:2":                         "trace .: this is a folder, a file is wanted",
		"get:phily-jobs --cluster pool:2":            `public trace "phily-jobs" is unknown; did you mean philly-jobs?`,
	} {
		code, out, said := clitest.Run(t, append([]string{"sim"}, strings.Fields(args)...)...)
		if code != cli.ExitMistake || out != "" || !strings.HasPrefix(said, "gymctl: "+want) ||
			strings.Count(said, "\n") != 1 {
			t.Errorf("gymctl sim %s: exit code %d, printed %q, said %q; want %s", args, code, out, said, want)
		}
	}
}

func TestSimMistakes(t *testing.T) {
	clitest.OneGoroutine(t)
	t.Chdir(t.TempDir())
	clitest.Write(t, "jobs.csv", clitest.Jobs)
	clitest.Write(t, "back.csv", "submit_time,duration,num_gpu\n9,1,1\n5,1,1\n")
	clitest.Write(t, "negative.csv", "submit_time,duration,num_gpu\n0,1,1\n-5,1,1\n")
	clitest.Write(t, "nan.csv", "submit_time,duration,num_gpu\n0,NaN,1\n")
	clitest.Write(t, "short.csv", "submit_time,duration,num_gpu\n0,1\n")
	clitest.Write(t, "share.csv", "submit_time,duration,num_gpu\n0,1,1.5\n")
	clitest.Write(t, "big.csv", "job_id,submit_time,duration,num_gpu\nx,0,1,9\ny,1,1,1\n")
	clitest.Write(t, "words.txt", "hello world\n")
	clitest.Write(t, "half.csv.gz", "\x1f\x8b\x08\x00")
	clitest.Write(t, "bad.yaml", "racks:\n  - nodes:\n      - gpus: -3\n        cpu: 4\nspeed: {}\n")
	for _, c := range []struct {
		args  string
		lines []string // each must be one line of the output on standard error
	}{
		{"--trace none.csv --cluster 4x4", []string{"trace none.csv: there is no such file"}},
		{"--trace . --cluster 4x4", []string{"trace .: this is a folder, a file is wanted"}},
		{"--trace jobs.csv", []string{"--cluster is missing; want a preset, a YAML file, "}},
		{"--trace= --cluster 4x4", []string{`--trace: got "", want FILE`}},
		{"--trace back.csv --cluster 4x4", []string{`back.csv:3: submit_time: got "5", want 9 or later, `}},
		{"--trace negative.csv --cluster 4x4", []string{`negative.csv:3: submit_time: got "-5", want `}},
		{"--trace nan.csv --cluster 4x4", []string{`nan.csv:2: duration: got "NaN", want `}},
		{"--trace short.csv --cluster 4x4", []string{`short.csv:2: got "2 fields", want 3, as in the header`}},
		{"--trace share.csv --cluster 4x4", []string{`share.csv:2: num_gpu: got "1.5", want `}},
		{"--trace words.txt --cluster 4x4",
			[]string{`trace words.txt: its first line, "hello world", is of no known format; known are csv, acme, `}},
		{"--trace half.csv.gz --cluster 4x4", []string{"trace half.csv.gz: the gzip stream is cut short or damaged"}},
		{"--trace big.csv --cluster 2x4 --fail-refused",
			[]string{
				"1 of 2 jobs can never fit cluster 2x4 (8 GPUs): x; the largest asks for 9 GPUs; want a cluster that holds them, or no --fail-refused"}},
		{"--trace big.csv --cluster pool:0", []string{`cluster: got "pool:0", want numbers above 0`}},
		{"--policy srtf --backfill easy", []string{`--backfill: got "easy", want none: srtf stops running jobs`}},
		{"--policy fifo+skip+easy", []string{`--policy: got fifo+skip+easy, want none with admission skip`}},
		{"--policy srtf+commit", []string{`--policy: got srtf+commit, want strict or skip: srtf stops running jobs`}},
		{"--jobs 100 --policy exact",
			[]string{"exact: 100 jobs are too many to search all schedules, want at most 64 (--jobs 64)"}},
		{"--jobs 9 --set simulator.overhead.start=-1s",
			[]string{"--set simulator.overhead.start: got -1s, want a time, 0s to "}},
		{"--jobs 9 --set simulator.color=red", []string{`--set "simulator.color=red": `}},
		{"--jobs 9 --comm ring", []string{"comm ring needs to know the models of gangs, and 2 of 9 jobs in synth:philly"}},
		{"--jobs 9 --interference none.csv", []string{"profiles none.csv: there is no such file or folder"}},
		{"--jobs 9 --cluster pool:9 --mtbf 1h", []string{"failures.mtbf: "}},
		{"--trace jobs.csv --cluster phily-192", []string{`cluster "phily-192" is unknown; did you mean philly-192?`}},
		{"--trace jobs.csv --cluster none.yaml", []string{"cluster file none.yaml: there is no such file"}},
		{"--trace jobs.csv --cluster bad.yaml", []string{"bad.yaml:3: racks[0].nodes[0].gpus: got -3, want 0 to 1024",
			"bad.yaml:4: racks[0].nodes[0].cpu: unknown key; did you mean cpus?",
			"bad.yaml:5: speed: unknown key; did you mean speeds?"}},
		{"--policy sfj --placement up --comm x --warmup -1",
			[]string{`--policy: got "sfj", want ORDER, `, `--placement: got "up", want one of `,
				`--comm: got "x", want `, `--warmup: got -1, want a number of jobs, 0 or more`}},
		{"--policy fifo --admission never", []string{`--admission: got "never", want one of strict, skip, commit`}},
		{"--policy fifo,sjf,srtf --estimates none",
			[]string{
				`--estimates: got "none", want trace, history, gbdt, exact or noisy:SIGMA, as order sjf ranks by run times`}},
		{"--estimates rumours",
			[]string{
				`--estimates: got "rumours", want none, trace, history, gbdt, gbdt:FILE, exact or noisy:SIGMA with SIGMA from 0 to 10`}},
		{"--policy sjf --estimates gbdt:none.bin --jobs 10", []string{"model none.bin: there is no such file"}},
		{"--policy sjf --estimates trace --jobs 10",
			[]string{"policy sjf+strict looks at estimated run times, and 10 of 10 jobs"}},
		{"--policy fifo,sjf --events e.jsonl", []string{"events can be written for one policy at a time, not for fifo,sjf"}},
		{"--jobs 10 --events no/where.jsonl", []string{"output file no/where.jsonl: there is no folder no"}},
		{"--jobs 10 --events -", []string{`--events: got "-", want the path of a file`}},
		{"--jobs 10 --warmup 6 --tail 4", []string{"warmup 6 and tail 4 leave none of the 10 jobs to count"}},
		{"--trace jobs.csv --cluster 4x4 --skip 3", []string{"trace jobs.csv: there are no jobs to read after the first 3"}},
		{"--format xls", []string{`--format: got "xls", want one of auto, csv, acme, `}},
		{"--jobs -1", []string{`--jobs: got -1, want `}},
		{"--horizon -1h", []string{`--horizon: got -1h0m0s, want `}},
	} {
		code, out, said := clitest.Run(t, append([]string{"sim"}, strings.Fields(c.args)...)...)
		lines := strings.Split(strings.TrimSuffix(said, "\n"), "\n")
		ok := code == cli.ExitMistake && out == "" && len(lines) == len(c.lines)
		for i := range min(len(lines), len(c.lines)) {
			ok = ok && strings.HasPrefix(lines[i], "gymctl: "+c.lines[i])
		}
		if !ok {
			t.Errorf("gymctl sim %s: exit code %d, printed %q, said\n%s\nwant 2, nothing, and\n%s", c.args, code, out, said,
				strings.Join(c.lines, "\n"))
		}
	}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 10 {
		t.Errorf("a mistake left something behind: %v", entries)
	}
}

func TestSimNotesGoToStandardError(t *testing.T) {
	t.Chdir(t.TempDir())
	clitest.Write(t, "jobs.csv", clitest.Jobs+"d,6,10,40\n")
	clitest.Wrong(t, []string{"sim", "jobs.csv", "--cluster", "pool:2"}, "65 % of its GPU time cannot run on cluster pool:2",
		"to go without it use --accept-left-out")
	code, out, said := clitest.Run(t, "sim", "--trace", "jobs.csv", "--cluster", "pool:2", "--horizon", "102s", "--json",
		"--accept-left-out")
	if code != cli.ExitDone || said !=
		"gymctl: 1 of 4 jobs (25 %), 65 % of the GPU time, refused, because cluster pool:2 can never hold them: d\n"+
			"gymctl: fifo+strict: 2 jobs unfinished at the horizon of 1m42s: b, c\n" {
		t.Errorf("exit code %d, said %q", code, said)
	}
	if !strings.Contains(out, `"jobs":4,"refused":1`) || !strings.Contains(out, `"finished":1,"unfinished":2`) {
		t.Errorf("printed %s", out)
	}
}

func TestSimRepeats(t *testing.T) {
	t.Chdir(t.TempDir())
	wall := regexp.MustCompile(`"wall_s":[0-9.e-]+`)
	args := []string{"sim", "--jobs", "400", "--cluster", "4x8", "--policy", "random+skip", "--estimates", "noisy:1",
		"--json", "--events"}
	a := wall.ReplaceAllString(clitest.Must(t, append(args, "a.jsonl")...), "")
	b := wall.ReplaceAllString(clitest.Must(t, append(args, "b.jsonl")...), "")
	if a != b || clitest.Read(t, "a.jsonl") != clitest.Read(t, "b.jsonl") {
		t.Error("two runs with the same flags differ")
	}
	c := wall.ReplaceAllString(clitest.Must(t, append(args, "c.jsonl", "--seed", "2")...), "")
	if a == c || clitest.Read(t, "a.jsonl") == clitest.Read(t, "c.jsonl") {
		t.Error("another seed changes nothing")
	}
}

func TestEventsReplaceAFileOnlyWhenTheRunIsDone(t *testing.T) {
	t.Chdir(t.TempDir())
	clitest.Write(t, "jobs.csv", clitest.Jobs)
	clitest.Write(t, "events.jsonl", "old\n")
	if code, _, said := clitest.Run(t, "sim", "--trace", "jobs.csv", "--cluster", "pool:1", "--fail-refused", "--events",
		"events.jsonl"); code != cli.ExitMistake {
		t.Fatalf("exit code %d: %s", code, said)
	}
	if got := clitest.Read(t, "events.jsonl"); got != "old\n" {
		t.Errorf("a run that failed wrote %q over the old events", got)
	}
	clitest.Must(t, "sim", "--trace", "jobs.csv", "--cluster", "pool:2", "--events", "events.jsonl")
	if got := clitest.Read(t, "events.jsonl"); strings.Count(got, "\n") != 9 ||
		!strings.HasPrefix(got, `{"t_s":0,"event":"submit","job":"a","gpus":[]}`) {
		t.Errorf("events %q", got)
	}
}

func TestSimTable(t *testing.T) {
	out := clitest.Must(t, "sim", "--policy", "fifo,sjf+skip,srtf", "--jobs", "200")
	for _, want := range []string{"workload   synth:philly (seed 1): 200 jobs",
		"\nestimates  history (causal), as not all jobs have a requested time\n",
		"cluster    philly-192: 36 nodes, 192 GPUs", "\nfifo+strict ", "\nsjf+skip ", "\nsrtf+skip "} {
		if !strings.Contains(out, want) {
			t.Errorf("the table lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "\x1b") {
		t.Error("colours in a pipe")
	}
}
