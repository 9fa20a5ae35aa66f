package sacct

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"clustergym/traces"
	"clustergym/traces/csv"
)

func read(tb testing.TB, text string) ([]traces.Job, *Reader, error) {
	tb.Helper()
	d, err := NewReader(strings.NewReader(text), "t.txt", Options{})
	if err != nil {
		return nil, nil, err
	}
	jobs, err := traces.ReadAll(d)
	return jobs, d, err
}

const (
	sec  = time.Second
	hour = time.Hour
	long = "JobID|JobName|User|Account|Partition|QOS|Submit|Eligible|Start|End|Elapsed|ElapsedRaw|Timelimit|TimelimitRaw|State|AllocTRES|ReqTRES|ReqGRES|NNodes|AllocCPUS|NCPUS|ReqMem\n"
)

// made is made up: every kind of row that a cluster's accounting has.
const made = long +
	`100|train "x"|ann|lab|gpu|normal|2024-03-01T12:00:00|2024-03-01T12:00:00|2024-03-01T12:05:00|2024-03-01T13:35:00|01:30:00|5400|1-00:00:00|1440|COMPLETED|billing=8,cpu=8,gres/gpu=2,gres/gpu:a100=2,mem=64G,node=1|billing=8,cpu=8,gres/gpu=2,mem=64G,node=1||1|8|8|64G
100.batch|batch|||||2024-03-01T12:05:00||2024-03-01T12:05:00|2024-03-01T13:35:00|01:30:00|5400|||COMPLETED|cpu=8,gres/gpu=2,mem=64G,node=1|||1|8|8|
100.extern|extern|||||2024-03-01T12:05:00||2024-03-01T12:05:00|2024-03-01T13:35:00|01:30:00|5400|||COMPLETED||||1|8|8|
100.0|python|||||2024-03-01T12:05:01||2024-03-01T12:05:00|2024-03-01T13:35:00|01:30:00|5400|||COMPLETED||||1|8|8|
101_4|array|bob|lab|gpu|normal|2024-03-01T12:01:00|2024-03-01T12:01:00|2024-03-01T12:05:00|2024-03-01T12:05:07|00:00:07|7|UNLIMITED||FAILED|cpu=1,gres/gpu=1,mem=512M,node=1|cpu=1,gres/gpu:v100=1,gres/gpu=1,mem=512M||1|1|1|512M
101_[5-9%2]|array|bob|lab|gpu|normal|2024-03-01T12:01:00|2024-03-01T12:01:00|Unknown|Unknown|00:00:00|0|UNLIMITED||PENDING||cpu=1,gres/gpu:v100=1|||1|1|512M
102|cpu|ann|lab|cpu|normal|2024-03-01T11:59:00|2024-03-01T11:59:00|2024-03-01T12:00:00|2024-03-03T12:00:01|2-00:00:01|172801|Partition_Limit||TIMEOUT|billing=4,cpu=4,mem=8000M,node=1|cpu=4,mem=8000M||1|4|4|8000M
103|gone|ann|lab|gpu|normal|2024-03-01T12:02:00|2024-03-01T12:02:00|None|2024-03-01T12:03:00|00:00:00|0|01:00:00|60|CANCELLED by 1000||gres/gpu=8||1|8|8|
104|stop|ann|lab|gpu|normal|2024-03-01T12:02:30|2024-03-01T12:02:30|2024-03-01T12:03:00|2024-03-01T12:03:30|00:00:30|30|01:00:00|60|CANCELLED by 0|cpu=8,gres/gpu:a100=3,gres/gpu:v100=1,node=2|||2|8|8|
105|now|ann|lab|gpu|normal|2024-03-01T12:02:40|2024-03-01T12:02:40|2024-03-01T12:03:00|Unknown|10:00:00|36000|01:00:00|60|RUNNING|cpu=8,gres/gpu=4|||2|8|8|
106|old|cy|lab|gpu|normal|2024-03-01T12:02:50|2024-03-01T12:02:50|2024-03-01T12:03:00|2024-03-01T12:03:09|00:00:09|9|01:00:00|60|OUT_OF_MEMORY|||gres:gpu:v100:4|2|16|16|1000Mc
107+0|het|cy|lab|gpu|normal|2024-03-01T12:03:00|2024-03-01T12:03:00|2024-03-01T12:04:00|2024-03-01T12:05:00|00:01:00|60|00:02:00|2|COMPLETED|cpu=2,gres/gpu=1,mem=1G,node=1|cpu=2,gres/gpu:a100=1,mem=1G,node=1||1|2|2|1G
107+1|het|cy|lab|gpu|normal|2024-03-01T12:03:00|2024-03-01T12:03:00|2024-03-01T12:04:00|2024-03-01T12:04:30|00:00:30|30|00:03:00|3|FAILED|cpu=4,gres/gpu=3,mem=2.50G,node=1|cpu=4,gres/gpu:v100=3,mem=2.50G,node=1||1|4|4|2560M
107+0.batch|batch|||||2024-03-01T12:04:00||2024-03-01T12:04:00|2024-03-01T12:05:00|00:01:00|60|||COMPLETED||||1|2|2|
108|again|cy|lab|gpu|low|2024-03-01T12:20:00|2024-03-01T12:20:00|2024-03-01T12:30:00|2024-03-01T12:40:00|00:05:00|300|00:10:00|10|COMPLETED|cpu=2,gres/gpu=1,node=1|||1|2|2|
108|again|cy|lab|gpu|low|2024-03-01T12:03:30|2024-03-01T12:03:30|2024-03-01T12:04:00|2024-03-01T12:20:00|00:16:00|960|00:10:00|10|REQUEUED|cpu=4,gres/gpu=2,node=1|||1|4|4|
109|again|cy|lab|gpu|low|2024-03-01T12:03:40|2024-03-01T12:03:40|2024-03-01T12:04:00|2024-03-01T12:20:00|00:16:00|960|00:10:00|10|NODE_FAIL|cpu=4,gres/gpu=2,node=1|||1|4|4|
109|again|cy|lab|gpu|low|2024-03-01T12:20:00|2024-03-01T12:20:00|Unknown|Unknown|00:00:00|0|00:10:00|10|PENDING||gres/gpu=2||1|4|4|
110|blink|cy|lab|gpu|low|2024-03-01T12:03:50|2024-03-01T12:03:50|2024-03-01T12:04:00|2024-03-01T12:04:00|00:00:00|0|00:10:00|10|PREEMPTED|cpu=4,gres/gpu=2,node=1|||1|4|4|
`

func wanted() []traces.Job {
	job := func(id, user, vc, name string, submit, work, estimate time.Duration, gpus int, cores, mem int64,
		status traces.Status, types ...string) traces.Job {
		return traces.Job{ID: id, User: user, VC: vc, Name: name, Group: "lab", Submit: submit, Work: work,
			Estimate: estimate, GPUs: gpus, GPUMilli: 1000, CPUMilli: cores * 1000, MemBytes: mem, Status: status,
			GPUTypes: types}
	}
	return []traces.Job{
		job("102", "ann", "cpu", "cpu", 0, 48*hour+sec, 0, 0, 4, 8000<<20, traces.Failed),
		job("100", "ann", "gpu", `train "x"`, 60*sec, 90*60*sec, 24*hour, 2, 8, 64<<30, traces.Completed),
		job("101_4", "bob", "gpu", "array", 120*sec, 7*sec, 0, 1, 1, 512<<20, traces.Failed, "v100"),
		job("104", "ann", "gpu", "stop", 210*sec, 30*sec, hour, 4, 8, 0, traces.Cancelled),
		job("106", "cy", "gpu", "old", 230*sec, 9*sec, hour, 8, 16, 16*1000<<20, traces.Failed, "v100"),
		job("107", "cy", "gpu", "het", 240*sec, 60*sec, 180*sec, 4, 6, 3584<<20, traces.Completed, "a100", "v100"),
		job("108", "cy", "gpu", "again", 270*sec, 1260*sec, 600*sec, 1, 2, 0, traces.Completed),
	}
}

func TestReadsWhatSacctPrints(t *testing.T) {
	trailing := strings.ReplaceAll(made, "\n", "|\n") // sacct -p
	for name, text := range map[string]string{
		"-P": made, "-p": trailing, "CR LF": strings.ReplaceAll(made, "\n", "\r\n"), "order mark": "\ufeff" + made,
		"other capitals":     strings.Replace(made, "AllocTRES|ReqTRES", "AllocTres|ReqTres", 1),
		"another delimiter":  strings.ReplaceAll(made, "|", ";"),
		"a tab":              strings.ReplaceAll(made, "|", "\t"),
		"a zone":             stamp.ReplaceAllString(made, "${0}+01:00"),
		"elapsed alone":      without(made, "ElapsedRaw", "TimelimitRaw"),
		"numbers alone":      without(made, "Elapsed", "Start", "NCPUS", "ReqMem") + "",
		"without the unused": without(made, "QOS", "Eligible"),
		"without names":      without(made, "JobName", "Account", "QOS", "Eligible"),
		"the states' short names": strings.NewReplacer("|COMPLETED|", "|CD|", "|PENDING|", "|PD|", "|RUNNING|", "|R|",
			"|TIMEOUT|", "|TO|", "|CANCELLED by 1000|", "|CANCELLED+|").Replace(made),
		"cores of resources alone": without(made, "NCPUS", "AllocCPUS"),
	} {
		jobs, d, err := read(t, text)
		want, skips := wanted(), []traces.Skip{{Reason: NeverStarted, Count: 2}, {Reason: NotEnded, Count: 2},
			{Reason: NoRunTime, Count: 1}}
		switch name {
		case "numbers alone":
			want[4].MemBytes = 0 // it had no resources but ReqMem
			skips = []traces.Skip{{Reason: NeverStarted, Count: 1}, {Reason: NoRunTime, Count: 2}, {Reason: NotEnded, Count: 2}}
		case "cores of resources alone":
			want[4].CPUMilli, want[4].MemBytes = 0, 0 // likewise
		case "without names":
			for i := range want {
				want[i].Name, want[i].Group = "", ""
			}
		}
		if d != nil {
			if n, g := d.Named(); n != (want[0].Name != "") || g != (want[0].Group != "") {
				t.Errorf("%s: names %v, groups %v", name, n, g)
			}
		}
		if err != nil || !reflect.DeepEqual(unstarted(jobs), want) {
			t.Errorf("%s: %v\n%+v\nwant\n%+v", name, err, jobs, want)
			continue
		}
		if !slices.Equal(d.Skipped(), skips) || d.Moved() == 0 {
			t.Errorf("%s: left out %v, want %v; %d moved", name, d.Skipped(), skips, d.Moved())
		}
		if !Sniff([]byte(text)) {
			t.Errorf("%s: not recognised", name)
		}
	}
}

// A heterogeneous job has the name of its first component, a requeued one that of its last run. Jobs share the strings.
func TestNamesAndAccountsOfJobs(t *testing.T) {
	jobs, _, err := read(t, `JobID|JobName|Account|Submit|ElapsedRaw|AllocTRES
1+1|second|b|2024-03-01T12:00:00|60|gres/gpu=1
1+0|first|a|2024-03-01T12:00:00|60|gres/gpu=1
2|old|a|2024-03-01T12:00:00|60|gres/gpu=1
2|new|b|2024-03-01T12:10:00|60|gres/gpu=1
3|first||2024-03-01T12:10:00|60|gres/gpu=1
4|||2024-03-01T12:10:00|60|gres/gpu=1
5|new|b|2024-03-01T12:10:00|60|gres/gpu=1
`)
	if err != nil || len(jobs) != 5 {
		t.Fatalf("%v, %d jobs", err, len(jobs))
	}
	for i, want := range [][2]string{{"first", "a"}, {"new", "b"}, {"first", ""}, {"", ""}, {"new", "b"}} {
		if jobs[i].Name != want[0] || jobs[i].Group != want[1] {
			t.Errorf("job %s: name %q, account %q, want %q", jobs[i].ID, jobs[i].Name, jobs[i].Group, want)
		}
	}
	if unsafe.StringData(jobs[1].Name) != unsafe.StringData(jobs[4].Name) ||
		unsafe.StringData(jobs[1].Group) != unsafe.StringData(jobs[4].Group) {
		t.Error("jobs do not share their names")
	}
	if Sniff([]byte("JobID|JobName|Account|Size\n")) {
		t.Error("names alone are taken for sacct's")
	}
}

// Without ElapsedRaw and Elapsed, suspensions count as run time.
func TestRunTimesFromStartToEnd(t *testing.T) {
	jobs, _, err := read(t, without(made, "ElapsedRaw", "Elapsed"))
	if err != nil || len(jobs) != 7 {
		t.Fatal(err, len(jobs))
	}
	for i, want := range wanted() {
		if want.ID == "108" {
			want.Work = 26 * 60 * sec
		}
		if want.ID == "100" || want.ID == "108" {
			if jobs[i].Work != want.Work {
				t.Errorf("%s: %v, want %v", want.ID, jobs[i].Work, want.Work)
			}
		}
	}
	jobs, _, err = read(t,
		"JobID|Submit|Start|End|AllocTRES\n1|2024-10-27T02:50:00|2024-10-27T02:50:00|2024-10-27T02:10:00|\n")
	if err != nil || jobs[0].Work != 20*60*sec {
		t.Errorf("%v, %+v: the hour that occurs twice", err, jobs)
	}
}

func TestGPUsOfARow(t *testing.T) {
	for _, c := range []struct {
		alloc, req, gres string
		nodes            int
		gpus             int
		types            string
	}{
		{"", "", "", 1, 0, ""},
		{"cpu=1,mem=1G", "", "", 1, 0, ""},
		{"gres/gpu=2,gres/gpu:a100=2", "", "", 1, 2, ""},
		{"gres/gpu:a100=2", "", "", 1, 2, ""},
		{"gres/gpu:a100=2,gres/gpu:v100=1", "", "", 1, 3, ""},
		{"gres/gpu=2", "gres/gpu:a100=2,gres/gpu=2", "", 1, 2, "a100"},
		{"gres/gpu=2", "gres/gpu=8", "", 1, 2, ""},
		{"", "gres/gpu=8", "", 1, 8, ""},
		{"gres/gpu=0", "gres/gpu=8", "", 1, 8, ""},
		{"cpu=1", "", "gpu:2", 3, 6, ""},
		{"", "", "gpu", 3, 3, ""},
		{"", "", "gres:gpu:v100:4", 2, 8, "v100"},
		{"", "", "PER_NODE:gres:gpu:4(S:0-1)", 2, 8, ""},
		{"", "", "PER_JOB:gres:gpu:4", 2, 4, ""},
		{"", "", "gres/gpu:4", 2, 8, ""},
		{"", "", "gpu:v100", 2, 2, "v100"},
		{"", "", "craynetwork:1,gpu:a100:1,gpu:v100:2", 2, 6, "a100 v100"},
		{"", "", "craynetwork:1", 2, 0, ""},
		{"gres/gpu=1", "", "gpu:8", 2, 1, ""},
		{"gres/gpumem=80G,gres/gpuutil=5,gres/shard=4,license/x=1", "", "", 1, 0, ""},
		{"gres/gpu:1g.5gb=1", "gres/gpu:1g.5gb=1", "", 1, 1, "1g.5gb"},
		{"gres/gpu=4K", "", "", 1, -1, ""},
		{"gres/gpu=-1", "", "", 1, -1, ""},
		{"gres/gpu", "", "", 1, -1, ""},
		{"mem=x", "", "", 1, -1, ""},
		{"", "", "PER_TASK:gres:gpu:1", 1, -1, ""},
		{"", "", "gpu:v100:many", 1, -1, ""},
		{"", "", "gpu:2", 0, -1, ""},
		{"", "", "gpu:1073741824", 2, -1, ""},
	} {
		jobs, _, err := read(t,
			fmt.Sprintf(
				"JobID|Submit|ElapsedRaw|State|AllocTRES|ReqTRES|ReqGRES|NNodes\n7|2024-03-01T12:00:00|5|COMPLETED|%s|%s|%s|%d\n",
				c.alloc, c.req, c.gres, c.nodes))
		if c.gpus < 0 {
			var re *traces.RowError
			if !errors.As(err, &re) || re.Line != 2 {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if err != nil || jobs[0].GPUs != c.gpus || strings.Join(jobs[0].GPUTypes, " ") != c.types {
			t.Errorf("%+v: %v, %+v", c, err, jobs)
		}
	}
}

func TestMemory(t *testing.T) {
	for text, want := range map[string]int64{"64G": 64 << 30, "65536M": 64 << 30, "65536": 64 << 30,
		"187.50G": 187.5 * (1 << 30), "1T": 1 << 40, "2048K": 2 << 20, "0": 0, "0.001P": 1 << 50 / 1000, "64g": 64 << 30,
		"x": -1, "": -1, "-1G": -1, "64GB": -1, "9000000P": -1, "G": -1} {
		if got, ok := memory([]byte(text)); ok != (want >= 0) || ok && got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, ok, want)
		}
	}
	for text, want := range map[string]int64{"4Gn": 8 << 30, "100Mc": 600 << 20, "4G": 4 << 30, "0n": 0, "": 0} {
		jobs, _, err := read(t,
			"JobID|Submit|ElapsedRaw|AllocTRES|ReqMem|NNodes|NCPUS\n7|2024-03-01T12:00:00|5||"+text+"|2|6\n")
		if err != nil || jobs[0].MemBytes != want {
			t.Errorf("%q: %v, %+v; want %d", text, err, jobs, want)
		}
	}
}

func TestStates(t *testing.T) {
	for text, want := range map[string]traces.Status{"COMPLETED": traces.Completed, "FAILED": traces.Failed,
		"TIMEOUT": traces.Failed, "NODE_FAIL": traces.Failed, "OUT_OF_MEMORY": traces.Failed, "BOOT_FAIL": traces.Failed,
		"DEADLINE": traces.Failed, "CANCELLED": traces.Cancelled, "CANCELLED by 0": traces.Cancelled,
		"PREEMPTED": traces.Cancelled, "REVOKED": traces.Cancelled, "REQUEUED": traces.StatusUnknown,
		"RESIZING": traces.StatusUnknown, "": traces.StatusUnknown, "NEW_STATE": traces.StatusUnknown} {
		jobs, _, err := read(t, "JobID|Submit|ElapsedRaw|AllocTRES|State\n7|2024-03-01T12:00:00|5||"+text+"\n")
		if err != nil || len(jobs) != 1 || jobs[0].Status != want {
			t.Errorf("%q: %v, %+v; want %v", text, err, jobs, want)
		}
	}
	for _, text := range []string{"RUNNING", "SUSPENDED", "PENDING"} {
		jobs, d, err := read(t, "JobID|Submit|ElapsedRaw|AllocTRES|State\n7|2024-03-01T12:00:00|5||"+text+"\n")
		if err != nil || len(jobs) != 0 || len(d.Skipped()) != 1 {
			t.Errorf("%q: %v, %+v", text, err, jobs)
		}
	}
}

func TestFaultsSayWhatSacctIsToPrint(t *testing.T) {
	const head = "JobID|User|Submit|Start|End|Elapsed|Timelimit|AllocTRES|NNodes|NCPUS|Cluster\n"
	row := func(cells string) string {
		return head + "1|a|2024-03-01T12:00:00|2024-03-01T12:00:00|2024-03-01T12:00:01|00:00:01|00:01:00|cpu=1|1|1|c\n" +
			cells + "\n"
	}
	for name, c := range map[string]struct{ text, want string }{
		"empty":       {"", `t.txt:1: got "", want a header with JobID, Submit, Elapsed, AllocTRES`},
		"fixed width": {"       JobID              Submit    Elapsed  AllocTRES \n------------ ------------------- ---------- ---------- \n123          2024-03-01T12:00:00   00:01:00  billing=8+ \n", "t.txt:1: these are columns of fixed width, in which sacct cuts what is too long: run it with -P (--parsable2)"},
		"no GPUs": {"JobID|Submit|Elapsed\n",
			"t.txt:1: no column AllocTRES; add it to sacct's -o (--format), which here was JobID,Submit,Elapsed"},
		"little":   {"JobID|State|Start\n", "t.txt:1: no column Submit, ElapsedRaw, AllocTRES; add it"},
		"no nodes": {"JobID|Submit|Elapsed|ReqGRES\n", "no column NNodes"},
		"an id": {row("x|a|2024-03-01T12:00:00|||00:00:01|||1|1|c"),
			`t.txt:3: JobID: got "x", want a job as 123, 123_4 or 123+1 (steps such as 123.0 are skipped)`},
		"a bar": {row("2|a|b|2024-03-01T12:00:00|2024-03-01T12:00:00|2024-03-01T12:00:01|00:00:01|||1|1|c"),
			`t.txt:3: got "12 fields", want 11, as in the header`},
		"submit": {row("2|a|Ystday 12:00|2024-03-01T12:00:00|2024-03-01T12:00:00|00:00:01|||1|1|c"),
			`t.txt:3: Submit: got "Ystday 12:00", want a time as 2024-03-01T12:00:00 (SLURM_TIME_FORMAT=standard)`},
		"two clocks": {row("2|a|1709294400|2024-03-01T12:00:00|2024-03-01T12:00:00|00:00:01|||1|1|c"),
			`t.txt:3: Submit: got "1709294400", want a time in the form of those before`},
		"elapsed": {row("2|a|2024-03-01T12:00:00|2024-03-01T12:00:00|2024-03-01T12:00:00|1h|||1|1|c"),
			`t.txt:3: Elapsed: got "1h", want a run time as [D-]HH:MM:SS`},
		"limit": {row("2|a|2024-03-01T12:00:00|2024-03-01T12:00:00|2024-03-01T12:00:00|00:00:01|INVALID||1|1|c"),
			`t.txt:3: Timelimit: got "INVALID", want a time as [D-]HH:MM:SS, UNLIMITED or Partition_Limit`},
		"resources": {row("2|a|2024-03-01T12:00:00|2024-03-01T12:00:00|2024-03-01T12:00:00|00:00:01||gres/gpu=x|1|1|c"),
			`t.txt:3: AllocTRES: got "gres/gpu=x", want resources as cpu=8,gres/gpu=2,mem=64G,node=1`},
		"nodes": {row("2|a|2024-03-01T12:00:00|2024-03-01T12:00:00|2024-03-01T12:00:00|00:00:01|||x|1|c"),
			`t.txt:3: NNodes: got "x", want a number of nodes`},
		"cores": {row("2|a|2024-03-01T12:00:00|2024-03-01T12:00:00|2024-03-01T12:00:00|00:00:01|||1|1K|c"),
			`t.txt:3: NCPUS: got "1K", want a number of cores`},
		"reset ids": {row("1|b|2024-03-01T13:00:00|2024-03-01T13:00:00|2024-03-01T13:00:01|00:00:01|||1|1|c"),
			`t.txt:3: User: got "b", want "a", as in an earlier row of job 1 (if Slurm's ids were reset in between, ask for one period at a time with sacct -S and -E)`},
		"two clusters": {row("2|a|2024-03-01T13:00:00|2024-03-01T13:00:00|2024-03-01T13:00:01|00:00:01|||1|1|d"),
			`t.txt:3: Cluster: got "d", want c, as in the rows before (ids of jobs are unique in a cluster only: sacct -M NAME shows one)`},
	} {
		_, _, err := read(t, c.text)
		var re *traces.RowError
		if !errors.As(err, &re) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", name, err, c.want)
		}
	}
}

func TestSniffKnowsOtherTables(t *testing.T) {
	for text, want := range map[string]bool{
		"JobID|Submit|Elapsed\n":                                   true,
		"jobid|submit|state\n":                                     true,
		"JobID,Submit,Elapsed,AllocTRES\n":                         true,
		"\ufeff\nJobID|JobName|State|Start|AllocTRES\n":            true,
		"   JobID    State  Elapsed\n-------- -------- --------\n": true,
		"JobID,Submit,Elapsed\n":                                   false, // of somebody's own
		"job_id,submit_time,duration,num_gpu\n":                    false,
		"JobID State\n1 2\n":                                       false,
		"submit|start|end\n":                                       false,
		"":                                                         false,
		"name,cpu_milli,memory_mib,num_gpu,gpu_milli\np1,4000,512,1,500\n":   false,
		"1 0 0 10 4 -1 -1 4 20 -1 1 1 1 1 1 1 -1 -1\n--------------------\n": false,
	} {
		if Sniff([]byte(text)) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

// A job of drawn runs and components, printed as sacct prints it in any order, is read back, and so is the native file
// of it.
func TestDrawnJobsAreReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var rows []string
		var want []traces.Job
		origin := time.Date(2024, 3, 1, 0, 0, 0, 0, time.UTC)
		for i := range rapid.IntRange(1, 8).Draw(t, "jobs") {
			j := traces.Job{ID: fmt.Sprint(1000 + i), User: fmt.Sprintf("u%d", i%3), VC: "p", GPUMilli: 1000,
				Status: traces.Completed,
				Submit: time.Duration(rapid.IntRange(0,
					1e6).Draw(t, "submit")) * sec, Estimate: time.Duration(rapid.IntRange(0, 99999).Draw(t, "limit")) * time.Minute}
			parts, runs := rapid.IntRange(1, 3).Draw(t, "components"), rapid.IntRange(1, 3).Draw(t, "runs")
			for r := range runs {
				longest := 0
				j.GPUs, j.CPUMilli, j.MemBytes = 0, 0, 0
				for c := range parts {
					id := j.ID
					if parts > 1 {
						id += fmt.Sprintf("+%d", c)
					}
					work, gpus, cores, mem := rapid.IntRange(1,
						1e6).Draw(t, "work"), rapid.IntRange(0, 64).Draw(t, "gpus"), rapid.IntRange(1, 256).Draw(t,
						"cores"), rapid.IntRange(0, 1e6).Draw(t, "mem")
					longest = max(longest, work)
					j.GPUs += gpus
					j.CPUMilli += int64(cores) * 1000
					j.MemBytes += int64(mem) << 20
					state, limit := "COMPLETED", "UNLIMITED"
					if r < runs-1 {
						state = "REQUEUED"
					}
					if j.Estimate > 0 {
						limit = slurm(j.Estimate)
					}
					submit := origin.Add(j.Submit + time.Duration(r)*1e7*sec).Format("2006-01-02T15:04:05")
					rows = append(rows,
						strings.Join([]string{id, j.User, "p", submit, slurm(time.Duration(work) * sec), limit, state,
							fmt.Sprintf("billing=1,cpu=%d,gres/gpu=%d,mem=%dM", cores, gpus, mem)}, "|"),
						id+".batch|||"+submit+"|00:00:01||COMPLETED|cpu=1")
				}
				j.Work += time.Duration(longest) * sec
			}
			want = append(want, j)
		}
		order := rapid.Permutation(rows).Draw(t, "order")
		got, d, err := readT(t,
			"JobID|User|Partition|Submit|Elapsed|Timelimit|State|AllocTRES\n"+strings.Join(order, "\n")+"\n")
		if err != nil || len(d.Skipped()) != 0 {
			t.Fatal(err)
		}
		byID := func(a, b traces.Job) int { return strings.Compare(a.ID, b.ID) }
		first := got[0].Submit
		least := slices.MinFunc(want, func(a, b traces.Job) int { return int(a.Submit - b.Submit) }).Submit
		for i := range want {
			want[i].Submit -= least
		}
		var out strings.Builder
		if _, err := csv.Write(&out, &traces.Slice{Jobs: got}); err != nil || first != 0 {
			t.Fatal(err, first)
		}
		native, err := csv.NewReader(strings.NewReader(out.String()), "t", csv.Options{})
		if err != nil {
			t.Fatal(err)
		}
		again, err := traces.ReadAll(native)
		if err != nil || !reflect.DeepEqual(again, got) {
			t.Fatalf("%v\n%+v\nas csv\n%+v", err, got, again)
		}
		slices.SortFunc(got, byID)
		slices.SortFunc(want, byID)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v\nwant\n%+v\nof\n%s", got, want, strings.Join(order, "\n"))
		}
	})
}

func readT(t *rapid.T, text string) ([]traces.Job, *Reader, error) {
	d, err := NewReader(strings.NewReader(text), "t.txt", Options{})
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := traces.ReadAll(d)
	return jobs, d, err
}

// slurm prints a time as sacct does.
func slurm(d time.Duration) string {
	s := int64(d / sec)
	text := fmt.Sprintf("%02d:%02d:%02d", s/3600%24, s/60%60, s%60)
	if s >= 86400 {
		text = fmt.Sprintf("%d-%s", s/86400, text)
	}
	return text
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(made))
	f.Add([]byte("JobID;Submit;Start;End;ReqGRES;NNodes\n1_2;1709294400;1709294400;1709294401.5;PER_NODE:gres:gpu:2;3\n"))
	f.Add([]byte("JobID|Submit|ElapsedRaw|AllocTRES\n1+0|2024-03-01|9223372036|gres/gpu=1073741824\n1+0|2024-03-02|9223372036|gres/gpu=1073741824\n1+1|2024-03-02|1|gres/gpu=1073741824\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		Sniff(b)
		if d, err := NewReader(strings.NewReader(string(b)), "f", Options{Unended: true}); err == nil {
			for _, j := range d.Jobs() {
				if j.Submit < 0 || j.Work < 0 || j.Open == traces.Ended && j.Work == 0 || j.Nodes < 0 || j.Eligible < 0 {
					t.Fatalf("%+v", j)
				}
			}
		}
		d, err := NewReader(strings.NewReader(string(b)), "f", Options{})
		if err != nil {
			if err.Error() == "" {
				t.Fatal("an error without words")
			}
			return
		}
		jobs, err := traces.ReadAll(d)
		if err != nil {
			t.Fatal(err)
		}
		left := 0
		for _, k := range d.Skipped() {
			left += k.Count
		}
		if len(jobs)+left > len(b) || d.Moved() > len(jobs) {
			t.Fatalf("%d jobs and %d left out of %d bytes", len(jobs), left, len(b))
		}
		seen := map[string]bool{}
		for i, j := range jobs {
			if j.Submit < 0 || i > 0 && j.Submit < jobs[i-1].Submit || j.Work <= 0 || j.Estimate < 0 || j.GPUs < 0 ||
				j.GPUs > traces.MaxGPUs || j.CPUMilli < 0 || j.MemBytes < 0 || j.ID == "" || seen[j.ID] {
				t.Fatalf("%+v", j)
			}
			seen[j.ID] = true
		}
	})
}

var stamp = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:]{8}`)

// without returns the text without some columns.
func without(text string, columns ...string) string {
	var drop []int
	var out strings.Builder
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "|")
		if drop == nil {
			for i, c := range cells {
				if slices.Contains(columns, c) {
					drop = append(drop, i)
				}
			}
		}
		var kept []string
		for i, c := range cells {
			if !slices.Contains(drop, i) {
				kept = append(kept, c)
			}
		}
		out.WriteString(strings.Join(kept, "|") + "\n")
	}
	return out.String()
}
