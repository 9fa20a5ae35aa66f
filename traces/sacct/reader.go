package sacct

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"clustergym/traces"
)

// The columns that are read.
const (
	colID = iota
	colSubmit
	colStart
	colEnd
	colElapsed
	colElapsedRaw
	colAllocTRES
	colReqTRES
	colReqGRES
	colNodes
	colAllocNodes
	colCPUs
	colAllocCPUs
	colMem
	colLimit
	colLimitRaw
	colState
	colUser
	colPartition
	colCluster
	colName
	colAccount
	columns
)

var names = [columns]string{"JobID", "Submit", "Start", "End", "Elapsed", "ElapsedRaw", "AllocTRES", "ReqTRES", "ReqGRES", "NNodes", "AllocNodes",
	"NCPUS", "AllocCPUS", "ReqMem", "Timelimit", "TimelimitRaw", "State", "User", "Partition", "Cluster", "JobName", "Account"}

// The reasons for which jobs are left out.
const (
	NeverStarted = "never started: Start is not known"
	NotEnded     = "not ended: pending or running again, or still"
	NoRunTime    = "no run time: Elapsed is 0"
)

// Options changes how a file is read. The zero value is right for sacct -P.
type Options struct {
	Delimiter byte // between fields, as sacct's --delimiter; 0 = what the header shows
}

// Reader is a traces.Stream over the jobs, in order of submit. sacct prints them in order of id, and the records of a job are
// apart, so the reader holds all of them in memory. Not safe for concurrent use.
type Reader struct {
	stream      traces.Slice
	moved       int
	skips       traces.Skips
	name, group bool
}

var _ traces.Stream = (*Reader)(nil)

// record is one line: a run of a job, or of one component of it.
type record struct {
	job       traces.Job // Submit is since 1970, Work that of this run
	component string     // of a heterogeneous job, "" for others
	ends      ending
}

type ending uint8

const (
	ended ending = iota
	waiting
	running
)

// NewReader reads r to its end: what sacct -P prints, or sacct --json. file is the name used in messages. A fault in a row or the
// header is a *traces.RowError; in a document, lines are jobs, after a first line for the header that it does not have.
func NewReader(r io.Reader, file string, o Options) (*Reader, error) {
	head := bufio.NewReader(r)
	if first, err := head.Peek(1); err == nil && first[0] == '{' {
		r, o = FromJSON(head, file), Options{Delimiter: '|'}
	} else {
		r = head
	}
	t, err := traces.OpenTable(r, file, traces.TableOptions{Delimiter: o.delimiter, Header: "JobID, Submit, Elapsed, AllocTRES"})
	if err != nil {
		return nil, err
	}
	p := &parser{Table: t}
	for i, name := range names {
		p.at[i] = slices.IndexFunc(t.Columns(), func(c string) bool { return strings.EqualFold(c, name) })
	}
	if says := p.lacks(); says != "" {
		return nil, t.Saying(says)
	}
	var (
		all    [][]record // by job, in order of the first records
		places = map[string]int{}
	)
	for {
		if err := t.Next(); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		id, component, ok := p.id()
		if !ok {
			return nil, p.fault(colID, "a job as 123, 123_4 or 123+1 (steps such as 123.0 are skipped)")
		}
		if id == "" {
			continue
		}
		rec := record{component: component}
		if err := p.record(&rec, id); err != nil {
			return nil, err
		}
		k, again := places[id]
		if !again {
			k = len(all)
			places[id], all = k, append(all, nil)
		} else if user := all[k][0].job.User; user != rec.job.User {
			return nil, p.fault(colUser, fmt.Sprintf("%q, as in an earlier row of job %s (if Slurm's ids were reset in between, ask for one period at a time with sacct -S and -E)", user, id))
		}
		all[k] = append(all[k], rec)
	}
	d := &Reader{name: p.at[colName] >= 0, group: p.at[colAccount] >= 0}
	jobs := make([]traces.Job, 0, len(all))
	for _, records := range all {
		j, why := whole(records)
		if why != "" {
			d.skips.Add(why)
			continue
		}
		if j.GPUs > traces.MaxGPUs || j.Work < 0 {
			return nil, &traces.RowError{File: file, Line: t.Line(), Column: names[colID], Value: j.ID, Want: "records of one job that together have at most 2^30 GPUs and less than 292 years"}
		}
		jobs = append(jobs, j)
	}
	d.moved = traces.SortStable(jobs)
	for i := len(jobs) - 1; i >= 0; i-- {
		jobs[i].Submit -= jobs[0].Submit
	}
	d.stream.Jobs = jobs
	return d, nil
}

// whole returns the job of all its records, and why it is left out, "" if it is not. The job's GPUs or Work are out of range if
// the records add up to too much.
func whole(records []record) (j traces.Job, why string) {
	slices.SortStableFunc(records, func(a, b record) int { return int(min(1, max(-1, a.job.Submit-b.job.Submit))) })
	var (
		work time.Duration
		seen []string // components of the run at hand
		last record   // the run at hand
		tops time.Duration
	)
	for i, r := range records {
		if i == 0 || slices.Contains(seen, r.component) {
			work, tops, seen = add(work, tops), 0, seen[:0]
			last = r
		} else {
			last.join(&r)
		}
		seen = append(seen, r.component)
		tops = max(tops, r.job.Work)
	}
	work = add(work, tops)
	j = last.job
	j.Submit, j.Work = records[0].job.Submit, work
	switch {
	case last.ends == running || last.ends == waiting && work > 0:
		return j, NotEnded
	case last.ends == waiting && work == 0:
		return j, NeverStarted
	case work == 0:
		return j, NoRunTime
	}
	return j, ""
}

// add returns the sum of two times of 0 or more, -1 if it is out of range or one of them is.
func add(a, b time.Duration) time.Duration {
	if a < 0 || b < 0 || a > math.MaxInt64-b {
		return -1
	}
	return a + b
}

// join adds another component of the same run.
func (r *record) join(o *record) {
	r.job.GPUs += o.job.GPUs
	r.job.CPUMilli += o.job.CPUMilli
	r.job.MemBytes += o.job.MemBytes
	r.job.Estimate = max(r.job.Estimate, o.job.Estimate)
	r.ends = max(r.ends, o.ends)
	for _, t := range o.job.GPUTypes {
		if !slices.Contains(r.job.GPUTypes, t) {
			r.job.GPUTypes = append(slices.Clip(r.job.GPUTypes), t)
		}
	}
	if o.component < r.component { // the first component stands for the job
		r.component, r.job.Status, r.job.Name, r.job.Group = o.component, o.job.Status, o.job.Name, o.job.Group
	}
}

// Next implements traces.Stream.
func (d *Reader) Next(j *traces.Job) error { return d.stream.Next(j) }

// Moved returns how many jobs came after a job with a later submit in the file.
func (d *Reader) Moved() int { return d.moved }

// Named reports whether the file has a column of jobs' names, and one of accounts.
func (d *Reader) Named() (name, group bool) { return d.name, d.group }

// Skipped returns how many jobs were left out, by reason.
func (d *Reader) Skipped() []traces.Skip { return d.skips.All() }

// delimiter returns what stands between the fields of a header. sacct quotes nothing; what has commas between fields came from
// another program, which does.
func (o *Options) delimiter(header []byte) (delimiter byte, raw bool) {
	if o.Delimiter == 0 {
		o.Delimiter = '|'
		most := 0
		for _, c := range []byte("|,;\t") {
			if n := known(header, c); n > most {
				o.Delimiter, most = c, n
			}
		}
	}
	return o.Delimiter, o.Delimiter != ','
}

// known counts the columns in a header by which sacct is recognised: those that are read, without two that other programs have.
func known(header []byte, delimiter byte) (n int) {
	for f := range bytes.SplitSeq(header, []byte{delimiter}) {
		f = bytes.Trim(f, " \r\"")
		if slices.ContainsFunc(names[:colName], func(name string) bool { return strings.EqualFold(name, string(f)) }) {
			n++
		}
	}
	return n
}

// Sniff reports whether head, the first bytes of an unpacked file, begins with a header of sacct: the columns of a job between
// vertical bars, or between others if one is of generic resources, or the columns of fixed width that NewReader refuses; or is a
// document of sacct --json.
func Sniff(head []byte) bool {
	if sniffJSON(head) {
		return true
	}
	line, rest := lineOf(head)
	if fixed(line, rest) {
		return true
	}
	for _, c := range []byte("|,;\t") {
		if has := func(name string) bool {
			for f := range bytes.SplitSeq(line, []byte{c}) {
				if strings.EqualFold(name, string(bytes.Trim(f, " \r\""))) {
					return true
				}
			}
			return false
		}; has("JobID") && known(line, c) >= 3 && (c == '|' || has("AllocTRES") || has("ReqTRES") || has("ReqGRES")) {
			return true
		}
	}
	return false
}

func lineOf(head []byte) (line, rest []byte) {
	rest = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	for len(rest) > 0 && len(bytes.TrimSpace(line)) == 0 {
		line, rest, _ = bytes.Cut(rest, []byte{'\n'})
	}
	return line, rest
}

// fixed reports whether line and the line after it are the head of a table of fixed width.
func fixed(line, rest []byte) bool {
	rule, _, _ := bytes.Cut(rest, []byte{'\n'})
	isID := func(f []byte) bool {
		return bytes.EqualFold(f, []byte("JobID")) || bytes.EqualFold(f, []byte("JobIDRaw"))
	}
	return slices.ContainsFunc(bytes.Fields(line), isID) && bytes.Count(rule, []byte{'-'}) > 8 && len(bytes.Trim(rule, "- \r")) == 0
}

type parser struct {
	*traces.Table
	at      [columns]int // index of the column of each name; -1 = absent
	clock   clock
	cluster string
	text    traces.Names
	jobs    traces.Names // of jobs, apart from text because there can be a great many
	tres    [2]tres
}

// lacks returns the fault in words of a header without what is required, "" if it has it.
func (p *parser) lacks() string {
	header := p.Columns()
	if len(header) == 1 && len(strings.Fields(header[0])) > 1 {
		return "these are columns of fixed width, in which sacct cuts what is too long: run it with -P (--parsable2)"
	}
	var lacks []string
	need := func(as string, cols ...int) {
		if !slices.ContainsFunc(cols, func(c int) bool { return p.at[c] >= 0 }) {
			lacks = append(lacks, as)
		}
	}
	need("JobID", colID)
	need("Submit", colSubmit)
	if p.at[colStart] < 0 || p.at[colEnd] < 0 {
		need("ElapsedRaw", colElapsed, colElapsedRaw)
	}
	need("AllocTRES", colAllocTRES, colReqTRES, colReqGRES)
	if p.at[colAllocTRES] < 0 && p.at[colReqTRES] < 0 && p.at[colReqGRES] >= 0 {
		need("NNodes", colNodes, colAllocNodes)
	}
	if lacks == nil {
		return ""
	}
	return fmt.Sprintf("no column %s; add it to sacct's -o (--format), which here was %.200s", strings.Join(lacks, ", "), strings.Join(header, ","))
}

// cell returns the current row's value without the blanks around it, nil if the file has no such column.
func (p *parser) cell(col int) []byte {
	if p.at[col] < 0 {
		return nil
	}
	return p.Text(p.at[col])
}

// first returns the first of columns that has a value in this row, -1 if none has.
func (p *parser) first(cols ...int) int {
	for _, c := range cols {
		if !traces.NotGiven(p.cell(c)) {
			return c
		}
	}
	return -1
}

func (p *parser) fault(col int, want string) error { return p.Fault(p.at[col], want) }

// id returns the job of the row, "" for a step, and the component of a heterogeneous job.
func (p *parser) id() (id, component string, ok bool) {
	b := p.cell(colID)
	if b, _, step := bytes.Cut(b, []byte{'.'}); step {
		return "", "", len(b) > 0
	}
	b, part, hetero := bytes.Cut(b, []byte{'+'})
	if hetero && !number(part) {
		return "", "", false
	}
	job, task, array := bytes.Cut(b, []byte{'_'})
	tasks := len(task) > 2 && task[0] == '[' // 123_[5-9]: tasks that have not started
	if !number(job) || array && !tasks && !number(task) {
		return "", "", false
	}
	if hetero {
		component = fmt.Sprintf("%08s", part) // in order as texts
	}
	return string(b), component, true
}

func number(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(b) > 0
}
