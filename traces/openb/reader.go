package openb

import (
	"io"
	"slices"
	"strings"
	"time"

	"clustergym/traces"
)

const (
	colName = iota
	colCPU
	colMem
	colGPUs
	colMilli
	required // the columns before it are required
	colSpec  = iota - 1
	colQoS
	colPhase
	colCreated // a list has this and the next two, or none of them
	colScheduled
	colDeleted
)

var names = []string{"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos", "pod_phase",
	"creation_time", "scheduled_time", "deletion_time"}

// The reasons for which rows are left out.
const (
	NeverPlaced = "never placed: scheduled_time is empty"
	NoRunTime   = "no run time: deletion_time is scheduled_time"
)

// Options changes how a list is read. The zero value is right for the list with times.
type Options struct {
	Static bool // ignore the times: all pods, also those never placed, are submitted at 0 and run for an hour
}

// Reader is a traces.Stream over a pod list, in order of submit. Not safe for concurrent use.
type Reader struct {
	traces.Sorted
	timeless bool
}

// Sniff reports whether head, the first bytes of an unpacked file, is the beginning of a pod list.
func Sniff(head []byte) bool { return traces.HasHeader(head, names[:required], names[required:]) }

// NewReader reads r to its end and sorts the jobs by submit; jobs with equal submits keep the order of the file. file
// is the name used in messages. A fault in a row is a *traces.RowError.
func NewReader(r io.Reader, file string, o Options) (*Reader, error) {
	t, err := traces.NewTable(r, file, names[:required]...)
	if err != nil {
		return nil, err
	}
	c := traces.NewCells(t, names)
	d, p := &Reader{timeless: o.Static}, &parser{Cells: c, specs: map[string][]string{}}
	switch times := []bool{c.Has(colCreated), c.Has(colScheduled), c.Has(colDeleted)}; {
	case !slices.Contains(times, true):
		d.timeless = true
	case slices.Contains(times, false):
		return nil, t.FaultIn("", strings.Join(t.Columns(), ","),
			"all of "+strings.Join(names[colCreated:], ", ")+" in the header, or none")
	}
	return d, d.Read(c, func(j *traces.Job) (skip string) {
		if p.demand(j); d.timeless {
			j.Work = time.Hour
			return ""
		}
		return p.times(j)
	})
}

// Timeless reports that the list has no times or that they were ignored, so submits and run times are made up.
func (d *Reader) Timeless() bool { return d.timeless }

type parser struct {
	*traces.Cells
	specs map[string][]string
}

// maxMem bounds the memory of a pod in MiB, so that its bytes fit an int64.
const maxMem = 1 << 42

// priorities are those of the classes of service.
var priorities = map[string]int{"LS": 3, "Guaranteed": 2, "Burstable": 1, "BE": 0, "": 0}

func (p *parser) demand(j *traces.Job) {
	j.ID = string(p.Text(colName))
	j.CPUMilli = p.Number(colCPU, 0, 0, 1<<42, "thousandths of a core, a whole number of 0 or more")
	j.MemBytes = p.Number(colMem, 0, 0, maxMem, "MiB, a whole number of 0 or more") << 20
	j.GPUs, j.GPUMilli = p.GPUs(colGPUs, 0)
	milli := p.Number(colMilli, 0, 0, 1000, "thousandths of a GPU, a whole number of 0 to 1000")
	if j.GPUs > 0 {
		if j.GPUMilli = int(milli); milli == 0 {
			p.Fail(colMilli, "1 to 1000 thousandths of a GPU, because num_gpu is not 0")
		}
	}
	j.GPUTypes = p.types()
	var ok bool
	if j.Priority, ok = priorities[string(p.Text(colQoS))]; !ok {
		p.Fail(colQoS, "LS, Guaranteed, Burstable or BE")
	}
	j.Status = traces.ParseStatus(string(p.Text(colPhase)))
}

// types returns one slice for each distinct cell. Jobs share it, so it must not be changed.
func (p *parser) types() []string {
	b := p.Text(colSpec)
	if len(b) == 0 {
		return nil
	}
	if t, ok := p.specs[string(b)]; ok {
		return t
	}
	var types []string
	for s := range strings.SplitSeq(string(b), "|") {
		if s == "" {
			p.Fail(colSpec, "names joined by |, none of them empty")
		}
		if !slices.Contains(types, s) { // some cells name a type twice
			types = append(types, s)
		}
	}
	p.specs[string(b)] = types
	return types
}

// times reads submit and run time. skip gives the reason if the row must be left out, else it is "".
func (p *parser) times(j *traces.Job) (skip string) {
	j.Submit = p.Seconds(colCreated)
	if !p.Given(colScheduled) {
		return NeverPlaced
	}
	from, to := p.Seconds(colScheduled), p.Seconds(colDeleted)
	if to < from {
		p.Fail(colDeleted, "scheduled_time or later, "+string(p.Text(colScheduled)))
	}
	if j.Work = to - from; j.Work == 0 {
		return NoRunTime
	}
	return ""
}
