package spot

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"clustergym/traces"
)

const head = "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type\n"

func TestJobsByHand(t *testing.T) {
	const text = head +
		"7,13,A10,20,1,1,5,2764799,HP\n8,57,A100-SXM4-80GB,15,1,16,0,41060,Spot\n9,57,A100-SXM4-80GB,15.5,2.0,94,9.5,71718,Spot\n" +
		"10,,NaN,,0.5,1,10,60,HP\n11,13,A10,4,0,3,11,60,HP\n12,13,A10,4,1,0,12,60,HP\n13,13,A10,4,1,,13,60,HP\n"
	if !Sniff([]byte(text)) || Sniff([]byte(strings.Replace(text, "worker_num", "w", 1))) {
		t.Error("not recognised by its header")
	}
	d, err := NewReader(strings.NewReader(text), "f.csv")
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := traces.ReadAll(d)
	s, a10, a100 := time.Second, []string{"A10"}, []string{"A100-SXM4-80GB"}
	want := []traces.Job{
		{ID: "8", VC: "57", Group: "Spot", Work: 41060 * s, GPUs: 16, GPUMilli: 1000, GPUTypes: a100, CPUMilli: 16 * 15000},
		{ID: "7", VC: "13", Group: "HP", Priority: 1, Submit: 5 * s, Work: 2764799 * s, GPUs: 1, GPUMilli: 1000,
			GPUTypes: a10, CPUMilli: 20000},
		{ID: "9", VC: "57", Group: "Spot", Submit: 9*s + s/2, Work: 71718 * s, GPUs: 188, GPUMilli: 1000, GPUTypes: a100,
			CPUMilli: 94 * 15500},
		{ID: "10", Group: "HP", Priority: 1, Submit: 10 * s, Work: 60 * s, GPUs: 1, GPUMilli: 500},
		{ID: "11", VC: "13", Group: "HP", Priority: 1, Submit: 11 * s, Work: 60 * s, GPUMilli: 1000, GPUTypes: a10,
			CPUMilli: 12000},
	}
	if err != nil || !reflect.DeepEqual(jobs, want) {
		t.Errorf("%v\n%+v\nwant\n%+v", err, jobs, want)
	}
	if d.Moved() != 1 || !reflect.DeepEqual(d.Skipped(), []traces.Skip{{Reason: NoWorkers, Count: 2}}) {
		t.Errorf("%d moved, %v", d.Moved(), d.Skipped())
	}
	if name, group := d.Named(); name || !group {
		t.Error("jobs have groups and no names")
	}
}

func TestFaults(t *testing.T) {
	for row, want := range map[string]string{
		",1,A,1,1,1,0,1,HP":   `f.csv:2: job_name: got "", want the job's name`,
		"1,1,A,1,1,1,0,1,hp":  `job_type: got "hp", want HP or Spot`,
		"1,1,A,1,1,1,-1,1,HP": "submit_time", "1,1,A,1,1,1,0,,HP": "duration", "1,1,A,1,1.5,1,0,1,HP": "gpu_request",
		"1,1,A,1,,1,0,1,HP":    "gpu_request",
		"1,1,A,1,1,1.5,0,1,HP": "a whole number of workers", "1,1,A,1,8,536870912,0,1,HP": "GPUs in all",
		"1,1,A,-1,1,1,0,1,HP":                    "cores of one worker",
		"1,1,A,1,1,1,0,1,HP\n1,1,A,1,1,1,0,1,HP": `f.csv:3: job_name: got "1", want a name of its own`,
	} {
		_, err := NewReader(strings.NewReader(head+row+"\n"), "f.csv")
		var re *traces.RowError
		if !errors.As(err, &re) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s", row, err, want)
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add(head + "7,13,A10,20,1,1,5,2764799,HP\n")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := NewReader(strings.NewReader(text), "f")
		if err != nil {
			return
		}
		jobs, err := traces.ReadAll(d)
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range jobs {
			if j.GPUs < 0 || j.GPUs > traces.MaxGPUs || j.CPUMilli < 0 || j.Submit < 0 || j.Work < 0 || j.GPUMilli < 1 ||
				j.GPUMilli > 1000 {
				t.Fatalf("%+v", j)
			}
		}
	})
}
