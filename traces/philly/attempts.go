package philly

import (
	"fmt"
	"io"
	"math"
	"time"

	"clustergym/traces"
)

const (
	attemptID = iota
	attemptVC
	attemptGPUs
	attemptSubmit
	attemptNumber
	attemptStart
	attemptEnd
)

var attemptNames = []string{"job_id", "vc", "num_gpus", "submitted_time", "attempt", "start_time", "end_time"}

// The reasons for which jobs of the attempts' table are left out. The published table has attempts without a start, which
// waited when the recording ended, and without an end, which ran.
const (
	NeverRan     = "no run time: every attempt ends when it starts"
	NeverStarted = "never ran: an attempt without start_time, and none that ran"
	NotEnded     = "not ended: an attempt without start_time or end_time"
	EndFirst     = "an attempt ends before it starts"
	NoSubmit     = "no submitted_time"
)

// AttemptReader is a traces.Stream over the table of attempts of the same trace, which lists every run of every job.
// Its header has these columns, in any order; times are as in the table of jobs:
//
//	job_id          job, the same on all its rows, in any order           ID
//	vc              virtual cluster                                       VC
//	num_gpus        GPUs of the gang                                      GPUs
//	submitted_time                                                        Submit, from the first job's
//	attempt         number of the attempt, from 0                         orders the attempts
//	start_time                                                            begins a run
//	end_time                                                              ends it
//
// A job's Work is the sum of its attempts' run times without the time lost between attempts, which is the duration in
// the table of jobs. The time from the first start to the last end is longer. The table does not say how
// a job ended. The published table only has jobs of at least 4 GPUs and 10 minutes.
//
// Not safe for concurrent use.
type AttemptReader struct {
	jobs   []traces.Job
	stream traces.Slice
	origin time.Time
	moved  int
	skips  traces.Skips
}

var _ traces.Stream = (*AttemptReader)(nil)

// run is one row of the table; times are clock times as written.
type run struct {
	number     int64
	start, end time.Duration
	why        string // the job is left out; "" = it is not
}

// NewAttempts reads r to its end and sorts the jobs by submit; jobs with equal submits keep the order of their first
// rows. file is the name used in messages. A fault in a row is a *traces.RowError, and so is a row that contradicts an
// earlier one of its job or repeats the number of an attempt.
func NewAttempts(r io.Reader, file string) (*AttemptReader, error) {
	t, err := traces.NewTable(r, file, attemptNames...)
	if err != nil {
		return nil, err
	}
	p := &attemptParser{Table: t, at: t.At(attemptNames...)}
	d := &AttemptReader{}
	var ran []int  // runs of each job in d.jobs
	var odds []odd // likewise
	type place struct {
		job     int
		attempt int64
	}
	index, taken := map[string]int{}, map[place]bool{}
	for {
		if err := t.Next(); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		var j traces.Job
		if err := p.job(&j); err != nil {
			return nil, err
		}
		k, known := index[j.ID]
		if !known {
			k = len(d.jobs)
			index[j.ID] = k
			d.jobs, ran, odds = append(d.jobs, j), append(ran, 0), append(odds, odd{})
		} else if err := p.same(&j, &d.jobs[k]); err != nil {
			return nil, err
		}
		a, err := p.run()
		if err != nil {
			return nil, err
		}
		at := place{k, a.number}
		if taken[at] {
			return nil, p.Fault(p.at[attemptNumber], "each attempt of a job once")
		}
		taken[at] = true
		if j.Submit < 0 {
			a.why = NoSubmit
		}
		if a.why != "" {
			if odds[k].why == "" {
				odds[k] = odd{a.why, t.Line()}
			}
			continue
		}
		if d.jobs[k].Work > math.MaxInt64-(a.end-a.start) {
			return nil, p.Fault(p.at[attemptEnd], "attempts of together less than 292 years")
		}
		d.jobs[k].Work += a.end - a.start
		ran[k]++
	}
	d.finish(ran, odds)
	return d, nil
}

// odd is why a job is left out, "" if it is not, and the line that shows it.
type odd struct {
	why  string
	line int
}

// finish orders the jobs and counts times from the first submit.
func (d *AttemptReader) finish(ran []int, odds []odd) {
	first := time.Duration(math.MaxInt64)
	for i := range d.jobs {
		if d.jobs[i].Submit >= 0 {
			first = min(first, d.jobs[i].Submit)
		}
	}
	if first < math.MaxInt64 {
		d.origin = time.Unix(int64(first/time.Second), 0).UTC()
	}
	kept := d.jobs[:0]
	for i, j := range d.jobs {
		if why := odds[i].why; why != "" {
			if why == NeverStarted && ran[i] > 0 {
				why = NotEnded
			}
			d.skips.AddAt(why, odds[i].line)
			continue
		}
		if j.Work == 0 {
			d.skips.Add(NeverRan)
			continue
		}
		j.Submit -= first
		kept = append(kept, j)
	}
	d.jobs = kept
	d.moved = traces.SortStable(d.jobs)
	d.stream.Jobs = d.jobs
}

// Next implements traces.Stream.
func (d *AttemptReader) Next(j *traces.Job) error { return d.stream.Next(j) }

// Origin returns the first job's submitted_time as written. Its location is UTC, although the cluster's clock was not.
// It is the zero time for a table without jobs.
func (d *AttemptReader) Origin() time.Time { return d.origin }

// Moved returns how many jobs came after a job with a later submit in the file.
func (d *AttemptReader) Moved() int { return d.moved }

// Skipped returns how many jobs were left out, by reason.
func (d *AttemptReader) Skipped() []traces.Skip { return d.skips.All() }

type attemptParser struct {
	*traces.Table
	at   []int // index of the column of each of attemptNames
	text traces.Names
}

// job reads the columns that are equal in all rows of a job; Submit is the clock time as written, since 1970.
func (p *attemptParser) job(j *traces.Job) error {
	id := p.Text(p.at[attemptID])
	if len(id) == 0 {
		return p.Fault(p.at[attemptID], "the job's name")
	}
	j.ID, j.VC = p.text.Get(id), p.text.Get(p.Text(p.at[attemptVC]))
	gpus, err := p.Number(p.at[attemptGPUs], 0, 1, traces.MaxGPUs, "a whole number of GPUs, 1 or more")
	if err != nil {
		return err
	}
	j.GPUs, j.GPUMilli = int(gpus), 1000
	if traces.NotGiven(p.Text(p.at[attemptSubmit])) {
		j.Submit = -1
		return nil
	}
	j.Submit, err = p.clock(attemptSubmit)
	return err
}

func (p *attemptParser) same(j, first *traces.Job) error {
	switch {
	case j.VC != first.VC:
		return p.Fault(p.at[attemptVC], fmt.Sprintf("%s, as in an earlier row of %s", first.VC, j.ID))
	case j.GPUs != first.GPUs:
		return p.Fault(p.at[attemptGPUs], fmt.Sprintf("%d, as in an earlier row of %s", first.GPUs, j.ID))
	case j.Submit != first.Submit:
		return p.Fault(p.at[attemptSubmit], "the time in an earlier row of "+j.ID)
	}
	return nil
}

func (p *attemptParser) run() (a run, err error) {
	if a.number, err = p.Number(p.at[attemptNumber], 0, 0, math.MaxInt64, "the number of the attempt, 0 or more"); err != nil {
		return a, err
	}
	if traces.NotGiven(p.Text(p.at[attemptStart])) {
		a.why = NeverStarted
		return a, nil
	}
	if a.start, err = p.clock(attemptStart); err != nil {
		return a, err
	}
	if traces.NotGiven(p.Text(p.at[attemptEnd])) {
		a.why = NotEnded
		return a, nil
	}
	if a.end, err = p.clock(attemptEnd); err != nil {
		return a, err
	}
	if a.end < a.start {
		// When clocks are set back for winter, one hour occurs twice, so an end may be written before its start.
		if a.start-a.end > time.Hour {
			a.why = EndFirst
			return a, nil
		}
		a.end += time.Hour
	}
	return a, nil
}

func (p *attemptParser) clock(c int) (time.Duration, error) {
	at, ok := clock(p.Text(p.at[c]))
	if !ok {
		return 0, p.Fault(p.at[c], "a time from 1970 to 2199 such as 2017-10-09 07:01:55")
	}
	return at, nil
}
