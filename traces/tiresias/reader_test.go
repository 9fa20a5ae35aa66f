package tiresias

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"clustergym/traces"
)

const (
	s    = time.Second
	made = "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\r\n" +
		"0,1,0,606,vgg19,164,30\r\n2,2,53,157,inception4,127.5,26\r\n1,8,30,133,vgg19,147,23\r\n3,8,99,133,vgg19,0,23\r\n"
)

func TestReadsAWorkloadInOrderOfSubmit(t *testing.T) {
	want := []traces.Job{
		{ID: "0", Model: "vgg19", Work: 164 * s, GPUs: 1, GPUMilli: 1000, Iterations: 606},
		{ID: "1", Model: "vgg19", Submit: 30 * s, Work: 147 * s, GPUs: 8, GPUMilli: 1000, Iterations: 133},
		{ID: "2", Model: "inception4", Submit: 53 * s, Work: 127500 * time.Millisecond, GPUs: 2, GPUMilli: 1000,
			Iterations: 157},
	}
	for name, in := range map[string]string{"CR LF": made, "LF": strings.ReplaceAll(made, "\r", ""),
		"byte order mark, blank last line": "\ufeff" + made + "\r\n"} {
		d, err := NewReader(strings.NewReader(in), "t.csv")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := traces.ReadAll(d)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v\n%+v\nwant\n%+v", name, err, got, want)
		}
		if d.Moved() != 1 || !reflect.DeepEqual(d.Skipped(), []traces.Skip{{Reason: NoRunTime, Count: 1}}) ||
			!Sniff([]byte(in)) || SniffSample([]byte(in)) {
			t.Errorf("%s: moved %d, skipped %v", name, d.Moved(), d.Skipped())
		}
	}
}

func TestReadsASample(t *testing.T) {
	const text = "duration\r\n121\r\n0.5\r\n\r\n"
	got, err := ReadSample(strings.NewReader(text), "t.csv")
	if err != nil || !reflect.DeepEqual(got, []float64{121, .5}) {
		t.Errorf("%v, %v", got, err)
	}
	if !SniffSample([]byte(text)) || Sniff([]byte(text)) || SniffSample([]byte("duration,num_gpu\n")) {
		t.Error("not recognised, or another taken for it")
	}
}

func TestFaultsSayWhereWhatAndWhatWouldBeRight(t *testing.T) {
	const head = "job_id,num_gpu,submit_time,iterations,model_name,duration\n"
	jobs := func(text string) error { _, err := NewReader(strings.NewReader(text), "t.csv"); return err }
	sample := func(text string) error { _, err := ReadSample(strings.NewReader(text), "t.csv"); return err }
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"empty file": {jobs(""), `t.csv:1: got "", want a header with job_id, num_gpu`},
		"columns missing": {jobs("job_id,duration\n"),
			`want a header with also num_gpu, submit_time, iterations, model_name`},
		"a field missing": {jobs(head + "0,1\n"), `t.csv:2: got "2 fields", want 6`},
		"no GPU": {jobs(head + "0,0,0,1,m,1\n"),
			`t.csv:2: num_gpu: got "0", want a whole number of GPUs, 1 or more`},
		"half a GPU":         {jobs(head + "0,.5,0,1,m,1\n"), `t.csv:2: num_gpu: got ".5"`},
		"submit before":      {jobs(head + "0,1,-1,1,m,1\n"), `t.csv:2: submit_time: got "-1", want seconds, 0 or more`},
		"half an iteration":  {jobs(head + "0,1,0,1.5,m,1\n"), `t.csv:2: iterations: got "1.5", want a whole number`},
		"duration nan":       {jobs(head + "0,1,0,1,m,nan\n"), `t.csv:2: duration: got "nan", want seconds`},
		"sample empty":       {sample(""), `t.csv:1: got "", want a header with duration`},
		"sample without row": {sample("duration\n"), `t.csv:1: duration: got "no rows", want at least one GPU time`},
		"sample of nothing":  {sample("duration\n0\n"), `t.csv:2: duration: got "0", want seconds of GPU time, above 0`},
		"sample in words":    {sample("duration\nlong\n"), `t.csv:2: duration: got "long", want seconds`},
	} {
		var re *traces.RowError
		if !errors.As(c.err, &re) || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", name, c.err, c.want)
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(made))
	f.Add([]byte("duration\r\n121\r\n1e-9\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		Sniff(b)
		if v, err := ReadSample(strings.NewReader(string(b)), "f"); err == nil {
			for _, x := range v {
				if !(x > 0) {
					t.Fatalf("%v", v)
				}
			}
		}
		d, err := NewReader(strings.NewReader(string(b)), "f")
		if err != nil {
			return
		}
		for i, j := range d.Jobs() {
			if j.Submit < 0 || i > 0 && j.Submit < d.Jobs()[i-1].Submit || j.Work <= 0 || j.GPUs < 1 || j.Iterations < 0 {
				t.Fatalf("job %d: %+v", i, j)
			}
		}
	})
}
