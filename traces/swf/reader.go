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
	Unsorted bool // let submit times go backwards; jobs then come as they stand, for traces.SortStable
	Queue    bool // Job.VC is the queue instead of the group
}

// Reader is a traces.Stream over a log. It holds one line at a time. Not safe for concurrent use.
type Reader struct {
	lines   *traces.Lines
	o       Options
	header  Header
	first   []byte // the first line after the header, which NewReader had to read
	pending bool
	f       [fields][]byte
	text    traces.Names
	last    time.Duration
	dropped int
	err     error
}

var _ traces.Stream = (*Reader)(nil)

// NewReader reads the header of r, up to the first job. file is the name that messages give. A log without jobs
// is no error here: Next returns io.EOF.
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

// Header is what stood before the first job. The caller must not change it.
func (d *Reader) Header() Header { return d.header }

// Dropped is how many lines so far were left out, because their job did not run or has no size.
func (d *Reader) Dropped() int { return d.dropped }

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

// read takes one line. keep is false at an error and where the line is no job or one to drop.
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
	procs, err := d.whole(fieldAllocated)
	if err == nil && procs <= 0 {
		procs, err = d.whole(fieldProcs)
	}
	if err != nil {
		return false, err
	}
	if procs > maxProcs {
		return false, d.lines.Fault(names[fieldAllocated], fmt.Sprint(procs), fmt.Sprintf("at most %d", maxProcs))
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
	group := fieldGroup
	if d.o.Queue {
		group = fieldQueue
	}
	j.User, j.VC = d.name(fieldUser), d.name(group)
	if n, err := d.whole(fieldExecutable); err != nil {
		return false, err
	} else if n > 0 {
		j.Model = d.name(fieldExecutable)
	}
	if j.Work <= 0 || procs <= 0 {
		d.dropped++
		return false, nil
	}
	j.ID = string(d.f[fieldID])
	return true, nil
}

// maxProcs bounds a job, so that sums of demands in thousandths stay far inside an int64.
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

// split fills d.f and returns how many fields there are, at most 18: some logs carry further ones of their own,
// which are passed over.
func (d *Reader) split(line []byte) (n int) {
	for i := 0; n < fields; n++ {
		for i < len(line) && blank(line[i]) {
			i++
		}
		if i == len(line) {
			break
		}
		from := i
		for i < len(line) && !blank(line[i]) {
			i++
		}
		d.f[n] = line[from:i]
	}
	return n
}

func (d *Reader) fault(field int, want string) error {
	return d.lines.Fault(names[field], string(d.f[field]), want)
}

// seconds reads a time; logs have whole seconds, and decimals are taken exactly. Negative means unknown.
func (d *Reader) seconds(field int) (time.Duration, error) {
	v, _, err := traces.Decimal(string(d.f[field]), 9)
	if err != nil {
		return 0, d.fault(field, "seconds, below 292 years, or -1 where unknown")
	}
	return time.Duration(v), nil
}

func (d *Reader) whole(field int) (int64, error) {
	v, exact, err := traces.Decimal(string(d.f[field]), 0)
	if err != nil || !exact {
		return 0, d.fault(field, "a whole number, or -1 where unknown")
	}
	return v, nil
}

// name gives a number as it is written, "" where it is unknown.
func (d *Reader) name(field int) string {
	if b := d.f[field]; b[0] != '-' {
		return d.text.Get(b)
	}
	return ""
}

// memory is of the whole job, in bytes: the memory requested for each processor, else that used by each. A
// request is what a scheduler knows, so it goes first.
func (d *Reader) memory(procs int64) (int64, error) {
	for _, field := range [...]int{fieldMem, fieldUsedMem} {
		kb, _, err := traces.Decimal(string(d.f[field]), 0) // averages of used memory need not be whole
		if err != nil {
			return 0, d.fault(field, "KB for each processor, or -1 where unknown")
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
	v, err := d.whole(fieldStatus)
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
