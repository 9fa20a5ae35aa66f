package alibaba

import (
	"bytes"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"clustergym/traces"
)

const (
	colTask = iota
	colInstances
	colJob
	colStatus
	colStart
	colEnd
	colCPU
	colMem
	required // the columns before are in every file
	colMean  = required
	columns  = required + 1
)

var names = [columns]string{"task_name", "instance_num", "job_name", "status", "start_time", "end_time", "plan_cpu", "plan_mem",
	"mean_instance_duration"}

// row is one task as written. Its bytes are valid until the next row.
type row struct {
	name, job  []byte
	status     string
	instances  int // 0 = not given
	start, end time.Duration
	cpuMilli   int64
	mem        int64 // thousandths of a percent of a machine
	mean       time.Duration
	measured   bool // mean is given
}

// table reads rows.
type table struct {
	lines *traces.Lines
	at    [columns]int // -1 = not in this file
	width int
	f     [][]byte
	words traces.Names
}

func newTable(r io.Reader, file string) (*table, error) {
	t := &table{lines: traces.NewLines(r, file)}
	want := "a header with " + strings.Join(names[:required], ",")
	line, err := t.lines.Next()
	if err == io.EOF {
		return nil, &traces.RowError{File: file, Line: 1, Want: want}
	} else if err != nil {
		return nil, err
	}
	t.split(line)
	t.width = len(t.f)
	var missing []string
	for c, name := range names {
		t.at[c] = -1
		for i, f := range t.f {
			if string(f) != name {
				continue
			}
			if t.at[c] >= 0 {
				return nil, t.lines.Fault(name, name, "each column once in the header")
			}
			t.at[c] = i
		}
		if t.at[c] < 0 && c < required {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return nil, t.lines.Fault("", string(line), want+" (missing: "+strings.Join(missing, ", ")+")")
	}
	return t, nil
}

// split cuts at commas; blanks and quotes around a field go.
func (t *table) split(line []byte) {
	t.f = t.f[:0]
	for more := true; more; {
		var f []byte
		f, line, more = bytes.Cut(line, []byte{','})
		f = bytes.TrimSpace(f)
		if len(f) > 1 && f[0] == '"' && f[len(f)-1] == '"' {
			f = f[1 : len(f)-1]
		}
		t.f = append(t.f, f)
	}
}

// next reads the next row into w; empty lines are passed over.
func (t *table) next(w *row) error {
	var line []byte
	for len(bytes.TrimSpace(line)) == 0 {
		var err error
		if line, err = t.lines.Next(); err != nil {
			return err
		}
	}
	if t.split(line); len(t.f) != t.width {
		return t.lines.Fault("", strconv.Itoa(len(t.f))+" fields", strconv.Itoa(t.width)+", as in the header")
	}
	*w = row{name: t.f[t.at[colTask]], job: t.f[t.at[colJob]], status: t.words.Get(t.f[t.at[colStatus]])}
	if len(w.name) == 0 {
		return t.fault(colTask, "a name such as M1 or R2_1")
	}
	if len(w.job) == 0 {
		return t.fault(colJob, "the name of the task's job")
	}
	n, err := t.number(colInstances, 0, math.MaxInt32, "a whole number of instances, or nothing where unknown")
	if err != nil {
		return err
	}
	w.instances = int(n)
	for _, c := range [...]struct {
		col    int
		places int
		to     *int64
		want   string
	}{
		{colStart, 9, (*int64)(&w.start), "seconds, 0 or more"}, {colEnd, 9, (*int64)(&w.end), "seconds, 0 or more"},
		{colCPU, 1, &w.cpuMilli, "100 for each core, or nothing where unknown"},
		{colMem, 3, &w.mem, "percent of a machine, or nothing where unknown"},
	} {
		if *c.to, err = t.number(c.col, c.places, math.MaxInt64, c.want); err != nil {
			return err
		}
	}
	if t.at[colMean] >= 0 && len(t.f[t.at[colMean]]) > 0 {
		mean, err := t.number(colMean, 9, math.MaxInt64, "seconds, 0 or more, or nothing where unknown")
		if err != nil {
			return err
		}
		w.mean, w.measured = time.Duration(mean), true
	}
	return nil
}

// number is the field times 10^places, 0 where it is empty. Binary fractions of measured means are rounded; counts
// must be whole.
func (t *table) number(col, places int, most int64, want string) (int64, error) {
	b := t.f[t.at[col]]
	if len(b) == 0 {
		return 0, nil
	}
	v, exact, err := traces.Decimal(string(b), places)
	if err != nil || v < 0 || v > most || places == 0 && !exact {
		return 0, t.fault(col, want)
	}
	return v, nil
}

func (t *table) fault(col int, want string) error {
	return t.lines.Fault(names[col], string(t.f[t.at[col]]), want)
}

// Sniff says whether the first bytes of a file are of this format: a header with task_name, job_name,
// instance_num and start_time.
func Sniff(head []byte) bool {
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	line, _, _ := bytes.Cut(head, []byte{'\n'})
	var t table
	t.split(line)
	found := 0
	for _, c := range [...]int{colTask, colInstances, colJob, colStart} {
		for _, f := range t.f {
			if string(f) == names[c] {
				found++
				break
			}
		}
	}
	return found == 4
}
