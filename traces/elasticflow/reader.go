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

// Reader is a traces.Stream over a trace, in order of submit. A file may be out of order, so the reader holds all of it
// in memory. Not safe for concurrent use.
type Reader struct {
	stream traces.Slice
	moved  int
}

var _ traces.Stream = (*Reader)(nil)

// NewReader reads r to its end and sorts the jobs by submit; jobs with equal submits keep the order of the file. file
// is the name used in messages. A fault in a row is a *traces.RowError.
func NewReader(r io.Reader, file string) (*Reader, error) {
	t, err := traces.NewTable(r, file, names[:required]...)
	if err != nil {
		return nil, err
	}
	p := &parser{Table: t, at: t.At(names...)}
	var all traces.Gather[traces.Job]
	for {
		var j traces.Job
		if err := p.row(&j); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		all.Add(&j)
	}
	jobs := all.Take()
	return &Reader{moved: traces.SortStable(jobs), stream: traces.Slice{Jobs: jobs}}, nil
}

// Next implements traces.Stream.
func (d *Reader) Next(j *traces.Job) error { return d.stream.Next(j) }

// Moved returns how many jobs came after a job with a later submit in the file.
func (d *Reader) Moved() int { return d.moved }

// Skipped returns nil: this format leaves out no rows.
func (d *Reader) Skipped() []traces.Skip { return nil }

// Sniff reports whether head, the first bytes of an unpacked file, begins with this format's header.
func Sniff(head []byte) bool { return traces.HasColumns(head, names[:required]...) }

type parser struct {
	*traces.Table
	at   []int // index of the column of each name; -1 = absent
	text traces.Names
}

// maxElastic is the most GPUs that the authors' scheduler gives to a job.
const maxElastic = 64

func (p *parser) row(j *traces.Job) (err error) {
	if err = p.Next(); err != nil {
		return err
	}
	j.ID, j.Model = string(p.Text(p.at[colID])), p.text.Get(p.Text(p.at[colModel]))
	if j.Submit, err = p.Seconds(p.at[colSubmit]); err != nil {
		return err
	}
	gpus, err := p.Whole(p.at[colGPUs], 1, traces.MaxGPUs)
	if err != nil {
		return err
	}
	j.GPUs, j.GPUMilli = int(gpus), 1000
	batch, err := p.Whole(p.at[colBatch], 1, math.MaxInt)
	if err != nil {
		return err
	}
	j.Batch = int(batch) // of all GPUs together
	j.MinGPUs, j.MaxGPUs = 1, int(max(gpus, min(maxElastic, batch)))
	if j.Iterations, err = p.Whole(p.at[colIterations], 0, math.MaxInt64); err != nil {
		return err
	}
	if j.Work, err = p.Seconds(p.at[colDuration]); err != nil {
		return err
	}
	if p.Given(p.at[colRealIterations]) {
		if j.Iterations, err = p.Whole(p.at[colRealIterations], 0, math.MaxInt64); err != nil {
			return err
		}
	}
	if p.Given(p.at[colRealDuration]) {
		j.Estimate = j.Work
		if j.Work, err = p.Seconds(p.at[colRealDuration]); err != nil {
			return err
		}
	}
	if p.Given(p.at[colBest]) {
		best, err := p.Whole(p.at[colBest], 0, 1)
		if err != nil || best == 1 {
			return err
		}
	}
	if j.Deadline, err = p.Seconds(p.at[colDeadline]); err == nil && j.Deadline == 0 {
		err = p.Fault(p.at[colDeadline], "seconds above 0 and below 292 years (best_effort 1 where there is no deadline)")
	}
	return err
}
