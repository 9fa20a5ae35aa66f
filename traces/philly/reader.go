package philly

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"time"

	"clustergym/traces"
)

const (
	colTime = iota
	colDuration
	colGPUs
	colArea
	colVC
	columns
)

var names = [columns]string{"timestamp", "duration", "num_gpus", "gpu_time", "cluster"}

// Reader is a traces.Stream over the table, in order of submit. The file is not in order, so all of it is in
// memory. Not safe for concurrent use.
type Reader struct {
	jobs     []traces.Job
	stream   traces.Slice
	origin   time.Time
	moved    int
	repeated int
}

var _ traces.Stream = (*Reader)(nil)

// NewReader reads r to its end and puts the jobs in order of submit; jobs of equal submit keep the order of the
// file. file is the name that messages give. A fault in a row is a *traces.RowError.
func NewReader(r io.Reader, file string) (*Reader, error) {
	p := &parser{lines: traces.NewLines(r, file)}
	if err := p.header(file); err != nil {
		return nil, err
	}
	d := &Reader{}
	for {
		var j traces.Job
		if err := p.row(&j); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		j.ID = strconv.Itoa(len(d.jobs))
		d.jobs = append(d.jobs, j)
	}
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

// repeated counts the jobs that equal an earlier one; equal jobs have equal submits, so they are neighbours but
// for others of the same second.
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

// Jobs are all jobs of the table in order of submit, whatever Next has given. The caller must not change them.
func (d *Reader) Jobs() []traces.Job { return d.jobs }

// Origin is the first job's timestamp as written, in the form of UTC though the cluster's clock was another: it
// tells weekdays and hours of the day. It is the zero time for a table without jobs.
func (d *Reader) Origin() time.Time { return d.origin }

// Moved is how many rows stood after a row of later submit.
func (d *Reader) Moved() int { return d.moved }

// Repeated is how many rows equal an earlier row in every column. They are kept: jobs sent twice in one second
// look the same.
func (d *Reader) Repeated() int { return d.repeated }

type parser struct {
	lines *traces.Lines
	at    [columns]int
	width int
	f     [][]byte
	text  traces.Names
}

func (p *parser) header(file string) error {
	want := "a header with " + strings.Join(names[:], ",")
	line, err := p.lines.Next()
	if err == io.EOF {
		return &traces.RowError{File: file, Line: 1, Want: want}
	} else if err != nil {
		return err
	}
	for c := range p.at {
		p.at[c] = -1
	}
	p.split(line)
	p.width = len(p.f)
	for i, f := range p.f {
		for c := range names {
			if string(bytes.TrimSpace(f)) == names[c] {
				if p.at[c] >= 0 {
					return p.lines.Fault(names[c], names[c], "each column once in the header")
				}
				p.at[c] = i
			}
		}
	}
	for c, i := range p.at {
		if i < 0 && c != colArea {
			return p.lines.Fault("", string(line), want)
		}
	}
	return nil
}

func (p *parser) split(line []byte) {
	p.f = p.f[:0]
	for {
		i := bytes.IndexByte(line, ',')
		if i < 0 {
			break
		}
		p.f = append(p.f, line[:i])
		line = line[i+1:]
	}
	p.f = append(p.f, line)
}

// row reads the next row; Submit is on the clock as written, since 1970.
func (p *parser) row(j *traces.Job) error {
	var line []byte
	for len(line) == 0 {
		var err error
		if line, err = p.lines.Next(); err != nil {
			return err
		}
	}
	if p.split(line); len(p.f) != p.width {
		return p.lines.Fault("", strconv.Itoa(len(p.f))+" fields", strconv.Itoa(p.width)+", as in the header")
	}
	at, ok := clock(p.f[p.at[colTime]])
	if !ok {
		return p.fault(colTime, "a time from 1970 to 2199 such as 2017-10-09 07:01:55")
	}
	work, _, err := traces.Decimal(string(p.f[p.at[colDuration]]), 9)
	if err != nil || work < 0 {
		return p.fault(colDuration, "seconds, 0 or more and below 292 years")
	}
	gpus, exact, err := traces.Decimal(string(p.f[p.at[colGPUs]]), 0)
	if err != nil || !exact || gpus < 1 || gpus > 1<<30 {
		return p.fault(colGPUs, "a whole number of GPUs, 1 or more")
	}
	j.Submit, j.Work = at, time.Duration(work)
	j.GPUs, j.GPUMilli = int(gpus), 1000
	j.VC = p.text.Get(p.f[p.at[colVC]])
	return nil
}

func (p *parser) fault(col int, want string) error {
	return p.lines.Fault(names[col], string(p.f[p.at[col]]), want)
}

// clock reads "2006-01-02 15:04:05" as the time since 1970, ten times as quickly as time.Parse.
func clock(b []byte) (time.Duration, bool) {
	if len(b) != 19 || b[4] != '-' || b[7] != '-' || b[10] != ' ' || b[13] != ':' || b[16] != ':' {
		return 0, false
	}
	ok := true
	num := func(from, to int) (v int) {
		for _, c := range b[from:to] {
			ok = ok && c >= '0' && c <= '9'
			v = v*10 + int(c-'0')
		}
		return v
	}
	year, month, day := num(0, 4), num(5, 7), num(8, 10)
	h, m, s := num(11, 13), num(14, 16), num(17, 19)
	if !ok || year < 1970 || year > 2199 || month < 1 || month > 12 || h > 23 || m > 59 || s > 59 {
		return 0, false
	}
	t := time.Date(year, time.Month(month), day, h, m, s, 0, time.UTC)
	if t.Day() != day || day == 0 { // the 31st of November became the 1st of December
		return 0, false
	}
	return time.Duration(t.Unix()) * time.Second, true
}
