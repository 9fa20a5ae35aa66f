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

var names = [fields]string{"job number", "submit time", "wait time", "run time", "allocated processors", "average CPU time",
	"used memory", "requested processors", "requested time", "requested memory", "status", "user", "group", "executable",
	"queue", "partition", "preceding job", "think time"}

// Options changes how a log is read. The zero value is right for a log of the archive.
type Options struct {
	Unsorted  bool // let submit times go backwards; jobs then come in the order of the file, for traces.SortStable
	Queue     bool // Job.VC is the queue instead of the group
	Zero      bool // keep jobs whose run time is 0; those whose run time is unknown (-1) are still left out
	Requested bool // GPUs are the processors requested, or those allocated if the request is not given
	NoText    bool // leave ID and all names empty, so that reading allocates nothing
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
	record  Record
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

// Dropped returns how many lines were left out so far, because their job did not run or has no size.
func (d *Reader) Dropped() int { return d.idle + d.empty }

// Named reports that jobs can have a name and a group.
func (*Reader) Named() (name, group bool) { return true, true }

// Skipped returns the lines of Dropped by reason.
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
		keep := false
		if keep, d.err = d.read(j); keep {
			return nil
		}
	}
	return d.err
}

// read reads one line. keep is false on an error and if the line is not a job or is a job to drop.
func (d *Reader) read(j *traces.Job) (keep bool, err error) {
	line := d.first
	if !d.pending {
		if line, err = d.lines.Next(); err != nil {
			return false, err
		}
	}
	d.first, d.pending = nil, false
	if line = trim(line); len(line) == 0 || line[0] == ';' {
		return false, nil
	}
	if n := d.split(line); n < fields {
		return false, d.lines.Fault("", fmt.Sprintf("%d fields", n), "18, blank-separated (-1 where unknown)")
	}
	*j = traces.Job{}
	if j.Submit, err = d.seconds(fieldSubmit); err != nil {
		return false, err
	}
	if j.Submit < 0 {
		return false, d.fault(fieldSubmit, "seconds, 0 or more")
	}
	if j.Submit < d.last && !d.o.Unsorted {
		return false, d.fault(fieldSubmit, string(traces.AppendSeconds(nil, d.last))+" or later, as in the job before (jobs must be in order of submit time; --sort puts them in order)")
	}
	d.last = j.Submit
	if j.Work, err = d.seconds(fieldRun); err != nil {
		return false, err
	}
	size, other := fieldAllocated, fieldProcs
	if d.o.Requested {
		size, other = other, size
	}
	procs, err := d.number(size)
	if err == nil && procs <= 0 {
		size = other
		procs, err = d.number(size)
	}
	if err != nil {
		return false, err
	}
	if procs > maxProcs {
		return false, d.fault(size, fmt.Sprintf("at most %d", maxProcs))
	}
	j.GPUs, j.GPUMilli = int(procs), 1000
	if j.Estimate, err = d.seconds(fieldTime); err != nil {
		return false, err
	}
	j.Estimate = max(0, j.Estimate)
	if j.MemBytes, err = d.memory(procs); err != nil {
		return false, err
	}
	if j.Status, err = d.status(); err != nil {
		return false, err
	}
	model, err := d.number(fieldExecutable)
	if err != nil {
		return false, err
	}
	if j.Work < 0 || j.Work == 0 && !d.o.Zero {
		d.idle++
		return false, nil
	}
	if procs <= 0 {
		d.empty++
		return false, nil
	}
	if d.o.NoText {
		return true, nil
	}
	group := fieldGroup
	if d.o.Queue {
		group = fieldQueue
	}
	j.ID, j.User, j.VC = string(d.f[fieldID]), d.name(fieldUser), d.name(group)
	if j.Group = j.VC; d.o.Queue {
		j.Group = d.name(fieldGroup)
	}
	if model > 0 {
		j.Model = d.name(fieldExecutable)
		j.Name = j.Model
	}
	return true, nil
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

func (d *Reader) fault(field int, want string) error {
	return d.lines.Fault(names[field], string(d.f[field]), want)
}

// seconds reads a time. Logs have whole seconds; decimals are read exactly. Negative means unknown.
func (d *Reader) seconds(field int) (time.Duration, error) {
	const most = int64(math.MaxInt64 / time.Second)
	if v := d.v[field]; d.whole&(1<<field) != 0 && v <= most && v >= -most {
		return time.Duration(v) * time.Second, nil
	}
	v, _, err := traces.Decimal(string(d.f[field]), 9)
	if err != nil {
		return 0, d.fault(field, "seconds, below 292 years, or -1 where unknown")
	}
	return time.Duration(v), nil
}

func (d *Reader) number(field int) (int64, error) {
	if d.whole&(1<<field) != 0 {
		return d.v[field], nil
	}
	v, exact, err := traces.Decimal(string(d.f[field]), 0)
	if err != nil || !exact {
		return 0, d.fault(field, "a whole number, or -1 where unknown")
	}
	return v, nil
}

// kilobytes reads an amount of memory; averages of used memory need not be whole and are rounded.
func (d *Reader) kilobytes(field int) (int64, error) {
	if d.whole&(1<<field) != 0 {
		return d.v[field], nil
	}
	v, _, err := traces.Decimal(string(d.f[field]), 0)
	if err != nil {
		return 0, d.fault(field, "KB for each processor, or -1 where unknown")
	}
	return v, nil
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
func (d *Reader) memory(procs int64) (int64, error) {
	for _, field := range [...]int{fieldMem, fieldUsedMem} {
		kb, err := d.kilobytes(field)
		if err != nil {
			return 0, err
		}
		if kb > 0 && procs > 0 {
			if kb > math.MaxInt64>>10 {
				return 0, d.fault(field, "KB for each processor, within 2^53")
			}
			hi, lo := bits.Mul64(uint64(kb)<<10, uint64(procs))
			if hi != 0 || lo > math.MaxInt64 {
				return 0, d.fault(field, "KB for each processor, together below 2^63 bytes")
			}
			return int64(lo), nil
		}
	}
	return 0, nil
}

func (d *Reader) status() (traces.Status, error) {
	v, err := d.number(fieldStatus)
	if err != nil {
		return traces.StatusUnknown, err
	}
	switch v {
	case 1, 3: // 3 and 4 are the last parts of jobs that were checkpointed and swapped out
		return traces.Completed, nil
	case 0, 4:
		return traces.Failed, nil
	case 5:
		return traces.Cancelled, nil
	}
	return traces.StatusUnknown, nil
}
