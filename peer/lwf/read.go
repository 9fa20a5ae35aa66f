package lwf

import (
	"fmt"
	"io"
	"slices"

	"clustergym/peer/internal/rows"
)

// columns are those of a workload.
var columns = []string{"job", "arrival_ms", "workers", "model", "iters", "size_mb", "fw_ms", "bw_ms", "mem_mb"}

// Header returns the columns of a workload, as the first line of its file names them.
func Header() []string { return slices.Clone(columns) }

// ReadJobs reads a workload: a CSV whose header has the columns of Header. Others are ignored. Jobs that arrive in the
// same millisecond come in the order of the file. Errors name line, column and value.
func ReadJobs(r io.Reader, name string) ([]Job, error) {
	t, err := rows.Open(r, name, columns...)
	if err != nil {
		return nil, err
	}
	var jobs []Job
	for t.Next() {
		j := Job{
			Name: t.Text(0), Arrival: t.Whole(1, 0, 1<<50), Workers: int(t.Whole(2, 1, 1<<20)), Model: t.Text(3),
			Iterations: t.Whole(4, 1, 1<<30), Size: t.Number(5, 0, 1e9, "a number from 0 to 1e9"),
			Forward: t.Whole(6, 1, 1<<20), Backward: t.Whole(7, 1, 1<<20), Memory: t.Whole(8, 0, 1<<40),
		}
		if t.Err() == nil && j.endless() {
			t.Fail(4, fmt.Sprintf("fewer: with the row's workers and times they compute for %d ms on each GPU, "+
				"and 2^50 ms together is the most",
				j.compute()))
		}
		jobs = append(jobs, j)
	}
	if t.Err() != nil {
		return nil, t.Err()
	}
	if len(jobs) == 0 {
		return nil, fmt.Errorf("%s: no jobs", name)
	}
	return jobs, nil
}
