package csv

import (
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"clustergym/traces"
)

// noted reads a file and returns its jobs and notes.
func noted(t *testing.T, text string, o Options) ([]traces.Job, []string, *Reader) {
	t.Helper()
	d, err := NewReader(strings.NewReader(text), "t.csv", o)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	jobs, err := traces.ReadAll(d)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return jobs, d.Notes(), d
}

func TestWordsForWhatIsNotThereAreNotGivenInEveryColumn(t *testing.T) {
	const head = "submit_time,duration,num_gpu,job_id,user,vc,gpu_type,num_cpu,mem_gb,estimate,model,iterations,deadline,priority,min_gpu,max_gpu,status,name,group\n"
	want := []traces.Job{{ID: "0", Work: sec, GPUs: 1, GPUMilli: 1000}}
	for _, word := range []string{"", "NaN", "nan", "NAN", "None", "none", "NULL", "null", "NA", "N/A", "n/a", "<NA>",
		"NaT", "nil", "-", "--", `\N`, "#N/A", "(null)", "<none>", " NaN ", "-nan", "undefined"} {
		text := head + "0,1,1" + strings.Repeat(","+word, 16) + "\n"
		if jobs, notes, _ := noted(t, text, Options{}); !reflect.DeepEqual(jobs, want) || notes != nil {
			if strings.TrimSpace(word) != word { // blanks are part of a name that is one
				continue
			}
			t.Errorf("%q: %+v, %v", word, jobs, notes)
		}
	}
	// A required number that is not there is a fault, whatever the word.
	for _, word := range []string{"", "NaN", "None", "<NA>", `\N`} {
		for i, name := range names[:colID] {
			cells := []string{"0", "1", "1"}
			cells[i] = word
			_, err := read(t, "submit_time,duration,num_gpu\n"+strings.Join(cells, ",")+"\n", Options{})
			var row *traces.RowError
			if !errors.As(err, &row) || row.Line != 2 || row.Column != name {
				t.Errorf("%s %q: %v", name, word, err)
			}
		}
		jobs, _, d := noted(t, "submit_time,start_time,end_time,num_gpu\n0,"+word+",5,1\n1,2,"+word+",1\n2,3,4,1\n",
			Options{})
		if len(jobs) != 1 || !reflect.DeepEqual(d.Skipped(),
			[]traces.Skip{{Reason: NeverStarted, Count: 1}, {Reason: NotEnded, Count: 1}}) {
			t.Errorf("%q: %+v, %v", word, jobs, d.Skipped())
		}
	}
}

func TestPeopleMayHaveNamesThatCouldBeWords(t *testing.T) {
	for _, name := range []string{"Null", "Nan", "Na", "Nil", "na", "unknown", "Unknown", "nana", "None2", "-x", "(a)",
		"0"} {
		jobs, _, _ := noted(t, "submit_time,duration,num_gpu,job_id,user,vc\n0,1,1,"+name+","+name+","+name+"\n", Options{})
		if j := jobs[0]; j.ID != name || j.User != name || j.VC != name {
			t.Errorf("%q: %+v", name, j)
		}
	}
}

func works(jobs []traces.Job) (all []time.Duration) {
	for _, j := range jobs {
		all = append(all, j.Work/sec)
	}
	return all
}

// A column of durations beside start and end may contain the wait, be the same, or be something else.
func TestDurationsBesideStartAndEnd(t *testing.T) {
	const head = "submit_time,start_time,end_time,duration,num_gpu\n"
	const waits = head +
		"2023-05-17 11:00:58,2023-05-17 11:01:08,2023-05-17 11:01:16,18,1\n2023-05-17 11:28:42,2023-05-17 11:28:54,2023-05-17 11:30:04,82,1\n2023-05-17 12:00:00,2023-05-17 12:00:00,2023-05-17 12:01:00,60,1\n"
	for name, c := range map[string]struct {
		text    string
		columns map[string]string
		want    []time.Duration
		note    string // "" = none
	}{
		"contain the wait": {waits, nil, []time.Duration{8, 70, 60},
			"duration contains the wait in 2 rows (first in line 2): their run time is end_time less start_time; --columns duration=duration takes the column as it is"},
		"the column is chosen": {waits, map[string]string{"duration": "duration"}, []time.Duration{18, 82, 60}, ""},
		"the difference is chosen": {strings.Replace(waits, ",60,", ",999,", 1),
			map[string]string{"start_time": "start_time", "end_time": "end_time"}, []time.Duration{8, 70, 60}, ""},
		"a wait of a second": {head + "5,6,20,15,1\n", nil, []time.Duration{14},
			"duration contains the wait in 1 row (first in line 2)"},
		"in numbers": {head + "5,10,20,15,1\n6,30,40,10,1\n", nil, []time.Duration{10, 10},
			"duration contains the wait in 1 row (first in line 2)"},
		"the same": {head + "0,10,20,10,1\n1,30,40,9,1\n", nil, []time.Duration{10, 9}, ""},
		"something else": {head + "0,10,20,7200,1\n", nil, []time.Duration{7200},
			"duration is not end_time less start_time in 1 row (first in line 2); the column counts, and --columns start_time=start_time,end_time=end_time takes the difference"},
		"not there":       {head + "0,NaN,,7,1\n1,None,20,8,1\n", nil, []time.Duration{7, 8}, ""},
		"of another kind": {head + "0,01/02/2024,02/02/2024,7,1\n", nil, []time.Duration{7}, ""},
		"end first":       {head + "0,20,10,7,1\n", nil, []time.Duration{7}, ""},
		"other names": {strings.Replace(waits, "duration", "Duration", 1), nil, []time.Duration{8, 70, 60},
			"Duration contains the wait in 2 rows (first in line 2): their run time is end_time less start_time; --columns duration=Duration takes"},
	} {
		jobs, notes, _ := noted(t, c.text, Options{Columns: c.columns})
		if !reflect.DeepEqual(works(jobs), c.want) || (c.note == "") != (notes == nil) ||
			notes != nil && !strings.HasPrefix(notes[0], c.note) {
			t.Errorf("%s: %v, %q", name, works(jobs), notes)
		}
	}
}

func TestDaysOfExcelAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"start and end": {"job_id,submit_time,start_time,end_time,num_gpu\n1,45321.4166666667,45321.4166666667,45321.5,2\n2,45321.4167824074,45321.4179398148,45321.4583333333,1\n",
			`t.csv:2: submit_time: got "45321.4166666667", want seconds, or a date such as 2024-01-30 10:00:00, which these days of Excel mean`},
		"half a day":     {"submit_time,duration,num_gpu\n44927.5,3600,1\n44927.75,3600,1\n", `2023-01-01 12:00:00`},
		"of 1904":        {"submit_time,duration,num_gpu\n43859.4166666667,3600,1\n", `got "43859.4166666667"`},
		"decimal commas": {"submit_time;duration;num_gpu\n45321,4166666667;3600;1\n", `got "45321,4166666667"`},
		"exact fractions": {"submit_time,duration,num_gpu\n45321.416666666664,3600,1\n45400.041666666664,3600,1\n",
			`2024-01-30 10:00:00`},
		"whole, then not": {"submit_time,start_time,end_time,num_gpu\n45321,45321.25,45321.5,1\n", `got "45321"`},
		"over years": {"submit_time,duration,num_gpu\n44000.4166667,3600,1\n45321.4166667,3600,1\n",
			`got "44000.4166667"`},
		"ends not given": {"submit_time,start_time,end_time,num_gpu\n45321.25,45321.5,NaN,1\n", `got "45321.25"`},
	} {
		_, err := read(t, c.text, Options{})
		var row *traces.RowError
		if !errors.As(err, &row) || row.Line != 2 || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", name, err, c.want)
		}
	}
	for name, text := range map[string]string{
		"from 0":            "submit_time,duration,num_gpu\n0,1,1\n45321.4166666667,1,1\n",
		"whole seconds":     "submit_time,duration,num_gpu\n45321,1,1\n45330,1,1\n",
		"parts of a second": "submit_time,duration,num_gpu\n45321.123456789,1,1\n45330.2,1,1\n",
		"a part of a trace": "submit_time,duration,num_gpu\n45321.25,1,1\n46321.5,1,1\n",
		"unix times":        "submit_time,duration,num_gpu\n1706608800.5,1,1\n",
		"a label in days":   "submit_time,duration,start_time,end_time,num_gpu\n0,10,45321.5,45322.5,1\n",
	} {
		if _, err := read(t, text, Options{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRunTimesOfOtherUnitsAreNoted(t *testing.T) {
	if _, notes, _ := noted(t, "submit_time,duration,num_gpu\n0,0.0833,1\n5,0,1\n9,0.5,1\n", Options{}); notes != nil {
		t.Errorf("one of no time: %q", notes)
	}
	if _, notes, _ := noted(t, "submit_time,duration,num_gpu\n0,0.0833,1\n9,0.5,1\n", Options{}); len(notes) != 1 ||
		!strings.Contains(notes[0], "every run time is below a second") {
		t.Errorf("%q", notes)
	}
	for text, unit := range map[string]string{"1706608800000.0": "milliseconds", "1.706608801e+12": "milliseconds",
		"1706608800000000": "microseconds", "1.7066088e18": "nanoseconds"} {
		if _, err := read(t, "submit_time,duration,num_gpu\n"+text+",1,1\n", Options{}); err == nil ||
			!strings.Contains(err.Error(), "as a unix time this is in "+unit) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestColumnsOfWorkersAreNotedOrMultiplyTheGPUs(t *testing.T) {
	const head = "submit_time,duration,num_gpu,num_cpu,mem_gb,"
	for _, name := range []string{"worker_num", "workers", "Replicas", "num-nodes", "nodes", "instances", "task_num",
		"podCount", "NNodes"} {
		text := head + name + "\n0,1,1,4,2,1\n1,1,1,4,2,16\n2,1,1,4,2,94\n3,1,2,,,NaN\n"
		jobs, notes, _ := noted(t, text, Options{})
		want := "column " + name +
			" is not used (up to 94, above 1 first in line 3): if num_gpu counts the GPUs of one worker, --columns workers=" +
			name + " multiplies by it"
		if len(notes) != 1 || notes[0] != want || jobs[2].GPUs != 1 {
			t.Errorf("%s: %q, %+v", name, notes, jobs)
		}
		jobs, notes, d := noted(t, text, Options{Columns: map[string]string{"workers": name}})
		if notes != nil || jobs[0].GPUs != 1 || jobs[1].GPUs != 16 || jobs[2].GPUs != 94 || jobs[2].CPUMilli != 94*4000 ||
			jobs[2].MemBytes != 94*2<<30 || jobs[3].GPUs != 2 || len(d.Labels()) != 0 {
			t.Errorf("%s mapped: %q, %+v, %v", name, notes, jobs, d.Labels())
		}
	}
	if _, notes, _ := noted(t, "submit_time,duration,num_gpu,nodes\n0,1,8,1\n1,1,8,\n", Options{}); notes != nil {
		t.Errorf("one node each: %q", notes)
	}
	for cells, want := range map[string]string{"1,0": "1 or more", "1,1.5": "a whole number of workers",
		"0.5,2": "1 where num_gpu is a share", "1048576,1048576": "GPUs in all"} {
		if _, err := read(t, "submit_time,duration,num_gpu,w\n0,1,"+cells+"\n",
			Options{Columns: map[string]string{"workers": "w"}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", cells, err)
		}
	}
}

func TestNamesThatAreNotUTF8AreReadAndNoted(t *testing.T) {
	jobs, notes, _ := noted(t,
		"submit_time,duration,num_gpu,user,gpu_type\n0,1,1,M\xfcller,A\n1,1,1,\xe9t\xe9 \x80,A\n2,1,1,Müller,A\xe9\n",
		Options{})
	if jobs[0].User != "Müller" || jobs[1].User != "été €" || jobs[2].User != "Müller" || jobs[2].GPUTypes[0] != "Aé" {
		t.Errorf("%+v", jobs)
	}
	if len(notes) != 1 || !strings.HasPrefix(notes[0],
		"3 names (first user in line 2) are not UTF-8 and were read as Windows-1252") {
		t.Errorf("%q", notes)
	}
}

func TestFilesWithThingsAroundTheTable(t *testing.T) {
	for name, text := range map[string]string{
		"sep":      "sep=;\njob_id;submit_time;duration;num_gpu\n1;0;100;1\n2;10;200,5;2\n",
		"comments": "# exported 2024-03-01 by ops\njob_id,submit_time,duration,num_gpu\n1,0,100,1\n# half\n2,10,200.5,2\n# end of export, 2 rows\n",
		"CR only":  "job_id,submit_time,duration,num_gpu\r1,0,100,1\r2,10,200.5,2\r",
		"psql":     " job_id | submit_time | duration | num_gpu \n--------+-------------+----------+---------\n 1      |           0 |      100 |       1\n 2      |          10 |    200.5 |       2\n(2 rows)\n\n",
		"mysql":    "+--------+-------------+----------+---------+\n| job_id | submit_time | duration | num_gpu |\n+--------+-------------+----------+---------+\n| 1      | 0           | 100      | 1       |\n| 2      | 10          | 200.5    | 2       |\n+--------+-------------+----------+---------+\n",
	} {
		jobs, _, _ := noted(t, text, Options{})
		if len(jobs) != 2 || jobs[0].ID != "1" || jobs[1].Submit != 10*sec || jobs[1].Work != 200*sec+sec/2 ||
			jobs[1].GPUs != 2 {
			t.Errorf("%s: %+v", name, jobs)
		}
		if Sniff([]byte(text), Options{}) != 3 {
			t.Errorf("%s is not recognised", name)
		}
	}
	if _, err := NewReader(strings.NewReader(""), "t", Options{}); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("%v", err)
	}
}
