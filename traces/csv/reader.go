package csv

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"clustergym/traces"
)

// The columns of the format, in the order in which Write writes them.
const (
	colSubmit = iota
	colDuration
	colGPU
	colID // the first optional column
	colUser
	colVC
	colType
	colCPU
	colMem
	colEstimate
	colModel
	colIterations
	colDeadline
	colPriority
	colMin
	colMax
	colStatus
	written  // Write always writes the columns before it
	colStart = iota - 1
	colEnd
	colName // Write writes it and the next if jobs have them
	colGroup
	colWorkers // read only where Options.Columns names it
	columns
)

var names = [columns]string{"submit_time", "duration", "num_gpu", "job_id", "user", "vc", "gpu_type", "num_cpu", "mem_gb",
	"estimate", "model", "iterations", "deadline", "priority", "min_gpu", "max_gpu", "status", "start_time", "end_time", "name", "group", "workers"}

// Columns returns the names of the columns that the format knows.
func Columns() []string { return slices.Clone(names[:]) }

// Options changes how a file is read. The zero value is right for a sorted file.
type Options struct {
	// Unsorted lets submit_time go backwards; jobs then come in the order of the file, for traces.SortStable. Without
	// it such a row is a fault, because a Stream is in order of submit. Dates and unix times are then counted from 1970;
	// Rebase counts them from the first job once the jobs are in order.
	Unsorted bool
	// Delimiter is what stands between fields; 0 = what the header shows: a comma, a semicolon, a tab or a vertical bar.
	Delimiter byte
	// Columns maps names of the format to those of the file, where they differ by more than capitals and what stands between
	// words.
	Columns map[string]string
	// WholeJobs says that num_gpu is that of the whole job, whatever columns of workers or nodes the file has, so that none is
	// noted.
	WholeJobs bool
}

// The reasons for which rows are left out.
const (
	NeverStarted = "never ran: no start_time"
	NotEnded     = "not ended: no end_time"
	NoDuration   = "did not run to an end: no duration, and status says so"
)

// Reader is a traces.Stream over a file in the native format. It holds one row at a time. Not safe for
// concurrent use.
type Reader struct {
	rows    *traces.Table
	o       Options
	at      [columns]int // index of the column of each name; -1 = absent
	types   map[string][]string
	text    traces.Names
	jobs    traces.Names // of jobs, apart from text because there can be a great many
	n       int
	ids     traces.IDs
	called  bool  // a row has no id and is called by its position
	clock   clock // what the file's times are
	based   bool  // times are counted from first
	begun   bool  // a job has been given
	first   time.Duration
	last    time.Duration // as in the file
	skips   traces.Skips
	decoded []byte // a name that was not UTF-8
	between bool   // run times are end less start, whatever the column of durations says
	notes   notes
	err     error
}

var _ traces.Stream = (*Reader)(nil)

// NewReader reads the header of r. file is the name used in messages. A header that lacks required columns (the error
// names all of them, with the nearest of the file's) or repeats a column is a *traces.RowError.
func NewReader(r io.Reader, file string, o Options) (*Reader, error) {
	b := bufio.NewReaderSize(r, 1<<16)
	open := func(r io.Reader) (*traces.Table, error) {
		return traces.OpenTable(r, file, traces.TableOptions{Text: true, Delimiter: func(header []byte) (byte, bool) { return o.delimiter(header), false }, Header: strings.Join(names[:colID], ", ")})
	}
	head, _ := b.Peek(1 << 16) // an error comes again
	t, err := open(b)
	if err != nil {
		return nil, err
	}
	h := newHeader(t.Columns())
	at, says := h.place(o.Columns)
	if says == "" {
		says = h.missing(at)
	}
	if says != "" {
		return nil, t.Saying(says)
	}
	d := &Reader{rows: t, o: o, at: at, types: map[string][]string{}, last: math.MinInt64}
	if err := excel(head, at, open); err != nil {
		return nil, err
	}
	_, given := o.Columns[names[colDuration]]
	_, start := o.Columns[names[colStart]]
	_, end := o.Columns[names[colEnd]]
	d.between = at[colDuration] < 0 || start && end && !given
	d.notes.begin(d, given)
	return d, nil
}

// Named reports whether the file has a column of jobs' names, and one of groups.
func (d *Reader) Named() (name, group bool) { return d.at[colName] >= 0, d.at[colGroup] >= 0 }

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

// Skipped returns how many rows were left out so far, by reason.
func (d *Reader) Skipped() []traces.Skip { return d.skips.All() }

// read reads one row. keep is false on an error and for a row to leave out.
func (d *Reader) read(j *traces.Job) (keep bool, err error) {
	if err := d.rows.Next(); err != nil {
		return false, err
	}
	*j = traces.Job{}
	if j.Submit, err = d.time(colSubmit, "seconds, 0 or more and below 292 years, or a date such as 2024-03-01T12:00:00Z"); err != nil {
		return false, err
	}
	if j.Submit < d.last && !d.o.Unsorted {
		return false, d.fault(colSubmit, d.written(d.last)+" or later, as in the row before (rows must be in order of submit_time; --sort puts them in order)")
	}
	d.last = j.Submit
	why := ""
	if j.Work, why, err = d.work(); err != nil {
		return false, err
	}
	if why != "" {
		d.skips.Add(why)
		d.n++
		return false, nil
	}
	if !d.begun {
		d.begun, d.first = true, j.Submit
		d.based = !d.o.Unsorted && (d.clock >= dated || isUnix(j.Submit))
	}
	if d.based {
		j.Submit -= d.first
	}
	err = d.rest(j)
	return err == nil, err
}

// rest reads the columns that do not decide whether the row is a job.
func (d *Reader) rest(j *traces.Job) (err error) {
	if err = d.gpus(j); err != nil {
		return err
	}
	if id := d.name(colID); len(id) > 0 {
		if !d.ids.Add(id) {
			if at, err := strconv.Atoi(string(id)); err == nil && at < d.n && d.called {
				return d.fault(colID, "an id of its own (an earlier row has this one, or has none and is called by its position)")
			}
			return d.fault(colID, "an id of its own (an earlier row has this one)")
		}
		j.ID = string(id)
	} else {
		j.ID, d.called = strconv.Itoa(d.n), true
		if d.at[colID] >= 0 && !d.ids.Add([]byte(j.ID)) {
			return d.fault(colID, "an id (a row without one is called by its position, "+j.ID+", and an earlier row has that id)")
		}
	}
	j.User, j.VC, j.Model = d.text.Get(d.name(colUser)), d.text.Get(d.name(colVC)), d.text.Get(d.name(colModel))
	j.Name, j.Group = d.jobs.Get(d.name(colName)), d.text.Get(d.name(colGroup))
	if j.GPUTypes, err = d.gpuTypes(); err != nil {
		return err
	}
	if j.CPUMilli, err = d.decimal(colCPU, 3, "a number of cores, 0 or more"); err != nil {
		return err
	}
	if j.MemBytes, err = d.memory(); err != nil {
		return err
	}
	if err = d.times(j); err != nil {
		return err
	}
	if d.given(colEstimate) {
		if j.Estimate, err = d.length(colEstimate, ", or nothing where it is not given"); err != nil {
			return err
		}
	}
	if j.Iterations, err = d.decimal(colIterations, 0, "a whole number, 0 or more"); err != nil {
		return err
	}
	if j.Deadline, err = d.deadline(); err != nil {
		return err
	}
	if err = d.elastic(j); err != nil {
		return err
	}
	if d.given(colPriority) {
		v, err := d.rows.Number(d.at[colPriority], 0, math.MinInt, math.MaxInt, "a whole number")
		if err != nil {
			return err
		}
		j.Priority = int(v)
	}
	if b := d.cell(colStatus); len(b) > 0 {
		j.Status = status(b)
	}
	d.n++
	d.notes.job(d, j)
	return nil
}

// given reports whether the row has a number, a time or a type in a column.
func (d *Reader) given(col int) bool {
	return len(d.cell(col)) > 0 && !traces.NotGiven(d.rows.Text(d.at[col]))
}

// name returns the current row's cell of a column of names, nil if it is not given. Text that is not UTF-8 is taken for
// Windows-1252, of which Latin-1 is a part.
func (d *Reader) name(col int) []byte {
	b := d.cell(col)
	if len(b) == 0 {
		return nil
	}
	if text := d.rows.Text(d.at[col]); len(text) > 0 && traces.NoName(text) {
		return nil
	}
	if utf8.Valid(b) {
		return b
	}
	d.notes.foreign(d, col)
	d.decoded = appendWindows1252(d.decoded[:0], b)
	return d.decoded
}

// cell returns the current row's cell, or nil if the file has no such column.
func (d *Reader) cell(col int) []byte { return d.rows.Cell(d.at[col]) }

func (d *Reader) fault(col int, want string) error { return d.rows.Fault(d.at[col], want) }

// decimal reads an optional number of 0 or more and returns it times 10^places. With places 0 it must be whole, else it
// is rounded.
func (d *Reader) decimal(col, places int, want string) (int64, error) {
	if !d.given(col) {
		return 0, nil
	}
	return d.rows.Number(d.at[col], places, 0, math.MaxInt64, want)
}

func (d *Reader) gpus(j *traces.Job) error {
	v, exact, err := d.rows.Decimal(d.at[colGPU], 3)
	switch whole := v / 1000; {
	case err != nil || !exact || v < 0 || v > traces.MaxGPUs*1000 || v > 1000 && v%1000 != 0:
		return d.fault(colGPU, "a whole number of GPUs, or a share of one GPU in thousandths, 0.001 to 0.999")
	case v == 0 || v >= 1000:
		j.GPUs, j.GPUMilli = int(whole), 1000
	default:
		j.GPUs, j.GPUMilli = 1, int(v)
	}
	return nil
}

// times multiplies what one worker has by the number of workers, in a file that Options.Columns gives one.
func (d *Reader) times(j *traces.Job) error {
	if !d.given(colWorkers) {
		return nil
	}
	n, err := d.rows.Number(d.at[colWorkers], 0, 1, traces.MaxGPUs, "a whole number of workers, 1 or more, or nothing for 1")
	if err != nil {
		return err
	}
	switch {
	case int64(j.GPUs) > traces.MaxGPUs/n:
		return d.fault(colWorkers, fmt.Sprintf("at most %d GPUs in all", traces.MaxGPUs))
	case n > 1 && j.GPUMilli != 1000:
		return d.fault(colWorkers, "1 where num_gpu is a share of a GPU: a gang has whole GPUs")
	case j.CPUMilli > math.MaxInt64/n || j.MemBytes > math.MaxInt64/n:
		return d.fault(colWorkers, "fewer workers: their cores or memory are beyond 63 bits")
	}
	j.GPUs, j.CPUMilli, j.MemBytes = j.GPUs*int(n), j.CPUMilli*n, j.MemBytes*n
	return nil
}

func (d *Reader) elastic(j *traces.Job) error {
	lo, err := d.decimal(colMin, 0, "a whole number of GPUs, at most num_gpu, or nothing")
	if err == nil && lo > int64(j.GPUs) {
		err = d.fault(colMin, "at most num_gpu")
	}
	if err != nil {
		return err
	}
	hi, err := d.decimal(colMax, 0, "a whole number of GPUs, at least num_gpu, or nothing")
	if err == nil && (hi != 0 && hi < int64(j.GPUs) || hi > traces.MaxGPUs) {
		err = d.fault(colMax, "at least num_gpu")
	}
	j.MinGPUs, j.MaxGPUs = int(lo), int(hi)
	return err
}

// gpuTypes returns one slice for each distinct cell. Jobs share it, so it must not be changed.
func (d *Reader) gpuTypes() ([]string, error) {
	b := d.name(colType)
	if len(b) == 0 {
		return nil, nil
	}
	if text := d.rows.Text(d.at[colType]); len(text) > 0 && traces.NotGiven(text) {
		return nil, nil
	}
	if t, ok := d.types[string(b)]; ok {
		return t, nil
	}
	t := strings.Split(string(b), "|")
	for _, s := range t {
		if s == "" {
			return nil, d.fault(colType, "names joined by |, none of them empty")
		}
	}
	if len(d.types) < 4096 {
		d.types[string(b)] = t
	}
	return t, nil
}

// memDecimals is enough to distinguish neighbouring bytes in GiB (2^-30 is 0.9e-9).
const memDecimals = 10

func (d *Reader) memory() (int64, error) {
	v, err := d.decimal(colMem, memDecimals, "GiB, 0 or more")
	if err != nil || v == 0 {
		return 0, err
	}
	hi, lo := bits.Mul64(uint64(v), 1<<30)
	const unit = 1e10
	lo, carry := bits.Add64(lo, unit/2, 0) // round to nearest
	if hi += carry; hi >= unit {
		return 0, d.fault(colMem, "GiB, 0 or more")
	}
	q, _ := bits.Div64(hi, lo, unit)
	if q > math.MaxInt64 {
		return 0, d.fault(colMem, "GiB, 0 or more")
	}
	return int64(q), nil
}
