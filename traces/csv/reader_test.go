package csv

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"clustergym/traces"
)

func read(tb testing.TB, text string, o Options) ([]traces.Job, error) {
	tb.Helper()
	d, err := NewReader(strings.NewReader(text), "t.csv", o)
	if err != nil {
		return nil, err
	}
	return traces.ReadAll(d)
}

func wantJobs() []traces.Job {
	return []traces.Job{
		{ID: "a", User: "alice", VC: "main", Model: "resnet50", Work: 66 * time.Second, Estimate: 100 * time.Second, GPUs: 1,
			GPUMilli: 1000,
			CPUMilli: 4000, MemBytes: 16 << 30, Iterations: 1000},
		{ID: "b", User: "bob", VC: "main", Submit: 250 * time.Millisecond, Work: 10 * time.Second, GPUs: 1, GPUMilli: 500,
			GPUTypes: []string{"V100", "A100"}, CPUMilli: 500, MemBytes: 1 << 29, Deadline: time.Hour, Priority: -2},
		{ID: "2", Model: `odd "name"`, Submit: 1000 * time.Second, GPUs: 8, GPUMilli: 1000, GPUTypes: []string{"A100"},
			Priority: 7},
	}
}

func TestReadsEveryColumn(t *testing.T) {
	b, err := os.ReadFile("testdata/jobs.csv")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for name, in := range map[string]string{"as it is": text, "CR LF": strings.ReplaceAll(text, "\n", "\r\n"),
		"byte order mark": "\ufeff" + text,
		"empty lines":     strings.ReplaceAll(text, "\n", "\n\n"), "no end of line": strings.TrimSuffix(text, "\n")} {
		got, err := read(t, in, Options{})
		if err != nil || !reflect.DeepEqual(got, wantJobs()) {
			t.Errorf("%s: %v\n%+v\nwant\n%+v", name, err, got, wantJobs())
		}
	}
}

// Names and groups are read from a column of that name, else from the first that people give them.
func TestNamesAndGroupsOfJobs(t *testing.T) {
	for _, c := range []struct {
		header      string // of the columns a, b and c
		columns     map[string]string
		name, group string
		labels      string
	}{
		{"name,group,x", nil, "A", "B", "[x]"},
		{"x,y,z", nil, "", "", "[x y z]"},
		{"Job Name,user-group,x", nil, "A", "B", "[x]"},
		{"x,executable,Tag", nil, "B", "C", "[x]"},
		{"app,jobname,Account", nil, "B", "C", "[app]"},
		{"jobName,name,project", nil, "B", "C", "[jobName]"},
		{"name,type,tag", map[string]string{"name": "type", "group": "name"}, "B", "A", "[tag]"},
		{"job_name,cmd,account", map[string]string{"job_id": "job_name", "model": "account"}, "", "", "[cmd]"},
	} {
		d, err := NewReader(strings.NewReader("submit_time,duration,num_gpu,"+c.header+"\n0,1,1,A,B,C\n1,1,1,A,B,C\n2,1,1,,,\n"), "t.csv", Options{Columns: c.columns})
		if c.columns["job_id"] != "" { // which must differ
			d, err = NewReader(strings.NewReader("submit_time,duration,num_gpu,"+c.header+"\n0,1,1,A,B,C\n1,1,1,A2,B,C\n2,1,1,,,\n"), "t.csv", Options{Columns: c.columns})
		}
		if err != nil {
			t.Errorf("%s: %v", c.header, err)
			continue
		}
		jobs, err := traces.ReadAll(d)
		if err != nil || len(jobs) != 3 || fmt.Sprint(d.Labels()) != c.labels {
			t.Errorf("%s: %v, %d jobs, labels %v, want %s", c.header, err, len(jobs), d.Labels(), c.labels)
			continue
		}
		for i, j := range jobs {
			name, group := c.name, c.group
			if i == 2 {
				name, group = "", ""
			}
			if j.Name != name || j.Group != group {
				t.Errorf("%s, job %d: name %q, group %q; want %q and %q", c.header, i, j.Name, j.Group, name, group)
			}
		}
		if unsafe.StringData(jobs[0].Name) != unsafe.StringData(jobs[1].Name) ||
			unsafe.StringData(jobs[0].Group) != unsafe.StringData(jobs[1].Group) {
			t.Errorf("%s: jobs do not share their names", c.header)
		}
		if name, group := d.Named(); name != (c.name != "") || group != (c.group != "") {
			t.Errorf("%s: named %v, %v", c.header, name, group)
		}
	}
	const want = `t.csv:1: name can be job_name or JobName: say which with --columns name=NAME (trace.columns)`
	if _, err := read(t, "submit_time,duration,num_gpu,job_name,JobName\n", Options{}); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestOtherColumnsAreLabels(t *testing.T) {
	d, err := NewReader(strings.NewReader("x,duration,num_gpu,submit_time,status,\n1,2,3,4,Pass,z\n\"5,\n5\",2,3,4,Killed,\n"), "t.csv", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(d.Labels()); got != "[x status ]" {
		t.Errorf("labels %s", got)
	}
	var j traces.Job
	for _, want := range []struct {
		labels string
		status traces.Status
		line   int
	}{{"1/Pass/z", traces.Completed, 2}, {"5,\n5/Killed/", traces.Cancelled, 4}} {
		if err := d.Next(&j); err != nil {
			t.Fatal(err)
		}
		if got := d.Label(0) + "/" + d.Label(1) + "/" + d.Label(2); got != want.labels || j.Status != want.status ||
			d.Line() != want.line {
			t.Errorf("labels %q, status %v, line %d; want %+v", got, j.Status, d.Line(), want)
		}
	}
	if err := d.Next(&j); err != io.EOF {
		t.Errorf("%v", err)
	}
}

func TestFaultsSayWhereWhatAndWhatWouldBeRight(t *testing.T) {
	const head = "submit_time,duration,num_gpu,gpu_type,num_cpu,mem_gb,estimate,iterations,deadline,priority,min_gpu,max_gpu\n"
	row := func(cells string) string { return head + "0,1,2,,,,,,,,,\n" + cells + "\n" }
	for name, c := range map[string]struct{ text, want string }{
		"empty file": {"", `t.csv:1: got "", want a header with submit_time, duration, num_gpu`},
		"all columns missing": {"a,b\n1,2\n",
			`t.csv:1: no columns submit_time, duration (or start_time and end_time), num_gpu: use --columns submit_time=NAME,duration=NAME,num_gpu=NAME (trace.columns); the file has a, b`},
		"two columns missing": {"job_id,duration\n1,2\n",
			`t.csv:1: no columns submit_time, num_gpu: use --columns submit_time=NAME,num_gpu=NAME (trace.columns); the file has job_id, duration`},
		"a column twice": {"submit_time,duration,num_gpu,duration\n",
			`t.csv:1: duration: got "duration", want each column once in the header`},
		"too few fields":  {row("1,1"), `t.csv:3: got "2 fields", want 12, as in the header`},
		"too many fields": {row("1,1,1,,,,,,,,,,"), `t.csv:3: got "13 fields", want 12, as in the header`},
		"negative submit": {row("-1,1,1,,,,,,,,,"), `t.csv:3: submit_time: got "-1", want seconds, 0 or more`},
		"submit NaN":      {row("NaN,1,1,,,,,,,,,"), `t.csv:3: submit_time: got "NaN", want seconds`},
		"no submit":       {row(",1,1,,,,,,,,,"), `t.csv:3: submit_time: got "", want seconds`},
		"duration in words": {row("1,an hour,1,,,,,,,,,"),
			`t.csv:3: duration: got "an hour", want seconds, 0 or more and below 292 years, or as in 1h30m, 01:30:00 or 1-12:00:00`},
		"negative duration": {row("1,-0.5,1,,,,,,,,,"), `t.csv:3: duration: got "-0.5", want seconds, 0 or more`},
		"duration of an age": {row("1,1e11,1,,,,,,,,,"),
			`t.csv:3: duration: got "1e11", want seconds, 0 or more and below 292 years`},
		"fraction of several": {row("1,1,1.5,,,,,,,,,"),
			`t.csv:3: num_gpu: got "1.5", want a whole number of GPUs, or a share of one GPU in thousandths`},
		"finer than 1/1000": {row("1,1,0.0004,,,,,,,,,"), `t.csv:3: num_gpu: got "0.0004"`},
		"negative GPUs":     {row("1,1,-1,,,,,,,,,"), `t.csv:3: num_gpu: got "-1"`},
		"absurd GPUs":       {row("1,1,1e12,,,,,,,,,"), `t.csv:3: num_gpu: got "1e12"`},
		"empty alternative": {row("1,1,1,A||B,,,,,,,,"), `t.csv:3: gpu_type: got "A||B", want names joined by |`},
		"cores in words":    {row("1,1,1,,many,,,,,,,"), `t.csv:3: num_cpu: got "many"`},
		"negative memory":   {row("1,1,1,,,-1,,,,,,"), `t.csv:3: mem_gb: got "-1"`},
		"absurd memory":     {row("1,1,1,,,9e9,,,,,,"), `t.csv:3: mem_gb: got "9e9"`},
		"estimate inf":      {row("1,1,1,,,,inf,,,,,"), `t.csv:3: estimate: got "inf", want seconds`},
		"half an iteration": {row("1,1,1,,,,,0.5,,,,"), `t.csv:3: iterations: got "0.5", want a whole number`},
		"deadline in words": {row("1,1,1,,,,,,soon,,,"),
			`t.csv:3: deadline: got "soon", want seconds, 0 or more and below 292 years, or nothing where it is not given`},
		"half a priority": {row("1,1,1,,,,,,,1.5,,"), `t.csv:3: priority: got "1.5", want a whole number`},
		"minimum above":   {row("1,1,1,,,,,,,,2,"), `t.csv:3: min_gpu: got "2", want at most num_gpu`},
		"maximum below":   {row("1,1,2,,,,,,,,,1"), `t.csv:3: max_gpu: got "1", want at least num_gpu`},
		"backwards": {head + "5.5,1,2,,,,,,,,,\n4,1,1,,,,,,,,,\n",
			`t.csv:3: submit_time: got "4", want 5.5 or later, as in the row before (rows must be in order of submit_time; --sort puts them in order)`},
		"quote inside": {row(`1,1,1,a"b",,,,,,,,`), `t.csv:3: got "a\"b\"", want quotes around the whole field`},
		"text behind a quote": {row(`1,1,1,"a"b,,,,,,,,`),
			`t.csv:3: got "b,,,,,,,,", want a comma or the end of the line after a closing quote`},
		"quote never closed": {row("1,1,1,\"a\n\n"),
			`got "the end of the file", want a closing quote for the one opened in line 3`},
		"quote over everything": {row("1,1,1,\"" + strings.Repeat("a\n", traces.MaxLine)),
			`want a row of at most 1048576 bytes (a quote opened in line 3 is not closed)`},
	} {
		_, err := read(t, c.text, Options{})
		var re *traces.RowError
		if !errors.As(err, &re) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", name, err, c.want)
		}
	}
}

// A row without an id is called by its position, which must not be the id of another row, whichever comes first.
func TestPositionsAreNoIDsOfOthers(t *testing.T) {
	const head = "submit_time,duration,num_gpu,job_id\n"
	for name, c := range map[string]struct{ rows, want string }{
		"a given one first": {"0,1,1,1\n0,1,1,\n",
			`t.csv:3: job_id: got "", want an id (a row without one is called by its position, 1, and an earlier row has that id)`},
		"a position first": {"0,1,1,\n0,1,1,x\n0,1,1,0\n",
			`t.csv:4: job_id: got "0", want an id of its own (an earlier row has this one, or has none and is called by its position)`},
		"two of the same":       {"0,1,1,x\n0,1,1,x\n", `t.csv:3: job_id: got "x", want an id of its own`},
		"no row with its own":   {"0,1,1,\n0,1,1,\n", ""},
		"some with other words": {"0,1,1,a\n0,1,1,\n0,1,1,01\n", ""},
		"above all positions":   {"0,1,1,7\n0,1,1,\n0,1,1,2\n", ""},
	} {
		jobs, err := read(t, head+c.rows, Options{})
		if c.want != "" {
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%s: %v, want %s", name, err, c.want)
			}
			continue
		}
		seen := map[string]bool{}
		for _, j := range jobs {
			seen[j.ID] = true
		}
		if err != nil || len(seen) != strings.Count(c.rows, "\n") {
			t.Errorf("%s: ids %v, %v", name, seen, err)
		}
	}
}

func TestAnErrorStays(t *testing.T) {
	for _, row := range []string{"1,x,1", "1,1,x", "x,1,1"} {
		d, err := NewReader(strings.NewReader("submit_time,duration,num_gpu\n"+row+"\n2,2,2\n"), "t.csv", Options{})
		if err != nil {
			t.Fatal(err)
		}
		var j traces.Job
		first := d.Next(&j)
		if second := d.Next(&j); first == nil || first != second {
			t.Errorf("%s: %v, then %v", row, first, second)
		}
	}
}

func TestUnsortedRowsComeAsTheyStand(t *testing.T) {
	jobs, err := read(t, "submit_time,duration,num_gpu\n5,1,1\n3,1,1\n4,1,1\n", Options{Unsorted: true})
	if err != nil || len(jobs) != 3 || jobs[1].Submit != 3*time.Second || jobs[1].ID != "1" {
		t.Fatalf("%v, %+v", err, jobs)
	}
	if moved := traces.SortStable(jobs); moved != 2 || jobs[0].ID != "1" {
		t.Errorf("moved %d, %+v", moved, jobs)
	}
}

func TestSharesAndWholeNumbersOfGPUs(t *testing.T) {
	for cell, want := range map[string][2]int{"1": {1, 1000}, "1.0": {1, 1000}, "8.000": {8, 1000}, "0.001": {1, 1},
		"0.999": {1, 999}, "5e-1": {1, 500}, "0": {0, 1000}, " 2 ": {2, 1000}} {
		jobs, err := read(t, "submit_time,duration,num_gpu\n0,1,"+cell+"\n", Options{})
		if err != nil || jobs[0].GPUs != want[0] || jobs[0].GPUMilli != want[1] {
			t.Errorf("num_gpu %q: %v, %+v; want %v", cell, err, jobs, want)
		}
	}
}

func TestReadingARowAllocatesItsIDAlone(t *testing.T) {
	var text strings.Builder
	text.WriteString("submit_time,duration,num_gpu,user,gpu_type,job_id\n")
	for i := range 2000 {
		fmt.Fprintf(&text, "1000.5,20,4,alice,V100|A100,%d\n", 1000+i)
	}
	d, err := NewReader(strings.NewReader(text.String()), "t.csv", Options{})
	if err != nil {
		t.Fatal(err)
	}
	var j traces.Job
	if n := testing.AllocsPerRun(1000, func() {
		if err := d.Next(&j); err != nil {
			t.Error(err)
		}
	}); n > 1 {
		t.Errorf("%v allocations a row, want 1", n)
	}
}

func TestIDsStandOnce(t *testing.T) {
	for _, ids := range [][]string{{"a", "b", "a"}, {"7", "8", "7"}, {"", "x", "x"}} {
		_, err := read(t, "job_id,submit_time,duration,num_gpu\n"+ids[0]+",0,1,1\n"+ids[1]+",1,1,1\n"+ids[2]+",2,1,1\n",
			Options{})
		if err == nil || err.Error() !=
			fmt.Sprintf(`t.csv:4: job_id: got %q, want an id of its own (an earlier row has this one)`, ids[2]) {
			t.Errorf("%q: %v", ids, err)
		}
	}
	if _, err := read(t, "job_id,submit_time,duration,num_gpu\n,0,1,1\n,1,1,1\n07,1,1,1\n7,1,1,1\n", Options{}); err !=
		nil {
		t.Error(err)
	}
}

func FuzzReader(f *testing.F) {
	b, err := os.ReadFile("testdata/jobs.csv")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b, false)
	f.Add([]byte("\xef\xbb\xbfsubmit_time,duration,num_gpu,min_gpu,max_gpu,status\r\n1e-9,1,0.5,1,2,Pass\r\n"), true)
	f.Add([]byte("num_gpu,submit_time,duration,job_id\n1,2,3,\"a\"\"\nb\"\n1,1,1,\""), true)
	f.Add([]byte("submit_time,duration,num_gpu\n1e999999999,1,1\n"), false)
	f.Add([]byte("Submit Time;Duration;Num-GPU\n1700000000,5;1h30m;0,5\n1700000001;1 day, 2:03:04;2\n"), false)
	f.Add([]byte("Submit\tStart Time\tendTime\tnum_gpu\tdeadline\n2024-03-01T12:00:00Z\tNone\t\t1\t\n2024-03-01T12:00:00+01:00\t2024-03-01T12:00:00Z\t2024-03-01T12:00:01Z\t1\t2024-03-01T12:00:00Z\n"), true)
	f.Fuzz(func(t *testing.T, b []byte, unsorted bool) {
		o := Options{Unsorted: unsorted}
		if strings.HasPrefix(string(b), "Submit\t") {
			o.Columns = map[string]string{"submit_time": "Submit"}
		}
		Sniff(b, o)
		if text := Lacks(b, o); len(text) > 1000 {
			t.Fatalf("%d bytes about a header", len(text))
		}
		d, err := NewReader(strings.NewReader(string(b)), "f", o)
		if err != nil {
			return
		}
		var jobs []traces.Job
		for {
			var j traces.Job
			if err := d.Next(&j); err == io.EOF {
				break
			} else if err != nil {
				if err.Error() == "" {
					t.Fatal("an error without words")
				}
				return
			}
			for i := range d.Labels() {
				d.Label(i)
			}
			if j.Submit < 0 || j.Work < 0 || j.GPUs < 0 || j.GPUMilli < 1 || j.GPUMilli > 1000 || j.ID == "" ||
				!unsorted && len(jobs) > 0 && j.Submit < jobs[len(jobs)-1].Submit {
				t.Fatalf("%+v", j)
			}
			jobs = append(jobs, j)
		}
		if len(jobs) > len(b) {
			t.Fatalf("%d jobs from %d bytes", len(jobs), len(b))
		}
		var out strings.Builder // jobs that were read can be written, and reading them again gives the same jobs
		if n, err := Write(&out, &traces.Slice{Jobs: jobs}); err != nil || n != len(jobs) {
			t.Fatalf("wrote %d of %d: %v", n, len(jobs), err)
		}
		again, err := read(t, out.String(), Options{Unsorted: true})
		if err != nil || !reflect.DeepEqual(again, unstarted(jobs)) {
			t.Fatalf("%v\n%+v\n%+v", err, jobs, again)
		}
	})
}

func BenchmarkReader(b *testing.B) {
	var text strings.Builder
	text.WriteString("submit_time,duration,num_gpu,job_id,user,vc,gpu_type,estimate\n")
	const rows = 10000
	for i := range rows {
		fmt.Fprintf(&text, "%d.5,%d,%d,job%d,user%d,vc%d,V100,%d\n", i, i%977, 1+i%8, i, i%50, i%5, i%977+60)
	}
	b.SetBytes(int64(text.Len()))
	b.ReportAllocs()
	var j traces.Job
	for b.Loop() {
		d, err := NewReader(strings.NewReader(text.String()), "b", Options{})
		for err == nil {
			err = d.Next(&j)
		}
		if err != io.EOF {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*rows/b.Elapsed().Seconds(), "rows/s")
}
