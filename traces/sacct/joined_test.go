package sacct

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"clustergym/traces"
)

const joinedHead = "JobID|JobName|User|Submit|Start|End|ElapsedRaw|State|AllocTRES\n"

// row is a row under joinedHead. Times are hours of a day in March 2024; 0 = Unknown.
func row(id, name string, submit, start, end, work string, state string, gpus int) string {
	at := func(h string) string {
		if h == "" {
			return "Unknown"
		}
		if len(h) > 5 {
			return h
		}
		return "2024-03-01T" + h + ":00"
	}
	return fmt.Sprintf("%s|%s|ann|%s|%s|%s|%s|%s|gres/gpu=%d\n", id, name, at(submit), at(start), at(end), work, state,
		gpus)
}

func duplicates(d *Reader) int {
	for _, s := range d.Skipped() {
		if s.Reason == Duplicate {
			return s.Count
		}
	}
	return 0
}

// what returns id, run time in seconds, and GPUs of jobs.
func what(jobs []traces.Job) string {
	var all []string
	for _, j := range jobs {
		all = append(all, fmt.Sprintf("%s %d s %d", j.ID, j.Work/time.Second, j.GPUs))
	}
	return strings.Join(all, ", ")
}

// Dumps of periods that overlap have the same runs. Each counts once, in whichever order the dumps come.
func TestRunsOfSeveralDumpsCountOnce(t *testing.T) {
	done := row("7", "a", "10:00", "10:10", "11:10", "3600", "COMPLETED", 2)
	steps := "7.batch|batch|ann|2024-03-01T10:10:00|2024-03-01T10:10:00|2024-03-01T11:10:00|3600|COMPLETED|cpu=8\n"
	requeued := row("8", "a", "10:00", "10:00", "11:00", "3600", "REQUEUED",
		2) + row("8", "a", "11:00", "11:02", "12:02", "3600", "COMPLETED", 2)
	kept := row("9", "a", "10:00", "10:00", "11:00", "3600", "PREEMPTED",
		2) + row("9", "a", "10:00", "11:02", "12:02", "3600", "COMPLETED", 2)
	het := row("5+0", "a", "10:00", "10:00", "11:00", "3600", "COMPLETED",
		2) + row("5+1", "a", "10:00", "10:00", "10:30", "1800", "COMPLETED", 4)
	task := row("6_4", "a", "10:00", "10:00", "10:30", "1800", "COMPLETED",
		1) + row("6_5", "a", "10:00", "10:00", "10:30", "1800", "COMPLETED", 1)
	for name, c := range map[string]struct {
		dumps []string
		want  string
		again int
		left  int
	}{
		"twice":       {[]string{done, done}, "7 3600 s 2", 1, 0},
		"three times": {[]string{done, done, done}, "7 3600 s 2", 2, 0},
		"steps":       {[]string{done + steps, done + steps}, "7 3600 s 2", 1, 0},
		"running, then ended": {[]string{row("7", "a", "10:00", "10:10", "", "900", "RUNNING", 2), done}, "7 3600 s 2",
			1, 0},
		"pending, then ended": {[]string{row("7", "a", "10:00", "", "", "0", "PENDING", 2), done}, "7 3600 s 2", 1, 0},
		"pending, running, ended": {[]string{row("7", "a", "10:00", "", "", "0", "PENDING", 2),
			row("7", "a", "10:00", "10:10", "", "60", "RUNNING", 2), done}, "7 3600 s 2", 2, 0},
		"running twice": {[]string{row("7", "a", "10:00", "10:10", "", "60", "RUNNING", 2),
			row("7", "a", "10:00", "10:10", "", "90", "RUNNING", 2), done}, "7 3600 s 2", 2, 0},
		"cancelled in the meantime": {[]string{row("7", "a", "10:00", "10:10", "", "60", "RUNNING", 2),
			row("7", "a", "10:00", "10:10", "10:20", "600", "CANCELLED by 0", 2)}, "7 600 s 2", 1, 0},
		"cancelled before it ran": {[]string{row("7", "a", "10:00", "", "", "0", "PENDING", 2),
			row("7", "a", "10:00", "None", "10:20", "0", "CANCELLED by 0", 2)}, "", 1, 1},
		"a job that still runs": {[]string{row("7", "a", "10:00", "10:10", "", "60", "RUNNING", 2),
			row("7", "a", "10:00", "10:10", "", "90", "RUNNING", 2)}, "", 1, 1},
		"requeued": {[]string{requeued, requeued}, "8 7200 s 2", 2, 0},
		"requeued, in between": {[]string{row("8", "a", "10:00", "10:00", "", "60", "RUNNING", 2), requeued},
			"8 7200 s 2", 1, 0},
		"requeued, seen pending": {[]string{row("8", "a", "10:00", "", "", "0", "PENDING", 2), requeued}, "8 7200 s 2", 0,
			0},
		"requeued with its submit": {[]string{kept, kept}, "9 7200 s 2", 2, 0},
		"pending once more": {[]string{row("9", "a", "10:00", "10:00", "11:00", "3600", "NODE_FAIL", 2),
			row("9", "a", "11:00", "", "", "0", "PENDING", 2)}, "", 0, 1},
		"components":        {[]string{het, het}, "5 3600 s 6", 2, 0},
		"tasks of an array": {[]string{task, task}, "6_4 1800 s 1, 6_5 1800 s 1", 2, 0},
		"End corrected": {[]string{row("7", "a", "10:00", "10:10", "10:20", "600", "FAILED", 2), done},
			"7 3600 s 2", 1, 0},
	} {
		orders := [][]string{c.dumps, slices.Clone(c.dumps)}
		slices.Reverse(orders[1])
		for i, dumps := range orders {
			for with, text := range map[string]string{"": joinedHead + strings.Join(dumps, ""),
				" with headers": joinedHead + strings.Join(dumps, joinedHead)} {
				jobs, d, err := read(t, text)
				if err != nil || what(jobs) != c.want || i == 0 && duplicates(d) != c.again {
					t.Errorf("%s, order %d%s: %v, %q and %d duplicates, want %q and %d", name, i, with, err, what(jobs), duplicates(d),
						c.want, c.again)
					continue
				}
				left := 0
				for _, s := range d.Skipped() {
					left += s.Count
				}
				if left -= duplicates(d); left != c.left {
					t.Errorf("%s, order %d%s: %d left out, want %d: %v", name, i, with, left, c.left, d.Skipped())
				}
			}
		}
	}
}

// Without the column Start, equal rows are the same run, and rows that differ are not.
func TestDuplicatesWithoutStart(t *testing.T) {
	text := joinedHead + row("7", "a", "10:00", "", "11:10", "3600", "COMPLETED",
		2) + row("7", "a", "10:00", "", "11:10", "3600", "COMPLETED", 2) +
		row("8", "a", "10:00", "", "11:00", "3600", "REQUEUED",
			2) + row("8", "a", "10:00", "", "12:10", "1800", "COMPLETED", 2)
	jobs, d, err := read(t, without(text, "Start"))
	if err != nil || what(jobs) != "7 3600 s 2, 8 5400 s 2" || duplicates(d) != 1 {
		t.Errorf("%v, %s, %d duplicates", err, what(jobs), duplicates(d))
	}
}

// Slurm gives ids again when they were reset. A job that was submitted long after the run before it ended is another
// one.
func TestIDsThatWereGivenAgain(t *testing.T) {
	year := func(y, rest string) string { return y + "-03-01T" + rest }
	old := func(state string, gpus int) string {
		return row("5", "a", year("2019", "10:00:00"), year("2019", "10:00:00"), year("2019", "12:00:00"), "7200", state,
			gpus)
	}
	latest := row("5", "a", year("2024", "10:00:00"), year("2024", "10:00:00"), year("2024", "11:00:00"), "3600",
		"COMPLETED", 1)
	for name, c := range map[string]struct{ text, want string }{
		"completed":           {old("COMPLETED", 2) + latest, "5 7200 s 2, 5#2 3600 s 1"},
		"same GPUs":           {old("COMPLETED", 1) + latest, "5 7200 s 1, 5#2 3600 s 1"},
		"the later one first": {latest + old("COMPLETED", 2), "5 7200 s 2, 5#2 3600 s 1"},
		"failed":              {old("FAILED", 1) + latest, "5 7200 s 1, 5#2 3600 s 1"},
		"timeout":             {old("TIMEOUT", 1) + latest, "5 7200 s 1, 5#2 3600 s 1"},
		"node failed":         {old("NODE_FAIL", 1) + latest, "5 7200 s 1, 5#2 3600 s 1"},
		"no state":            {old("", 1) + latest, "5 7200 s 1, 5#2 3600 s 1"},
		"never cleared away": {row("5", "a", year("2019", "10:00:00"), year("2019", "10:00:00"), "", "7200", "RUNNING",
			2) + latest, "5 3600 s 1"},
		"cancelled unstarted": {row("5", "a", "2024-02-20T10:00:00", "None", "2024-02-20T10:05:00", "0", "CANCELLED by 0",
			2) + row("5", "a", "10:00", "10:00", "11:00", "3600", "COMPLETED", 2), "5 3600 s 2"},
		"in two dumps": {old("COMPLETED", 2) + latest + old("COMPLETED", 2) + latest, "5 7200 s 2, 5#2 3600 s 1"},
		"the same day": {row("5", "a", "10:00", "10:00", "11:00", "3600", "COMPLETED",
			2) + row("5", "a", "13:00", "13:00", "14:00", "3600", "COMPLETED", 2), "5 3600 s 2, 5#2 3600 s 2"},
		"the same day, other": {row("5", "a", "10:00", "10:00", "11:00", "3600", "FAILED",
			2) + row("5", "b", "13:00", "13:00", "14:00", "3600", "COMPLETED", 2), "5 3600 s 2, 5#2 3600 s 2"},
		"requeued by hand": {row("5", "a", "10:00", "10:00", "11:00", "3600", "FAILED",
			2) + row("5", "a", "11:03", "11:04", "12:04", "3600", "COMPLETED", 2), "5 7200 s 2"},
		"preempted": {row("5", "a", "10:00", "10:00", "11:00", "3600", "PREEMPTED",
			2) + row("5", "b", "11:00", "13:00", "14:00", "3600", "COMPLETED", 4), "5 7200 s 4"},
		"requeued, then another": {row("5", "a", year("2019", "08:00:00"), year("2019", "08:00:00"), year("2019", "10:00:00"),
			"7200", "REQUEUED", 2) + old("COMPLETED", 2) + latest, "5 14400 s 2, 5#2 3600 s 1"},
		"two tasks": {strings.ReplaceAll(old("COMPLETED", 2)+latest, "5|a", "5_1|a"), "5_1 7200 s 2, 5_1#2 3600 s 1"},
		"components": {strings.ReplaceAll(old("COMPLETED", 2)+latest, "5|a",
			"5+0|a") + strings.ReplaceAll(old("COMPLETED", 2)+latest, "5|a", "5+1|a"),
			"5 7200 s 4, 5#2 3600 s 2"},
	} {
		jobs, _, err := read(t, joinedHead+c.text)
		if err != nil || what(jobs) != c.want {
			t.Errorf("%s: %v, %s; want %s", name, err, what(jobs), c.want)
		}
		if jobs[0].Submit != 0 {
			t.Errorf("%s: the first job is submitted at %v", name, jobs[0].Submit)
		}
	}
	// A job that was cancelled before it started has not waited for the one that has its id now.
	jobs, _, err := read(t,
		joinedHead+row("5", "a", "2024-02-20T10:00:00", "None", "2024-02-20T10:05:00", "0", "CANCELLED by 0", 2)+
			row("4", "a", "2024-02-25T10:00:00", "2024-02-25T10:00:00", "2024-02-25T11:00:00", "3600", "COMPLETED",
				2)+row("5", "a", "10:00", "10:00", "11:00", "3600", "COMPLETED", 2))
	if err != nil || len(jobs) != 2 || jobs[0].ID != "4" || jobs[1].Submit != 5*24*time.Hour {
		t.Errorf("%v, %+v", err, jobs)
	}
}

// Files that were joined may differ in columns, in delimiters, and in being text or JSON.
func TestPartsOfOtherForms(t *testing.T) {
	day := "2024-03-01T"
	first := "JobID|User|Submit|Start|ElapsedRaw|State|AllocTRES\n7|ann|" + day + "10:00:00|" + day +
		"10:00:00|60|COMPLETED|gres/gpu=2\n"
	for name, c := range map[string]struct{ second, want string }{
		"other order": {"State|Submit|Start|User|AllocTRES|ElapsedRaw|JobID\nCOMPLETED|" + day + "11:00:00|" + day +
			"11:00:00|ann|gres/gpu=1|30|8\n", "7 60 s 2, 8 30 s 1"},
		"fewer columns": {"JobID|Submit|User|ElapsedRaw|AllocTRES\n8|" + day + "11:00:00|ann|30|gres/gpu=1\n",
			"7 60 s 2, 8 30 s 1"},
		"without Start": {"JobID|Submit|User|ElapsedRaw|AllocTRES\n7|" + day + "10:00:00|ann|60|gres/gpu=2\n", "7 60 s 2"},
		"semicolons":    {strings.ReplaceAll(strings.Replace(first, "7|", "8|", 1), "|", ";"), "7 60 s 2, 8 60 s 2"},
		"carets":        {strings.ReplaceAll(strings.Replace(first, "7|", "8|", 1), "|", "^|^"), "7 60 s 2, 8 60 s 2"},
		"a cluster": {strings.ReplaceAll(strings.ReplaceAll(strings.Replace(first, "7|", "8|", 1), "AllocTRES",
			"AllocTRES|Cluster"), "gpu=2", "gpu=2|c"), "7 60 s 2, 8 60 s 2"},
		"a mark":    {"\ufeff" + strings.Replace(first, "7|", "8|", 1), "7 60 s 2, 8 60 s 2"},
		"no header": {"8|ann|" + day + "11:00:00|" + day + "11:00:00|30|COMPLETED|gres/gpu=1\n", "7 60 s 2, 8 30 s 1"},
		"a warning": {"sacct: warning: slurmdbd connection retried\n" + first, "7 60 s 2"},
	} {
		for _, text := range []string{first + c.second, first + "\n" + c.second} {
			jobs, _, err := read(t, text)
			if err != nil || what(jobs) != c.want {
				t.Errorf("%s: %v, %s; want %s", name, err, what(jobs), c.want)
			}
		}
	}
	_, _, err := read(t, first+"JobID|Submit|User|ElapsedRaw|AllocTRES\n8|"+day+"11:00:00|ann|long|gres/gpu=1\n")
	if err == nil || !strings.HasPrefix(err.Error(), `t.txt:4: ElapsedRaw: got "long"`) {
		t.Errorf("a fault in the second part: %v", err)
	}
	_, _, err = read(t, first+"JobID|Submit|State\n8|"+day+"11:00:00|COMPLETED\n")
	if err == nil || !strings.HasPrefix(err.Error(), `t.txt:3: no column ElapsedRaw, AllocTRES`) {
		t.Errorf("a second part without columns: %v", err)
	}
}

func TestDelimitersOfManyKinds(t *testing.T) {
	for _, by := range []string{"^|^", "^", "~", "::", "@@@", "\x1f", "¦", "|", ";", "\t"} {
		text := strings.ReplaceAll(made, "|", by)
		jobs, _, err := read(t, text)
		if err != nil || len(jobs) != 7 || !Sniff([]byte(text)) {
			t.Errorf("%q: %v, %d jobs, sniffed %v", by, err, len(jobs), Sniff([]byte(text)))
		}
	}
}

// document returns a document of sacct --json with jobs of these ids, which run for a minute each.
func documentOf(ids ...int) string {
	var jobs []string
	for _, id := range ids {
		jobs = append(jobs, jobOf(id))
	}
	return `{"jobs": [` + strings.Join(jobs, ", ") +
		`], "meta": {"plugin": {"type": "openapi/slurmdbd"}}, "errors": [], "warnings": []}`
}

func jobOf(id int) string {
	return fmt.Sprintf(
		`{"account": "lab", "allocation_nodes": 1, "array": {"job_id": 0, "task_id": {"set": false, "infinite": false, "number": 0}, "task": ""}, "association": {"user": "ann"},`+
			` "job_id": %d, "state": {"current": ["COMPLETED"]}, "time": {"elapsed": 60, "start": 1709287200, "end": 1709287260, "submission": 1709287200, "limit": {"set": true, "infinite": false, "number": 240}},`+
			` "tres": {"allocated": [{"type": "gres", "name": "gpu", "id": 1001, "count": 2}], "requested": []}, "user": "ann"}`,
		id)
}

// A file may have several documents, in every form in which people join them.
func TestSeveralDocuments(t *testing.T) {
	a, b := documentOf(1, 2), documentOf(2, 3)
	text := "JobID|User|Submit|Start|ElapsedRaw|State|AllocTRES\n3|ann|1709287200|1709287200|60|COMPLETED|gres/gpu=2\n4|ann|1709287200|1709287200|60|COMPLETED|gres/gpu=2\n"
	lines := strings.Repeat("\n", 300)
	for name, c := range map[string]struct {
		text  string
		want  int
		again int
	}{
		"one":               {a, 2, 0},
		"with spaces":       {"\n\n  " + a + "\n \n", 2, 0},
		"two":               {a + b, 3, 1},
		"two lines":         {a + "\n" + b + "\n", 3, 1},
		"a mark each":       {"\ufeff" + a + "\n\ufeff" + b, 3, 1},
		"far apart":         {a + lines + b, 3, 1},
		"three":             {a + "\n" + b + "\n" + a, 3, 3},
		"a list":            {"[" + a + ",\n" + b + "]", 3, 1},
		"lists of lists":    {"[[" + a + "],[" + b + "]]", 3, 1},
		"a list of jobs":    {"[" + jobOf(1) + "," + jobOf(2) + "]", 2, 0},
		"jobs on lines":     {jobOf(1) + "\n" + jobOf(2) + "\n" + jobOf(3), 3, 0},
		"none in the first": {documentOf() + b, 2, 0},
		"text behind":       {a + "\n" + text, 4, 0},
		"text in front":     {text + b, 3, 1},
		"in between":        {a + "\n" + text + b + "\n" + text, 4, 4},
		"a warning":         {"sacct: warning: slurmdbd connection retried\n" + a, 2, 0},
		"jobs twice":        {`{"jobs": [` + jobOf(1) + `], "jobs": [` + jobOf(2) + `]}`, 2, 0},
	} {
		for how, r := range map[string]io.Reader{"": strings.NewReader(c.text),
			" byte by byte": iotest.OneByteReader(strings.NewReader(c.text))} {
			d, err := NewReader(r, "t.txt", Options{})
			if err != nil {
				t.Errorf("%s%s: %v", name, how, err)
				continue
			}
			jobs, err := traces.ReadAll(d)
			if err != nil || len(jobs) != c.want || duplicates(d) != c.again {
				t.Errorf("%s%s: %v, %s, %d duplicates; want %d and %d", name, how, err, what(jobs), duplicates(d), c.want, c.again)
			}
		}
		if !Sniff([]byte(c.text)) && !strings.HasPrefix(c.text, `{"jobs": [{"account"`) && name != "none in the first" {
			t.Errorf("%s: not recognised", name)
		}
	}
	for name, c := range map[string]struct{ text, want string }{
		"cut": {a + "\n" + b[:len(b)/2],
			"t.txt:5: this is no document of sacct --json (the file's document 2): unexpected EOF"},
		"behind it": {a + "\nrubbish\n", `got "1 fields", want 17`},
		"a brace":   {a + "}", `got "1 fields", want 17`},
		"squeue": {`{"jobs": [{"job_id": 5, "job_state": ["PENDING"]}]}`,
			"this is what squeue --json or scontrol --json prints"},
		"failed": {"sacct: error: slurmdbd: connection refused\n" + a,
			`t.txt:1: sacct says that it failed, so jobs may lack: "sacct: error: slurmdbd: connection refused"`},
		"failed late": {text + "sacct: error: slurmdbd: connection refused\n", "t.txt:4: sacct says that it failed"},
		"other dates": {a + "\n" + strings.ReplaceAll(text, "1709287200", "2024-03-01T10:00:00"), "SLURM_TIME_FORMAT=%s"},
		"no job":      {a + "\n" + `{"a": 1}`, "(the file's document 2): it has no jobs"},
		"too deep":    {"[[[[[" + a, "this is no document of sacct --json"},
	} {
		_, _, err := read(t, c.text)
		var fault *traces.RowError
		if !errors.As(err, &fault) || !strings.Contains(err.Error(), c.want) || strings.Count(err.Error(), "t.txt") != 1 {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// A number that is not needed may be of any size; one that is needed and too large is named.
func TestCountersOfDocuments(t *testing.T) {
	for _, count := range []string{"18446744073709551614", "18446744073709551615", "9223372036854775808", "-2", "1e400",
		"null", `"many"`, `{"set": true, "infinite": false, "number": 18446744073709551614}`, "[1]"} {
		text := strings.Replace(documentOf(1), `{"type": "gres"`,
			`{"type": "energy", "name": "", "id": 3, "count": `+count+`}, {"type": "fs", "name": "disk", "count": `+count+
				`}, {"type": "gres"`, 1)
		jobs, _, err := read(t, text)
		if err != nil || what(jobs) != "1 60 s 2" {
			t.Errorf("energy of %s: %v, %s", count, err, what(jobs))
		}
	}
	for _, c := range []struct{ old, new, want string }{
		{`"number": 240`, `"number": 240.0`, ""},
		{`"elapsed": 60`, `"elapsed": {"set": true, "infinite": false, "number": 60}`, ""},
		{`"elapsed": 60`, `"elapsed": "60"`, ""},
		{`"elapsed": 60`, `"elapsed": {"set": false, "infinite": false, "number": 0}`, ""}, // from start to end
		{`"elapsed": 60`, `"elapsed": 18446744073709551614`, ""},
		{`"elapsed": 60`, `"elapsed": 60.5`, "time.elapsed of job 1: got 60.5, want a whole number"},
		{`"elapsed": 60`, `"elapsed": 36893488147419103230`,
			"time.elapsed of job 1: got 36893488147419103230, want a whole number"},
		{`"count": 2`, `"count": {"set": true, "infinite": false, "number": 2}`, ""},
		{`"count": 2`, `"count": 2.0`, ""},
		{`"count": 2`, `"count": 36893488147419103230`,
			"tres of job 1: gres/gpu: got 36893488147419103230, want a whole number"},
		{`"allocation_nodes": 1`, `"allocation_nodes": {"set": true, "infinite": false, "number": 1}`, ""},
		{`"job_id": 1`, `"job_id": "one"`, "a job without job_id, state or time"},
	} {
		if !strings.Contains(documentOf(1), c.old) {
			t.Fatalf("no %s", c.old)
		}
		jobs, _, err := read(t, strings.Replace(documentOf(1), c.old, c.new, 1))
		if c.want == "" && (err != nil || what(jobs) != "1 60 s 2") ||
			c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, %s; want %q", c.new, err, what(jobs), c.want)
		}
	}
}

func TestWhatOtherCommandsPrint(t *testing.T) {
	rows := made[strings.Index(made, "\n")+1:]
	for name, c := range map[string]struct{ text, want string }{
		"no header":             {rows, noHeader},
		"no header, semicolons": {strings.ReplaceAll(rows, "|", ";"), noHeader},
		"no header, few fields": {"101|COMPLETED|02:00:00\n", noHeader},
		"pending, no header":    {"8_[3-9%2]|ann|PENDING|cpu=8,gres/gpu=2\n", noHeader},
		"a warning, no header":  {"sacct: warning: slow\n" + rows, noHeader},
		"squeue":                {`{"jobs": [{"job_id": 5, "job_state": ["PENDING"]}]}`, ofSqueue},
		"sacct":                 {made, ""},
		"a table":               {"1,ann,COMPLETED,2024-03-01T12:00:00,5\n", ""},
		"numbers":               {"1|2|3|4|5\n", ""},
		"nothing":               {"", ""},
	} {
		if got := Mistaken([]byte(c.text)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if _, _, err := read(t, rows); err == nil || err.Error() != "t.txt:1: "+noHeader {
		t.Error(err)
	}
}

// Names of columns change in each header, and nothing else does.
func TestRenamedColumns(t *testing.T) {
	const text = "JobID|Partition|Account|Submit|State\n1|gpu|Account|5|COMPLETED\nJobID^Account^Partition^Submit^State^AllocTRES\n2^a^b^5^COMPLETED^\n"
	got, err := io.ReadAll(Renamed(strings.NewReader(text),
		map[string]string{"Account": "Partition", "Partition": "Account"}))
	want := "JobID|Account|Partition|Submit|State\n1|gpu|Account|5|COMPLETED\nJobID^Partition^Account^Submit^State^AllocTRES\n2^a^b^5^COMPLETED^\n"
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
}

// A million headers or documents cost no more than as many rows.
func TestManyPartsAreReadInOnePass(t *testing.T) {
	line := "JobID|Submit|ElapsedRaw|AllocTRES|User\n"
	other := "JobID|Submit|ElapsedRaw|AllocTRES|State\n"
	n := 2000
	var text bytes.Buffer
	for range n {
		text.WriteString(line + other + documentOf(1) + "\n")
	}
	jobs, d, err := read(t, text.String())
	if err != nil || len(jobs) != 1 || duplicates(d) != n-1 {
		t.Errorf("%v, %d jobs, %d duplicates", err, len(jobs), duplicates(d))
	}
}
