package dally

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"clustergym/traces"
)

// Write writes jobs in the format of that simulator's workloads. Jobs need a model and iterations.
func Write(w io.Writer, jobs []traces.Job) error {
	b := bufio.NewWriter(w)
	b.WriteString("job,arrival,gpus,model,iterations,time_per_iteration\n") //nolint:errcheck // kept by the writer
	for i := range jobs {
		j := &jobs[i]
		if j.Iterations < 1 || j.Model == "" {
			return fmt.Errorf("job %s: got model %q and %d iterations, want both given", j.ID, j.Model, j.Iterations)
		}
		per := j.Work.Seconds() * float64(j.GPUs) / float64(j.Iterations)
		row := append([]byte(j.ID), ',')
		row = traces.AppendSeconds(row, j.Submit)
		row = fmt.Appendf(row, ",%d,%s,%d,", j.GPUs, j.Model, j.Iterations)
		row = append(strconv.AppendFloat(row, per, 'g', -1, 64), '\n')
		b.Write(row) //nolint:errcheck // kept by the writer
	}
	return b.Flush()
}
