package sacct

import (
	"bytes"
	"errors"
	"fmt"
	"io"
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
	colHosts
	colEligible
	colName
	colAccount
	columns
)

var names = [columns]string{"JobID", "Submit", "Start", "End", "Elapsed", "ElapsedRaw", "AllocTRES", "ReqTRES",
	"ReqGRES", "NNodes", "AllocNodes",
	"NCPUS", "AllocCPUS", "ReqMem", "Timelimit", "TimelimitRaw", "State", "User", "Partition", "Cluster", "NodeList",
	"Eligible", "JobName", "Account"}

// The reasons for which jobs are left out.
const (
	NeverStarted = "never started: Start is not known"
	NotEnded     = "not ended: pending or running again, or still"
	NoRunTime    = "no run time: Elapsed is 0"
	// Duplicate counts rows, not jobs: what several dumps have of the same run.
	Duplicate = "duplicate rows of the same run, from dumps that overlap"
	// Shortened counts rows of Options.Unended.
	Shortened = "waiting tasks of an array whose list sacct cut off: SLURM_BITSTR_LEN=0 prints it whole"
)

// Options changes how a file is read. The zero value is right for sacct -P.
type Options struct {
	Delimiter byte // between fields, as sacct's --delimiter; 0 = what the header shows
	// Unended gives also jobs that were running or waiting when sacct was asked (traces.Job.Open). A row of tasks of an
	// array that wait, 123_[5-9%2], is then a job for each of them.
	Unended bool
	// Runs gives what every run of a job that was requeued has done (traces.Job.Stops).
	Runs bool
}

// Reader is a traces.Stream over the jobs, in order of submit. sacct prints them in order of id, and the records of a
// job are apart, so the reader holds all of them in memory. Not safe for concurrent use.
type Reader struct {
	traces.Sorted
	name, group bool
	until       time.Duration
}

// record is one line: a run of a job, or of one component of it.
type record struct {
	job        traces.Job // Submit is since 1970, Work that of this run
	component  string     // of a heterogeneous job, "" for others
	ends       ending
	after      after
	open       bool          // its state is none of those in which jobs have ended for good
	lasting    bool          // it had not ended, and its row does not say how long it had lasted
	start, end time.Duration // since 1970, -1 = not given
}

type ending uint8

const (
	ended ending = iota
	waiting
	running
)

// NewReader reads r to its end: what sacct -P prints, or sacct --json, or both one behind the other. file is the name
// used in messages. A fault in a row or the header is a *traces.RowError; its lines are those of AsText: the rows under
// a document are its jobs, behind a header that it does not have.
func NewReader(r io.Reader, file string, o Options) (*Reader, error) {
	var (
		p     = &parser{places: map[string]int{}, unended: o.Unended}
		all   = newParts(AsText(r, file), o)
		d     = &Reader{}
		lines int
	)
	for {
		h, before, err := all.next()
		if err == io.EOF {
			break
		} else if err != nil {
			return nil, located(err, 0)
		}
		if err := p.part(h, file, &o); err != nil {
			return nil, located(err, before)
		}
		d.name, d.group = d.name || p.at[colName] >= 0, d.group || p.at[colAccount] >= 0
		lines = before + p.Line()
	}
	d.Left.AddN(Shortened, p.shortened)
	jobs := make([]traces.Job, 0, len(p.all))
	for _, records := range p.all {
		kept, again := distinct(records)
		d.Left.AddN(Duplicate, again)
		same := 0 // jobs with this id
		for _, records := range apart(kept) {
			p.untilNow(records)
			j, why := whole(records)
			if !o.Unended {
				j.Open = traces.Ended
			}
			if !o.Runs {
				j.Stops = nil
			}
			if why != "" && j.Open == traces.Ended {
				d.Left.Add(why)
				continue
			}
			if j.GPUs > traces.MaxGPUs || j.Work < 0 {
				return nil, &traces.RowError{File: file, Line: lines, Column: names[colID], Value: j.ID,
					Want: "records of one job that together have at most 2^30 GPUs and less than 292 years"}
			}
			if same++; same > 1 {
				j.ID = fmt.Sprintf("%s#%d", j.ID, same)
			}
			jobs = append(jobs, j)
		}
	}
	d.Sort(jobs)
	if len(jobs) > 0 {
		d.until = max(0, p.now-jobs[0].Submit)
	}
	for i := len(jobs) - 1; i >= 0; i-- {
		jobs[i].Submit -= jobs[0].Submit
	}
	return d, nil
}

// located returns a fault of a row alone, without what readers have put around it, and before lines further down.
func located(err error, before int) error {
	fault, ok := errors.AsType[*traces.RowError](err)
	if !ok {
		return err
	}
	f := *fault
	f.Line += before
	return &f
}

// part reads the rows under a header.
func (p *parser) part(h *part, file string, o *Options) error {
	if headless(h.header) {
		return &traces.RowError{File: file, Line: 1, Says: noHeader}
	}
	t, err := traces.OpenTable(h, file,
		traces.TableOptions{Delimiter: o.delimiter, Header: "JobID, Submit, Elapsed, AllocTRES"})
	if err != nil {
		return err
	}
	p.Table = t
	for i, name := range names {
		p.at[i] = slices.IndexFunc(t.Columns(), func(c string) bool { return strings.EqualFold(c, name) })
	}
	if says := p.lacks(); says != "" {
		return t.Saying(says)
	}
	for {
		if err := t.Next(); err == io.EOF {
			return nil
		} else if err != nil {
			if f, ok := errors.AsType[*traces.RowError](err); ok && strings.HasSuffix(f.Want, "as in the header") {
				f.Want += " (a name with a line break or a delimiter in it does that: leave JobName out, or use sacct --json)"
			}
			return err
		}
		id, component, ok := p.id()
		if !ok {
			return p.fault(colID, "a job as 123, 123_4 or 123+1 (steps such as 123.0 are skipped)")
		}
		if id == "" {
			continue
		}
		rec := record{component: component}
		if p.record(&rec, id); p.err != nil {
			return p.err
		}
		if tasks, is := p.tasks(id); is && p.err == nil {
			for _, id := range tasks {
				rec.job.ID = id
				if err := p.add(id, &rec); err != nil {
					return err
				}
			}
			continue
		}
		if p.err != nil {
			return p.err
		}
		if err := p.add(id, &rec); err != nil {
			return err
		}
	}
}

// add keeps a record with the others of its job.
func (p *parser) add(id string, rec *record) error {
	k, again := p.places[id]
	if !again {
		k = len(p.all)
		p.places[id], p.all = k, append(p.all, nil)
	} else if user := p.all[k][0].job.User; user != rec.job.User {
		return p.fault(colUser,
			fmt.Sprintf(
				"%q, as in an earlier row of job %s (if Slurm's ids were reset in between, ask for one period at a time with "+
					"sacct -S and -E)", user, id))
	}
	p.all[k] = append(p.all[k], *rec)
	return nil
}

// Until returns the latest time that the file mentions, on the clock of the jobs' Submit: shortly before sacct was
// asked, if jobs ran or came then. 0 if there are no jobs.
func (d *Reader) Until() time.Duration { return d.until }

// Named reports whether the file has a column of jobs' names, and one of accounts.
func (d *Reader) Named() (name, group bool) { return d.name, d.group }

type parser struct {
	*traces.Table
	at      [columns]int // index of the column of each name; -1 = absent
	clock   clock
	cluster string
	text    traces.Names
	jobs    traces.Names // of jobs, apart from text because there can be a great many
	tres    [2]tres
	hosts   traces.Names  // lists of nodes
	unended bool          // see Options
	now     time.Duration // the latest time that the file mentions, since 1970
	waits   int           // tasks of arrays that wait, so far
	// rows of waiting tasks whose list was cut off
	shortened int
	all       [][]record // by job, in order of the first records
	places    map[string]int
	err       error // the first fault in a cell
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
	return fmt.Sprintf("no column %s; add it to sacct's -o (--format), which here was %.200s", strings.Join(lacks, ", "),
		strings.Join(header, ","))
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

// fail keeps a fault in a cell, if it is the first.
func (p *parser) fail(col int, want string) {
	if p.err == nil {
		p.err = p.fault(col, want)
	}
}

// id returns the job of the row, "" for a step, and the component of a heterogeneous job.
func (p *parser) id() (id, component string, ok bool) {
	b := p.cell(colID)
	dots := bytes.Contains(b, []byte("_[")) // 123_[1,3,...]: a list that was cut off
	if b, _, step := bytes.Cut(b, []byte{'.'}); step && !dots {
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
