package csv

import (
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"clustergym/traces"
)

func TestWritingAndReadingGivesEqualJobs(t *testing.T) {
	word := rapid.StringOfN(rapid.RuneFrom([]rune("ab,\"\r\n é|;'\x00")), 1, 8, -1)
	times := rapid.Custom(func(t *rapid.T) time.Duration {
		if rapid.Bool().Draw(t, "whole") {
			return time.Duration(rapid.IntRange(0, 1e6).Draw(t, "s")) * time.Second
		}
		return time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "ns"))
	})
	job := rapid.Custom(func(t *rapid.T) traces.Job {
		j := traces.Job{
			ID: word.Draw(t,
				"id"), Submit: times.Draw(t, "submit"), Work: times.Draw(t, "work"), Estimate: times.Draw(t, "estimate"),
			Deadline: times.Draw(t, "deadline"), GPUMilli: 1000, GPUs: rapid.IntRange(0, 4096).Draw(t, "gpus"),
			CPUMilli: rapid.Int64Range(0, math.MaxInt64).Draw(t, "cpu"), MemBytes: rapid.Int64Range(0, 9e8<<30).Draw(t, "mem"),
			Iterations: rapid.Int64Range(0,
				math.MaxInt64).Draw(t, "iterations"), Priority: rapid.IntRange(-math.MaxInt64, math.MaxInt64).Draw(t, "priority"),
			Status: traces.Status(rapid.IntRange(0, 3).Draw(t, "status")),
		}
		if rapid.Bool().Draw(t, "shared") {
			j.GPUs, j.GPUMilli = 1, rapid.IntRange(1, 999).Draw(t, "milli")
		} else if rapid.Bool().Draw(t, "elastic") {
			j.MinGPUs, j.MaxGPUs = rapid.IntRange(0, j.GPUs).Draw(t, "min"), rapid.IntRange(j.GPUs, 1<<30).Draw(t, "max")
		}
		for _, s := range []*string{&j.User, &j.VC, &j.Model, &j.Name, &j.Group} {
			if rapid.Bool().Draw(t, "named") {
				*s = word.Draw(t, "name")
			}
		}
		for range rapid.IntRange(0, 3).Draw(t, "types") {
			j.GPUTypes = append(j.GPUTypes, strings.ReplaceAll(word.Draw(t, "type"), "|", "/"))
		}
		return j
	})
	rapid.Check(t, func(t *rapid.T) {
		jobs := rapid.SliceOfN(job, 0, 6).Draw(t, "jobs")
		for i := range jobs {
			jobs[i].ID += strconv.Itoa(i)
		}
		var out strings.Builder
		n, err := Write(&out, &traces.Slice{Jobs: jobs})
		if err != nil || n != len(jobs) {
			t.Fatalf("wrote %d of %d: %v", n, len(jobs), err)
		}
		d, err := NewReader(strings.NewReader(out.String()), "t", Options{Unsorted: true})
		if err != nil {
			t.Fatal(err)
		}
		got, err := traces.ReadAll(d)
		if err != nil {
			t.Fatalf("%v in\n%s", err, out.String())
		}
		if len(jobs) > 0 && !reflect.DeepEqual(got, jobs) {
			t.Fatalf("%+v\nwant %+v\nin %s", got, jobs, out.String())
		}
	})
}

func TestWrittenFileByHand(t *testing.T) {
	var out strings.Builder
	if _, err := Write(&out, &traces.Slice{Jobs: wantJobs()}); err != nil {
		t.Fatal(err)
	}
	want := `submit_time,duration,num_gpu,job_id,user,vc,gpu_type,num_cpu,mem_gb,estimate,model,iterations,deadline,priority,min_gpu,max_gpu,status
0,66,1,a,alice,main,,4,16,100,resnet50,1000,,,,,
0.25,10,0.5,b,bob,main,V100|A100,0.5,0.5,,,,3600,-2,,,
1000,0,8,2,,,A100,,,,"odd ""name""",,,7,,,
`
	if out.String() != want {
		t.Errorf("%s\nwant\n%s", out.String(), want)
	}
}

// The columns of names and groups are there if jobs have them; what comes before them does not change.
func TestNamesAndGroupsAreWrittenWhereJobsHaveThem(t *testing.T) {
	const head,
		row = "submit_time,duration,num_gpu,job_id,user,vc,gpu_type,num_cpu,mem_gb,estimate,model,iterations,deadline,priority,min_gpu,max_gpu,status", "0,1,1,%d,ann,,,,,,,,,,,,"
	plain := traces.Job{User: "ann", Work: time.Second, GPUs: 1, GPUMilli: 1000}
	with := func(name, group string) traces.Job {
		j := plain
		j.Name, j.Group = name, group
		return j
	}
	for _, c := range []struct {
		what  string
		jobs  []traces.Job
		head  string
		tails []string
	}{
		{"neither", []traces.Job{plain, plain}, "", []string{"", ""}},
		{"a name late", []traces.Job{plain, with("a,b", ""), plain}, ",name", []string{",", `,"a,b"`, ","}},
		{"a group", []traces.Job{with("", "lab"), plain}, ",group", []string{",lab", ","}},
		{"one after the other", []traces.Job{plain, with("", "lab"), with("train.sh", ""), with("train.sh", "lab")},
			",name,group", []string{",,", ",,lab", ",train.sh,", ",train.sh,lab"}},
	} {
		want := head + c.head + "\n"
		for i := range c.jobs {
			c.jobs[i].ID = strconv.Itoa(i)
			want += fmt.Sprintf(row, i) + c.tails[i] + "\n"
		}
		var out strings.Builder
		if n, err := Write(&out, &traces.Slice{Jobs: c.jobs}); err != nil || n != len(c.jobs) || out.String() != want {
			t.Errorf("%s: wrote %d, %v\n%s\nwant\n%s", c.what, n, err, out.String(), want)
		}
		got, err := read(t, out.String(), Options{})
		if err != nil || !reflect.DeepEqual(got, c.jobs) {
			t.Errorf("%s: %v\n%+v\nwant\n%+v", c.what, err, got, c.jobs)
		}
	}
}

// Of a long stream no more than its beginning is held.
func TestNamesMayComeAfterManyJobs(t *testing.T) {
	jobs := make([]traces.Job, ahead+3)
	for i := range jobs {
		jobs[i] = traces.Job{ID: strconv.Itoa(i), Work: time.Second, GPUs: 1, GPUMilli: 1000}
	}
	write := func(name, group bool) (string, int, error) {
		var out strings.Builder
		n, err := WriteNamed(&out, &traces.Slice{Jobs: jobs}, name, group)
		return out.String(), n, err
	}
	header := func(text string) string {
		head, _, _ := strings.Cut(text, "\n")
		return strings.TrimPrefix(head,
			"submit_time,duration,num_gpu,job_id,user,vc,gpu_type,num_cpu,mem_gb,estimate,model,iterations,deadline,priority,min_gpu,max_gpu,status")
	}
	if text, n, err := write(false, false); err != nil || n != len(jobs) || header(text) != "" {
		t.Errorf("without: %d jobs, header %q, %v", n, header(text), err)
	}
	jobs[ahead+1].Name = "late"
	for _, group := range []bool{false, true} {
		text, n, err := write(true, group)
		if err != nil || n != len(jobs) || header(text) != map[bool]string{false: ",name", true: ",name,group"}[group] {
			t.Errorf("%d jobs, header %q, %v", n, header(text), err)
		}
		if got, err := read(t, text, Options{}); err != nil || !reflect.DeepEqual(got, jobs) {
			t.Errorf("reading gives other jobs: %v", err)
		}
	}
	if _, n, err := write(false, true); n != ahead+1 || err == nil ||
		err.Error() != fmt.Sprintf(`csv: job %d ("%d"): name "late": a file without names was wanted`, ahead+1, ahead+1) {
		t.Errorf("%d, %v", n, err)
	}
	jobs[ahead+1].Name, jobs[2].Group = "", "lab"
	if _, n, err := write(true, false); n != 2 || err == nil ||
		err.Error() != `csv: job 2 ("2"): group "lab": a file without groups was wanted` {
		t.Errorf("%d, %v", n, err)
	}
}

func TestWhatTheFormatCannotHoldIsAnError(t *testing.T) {
	ok := traces.Job{ID: "j", GPUs: 1, GPUMilli: 1000}
	for name, change := range map[string]func(*traces.Job){
		"shares of several":   func(j *traces.Job) { j.GPUs, j.GPUMilli = 2, 500 },
		"no share":            func(j *traces.Job) { j.GPUMilli = 0 },
		"negative time":       func(j *traces.Job) { j.Submit = -1 },
		"bar in a type":       func(j *traces.Job) { j.GPUTypes = []string{"a|b"} },
		"nameless type":       func(j *traces.Job) { j.GPUTypes = []string{"a", ""} },
		"range without GPUs":  func(j *traces.Job) { j.MinGPUs = 2 },
		"range below GPUs":    func(j *traces.Job) { j.GPUs, j.MaxGPUs = 3, 2 },
		"negative iterations": func(j *traces.Job) { j.Iterations = -1 },
		"absurd memory":       func(j *traces.Job) { j.MemBytes = math.MaxInt64 },
	} {
		bad := ok
		change(&bad)
		n, err := Write(io.Discard, &traces.Slice{Jobs: []traces.Job{ok, bad, ok}})
		if n != 1 || err == nil || !strings.Contains(err.Error(), `job 1 ("j")`) {
			t.Errorf("%s: wrote %d, %v", name, n, err)
		}
	}
}

func TestWriteReportsTheErrorsOfBothSides(t *testing.T) {
	full := errors.New("disk full")
	jobs := make([]traces.Job, 10000)
	for i := range jobs {
		jobs[i].GPUMilli = 1000
	}
	if n, err := WriteNamed(broken{full}, &traces.Slice{Jobs: jobs}, false, false); err != full || n == len(jobs) {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := Write(broken{full}, &traces.Slice{Jobs: jobs}); err != full {
		t.Errorf("rows that waited: %v", err)
	}
	if _, err := Write(broken{full}, &traces.Slice{Jobs: jobs[:1]}); err != full {
		t.Errorf("at the last flush: %v", err)
	}
	d, err := NewReader(strings.NewReader("submit_time,duration,num_gpu\n1,1,1\n1,x,1\n"), "in.csv", Options{})
	if err != nil {
		t.Fatal(err)
	}
	var re *traces.RowError
	if n, err := Write(io.Discard, d); n != 1 || !errors.As(err, &re) {
		t.Errorf("%d, %v", n, err)
	}
}

type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }

func BenchmarkWrite(b *testing.B) {
	jobs := make([]traces.Job, 10000)
	for i := range jobs {
		jobs[i] = traces.Job{ID: "job", User: "alice", Submit: time.Duration(i) * time.Second, Work: time.Minute, GPUs: 4,
			GPUMilli: 1000, MemBytes: 5e9}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Write(io.Discard, &traces.Slice{Jobs: jobs}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*float64(len(jobs))/b.Elapsed().Seconds(), "rows/s")
}
