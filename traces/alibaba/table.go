package alibaba

import (
	"io"
	"math"
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
	required // the columns before it are in every file
	colMean  = required
	columns  = required + 1
)

var names = [columns]string{"task_name", "instance_num", "job_name", "status", "start_time", "end_time", "plan_cpu",
	"plan_mem",
	"mean_instance_duration"}

// row is one task as written. Its bytes are valid until the next row.
type row struct {
	name, job  []byte
	status     string
	instances  int // 0 = not given
	start, end time.Duration
	timed      bool // both are given
	cpuMilli   int64
	mem        int64 // thousandths of a percent of a machine
	mean       time.Duration
	measured   bool // whether mean is given
}

// table reads rows.
type table struct{ *traces.Cells }

func newTable(r io.Reader, file string) (table, error) {
	c, err := traces.OpenCells(r, file, names[:], required)
	return table{c}, err
}

// next reads the next row into w and skips empty lines.
func (t table) next(w *row) error {
	if err := t.Next(); err != nil {
		return err
	}
	*w = row{name: t.cell(colTask), job: t.cell(colJob), status: t.Intern(t.cell(colStatus))}
	w.timed, w.measured = t.Stated(colStart) && t.Stated(colEnd), t.Stated(colMean)
	w.instances = int(t.number(colInstances, 0, math.MaxInt32, "a whole number of instances, or nothing where unknown"))
	w.start = time.Duration(t.number(colStart, 9, math.MaxInt64, "seconds, 0 or more"))
	w.end = time.Duration(t.number(colEnd, 9, math.MaxInt64, "seconds, 0 or more"))
	w.cpuMilli = t.number(colCPU, 1, math.MaxInt64, "100 for each core, or nothing where unknown")
	w.mem = t.number(colMem, 3, math.MaxInt64, "percent of a machine, or nothing where unknown")
	w.mean = time.Duration(t.number(colMean, 9, math.MaxInt64, "seconds, 0 or more, or nothing where unknown"))
	return t.Err()
}

// number returns the field times 10^places, or 0 if it is empty. Measured means, which are binary fractions, are
// rounded; counts must be whole.
func (t table) number(col, places int, most int64, want string) int64 {
	if !t.Stated(col) {
		return 0
	}
	return t.Number(col, places, 0, most, want)
}

// cell returns a cell without blanks around it, nil where it says that there is nothing.
func (t table) cell(col int) []byte {
	if !t.Stated(col) {
		return nil
	}
	return t.Text(col)
}

// Sniff reports whether head, the first bytes of an unpacked file, is of this format: a header with task_name,
// instance_num, job_name and start_time.
func Sniff(head []byte) bool {
	return traces.HasColumns(head, names[colTask], names[colInstances], names[colJob], names[colStart])
}
