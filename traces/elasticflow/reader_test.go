package elasticflow

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"clustergym/traces"
)

const s = time.Second

func made(tb testing.TB, name string) string {
	tb.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

func TestReadsBothOrdersOfColumns(t *testing.T) {
	for _, c := range []struct {
		file  string
		want  []traces.Job
		moved int
	}{
		{"real.csv", []traces.Job{
			{ID: "0", Model: "neta", Work: 1000 * s, Estimate: 1100 * s, GPUs: 1, MinGPUs: 1, MaxGPUs: 64, GPUMilli: 1000,
				Iterations: 1200, Batch: 256, Deadline: 900 * s},
			{ID: "1", Model: "netb", Submit: 60500 * time.Millisecond, Work: 400 * s, Estimate: 400 * s, GPUs: 4, MinGPUs: 1,
				MaxGPUs: 4, GPUMilli: 1000, Iterations: 300, Batch: 2, Deadline: 5000 * s},
		}, 0},
		{"best.csv", []traces.Job{
			{ID: "1", Model: "neta", Submit: 20 * s, Work: 30 * s, GPUs: 1, MinGPUs: 1, MaxGPUs: 32, GPUMilli: 1000,
				Iterations: 8, Batch: 32},
			{ID: "0", Model: "neta", Submit: 100 * s, Work: 40 * s, GPUs: 2, MinGPUs: 1, MaxGPUs: 32, GPUMilli: 1000,
				Iterations: 7, Batch: 32, Deadline: 150 * s},
		}, 1},
	} {
		text := made(t, c.file)
		for name, in := range map[string]string{"as it is": text,
			"CR LF and a mark": "\ufeff" + strings.ReplaceAll(text, "\n", "\r\n") + "\r\n\r\n",
			"quotes":           strings.ReplaceAll(text, "neta", `"neta"`)} {
			d, err := NewReader(strings.NewReader(in), "t.csv")
			if err != nil {
				t.Errorf("%s, %s: %v", c.file, name, err)
				continue
			}
			for i := range c.want {
				var j traces.Job
				if err := d.Next(&j); err != nil || !reflect.DeepEqual(j, c.want[i]) {
					t.Errorf("%s, %s: %v\n%+v\nwant\n%+v", c.file, name, err, j, c.want[i])
				}
			}
			if rest, err := traces.ReadAll(d); len(rest) != 0 || err != nil || d.Moved() != c.moved || d.Skipped() != nil {
				t.Errorf("%s, %s: then %v, %v; moved %d, skipped %v", c.file, name, rest, err, d.Moved(), d.Skipped())
			}
		}
	}
}

func TestFaultsSayWhereWhatAndWhatWouldBeRight(t *testing.T) {
	const head = "job_id,submit_time,iteration,model_name,ddl,batch_size,num_gpu,duration,best_effort,real_iteration,real_duration\n"
	for name, c := range map[string]struct{ text, want string }{
		"another header": {"job_id,submit_time,model_name,num_gpu,duration\n",
			"want a header with also iteration, ddl, batch_size"},
		"before the time": {head + "0,-1,5,m,9,8,1,3,0,,\n", `t.csv:2: submit_time: got "-1", want seconds, 0 or more`},
		"no GPU": {head + "0,1,5,m,9,8,0,3,0,,\n",
			`t.csv:2: num_gpu: got "0", want a whole number of GPUs, 1 or more`},
		"no batch": {head + "0,1,5,m,9,0,1,3,0,,\n", `t.csv:2: batch_size: got "0", want a whole number, 1 or more`},
		"iterations": {head + "0,1,5.5,m,9,8,1,3,0,,\n",
			`t.csv:2: iteration: got "5.5", want a whole number, 0 or more`},
		"duration":        {head + "0,1,5,m,9,8,1,1e10,0,,\n", `t.csv:2: duration: got "1e10", want seconds`},
		"real iterations": {head + "0,1,5,m,9,8,1,3,0,x,\n", `t.csv:2: real_iteration: got "x"`},
		"real duration":   {head + "0,1,5,m,9,8,1,3,0,,x\n", `t.csv:2: real_duration: got "x"`},
		"best effort":     {head + "0,1,5,m,9,8,1,3,2,,\n", `t.csv:2: best_effort: got "2", want a whole number from 0 to 1`},
		"no deadline":     {head + "0,1,5,m,,8,1,3,0,,\n", `t.csv:2: ddl: got "", want seconds`},
		"deadline at 0":   {head + "0,1,5,m,0,8,1,3,0,,\n", `t.csv:2: ddl: got "0", want seconds above 0`},
	} {
		_, err := NewReader(strings.NewReader(c.text), "t.csv")
		var re *traces.RowError
		if !errors.As(err, &re) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", name, err, c.want)
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(made(f, "real.csv")))
	f.Add([]byte(made(f, "best.csv")))
	f.Add([]byte("batch_size,num_gpu,duration,ddl,model_name,iteration,submit_time,job_id\r\n9223372036854775807,1073741824,0,1e-9,\"\",0,9223372036,\"\"\"\"\r\n1,1,1,1,,1,0,\r\n"))
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
			if i > 0 && j.Submit < jobs[i-1].Submit || j.Submit < 0 || j.Work < 0 || j.Estimate < 0 || j.Deadline < 0 ||
				j.MinGPUs != 1 || j.GPUs < 1 || j.MaxGPUs < j.GPUs {
				t.Fatalf("job %d: %+v", i, j)
			}
		}
	})
}
