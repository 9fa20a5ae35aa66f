package muri

import (
	"errors"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"clustergym/traces"
)

const ms = time.Millisecond

func made(tb testing.TB) string {
	tb.Helper()
	b, err := os.ReadFile("testdata/jobs.csv")
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

func TestReadsATraceWithItsProfiles(t *testing.T) {
	// neta took 100 ms on 1 GPU and 160 on 4 (the first row of that size counts): 10 and 25 batches a second.
	neta := &traces.Profile{Name: "neta", Compute: 100 * ms,
		Scaling: []traces.ScalePoint{{GPUs: 1, Throughput: 10}, {GPUs: 4, Throughput: 25}}}
	netb128 := &traces.Profile{Name: "netb", Compute: 499500 * time.Microsecond,
		Scaling: []traces.ScalePoint{{GPUs: 8, Throughput: 16}}}
	netb64 := &traces.Profile{Name: "netb", Compute: 500 * ms, Scaling: []traces.ScalePoint{{GPUs: 1, Throughput: 2}}}
	want := []traces.Job{
		{ID: "0", Model: "neta", Work: 100000 * ms, GPUs: 1, GPUMilli: 1000, Iterations: 1000, Batch: 16, Profile: neta},
		{ID: "1", Model: "neta", Submit: 2500 * ms, Work: 8000 * ms, GPUs: 4, GPUMilli: 1000, Iterations: 50, Batch: 64,
			Priority: 1, Profile: neta},
		{ID: "2", Model: "neta", Submit: 2500 * ms, Work: 1610 * ms, GPUs: 4, GPUMilli: 1000, Iterations: 10, Batch: 64,
			Priority: 1, Profile: neta},
		{ID: "3", Model: "netb", Submit: 4000 * ms, Work: 10000 * ms, GPUs: 8, GPUMilli: 1000, Iterations: 20, Batch: 1024,
			Profile: netb128},
		{ID: "4", Model: "netb", Submit: 9000 * ms, Work: 15000 * ms, GPUs: 1, GPUMilli: 1000, Iterations: 30, Batch: 64,
			Priority: 1, Profile: netb64},
	}
	text := made(t)
	lines := strings.SplitAfter(text, "\r\n")
	lines[1], lines[5] = lines[5], lines[1] // the last job first, the first last
	for name, c := range map[string]struct {
		in    string
		moved int
	}{"as it is": {text, 0}, "LF and a mark": {"\ufeff" + strings.ReplaceAll(text, "\r\n", "\n") + "\n\n", 0},
		"out of order": {strings.Join(lines, ""), 4}} {
		d, err := NewReader(strings.NewReader(c.in), "t.csv")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []traces.Job
		for i := range want {
			var j traces.Job
			if err := d.Next(&j); err != nil || !reflect.DeepEqual(j, want[i]) {
				t.Errorf("%s: %v\n%+v %+v\nwant\n%+v %+v", name, err, j, j.Profile, want[i], want[i].Profile)
			}
			got = append(got, j)
		}
		if got[0].Profile != got[1].Profile || d.Moved() != c.moved || d.Skipped() != nil {
			t.Errorf("%s: profiles not shared, or moved %d, skipped %v", name, d.Moved(), d.Skipped())
		}
	}
}

func TestComputeIsNeverLessThanTheStageOnTheGPU(t *testing.T) {
	all, j := profiles{}, traces.Job{GPUs: 8}
	all.add(&j, stages{iteration: 192 * ms, gpu: 167 * ms, network: 59 * ms})
	all.finish()
	if p := j.Profile; p.Compute != 167*ms {
		t.Errorf("%+v", p)
	}
}

func TestFaultsSayWhereWhatAndWhatWouldBeRight(t *testing.T) {
	const head = "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,iteration_time,resource_time_0,resource_time_1,resource_time_2,priority\r\n"
	for name, c := range map[string]struct{ text, want string }{
		"another header": {"job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,iteration_time\r\n",
			"want a header with also resource_time_0, resource_time_1, resource_time_2"},
		"no GPU": {head + "0,0,0,1,m,8,100,10,1,2,3,0\r\n",
			`t.csv:2: num_gpu: got "0", want a whole number of GPUs, 1 or more`},
		"before the time": {head + "0,1,-5,1,m,8,100,10,1,2,3,0\r\n",
			`t.csv:2: submit_time: got "-5", want milliseconds, 0 or more`},
		"iterations": {head + "0,1,0,-1,m,8,100,10,1,2,3,0\r\n",
			`t.csv:2: iterations: got "-1", want a whole number, 0 or more`},
		"absurd batch": {head + "0,2,0,1,m,5e18,100,10,1,2,3,0\r\n",
			`t.csv:2: batch_size: got "5e18", want a whole number from 1 to 4611686018427387903`},
		"no batch": {head + "0,1,0,1,m,,100,10,1,2,3,0\r\n",
			`t.csv:2: batch_size: got "", want a whole number, 1 or more`},
		"no time": {head + "0,1,0,1,m,8,,10,1,2,3,0\r\n", `t.csv:2: duration: got "", want milliseconds`},
		"iteration of 0": {head + "0,1,0,1,m,8,100,0,1,2,3,0\r\n",
			`t.csv:2: iteration_time: got "0", want milliseconds above 0`},
		"NaN": {head + "0,1,0,1,m,8,100,10,1,nan,3,0\r\n",
			`t.csv:2: resource_time_1: got "nan", want milliseconds`},
		"priority": {head + "0,1,0,1,m,8,100,10,1,2,3,2\r\n",
			`t.csv:2: priority: got "2", want a whole number from 0 to 1`},
	} {
		_, err := NewReader(strings.NewReader(c.text), "t.csv")
		var re *traces.RowError
		if !errors.As(err, &re) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", name, err, c.want)
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(made(f)))
	f.Add([]byte("num_gpu,job_id,submit_time,iterations,model_name,batch_size,duration,iteration_time,resource_time_2,resource_time_1,resource_time_0\n" +
		"1073741824,\"a\",1e3,0,,1,9223372036854,0.000001,9223372036854,0,0\n2,b,0,0,,1,0,1,0,0,9\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := NewReader(strings.NewReader(string(b)), "f")
		if err != nil {
			return
		}
		jobs, err := traces.ReadAll(d)
		if err != nil || len(jobs) > len(b) || d.Moved() > len(jobs) || !Sniff(b) {
			t.Fatalf("%d jobs from %d bytes, %d moved, %v", len(jobs), len(b), d.Moved(), err)
		}
		for i, j := range jobs {
			p := j.Profile
			if i > 0 && j.Submit < jobs[i-1].Submit || j.Submit < 0 || j.Work < 0 || j.GPUs < 1 || p.Compute < 0 ||
				p.Name != j.Model {
				t.Fatalf("job %d: %+v, %+v", i, j, p)
			}
			for k, s := range p.Scaling {
				if !(s.Throughput > 0) || math.IsInf(s.Throughput, 0) || k > 0 && s.GPUs <= p.Scaling[k-1].GPUs {
					t.Fatalf("job %d: scaling %v", i, p.Scaling)
				}
			}
		}
	})
}
