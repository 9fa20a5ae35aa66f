package elasticflow

import (
	"io"
	"math"

	"clustergym/traces"
)

const (
	colID = iota
	colSubmit
	colIterations
	colModel
	colDeadline
	colBatch
	colGPUs
	colDuration
	colRealIterations
	colRealDuration
	colBest
	required = colRealIterations // the columns before it are required
)

var names = []string{"job_id", "submit_time", "iteration", "model_name", "ddl", "batch_size", "num_gpu", "duration",
	"real_iteration", "real_duration", "best_effort"}

// maxElastic is the most GPUs that the authors' scheduler gives to a job.
const maxElastic = 64

// NewReader reads r to its end. The result is a stream over the jobs in order of submit; the file may have them in any
// order. file is the name used in messages. A fault in a row is a *traces.RowError.
func NewReader(r io.Reader, file string) (*traces.Sorted, error) {
	return traces.ReadTable(r, file, names, required, row)
}

func row(c *traces.Cells, j *traces.Job) (skip string) {
	j.ID, j.Model, j.Submit = string(c.Text(colID)), c.Name(colModel), c.Seconds(colSubmit)
	j.GPUs, j.GPUMilli = c.GPUs(colGPUs, 1)
	j.Batch = int(c.Whole(colBatch, 1, math.MaxInt)) // of all GPUs together
	j.MinGPUs, j.MaxGPUs = 1, max(j.GPUs, min(maxElastic, j.Batch))
	j.Iterations = c.Whole(colIterations, 0, math.MaxInt64)
	j.Work = c.Seconds(colDuration)
	if c.Given(colRealIterations) {
		j.Iterations = c.Whole(colRealIterations, 0, math.MaxInt64)
	}
	if c.Given(colRealDuration) {
		j.Estimate, j.Work = j.Work, c.Seconds(colRealDuration)
	}
	if c.Given(colBest) && c.Whole(colBest, 0, 1) == 1 {
		return ""
	}
	if j.Deadline = c.Seconds(colDeadline); j.Deadline == 0 {
		c.Fail(colDeadline, "seconds above 0 and below 292 years (best_effort 1 where there is no deadline)")
	}
	return ""
}

// Sniff reports whether head, the first bytes of an unpacked file, begins with this format's header.
func Sniff(head []byte) bool { return traces.HasColumns(head, names[:required]...) }
