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
	names = []string{"instance_sn", "role", "app_name", "cpu_request", "gpu_request", "memory_request",
		"creation_time", "scheduled_time", "deletion_time"}
	optional = []string{"cpu_limit", "gpu_limit", "memory_limit", "rdma_request", "rdma_limit", "disk_request",
		"disk_limit", "max_instance_per_node"}
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
type Reader struct{ traces.Sorted }

// Sniff reports whether head, the first bytes of an unpacked file, is the beginning of this trace.
func Sniff(head []byte) bool { return traces.HasHeader(head, names, optional) }

// NewReader reads r to its end and sorts the jobs by submit; jobs with equal submits keep the order of the file. file
// is the name used in messages. A fault in a row is a *traces.RowError.
func NewReader(r io.Reader, file string, o Options) (*Reader, error) {
	c, err := traces.OpenCells(r, file, names, len(names))
	if err != nil {
		return nil, err
	}
	d, p := &Reader{}, parser{c}
	return d, d.Read(c, func(j *traces.Job) (skip string) {
		p.demand(j)
		return p.times(j, o.Window)
	})
}

// Named reports that jobs can have a name and have no group.
func (*Reader) Named() (name, group bool) { return true, false }

type parser struct{ *traces.Cells }

func (p parser) demand(j *traces.Job) {
	j.ID, j.VC, j.Model = string(p.Text(colID)), p.Name(colRole), p.Name(colApp)
	j.Name = j.Model
	j.CPUMilli = p.Number(colCPU, 3, 0, 1<<42, "vCPU, 0 or more")
	j.GPUs, j.GPUMilli = p.GPUs(colGPU, 0)
	const unit, most = 1_000_000_000, 1 << 32
	gib := p.Number(colMem, 9, 0, most*unit, "GiB, 0 or more")
	hi, lo := bits.Mul64(uint64(gib), 1<<30)
	q, _ := bits.Div64(hi, lo, unit) // at most 2^62
	j.MemBytes = int64(q)
}

// times reads submit and run time; window is Options.Window. skip gives the reason if the row must be left out, else it
// is "".
func (p parser) times(j *traces.Job, window time.Duration) (skip string) {
	before, after := !p.Given(colScheduled), !p.Given(colDeleted)
	if p.Given(colCreated) {
		if j.Submit = p.Seconds(colCreated); before {
			p.Fail(colScheduled, "seconds, because creation_time is given")
		}
	}
	from, to := time.Duration(0), window
	if !before {
		from = p.Seconds(colScheduled)
	}
	switch {
	case !after:
		if to = p.Seconds(colDeleted); to < from {
			p.Fail(colDeleted, "scheduled_time or later, "+string(p.Text(colScheduled)))
		}
	case window > 0 && from > window:
		p.Fail(colScheduled, fmt.Sprintf("at most the length of the trace, %v, as deletion_time is not given", window))
	}
	if window <= 0 {
		switch {
		case before && after:
			return Throughout
		case before:
			return Before
		case after:
			return After
		}
	}
	if j.Work = to - from; j.Work == 0 {
		return NoRunTime
	}
	return ""
}
