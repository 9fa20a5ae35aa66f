package pai

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
	made = `,job_name,norm_job_submit_time,ddl,V100,A100,T4
0,aa,0,inf,1500.0,1000.0,4000.0
1,bb,5,7200.5,50,100,25
2,cc,0,INF,1,1,1
`
)

// job is a job of the table with these speeds.
func job(id string, submit, work, deadline time.Duration, v100, a100, t4 float64) traces.Job {
	return traces.Job{ID: id, Submit: submit, Work: work, Deadline: deadline, GPUs: 1, GPUMilli: 1000,
		Profile: &traces.Profile{Speeds: map[string]float64{"V100": v100, "A100": a100, "T4": t4}}}
}

func TestReadsRunTimesOnEveryType(t *testing.T) {
	late := 7200*s + 500*time.Millisecond
	for name, c := range map[string]struct {
		text string
		o    Options
		want []traces.Job
	}{
		"on the A100": {made, Options{},
			[]traces.Job{job("aa", 0, 1000*s, 0, 1000./1500, 1, .25), job("cc", 0, s, 0, 1, 1, 1),
				job("bb", 5*s, 100*s, late, 2, 1, 4)}},
		"on the T4": {made, Options{Reference: "T4"},
			[]traces.Job{job("aa", 0, 4000*s, 0, 4000./1500, 4, 1), job("cc", 0, s, 0, 1, 1, 1),
				job("bb", 5*s, 25*s, late, .5, .25, 1)}},
		"CR LF": {strings.ReplaceAll(made, "\n", "\r\n"), Options{Reference: "A100"},
			[]traces.Job{job("aa", 0, 1000*s, 0, 1000./1500, 1, .25), job("cc", 0, s, 0, 1, 1, 1),
				job("bb", 5*s, 100*s, late, 2, 1, 4)}},
		"other order": {"T4,ddl,\"job_name\",V100,norm_job_submit_time,A100\n2,inf,x,4,0,1\n\n", Options{},
			[]traces.Job{job("x", 0, s, 0, .25, 1, .5)}},
	} {
		d, err := NewReader(strings.NewReader(c.text), "t.csv", c.o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := traces.ReadAll(d)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v\n%+v\nwant\n%+v", name, err, got, c.want)
		}
		if !Sniff([]byte(c.text)) || d.Skipped() != nil {
			t.Errorf("%s: skipped %v", name, d.Skipped())
		}
	}
	d, err := NewReader(strings.NewReader("job_name,norm_job_submit_time,ddl,X,Y\nq,0,inf,3,6\n"), "t.csv", Options{})
	if err != nil || d.Jobs()[0].Work != 3*time.Second || d.Moved() != 0 {
		t.Errorf("without an A100: %v", err)
	}
}

func TestFaultsSayWhereWhatAndWhatWouldBeRight(t *testing.T) {
	const head = "job_name,norm_job_submit_time,ddl,A,B\n"
	for name, c := range map[string]struct {
		text, ref, want string
	}{
		"empty file": {"", "", `t.csv:1: got "", want a header with job_name, norm_job_submit_time, ddl`},
		"columns missing": {"job_name,A\n", "",
			`t.csv:1: got "job_name,A", want a header with also norm_job_submit_time, ddl`},
		"no types": {",job_name,norm_job_submit_time,ddl\n", "",
			`want a header with also a column of run times for each GPU type`},
		"no such type":    {head, "H100", `t.csv:1: H100: got "A,B", want a column of run times on the reference type H100`},
		"a field missing": {head + "x,0,inf,1\n", "", `t.csv:2: got "4 fields", want 5, as in the header`},
		"submit before":   {head + "x,-1,inf,1,1\n", "", `t.csv:2: norm_job_submit_time: got "-1", want seconds, 0 or more`},
		"deadline in ink": {head + "x,0,soon,1,1\n", "",
			`t.csv:2: ddl: got "soon", want seconds above 0 and below 292 years, or inf`},
		"deadline 0":   {head + "x,0,0,1,1\n", "", `t.csv:2: ddl: got "0"`},
		"no run time":  {head + "x,0,inf,1,0\n", "", `t.csv:2: B: got "0", want a run time in seconds, above 0`},
		"run time inf": {head + "x,0,inf,inf,1\n", "", `t.csv:2: A: got "inf", want a run time`},
	} {
		_, err := NewReader(strings.NewReader(c.text), "t.csv", Options{Reference: c.ref})
		var re *traces.RowError
		if !errors.As(err, &re) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", name, err, c.want)
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(made), "")
	f.Add([]byte(made), "T4")
	f.Fuzz(func(t *testing.T, b []byte, ref string) {
		Sniff(b)
		d, err := NewReader(strings.NewReader(string(b)), "f", Options{Reference: ref})
		if err != nil {
			return
		}
		for i, j := range d.Jobs() {
			if j.Submit < 0 || i > 0 && j.Submit < d.Jobs()[i-1].Submit || j.Work <= 0 || j.Deadline < 0 ||
				ref != "" && j.Profile.Speeds[ref] != 1 {
				t.Fatalf("job %d: %+v", i, j)
			}
		}
	})
}
