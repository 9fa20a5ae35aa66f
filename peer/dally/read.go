package dally

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"clustergym/peer/internal/rows"
)

// ReadJobs reads a workload: a CSV whose header has job, arrival, gpus, model, iterations and time_per_iteration.
// Other columns are ignored. Errors name line, column and value.
func ReadJobs(r io.Reader, name string) ([]Job, error) {
	t, err := rows.Open(r, name, "job", "arrival", "gpus", "model", "iterations", "time_per_iteration")
	if err != nil {
		return nil, err
	}
	var jobs []Job
	for t.Next() {
		j := Job{
			Name: t.Text(0), Arrival: t.Number(1, 0, math.MaxFloat64, "a number of 0 or more"),
			GPUs: int(t.Whole(2, 1, 1<<30)), Model: t.Text(3),
			Iterations: float64(t.Whole(4, 1, 1<<53-1)),
			Time:       t.Number(5, math.SmallestNonzeroFloat64, math.MaxFloat64, "a number above 0"),
		}
		id, err := strconv.ParseInt(j.Name, 10, 64)
		if err != nil { // the place in the file breaks ties
			id = int64(len(jobs))
		}
		j.ID = id
		jobs = append(jobs, j)
	}
	if t.Err() == nil && len(jobs) == 0 {
		return nil, fmt.Errorf("%s: no jobs", name)
	}
	return jobs, t.Err()
}

// ReadFactors reads the factors of one network: a CSV whose header has net, model, shape and factor. net "" takes the
// only network of the table. It also returns the names of all networks.
func ReadFactors(r io.Reader, name, net string) (*Table, []string, error) {
	t, err := rows.Open(r, name, "net", "model", "shape", "factor")
	if err != nil {
		return nil, nil, err
	}
	table := &Table{Name: net}
	var nets []string
	seen := map[string]bool{}
	for t.Next() {
		n := t.Text(0)
		if !seen[n] {
			seen[n] = true
			nets = append(nets, n)
		}
		if net != "" && n != net {
			continue
		}
		s, err := ParseShape(t.Text(2))
		if err != nil {
			t.Fail(2, "six whole numbers of -1 or more joined by |")
			break
		}
		const share = "a share above 0 and up to 1"
		if err := table.Set(t.Text(1), s, t.Number(3, 0, 1, share)); err != nil {
			t.Fail(3, share)
			break
		}
	}
	if t.Err() == nil && net == "" && len(nets) > 1 {
		return nil, nets, fmt.Errorf("%s has networks %s, want the name of one", name, strings.Join(nets, ", "))
	}
	if net == "" && len(nets) == 1 {
		table.Name = nets[0]
	}
	return table, nets, t.Err()
}
