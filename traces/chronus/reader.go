package chronus

import (
	"bytes"
	"cmp"
	"io"
	"math"
	"slices"
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

var names = []string{"job_id", "user", "num_gpu", "submit_time", "iterations", "model_name", "duration", "expect_time_list",
	"expect_value_list", "best_effort"}

// Step is one step of a job's value: a job that ends by By, an offset from the origin, is worth Value.
type Step struct {
	By    time.Duration
	Value int64 // of 10
}

// Reader is a traces.Stream over a trace, in order of submit. The files are not in order, so the reader holds all of a
// file in memory. Not safe for concurrent use.
type Reader struct {
	rows    []row
	next    int
	moved   int
	skipped traces.Skips
}

type row struct {
	job   traces.Job
	steps []Step
}

var _ traces.Stream = (*Reader)(nil)

// NewReader reads r to its end and sorts the jobs by submit; jobs with equal submits keep the order of the file. file
// is the name used in messages. A fault in a row is a *traces.RowError.
func NewReader(r io.Reader, file string) (*Reader, error) {
	t, err := traces.NewTable(r, file, names[:required]...)
	if err != nil {
		return nil, err
	}
	d, p := &Reader{}, &parser{Table: t, at: t.At(names...)}
	latest := time.Duration(math.MinInt64)
	var rows traces.Gather[row]
	for {
		var w row
		if err := p.row(&w); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		if w.job.GPUs == 0 {
			d.skipped.Add("asks for no GPU: num_gpu is 0")
			continue
		}
		if w.job.Submit < latest {
			d.moved++
		}
		latest = max(latest, w.job.Submit)
		rows.Add(&w)
	}
	d.rows = rows.Take()
	slices.SortStableFunc(d.rows, func(a, b row) int { return cmp.Compare(a.job.Submit, b.job.Submit) })
	return d, nil
}

// Next implements traces.Stream.
func (d *Reader) Next(j *traces.Job) error {
	if d.next == len(d.rows) {
		return io.EOF
	}
	*j = d.rows[d.next].job
	d.next++
	return nil
}

// Steps returns the steps of the job that Next returned last, in order of time: one for a strict job, several for a
// soft one, none for a best-effort job or before the first call. The caller must not change them.
func (d *Reader) Steps() []Step {
	if d.next == 0 {
		return nil
	}
	return d.rows[d.next-1].steps
}

// Moved returns how many jobs came after a job with a later submit in the file.
func (d *Reader) Moved() int { return d.moved }

// Skipped returns how many rows were left out, by reason.
func (d *Reader) Skipped() []traces.Skip { return d.skipped.All() }

// Sniff reports whether head, the first bytes of an unpacked file, begins with this format's header.
func Sniff(head []byte) bool { return traces.HasColumns(head, names[:required]...) }

type parser struct {
	*traces.Table
	at   []int // index of the column of each name; -1 = absent
	text traces.Names
}

func (p *parser) row(w *row) (err error) {
	if err = p.Next(); err != nil {
		return err
	}
	j := &w.job
	j.ID = string(p.Text(p.at[colID]))
	user := p.Text(p.at[colUser])
	j.User = p.text.Get(user)
	if vc, ok := bytes.CutPrefix(user, []byte("vc_")); ok {
		j.VC = p.text.Get(vc)
	}
	gpus, err := p.Whole(p.at[colGPUs], 0, traces.MaxGPUs)
	if err != nil {
		return err
	}
	j.GPUs, j.GPUMilli = int(gpus), 1000
	if j.Submit, err = p.minutes(colSubmit); err != nil {
		return err
	}
	if j.Iterations, err = p.Whole(p.at[colIterations], 0, math.MaxInt64); err != nil {
		return err
	}
	j.Model = p.text.Get(p.Text(p.at[colModel]))
	if j.Work, err = p.minutes(colDuration); err != nil {
		return err
	}
	best, err := p.bestEffort()
	if err != nil || best {
		return err
	}
	if w.steps, err = p.steps(j.Submit); err != nil {
		return err
	}
	j.Deadline = w.steps[0].By
	return nil
}

// wantMinutes leaves room for the sum of a submit and an expected time.
const wantMinutes = "minutes, 0 or more and below 146 years"

func (p *parser) minutes(col int) (time.Duration, error) {
	d, ok := minutes(p.Text(p.at[col]))
	if !ok {
		return 0, p.Fault(p.at[col], wantMinutes)
	}
	return d, nil
}

func minutes(b []byte) (time.Duration, bool) {
	v, _, err := traces.Decimal(string(b), 9)
	if err != nil || v < 0 || v > math.MaxInt64/2/60 {
		return 0, false
	}
	return time.Duration(v * 60), true
}

func (p *parser) bestEffort() (bool, error) {
	b := p.Text(p.at[colBest])
	if len(b) == 0 {
		return false, nil
	}
	v, err := p.Whole(p.at[colBest], 0, 1)
	return v == 1, err
}

// steps reads both lists. They must have equal lengths, times must rise strictly and values must never rise, or else
// the first step would not be the deadline.
func (p *parser) steps(submit time.Duration) ([]Step, error) {
	times, values := bytes.Split(p.Text(p.at[colTimes]), []byte{'-'}), bytes.Split(p.Text(p.at[colValues]), []byte{'-'})
	if len(times) != len(values) {
		return nil, p.Fault(p.at[colValues], "as many values as expect_time_list has times, joined by -")
	}
	steps := make([]Step, len(times))
	for i := range steps {
		by, ok := minutes(bytes.TrimSpace(times[i]))
		if !ok || i > 0 && submit+by <= steps[i-1].By || by == 0 {
			return nil, p.Fault(p.at[colTimes], "rising minutes after the submit joined by -, each above 0 and below 146 years")
		}
		v, exact, err := traces.Decimal(string(bytes.TrimSpace(values[i])), 0)
		if err != nil || !exact || v < 0 || i > 0 && v > steps[i-1].Value {
			return nil, p.Fault(p.at[colValues], "whole numbers of 0 or more joined by -, none larger than the one before it")
		}
		steps[i] = Step{submit + by, v}
	}
	return steps, nil
}
