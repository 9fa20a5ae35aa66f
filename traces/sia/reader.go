package sia

import (
	"cmp"
	"io"
	"math"
	"slices"
	"time"

	"clustergym/traces"
)

const (
	colName = iota
	colTime
	colApplication
	colReplicas
	colBatch
	colCategory
	required = colCategory // the columns before it are required
)

var names = []string{"name", "time", "application", "num_replicas", "batch_size", "category"}

// Reader is a traces.Stream over a workload, in order of submit. A file may be out of order, so the reader holds all of
// it in memory. Not safe for concurrent use.
type Reader struct {
	rows  []row
	next  int
	moved int
}

type row struct {
	job      traces.Job
	category string
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

// Category returns what a scheduler may change about the job that Next returned last: adaptive, scale-gpus or rigid. It
// is "" if the file does not say, and before the first call.
func (d *Reader) Category() string {
	if d.next == 0 {
		return ""
	}
	return d.rows[d.next-1].category
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
	j.ID = string(p.Text(p.at[colName]))
	if j.Submit, err = p.Seconds(p.at[colTime]); err != nil {
		return err
	}
	application := p.Text(p.at[colApplication])
	if len(application) == 0 {
		return p.Fault(p.at[colApplication], "the name of an application: run times follow from it")
	}
	j.Model = p.text.Get(application)
	gpus, err := p.Whole(p.at[colReplicas], 1, traces.MaxGPUs)
	if err != nil {
		return err
	}
	j.GPUs, j.GPUMilli = int(gpus), 1000
	batch, err := p.Whole(p.at[colBatch], 1, math.MaxInt)
	if err != nil {
		return err
	}
	j.Batch = int(batch) // of all GPUs together
	switch w.category = p.text.Get(p.Text(p.at[colCategory])); w.category {
	case "", "adaptive", "scale-gpus", "rigid":
		return nil
	}
	return p.Fault(p.at[colCategory], "adaptive, scale-gpus or rigid, or nothing")
}
