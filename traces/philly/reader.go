package philly

import (
	"io"
	"strconv"
	"time"

	"clustergym/traces"
)

const (
	colTime = iota
	colDuration
	colGPUs
	colVC
	required // the columns before it are required
)

var names = []string{"timestamp", "duration", "num_gpus", "cluster",
	"gpu_time"}

// Reader is a traces.Stream over the table, in order of submit. The file is not in order, so the reader holds all of it
// in memory. Not safe for concurrent use.
type Reader struct {
	jobs     []traces.Job
	stream   traces.Slice
	origin   time.Time
	moved    int
	repeated int
}

var _ traces.Stream = (*Reader)(nil)

// NewReader reads r to its end and sorts the jobs by submit; jobs with equal submits keep the order of the file. file
// is the name used in messages. A fault in a row is a *traces.RowError.
func NewReader(r io.Reader, file string) (*Reader, error) {
	t, err := traces.NewTable(r, file, names[:required]...)
	if err != nil {
		return nil, err
	}
	d, p := &Reader{}, &parser{Table: t, at: t.At(names[:required]...)}
	var jobs traces.Gather[traces.Job]
	for {
		var j traces.Job
		if err := p.row(&j); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		j.ID = strconv.Itoa(jobs.Len())
		jobs.Add(&j)
	}
	d.jobs = jobs.Take()
	d.moved = traces.SortStable(d.jobs)
	d.repeated = repeated(d.jobs)
	if len(d.jobs) > 0 {
		first := d.jobs[0].Submit
		d.origin = time.Unix(int64(first/time.Second), 0).UTC()
		for i := range d.jobs {
			d.jobs[i].Submit -= first
		}
	}
	d.stream.Jobs = d.jobs
	return d, nil
}

// repeated counts the jobs that equal an earlier one. Equal jobs have equal submits, so only jobs of the same second
// lie between them.
func repeated(jobs []traces.Job) (n int) {
	type row struct {
		work time.Duration
		gpus int
		vc   string
	}
	seen := map[row]bool{}
	for i := 0; i < len(jobs); {
		end := i + 1
		for end < len(jobs) && jobs[end].Submit == jobs[i].Submit {
			end++
		}
		if end-i > 1 {
			clear(seen)
			for _, j := range jobs[i:end] {
				k := row{j.Work, j.GPUs, j.VC}
				if seen[k] {
					n++
				}
				seen[k] = true
			}
		}
		i = end
	}
	return n
}

// Next implements traces.Stream.
func (d *Reader) Next(j *traces.Job) error { return d.stream.Next(j) }

// Jobs returns all jobs of the table in order of submit, independent of Next. The caller must not change them.
func (d *Reader) Jobs() []traces.Job { return d.jobs }

// Origin returns the first job's timestamp as written, which gives weekdays and hours of the day. Its location is UTC,
// although the cluster's clock was not. It is the zero time for a table without jobs.
func (d *Reader) Origin() time.Time { return d.origin }

// Moved returns how many rows came after a row with a later submit.
func (d *Reader) Moved() int { return d.moved }

// Repeated returns how many rows equal an earlier row in every column. They are kept, because two jobs submitted in the
// same second look the same.
func (d *Reader) Repeated() int { return d.repeated }

type parser struct {
	*traces.Table
	at   []int // index of the column of each required name
	text traces.Names
}

// row reads the next row; Submit is the clock time as written, since 1970.
func (p *parser) row(j *traces.Job) (err error) {
	if err = p.Next(); err != nil {
		return err
	}
	at, ok := clock(p.Text(p.at[colTime]))
	if !ok {
		return p.Fault(p.at[colTime], "a time from 1970 to 2199 such as 2017-10-09 07:01:55")
	}
	j.Submit = at
	if j.Work, err = p.Seconds(p.at[colDuration]); err != nil {
		return err
	}
	gpus, err := p.Number(p.at[colGPUs], 0, 1, traces.MaxGPUs, "a whole number of GPUs, 1 or more")
	if err != nil {
		return err
	}
	j.GPUs, j.GPUMilli = int(gpus), 1000
	j.VC = p.text.Get(p.Text(p.at[colVC]))
	return nil
}

// clock reads "2006-01-02 15:04:05" as the time since 1970.
func clock(b []byte) (time.Duration, bool) {
	if len(b) != 19 || b[10] != ' ' {
		return 0, false
	}
	at, zoned, ok := traces.ParseDate(b)
	return at, ok && !zoned
}
