package predictors

import (
	"bufio"
	"context"
	"encoding/csv"
	"io"
	"math"
	"strconv"

	"clustergym/simulator/predict"
	"clustergym/simulator/predict/gbdt"
	"clustergym/traces"
)

// FeatureColumns returns the header of WriteFeatures; forecasts says whether there is a model.
func FeatureColumns(forecasts bool) []string {
	names := append([]string{"job_id", "submit_time", "end_time", "run_time", "unit"}, gbdt.Features()...)
	names = append(names, "target")
	if forecasts {
		for _, l := range predict.Levels {
			names = append(names, "q"+strconv.Itoa(int(math.Round(100*l))))
		}
	}
	return names
}

// WriteFeatures writes what trees are fitted to as CSV: a row for each of jobs, which are in order of submit, in the
// order of their ends. A value that is not known is empty. With a model, five columns with its quantiles of the run
// time follow, in seconds. It returns the number of rows. progress is told it now and then.
func WriteFeatures(ctx context.Context, w io.Writer, jobs []traces.Job, m *Model, progress func(rows int)) (n int,
	err error) {
	b := bufio.NewWriterSize(w, 1<<16)
	c := csv.NewWriter(b)
	if err := c.Write(FeatureColumns(m != nil)); err != nil {
		return 0, err
	}
	row := make([]string, 0, 64)
	err = gbdt.Describe(jobs, func(r *gbdt.Row) error {
		if n%1024 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			progress(n)
		}
		n++
		row = append(row[:0], r.Job.ID, number(r.Job.Submit.Seconds(), 64), number(r.End.Seconds(), 64),
			number(r.Job.Work.Seconds(), 64),
			number(r.Unit.Seconds(), 64))
		for _, x := range r.Features {
			row = append(row, number(float64(x), 32))
		}
		row = append(row, number(r.Target, 64))
		if m != nil {
			f := m.Predict(r)
			for _, q := range f.Q {
				row = append(row, number(q.Seconds(), 64))
			}
		}
		return c.Write(row)
	})
	if err != nil {
		return n, err
	}
	c.Flush()
	if err := c.Error(); err != nil {
		return n, err
	}
	return n, b.Flush()
}

// number formats a value with all its digits; NaN is empty.
func number(x float64, bits int) string {
	if math.IsNaN(x) {
		return ""
	}
	return strconv.FormatFloat(x, 'g', -1, bits)
}
