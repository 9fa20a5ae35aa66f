package gbdt

import (
	"math"
	"time"

	"clustergym/simulator/predict"
	"clustergym/simulator/predict/history"
	"clustergym/traces"
)

// own are the features that do not come from history.
var own = [...]string{"gpus", "gpu_share", "cpus", "memory", "requested_time", "hour", "weekday"}

// Features names the columns of a row, all of them numbers, NaN where the trace does not say: GPUs, the share of each
// (1 = whole), cores and bytes of memory for the gang, ln(requested time in seconds), hour of the day and day of the
// week of the submit on the trace's clock, then history.FeatureNames.
func Features() []string { return append(own[:], history.FeatureNames()...) }

// columns is the number of features.
var columns = len(Features())

// describe writes the features of j, which has just been submitted to h, to row.
func describe(row []float32, h *history.Predictor, at time.Duration, number int, j *traces.Job) {
	nan := float32(math.NaN())
	row[0], row[1], row[2], row[3], row[4] = float32(j.GPUs), float32(j.GPUMilli)/1000, nan, nan, nan
	if j.CPUMilli > 0 {
		row[2] = float32(j.CPUMilli) / 1000
	}
	if j.MemBytes > 0 {
		row[3] = float32(j.MemBytes)
	}
	if asked := predict.Requested(j); asked > 0 {
		row[4] = float32(math.Log(asked.Seconds()))
	}
	const day = 24 * time.Hour
	row[5] = float32((at % day).Hours())
	row[6] = float32(at / day % 7)
	h.Features(number, row[len(own):])
}

// target returns what is fitted for a run time, counted in units of nanoseconds.
func target(ran time.Duration, unit float64) float64 {
	return math.Log(math.Max(float64(ran), 1e6) / unit)
}
