package muri

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

var names = []string{"job_id", "num_gpu", "submit_time", "iterations", "model_name", "batch_size", "duration", "iteration_time",
	"resource_time_0", "resource_time_1", "resource_time_2", "priority"}

// Stages holds the time of one iteration alone on the job's GPUs, and the part of it spent on each resource.
type Stages struct{ Iteration, Input, GPU, Network time.Duration }

// Reader is a traces.Stream over a trace, in order of submit. The reader holds all of it in memory, because a job's
// profile is built from all rows of its model. Not safe for concurrent use.
type Reader struct {
	rows  []row
	next  int
	moved int
}

type row struct {
	job    traces.Job
	stages Stages
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
		if w.job.Submit < latest {
			d.moved++
		}
		latest = max(latest, w.job.Submit)
		rows.Add(&w)
	}
	d.rows = rows.Take()
	setProfiles(d.rows)
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

// Stages returns the times of one iteration of the job that Next returned last, or zeros before the first call.
func (d *Reader) Stages() Stages {
	if d.next == 0 {
		return Stages{}
	}
	return d.rows[d.next-1].stages
}

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

func (p *parser) row(w *row) (err error) {
	if err = p.Next(); err != nil {
		return err
	}
	j := &w.job
	j.ID = string(p.Text(p.at[colID]))
	gpus, err := p.Whole(p.at[colGPUs], 1, traces.MaxGPUs)
	if err != nil {
		return err
	}
	j.GPUs, j.GPUMilli = int(gpus), 1000
	if j.Submit, err = p.millis(colSubmit); err != nil {
		return err
	}
	if j.Iterations, err = p.Whole(p.at[colIterations], 0, math.MaxInt64); err != nil {
		return err
	}
	j.Model = p.text.Get(p.Text(p.at[colModel]))
	each, err := p.Whole(p.at[colBatch], 1, math.MaxInt/gpus) // the file counts the examples on one GPU
	if err != nil {
		return err
	}
	j.Batch = int(each * gpus)
	if j.Work, err = p.millis(colDuration); err != nil {
		return err
	}
	s := &w.stages
	for _, c := range [...]struct {
		col int
		to  *time.Duration
	}{{colIteration, &s.Iteration}, {colInput, &s.Input}, {colGPU, &s.GPU}, {colNetwork, &s.Network}} {
		if *c.to, err = p.millis(c.col); err != nil {
			return err
		}
	}
	if s.Iteration == 0 {
		return p.Fault(p.at[colIteration], "milliseconds above 0")
	}
	if p.Given(p.at[colPriority]) {
		v, err := p.Whole(p.at[colPriority], 0, 1)
		if err != nil {
			return err
		}
		j.Priority = int(1 - v)
	}
	return nil
}

func (p *parser) millis(col int) (time.Duration, error) {
	v, err := p.Number(p.at[col], 6, 0, math.MaxInt64, "milliseconds, 0 or more and below 292 years")
	return time.Duration(v), err
}
