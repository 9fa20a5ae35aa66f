package dlrm

import (
	"fmt"
	"io"
	"math/bits"
	"time"

	"clustergym/traces"
)

const (
	colID = iota
	colRole
	colApp
	colCPU
	colGPU
	colMem
	colCreated
	colScheduled
	colDeleted
)

var (
	required = []string{"instance_sn", "role", "app_name", "cpu_request", "gpu_request", "memory_request", "creation_time", "scheduled_time", "deletion_time"}
	optional = []string{"cpu_limit", "gpu_limit", "memory_limit", "rdma_request", "rdma_limit", "disk_request", "disk_limit", "max_instance_per_node"}
)

// The reasons for which rows are left out.
const (
	Throughout = "run time not known: existed before the trace and after it (no times)"
	Before     = "run time not known: existed before the trace (scheduled_time is empty)"
	After      = "run time not known: outlived the trace (deletion_time is empty)"
	NoRunTime  = "no run time: deletion_time is scheduled_time"
)

// Window is the length of the published trace, for Options.
const Window = 31 * 24 * time.Hour

// Options changes how a file is read. The zero value gives the instances whose start and end were recorded.
type Options struct {
	// Window, if above 0, is the length of the trace and keeps the instances that reach beyond it: one without creation
	// and scheduling starts at 0, one without deletion ends at Window.
	Window time.Duration
}

// Reader is a traces.Stream over the trace, in order of submit. Not safe for concurrent use.
type Reader struct {
	jobs   []traces.Job
	stream traces.Slice
	skips  traces.Skips
	moved  int
}

var _ traces.Stream = (*Reader)(nil)

// Sniff reports whether head, the first bytes of an unpacked file, is the beginning of this trace.
func Sniff(head []byte) bool { return traces.HasHeader(head, required, optional) }

// NewReader reads r to its end and sorts the jobs by submit; jobs with equal submits keep the order of the file. file
// is the name used in messages. A fault in a row is a *traces.RowError.
func NewReader(r io.Reader, file string, o Options) (*Reader, error) {
	t, err := traces.NewTable(r, file, required...)
	if err != nil {
		return nil, err
	}
	p := &parser{Table: t, at: t.At(required...), window: o.Window}
	d := &Reader{}
	var jobs traces.Gather[traces.Job]
	for {
		if err := t.Next(); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		var j traces.Job
		if err := p.demand(&j); err != nil {
			return nil, err
		}
		skip, err := p.times(&j)
		if err != nil {
			return nil, err
		}
		if skip != "" {
			d.skips.Add(skip)
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

// Named reports that jobs can have a name and have no group.
func (*Reader) Named() (name, group bool) { return true, false }

// Skipped returns how many rows were left out, by reason.
func (d *Reader) Skipped() []traces.Skip { return d.skips.All() }

// Moved returns how many jobs came after a job with a later submit in the file.
func (d *Reader) Moved() int { return d.moved }

type parser struct {
	*traces.Table
	at     []int // index of the column of each name in required
	window time.Duration
	text   traces.Names
}

func (p *parser) demand(j *traces.Job) error {
	j.ID, j.VC, j.Model = string(p.Text(p.at[colID])), p.text.Get(p.Text(p.at[colRole])), p.text.Get(p.Text(p.at[colApp]))
	j.Name = j.Model
	var err error
	if j.CPUMilli, err = p.Number(p.at[colCPU], 3, 0, 1<<42, "vCPU, 0 or more"); err != nil {
		return err
	}
	gpus, err := p.Number(p.at[colGPU], 0, 0, traces.MaxGPUs, "a whole number of GPUs, 0 or more")
	if err != nil {
		return err
	}
	j.GPUs, j.GPUMilli = int(gpus), 1000
	const unit, most = 1_000_000_000, 1 << 32
	gib, err := p.Number(p.at[colMem], 9, 0, most*unit, "GiB, 0 or more")
	if err != nil {
		return err
	}
	hi, lo := bits.Mul64(uint64(gib), 1<<30)
	q, _ := bits.Div64(hi, lo, unit) // at most 2^62
	j.MemBytes = int64(q)
	return nil
}

// times reads submit and run time. skip gives the reason if the row must be left out, else it is "".
func (p *parser) times(j *traces.Job) (skip string, err error) {
	created, scheduled, deleted := p.at[colCreated], p.at[colScheduled], p.at[colDeleted]
	var from time.Duration
	before := !p.Given(scheduled)
	if p.Given(created) {
		if j.Submit, err = p.Seconds(created); err != nil {
			return "", err
		}
		if before {
			return "", p.Fault(scheduled, "seconds, because creation_time is given")
		}
	}
	if !before {
		if from, err = p.Seconds(scheduled); err != nil {
			return "", err
		}
	}
	after := !p.Given(deleted)
	to := p.window
	switch {
	case !after:
		if to, err = p.Seconds(deleted); err != nil {
			return "", err
		}
		if to < from {
			return "", p.Fault(deleted, "scheduled_time or later, "+string(p.Text(scheduled)))
		}
	case p.window > 0 && from > p.window:
		return "", p.Fault(scheduled, fmt.Sprintf("at most the length of the trace, %v, as deletion_time is not given", p.window))
	}
	if p.window <= 0 {
		switch {
		case before && after:
			return Throughout, nil
		case before:
			return Before, nil
		case after:
			return After, nil
		}
	}
	if j.Work = to - from; j.Work == 0 {
		return NoRunTime, nil
	}
	return "", nil
}
