package elasticflow

import (
	"cmp"
	"io"
	"math"
	"slices"
	"time"

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
	required = colRealIterations // the columns before it must be there
)

var names = []string{"job_id", "submit_time", "iteration", "model_name", "ddl", "batch_size", "num_gpu", "duration",
	"real_iteration", "real_duration", "best_effort"}

// Reader is a traces.Stream over a trace, in order of submit. A file may be out of order, so all of it is in
// memory. Not safe for concurrent use.
type Reader struct {
	rows  []row
	next  int
	moved int
}

type row struct {
	job   traces.Job
	batch int64
}

var _ traces.Stream = (*Reader)(nil)

// NewReader reads r to its end and puts the jobs in order of submit; jobs of equal submit keep the order of the
// file. file is the name that messages give. A fault in a row is a *traces.RowError.
func NewReader(r io.Reader, file string) (*Reader, error) {
	t, err := newTable(r, file, names, required)
	if err != nil {
		return nil, err
	}
	d, p := &Reader{}, &parser{table: t}
	latest := time.Duration(math.MinInt64)
	for {
		var w row
		if err := p.row(&w); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		if w.job.Submit < latest {
			d.moved++
		}
		latest = max(latest, w.job.Submit)
		d.rows = append(d.rows, w)
	}
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

// Batch is the number of examples in a batch, on all GPUs together, of the job that Next gave last, 0 before the
// first call.
func (d *Reader) Batch() int64 {
	if d.next == 0 {
		return 0
	}
	return d.rows[d.next-1].batch
}

// Moved is how many jobs stood after a job of later submit.
func (d *Reader) Moved() int { return d.moved }

// Skipped are the rows left out, by reason: none of this format are.
func (d *Reader) Skipped() []traces.Skip { return nil }

// Sniff says whether head, the first bytes of an unpacked file, is of this format: its header tells.
func Sniff(head []byte) bool { return hasHeader(head, names, required) }

type parser struct {
	*table
	text traces.Names
}

// maxElastic is the most GPUs that the authors' scheduler gives to a job.
const maxElastic = 64

func (p *parser) row(w *row) (err error) {
	if err = p.table.next(); err != nil {
		return err
	}
	j := &w.job
	j.ID, j.Model = string(p.cell(colID)), p.text.Get(p.cell(colModel))
	if j.Submit, err = p.seconds(colSubmit); err != nil {
		return err
	}
	gpus, err := p.whole(colGPUs, 1, maxGPUs)
	if err != nil {
		return err
	}
	j.GPUs, j.GPUMilli = int(gpus), 1000
	if w.batch, err = p.whole(colBatch, 1, math.MaxInt64); err != nil {
		return err
	}
	j.MinGPUs, j.MaxGPUs = 1, int(max(gpus, min(maxElastic, w.batch)))
	if j.Iterations, err = p.whole(colIterations, 0, math.MaxInt64); err != nil {
		return err
	}
	if j.Work, err = p.seconds(colDuration); err != nil {
		return err
	}
	if len(p.cell(colRealIterations)) > 0 {
		if j.Iterations, err = p.whole(colRealIterations, 0, math.MaxInt64); err != nil {
			return err
		}
	}
	if len(p.cell(colRealDuration)) > 0 {
		j.Estimate = j.Work
		if j.Work, err = p.seconds(colRealDuration); err != nil {
			return err
		}
	}
	if len(p.cell(colBest)) > 0 {
		best, err := p.whole(colBest, 0, 1)
		if err != nil || best == 1 {
			return err
		}
	}
	if j.Deadline, err = p.seconds(colDeadline); err == nil && j.Deadline == 0 {
		err = p.fault(colDeadline, "seconds above 0 and below 292 years (best_effort 1 where there is no deadline)")
	}
	return err
}

func (p *parser) seconds(col int) (time.Duration, error) {
	v, _, err := traces.Decimal(string(p.cell(col)), 9)
	if err != nil || v < 0 {
		return 0, p.fault(col, "seconds, 0 or more and below 292 years")
	}
	return time.Duration(v), nil
}
