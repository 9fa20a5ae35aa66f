package sia

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"clustergym/traces"
)

const ms = time.Millisecond

func made(tb testing.TB, name string) string {
	tb.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

func TestReadsAWorkloadInOrderOfSubmit(t *testing.T) {
	for _, c := range []struct {
		file  string
		want  []traces.Job
		moved int
	}{
		{"workload.csv", []traces.Job{
			{ID: "appa-0", Model: "appa", Submit: 12500 * ms, GPUs: 4, GPUMilli: 1000, Batch: 512},
			{ID: "appa-2", Model: "appa", Submit: 30250 * ms, GPUs: 16, GPUMilli: 1000, Batch: 2048},
			{ID: "appb-1", Model: "appb", Submit: 40000 * ms, GPUs: 1, GPUMilli: 1000, Batch: 64},
		}, 1},
		{"mixed.csv", []traces.Job{
			{ID: "appa-0", Model: "appa", Submit: 5000 * ms, GPUs: 4, GPUMilli: 1000, Batch: 512},
			{ID: "appb-1", Model: "appb", Submit: 7000 * ms, GPUs: 2, GPUMilli: 1000, Batch: 128},
			{ID: "appc-2", Model: "appc", Submit: 9000 * ms, GPUs: 8, GPUMilli: 1000, Batch: 256},
		}, 0},
	} {
		text := made(t, c.file)
		for name, in := range map[string]string{"as it is": text,
			"CR LF and a mark": "\ufeff" + strings.ReplaceAll(text, "\n", "\r\n") + "\r\n\r\n",
			"quotes":           strings.ReplaceAll(text, ",appa,", `,"appa",`)} {
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
	const head = "name,time,application,num_replicas,batch_size,category\n"
	for name, c := range map[string]struct{ text, want string }{
		"another header": {"name,time,num_replicas\n",
			`t.csv:1: got "name,time,num_replicas", want a header with also application, batch_size`},
		"before the time": {head + "a,-1,app,1,8,\n", `t.csv:2: time: got "-1", want seconds, 0 or more`},
		"no application":  {head + "a,1,,1,8,\n", `t.csv:2: application: got "", want the name of an application`},
		"no GPU": {head + "a,1,app,0,8,\n",
			`t.csv:2: num_replicas: got "0", want a whole number of GPUs, 1 or more`},
		"no batch": {head + "a,1,app,1,x,\n", `t.csv:2: batch_size: got "x", want a whole number, 1 or more`},
		"category": {head + "a,1,app,1,8,fixed\n",
			`t.csv:2: category: got "fixed", want adaptive, scale-gpus or rigid`},
	} {
		_, err := NewReader(strings.NewReader(c.text), "t.csv")
		var re *traces.RowError
		if !errors.As(err, &re) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", name, err, c.want)
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(made(f, "workload.csv")))
	f.Add([]byte(made(f, "mixed.csv")))
	f.Add([]byte("time,name,batch_size,num_replicas,application\r\n9223372036,\"\",9223372036854775807,1073741824,\" a\"\r\n0,,1,1,b\r\n"))
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
			if i > 0 && j.Submit < jobs[i-1].Submit || j.Submit < 0 || j.Work != 0 || j.Model == "" || j.GPUs < 1 {
				t.Fatalf("job %d: %+v", i, j)
			}
		}
	})
}
