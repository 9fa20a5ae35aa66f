package muri

import (
	"io"
	"math"
	"time"

	"clustergym/traces"
)

const (
	colID = iota
	colGPUs
	colSubmit
	colIterations
	colModel
	colBatch
	colDuration
	colIteration
	colInput
	colGPU
	colNetwork
	colPriority
	required = colPriority // the columns before it are required
)

var names = []string{"job_id", "num_gpu", "submit_time", "iterations", "model_name", "batch_size", "duration",
	"iteration_time",
	"resource_time_0", "resource_time_1", "resource_time_2", "priority"}

// Reader is a traces.Stream over a trace, in order of submit. The reader holds all of it in memory, because a job's
// profile is built from all rows of its model. Not safe for concurrent use.
type Reader struct{ traces.Sorted }

// NewReader reads r to its end and sorts the jobs by submit; jobs with equal submits keep the order of the file. file
// is the name used in messages. A fault in a row is a *traces.RowError.
func NewReader(r io.Reader, file string) (*Reader, error) {
	c, err := traces.OpenCells(r, file, names, required)
	if err != nil {
		return nil, err
	}
	d, p, all := &Reader{}, parser{c}, profiles{}
	err = d.Read(c, func(j *traces.Job) (skip string) {
		if s := p.row(j); c.Err() == nil {
			all.add(j, s)
		}
		return ""
	})
	all.finish()
	return d, err
}

// Sniff reports whether head, the first bytes of an unpacked file, begins with this format's header.
func Sniff(head []byte) bool { return traces.HasColumns(head, names[:required]...) }

type parser struct{ *traces.Cells }

func (p parser) row(j *traces.Job) (s stages) {
	j.ID = string(p.Text(colID))
	j.GPUs, j.GPUMilli = p.GPUs(colGPUs, 1)
	j.Submit = p.millis(colSubmit)
	j.Iterations = p.Whole(colIterations, 0, math.MaxInt64)
	j.Model = p.Name(colModel)
	gpus := max(1, j.GPUs)
	j.Batch = int(p.Whole(colBatch, 1, int64(math.MaxInt/gpus))) * gpus // the file counts the examples on one GPU
	j.Work = p.millis(colDuration)
	s.iteration = p.millis(colIteration)
	p.millis(colInput) // checked, not used
	s.gpu, s.network = p.millis(colGPU), p.millis(colNetwork)
	if s.iteration == 0 {
		p.Fail(colIteration, "milliseconds above 0")
	}
	if p.Given(colPriority) {
		j.Priority = int(1 - p.Whole(colPriority, 0, 1))
	}
	return s
}

func (p parser) millis(col int) time.Duration {
	return time.Duration(p.Number(col, 6, 0, math.MaxInt64, "milliseconds, 0 or more and below 292 years"))
}
