package tiresias

import (
	"io"
	"math"

	"clustergym/traces"
)

const (
	colID = iota
	colGPUs
	colSubmit
	colIterations
	colModel
	colDuration
)

var (
	names    = []string{"job_id", "num_gpu", "submit_time", "iterations", "model_name", "duration"} // required
	optional = []string{"interval"}
)

// NoRunTime is the reason for which rows are left out.
const NoRunTime = "no run time: duration is 0"

// Sniff reports whether head, the first bytes of an unpacked file, is the beginning of a workload.
func Sniff(head []byte) bool { return traces.HasHeader(head, names, optional) }

// NewReader reads r to its end. The result is a stream over the jobs in order of submit; the file may have them in any
// order. file is the name used in messages. A fault in a row is a *traces.RowError.
func NewReader(r io.Reader, file string) (*traces.Sorted, error) {
	return traces.ReadTable(r, file, names, len(names), row)
}

func row(c *traces.Cells, j *traces.Job) (skip string) {
	j.ID, j.Model = string(c.Text(colID)), c.Name(colModel)
	j.GPUs, j.GPUMilli = c.GPUs(colGPUs, 1)
	j.Submit = c.Seconds(colSubmit)
	j.Iterations = c.Number(colIterations, 0, 0, math.MaxInt64, "a whole number, 0 or more")
	if j.Work = c.Seconds(colDuration); j.Work == 0 {
		return NoRunTime
	}
	return ""
}
