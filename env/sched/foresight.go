package sched

import (
	"fmt"

	"clustergym/env/predict"
	"clustergym/env/sim"
)

// Foresight are windows whose episodes can have predictors of run times.
type Foresight interface {
	Windows
	// Predictor makes the predictors of est, which is causal. They know the jobs of the workload that had ended when an
	// episode begins.
	Predictor(est sim.Estimates) (predict.Maker, error)
}

// Predictor makes the predictors of est for simulators that play the windows w (sim.Config.Predictor); nil if est asks none.
func Predictor(w Windows, est sim.Estimates) (predict.Maker, error) {
	if !est.Causal() {
		return nil, nil
	}
	f, ok := w.(Foresight)
	if !ok {
		return nil, fmt.Errorf("estimates %v: there is no predictor for these windows (%T)", est, w)
	}
	return f.Predictor(est)
}
