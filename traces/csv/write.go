package csv

import (
	"bufio"
	"fmt"
	"io"
	"math/bits"
	"strconv"
	"strings"

	"clustergym/traces"
)

// Write is WriteNamed for a stream of which nothing is known: its jobs may have names and groups.
func Write(w io.Writer, s traces.Stream) (n int, err error) { return WriteNamed(w, s, true, true) }

// WriteNamed reads s to its end, writes it in the native format with every column, and returns how many jobs it wrote.
// name and group say whether jobs of s can have a name and a group; a job that has one all the same is an error. The
// column of either is written only if jobs have it: WriteNamed looks for it in the first 65,536 jobs, and if there are
// more, it takes name and group for it.
//
// Reading the file gives equal jobs, with three exceptions: the ID of a job without one becomes its position, the
// format has no batch sizes, SLOs, profiles and task graphs, and if the first job is submitted 1e9 to 4e9 s (31 to 126
// years) after the origin, submits are taken for unix times and counted from it. A job that the format cannot express
// (a share of several GPUs, a GPU type with | in its name, a negative time, an elastic range that does not contain its
// GPUs) is an error that names the job. Errors of s and w are returned unchanged.
func WriteNamed(w io.Writer, s traces.Stream, name, group bool) (n int, err error) {
	t := &table{w: bufio.NewWriterSize(w, 1<<16), mayName: name, mayGroup: group}
	var j traces.Job
	for ; ; n++ {
		if err = s.Next(&j); err != nil {
			break
		}
		if err = t.check(&j); err != nil {
			err = fmt.Errorf("csv: job %d (%q): %w", n, j.ID, err)
			break
		}
		if err := t.add(&j); err != nil {
			return n, err
		}
	}
	ferr := t.flush()
	if err == io.EOF {
		return n, ferr
	}
	return n, err // what was read is kept; the stream's fault matters more
}

// ahead is the number of jobs among which Write looks for names.
const ahead = 1 << 16

// table is the file that is written. Its rows wait in memory until it is known which columns it has.
type table struct {
	w                 *bufio.Writer
	mayName, mayGroup bool // what jobs can have
	name, group       bool // the columns
	begun             bool // the header is written
	row               []byte
	blocks            [][]byte // rows that wait, without name and group and the end of the line
	lengths           []int    // of each of them
	tails             []tail   // of those that have one
}

// tail is the end of a row that waits.
type tail struct {
	row         int
	name, group string
}

// block is the least size of one of table.blocks.
const block = 1 << 16

func (t *table) check(j *traces.Job) error {
	switch {
	case j.Name != "" && !t.mayName:
		return fmt.Errorf("name %q: a file without names was wanted", j.Name)
	case j.Group != "" && !t.mayGroup:
		return fmt.Errorf("group %q: a file without groups was wanted", j.Group)
	}
	return check(j)
}

// add writes j, or lets it wait.
func (t *table) add(j *traces.Job) error {
	t.row = appendRow(t.row[:0], j)
	if !t.begun {
		t.name, t.group = t.name || j.Name != "", t.group || j.Group != ""
		if len(t.lengths) == ahead {
			t.name, t.group = t.mayName, t.mayGroup
		}
		if t.name != t.mayName || t.group != t.mayGroup {
			t.hold(j)
			return nil
		}
		if err := t.begin(); err != nil {
			return err
		}
	}
	t.row = append(t.end(t.row, j.Name, j.Group), '\n')
	_, err := t.w.Write(t.row)
	return err
}

// hold lets the row of j wait.
func (t *table) hold(j *traces.Job) {
	last := len(t.blocks) - 1
	if last < 0 || cap(t.blocks[last])-len(t.blocks[last]) < len(t.row) {
		last++
		t.blocks = append(t.blocks, make([]byte, 0, max(block, len(t.row))))
	}
	t.blocks[last] = append(t.blocks[last], t.row...)
	if j.Name != "" || j.Group != "" {
		t.tails = append(t.tails, tail{len(t.lengths), j.Name, j.Group})
	}
	t.lengths = append(t.lengths, len(t.row))
}

// begin writes the header and the rows that wait.
func (t *table) begin() error {
	t.begun = true
	header := names[:written:written]
	if t.name {
		header = append(header, names[colName])
	}
	if t.group {
		header = append(header, names[colGroup])
	}
	if _, err := t.w.WriteString(strings.Join(header, ",") + "\n"); err != nil {
		return err
	}
	tails, end := t.tails, []byte(nil)
	for i, n := range t.lengths {
		for len(t.blocks[0]) == 0 {
			t.blocks = t.blocks[1:]
		}
		row := t.blocks[0][:n]
		t.blocks[0] = t.blocks[0][n:]
		var k tail
		if len(tails) > 0 && tails[0].row == i {
			k, tails = tails[0], tails[1:]
		}
		end = append(t.end(end[:0], k.name, k.group), '\n')
		if _, err := t.w.Write(row); err != nil {
			return err
		}
		if _, err := t.w.Write(end); err != nil {
			return err
		}
	}
	t.blocks, t.lengths, t.tails = nil, nil, nil
	return nil
}

// end appends the columns of names and groups that the file has.
func (t *table) end(row []byte, name, group string) []byte {
	if t.name {
		row = AppendText(append(row, ','), name)
	}
	if t.group {
		row = AppendText(append(row, ','), group)
	}
	return row
}

func (t *table) flush() error {
	if !t.begun {
		if err := t.begin(); err != nil {
			return err
		}
	}
	return t.w.Flush()
}

func check(j *traces.Job) error {
	switch {
	case j.Submit < 0 || j.Work < 0 || j.Estimate < 0 || j.Deadline < 0:
		return fmt.Errorf("times must be 0 or more (submit %v, work %v, estimate %v, deadline %v)", j.Submit, j.Work,
			j.Estimate, j.Deadline)
	case j.GPUs < 0 || j.GPUs > traces.MaxGPUs || j.GPUMilli != 1000 &&
		(j.GPUs != 1 || j.GPUMilli < 1 || j.GPUMilli > 999):
		return fmt.Errorf("%d GPUs at %d thousandths each: the format holds whole GPUs or a share of one", j.GPUs, j.GPUMilli)
	case j.MinGPUs < 0 || j.MinGPUs > j.GPUs || j.MaxGPUs != 0 && j.MaxGPUs < j.GPUs || j.MaxGPUs > traces.MaxGPUs:
		return fmt.Errorf("elastic range %d to %d: must hold the %d GPUs asked for", j.MinGPUs, j.MaxGPUs, j.GPUs)
	case j.CPUMilli < 0 || j.MemBytes < 0 || j.MemBytes>>30 > 9e8 || j.Iterations < 0:
		return fmt.Errorf("negative or too large: cores %d/1000, memory %d bytes, iterations %d", j.CPUMilli, j.MemBytes,
			j.Iterations)
	}
	for _, t := range j.GPUTypes {
		if t == "" || strings.Contains(t, "|") {
			return fmt.Errorf("GPU type %q: must have a name without |", t)
		}
	}
	return nil
}

// appendRow appends the row of j up to its status.
func appendRow(b []byte, j *traces.Job) []byte {
	b = traces.AppendSeconds(b, j.Submit)
	b = append(b, ',')
	b = traces.AppendSeconds(b, j.Work)
	b = append(b, ',')
	b = traces.AppendDecimal(b, int64(j.Milli()), 3)
	for _, s := range [...]string{j.ID, j.User, j.VC} {
		b = AppendText(append(b, ','), s)
	}
	b = append(b, ',')
	if len(j.GPUTypes) == 1 {
		b = AppendText(b, j.GPUTypes[0])
	} else if len(j.GPUTypes) > 1 {
		b = AppendText(b, strings.Join(j.GPUTypes, "|"))
	}
	b = appendGiven(b, j.CPUMilli, 3)
	b = append(b, ',')
	if j.MemBytes != 0 {
		// In units of 1e-10 GiB, rounded to nearest: the reader's rounding then finds the same byte.
		hi, lo := bits.Mul64(uint64(j.MemBytes), 1e10)
		lo, c := bits.Add64(lo, 1<<29, 0)
		hi += c
		b = traces.AppendDecimal(b, int64(hi<<34|lo>>30), memDecimals)
	}
	b = appendGiven(b, int64(j.Estimate), 9)
	b = AppendText(append(b, ','), j.Model)
	b = appendGiven(b, j.Iterations, 0)
	b = appendGiven(b, int64(j.Deadline), 9)
	b = appendGiven(b, int64(j.Priority), 0)
	b = appendGiven(b, int64(j.MinGPUs), 0)
	b = appendGiven(b, int64(j.MaxGPUs), 0)
	b = append(b, ',')
	if j.Status != traces.StatusUnknown {
		b = append(b, j.Status.String()...)
	}
	return b
}

// appendGiven appends a comma and v/10^places, or the comma alone for 0, which means "not given".
func appendGiven(b []byte, v int64, places int) []byte {
	b = append(b, ',')
	if v == 0 {
		return b
	}
	if places == 0 {
		return strconv.AppendInt(b, v, 10)
	}
	return traces.AppendDecimal(b, v, places)
}

// AppendText appends a cell with the text s, in quotes if it needs them.
func AppendText(b []byte, s string) []byte {
	if !strings.ContainsAny(s, ",\"\r\n") {
		return append(b, s...)
	}
	b = append(b, '"')
	for i := 0; i < len(s); i++ {
		if s[i] == '"' {
			b = append(b, '"')
		}
		b = append(b, s[i])
	}
	return append(b, '"')
}
