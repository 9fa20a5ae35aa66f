package philly

import (
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"clustergym/traces"
)

const attempts = `job_id,vc,num_gpus,submitted_time,attempt,start_time,end_time
app_2,ee,8,2017-11-04 12:00:00,0,2017-11-04 12:01:00,2017-11-04 12:11:00
app_2,ee,8,2017-11-04 12:00:00,2,2017-11-05 01:50:00,2017-11-05 01:10:00
app_1,10,4,2017-11-04 11:00:00,0,2017-11-04 11:00:00,2017-11-04 11:30:00
app_2,ee,8,2017-11-04 12:00:00,1,2017-11-04 13:00:00,2017-11-04 14:00:00
app_3,10,4,2017-11-04 10:00:00,0,2017-11-04 11:00:00,2017-11-04 11:00:00
`

func TestAttemptsMakeJobsInOrderOfSubmit(t *testing.T) {
	const m = time.Minute
	jobs := []traces.Job{
		{ID: "app_1", VC: "10", Submit: 60 * m, Work: 30 * m, GPUs: 4, GPUMilli: 1000, Started: true},
		// 10 + 60 + 20 over the change of the clock
		{ID: "app_2", VC: "ee", Submit: 120 * m, Work: 90 * m, GPUs: 8, GPUMilli: 1000, Started: true,
			Waited: m},
	}
	for name, in := range map[string]string{"as it is": attempts, "CR LF": strings.ReplaceAll(attempts, "\n", "\r\n"),
		"byte order mark, blank last line": "\ufeff" + attempts + "\n"} {
		d, err := NewAttempts(strings.NewReader(in), "t.csv")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var j traces.Job
		for i := range jobs {
			if err := d.Next(&j); err != nil || !reflect.DeepEqual(j, jobs[i]) {
				t.Errorf("%s: %v\n%+v\nwant\n%+v", name, err, j, jobs[i])
			}
		}
		if err := d.Next(&j); err != io.EOF {
			t.Errorf("%s: after the end: %v", name, err)
		}
		if d.Moved() != 1 || d.Origin().Format(time.DateTime) != "2017-11-04 10:00:00" ||
			!reflect.DeepEqual(d.Skipped(), []traces.Skip{{Reason: NeverRan, Count: 1}}) {
			t.Errorf("%s: moved %d, origin %v, skipped %v", name, d.Moved(), d.Origin(), d.Skipped())
		}
		if !SniffAttempts([]byte(in)) || Sniff([]byte(in)) {
			t.Errorf("%s: not recognised", name)
		}
	}
	if !Sniff([]byte(made(t))) || SniffAttempts([]byte(made(t))) {
		t.Error("the table of jobs is not recognised")
	}
	d, err := NewAttempts(strings.NewReader(attempts[:strings.Index(attempts, "\n")+1]), "t.csv")
	if err != nil || !d.Origin().IsZero() {
		t.Errorf("no rows: %v", err)
	}
}

func TestFaultsOfAttemptsSayWhereWhatAndWhatWouldBeRight(t *testing.T) {
	const (
		head = "job_id,vc,num_gpus,submitted_time,attempt,start_time,end_time\n"
		a    = "2017-10-09 07:00:00"
		b    = "2017-10-09 09:00:00"
		row  = "x,v,4," + a + ",0," + a + "," + b + "\n"
	)
	for name, c := range map[string]struct{ text, want string }{
		"empty file":      {"", `t.csv:1: got "", want a header with job_id, vc`},
		"columns missing": {"job_id,vc,attempt\n", `want a header with also num_gpus, submitted_time, start_time, end_time`},
		"a field missing": {head + "x,v\n", `t.csv:2: got "2 fields", want 7`},
		"no job":          {head + ",v,4," + a + ",0," + a + "," + b + "\n", `t.csv:2: job_id: got "", want the job's name`},
		"no GPU": {head + "x,v,0," + a + ",0," + a + "," + b + "\n",
			`t.csv:2: num_gpus: got "0", want a whole number of GPUs, 1 or more`},
		"another clock": {head + "x,v,4,9.10.2017,0," + a + "," + b + "\n",
			`t.csv:2: submitted_time: got "9.10.2017", want a time`},
		"half an attempt": {head + "x,v,4," + a + ",.5," + a + "," + b + "\n",
			`t.csv:2: attempt: got ".5", want the number`},
		"an attempt twice": {head + row + row, `t.csv:3: attempt: got "0", want each attempt of a job once`},
		"other GPUs": {head + row + "x,v,8," + a + ",1," + a + "," + b + "\n",
			`t.csv:3: num_gpus: got "8", want 4, as in an earlier row of x`},
		"other VC": {head + row + "x,w,4," + a + ",1," + a + "," + b + "\n", `t.csv:3: vc: got "w", want v, as in`},
		"other submit": {head + row + "x,v,4," + b + ",1," + a + "," + b + "\n",
			`t.csv:3: submitted_time: got "` + b + `", want the time in an earlier row of x`},
		"longer than time": {head + "x,v,4," + a + ",0,1970-01-01 00:00:00,2199-01-01 00:00:00\nx,v,4," + a +
			",1,1970-01-01 00:00:00,2199-01-01 00:00:00\n",
			`t.csv:3: end_time: got "2199-01-01 00:00:00", want attempts of together`},
	} {
		_, err := NewAttempts(strings.NewReader(c.text), "t.csv")
		var re *traces.RowError
		if !errors.As(err, &re) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", name, err, c.want)
		}
	}
}

func TestJobsOfAttemptsWithoutStartOrEndAreLeftOutAndCounted(t *testing.T) {
	const head = "job_id,vc,num_gpus,submitted_time,attempt,start_time,end_time\n"
	const text = head +
		"a,v,8,2017-10-06 14:37:00,0,2017-10-06 14:40:02,2017-10-06 15:40:02\na,v,8,2017-10-06 14:37:00,1,2017-10-06 15:45:02,None\n" +
		"b,v,8,2017-10-06 14:37:10,0,None,None\nc,v,8,2017-10-06 14:37:20,0,2017-10-06 14:40:02,2017-10-06 15:40:02\n" +
		"d,v,8,2017-10-06 14:37:20,0,2017-10-06 14:40:02,NaN\ne,v,8,2017-10-06 14:37:20,0,2017-10-06 18:40:02,2017-10-06 15:40:02\n" +
		"f,v,8,None,0,2017-10-06 14:40:02,2017-10-06 15:40:02\ng,v,8,2017-10-06 14:37:30,0,2017-10-06 14:40:02,2017-10-06 15:40:02\ng,v,8,2017-10-06 14:37:30,1,,\n"
	d, err := NewAttempts(strings.NewReader(text), "t.csv")
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := traces.ReadAll(d)
	if err != nil || len(jobs) != 1 || jobs[0].ID != "c" || jobs[0].Submit != 20*time.Second || jobs[0].Work != time.Hour {
		t.Errorf("%+v, %v", jobs, err)
	}
	want := []traces.Skip{{Reason: NotEnded + " (first in line 3)", Count: 3},
		{Reason: NeverStarted + " (first in line 4)", Count: 1},
		{Reason: EndFirst + " (first in line 7)", Count: 1}, {Reason: NoSubmit + " (first in line 8)", Count: 1}}
	if got := d.Skipped(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

func FuzzAttempts(f *testing.F) {
	f.Add([]byte(attempts))
	f.Fuzz(func(t *testing.T, b []byte) {
		Sniff(b)
		SniffAttempts(b)
		d, err := NewAttempts(strings.NewReader(string(b)), "f")
		if err != nil {
			return
		}
		last := time.Duration(0)
		var j traces.Job
		for d.Next(&j) == nil {
			if j.Submit < last || j.Work <= 0 || j.GPUs < 1 {
				t.Fatalf("%+v", j)
			}
			last = j.Submit
		}
		if d.Moved() > len(d.Jobs()) {
			t.Fatalf("%d of %d jobs moved", d.Moved(), len(d.Jobs()))
		}
	})
}
