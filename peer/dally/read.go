package dally

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// ReadJobs reads a workload: a CSV whose header has job, arrival, gpus, model, iterations and time_per_iteration.
// Other columns are ignored. Errors name line, column and value.
func ReadJobs(r io.Reader, name string) ([]Job, error) {
	t, err := newTable(r, name, "job", "arrival", "gpus", "model", "iterations", "time_per_iteration")
	if err != nil {
		return nil, err
	}
	var jobs []Job
	for t.next() {
		j := Job{Name: t.text(0), Arrival: t.number(1, 0), GPUs: int(t.whole(2, 1, 1<<30)), Model: t.text(3),
			Iterations: float64(t.whole(4, 1, 1<<53-1)), Time: t.number(5, math.SmallestNonzeroFloat64)}
		id, err := strconv.ParseInt(j.Name, 10, 64)
		if err != nil { // the place in the file breaks ties
			id = int64(len(jobs))
		}
		j.ID = id
		jobs = append(jobs, j)
	}
	if t.err == nil && len(jobs) == 0 {
		t.err = fmt.Errorf("%s: no jobs", name)
	}
	return jobs, t.err
}

// ReadFactors reads the factors of one network: a CSV whose header has net, model, shape and factor. net "" takes the
// only network of the table. It also returns the names of all networks.
func ReadFactors(r io.Reader, name, net string) (*Table, []string, error) {
	t, err := newTable(r, name, "net", "model", "shape", "factor")
	if err != nil {
		return nil, nil, err
	}
	table := &Table{Name: net}
	var nets []string
	seen := map[string]bool{}
	for t.next() {
		if n := t.text(0); !seen[n] {
			seen[n] = true
			nets = append(nets, n)
		}
		if net != "" && t.row[t.at[0]] != net {
			continue
		}
		s, err := ParseShape(t.row[t.at[2]])
		if err != nil {
			t.fail(2, err.Error())
			break
		}
		if err := table.Set(t.text(1), s, t.number(3, 0)); err != nil {
			t.fail(3, err.Error())
			break
		}
	}
	if t.err == nil && net == "" && len(nets) > 1 {
		return nil, nets, fmt.Errorf("%s has networks %s, want the name of one", name, strings.Join(nets, ", "))
	}
	if net == "" && len(nets) == 1 {
		table.Name = nets[0]
	}
	return table, nets, t.err
}

// table reads rows of a CSV by column names.
type table struct {
	name    string
	r       *csv.Reader
	columns []string
	at      []int
	row     []string
	err     error
}

func newTable(r io.Reader, name string, columns ...string) (*table, error) {
	t := &table{name: name, r: csv.NewReader(r), columns: columns}
	t.r.ReuseRecord, t.r.FieldsPerRecord = true, 0
	header, err := t.r.Read()
	if err != nil {
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s: empty, want a header with %s", name, strings.Join(columns, ", "))
		}
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, c := range columns {
		at := -1
		for i, h := range header {
			if strings.TrimPrefix(strings.TrimSpace(h), "\ufeff") == c {
				at = i
			}
		}
		if at < 0 {
			return nil, fmt.Errorf("%s: line 1: no column %s, want a header with %s", name, c, strings.Join(columns, ", "))
		}
		t.at = append(t.at, at)
	}
	return t, nil
}

func (t *table) next() bool {
	if t.err != nil {
		return false
	}
	row, err := t.r.Read()
	if errors.Is(err, io.EOF) {
		return false
	}
	if err != nil {
		t.err = fmt.Errorf("%s: %w", t.name, err)
		return false
	}
	t.row = row
	return true
}

// fail records what is wrong with a column of the row, unless there already was an error.
func (t *table) fail(column int, what string) {
	if t.err == nil {
		line, _ := t.r.FieldPos(t.at[column])
		t.err = fmt.Errorf("%s: line %d: column %s: %s", t.name, line, t.columns[column], what)
	}
}

func (t *table) text(column int) string {
	s := t.row[t.at[column]]
	if s == "" {
		t.fail(column, "got nothing, want a name")
	}
	return strings.Clone(s)
}

func (t *table) number(column int, least float64) float64 {
	s := t.row[t.at[column]]
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v >= least) || math.IsInf(v, 0) {
		want := "a number of 0 or more"
		if least > 0 {
			want = "a number above 0"
		}
		t.fail(column, fmt.Sprintf("got %q, want %s", s, want))
	}
	return v
}

func (t *table) whole(column int, least, most int64) int64 {
	s := t.row[t.at[column]]
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil || v < least || v > most {
		t.fail(column, fmt.Sprintf("got %q, want a whole number from %d to %d", s, least, most))
	}
	return v
}
