package csv

import (
	"bytes"
	"time"

	"clustergym/traces"
)

// clock is what the times of a file are. All of them must be of one kind, because times of two kinds cannot be
// compared.
type clock uint8

const (
	noClock clock = iota // no time has been read
	counted              // numbers: seconds since the origin, or unix times
	dated                // dates without a zone
	zoned                // dates with a zone
)

// isUnix reports whether the first submit is taken for a unix time, of 2001-09-09 to 2096-10-01: it is 31 to 126 years
// after an origin.
func isUnix(first time.Duration) bool { return first >= 1e9*time.Second && first < 4e9*time.Second }

// time reads a time: seconds, or the time since 1970 of a date. want says what would be right in a file of numbers.
func (d *Reader) time(col int, want string) time.Duration {
	at := d.at[col]
	if d.clock <= counted {
		v, _, err := d.rows.Decimal(at, 9)
		if err == nil && v >= 0 {
			d.clock = counted
			return time.Duration(v)
		}
	}
	b := d.rows.Text(at)
	v, zone, ok := traces.ParseDate(b)
	kind := dated
	if zone {
		kind = zoned
	}
	switch {
	case ok && (d.clock == noClock || d.clock == kind):
		d.clock = kind
		return v
	case dayOrMonth(b):
		want = "a date with the year first such as 2024-03-01 12:00:00, because this one does not tell day from month"
	case d.clock == dated:
		want = "a date without a zone such as 2024-03-01 12:00:00, as in the times before"
	case d.clock == zoned:
		want = "a date with a zone such as 2024-03-01T12:00:00Z, as in the times before"
	case ok:
		want = "seconds, as in the times before"
	case fine(b) != "":
		want = "seconds; as a unix time this is in " + fine(b)
	}
	d.fail(col, want)
	return 0
}

// dayOrMonth reports whether b looks like a date such as 03/04/2024 or 1.3.24, of which programs disagree.
func dayOrMonth(b []byte) bool {
	for i, c := range b {
		if c < '0' || c > '9' {
			return (i == 1 || i == 2) && (c == '/' || c == '.' || c == '-') && bytes.Count(b, b[i:i+1]) == 2
		}
	}
	return false
}

// fine returns the unit of a unix time that is finer than seconds, "" if b is none. Programs write such a time as
// 1706608800000, 1706608800000.0 or 1.7066088e+12.
func fine(b []byte) string {
	v, _, err := traces.Decimal(string(b), 0)
	for _, u := range [...]struct {
		per  int64
		says string
	}{{1e3, "milliseconds: divide it by 1000"}, {1e6, "microseconds: divide it by 1e6"},
		{1e9, "nanoseconds: divide it by 1e9"}} {
		if err == nil && v/u.per >= 1e9 && v/u.per < 4e9 {
			return u.says
		}
	}
	return ""
}

// written returns a time as the file would write it.
func (d *Reader) written(t time.Duration) string {
	if d.clock < dated {
		return string(traces.AppendSeconds(nil, t))
	}
	layout := "2006-01-02 15:04:05.999999999"
	if d.clock == zoned {
		layout += "Z"
	}
	return time.Unix(0, int64(t)).UTC().Format(layout)
}

// length reads a length of time. more is added to what would be right.
func (d *Reader) length(col int, more string) time.Duration {
	v, _, err := d.rows.Decimal(d.at[col], 9)
	if err == nil && v >= 0 {
		return time.Duration(v)
	}
	t, ok := traces.ParseDuration(d.rows.Text(d.at[col]))
	if !ok {
		d.fail(col, "seconds, 0 or more and below 292 years, or as in 1h30m, 01:30:00 or 1-12:00:00"+more)
	}
	return t
}

// work returns the run time of the row. why is the reason for which the row is left out, "" if it is a job.
func (d *Reader) work() (work time.Duration, why string) {
	if !d.between {
		open := d.unended()
		switch given := !traces.NotGiven(d.rows.Text(d.at[colDuration])); {
		case open == traces.StillWaiting || open == traces.StillRunning && !given:
			d.open = open
			return 0, ""
		case !given && unfinished(d.cell(colStatus)):
			return 0, NoDuration
		}
		d.open = open
		return d.notes.compare(d, d.length(colDuration, "")), ""
	}
	if traces.NotGiven(d.rows.Text(d.at[colStart])) {
		if d.o.Unended && !d.over() {
			d.open = traces.StillWaiting
			return 0, ""
		}
		return 0, NeverStarted
	}
	const want = "a time as in submit_time, or nothing where there is none"
	start := d.time(colStart, want)
	d.latest = max(d.latest, start)
	if traces.NotGiven(d.rows.Text(d.at[colEnd])) {
		if d.o.Unended && !d.over() {
			d.open = traces.StillRunning
			return 0, ""
		}
		return 0, NotEnded
	}
	end := d.time(colEnd, want)
	d.latest = max(d.latest, end)
	work, ok := traces.Between(start, end, d.clock == dated)
	if !ok {
		d.fail(colEnd, d.written(start)+" or later, as in "+d.rows.Columns()[d.at[colStart]])
	}
	return work, ""
}

// started reads when the job started, if the file says it.
func (d *Reader) started(j *traces.Job) {
	if d.at[colStart] < 0 {
		return
	}
	if at, ok := d.soft(colStart); ok {
		j.Start(at)
	}
}

// unfinished reports whether a status is of a job that may not have run.
func unfinished(b []byte) bool {
	word, _, _ := bytes.Cut(bytes.ToLower(bytes.TrimSpace(b)), []byte{' '})
	switch string(word) {
	case "pending", "queued", "waiting", "held", "submitted", "running":
		return true
	}
	return status(b) == traces.Cancelled
}

// status reads the end of a job; "CANCELLED by 1000" is one word too.
func status(b []byte) traces.Status {
	b, _, _ = bytes.Cut(b, []byte(" by "))
	return traces.ParseStatus(string(b))
}

// deadline reads the deadline as a time from the origin; 0 = none.
func (d *Reader) deadline() time.Duration {
	if !d.given(colDeadline) {
		return 0
	}
	t := d.time(colDeadline, "seconds, 0 or more and below 292 years, or nothing where it is not given")
	if d.based && t != 0 {
		t = max(1, t-d.first) // one that passed before the first submit is still one
	}
	return t
}

// Rebase counts the submits and deadlines of jobs, which an Unsorted reader gave and which are now in order of submit,
// from the first submit if the file has dates or unix times.
func (d *Reader) Rebase(jobs []traces.Job) {
	if len(jobs) == 0 || d.clock < dated && !isUnix(jobs[0].Submit) {
		return
	}
	first := jobs[0].Submit
	d.based, d.first = true, first
	for i := range jobs {
		j := &jobs[i]
		j.Submit -= first
		if j.Deadline != 0 {
			j.Deadline = max(1, j.Deadline-first)
		}
	}
}
