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
	required = []string{"job_id", "num_gpu", "submit_time", "iterations", "model_name", "duration"}
	optional = []string{"interval"}
)

// NoRunTime is the reason for which rows are left out.
const NoRunTime = "no run time: duration is 0"

// Reader is a traces.Stream over a workload, in order of submit. Not safe for concurrent use.
type Reader struct {
	jobs   []traces.Job
	stream traces.Slice
	skips  traces.Skips
	moved  int
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
	at := t.At(required...)
	var models traces.Names
	d := &Reader{}
	var jobs traces.Gather[traces.Job]
	for {
		if err := t.Next(); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		j := traces.Job{ID: string(t.Text(at[colID])), Model: models.Get(t.Text(at[colModel])), GPUMilli: 1000}
		gpus, err := t.Number(at[colGPUs], 0, 1, traces.MaxGPUs, "a whole number of GPUs, 1 or more")
		if err != nil {
			return nil, err
		}
		j.GPUs = int(gpus)
		if j.Submit, err = t.Seconds(at[colSubmit]); err != nil {
			return nil, err
		}
		if j.Iterations, err = t.Number(at[colIterations], 0, 0, math.MaxInt64, "a whole number, 0 or more"); err != nil {
			return nil, err
		}
		if j.Work, err = t.Seconds(at[colDuration]); err != nil {
			return nil, err
		}
		if j.Work == 0 {
			d.skips.Add(NoRunTime)
			continue
		}
		jobs.Add(&j)
	}
	d.jobs = jobs.Take()
	d.moved = traces.SortStable(d.jobs)
	d.stream.Jobs = d.jobs
	return d, nil
}

// Next implements traces.Stream.
func (d *Reader) Next(j *traces.Job) error { return d.stream.Next(j) }

// Skipped returns how many rows were left out, by reason.
func (d *Reader) Skipped() []traces.Skip { return d.skips.All() }

// Moved returns how many jobs came after a job with a later submit in the file.
func (d *Reader) Moved() int { return d.moved }
