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
	colNodes // these are read softly: a cell that is none is passed over, as files had such columns before they were read
	colHosts
	colState
	colEligible
	colWorkers // read only where Options.Columns names it
	columns
)

var names = [columns]string{"submit_time", "duration", "num_gpu", "job_id", "user", "vc", "gpu_type", "num_cpu",
	"mem_gb",
	"estimate", "model", "iterations", "deadline", "priority", "min_gpu", "max_gpu", "status", "start_time", "end_time",
	"name", "group", "nodes", "hosts", "state", "eligible_time", "workers"}

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
	// Columns maps names of the format to those of the file, where they differ by more than capitals and what stands
	// between words.
	Columns map[string]string
	// WholeJobs says that num_gpu is that of the whole job, whatever columns of workers or nodes the file has, so that
	// none is noted.
	WholeJobs bool
	// Unended gives also jobs that were running or waiting when the file was written (traces.Job.Open): those whose
	// status, or state, says so, or that lack start_time or end_time where these give run times. Work of a running job
	// without duration is 0 until the file is read to its end; then it is Until less its start, which LoadTrace of package
	// lab/workload sets.
	Unended bool
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
	lists   traces.Names // of nodes
	jobs    traces.Names // of jobs, apart from text because there can be a great many
	n       int
	ids     traces.IDs
	called  bool          // a row has no id and is called by its position
	clock   clock         // what the file's times are
	open    traces.Open   // of the row read last
	latest  time.Duration // as in the file
	based   bool          // times are counted from first
	begun   bool          // a job has been given
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
		return traces.OpenTable(r, file,
			traces.TableOptions{Text: true, Delimiter: func(header []byte) (byte, bool) { return o.delimiter(header), false },
				Header: strings.Join(names[:colID], ", ")})
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
		if keep := d.read(j); keep && d.err == nil {
			break
		}
	}
	return d.err
}

// Skipped returns how many rows were left out so far, by reason.
func (d *Reader) Skipped() []traces.Skip { return d.skips.All() }

// read reads one row. keep is false for a row to leave out. The first fault is in d.err.
func (d *Reader) read(j *traces.Job) (keep bool) {
	if d.err = d.rows.Next(); d.err != nil {
		return false
	}
	const want = "seconds, 0 or more and below 292 years, or a date such as 2024-03-01T12:00:00Z"
	*j = traces.Job{Submit: d.time(colSubmit, want)}
	if j.Submit < d.last && !d.o.Unsorted {
		d.fail(colSubmit, d.written(d.last)+
			" or later, as in the row before (rows must be in order of submit_time; --sort puts them in order)")
	}
	d.last, d.open = j.Submit, traces.Ended
	d.latest = max(d.latest, j.Submit)
	why := ""
	if j.Work, why = d.work(); why != "" && d.err == nil {
		d.skips.Add(why)
		d.n++
		return false
	}
	if d.err != nil {
		return false
	}
	if !d.begun {
		d.begun, d.first = true, j.Submit
		d.based = !d.o.Unsorted && (d.clock >= dated || isUnix(j.Submit))
	}
	j.Open = d.open
	d.where(j)
	d.started(j)
	if d.based {
		j.Submit -= d.first
	}
	if d.rest(j); d.err == nil {
		d.n++
		d.notes.job(d, j)
	}
	return true
}

// rest reads the columns that do not decide whether the row is a job.
func (d *Reader) rest(j *traces.Job) {
	d.gpus(j)
	j.ID = d.id()
	j.User, j.VC, j.Model = d.text.Get(d.name(colUser)), d.text.Get(d.name(colVC)), d.text.Get(d.name(colModel))
	j.Name, j.Group = d.jobs.Get(d.name(colName)), d.text.Get(d.name(colGroup))
	j.GPUTypes = d.gpuTypes()
	j.CPUMilli = d.decimal(colCPU, 3, "a number of cores, 0 or more")
	j.MemBytes = d.memory()
	d.times(j)
	if d.given(colEstimate) {
		j.Estimate = d.length(colEstimate, ", or nothing where it is not given")
	}
	j.Iterations = d.decimal(colIterations, 0, "a whole number, 0 or more")
	j.Deadline = d.deadline()
	d.elastic(j)
	if d.given(colPriority) {
		j.Priority = int(d.number(colPriority, 0, math.MinInt, math.MaxInt, "a whole number"))
	}
	if b := d.cell(colStatus); len(b) > 0 {
		j.Status = status(b)
	}
}

// id returns the id of the row, or its position.
func (d *Reader) id() string {
	if id := d.name(colID); len(id) > 0 {
		if !d.ids.Add(id) {
			says := "an id of its own (an earlier row has this one)"
			if at, err := strconv.Atoi(string(id)); err == nil && at < d.n && d.called {
				says = "an id of its own (an earlier row has this one, or has none and is called by its position)"
			}
			d.fail(colID, says)
		}
		return string(id)
	}
	id := strconv.Itoa(d.n)
	if d.called = true; d.at[colID] >= 0 && !d.ids.Add([]byte(id)) {
		d.fail(colID, "an id (a row without one is called by its position, "+id+", and an earlier row has that id)")
	}
	return id
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

// fail keeps a fault in a cell, if it is the first.
func (d *Reader) fail(col int, want string) {
	if d.err == nil {
		d.err = d.rows.Fault(d.at[col], want)
	}
}

func (d *Reader) number(col, places int, lo, hi int64, want string) int64 {
	v, err := d.rows.Number(d.at[col], places, lo, hi, want)
	if d.err == nil {
		d.err = err
	}
	return v
}

// decimal reads an optional number of 0 or more and returns it times 10^places. With places 0 it must be whole, else it
// is rounded.
func (d *Reader) decimal(col, places int, want string) int64 {
	if !d.given(col) {
		return 0
	}
	return d.number(col, places, 0, math.MaxInt64, want)
}

func (d *Reader) gpus(j *traces.Job) {
	v, exact, err := d.rows.Decimal(d.at[colGPU], 3)
	switch whole := v / 1000; {
	case err != nil || !exact || v < 0 || v > traces.MaxGPUs*1000 || v > 1000 && v%1000 != 0:
		d.fail(colGPU, "a whole number of GPUs, or a share of one GPU in thousandths, 0.001 to 0.999")
	case v == 0 || v >= 1000:
		j.GPUs, j.GPUMilli = int(whole), 1000
	default:
		j.GPUs, j.GPUMilli = 1, int(v)
	}
}

// times multiplies what one worker has by the number of workers, in a file that Options.Columns gives one.
func (d *Reader) times(j *traces.Job) {
	if !d.given(colWorkers) || d.err != nil {
		return
	}
	n := max(1, d.number(colWorkers, 0, 1, traces.MaxGPUs, "a whole number of workers, 1 or more, or nothing for 1"))
	switch {
	case int64(j.GPUs) > traces.MaxGPUs/n:
		d.fail(colWorkers, fmt.Sprintf("at most %d GPUs in all", traces.MaxGPUs))
	case n > 1 && j.GPUMilli != 1000:
		d.fail(colWorkers, "1 where num_gpu is a share of a GPU: a gang has whole GPUs")
	case j.CPUMilli > math.MaxInt64/n || j.MemBytes > math.MaxInt64/n:
		d.fail(colWorkers, "fewer workers: their cores or memory are beyond 63 bits")
	}
	j.GPUs, j.CPUMilli, j.MemBytes = j.GPUs*int(n), j.CPUMilli*n, j.MemBytes*n
}

func (d *Reader) elastic(j *traces.Job) {
	lo := d.decimal(colMin, 0, "a whole number of GPUs, at most num_gpu, or nothing")
	if lo > int64(j.GPUs) {
		d.fail(colMin, "at most num_gpu")
	}
	hi := d.decimal(colMax, 0, "a whole number of GPUs, at least num_gpu, or nothing")
	if hi != 0 && hi < int64(j.GPUs) || hi > traces.MaxGPUs {
		d.fail(colMax, "at least num_gpu")
	}
	j.MinGPUs, j.MaxGPUs = int(lo), int(hi)
}

// gpuTypes returns one slice for each distinct cell. Jobs share it, so it must not be changed.
func (d *Reader) gpuTypes() []string {
	b := d.name(colType)
	if len(b) == 0 {
		return nil
	}
	if text := d.rows.Text(d.at[colType]); len(text) > 0 && traces.NotGiven(text) {
		return nil
	}
	if t, ok := d.types[string(b)]; ok {
		return t
	}
	t := strings.Split(string(b), "|")
	if slices.Contains(t, "") {
		d.fail(colType, "names joined by |, none of them empty")
	}
	if len(d.types) < 4096 {
		d.types[string(b)] = t
	}
	return t
}

// memDecimals is enough to distinguish neighbouring bytes in GiB (2^-30 is 0.9e-9).
const memDecimals = 10

func (d *Reader) memory() int64 {
	const want = "GiB, 0 or more"
	hi, lo := bits.Mul64(uint64(d.decimal(colMem, memDecimals, want)), 1<<30)
	const unit = 1e10
	lo, carry := bits.Add64(lo, unit/2, 0) // round to nearest
	if hi += carry; hi >= unit {
		d.fail(colMem, want)
		return 0
	}
	q, _ := bits.Div64(hi, lo, unit)
	if q > math.MaxInt64 {
		d.fail(colMem, want)
	}
	return int64(q)
}
