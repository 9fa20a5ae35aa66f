package pai

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"time"

	"clustergym/traces"
)

// required are the columns that every file has. Every other column with a name is a GPU type.
var required = []string{"job_name", "norm_job_submit_time", "ddl"}

// reference is the default for Options.Reference.
const reference = "A100"

// Options changes how a file is read. The zero value is right for the published ones.
type Options struct {
	Reference string // the GPU type whose run time is Job.Work; "" = A100, or the first type of the file if it has no A100
}

// Reader is a traces.Stream over the workload, in order of submit. Not safe for concurrent use.
type Reader struct {
	jobs   []traces.Job
	stream traces.Slice
	types  []string
	ref    string
	moved  int
}

var _ traces.Stream = (*Reader)(nil)

// Sniff reports whether head, the first bytes of an unpacked file, is the beginning of such a workload.
func Sniff(head []byte) bool {
	t, err := traces.NewTable(bytes.NewReader(head), "", required...)
	return err == nil && len(typeColumns(t.Columns())) > 0
}

// typeColumns returns the indices of the columns that are GPU types, in the order of the file.
func typeColumns(header []string) (at []int) {
	for i, name := range header {
		if name != "" && !slices.Contains(required, name) {
			at = append(at, i)
		}
	}
	return at
}

// NewReader reads r to its end and sorts the jobs by submit; jobs with equal submits keep the order of the file. file
// is the name used in messages. A fault in a row is a *traces.RowError.
func NewReader(r io.Reader, file string, o Options) (*Reader, error) {
	t, err := traces.NewTable(r, file, required...)
	if err != nil {
		return nil, err
	}
	types := typeColumns(t.Columns())
	if len(types) == 0 {
		return nil, t.FaultIn("", strings.Join(t.Columns(), ","), "a header with also a column of run times for each GPU type")
	}
	d := &Reader{}
	for _, c := range types {
		d.types = append(d.types, t.Columns()[c])
	}
	ref := slices.Index(d.types, o.Reference)
	if o.Reference == "" {
		ref = max(0, slices.Index(d.types, reference))
	} else if ref < 0 {
		return nil, t.FaultIn(o.Reference, strings.Join(d.types, ","), "a column of run times on the reference type "+o.Reference)
	}
	d.ref = d.types[ref]
	id, submit, deadline := t.Column(required[0]), t.Column(required[1]), t.Column(required[2])
	var jobs traces.Gather[traces.Job]
	for {
		if err := t.Next(); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		j := traces.Job{ID: string(t.Text(id)), GPUs: 1, GPUMilli: 1000}
		if j.Submit, err = t.Seconds(submit); err != nil {
			return nil, err
		}
		if b := t.Text(deadline); !strings.EqualFold(string(b), "inf") {
			if j.Deadline, err = t.Seconds(deadline); err != nil || j.Deadline == 0 {
				return nil, t.Fault(deadline, "seconds above 0 and below 292 years, or inf where there is none")
			}
		}
		run := make([]time.Duration, len(types))
		for i, c := range types {
			if run[i], err = t.Seconds(c); err != nil || run[i] == 0 {
				return nil, t.Fault(c, "a run time in seconds, above 0 and below 292 years")
			}
		}
		j.Work = run[ref]
		speeds := make(map[string]float64, len(types))
		for i, name := range d.types {
			speeds[name] = float64(j.Work) / float64(run[i])
		}
		j.Profile = &traces.Profile{Speeds: speeds}
		jobs.Add(&j)
	}
	d.jobs = jobs.Take()
	d.moved = traces.SortStable(d.jobs)
	d.stream.Jobs = d.jobs
	return d, nil
}

// Next implements traces.Stream.
func (d *Reader) Next(j *traces.Job) error { return d.stream.Next(j) }

// Types returns the GPU types of the file, in its order. The caller must not change them.
func (d *Reader) Types() []string { return d.types }

// Reference returns the type whose run time is Job.Work.
func (d *Reader) Reference() string { return d.ref }

// Skipped returns nil: every row is a job.
func (d *Reader) Skipped() []traces.Skip { return nil }

// Moved returns how many jobs came after a job with a later submit in the file.
func (d *Reader) Moved() int { return d.moved }
