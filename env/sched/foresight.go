package sched

import (
	"fmt"

	"clustergym/simulator/predict"
	"clustergym/simulator/sim"
)

// Foresight are windows whose episodes can have predictors of run times.
type Foresight interface {
	Windows
	// Predictor makes the predictors of est, which is causal. They know the jobs of the workload that had ended when an
	// episode begins.
	Predictor(est sim.Estimates) (predict.Maker, error)
}

// Predictor makes the predictors of est for simulators that play the windows w (sim.Config.Predictor); nil if est asks
// none. Where observations that show forecasts, which forecast says, may know what has ended, though est asks no
// predictor, it makes those of estimates: history, if w has any.
func Predictor(w Windows, est sim.Estimates, forecast Forecast) (predict.Maker, error) {
	if !forecast.Remembers(est) {
		return nil, nil
	}
	f, ok := w.(Foresight)
	switch {
	case !est.Causal() && !ok:
		return nil, nil
	case !est.Causal():
		return f.Predictor(sim.Estimates{Mode: sim.EstimateHistory})
	case !ok:
		return nil, fmt.Errorf("estimates %v: there is no predictor for these windows (%T)", est, w)
	}
	return f.Predictor(est)
}
