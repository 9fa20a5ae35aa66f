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

var names = [columns]string{"task_name", "instance_num", "job_name", "status", "start_time", "end_time", "plan_cpu", "plan_mem",
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
type table struct {
	*traces.Table
	at    []int // index of each column; -1 = not in this file
	words traces.Names
}

func newTable(r io.Reader, file string) (*table, error) {
	t, err := traces.NewTable(r, file, names[:required]...)
	if err != nil {
		return nil, err
	}
	return &table{Table: t, at: t.At(names[:]...)}, nil
}

// next reads the next row into w and skips empty lines.
func (t *table) next(w *row) error {
	if err := t.Next(); err != nil {
		return err
	}
	*w = row{name: t.cell(colTask), job: t.cell(colJob), status: t.words.Get(t.cell(colStatus))}
	w.timed = len(t.cell(colStart)) > 0 && len(t.cell(colEnd)) > 0
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
	if len(t.cell(colMean)) > 0 {
		mean, err := t.number(colMean, 9, math.MaxInt64, "seconds, 0 or more, or nothing where unknown")
		if err != nil {
			return err
		}
		w.mean, w.measured = time.Duration(mean), true
	}
	return nil
}

// number returns the field times 10^places, or 0 if it is empty. Measured means, which are binary fractions, are
// rounded; counts must be whole.
func (t *table) number(col, places int, most int64, want string) (int64, error) {
	if len(t.cell(col)) == 0 {
		return 0, nil
	}
	return t.Number(t.at[col], places, 0, most, want)
}

// cell returns a cell without blanks around it, nil where it says that there is nothing.
func (t *table) cell(col int) []byte {
	if b := t.Text(t.at[col]); !traces.NotGiven(b) {
		return b
	}
	return nil
}

func (t *table) fault(col int, want string) error { return t.Fault(t.at[col], want) }

// Sniff reports whether head, the first bytes of an unpacked file, is of this format: a header with task_name,
// instance_num, job_name and start_time.
func Sniff(head []byte) bool {
	return traces.HasColumns(head, names[colTask], names[colInstances], names[colJob], names[colStart])
}
