package acme

import (
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"clustergym/traces"
)

const (
	s    = time.Second
	made = `job_id,arrival_time,num_iteration,iteration_computing_time,iteration_networking_time,gpu_workers,ps,gpu_per_worker,cpu_per_gpu_worker,cpu_per_ps_worker,tensorsizes,profiled_network
0,0.0,201,0.5,0.25,2,0,8.0,15.0,15.0,10.0,500
1,10.0,0,0.5,0.25,1,0,8.0,15.0,15.0,10.0,500
2,20.25,4,0.4,0.75,3,0,3.3333333333333335,12.8,12.8,5.0,1000
3,20.25,4,0.5,0.75,1,0,24.0,5.333333333333333,1.0,0.25,1000
`
)

func wanted() []traces.Job {
	return []traces.Job{
		{ID: "0", Work: 100500 * time.Millisecond, GPUs: 16, GPUMilli: 1000, CPUMilli: 240000, MemBytes: 2e12,
			Status: traces.Completed},
		{ID: "2", Submit: 20250 * time.Millisecond, Work: 2 * s, GPUs: 10, GPUMilli: 1000, CPUMilli: 128000,
			Model: "Pretrain", Name: "Pretrain", Status: traces.Completed},
		{ID: "3", Submit: 20250 * time.Millisecond, Work: 2 * s, GPUs: 24, GPUMilli: 1000, CPUMilli: 128000, MemBytes: 25e9,
			Model: "Pretrain", Name: "Pretrain", Status: traces.Completed},
	}
}

func TestReadsATable(t *testing.T) {
	for what, in := range map[string]string{"as it is": made, "CR LF": strings.ReplaceAll(made, "\n", "\r\n"),
		"byte order mark, blank lines": "\ufeff" + strings.ReplaceAll(made, "\n", "\n\n")} {
		d, err := NewReader(strings.NewReader(in), "t.csv", Options{})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		got, err := traces.ReadAll(d)
		if err != nil || !reflect.DeepEqual(got, wanted()) {
			t.Errorf("%s: %v\n%+v\nwant\n%+v", what, err, got, wanted())
		}
		if name, group := d.Named(); !name || group {
			t.Errorf("%s: names %v, groups %v", what, name, group)
		}
		if k := d.Skipped(); !reflect.DeepEqual(k, []traces.Skip{{Reason: NoRunTime, Count: 1}}) || !Sniff([]byte(in)) {
			t.Errorf("%s: skipped %v", what, k)
		}
		var j traces.Job
		if err := d.Next(&j); err != io.EOF {
			t.Errorf("%s: after the end: %v", what, err)
		}
	}
	d, err := NewReader(strings.NewReader("gpu_per_worker,gpu_workers,\"num_iteration\",arrival_time,job_id\n1,2,\"3\",4,x\n"), "t.csv", Options{})
	if err != nil {
		t.Fatal(err)
	}
	var j traces.Job
	want := traces.Job{ID: "x", Submit: 4 * s, Work: 1500 * time.Millisecond, GPUs: 2, GPUMilli: 1000,
		Status: traces.Completed}
	if err := d.Next(&j); err != nil || !reflect.DeepEqual(j, want) {
		t.Errorf("required columns only: %v\n%+v", err, j)
	}
	if name, group := d.Named(); name || group {
		t.Errorf("required columns only: names %v, groups %v", name, group)
	}
}

func TestFaultsSayWhereWhatAndWhatWouldBeRight(t *testing.T) {
	const head = "job_id,arrival_time,num_iteration,gpu_workers,gpu_per_worker,cpu_per_gpu_worker,tensorsizes,iteration_networking_time\n"
	for name, c := range map[string]struct{ text, want string }{
		"empty file":      {"", `t.csv:1: got "", want a header with job_id, arrival_time`},
		"columns missing": {"job_id,num_iteration\n", `want a header with also arrival_time, gpu_workers, gpu_per_worker`},
		"a field missing": {head + "x,0\n", `t.csv:2: got "2 fields", want 8`},
		"arrival nan":     {head + "x,nan,1,1,1,1,1,1\n", `t.csv:2: arrival_time: got "nan", want seconds`},
		"backwards": {head + "x,5,1,1,1,1,1,1\nx,4,1,1,1,1,1,1\n",
			`t.csv:3: arrival_time: got "4", want 5 or later, as in the row before`},
		"half an iteration": {head + "x,0,0.5,1,1,1,1,1\n",
			`t.csv:2: num_iteration: got "0.5", want a whole number of half seconds`},
		"no nodes": {head + "x,0,1,0,1,1,1,1\n",
			`t.csv:2: gpu_workers: got "0", want a whole number of nodes, 1 to 65536`},
		"too many nodes": {head + "x,0,1,65537,1,1,1,1\n", `t.csv:2: gpu_workers: got "65537"`},
		"no GPUs": {head + "x,0,1,1,0,1,1,1\n",
			`t.csv:2: gpu_per_worker: got "0", want GPUs on each node that make a whole number`},
		"odd GPUs": {head + "x,0,1,3,1.5,1,1,1\n",
			`t.csv:2: gpu_per_worker: got "1.5", want GPUs on each node that make a whole number`},
		"negative cores":   {head + "x,0,1,1,1,-1,1,1\n", `t.csv:2: cpu_per_gpu_worker: got "-1", want cores for each GPU`},
		"memory in words":  {head + "x,0,1,1,1,1,big,1\n", `t.csv:2: tensorsizes: got "big", want main memory of each node`},
		"network in words": {head + "x,0,1,1,1,1,1,slow\n", `t.csv:2: iteration_networking_time: got "slow", want seconds`},
	} {
		d, err := NewReader(strings.NewReader(c.text), "t.csv", Options{})
		if err == nil {
			_, err = traces.ReadAll(d)
			if again := d.Next(new(traces.Job)); again != err {
				t.Errorf("%s: first %v, then %v", name, err, again)
			}
		}
		var re *traces.RowError
		if !errors.As(err, &re) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", name, err, c.want)
		}
	}
}

func TestUnsortedTakesRowsAsTheyStand(t *testing.T) {
	text := "job_id,arrival_time,num_iteration,gpu_workers,gpu_per_worker\na,9,2,1,1\nb,5,2,1,1\n"
	for _, unsorted := range []bool{false, true} {
		d, err := NewReader(strings.NewReader(text), "t.csv", Options{Unsorted: unsorted})
		if err != nil {
			t.Fatal(err)
		}
		if jobs, err := traces.ReadAll(d); (err == nil) != unsorted || unsorted && len(jobs) != 2 {
			t.Errorf("unsorted %v: %d jobs, %v", unsorted, len(jobs), err)
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(made))
	f.Add([]byte("gpu_per_worker,gpu_workers,num_iteration,arrival_time,job_id,cpu_per_gpu_worker,tensorsizes\n10000,65536,3,4,x,1e6,100\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		Sniff(b)
		d, err := NewReader(strings.NewReader(string(b)), "f", Options{})
		if err != nil {
			return
		}
		var last time.Duration
		for rows := 0; ; rows++ {
			var j traces.Job
			if err := d.Next(&j); err != nil {
				return
			}
			if rows > len(b) || j.Submit < last || j.Work <= 0 || j.GPUs < 1 || j.CPUMilli < 0 || j.MemBytes < 0 {
				t.Fatalf("job %d: %+v", rows, j)
			}
			last = j.Submit
		}
	})
}
