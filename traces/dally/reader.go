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
	colGroup // the columns before it are required
)

var (
	names    = []string{"job", "arrival", "gpus", "model", "iterations", "time_per_iteration", "job_group"}
	optional = []string{"total_iterations_in_file", "job_group"}
)

// Reader is a traces.Stream over a workload, in order of submit. Not safe for concurrent use.
type Reader struct {
	traces.Sorted
	group bool
}

// Sniff reports whether head, the first bytes of an unpacked file, is the beginning of a workload.
func Sniff(head []byte) bool { return traces.HasHeader(head, names[:colGroup], optional) }

// NewReader reads r to its end and sorts the jobs by submit; jobs with equal submits keep the order of the file. file
// is the name used in messages. A fault in a row is a *traces.RowError.
func NewReader(r io.Reader, file string) (*Reader, error) {
	c, err := traces.OpenCells(r, file, names, colGroup)
	if err != nil {
		return nil, err
	}
	d := &Reader{group: c.Has(colGroup)}
	return d, d.Read(c, func(j *traces.Job) (skip string) {
		j.ID, j.Model, j.Group = string(c.Text(colJob)), c.Name(colModel), c.Name(colGroup)
		j.GPUs, j.GPUMilli = c.GPUs(colGPUs, 1)
		j.Submit = c.Seconds(colArrival)
		j.Iterations = c.Number(colIterations, 0, 1, 1<<53-1, "a whole number, 1 or more")
		per, err := strconv.ParseFloat(string(c.Text(colTime)), 64)
		if err != nil || !(per > 0) || math.IsInf(per, 0) {
			c.Fail(colTime, "seconds of an iteration, above 0")
		}
		work := float64(j.Iterations) * per / float64(max(1, j.GPUs)) * 1e9
		if work >= math.MaxInt64/8 {
			c.Fail(colTime, fmt.Sprintf("a time with which %d iterations take less than 36 years", j.Iterations))
		}
		j.Work = time.Duration(math.Round(work))
		j.Profile = Profile(j.Model)
		return ""
	})
}

// Named reports that jobs have no name, and whether the file has a column of groups.
func (d *Reader) Named() (name, group bool) { return false, d.group }
