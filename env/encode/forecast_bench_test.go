package encode_test

import (
	"testing"

	"clustergym/env/encode"
	"clustergym/simulator/sim"
)

// What forecasts cost in one observation of ten slots with a busy cluster.
func BenchmarkForecasts(b *testing.B) {
	_, e := busy(b, encode.LogAxis())
	s := e.State()
	f := encode.NewForecasts(sim.Estimates{Mode: sim.EstimateExact}, s.View.Cluster().GPUs())
	for _, list := range [][]sim.Job{s.View.Running(), s.View.Waiting()} {
		for _, j := range list {
			f.Learn(s.View, j, s.Known[j].Estimate)
		}
	}
	dst := make([]float32, encode.ForecastLen)
	held := make([]float32, encode.HeldLen)
	axis := encode.LogAxis()
	b.ReportAllocs()
	for b.Loop() {
		f.Count(s.View)
		f.Held(held, s.View, axis)
		for _, j := range s.Slots {
			f.Encode(dst, s.View, j)
		}
	}
}
