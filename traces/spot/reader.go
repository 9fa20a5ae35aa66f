package spot

import (
	"fmt"
	"io"
	"math"

	"clustergym/traces"
)

const (
	colID = iota
	colOrganization
	colModel
	colGPUs
	colWorkers
	colSubmit
	colDuration
	colType
	colCPU // the first optional column
)

var names = []string{"job_name", "organization", "gpu_model", "gpu_request", "worker_num", "submit_time", "duration", "job_type", "cpu_request"}

// NoWorkers is the reason for which rows are left out.
const NoWorkers = "no workers: worker_num is 0 or not given"

// Reader is a traces.Stream over the jobs, in order of submit. Not safe for concurrent use.
type Reader struct {
	jobs   []traces.Job
	stream traces.Slice
	moved  int
	skips  traces.Skips
}

var _ traces.Stream = (*Reader)(nil)

// Sniff reports whether head, the first bytes of an unpacked file, is the beginning of such a file.
func Sniff(head []byte) bool { return traces.HasColumns(head, names[:colCPU]...) }

// NewReader reads r to its end and sorts the jobs by submit; jobs with equal submits keep the order of the file. file is the
// name used in messages. A fault in a row is a *traces.RowError.
func NewReader(r io.Reader, file string) (*Reader, error) {
	t, err := traces.NewTable(r, file, names[:colCPU]...)
	if err != nil {
		return nil, err
	}
	d, p := &Reader{}, &parser{Table: t, at: t.At(names...), types: map[string][]string{}}
	var jobs traces.Gather[traces.Job]
	for {
		if err := t.Next(); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		var j traces.Job
		workers, err := p.job(&j)
		switch {
		case err != nil:
			return nil, err
		case workers == 0:
			d.skips.Add(NoWorkers)
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

// Named reports that jobs have no names, but a group: HP or Spot.
func (d *Reader) Named() (name, group bool) { return false, true }

// Skipped returns how many rows were left out, by reason.
func (d *Reader) Skipped() []traces.Skip { return d.skips.All() }

// Moved returns how many jobs came after a job with a later submit in the file.
func (d *Reader) Moved() int { return d.moved }

type parser struct {
	*traces.Table
	at    []int
	text  traces.Names
	types map[string][]string
	ids   traces.IDs
}

// mostCPU bounds the cores of one worker, so that those of a gang fit an int64.
const mostCPU = 1 << 20

// job reads the row; workers is 0 if it is to be left out.
func (p *parser) job(j *traces.Job) (workers int64, err error) {
	id := p.Text(p.at[colID])
	if traces.NoName(id) {
		return 0, p.Fault(p.at[colID], "the job's name")
	}
	if !p.ids.Add(id) {
		return 0, p.Fault(p.at[colID], "a name of its own (an earlier row has this one)")
	}
	*j = traces.Job{ID: string(id), GPUMilli: 1000}
	if b := p.Text(p.at[colOrganization]); !traces.NoName(b) {
		j.VC = p.text.Get(b)
	}
	if j.Submit, err = p.Seconds(p.at[colSubmit]); err != nil {
		return 0, err
	}
	if j.Work, err = p.Seconds(p.at[colDuration]); err != nil {
		return 0, err
	}
	switch class := string(p.Text(p.at[colType])); class {
	case "HP":
		j.Group, j.Priority = "HP", 1
	case "Spot":
		j.Group = "Spot"
	default:
		return 0, p.Fault(p.at[colType], "HP or Spot")
	}
	j.GPUTypes = p.gpuTypes()
	if traces.NotGiven(p.Text(p.at[colWorkers])) {
		return 0, nil
	}
	if workers, err = p.Number(p.at[colWorkers], 0, 0, traces.MaxGPUs, "a whole number of workers"); err != nil || workers == 0 {
		return 0, err
	}
	return workers, p.demand(j, workers)
}

func (p *parser) demand(j *traces.Job, workers int64) error {
	v, exact, err := p.Decimal(p.at[colGPUs], 3)
	switch {
	case err != nil || !exact || v < 0 || v > traces.MaxGPUs*1000 || v > 1000 && v%1000 != 0:
		return p.Fault(p.at[colGPUs], "GPUs of one worker: a whole number, or a share of one GPU in thousandths")
	case v == 0: // cores alone
	case v < 1000:
		j.GPUs, j.GPUMilli = int(workers), int(v)
	case v/1000 > traces.MaxGPUs/workers:
		return p.Fault(p.at[colWorkers], fmt.Sprintf("at most %d GPUs in all", traces.MaxGPUs))
	default:
		j.GPUs = int(v / 1000 * workers)
	}
	if c := p.at[colCPU]; p.Given(c) && !traces.NotGiven(p.Text(c)) {
		milli, err := p.Number(c, 3, 0, mostCPU*1000, fmt.Sprintf("cores of one worker, 0 to %d", mostCPU))
		if err != nil {
			return err
		}
		if milli > math.MaxInt64/workers {
			return p.Fault(c, "fewer cores: those of all workers are beyond 63 bits")
		}
		j.CPUMilli = milli * workers
	}
	return nil
}

// gpuTypes returns one slice for each distinct cell. Jobs share it, so it must not be changed.
func (p *parser) gpuTypes() []string {
	b := p.Text(p.at[colModel])
	if traces.NotGiven(b) {
		return nil
	}
	t, ok := p.types[string(b)]
	if !ok {
		t = []string{string(b)}
		p.types[t[0]] = t
	}
	return t
}
