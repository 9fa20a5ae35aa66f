package chronus

import (
	"bytes"
	"io"
	"math"
	"strings"
	"time"

	"clustergym/traces"
)

const (
	colID = iota
	colUser
	colGPUs
	colSubmit
	colIterations
	colModel
	colDuration
	colTimes
	colValues
	colBest
	required = colBest // the columns before it are required
)

var names = []string{"job_id", "user", "num_gpu", "submit_time", "iterations", "model_name", "duration",
	"expect_time_list",
	"expect_value_list", "best_effort"}

// NewReader reads r to its end. The result is a stream over the jobs in order of submit; the file may have them in any
// order. file is the name used in messages. A fault in a row is a *traces.RowError.
func NewReader(r io.Reader, file string) (*traces.Sorted, error) {
	return traces.ReadTable(r, file, names, required, row)
}

// Sniff reports whether head, the first bytes of an unpacked file, begins with this format's header.
func Sniff(head []byte) bool { return traces.HasColumns(head, names[:required]...) }

type parser struct{ *traces.Cells }

func row(c *traces.Cells, j *traces.Job) (skip string) {
	p := parser{c}
	j.ID, j.User = string(p.Text(colID)), p.Name(colUser)
	if vc, ok := strings.CutPrefix(j.User, "vc_"); ok {
		j.VC = vc
	}
	j.GPUs, j.GPUMilli = p.GPUs(colGPUs, 0)
	j.Submit = p.minutes(colSubmit)
	j.Iterations = p.Whole(colIterations, 0, math.MaxInt64)
	j.Model = p.Name(colModel)
	j.Work = p.minutes(colDuration)
	if !p.Given(colBest) || p.Whole(colBest, 0, 1) != 1 {
		j.Deadline = p.deadline(j.Submit)
	}
	if j.GPUs == 0 {
		return "asks for no GPU: num_gpu is 0"
	}
	return ""
}

// minutes reads a time, which leaves room for the sum of a submit and an expected time.
func (p parser) minutes(col int) time.Duration {
	d, ok := minutes(p.Text(col))
	if !ok {
		p.Fail(col, "minutes, 0 or more and below 146 years")
	}
	return d
}

func minutes(b []byte) (time.Duration, bool) {
	v, _, err := traces.Decimal(string(b), 9)
	if err != nil || v < 0 || v > math.MaxInt64/2/60 {
		return 0, false
	}
	return time.Duration(v * 60), true
}

// deadline reads the steps of a job's value: what it is worth, of 10, if it ends within each time after its submit. The
// first of them is the deadline. Both lists must have equal lengths, times must rise strictly and values must never
// rise, or else the first step would not be the deadline.
func (p parser) deadline(submit time.Duration) time.Duration {
	times, values := bytes.Split(p.Text(colTimes), []byte{'-'}), bytes.Split(p.Text(colValues), []byte{'-'})
	if len(times) != len(values) {
		p.Fail(colValues, "as many values as expect_time_list has times, joined by -")
		return 0
	}
	var first, last time.Duration
	worth := int64(math.MaxInt64)
	for i := range times {
		by, ok := minutes(bytes.TrimSpace(times[i]))
		if !ok || by <= last {
			p.Fail(colTimes, "rising minutes after the submit joined by -, each above 0 and below 146 years")
		}
		v, exact, err := traces.Decimal(string(bytes.TrimSpace(values[i])), 0)
		if err != nil || !exact || v < 0 || v > worth {
			p.Fail(colValues, "whole numbers of 0 or more joined by -, none larger than the one before it")
		}
		if last, worth = by, v; i == 0 {
			first = by
		}
	}
	return submit + first
}
