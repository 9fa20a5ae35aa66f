package chronus

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"clustergym/traces"
)

const m = time.Minute

func made(tb testing.TB) string {
	tb.Helper()
	b, err := os.ReadFile("testdata/jobs.csv")
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

func TestReadsATraceInOrderOfSubmit(t *testing.T) {
	want := []traces.Job{
		{ID: "1", User: "vc_bb22", VC: "bb22", Model: "neta", Submit: 10 * m, Work: 300 * m, GPUs: 8, GPUMilli: 1000,
			Iterations: 70, Deadline: 460 * m},
		{ID: "7", User: "vc_bb22", VC: "bb22", Model: "netc", Submit: 10 * m, Work: 5 * m, GPUs: 4, GPUMilli: 1000,
			Deadline: 16 * m},
		{ID: "0", User: "vc_aa11", VC: "aa11", Model: "netb", Submit: 90 * m, Work: 20 * m, GPUs: 1, GPUMilli: 1000,
			Iterations: 500, Deadline: 120 * m},
		{ID: "4", User: "vc_bb22", VC: "bb22", Model: "netb", Submit: 90 * m, Work: 60 * m, GPUs: 2, GPUMilli: 1000,
			Iterations: 900},
	}
	text := made(t)
	for name, in := range map[string]string{"as it is": text,
		"CR LF and a mark": "\ufeff" + strings.ReplaceAll(text, "\n", "\r\n") + "\r\n\r\n",
		"quotes":           strings.ReplaceAll(text, "vc_aa11", `"vc_aa11"`)} {
		d, err := NewReader(strings.NewReader(in), "t.csv")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i := range want {
			var j traces.Job
			if err := d.Next(&j); err != nil || !reflect.DeepEqual(j, want[i]) {
				t.Errorf("%s: %v\n%+v\nwant\n%+v", name, err, j, want[i])
			}
		}
		if rest, err := traces.ReadAll(d); len(rest) != 0 || err != nil {
			t.Errorf("%s: then %v, %v", name, rest, err)
		}
		if d.Moved() != 2 || !reflect.DeepEqual(d.Skipped(),
			[]traces.Skip{{Reason: "asks for no GPU: num_gpu is 0", Count: 1}}) {
			t.Errorf("%s: moved %d, skipped %v", name, d.Moved(), d.Skipped())
		}
	}
}

func TestFaultsSayWhereWhatAndWhatWouldBeRight(t *testing.T) {
	const head = "job_id,user,num_gpu,submit_time,iterations,model_name,duration,expect_time_list,expect_value_list,best_effort\n"
	for name, c := range map[string]struct{ text, want string }{
		"another header": {"job_id,user,num_gpu,submit_time,iterations,model_name,duration\n",
			"want a header with also expect_time_list, expect_value_list"},
		"half a GPU": {head + "0,u,0.5,1,1,m,1,5,10,0\n",
			`t.csv:2: num_gpu: got "0.5", want a whole number of GPUs, 0 or more`},
		"before the time": {head + "0,u,1,-1,1,m,1,5,10,0\n", `t.csv:2: submit_time: got "-1", want minutes, 0 or more`},
		"too long": {head + "0,u,1,1,1,m,99999999,5,10,0\n",
			`t.csv:2: duration: got "99999999", want minutes, 0 or more and below 146 years`},
		"iterations":    {head + "0,u,1,1,x,m,1,5,10,0\n", `t.csv:2: iterations: got "x", want a whole number, 0 or more`},
		"falling times": {head + "0,u,1,1,1,m,1,5-4,10-8,0\n", `t.csv:2: expect_time_list: got "5-4", want rising minutes`},
		"no time":       {head + "0,u,1,1,1,m,1,,,0\n", `t.csv:2: expect_time_list: got "", want rising minutes`},
		"time 0":        {head + "0,u,1,1,1,m,1,0,10,0\n", `t.csv:2: expect_time_list: got "0"`},
		"a value missing": {head + "0,u,1,1,1,m,1,5-6,10,0\n",
			`t.csv:2: expect_value_list: got "10", want as many values as expect_time_list has times`},
		"rising values": {head + "0,u,1,1,1,m,1,5-6,8-10,0\n",
			`t.csv:2: expect_value_list: got "8-10", want whole numbers`},
		"best_effort": {head + "0,u,1,1,1,m,1,5,10,yes\n",
			`t.csv:2: best_effort: got "yes", want a whole number from 0 to 1`},
		"a field missing": {head + "0,u,1,1,1,m,1,5,10\n", `t.csv:2: got "9 fields", want 10, as in the header`},
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
	f.Add([]byte("best_effort,job_id,user,num_gpu,submit_time,iterations,model_name,duration,expect_time_list,expect_value_list\r\n" +
		"1,\"a\",vc_,0,76000000,1e3,m,0.5,x,y\r\n,b,c,3,1,0,,76000000,0.1-76000000,3-3\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := NewReader(strings.NewReader(string(b)), "f")
		if err != nil {
			return
		}
		n, last := 0, time.Duration(0)
		for ; ; n++ {
			var j traces.Job
			if d.Next(&j) != nil {
				break
			}
			if j.Submit < last || j.Work < 0 || j.GPUs < 1 || j.Deadline != 0 && j.Deadline <= j.Submit {
				t.Fatalf("job %d: %+v", n, j)
			}
			last = j.Submit
		}
		for _, k := range d.Skipped() {
			n += k.Count
		}
		if n > len(b) || d.Moved() > n || !Sniff(b) {
			t.Fatalf("%d rows from %d bytes, %d moved", n, len(b), d.Moved())
		}
	})
}
