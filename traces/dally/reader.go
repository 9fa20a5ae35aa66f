package dally

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"clustergym/traces"
)

const (
	colJob = iota
	colArrival
	colGPUs
	colModel
	colIterations
	colTime
)

var (
	required = []string{"job", "arrival", "gpus", "model", "iterations", "time_per_iteration"}
	optional = []string{"total_iterations_in_file", "job_group"}
)

// Reader is a traces.Stream over a workload, in order of submit. Not safe for concurrent use.
type Reader struct {
	stream traces.Slice
	moved  int
	group  bool
}

var _ traces.Stream = (*Reader)(nil)

// Sniff reports whether head, the first bytes of an unpacked file, is the beginning of a workload.
func Sniff(head []byte) bool { return traces.HasHeader(head, required, optional) }

// NewReader reads r to its end and sorts the jobs by submit; jobs with equal submits keep the order of the file. file
// is the name used in messages. A fault in a row is a *traces.RowError.
func NewReader(r io.Reader, file string) (*Reader, error) {
	t, err := traces.NewTable(r, file, required...)
	if err != nil {
		return nil, err
	}
	at, group := t.At(required...), t.Column("job_group")
	var names traces.Names
	var jobs traces.Gather[traces.Job]
	d := &Reader{group: group >= 0}
	for {
		if err := t.Next(); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		j := traces.Job{ID: string(t.Text(at[colJob])), Model: names.Get(t.Text(at[colModel])), Group: names.Get(t.Text(group)), GPUMilli: 1000}
		gpus, err := t.Number(at[colGPUs], 0, 1, traces.MaxGPUs, "a whole number of GPUs, 1 or more")
		if err != nil {
			return nil, err
		}
		j.GPUs = int(gpus)
		if j.Submit, err = t.Seconds(at[colArrival]); err != nil {
			return nil, err
		}
		if j.Iterations, err = t.Number(at[colIterations], 0, 1, 1<<53-1, "a whole number, 1 or more"); err != nil {
			return nil, err
		}
		per, err := strconv.ParseFloat(string(t.Text(at[colTime])), 64)
		if err != nil || !(per > 0) || math.IsInf(per, 0) {
			return nil, t.Fault(at[colTime], "seconds of an iteration, above 0")
		}
		work := float64(j.Iterations) * per / float64(j.GPUs) * 1e9
		if work >= math.MaxInt64/8 {
			return nil, t.Fault(at[colTime], fmt.Sprintf("a time with which %d iterations take less than 36 years", j.Iterations))
		}
		j.Work = time.Duration(math.Round(work))
		j.Profile = Profile(j.Model)
		jobs.Add(&j)
	}
	d.stream.Jobs = jobs.Take()
	d.moved = traces.SortStable(d.stream.Jobs)
	return d, nil
}

// Next implements traces.Stream.
func (d *Reader) Next(j *traces.Job) error { return d.stream.Next(j) }

// Named reports that jobs have no name, and whether the file has a column of groups.
func (d *Reader) Named() (name, group bool) { return false, d.group }

// Moved returns how many jobs came after a job with a later submit in the file.
func (d *Reader) Moved() int { return d.moved }
