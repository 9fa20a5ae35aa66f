package alibaba

import (
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
	"time"

	"clustergym/internal/rng"
	"clustergym/traces"
)

// Options changes how a file is read. The zero value is right for the published samples.
type Options struct {
	// Unsorted accepts rows in any order: the reader then reads all of them, groups them by job and sorts the jobs by
	// submit. Without it the reader holds one job at a time, and a job whose rows are not together is a fault.
	Unsorted   bool
	MachineMem int64 // bytes of a machine's memory, for plan_mem; 0 = not known
}

// Reader is a traces.Stream over a file. Besides the current job it keeps eight bytes for each job read, to detect a
// job that occurs twice. Not safe for concurrent use.
type Reader struct {
	t       table
	file    string
	o       Options
	job     builder
	ahead   row // the first row of the next job, when pending
	pending bool
	seen    map[uint64]struct{} // hashes of job names
	last    time.Duration
	sorted  *traces.Slice // all jobs, with Unsorted
	moved   int
	skips   traces.Skips
	err     error
}

var _ traces.Stream = (*Reader)(nil)

// NewReader reads the header of r, or all of r with Options.Unsorted. file is the name used in messages. A fault in a
// row is a *traces.RowError.
func NewReader(r io.Reader, file string, o Options) (*Reader, error) {
	t, err := newTable(r, file)
	if err != nil {
		return nil, err
	}
	d := &Reader{t: t, file: file, o: o, seen: map[uint64]struct{}{}, last: math.MinInt64}
	if o.Unsorted {
		return d, d.readAll()
	}
	return d, nil
}

// Next implements traces.Stream. After an error it gives the same error again.
func (d *Reader) Next(j *traces.Job) error {
	if d.sorted != nil {
		return d.sorted.Next(j)
	}
	for d.err == nil {
		if d.err = d.gather(); d.err != nil {
			break
		}
		keep := false
		if keep, d.err = d.job.finish(j, d); d.err != nil || !keep {
			continue
		}
		if j.Submit < d.last {
			d.err = d.fault(colStart, string(traces.AppendSeconds(nil, j.Submit)), string(traces.AppendSeconds(nil, d.last))+
				" or later, as in the job before (jobs must be in order of their first start; --sort puts them in order)")
			break
		}
		d.last = j.Submit
		return nil
	}
	return d.err
}

// Skipped returns how many jobs were left out so far, by reason.
func (d *Reader) Skipped() []traces.Skip { return d.skips.All() }

// Moved returns how many jobs came after a job with a later submit and were moved (Options.Unsorted).
func (d *Reader) Moved() int { return d.moved }

// fault describes a fault of the job read last, at the line of its first row.
func (d *Reader) fault(col int, value, want string) error {
	return &traces.RowError{File: d.file, Line: d.job.line, Column: names[col], Value: value, Want: want}
}

// next reads the next row that is of a job.
func (d *Reader) next(w *row) error {
	for {
		if err := d.t.next(w); err != nil || len(w.job) > 0 {
			return err
		}
		d.skips.AddAt(NoJob, d.t.Line())
	}
}

// gather reads the rows of the next job into d.job.
func (d *Reader) gather() error {
	if !d.pending {
		if err := d.next(&d.ahead); err != nil {
			return err
		}
	}
	d.pending = false
	h := rng.Hash(string(d.ahead.job))
	if _, again := d.seen[h]; again {
		d.t.Fail(colJob, "all rows of a job together (--sort puts them in order)")
		return d.t.Err()
	}
	d.seen[h] = struct{}{}
	d.job.reset(string(d.ahead.job))
	for {
		d.job.add(&d.ahead, d.t)
		if err := d.next(&d.ahead); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if string(d.ahead.job) != d.job.id {
			d.pending = true
			return nil
		}
	}
}

// readAll reads every row, in any order.
func (d *Reader) readAll() error {
	byName := map[string]*builder{}
	var all []*builder
	for {
		var w row
		if err := d.next(&w); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		b := byName[string(w.job)]
		if b == nil {
			b = &builder{}
			b.reset(string(w.job))
			byName[b.id] = b
			all = append(all, b)
		}
		b.add(&w, d.t)
	}
	var jobs []traces.Job
	for _, b := range all {
		var j traces.Job
		d.job.line = b.line
		if keep, err := b.finish(&j, d); err != nil {
			return err
		} else if keep {
			jobs = append(jobs, j)
		}
	}
	d.moved = traces.SortStable(jobs)
	d.sorted = &traces.Slice{Jobs: jobs}
	return nil
}

// builder assembles a job, task by task.
type builder struct {
	id      string
	line    int // of the first row
	tasks   []traces.Task
	times   []times
	status  string // the worst status of its tasks; "" = all have terminated
	odd     string // why it is left out although it may have ended; "" = it is not
	oddAt   int    // the line
	index   map[int32]int32
	numbers []int32 // numbers of the parents of all tasks, in order of tasks
	buf     []int32
}

// times holds what builder.tasks has no field for, for one task.
type times struct {
	start, end time.Duration
	measured   bool
	parents    int // how many of builder.numbers are this task's
	mem        int64
}

func (b *builder) reset(id string) {
	*b = builder{id: id, times: b.times[:0], numbers: b.numbers[:0], buf: b.buf, index: b.index}
	if b.index == nil {
		b.index = map[int32]int32{}
	}
	clear(b.index)
}

func (b *builder) add(w *row, t table) {
	if b.line == 0 {
		b.line = t.Line()
	}
	number, parents := parseName(w.name, b.buf)
	if number != 0 {
		b.buf = parents
		if _, twice := b.index[number]; twice {
			b.oddly(NumberTwice, t.Line())
		}
		b.index[number] = int32(len(b.tasks))
	}
	switch {
	case w.status != terminated:
		b.status = graver(b.status, w.status)
	case !w.timed:
		b.oddly(NoTimes, t.Line())
	case w.end < w.start:
		b.oddly(EndFirst, t.Line())
	}
	if len(w.name) == 0 {
		b.oddly(NoName, t.Line())
	}
	b.numbers = append(b.numbers, parents...)
	b.tasks = append(b.tasks,
		traces.Task{Name: t.Intern(w.name), Instances: w.instances, Work: w.mean, CPUMilli: w.cpuMilli})
	b.times = append(b.times, times{w.start, w.end, w.measured, len(parents), w.mem})
}

// oddly marks the job as one to leave out.
func (b *builder) oddly(why string, line int) {
	if b.odd == "" {
		b.odd, b.oddAt = why, line
	}
}

// The reasons for which jobs of odd rows are left out. Alibaba's tables have cut names and lost rows.
const (
	NoJob       = "row without a job_name"
	NoName      = "job with a task that has no name"
	NumberTwice = "job with two tasks of one number"
	NoTimes     = "job with a task that has terminated and has no start or end"
	EndFirst    = "job with a task that ends before it starts"
	Circle      = "job whose tasks need themselves by way of their parents, as names that are cut say"
)

const terminated = "Terminated"

// graver returns the worse of two statuses of tasks that have not terminated; it is the reason for which the job is
// left out.
func graver(a, b string) string {
	if b == "" {
		b = "of no status"
	}
	order := []string{"Waiting", "Running", "Failed"} // others, such as Cancelled, rank as Failed
	rank := func(s string) int {
		if s == "" {
			return -1
		}
		if i := slices.Index(order, s); i >= 0 {
			return i
		}
		return len(order) - 1
	}
	if rank(b) > rank(a) {
		return b
	}
	return a
}

// finish fills j. keep is false if the job must be left out; finish has then counted it.
func (b *builder) finish(j *traces.Job, d *Reader) (keep bool, err error) {
	if b.status != "" {
		d.skips.Add("job with a task that is " + b.status)
		return false, nil
	}
	if b.odd != "" {
		d.skips.AddAt(b.odd, b.oddAt)
		return false, nil
	}
	*j = traces.Job{ID: b.id, GPUMilli: 1000, Status: traces.Completed}
	first, last := b.times[0].start, b.times[0].end
	var mem uint64
	for i := range b.tasks {
		k, t := &b.tasks[i], &b.times[i]
		first, last = min(first, t.start), max(last, t.end)
		k.MemBytes = share(d.o.MachineMem, t.mem)
		cpuHi, cpu := bits.Mul64(uint64(k.CPUMilli), uint64(k.Instances))
		memHi, m := bits.Mul64(uint64(k.MemBytes), uint64(k.Instances))
		mem += m
		j.GPUs += k.Instances
		if cpuHi|memHi != 0 || cpu > most || m > most || mem > most || j.GPUs > maxInstances || j.CPUMilli > most-int64(cpu) {
			return false, d.fault(colInstances, b.id,
				fmt.Sprintf("a job of at most %d instances, with cores and memory that 62 bits hold", maxInstances))
		}
		j.CPUMilli += int64(cpu)
	}
	if j.GPUs == 0 {
		d.skips.Add("job without instances")
		return false, nil
	}
	j.MemBytes = int64(mem)
	j.Submit, j.Work = first, last-first
	g := &traces.Graph{Tasks: b.tasks}
	at := 0
	for i := range b.tasks {
		t := &b.times[i]
		from := time.Duration(-1)
		for _, p := range b.numbers[at : at+t.parents] {
			parent, ok := b.index[p]
			if !ok {
				continue
			}
			e := traces.Edge{Parent: parent, Child: int32(i)}
			if slices.Contains(g.Edges[max(0, len(g.Edges)-t.parents):], e) {
				continue // named twice
			}
			g.Edges = append(g.Edges, e)
			from = max(from, b.times[parent].end)
		}
		at += t.parents
		if from < 0 {
			from = t.start
		}
		if !t.measured {
			b.tasks[i].Work = max(0, t.end-from)
		}
	}
	if _, ok := g.Order(nil); !ok {
		d.skips.AddAt(Circle, b.line)
		return false, nil
	}
	j.Graph = g
	return true, nil
}

const (
	most         = 1<<62 - 1
	maxInstances = 1 << 30 // sums of demands in thousandths stay far inside an int64
)

// share returns milliPercent thousandths of a percent of n bytes, rounded down.
func share(n, milliPercent int64) int64 {
	if n <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(n), uint64(milliPercent))
	if hi >= 100_000 {
		return most
	}
	q, _ := bits.Div64(hi, lo, 100_000)
	return int64(min(q, most))
}
