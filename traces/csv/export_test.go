package csv

import (
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/traces"
)

const (
	sec  = time.Second
	hour = time.Hour
)

// exported is what the files of TestFilesAsPeopleHaveThem hold.
var exported = []traces.Job{
	{ID: "a", User: "ann", Work: 90 * time.Minute, GPUs: 4, GPUMilli: 1000},
	{ID: "b", User: "bob, jr", Submit: 90*sec + sec/2, Work: 26*hour + 3*60*sec + 4*sec, GPUs: 1, GPUMilli: 500},
}

func TestFilesAsPeopleHaveThem(t *testing.T) {
	for name, c := range map[string]struct {
		text    string
		columns map[string]string
	}{
		"native":            {text: "submit_time,duration,num_gpu,job_id,user\n0,5400,4,a,ann\n90.5,93784,0.5,b,\"bob, jr\"\n"},
		"order mark, CR LF": {text: "\ufeffsubmit_time,duration,num_gpu,job_id,user\r\n0,5400,4,a,ann\r\n90.5,93784,0.5,b,\"bob, jr\"\r\n"},
		"semicolons":        {text: "submit_time;duration;num_gpu;job_id;user\n0;5400,0;4;a;ann\n90,5;93784;0,5;b;bob, jr\n"},
		"tabs":              {text: "submit_time\tduration\tnum_gpu\tjob_id\tuser\n0\t5400\t4\ta\tann\n90.5\t93784\t0.5\tb\tbob, jr\n"},
		"bars":              {text: "submit_time|duration|num_gpu|job_id|user\n0|5400|4|a|ann\n90.5|93784|0.5|b|bob, jr\n"},
		"quoted header":     {text: "\"submit_time\";\"duration\";\"num_gpu\";\"job_id\";\"user\"\n0;5400;4;a;ann\n90,5;93784;0,5;b;\"bob, jr\"\n"},
		"blanks in names":   {text: "Submit Time,Duration,Num GPU,Job ID,User\n0,5400,4,a,ann\n90.5,93784,0.5,b,\"bob, jr\"\n"},
		"dashes":            {text: "submit-time,DURATION,num-gpu,job-id,user\n0,5400,4,a,ann\n90.5,93784,0.5,b,\"bob, jr\"\n"},
		"camels":            {text: "SubmitTime,duration,numGPU,jobId,User\n0,5400,4,a,ann\n90.5,93784,0.5,b,\"bob, jr\"\n"},
		"dots":              {text: "submit.time,duration,num.gpu,job.id,user\n0,5400,4,a,ann\n90.5,93784,0.5,b,\"bob, jr\"\n"},
		"unix times":        {text: "submit_time,duration,num_gpu,job_id,user\n1709294400,5400,4,a,ann\n1709294490.5,93784,0.5,b,\"bob, jr\"\n"},
		"dates":             {text: "submit_time,duration,num_gpu,job_id,user\n2024-03-01 12:00:00,1h30m,4,a,ann\n2024-03-01 12:01:30.5,\"1 day, 2:03:04\",0.5,b,\"bob, jr\"\n"},
		"dates with zones":  {text: "submit_time,duration,num_gpu,job_id,user\n2024-03-01T12:00:00Z,01:30:00,4,a,ann\n2024-03-01T13:01:30.500+01:00,1-02:03:04,0.5,b,\"bob, jr\"\n"},
		"starts and ends":   {text: "submit_time,start_time,end_time,num_gpu,job_id,user\n0,10,5410,4,a,ann\n90.5,100,93884,0.5,b,\"bob, jr\"\n"},
		"dated ends":        {text: "submit_time,Start Time,End Time,num_gpu,job_id,user\n2024-03-01T12:00,2024-03-01T12:00,2024-03-01T13:30,4,a,ann\n2024-03-01T12:01:30.5,2024-03-01,2024-03-02T02:03:04,0.5,b,\"bob, jr\"\n"},
		"columns": {text: "Submit,Elapsed,GPUs,id,user\n0,5400,4,a,ann\n90.5,26:03:04,0.5,b,\"bob, jr\"\n",
			columns: map[string]string{"submit_time": "Submit", "duration": "elapsed", "num_gpu": "GPUs", "job_id": "id"}},
		"columns and commas": {text: "Submit;Elapsed;GPUs;id;user\n0;5400;4;a;ann\n90,5;93784,0;0,5;b;bob, jr\n",
			columns: map[string]string{"submit_time": "Submit", "duration": "Elapsed", "num_gpu": "GPUs", "job_id": "id"}},
		// The column of another meaning that has the name is a label.
		"a name taken": {text: "submit_time,duration,num_gpu,job_id,user,owner\n0,5400,4,a,x,ann\n90.5,93784,0.5,b,y,\"bob, jr\"\n", columns: map[string]string{"user": "owner"}},
	} {
		o := Options{Columns: c.columns}
		got, err := read(t, c.text, o)
		if err != nil || !reflect.DeepEqual(unstarted(got), exported) {
			t.Errorf("%s: %v\n%+v\nwant\n%+v", name, err, got, exported)
		}
		if n := Sniff([]byte(c.text), o); n != 3 {
			t.Errorf("%s: %d columns known, want 3", name, n)
		}
		// In any order and put in order, the jobs are the same.
		lines := strings.SplitAfter(c.text, "\n")
		d, err := NewReader(strings.NewReader(lines[0]+lines[2]+lines[1]), "t.csv",
			Options{Columns: c.columns, Unsorted: true})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		jobs, err := traces.ReadAll(d)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		moved := traces.SortStable(jobs)
		d.Rebase(jobs)
		if moved != 1 || !reflect.DeepEqual(unstarted(jobs), exported) {
			t.Errorf("%s, sorted: %d moved\n%+v\nwant\n%+v", name, moved, jobs, exported)
		}
	}
}

func TestTheDelimiterCanBeGiven(t *testing.T) {
	const text = "submit_time,duration,num_gpu|submit_time|duration|num_gpu\n9,9,9|1|2|3\n"
	jobs, err := read(t, text, Options{Delimiter: '|'})
	if err != nil || len(jobs) != 1 || jobs[0].Work != 2*sec {
		t.Errorf("%v, %+v", err, jobs)
	}
	if _, err := read(t, text, Options{Delimiter: ';'}); err == nil ||
		!strings.Contains(err.Error(), "no columns submit_time") {
		t.Error(err)
	}
}

func TestJobsThatNeverRanAreLeftOutAndCounted(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []traces.Skip
		ids  string
	}{
		"starts and ends": {"submit_time,start_time,end_time,num_gpu\n0,,,1\n1,2,None,1\n2,NaT,NaT,1\n3,4,5,1\n4,Unknown,5,1\n", []traces.Skip{{Reason: NeverStarted, Count: 3}, {Reason: NotEnded, Count: 1}}, "3"},
		"dates": {"submit_time,start_time,end_time,num_gpu\n2024-03-01,,,1\n2024-03-02,2024-03-02,2024-03-03,1\n2024-03-04,2024-03-04,N/A,1\n",
			[]traces.Skip{{Reason: NeverStarted, Count: 1}, {Reason: NotEnded, Count: 1}}, "1"},
		"durations": {"submit_time,duration,num_gpu,status\n0,,1,CANCELLED by 1000\n1,nan,1,PENDING\n2,,1,running\n3,4,1,cancelled\n4,0,1,Killed\n", []traces.Skip{{Reason: NoDuration, Count: 3}}, "3 4"},
	} {
		d, err := NewReader(strings.NewReader(c.text), "t.csv", Options{})
		if err != nil {
			t.Fatal(err)
		}
		jobs, err := traces.ReadAll(d)
		var ids []string
		for _, j := range jobs {
			ids = append(ids, j.ID)
		}
		if err != nil || !slices.Equal(d.Skipped(), c.want) || strings.Join(ids, " ") != c.ids {
			t.Errorf("%s: %v, jobs %v, left out %v; want %v, %v", name, err, ids, d.Skipped(), c.ids, c.want)
		}
		if name == "dates" && jobs[0].Submit != 0 {
			t.Errorf("the first job is submitted at %v", jobs[0].Submit)
		}
	}
	jobs, err := read(t, "submit_time,duration,num_gpu,status\n3,4,1,CANCELLED by 0\n", Options{})
	if err != nil || jobs[0].Status != traces.Cancelled {
		t.Errorf("%v, %+v", err, jobs)
	}
}

// Clocks are set back for winter between start and end.
func TestTheHourThatOccursTwice(t *testing.T) {
	const head = "submit_time,start_time,end_time,num_gpu\n"
	jobs, err := read(t, head+"2024-10-27 02:50:00,2024-10-27 02:50:00,2024-10-27 02:10:00,1\n", Options{})
	if err != nil || jobs[0].Work != 20*time.Minute {
		t.Errorf("%v, %+v", err, jobs)
	}
	if _, err := read(t, head+"2024-10-27T02:50:00Z,2024-10-27T02:50:00Z,2024-10-27T02:10:00Z,1\n", Options{}); err ==
		nil ||
		err.Error() != `t.csv:2: end_time: got "2024-10-27T02:10:00Z", want 2024-10-27 02:50:00Z or later, as in start_time` {
		t.Error(err)
	}
}

func TestDeadlinesAreOfTheFilesClock(t *testing.T) {
	const head = "submit_time,duration,num_gpu,deadline\n"
	for text, want := range map[string]time.Duration{
		"5,1,1,\n5,1,1,65\n":                           65 * sec,
		"1700000000,1,1,\n1700000005,1,1,1700000060\n": 60 * sec,
		"1700000000,1,1,\n1700000005,1,1,0\n":          0,
		// passed before the first submit
		"1700000000,1,1,\n1700000005,1,1,1600000000\n":                                            1,
		"2024-03-01T12:00:00Z,1,1,\n2024-03-01T12:00:05Z,1,1,2024-03-01T12:01:00Z\n":              60 * sec,
		"2024-03-01 12:00:00,1,1,2024-03-01 12:00:00\n2024-03-01 12:00:05,1,1,2024-03-01 12:01\n": 60 * sec,
	} {
		for _, unsorted := range []bool{false, true} {
			d, err := NewReader(strings.NewReader(head+text), "t.csv", Options{Unsorted: unsorted})
			if err != nil {
				t.Fatal(err)
			}
			jobs, err := traces.ReadAll(d)
			if unsorted {
				d.Rebase(jobs)
			}
			if err != nil || len(jobs) != 2 || jobs[1].Deadline != want || jobs[1].Submit > 5*sec {
				t.Errorf("%q: %v, %+v, want %v", text, err, jobs, want)
			}
		}
	}
}

func TestFaultsOfExports(t *testing.T) {
	const head = "Submit Time;duration;num_gpu\n"
	for name, c := range map[string]struct {
		text, want string
		columns    map[string]string
	}{
		"day or month": {text: head + "03/04/2024;1;1\n",
			want: `t.csv:2: Submit Time: got "03/04/2024", want a date with the year first such as 2024-03-01 12:00:00, because this one does not tell day from month`},
		"day and month": {text: head + "13.04.2024 12:00;1;1\n", want: `want a date with the year first`},
		"no such day": {text: head + "2024-02-30;1;1\n",
			want: `t.csv:2: Submit Time: got "2024-02-30", want seconds, 0 or more and below 292 years, or a date such as 2024-03-01T12:00:00Z`},
		"milliseconds": {text: head + "1709294400000;1;1\n",
			want: `got "1709294400000", want seconds; as a unix time this is in milliseconds: divide it by 1000`},
		"nanoseconds": {text: head + "1709294400000000000;1;1\n", want: `nanoseconds: divide it by 1e9`},
		"date then number": {text: head + "2024-03-01;1;1\n5;1;1\n",
			want: `t.csv:3: Submit Time: got "5", want a date without a zone such as 2024-03-01 12:00:00, as in the times before`},
		"number then date": {text: head + "5;1;1\n2024-03-01;1;1\n",
			want: `t.csv:3: Submit Time: got "2024-03-01", want seconds, as in the times before`},
		"one zone": {text: head + "2024-03-01 12:00:00;1;1\n2024-03-01T12:00:01Z;1;1\n",
			want: `want a date without a zone`},
		"one without": {text: head + "2024-03-01 12:00:00Z;1;1\n2024-03-01T12:00:01;1;1\n",
			want: `want a date with a zone such as 2024-03-01T12:00:00Z, as in the times before`},
		"dates backwards": {text: head + "2024-03-01 12:00:00.5;1;1\n2024-03-01 12:00:00;1;1\n",
			want: `t.csv:3: Submit Time: got "2024-03-01 12:00:00", want 2024-03-01 12:00:00.5 or later, as in the row before (rows must be in order of submit_time; --sort puts them in order)`},
		"minutes or hours": {text: head + "5;12:30;1\n",
			want: `t.csv:2: duration: got "12:30", want seconds, 0 or more and below 292 years, or as in 1h30m, 01:30:00 or 1-12:00:00`},
		"negative": {text: head + "5;-1 day, 23:59:59;1\n",
			want: `t.csv:2: duration: got "-1 day, 23:59:59", want seconds, 0 or more`},
		"two commas": {text: head + "5;1;1,000,5\n",
			want: `t.csv:2: num_gpu: got "1,000,5", want a whole number of GPUs`},
		"no duration": {text: "submit_time,duration,num_gpu,status\n0,,1,completed\n",
			want: `t.csv:2: duration: got "", want seconds`},
		"end before start": {text: "submit_time,start_time,end_time,num_gpu\n0,5,4,1\n",
			want: `t.csv:2: end_time: got "4", want 5 or later, as in start_time`},
		"a start in words": {text: "submit_time,start_time,end_time,num_gpu\n0,soon,4,1\n",
			want: `t.csv:2: start_time: got "soon", want a time as in submit_time, or nothing where there is none`},

		"near, one": {text: "Submitted,duration,num_gpu\n",
			want: `t.csv:1: no column submit_time; the nearest is "Submitted": use --columns submit_time=Submitted (trace.columns); the file has Submitted, duration, num_gpu`},
		"near, all": {text: "Job Id,Arrival,Run Time (s),GPUs,GPU Type\n",
			want: `t.csv:1: no columns submit_time, duration (or start_time and end_time), num_gpu; the nearest are "Arrival" and "Run Time (s)" and "GPUs": use --columns 'submit_time=Arrival,duration=Run Time (s),num_gpu=GPUs' (trace.columns); the file has "Job Id", Arrival, "Run Time (s)", GPUs, "GPU Type"`},
		"an end": {text: "submit_time,start_time,Finished,num_gpu\n",
			want: `t.csv:1: no column end_time (or duration); the nearest is "Finished": use --columns end_time=Finished`},
		"a start": {text: "submit_time,began,end_time,num_gpu\n",
			want: `t.csv:1: no column start_time (or duration); the nearest is "began": use --columns start_time=began`},
		"of two": {text: "Submit Time,submit-time,duration,num_gpu\n",
			want: `t.csv:1: submit_time can be "Submit Time" or submit-time: say which with --columns submit_time=NAME (trace.columns)`},
		"no such": {text: "a,duration,num_gpu\n", columns: map[string]string{"submit_time": "Submti"},
			want: `t.csv:1: columns: submit_time=Submti names no column of the file, which has a, duration, num_gpu`},
		"a near such": {text: "a,Submitted,duration,num_gpu\n", columns: map[string]string{"submit_time": "Submited"},
			want: `names no column of the file, which has a, Submitted, duration, num_gpu; did you mean "Submitted"?`},
		"two such": {text: "a b,a-b,duration,num_gpu\n", columns: map[string]string{"submit_time": "AB"},
			want: `t.csv:1: columns: submit_time=AB can be "a b" or a-b; want its name as it stands there`},
	} {
		_, err := read(t, c.text, Options{Columns: c.columns})
		var re *traces.RowError
		if !errors.As(err, &re) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", name, err, c.want)
		}
	}
}

// Lacks speaks of a header only.
func TestLacks(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "",
		"one word\n":                          "",
		"{\"a\": 1,\n":                        "",
		"[1,2]":                               "",
		"a\x00b,c\n":                          "",
		"\ufeff\nSubmitted;GPUs\n":            `csv needs submit_time, duration (or start_time and end_time) and num_gpu and found none of them; the nearest are "Submitted" and "GPUs": use --columns submit_time=Submitted,duration=NAME,num_gpu=GPUs (trace.columns)`,
		"step_time,placement\n":               `csv needs submit_time, duration (or start_time and end_time) and num_gpu and found none of them: use --columns submit_time=NAME,duration=NAME,num_gpu=NAME (trace.columns)`,
		"submit_time\tgpus\tduration\n1\t2\n": `csv needs submit_time, duration (or start_time and end_time) and num_gpu and found submit_time, duration; the nearest is "gpus": use --columns num_gpu=gpus (trace.columns)`,
		"submit_time,num_gpu,duration\n":      "",
	} {
		if got := Lacks([]byte(text), Options{}); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// A line of a million fields, which is no header, is refused at once.
func TestAnAbsurdHeaderIsRefusedAtOnce(t *testing.T) {
	for _, text := range []string{strings.Repeat(",", traces.MaxLine-10), strings.Repeat("ab;", traces.MaxLine/3-10)} {
		if _, err := read(t, text+"\n", Options{}); err == nil || len(err.Error()) > 1000 {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
		if n := len(Lacks([]byte(text), Options{})); n > 1000 {
			t.Errorf("%d bytes about a header", n)
		}
	}
}

// Reading dates allocates no more than reading seconds does.
func TestReadingDatesAllocatesTheIDAlone(t *testing.T) {
	var text strings.Builder
	text.WriteString("Submit Time;Start Time;End Time;Num GPU;Job ID\n")
	for i := range 2000 {
		text.WriteString("2024-03-01 12:00:00.5;2024-03-01 12:00:01;2024-03-01 13:00:01;0,5;job-" + string(rune('a'+i%26)) +
			string(rune('a'+i/26%26)) + string(rune('a'+i/676)) + "\n")
	}
	d, err := NewReader(strings.NewReader(text.String()), "t.csv", Options{})
	if err != nil {
		t.Fatal(err)
	}
	var j traces.Job
	for range 700 { // the map of ids grows now and then
		if err := d.Next(&j); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(1000, func() {
		if err := d.Next(&j); err != nil && err != io.EOF {
			t.Error(err)
		}
	}); n > 2 {
		t.Errorf("%v allocations a row", n)
	}
}

// Labels returns the names of the columns that a job has no field for, in the order of the file. status is one of them,
// because its words may say more than Job.Status.
func (d *Reader) Labels() (names []string) {
	for _, i := range d.labels() {
		names = append(names, d.rows.Columns()[i])
	}
	return names
}

func (d *Reader) labels() (columns []int) {
	for i := range d.rows.Columns() {
		if field := slices.Index(d.at[:], i); field < 0 || field == colStatus || field == colStart || field == colEnd {
			columns = append(columns, i)
		}
	}
	return columns
}

// Label returns the value in column Labels()[i] for the job that Next returned last.
func (d *Reader) Label(i int) string { return string(d.rows.Cell(d.labels()[i])) }

// Line returns the number of the line in which the row read last ends.
func (d *Reader) Line() int { return d.rows.Line() }
