package lwf

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// columns are those of a workload.
var columns = []string{"job", "arrival_ms", "workers", "model", "iters", "size_mb", "fw_ms", "bw_ms", "mem_mb"}

// Header returns the columns of a workload, as the first line of its file names them.
func Header() []string { return slices.Clone(columns) }

// ReadJobs reads a workload: a CSV whose header has the columns of Header. Others are ignored. Jobs that arrive in the same
// millisecond come in the order of the file. Errors name line, column and value.
func ReadJobs(r io.Reader, name string) ([]Job, error) {
	rows := csv.NewReader(r)
	rows.ReuseRecord, rows.FieldsPerRecord = true, 0
	header, err := rows.Read()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: empty, want a header with %s", name, strings.Join(columns, ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	f := fields{name: name, rows: rows}
	for _, c := range columns {
		at := slices.IndexFunc(header, func(h string) bool { return strings.TrimPrefix(strings.TrimSpace(h), "\ufeff") == c })
		if at < 0 {
			return nil, fmt.Errorf("%s: line 1: no column %s, want a header with %s", name, c, strings.Join(columns, ", "))
		}
		f.at = append(f.at, at)
	}
	var jobs []Job
	for {
		f.row, err = rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		jobs = append(jobs, Job{
			Name: f.text(0), Arrival: f.whole(1, 0, 1<<50), Workers: int(f.whole(2, 1, 1<<20)), Model: f.text(3), Iterations: f.whole(4, 1, 1<<30),
			Size: f.number(5), Forward: f.whole(6, 1, 1<<20), Backward: f.whole(7, 1, 1<<20), Memory: f.whole(8, 0, 1<<40),
		})
		if last := &jobs[len(jobs)-1]; f.err == nil && last.endless() {
			f.fail(4, fmt.Sprintf("fewer: with the row's workers and times they compute for %d ms on each GPU, and 2^50 ms together is the most", last.compute()))
		}
		if f.err != nil {
			return nil, f.err
		}
	}
	if len(jobs) == 0 {
		return nil, fmt.Errorf("%s: no jobs", name)
	}
	return jobs, nil
}

// fields reads the fields of a row, and keeps the first error.
type fields struct {
	name string
	rows *csv.Reader
	at   []int
	row  []string
	err  error
}

func (f *fields) fail(column int, want string) {
	if f.err == nil {
		line, _ := f.rows.FieldPos(f.at[column])
		f.err = fmt.Errorf("%s: line %d: column %s: got %q, want %s", f.name, line, columns[column], f.row[f.at[column]], want)
	}
}

func (f *fields) text(column int) string {
	s := f.row[f.at[column]]
	if s == "" {
		f.fail(column, "a name")
	}
	return strings.Clone(s)
}

func (f *fields) whole(column int, least, most int64) int64 {
	v, err := strconv.ParseInt(f.row[f.at[column]], 10, 64)
	if err != nil || v < least || v > most {
		f.fail(column, fmt.Sprintf("a whole number from %d to %d", least, most))
	}
	return v
}

func (f *fields) number(column int) float64 {
	v, err := strconv.ParseFloat(f.row[f.at[column]], 64)
	if err != nil || !(v >= 0 && v <= 1e9) {
		f.fail(column, "a number from 0 to 1e9")
	}
	return v
}
