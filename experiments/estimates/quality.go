package estimates

import (
	"context"
	"fmt"

	"clustergym/experiments/study"
	"clustergym/lab/predictors"
	"clustergym/simulator/predict"
	"clustergym/simulator/predict/gbdt"
	"clustergym/simulator/sim"
)

// measureQuality returns how well a predictor predicts the jobs of a log, each of which starts when it is submitted: in
// the blocks of the second half, and after each of the splits.
func (s *settings) measureQuality(_ context.Context, b *study.Bench, name string, l *log,
	known string) ([]study.Row, error) {
	var rows []study.Row
	n := len(l.as)
	add := func(table string, label map[string]string, said []predictors.Forecast) {
		rows = append(rows,
			qualityRows(table, label, predictors.Measure(said), rungOf(known) == sim.RungCausal && known != knowLastTwo)...)
	}
	for seed := range s.seedsOf(known) {
		own := labels(name, known)
		own["seed"] = fmt.Sprint(seed + 1)
		k, err := know(known, l.as, false, uint64(seed+1), b.Workers)
		if err != nil {
			return nil, err
		}
		var all []predictors.Forecast // of all jobs; nil for a model that is fitted once
		switch {
		case known == knowOnce:
		case k.maker != nil:
			all = forecasts(k.maker, l.as, 0)
		default:
			if all, err = points(&k); err != nil {
				return nil, err
			}
		}
		after := func(first int) []predictors.Forecast {
			if known == knowOnce {
				return forecasts(gbdt.NewFixed(l.as, first, b.Workers), l.as, first)
			}
			return all[first:]
		}
		said := after(n / 2)
		for i := s.Blocks / 2; i < s.Blocks; i++ {
			add("predictors", study.With(own, "block", i+1), said[i*n/s.Blocks-n/2:(i+1)*n/s.Blocks-n/2])
		}
		for _, x := range s.Splits {
			add("splits", study.With(own, "split", fmt.Sprintf("%.0f %%", 100*x)), after(int(x*float64(n))))
		}
	}
	return rows, nil
}

// qualityRows returns a quality as rows of a table. The quantiles of estimates that are one number say nothing.
func qualityRows(table string, labels map[string]string, q predictors.Quality, quantiles bool) []study.Row {
	row := study.RowOf(table, labels)
	rows := []study.Row{row("spearman", q.Spearman), row("pairs", q.Pairs), row("log_error", q.LogError)}
	if !quantiles {
		return rows
	}
	for i, p := range predict.Levels {
		rows = append(rows, row(fmt.Sprintf("below_%.0f", 100*p), q.Below[i]))
	}
	return append(rows, row("log_width", q.Width))
}
