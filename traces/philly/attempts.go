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

// The reasons for which jobs of the attempts' table are left out. The published table has attempts without a start,
// which waited when the recording ended, and without an end, which ran.
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
	traces.Sorted
	origin time.Time
}

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
	c, err := traces.OpenCells(r, file, attemptNames, len(attemptNames))
	if err != nil {
		return nil, err
	}
	p, d := attemptParser{c}, &AttemptReader{}
	var (
		jobs []traces.Job
		ran  []int // runs of each job in jobs
		odds []odd // likewise
	)
	type place struct {
		job     int
		attempt int64
	}
	index, taken := map[string]int{}, map[place]bool{}
	for c.Next() == nil {
		j := p.job()
		k, known := index[j.ID]
		if !known {
			k = len(jobs)
			index[j.ID] = k
			jobs, ran, odds = append(jobs, j), append(ran, 0), append(odds, odd{})
		} else {
			p.same(&j, &jobs[k])
		}
		a := p.run()
		at := place{k, a.number}
		if taken[at] {
			c.Fail(attemptNumber, "each attempt of a job once")
		}
		taken[at] = true
		if j.Submit < 0 {
			a.why = NoSubmit
		}
		if a.why != "" {
			if odds[k].why == "" {
				odds[k] = odd{a.why, c.Line()}
			}
			continue
		}
		if jobs[k].Work > math.MaxInt64-(a.end-a.start) {
			c.Fail(attemptEnd, "attempts of together less than 292 years")
		}
		jobs[k].Work += a.end - a.start
		if j := &jobs[k]; !j.Started || a.start-j.Submit < j.Waited {
			j.Start(a.start)
		}
		ran[k]++
	}
	if err := c.Err(); err != io.EOF {
		return nil, err
	}
	d.finish(jobs, ran, odds)
	return d, nil
}

// odd is why a job is left out, "" if it is not, and the line that shows it.
type odd struct {
	why  string
	line int
}

// finish orders the jobs and counts times from the first submit.
func (d *AttemptReader) finish(jobs []traces.Job, ran []int, odds []odd) {
	first := time.Duration(math.MaxInt64)
	for i := range jobs {
		if jobs[i].Submit >= 0 {
			first = min(first, jobs[i].Submit)
		}
	}
	if first < math.MaxInt64 {
		d.origin = time.Unix(int64(first/time.Second), 0).UTC()
	}
	kept := jobs[:0]
	for i, j := range jobs {
		if why := odds[i].why; why != "" {
			if why == NeverStarted && ran[i] > 0 {
				why = NotEnded
			}
			d.Left.AddAt(why, odds[i].line)
			continue
		}
		if j.Work == 0 {
			d.Left.Add(NeverRan)
			continue
		}
		j.Submit -= first
		kept = append(kept, j)
	}
	d.Sort(kept)
}

// Origin returns the first job's submitted_time as written. Its location is UTC, although the cluster's clock was not.
// It is the zero time for a table without jobs.
func (d *AttemptReader) Origin() time.Time { return d.origin }

type attemptParser struct{ *traces.Cells }

// job reads the columns that are equal in all rows of a job; Submit is the clock time as written, since 1970, -1 where
// it is missing.
func (p attemptParser) job() (j traces.Job) {
	if j.ID, j.VC = p.Name(attemptID), p.Name(attemptVC); j.ID == "" {
		p.Fail(attemptID, "the job's name")
	}
	j.GPUs, j.GPUMilli = p.GPUs(attemptGPUs, 1)
	j.Submit = -1
	if p.Stated(attemptSubmit) {
		j.Submit = at(p.Cells, attemptSubmit)
	}
	return j
}

func (p attemptParser) same(j, first *traces.Job) {
	switch {
	case j.VC != first.VC:
		p.Fail(attemptVC, fmt.Sprintf("%s, as in an earlier row of %s", first.VC, j.ID))
	case j.GPUs != first.GPUs:
		p.Fail(attemptGPUs, fmt.Sprintf("%d, as in an earlier row of %s", first.GPUs, j.ID))
	case j.Submit != first.Submit:
		p.Fail(attemptSubmit, "the time in an earlier row of "+j.ID)
	}
}

func (p attemptParser) run() (a run) {
	a.number = p.Number(attemptNumber, 0, 0, math.MaxInt64, "the number of the attempt, 0 or more")
	if !p.Stated(attemptStart) {
		a.why = NeverStarted
		return a
	}
	a.start = at(p.Cells, attemptStart)
	if !p.Stated(attemptEnd) {
		a.why = NotEnded
		return a
	}
	// When clocks are set back for winter, one hour occurs twice, so an end may be written before its start.
	ran, ok := traces.Between(a.start, at(p.Cells, attemptEnd), true)
	if a.end = a.start + ran; !ok {
		a.why = EndFirst
	}
	return a
}

// SniffAttempts reports whether head, the first bytes of an unpacked file, is the beginning of the table of attempts.
func SniffAttempts(head []byte) bool { return traces.HasHeader(head, attemptNames, nil) }
