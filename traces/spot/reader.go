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

var names = []string{"job_name", "organization", "gpu_model", "gpu_request", "worker_num", "submit_time", "duration",
	"job_type", "cpu_request"}

// NoWorkers is the reason for which rows are left out.
const NoWorkers = "no workers: worker_num is 0 or not given"

// Reader is a traces.Stream over the jobs, in order of submit. Not safe for concurrent use.
type Reader struct{ traces.Sorted }

// Sniff reports whether head, the first bytes of an unpacked file, is the beginning of such a file.
func Sniff(head []byte) bool { return traces.HasColumns(head, names[:colCPU]...) }

// NewReader reads r to its end and sorts the jobs by submit; jobs with equal submits keep the order of the file. file
// is the name used in messages. A fault in a row is a *traces.RowError.
func NewReader(r io.Reader, file string) (*Reader, error) {
	c, err := traces.OpenCells(r, file, names, colCPU)
	if err != nil {
		return nil, err
	}
	d, p := &Reader{}, &parser{Cells: c, types: map[string][]string{}}
	return d, d.Read(c, func(j *traces.Job) (skip string) {
		if p.job(j) == 0 {
			return NoWorkers
		}
		return ""
	})
}

// Named reports that jobs have no names, but a group: HP or Spot.
func (d *Reader) Named() (name, group bool) { return false, true }

type parser struct {
	*traces.Cells
	types map[string][]string
	ids   traces.IDs
}

// mostCPU bounds the cores of one worker, so that those of a gang fit an int64.
const mostCPU = 1 << 20

// job reads the row; workers is 0 if it is to be left out.
func (p *parser) job(j *traces.Job) (workers int64) {
	id := p.Text(colID)
	if traces.NoName(id) {
		p.Fail(colID, "the job's name")
	}
	if !p.ids.Add(id) {
		p.Fail(colID, "a name of its own (an earlier row has this one)")
	}
	j.ID, j.GPUMilli = string(id), 1000
	if !traces.NoName(p.Text(colOrganization)) {
		j.VC = p.Name(colOrganization)
	}
	j.Submit, j.Work = p.Seconds(colSubmit), p.Seconds(colDuration)
	switch j.Group = p.Name(colType); j.Group {
	case "HP":
		j.Priority = 1
	case "Spot":
	default:
		p.Fail(colType, "HP or Spot")
	}
	j.GPUTypes = p.gpuTypes()
	if p.Stated(colWorkers) {
		workers = p.Number(colWorkers, 0, 0, traces.MaxGPUs, "a whole number of workers")
	}
	if workers > 0 {
		p.demand(j, workers)
	}
	return workers
}

func (p *parser) demand(j *traces.Job, workers int64) {
	v, exact, ok := p.Decimal(colGPUs, 3)
	switch {
	case !ok || !exact || v < 0 || v > traces.MaxGPUs*1000 || v > 1000 && v%1000 != 0:
		p.Fail(colGPUs, "GPUs of one worker: a whole number, or a share of one GPU in thousandths")
	case v == 0: // cores alone
	case v < 1000:
		j.GPUs, j.GPUMilli = int(workers), int(v)
	case v/1000 > traces.MaxGPUs/workers:
		p.Fail(colWorkers, fmt.Sprintf("at most %d GPUs in all", traces.MaxGPUs))
	default:
		j.GPUs = int(v / 1000 * workers)
	}
	if p.Stated(colCPU) {
		milli := p.Number(colCPU, 3, 0, mostCPU*1000, fmt.Sprintf("cores of one worker, 0 to %d", mostCPU))
		if milli > math.MaxInt64/workers {
			p.Fail(colCPU, "fewer cores: those of all workers are beyond 63 bits")
		}
		j.CPUMilli = milli * workers
	}
}

// gpuTypes returns one slice for each distinct cell. Jobs share it, so it must not be changed.
func (p *parser) gpuTypes() []string {
	if !p.Stated(colModel) {
		return nil
	}
	b := p.Text(colModel)
	t, ok := p.types[string(b)]
	if !ok {
		t = []string{string(b)}
		p.types[t[0]] = t
	}
	return t
}
