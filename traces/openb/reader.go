package openb

import (
	"io"
	"slices"
	"strings"
	"time"

	"clustergym/traces"
)

var (
	required = []string{"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"}
	times    = []string{"creation_time", "scheduled_time", "deletion_time"}
	optional = append([]string{"gpu_spec", "qos", "pod_phase"}, times...)
)

// The reasons for which rows are left out.
const (
	NeverPlaced = "never placed: scheduled_time is empty"
	NoRunTime   = "no run time: deletion_time is scheduled_time"
	NoGPU       = "asks for no GPU"
)

// Options changes how a list is read. The zero value is right for the list with times.
type Options struct {
	OnlyGPU bool          // leave out the pods that ask for no GPU
	Static  bool          // ignore the times: all pods, also those never placed, are submitted at 0 and run for Work
	Work    time.Duration // run time of every pod where times are missing or ignored; 0 = one hour
}

// Reader is a traces.Stream over a pod list, in order of submit. Not safe for concurrent use.
type Reader struct {
	jobs     []traces.Job
	stream   traces.Slice
	skips    traces.Skips
	moved    int
	timeless bool
}

var _ traces.Stream = (*Reader)(nil)

// Sniff reports whether head, the first bytes of an unpacked file, is the beginning of a pod list.
func Sniff(head []byte) bool { return traces.HasHeader(head, required, optional) }

// NewReader reads r to its end and sorts the jobs by submit; jobs with equal submits keep the order of the file. file
// is the name used in messages. A fault in a row is a *traces.RowError.
func NewReader(r io.Reader, file string, o Options) (*Reader, error) {
	t, err := traces.NewTable(r, file, required...)
	if err != nil {
		return nil, err
	}
	p := &parser{Table: t, need: t.At(required...), specs: map[string][]string{}}
	p.spec, p.qos, p.phase = t.Column("gpu_spec"), t.Column("qos"), t.Column("pod_phase")
	p.created, p.scheduled, p.deleted = t.Column(times[0]), t.Column(times[1]), t.Column(times[2])
	d := &Reader{timeless: o.Static}
	switch n := min(p.created, 0) + min(p.scheduled, 0) + min(p.deleted, 0); {
	case n == -3:
		d.timeless = true
	case n < 0:
		return nil, t.FaultIn("", strings.Join(t.Columns(), ","), "all of "+strings.Join(times, ", ")+" in the header, or none")
	}
	work := o.Work
	if work <= 0 {
		work = time.Hour
	}
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
		skip := ""
		if d.timeless {
			j.Work = work
		} else if skip, err = p.times(&j); err != nil {
			return nil, err
		}
		if o.OnlyGPU && j.GPUs == 0 {
			skip = NoGPU
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

// Skipped returns how many rows were left out, by reason.
func (d *Reader) Skipped() []traces.Skip { return d.skips.All() }

// Moved returns how many jobs came after a job with a later submit in the file.
func (d *Reader) Moved() int { return d.moved }

// Timeless reports that the list has no times or that they were ignored, so submits and run times are made up.
func (d *Reader) Timeless() bool { return d.timeless }

type parser struct {
	*traces.Table
	need                        []int // index of the column of each name in required
	spec, qos, phase            int   // index of the column; -1 = absent; likewise the next three
	created, scheduled, deleted int
	specs                       map[string][]string
}

// maxMem bounds the memory of a pod in MiB, so that its bytes fit an int64.
const maxMem = 1 << 42

func (p *parser) demand(j *traces.Job) error {
	j.ID = string(p.Text(p.need[0]))
	var err error
	if j.CPUMilli, err = p.Number(p.need[1], 0, 0, 1<<42, "thousandths of a core, a whole number of 0 or more"); err != nil {
		return err
	}
	mib, err := p.Number(p.need[2], 0, 0, maxMem, "MiB, a whole number of 0 or more")
	if err != nil {
		return err
	}
	j.MemBytes = mib << 20
	gpus, err := p.Number(p.need[3], 0, 0, traces.MaxGPUs, "a whole number of GPUs, 0 or more")
	if err != nil {
		return err
	}
	milli, err := p.Number(p.need[4], 0, 0, 1000, "thousandths of a GPU, a whole number of 0 to 1000")
	if err != nil {
		return err
	}
	if gpus > 0 && milli == 0 {
		return p.Fault(p.need[4], "1 to 1000 thousandths of a GPU, because num_gpu is not 0")
	}
	j.GPUs, j.GPUMilli = int(gpus), int(milli)
	if gpus == 0 {
		j.GPUMilli = 1000
	}
	if j.GPUTypes, err = p.types(); err != nil {
		return err
	}
	switch string(p.Text(p.qos)) {
	case "LS":
		j.Priority = 3
	case "Guaranteed":
		j.Priority = 2
	case "Burstable":
		j.Priority = 1
	case "BE", "":
	default:
		return p.Fault(p.qos, "LS, Guaranteed, Burstable or BE")
	}
	j.Status = traces.ParseStatus(string(p.Text(p.phase)))
	return nil
}

// types returns one slice for each distinct cell. Jobs share it, so it must not be changed.
func (p *parser) types() ([]string, error) {
	b := p.Text(p.spec)
	if len(b) == 0 {
		return nil, nil
	}
	if t, ok := p.specs[string(b)]; ok {
		return t, nil
	}
	var types []string
	for _, s := range strings.Split(string(b), "|") {
		if s == "" {
			return nil, p.Fault(p.spec, "names joined by |, none of them empty")
		}
		if !slices.Contains(types, s) { // some cells name a type twice
			types = append(types, s)
		}
	}
	p.specs[string(b)] = types
	return types, nil
}

// times reads submit and run time. skip gives the reason if the row must be left out, else it is "".
func (p *parser) times(j *traces.Job) (skip string, err error) {
	if j.Submit, err = p.Seconds(p.created); err != nil {
		return "", err
	}
	if !p.Given(p.scheduled) {
		return NeverPlaced, nil
	}
	from, err := p.Seconds(p.scheduled)
	if err != nil {
		return "", err
	}
	to, err := p.Seconds(p.deleted)
	if err != nil {
		return "", err
	}
	if to < from {
		return "", p.Fault(p.deleted, "scheduled_time or later, "+string(p.Text(p.scheduled)))
	}
	if j.Work = to - from; j.Work == 0 {
		return NoRunTime, nil
	}
	return "", nil
}
