package swf

import (
	"fmt"
	"io"
	"math"
	"math/bits"
	"time"

	"clustergym/traces"
)

// The fields of a line, from 0.
const (
	fieldID = iota
	fieldSubmit
	fieldWait
	fieldRun
	fieldAllocated
	fieldCPU
	fieldUsedMem
	fieldProcs
	fieldTime
	fieldMem
	fieldStatus
	fieldUser
	fieldGroup
	fieldExecutable
	fieldQueue
	fieldPartition
	fieldPreceding
	fieldThink
	fields
)

var names = [fields]string{"job number", "submit time", "wait time", "run time", "allocated processors",
	"average CPU time",
	"used memory", "requested processors", "requested time", "requested memory", "status", "user", "group", "executable",
	"queue", "partition", "preceding job", "think time"}

// Options changes how a log is read. The zero value is right for a log of the archive.
type Options struct {
	Unsorted bool // let submit times go backwards; jobs then come in the order of the file, for traces.SortStable
	Zero     bool // keep jobs whose run time is 0; those whose run time is unknown (-1) are still left out
	NoText   bool // leave ID and all names empty, so that reading allocates nothing
}

// Reader is a traces.Stream over a log. It holds one line at a time. Not safe for concurrent use.
type Reader struct {
	lines   *traces.Lines
	o       Options
	header  Header
	first   []byte // the first line after the header, which NewReader has already read
	pending bool
	f       [fields][]byte // the line read last
	v       [fields]int64  // its numbers; valid where whole marks a field as a short whole number
	whole   uint32         // by field, lowest bit first
	text    traces.Names
	last    time.Duration
	idle    int // jobs without run time
	empty   int // jobs without processors
	err     error
}

var _ traces.Stream = (*Reader)(nil)

// NewReader reads the header of r, up to the first job. file is the name used in messages. A log without jobs is not an
// error here; Next then returns io.EOF.
func NewReader(r io.Reader, file string, o Options) (*Reader, error) {
	d := &Reader{lines: traces.NewLines(r, file), o: o, header: Header{}, last: math.MinInt64}
	key, size := "", 0
	for {
		line, err := d.lines.Next()
		if err == io.EOF {
			d.err = io.EOF
			return d, nil
		}
		if err != nil {
			return nil, err
		}
		if line = trim(line); len(line) == 0 {
			continue
		}
		if line[0] != ';' {
			d.first, d.pending = line, true // valid until the next call of lines.Next
			return d, nil
		}
		key = d.header.add(string(line), key, &size)
	}
}

// Header returns the header before the first job. The caller must not change it.
func (d *Reader) Header() Header { return d.header }

// Named reports that jobs can have a name and a group.
func (*Reader) Named() (name, group bool) { return true, true }

// Skipped returns how many lines were left out so far, by reason.
func (d *Reader) Skipped() []traces.Skip {
	var s traces.Skips
	if d.o.Zero {
		s.AddN("run time unknown", d.idle)
	} else {
		s.AddN("run time 0 or unknown", d.idle)
	}
	s.AddN("no processors", d.empty)
	return s.All()
}

// Next implements traces.Stream. After an error it gives the same error again.
func (d *Reader) Next(j *traces.Job) error {
	for d.err == nil {
		if keep := d.read(j); keep && d.err == nil {
			break
		}
	}
	return d.err
}

// read reads one line. keep is false if the line is not a job or is a job to drop. The first fault is in d.err.
func (d *Reader) read(j *traces.Job) (keep bool) {
	line := d.first
	if !d.pending {
		if line, d.err = d.lines.Next(); d.err != nil {
			return false
		}
	}
	d.first, d.pending = nil, false
	if line = trim(line); len(line) == 0 || line[0] == ';' {
		return false
	}
	if n := d.split(line); n < fields {
		d.err = d.lines.Fault("", fmt.Sprintf("%d fields", n), "18, blank-separated (-1 where unknown)")
		return false
	}
	*j = traces.Job{Submit: d.seconds(fieldSubmit)}
	if j.Submit < 0 {
		d.fail(fieldSubmit, "seconds, 0 or more")
	}
	if j.Submit < d.last && !d.o.Unsorted {
		d.fail(fieldSubmit, string(traces.AppendSeconds(nil, d.last))+
			" or later, as in the job before (jobs must be in order of submit time; --sort puts them in order)")
	}
	d.last = j.Submit
	if wait, ok := d.wait(); ok {
		j.Start(j.Submit + wait)
	}
	j.Work = d.seconds(fieldRun)
	procs := d.procs()
	j.GPUs, j.GPUMilli = int(procs), 1000
	j.Estimate = max(0, d.seconds(fieldTime))
	j.MemBytes, j.Status = d.memory(procs), d.status()
	model := d.number(fieldExecutable)
	switch {
	case d.err != nil:
		return false
	case j.Work < 0 || j.Work == 0 && !d.o.Zero:
		d.idle++
		return false
	case procs <= 0:
		d.empty++
		return false
	case d.o.NoText:
		return true
	}
	j.ID, j.User, j.VC = string(d.f[fieldID]), d.name(fieldUser), d.name(fieldGroup)
	j.Group = j.VC
	if model > 0 {
		j.Model = d.name(fieldExecutable)
		j.Name = j.Model
	}
	return true
}

// wait returns the time from submit to start, if the log has it. Nothing depends on it, so that no text in its place is
// a fault.
func (d *Reader) wait() (t time.Duration, ok bool) {
	const most = int64(traces.MaxTime / time.Second)
	if v := d.v[fieldWait]; d.whole&(1<<fieldWait) != 0 {
		return time.Duration(v) * time.Second, v >= 0 && v <= most
	}
	v, _, err := traces.Decimal(string(d.f[fieldWait]), 9)
	return time.Duration(v), err == nil && v >= 0
}

// procs returns the size of the job: the processors allocated, or those requested if that is not known.
func (d *Reader) procs() int64 {
	field := fieldAllocated
	n := d.number(field)
	if n <= 0 && d.err == nil {
		field = fieldProcs
		n = d.number(field)
	}
	if n > maxProcs {
		d.fail(field, fmt.Sprintf("at most %d", maxProcs))
	}
	return n
}

// maxProcs bounds the processors of a job, so that sums of demands in thousandths stay far inside an int64.
const maxProcs = 1 << 30

func blank(c byte) bool { return c == ' ' || c == '\t' }

func trim(b []byte) []byte {
	for len(b) > 0 && (blank(b[0]) || b[0] == '\r') {
		b = b[1:]
	}
	for len(b) > 0 && (blank(b[len(b)-1]) || b[len(b)-1] == '\r') {
		b = b[:len(b)-1]
	}
	return b
}

// split fills d.f, d.v and d.whole and returns the number of fields, at most 18: some logs have additional fields,
// which are ignored. It parses numbers while it splits fields, because one pass costs a third less than two.
func (d *Reader) split(line []byte) (n int) {
	d.whole = 0
	for i := 0; n < fields; n++ {
		for i < len(line) && blank(line[i]) {
			i++
		}
		if i == len(line) {
			break
		}
		from, digits, neg := i, i, line[i] == '-'
		if neg {
			i++
			digits = i
		}
		v := int64(0)
		for i < len(line) && line[i]-'0' <= 9 {
			v = v*10 + int64(line[i]-'0') // overflows with too many digits; v is then not used
			i++
		}
		if k := i - digits; k > 0 && k <= maxDigits && (i == len(line) || blank(line[i])) {
			if neg {
				v = -v
			}
			d.v[n] = v
			d.whole |= 1 << n
		} else {
			for i < len(line) && !blank(line[i]) {
				i++
			}
		}
		d.f[n] = line[from:i]
	}
	return n
}

// maxDigits is the number of digits that always fit an int64.
const maxDigits = 18

// fail keeps a fault in a field, if it is the first.
func (d *Reader) fail(field int, want string) {
	if d.err == nil {
		d.err = d.lines.Fault(names[field], string(d.f[field]), want)
	}
}

// seconds reads a time. Logs have whole seconds; decimals are read exactly. Negative means unknown.
func (d *Reader) seconds(field int) time.Duration {
	const most = int64(math.MaxInt64 / time.Second)
	if v := d.v[field]; d.whole&(1<<field) != 0 && v <= most && v >= -most {
		return time.Duration(v) * time.Second
	}
	v, _, err := traces.Decimal(string(d.f[field]), 9)
	if err != nil {
		d.fail(field, "seconds, below 292 years, or -1 where unknown")
	}
	return time.Duration(v)
}

func (d *Reader) number(field int) int64 {
	v, exact := d.rounded(field, "a whole number, or -1 where unknown")
	if !exact {
		d.fail(field, "a whole number, or -1 where unknown")
	}
	return v
}

// kilobytes reads an amount of memory; averages of used memory need not be whole and are rounded.
func (d *Reader) kilobytes(field int) int64 {
	v, _ := d.rounded(field, "KB for each processor, or -1 where unknown")
	return v
}

// rounded reads a number, rounded to a whole one; exact reports that it was whole. want is what would be right.
func (d *Reader) rounded(field int, want string) (v int64, exact bool) {
	if d.whole&(1<<field) != 0 {
		return d.v[field], true
	}
	v, exact, err := traces.Decimal(string(d.f[field]), 0)
	if err != nil {
		d.fail(field, want)
	}
	return v, exact
}

// name returns a number as written, or "" if it is unknown.
func (d *Reader) name(field int) string {
	if b := d.f[field]; b[0] != '-' {
		return d.text.Get(b)
	}
	return ""
}

// memory returns the memory of the whole job, in bytes, from the memory requested for each processor, else from that
// used by each. The request goes first because it is what a scheduler knows.
func (d *Reader) memory(procs int64) int64 {
	for _, field := range [...]int{fieldMem, fieldUsedMem} {
		kb := d.kilobytes(field)
		if kb <= 0 || procs <= 0 {
			continue
		}
		if kb > math.MaxInt64>>10 {
			d.fail(field, "KB for each processor, within 2^53")
		}
		hi, lo := bits.Mul64(uint64(kb)<<10, uint64(procs))
		if hi != 0 || lo > math.MaxInt64 {
			d.fail(field, "KB for each processor, together below 2^63 bytes")
		}
		return int64(lo)
	}
	return 0
}

func (d *Reader) status() traces.Status {
	switch d.number(fieldStatus) {
	case 1, 3: // 3 and 4 are the last parts of jobs that were checkpointed and swapped out
		return traces.Completed
	case 0, 4:
		return traces.Failed
	case 5:
		return traces.Cancelled
	}
	return traces.StatusUnknown
}
