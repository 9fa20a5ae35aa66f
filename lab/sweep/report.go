package sweep

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"clustergym/internal/plain"
	"clustergym/internal/texttable"
	"clustergym/lab/report"
	"clustergym/lab/rundir"
)

// keyEstimates is the key that says what is known of run times.
const keyEstimates = "env.estimates"

// WriteTable prints a row for each trial, best first, and the run directories of the best trial.
func (r *Report) WriteTable(w io.Writer) error {
	keys := slices.Sorted(maps.Keys(r.Trials[0].Set))
	header := append([]string{"trial", "steps", "score"}, keys...)
	var rows [][]string
	for _, t := range r.Trials {
		score := "failed"
		if t.Score != nil {
			score = rundir.ShowScore(t.Metric, *t.Score)
		}
		row := []string{fmt.Sprint(t.Trial), fmt.Sprint(t.Steps), score}
		for _, k := range keys {
			row = append(row, fmt.Sprint(t.Set[k]))
		}
		rows = append(rows, row)
	}
	above := report.EstimatesHeader(r.Estimates)
	if slices.Contains(keys, keyEstimates) {
		above = report.EstimatesKey + ": see " + keyEstimates + "; only trials with the same can be compared\n"
	}
	if above != "" {
		if _, err := io.WriteString(w, above+"\n"); err != nil {
			return err
		}
	}
	if err := texttable.Write(w, header, rows, 0); err != nil {
		return err
	}
	better := "lower is better"
	if r.Higher {
		better = "higher is better"
	}
	_, err := fmt.Fprintf(w,
		"\nScore: %s of the best checkpoint up to the steps, IQM over %s; %s.\nThe best trial's runs: %s\n",
		r.Metric, plain.Count(len(r.Best), "seed", "seeds"), better, strings.Join(r.Best, " "))
	return err
}
